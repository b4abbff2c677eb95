//! `flux-gen schema`.

use clap::{Args, ValueEnum};

use super::error::CommandError;
use super::exit::Exit;
use super::ui::Ui;
use crate::spec::schema;

/// Print the JSON Schema of a MiniCluster, the project file, a view or a recipe, with documentation.
///
/// For editors: `flux-gen schema > minicluster.json`, then begin a spec with `# yaml-language-server: $schema=minicluster.json`.
/// The schema knows fields and types; `flux-gen validate` knows the rest.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Of what.
    #[arg(value_enum, default_value_t)]
    of: Document,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Document {
    #[default]
    #[value(name = "minicluster")]
    MiniCluster,
    Project,
    View,
    Recipe,
}

pub(crate) fn run(args: &SchemaArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let schema = match args.of {
        Document::MiniCluster => schema::minicluster(),
        Document::Project => schema::project(),
        Document::View => schema::view(),
        Document::Recipe => schema::recipe(),
    };
    ui.print(format!("{schema:#}\n").as_bytes())?;
    Ok(Exit::Ok)
}
