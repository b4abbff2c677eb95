//! `flux-gen diff`.

use clap::Args;

use super::bundles::{self, Use, file_error};
use super::error::CommandError;
use super::exit::Exit;
use super::jobs;
use super::pipeline::{InputArgs, OutputArgs};
use super::ui::Ui;
use crate::bundle::check::{FileDiff, check, diff};
use crate::bundle::files::Disk;
use crate::bundle::report::ChangeKind;

/// Show what `build` would change; exit 3 if anything.
///
/// Prints a unified diff from the output folder to what the specs give. Secrets are named, never shown. Writes nothing.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &DiffArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let rendered = bundles::render(&args.input, args.output.output.as_deref(), Use::Compare, ui)?;
    let output = &rendered.inputs.output;
    let report = check(&Disk, output, &rendered.tree, &rendered.kept).map_err(|e| file_error(&e))?;
    let diffs = diff(&Disk, output, &rendered.tree, &report).map_err(|e| file_error(&e))?;
    let text: String = diffs.iter().map(|d| show(d, ui.color_stdout())).collect();
    ui.print(text.as_bytes())?;
    let jobs = jobs::changes(output, &rendered.tree, &rendered.rollouts).map_err(|e| file_error(&e))?;
    let exit = bundles::drift(&rendered, &report, ui);
    jobs::say(&jobs, ui);
    Ok(exit)
}

fn show(diff: &FileDiff, color: bool) -> String {
    match &diff.text {
        Some(text) if color => text.split_inclusive('\n').map(paint).collect(),
        Some(text) => text.clone(),
        None => {
            let what = match diff.kind {
                ChangeKind::Missing => "is missing",
                ChangeKind::Changed => "differs",
                ChangeKind::Extra => "is no longer wanted",
            };
            format!("{} {what} (content not shown)\n", diff.path)
        }
    }
}

/// A line of a unified diff in the colours that git uses.
fn paint(line: &str) -> String {
    let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
    let code = match text.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "1",
        [b'+', ..] => "32",
        [b'-', ..] => "31",
        [b'@', ..] => "36",
        _ => return line.to_owned(),
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_do_not_cross_line_ends() {
        assert_eq!(paint("+a\n"), "\u{1b}[32m+a\u{1b}[0m\n");
        assert_eq!(paint(" a\n"), " a\n");
        assert_eq!(paint("-a"), "\u{1b}[31m-a\u{1b}[0m");
    }

    #[test]
    fn a_secret_is_named_and_not_shown() {
        let diff = FileDiff { path: "default/a/secret-curve.yaml".to_owned(), kind: ChangeKind::Changed, text: None };
        assert_eq!(show(&diff, true), "default/a/secret-curve.yaml differs (content not shown)\n");
    }
}
