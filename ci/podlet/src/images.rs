//! Which local image stands for the one that a pod names.

use std::path::PathBuf;

/// A pattern with `*` for any run of characters, and the local image for what it matches.
#[derive(Debug, Clone)]
pub struct Rule {
    pattern: String,
    local: String,
}

/// Image rules of one run.
#[derive(Debug, Clone, Default)]
pub struct ImageMap {
    /// `--image-map`, first match wins.
    pub rules: Vec<Rule>,
    /// Patterns of images that are the Flux view.
    pub views: Vec<String>,
    /// A folder with an `opt` folder to lay over `/opt` of the view's containers, if there is a view.
    pub view_root: Option<PathBuf>,
    /// The image that a view's container runs with.
    pub view_base: String,
}

impl Rule {
    /// Reads `PATTERN=LOCAL`.
    ///
    /// # Errors
    /// There is no `=` in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((pattern, local)) if !pattern.is_empty() && !local.is_empty() => {
                Ok(Rule { pattern: pattern.to_owned(), local: local.to_owned() })
            }
            _ => Err("expected PATTERN=LOCAL_IMAGE".to_owned()),
        }
    }
}

impl ImageMap {
    /// The local reference for `image`.
    pub fn local<'a>(&'a self, image: &'a str) -> &'a str {
        if self.is_view(image) {
            return &self.view_base;
        }
        self.rules.iter().find(|r| matches(&r.pattern, image)).map_or(image, |r| &r.local)
    }

    /// Whether `image` is the Flux view and a folder was given for it.
    pub fn is_view(&self, image: &str) -> bool {
        self.view_root.is_some() && self.views.iter().any(|p| matches(p, image))
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).filter(|i| rest.is_char_boundary(*i)).any(|i| matches(tail, &rest[i..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{ImageMap, Rule, matches};

    #[test]
    fn patterns() {
        for (pattern, text, want) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*flux-view*", "ghcr.io/x/flux-view-rocky:tag-9", true),
            ("*:tag", "x:tag", true),
            ("*:tag", "x:tags", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c", false),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }

    #[test]
    fn the_first_rule_wins_and_the_view_needs_a_folder() {
        let mut map = ImageMap {
            rules: vec![Rule::parse("x:1=local").expect("rule"), Rule::parse("*=base").expect("rule")],
            views: vec!["*view*".to_owned()],
            view_root: None,
            view_base: "viewbase".to_owned(),
        };
        assert_eq!((map.local("x:1"), map.local("y"), map.local("a-view")), ("local", "base", "base"));
        map.view_root = Some("/v".into());
        assert_eq!((map.local("a-view"), map.is_view("a-view"), map.is_view("y")), ("viewbase", true, false));
        assert!(Rule::parse("x").is_err());
    }
}
