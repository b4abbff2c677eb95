//! `flux-gen view verify`.

use clap::Args;

use super::build::{options, size, worst};
use super::find::{ProjectArgs, Views};
use super::open::{Opener, RegistryArgs, Target};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::report::plural;
use crate::cli::ui::Ui;
use crate::diag::codes::view as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::oci::{Platform, Source};
use crate::view::build::programs_of;
use crate::view::contract::{self, Expected, Report};
use crate::view::entry::Tree;
use crate::view::image::{self, LayerRow};
use crate::view::problem::Problems;
use crate::view::tree::{self, ReadOptions};

/// Check that images are views that bundles can use, whoever made them.
///
/// Looks at folders and links, flux and its python, the machine and the loader of every program, libraries that the view does
/// not hold, the oldest glibc it runs with, labels, and every digest on the way. Nothing is unpacked or run.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Views of the project, images, OCI layouts, archives, or trees.
    #[arg(value_name = "VIEW|IMAGE|LAYOUT|ARCHIVE|TREE", required = true)]
    targets: Vec<String>,
    /// Only this platform [default: all that the image has].
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<Platform>,
    /// Libraries that every application image has, so that the view need not hold them. May be repeated; takes `*`.
    #[arg(long, value_name = "LIBRARY")]
    provided: Vec<String>,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &VerifyArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut views = Views::open(&args.project, ui)?;
    let opener = Opener::new(&args.registry, views.root())?;
    let read = ReadOptions { scratch: options(&views, None)?.scratch, ..ReadOptions::default() };
    let mut exit = Exit::Ok;
    for target in &args.targets {
        let (text, found) = match opener.target(target, &views) {
            Ok(Target::Tree(path)) => one_tree(&path, args, &read),
            Ok(Target::Image((source, root))) => images(target, source.as_ref(), &root, args, &read),
            Err(error) => (String::new(), [error.diagnostic()].into_iter().collect()),
        };
        ui.print(text.as_bytes())?;
        exit = exit.max(worst(&found));
        views.report(ui, found);
    }
    if exit == Exit::Failed {
        ui.failure("not a view that bundles can use", None);
    }
    Ok(exit)
}

fn failure(target: &str, error: &dyn std::fmt::Display) -> Diagnostics {
    [Diagnostic::global_error(codes::NOT_AN_IMAGE, format!("{target}: {error}"))].into_iter().collect()
}

fn one_tree(path: &std::path::Path, args: &VerifyArgs, read: &ReadOptions) -> (String, Diagnostics) {
    let shown = path.display().to_string();
    let mut problems = Problems::default();
    let tree = match tree::index(path, read, &mut problems) {
        Ok(tree) => tree,
        Err(error) => return (String::new(), failure(&shown, &error)),
    };
    let architecture = args.platform.as_ref().map(|platform| platform.architecture.as_str());
    let expected = Expected { architecture, provided: &args.provided, ..Expected::default() };
    match check(&tree, expected) {
        Ok(mut report) => {
            problems.extend(std::mem::take(&mut report.problems));
            (format!("{shown}\n{}", facts(&report)), problems.diagnostics())
        }
        Err(error) => (String::new(), failure(&shown, &error)),
    }
}

fn check(tree: &Tree, expected: Expected<'_>) -> Result<Report, crate::view::pack::PackError> {
    Ok(contract::check(tree, &programs_of(tree)?, expected))
}

fn images(
    target: &str,
    source: &dyn Source,
    root: &crate::oci::Descriptor,
    args: &VerifyArgs,
    read: &ReadOptions,
) -> (String, Diagnostics) {
    let (mut text, mut found) = (String::new(), Diagnostics::new());
    let all = match super::open::images(source, root, args.platform.as_ref()) {
        Ok(all) => all,
        Err(error) => return (text, failure(target, &error)),
    };
    for image in all {
        let mut problems = Problems::default();
        let platform = image.config.platform.to_string();
        let (tree, rows) = match image::tree(source, &image, read, &mut problems) {
            Ok(read) => read,
            Err(error) => {
                found.extend(failure(&format!("{target} {platform}"), &error));
                continue;
            }
        };
        let labels = image.config.config.as_ref().map(|config| config.labels.clone()).unwrap_or_default();
        let architecture = Some(image.config.platform.architecture.as_str());
        let said = contract::provided_by(&labels);
        let provided: Vec<String> = args.provided.iter().chain(&said).cloned().collect();
        let expected = Expected { architecture, provided: &provided, labels: Some(&labels), glibc: None };
        match check(&tree, expected) {
            Ok(mut report) => {
                problems.extend(std::mem::take(&mut report.problems));
                text.push_str(&format!(
                    "{target} {platform} {}\n{}{}{}",
                    image.descriptor.digest,
                    facts(&report),
                    needed(&said),
                    table(&rows)
                ));
                found.extend(problems.diagnostics());
            }
            Err(error) => found.extend(failure(&format!("{target} {platform}"), &error)),
        }
    }
    (text, found)
}

/// What a view is, one line each.
fn facts(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("  {name:<13} {value}\n"));
        }
    };
    line("view", report.view.clone());
    line("flux", report.flux.clone());
    line("python", report.python.clone());
    line("glibc", report.glibc.as_ref().map(|(version, path)| format!("{version} or later ({path})")));
    line("programs", Some(format!("{} for {}", plural(report.programs, "file"), report.architectures.join(", "))));
    text
}

/// What the view leaves to application images.
fn needed(said: &[String]) -> String {
    if said.is_empty() {
        String::new()
    } else {
        format!("  {:<13} {} in application images\n", "needs", said.join(", "))
    }
}

/// The layers of an image.
pub(super) fn table(rows: &[LayerRow]) -> String {
    let row = |(number, row): (usize, &LayerRow)| {
        let step: String = row.created_by.as_deref().unwrap_or_default().chars().take(60).collect();
        let digest = &row.descriptor.digest.hex()[..12];
        format!(
            "  layer {:>2}  {digest}  {:>10}  {:>10} unpacked  {:>7} entries  {step}\n",
            number + 1,
            size(row.descriptor.size),
            size(row.bytes),
            row.entries
        )
    };
    rows.iter().enumerate().map(row).collect()
}
