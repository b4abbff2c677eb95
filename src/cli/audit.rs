//! `flux-gen audit`.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use super::bundles::EXPLAIN;
use super::error::CommandError;
use super::exit::Exit;
use super::report::{SourceText, plural};
use super::sources::{self, Surroundings, Wanted};
use super::ui::Ui;
use crate::bundle::audit::audit;
use crate::diag::{Diagnostics, SourceMap};
use crate::model::kubernetes::KubernetesVersion;
use crate::spec::read_objects;

/// Check objects that went through kustomize, Argo CD or Flux CD.
///
/// Finds flux-gen's clusters among Kubernetes objects (`kubectl kustomize`, `kubectl get -o yaml`, a folder) and checks what
/// overrides may have broken: names that brokers and scripts hold, selectors, mounts, hashes, the Secret, numbers of pods,
/// fields of the target version. Each finding says what breaks in the cluster, and which override most likely did it.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Objects: a folder, a file, or `-` for standard input.
    #[arg(value_name = "DIR|-", required = true, help_heading = "Arguments")]
    paths: Vec<PathBuf>,
    /// `kubernetes-version=1.NN`: check for this version instead of the one each bundle was built for.
    #[arg(long, value_name = "KEY=VALUE", value_parser = target)]
    set: Option<KubernetesVersion>,
}

fn target(text: &str) -> Result<KubernetesVersion, String> {
    match text.split_once('=') {
        Some(("kubernetes-version", version)) => version.parse().map_err(|error| format!("{error}")),
        _ => Err("audit takes kubernetes-version=1.NN only; bundles know their other settings".to_owned()),
    }
}

pub(crate) fn run(args: &AuditArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut diagnostics = Diagnostics::new();
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() && args.paths.iter().any(|path| path.as_os_str() == "-") {
        ui.status("reading objects from the terminal; end them with Ctrl-D");
    }
    let wanted: Vec<Wanted> = args.paths.iter().map(|path| Wanted { path: path.clone(), named_at: None }).collect();
    let around = Surroundings { root: ".".as_ref(), output: None, project_file: None };
    let texts = sources::read(&wanted, around, &mut stdin, &mut diagnostics);
    let mut sources = SourceMap::new();
    let inputs = texts.into_iter().map(|text| (text.shown, text.bytes)).collect();
    let (read, problems) = read_objects(&mut sources, inputs);
    diagnostics.extend(problems);
    let mut clusters = 0;
    if !diagnostics.has_errors() {
        let found = audit(&read.objects, args.set);
        clusters = found.clusters;
        diagnostics.extend(found.diagnostics);
    }
    let texts = sources.iter().map(|(id, file)| SourceText { id, name: &file.name, text: &file.text });
    let tally = ui.diagnostics(texts, &read.secrets, diagnostics);
    if tally.errors > 0 {
        ui.failure(&format!("found {}", tally.words()), Some(EXPLAIN));
        return Err(CommandError::reported());
    }
    let objects = plural(read.objects.len(), "object");
    ui.status(&format!("{} in {objects}: {}", plural(clusters, "cluster"), tally.words()));
    Ok(Exit::Ok)
}
