//! Shell text that uses files where versions of the operator had them.

use super::check::{Check, Place, text};
use crate::diag::codes::spec as codes;
use crate::spec::Spanned;

/// A part of a path, what is wrong with it, and what to do.
const PATHS: &[(&str, &str, &str)] = &[
    (
        "etc/flux/system/R",
        "this uses R, the list of resources, at a place where no broker reads it",
        "take it out: the bundle has an R; say with `cores`, limits or the setting `cores` what a node has",
    ),
    ("view/run/flux/local", "the broker's socket is not here", "write \"$fluxsocket\", which is the whole URI"),
];

pub(super) fn check(check: &mut Check<'_>) {
    for place in check.containers.clone() {
        for written in shell(place) {
            for (path, message, help) in PATHS {
                if names(&written.value, path) {
                    check.warn(codes::OPERATOR_PATH, written.span, *message, *help);
                }
            }
        }
    }
}

/// Everything of a container that a shell reads.
fn shell<'a>(place: Place<'a>) -> Vec<&'a Spanned<String>> {
    let container = place.container;
    let own = [&container.command, &container.pre_command].map(text);
    let commands = container.commands.iter().flat_map(|commands| {
        let c = &commands.value;
        [
            &c.init,
            &c.pre,
            &c.broker_pre,
            &c.worker_pre,
            &c.pre_broker,
            &c.pre_worker,
            &c.service_pre,
            &c.script,
            &c.post,
        ]
    });
    own.into_iter().chain(commands.map(text)).flatten().collect()
}

/// Whether a path ends so somewhere in the text: `…/R`, not `…/R.json`.
fn names(text: &str, path: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    text.match_indices(path).any(|(at, _)| !text[at + path.len()..].starts_with(goes_on))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_path_is_named_to_its_end() {
        for (text, named) in [
            ("cat > ${viewroot}/etc/flux/system/R", true),
            ("cat $x/etc/flux/system/R; ls", true),
            ("cat $x/etc/flux/system/R.json", false),
            ("cat $x/etc/flux/system/R.json $x/etc/flux/system/R", true),
            ("ls etc/flux/system", false),
        ] {
            assert_eq!(names(text, "etc/flux/system/R"), named, "{text}");
        }
    }
}
