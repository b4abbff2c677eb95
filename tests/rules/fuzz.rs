//! No document makes the rules panic: cases with random changes.

use std::path::Path;

use flux_gen::diag::SourceMap;
use flux_gen::model::hardening::PodSecurity;
use flux_gen::rules;
use flux_gen::spec::{self, ReadOptions};
use proptest::prelude::*;

fn cases() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    texts.flat_map(|text| text.split("\n---\n").map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn run(text: &str) {
    let mut sources = SourceMap::new();
    let inputs = vec![("case.yaml".to_owned(), text.as_bytes().to_vec())];
    let (documents, _) = spec::read(&mut sources, inputs, &ReadOptions { allow_unknown: true });
    let _ = rules::documents::check(&documents, "", &|_| false);
    for companion in &documents.companions {
        let _ = rules::companion::check(companion);
    }
    for cluster in &documents.miniclusters {
        for (target, name_suffix) in [("1.28", 0), ("1.34", 11)] {
            let context = rules::spec::RuleContext {
                kubernetes: target.parse().unwrap(),
                name_suffix,
                flux_version: None,
                pod_security: PodSecurity::None,
            };
            for diagnostic in &rules::spec::check(cluster, &context) {
                let span = diagnostic.span.unwrap();
                assert!(span.start <= span.end && span.end <= text.len(), "{diagnostic:?}\n{text}");
                assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{diagnostic:?}\n{text}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn changed_cases_never_panic(
        index in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..6, "(\\PC|[\"'\\[\\]{}:/%.,@ -]|é|[0-9]{1,12}){0,4}"), 1..5),
    ) {
        let cases = cases();
        let body = &cases[index.index(cases.len())];
        let head = "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\n";
        let mut text = if body.contains("metadata:") {
            format!("{head}{body}\n")
        } else {
            format!("{head}metadata:\n  name: flux-sample\nspec:\n{body}\n")
        };
        for (place, removed, added) in changes {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).filter(|at| *at > head.len()).collect();
            let at = places[place.index(places.len())];
            let end = text[at..].char_indices().map(|(n, _)| at + n).nth(removed).unwrap_or(text.len());
            text.replace_range(at..end, &added);
        }
        run(&text);
    }

    #[test]
    fn any_text_is_a_name_a_path_or_refused(text in "\\PC{0,20}") {
        use flux_gen::rules::syntax;
        for form in [
            syntax::dns1123_label, syntax::dns1123_subdomain, syntax::dns1035_label, syntax::qualified_name, syntax::label_value,
            syntax::annotation_key, syntax::data_key, syntax::environment_name, syntax::port_name, syntax::relative_path, syntax::sysctl,
        ] {
            let _ = form(&text);
        }
        let clean = syntax::clean_path(&text);
        prop_assert_eq!(syntax::clean_path(&clean), clean);
    }
}
