//! `flux-gen build`.

use clap::Args;

use super::bundles::{self, EXPLAIN, Rendered, Use, file_error};
use super::certificates;
use super::error::CommandError;
use super::exit::Exit;
use super::jobs;
use super::pipeline::{InputArgs, OutputArgs};
use super::report::plural;
use super::sources::shown;
use super::ui::Ui;
use crate::bundle::files::Disk;
use crate::bundle::report::{ChangeKind, Report};
use crate::bundle::write::{WriteOptions, write};

/// Compile specs into bundles and write them.
///
/// Each MiniCluster becomes a folder DIR/NAMESPACE/NAME with one file per object and a kustomization. What is already as it
/// should be is not touched; bundles of specs that are gone are removed; files that flux-gen did not write stay, and files
/// that were edited by hand stop the build. A build that is stopped leaves each folder old or new, never in between.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Print the objects as YAML instead of writing files.
    #[arg(long, help_heading = "Output options", conflicts_with_all = ["output", "force", "no_sync"])]
    stdout: bool,
    /// Do not wait for the disk; a power failure may then lose files.
    #[arg(long, help_heading = "Output options")]
    no_sync: bool,
    /// Overwrite generated files that were edited by hand, and take the place of others.
    #[arg(long, help_heading = "Output options")]
    force: bool,
}

pub(crate) fn run(args: &BuildArgs, ui: &Ui) -> Result<Exit, CommandError> {
    if args.stdout {
        let rendered = bundles::render(&args.input, None, Use::Alone, ui)?;
        ui.print(&rendered.tree.documents())?;
        rendered.leave();
        return Ok(Exit::Ok);
    }
    let mut rendered = bundles::render(&args.input, args.output.output.as_deref(), Use::Write, ui)?;
    let output = &rendered.inputs.output;
    let jobs = jobs::changes(output, &rendered.tree, &rendered.rollouts).map_err(|e| file_error(&e))?;
    let options = WriteOptions { force: args.force, durable: !args.no_sync };
    let report = write(&Disk, output, &rendered.tree, &rendered.kept, options).map_err(|e| file_error(&e))?;
    let tally = rendered.inputs.report(ui, report.conflicts.clone());
    if tally.errors > 0 {
        ui.failure(&format!("found {}; nothing was written", tally.words()), Some(EXPLAIN));
        return Ok(Exit::Failed);
    }
    ui.status(&summary(&rendered, &report));
    if !report.changes.is_empty() {
        let store = certificates::store(&rendered.inputs.project);
        if let Some(text) = certificates::secrets_sentence(&rendered.secrets, &store) {
            ui.status(&text);
        }
    }
    jobs::say(&jobs, ui);
    rendered.leave();
    Ok(Exit::Ok)
}

/// `generated: 2 clusters; 12 files written, 1 removed, 3 unchanged`.
fn summary(rendered: &Rendered, report: &Report) -> String {
    let output = shown(&rendered.inputs.output);
    let clusters = plural(rendered.clusters, "cluster");
    let removed = report.changes.iter().filter(|c| c.kind == ChangeKind::Extra).count();
    let written = report.changes.len() - removed;
    if report.changes.is_empty() {
        return format!("{output}: {clusters}, up to date ({})", plural(report.unchanged, "file"));
    }
    let mut parts = vec![format!("{} written", plural(written, "file"))];
    for (count, what) in [(removed, "removed"), (report.unchanged, "unchanged")] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    format!("{output}: {clusters}; {}", parts.join(", "))
}
