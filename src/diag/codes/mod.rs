//! Every diagnostic code, one file per family. `FG1xx` reading YAML, `FG2xx` rules on what was written, `FG3xx` rules on
//! the resolved model and on objects, `FG4xx` project file and settings, `FG5xx` certificates, `FG6xx` bundles and files,
//! `FG7xx` finding and reading input files, `FG8xx` view images and registries, `FG9xx` air-gapped sites.

pub mod airgap;
pub mod audit;
pub mod bundle;
pub mod cert;
pub mod files;
pub mod model;
pub mod oci;
pub mod project;
pub mod publish;
pub mod queue;
pub mod recipe;
pub mod spec;
pub mod strategy;
pub mod syntax;
pub mod view;

use super::Code;

/// Defines the codes of one family as constants and lists them in `ALL`.
macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident = $id:literal, $title:literal, $explanation:literal;)*) => {
        $(
            #[doc = $title]
            $(#[$meta])*
            pub const $name: $crate::diag::Code =
                $crate::diag::Code { id: $id, title: $title, explanation: $explanation };
        )*
        /// All codes of this family, in order.
        pub const ALL: &[$crate::diag::Code] = &[$($name),*];
    };
}
pub(crate) use codes;

/// All codes, in order of their ids.
#[must_use]
pub fn all() -> Vec<Code> {
    let mut codes: Vec<Code> = [
        syntax::ALL,
        spec::ALL,
        model::ALL,
        strategy::ALL,
        queue::ALL,
        project::ALL,
        cert::ALL,
        bundle::ALL,
        audit::ALL,
        files::ALL,
        view::ALL,
        recipe::ALL,
        oci::ALL,
        airgap::ALL,
        publish::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
    .collect();
    codes.sort_by_key(|c| c.id);
    codes
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_are_unique_and_well_formed() {
        let codes = super::all();
        for pair in codes.windows(2) {
            assert_ne!(pair[0].id, pair[1].id);
        }
        for code in codes {
            assert!(code.id.len() == 5 && code.id.starts_with("FG"), "{}", code.id);
            assert!(code.id[2..].bytes().all(|b| b.is_ascii_digit()), "{}", code.id);
            assert!(!code.title.ends_with('.') && !code.explanation.is_empty(), "{}", code.id);
        }
    }
}
