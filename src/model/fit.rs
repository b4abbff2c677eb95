//! Whether a view can run in an application's image: what both need to be known for that, and what is in the way. Pure; who
//! reads images fills it in.

pub use crate::spec::pins::{Glibc, ImageFacts, ViewFacts};

/// What keeps a view from running in an image; empty when nothing does.
#[must_use]
pub fn misfits(view: &ViewFacts, image: &ImageFacts) -> Vec<String> {
    let mut found = Vec::new();
    if view.architecture != image.architecture {
        found.push(format!("the view is for {}, the image for {}", view.architecture, image.architecture));
    }
    match (view.glibc, image.glibc) {
        (Some(needed), Some(there)) if needed > there => {
            found.push(format!("the view needs glibc {needed}, and the image has {there}"));
        }
        (Some(needed), None) => found.push(format!("the view needs glibc {needed}, and the image has none")),
        _ => {}
    }
    if !image.bash {
        found.push("the image has no bash, which runs the entrypoint".to_owned());
    }
    found
}

/// How well a view that fits goes with an image, best first: made on the same system, then for the nearest glibc.
#[must_use]
pub fn rank(view: &ViewFacts, image: &ImageFacts) -> (bool, std::cmp::Reverse<Option<Glibc>>) {
    let same = view.os.is_some() && view.os == image.os;
    (!same, std::cmp::Reverse(view.glibc))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(architecture: &str, glibc: &str, os: &str) -> ViewFacts {
        let glibc = glibc.parse().ok();
        ViewFacts { architecture: architecture.into(), glibc, os: Some(os.into()), flux: None }
    }

    fn image(architecture: &str, glibc: &str, bash: bool) -> ImageFacts {
        ImageFacts { architecture: architecture.into(), os: Some("rocky-9".into()), glibc: glibc.parse().ok(), bash }
    }

    #[test]
    fn what_is_in_the_way() {
        for (view, image, expect) in [
            (view("amd64", "2.28", "rocky-8"), image("amd64", "2.34", true), 0),
            (view("amd64", "2.34", "rocky-9"), image("amd64", "2.34", true), 0),
            (view("amd64", "2.39", "ubuntu-24.04"), image("amd64", "2.34", true), 1),
            (view("arm64", "2.39", "ubuntu-24.04"), image("amd64", "2.34", false), 3),
            (view("amd64", "2.28", "rocky-8"), image("amd64", "", true), 1),
            (view("amd64", "", "any"), image("amd64", "", true), 0),
        ] {
            assert_eq!(misfits(&view, &image).len(), expect, "{view:?} {image:?}");
        }
    }

    #[test]
    fn the_nearest_first() {
        let image = image("amd64", "2.35", true);
        let mut views =
            [view("amd64", "2.28", "rocky-8"), view("amd64", "2.34", "rocky-9"), view("amd64", "2.35", "ubuntu-22.04")];
        views.sort_by_key(|view| rank(view, &image));
        assert_eq!(views.map(|view| view.os.unwrap()), ["rocky-9", "ubuntu-22.04", "rocky-8"]);
    }

    #[test]
    fn versions() {
        for (text, expect) in
            [("2.34", Some(Glibc(2, 34, 0))), ("2.2.5", Some(Glibc(2, 2, 5))), ("PRIVATE", None), ("2", None)]
        {
            assert_eq!(text.parse().ok(), expect, "{text}");
        }
        assert!(Glibc(2, 4, 0) < Glibc(2, 28, 0));
        assert_eq!((Glibc(2, 28, 0).to_string(), Glibc(2, 2, 5).to_string()), ("2.28".into(), "2.2.5".into()));
    }
}
