//! `flux-gen explain settings`: each setting, its value and where it came from.

use std::fmt::Write;

use super::wrap;
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::pipeline::{InputArgs, Inputs};
use crate::cli::ui::Ui;
use crate::diag::Diagnostics;
use crate::model::settings::{ALL, Origin, SettingInfo, Settings};
use crate::model::{checked_project_settings, effective_settings};

/// Key, value, origin.
type Row = (&'static str, String, Origin);

/// The page of one setting, without its value in any project.
pub(super) fn page(key: &str) -> Option<String> {
    let info = ALL.iter().find(|info| info.key == key)?;
    let mut text = format!("setting {key}\n\n");
    describe(&mut text, info, "");
    Some(text)
}

/// All settings as they are in this project, and where clusters differ.
pub(super) fn run(args: &InputArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut inputs = Inputs::open(args, None, ui)?;
    if !args.paths.is_empty() || inputs.project.names_sources() {
        inputs.read_specs(args, ui)?;
    }
    let mut found = Diagnostics::new();
    let common = rows(&checked_project_settings(inputs.project.written.as_ref(), &inputs.set, &mut found));
    let clusters: Vec<(String, Vec<Row>)> = inputs
        .documents
        .miniclusters
        .iter()
        .map(|spec| {
            let settings = effective_settings(spec, inputs.project.written.as_ref(), &inputs.set, &mut found);
            (title(spec), rows(&settings))
        })
        .collect();
    ui.print(table(&common, &clusters).as_bytes())?;
    let tally = inputs.report(ui, found);
    Ok(if tally.errors > 0 { Exit::Failed } else { Exit::Ok })
}

fn title(spec: &crate::spec::MiniCluster) -> String {
    let text = |field: &Option<crate::spec::Spanned<String>>| field.as_ref().map(|f| f.value.clone());
    let name = text(&spec.metadata.name).unwrap_or_default();
    text(&spec.metadata.namespace).map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}"))
}

fn rows(settings: &Settings) -> Vec<Row> {
    settings.origins().map(|(key, value, origin)| (key, value.to_owned(), origin)).collect()
}

fn table(common: &[Row], clusters: &[(String, Vec<Row>)]) -> String {
    let mut text = String::from(
        "Later wins: built-in, project file, cluster override in the project file, annotation\n\
         flux-gen.dev/KEY of the MiniCluster, --set.\n",
    );
    for (key, value, origin) in common {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{key} = {} ({origin})", shown(value));
        for (cluster, rows) in clusters {
            let own = rows.iter().find(|(k, v, o)| k == key && (v, o) != (value, origin));
            if let Some((_, value, origin)) = own {
                let _ = writeln!(text, "    {cluster}: {} ({origin})", shown(value));
            }
        }
        if let Some(info) = ALL.iter().find(|info| info.key == *key) {
            describe(&mut text, info, "    ");
        }
    }
    text
}

fn describe(text: &mut String, info: &SettingInfo, indent: &str) {
    let wrapped = wrap(info.doc, 90 - indent.len()).replace('\n', &format!("\n{indent}"));
    let _ = writeln!(text, "{indent}{wrapped}");
    let scope = if info.per_cluster { "" } else { "; for the whole project" };
    let _ = writeln!(text, "{indent}Values: {}; built-in: {}{scope}", info.values, shown(info.default));
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "not set" } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_that_differ_are_named() {
        let common = vec![("cores", String::new(), Origin::BuiltIn), ("cpus", "shared".to_owned(), Origin::Project)];
        let mut other = common.clone();
        other[0] = ("cores", "8".to_owned(), Origin::Annotation);
        let text = table(&common, &[("a".to_owned(), common.clone()), ("ns/b".to_owned(), other)]);
        assert!(text.contains("\ncores = not set (built-in)\n    ns/b: 8 (annotation)\n"), "{text}");
        assert!(text.contains("\ncpus = shared (project file)\n    `exclusive`:"), "{text}");
    }
}
