//! From what was read to the tree of files, for the commands that look at bundles.

use std::collections::BTreeSet;
use std::path::Path;

use super::certificates::{self, WantedSecret, secret_form};
use super::error::{CommandError, plain};
use super::exit::Exit;
use super::images;
use super::jobs::{self, Rollouts};
use super::mirror;
use super::pipeline::{InputArgs, Inputs};
use super::report::{Tally, plural};
use super::ui::Ui;
use crate::bundle::certificates::{Certificates, Missing};
use crate::bundle::files::Disk;
use crate::bundle::gitops::JobFacts;
use crate::bundle::layout::{Kept, LayoutSettings, layout};
use crate::bundle::report::{ChangeKind, FileError, Report};
use crate::bundle::secret::SecretForm;
use crate::bundle::{Bundle, Companion, FileTree, survey};
use crate::compile::{Compiled, CompiledCluster, compile};
use crate::diag::codes::bundle::{DUPLICATE_CLUSTER, DUPLICATE_OBJECT, INTERRUPTED_WRITE};
use crate::diag::codes::cert::{CERTIFICATE_MISSING, RE_ENCRYPTED};
use crate::diag::codes::spec::{COMPANION_CLASH, SAME_CLUSTER, SERVICE_CLAIMED};
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::project_settings;
use crate::object::images::visit_value;
use crate::parallel;

/// The files that the specs give.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// All of them.
    pub(crate) tree: FileTree,
    /// What stays of earlier builds.
    pub(crate) kept: Kept,
    /// Number of MiniClusters.
    pub(crate) clusters: usize,
    /// What was read.
    pub(crate) inputs: Inputs,
    /// Warnings, already shown.
    pub(crate) tally: Tally,
    /// Secrets that somebody has to make in the cluster.
    pub(crate) secrets: Vec<WantedSecret>,
    /// What becomes of the Job of each cluster when it changes.
    pub(crate) rollouts: Rollouts,
    /// What GitOps tools have to know about the Jobs.
    pub(crate) jobs: Vec<JobFacts>,
    /// Files of sealing certificates, as settings name them.
    pub(crate) sealing: BTreeSet<String>,
}

impl Rendered {
    /// For the end of a command: leaves the memory to the end of the process, which is at hand. Nothing here wipes itself;
    /// to give back the parts of a thousand clusters one by one would take a tenth of the time of `check`.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }
}

/// What a command does with the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Writes them to the output folder.
    Write,
    /// Compares them with the output folder.
    Compare,
    /// Neither: the output folder is not looked at.
    Alone,
}

/// Where to learn more about diagnostics.
pub(crate) const EXPLAIN: &str = "`flux-gen explain CODE` tells more about a message";

/// Reads, compiles and lays out, and prints every problem.
///
/// # Errors
/// When there was an error, already printed, or when a file operation failed.
pub(crate) fn render(args: &InputArgs, output: Option<&Path>, what: Use, ui: &Ui) -> Result<Rendered, CommandError> {
    let mut inputs = Inputs::read(args, output, ui)?;
    let mut found = Diagnostics::new();
    let rendered = render_inputs(&mut inputs, what, &mut found, ui);
    let tally = inputs.report(ui, found);
    if tally.errors > 0 {
        let consequence = if what == Use::Write { "; nothing was written" } else { "" };
        ui.failure(&format!("found {}{consequence}", tally.words()), Some(EXPLAIN));
        return Err(CommandError::reported());
    }
    let Laid { tree, kept, clusters, secrets, rollouts, jobs, sealing } = rendered?;
    Ok(Rendered { tree, kept, clusters, inputs, tally, secrets, rollouts, jobs, sealing })
}

/// The result of [`render_inputs`].
struct Laid {
    tree: FileTree,
    kept: Kept,
    clusters: usize,
    secrets: Vec<WantedSecret>,
    rollouts: Rollouts,
    jobs: Vec<JobFacts>,
    sealing: BTreeSet<String>,
}

fn render_inputs(inputs: &mut Inputs, what: Use, found: &mut Diagnostics, ui: &Ui) -> Result<Laid, CommandError> {
    let wrong_so_far = inputs.diagnostics.has_errors();
    let (mut compiled, certificates) = compile_with_certificates(inputs, what, found, ui);
    let kept = match what {
        Use::Alone => Kept::default(),
        Use::Write | Use::Compare => survey::kept(&Disk, &inputs.output, &inputs.scope).map_err(|e| file_error(&e))?,
    };
    let count = compiled.clusters.len();
    let mut unpinned = images::check(&compiled.clusters, inputs);
    unpinned.extend(mirror::rewrite(&mut compiled.clusters, inputs));
    let secrets = certificates::wanted_secrets(&compiled.clusters);
    let rollouts = jobs::rollouts(&compiled.clusters);
    let jobs = compiled.clusters.iter().map(JobFacts::of).collect();
    let sealing = certificates::sealing_files(&compiled.clusters);
    let bundles = parallel::map_into(compiled.clusters, |cluster| {
        let secret = secret_form(&cluster, &certificates);
        bundle(cluster, inputs, secret)
    });
    found.extend(unpinned);
    let companions: Vec<Companion> = inputs.documents.companions.iter().map(|c| companion(c, inputs)).collect();
    if (wrong_so_far || found.has_errors()) && bundles.is_empty() && companions.is_empty() {
        // That nothing is left is no news.
        return Ok(Laid { tree: FileTree::default(), kept, clusters: count, secrets, rollouts, jobs, sealing });
    }
    let settings = project_settings(inputs.project.written.as_ref(), &inputs.set);
    let layout_settings = LayoutSettings { root_kustomization: settings.root_kustomization };
    let (tree, problems) = layout(&bundles, &companions, &kept, layout_settings);
    // To take apart a thousand clusters is work too.
    drop(parallel::map_into(bundles, drop));
    let news = problems.iter().filter(|problem| !is_repeated(problem, found)).cloned().collect();
    found.extend(news);
    Ok(Laid { tree, kept, clusters: count, secrets, rollouts, jobs, sealing })
}

/// Whether a clash between finished objects was told already, at its very place, as a clash between documents.
fn is_repeated(problem: &Diagnostic, told: &Diagnostics) -> bool {
    let is_clash = |d: &Diagnostic| [SAME_CLUSTER, SERVICE_CLAIMED, COMPANION_CLASH].contains(&d.code);
    let Some(whole) = problem.span.filter(|_| [DUPLICATE_CLUSTER, DUPLICATE_OBJECT].contains(&problem.code)) else {
        return false;
    };
    told.iter()
        .filter(|d| is_clash(d))
        .filter_map(|d| d.span)
        .any(|part| part.file == whole.file && whole.start <= part.start && part.end <= whole.end)
}

/// Compiles. Missing certificates are made only when that is all that is missing: a failed build leaves nothing behind.
fn compile_with_certificates(inputs: &Inputs, what: Use, found: &mut Diagnostics, ui: &Ui) -> (Compiled, Certificates) {
    let is_missing = |d: &Diagnostic| d.code == CERTIFICATE_MISSING;
    let mut problems = Diagnostics::new();
    let missing = if what == Use::Alone { Missing::Report } else { Missing::Encrypt };
    let mut certificates = certificates::find(inputs, missing, &mut problems, ui);
    let mut compiled = compile(&inputs.to_compile(&certificates.public_keys));
    if what == Use::Write {
        found.extend(certificates::check_git(&compiled.clusters, inputs).into_iter().collect());
        let others: Diagnostics = problems.iter().filter(|d| !is_missing(d)).cloned().collect();
        let wrong = [&inputs.diagnostics, found, &compiled.diagnostics, &others].iter().any(|d| d.has_errors());
        let unfinished = problems.iter().any(is_missing) || !certificates.pending.is_empty();
        if unfinished && !wrong {
            problems = Diagnostics::new();
            certificates = certificates::find(inputs, Missing::Make, &mut problems, ui);
            compiled = compile(&inputs.to_compile(&certificates.public_keys));
        } else {
            // They will be made once the rest is right.
            problems = others;
        }
    }
    for state in &certificates.pending {
        ui.status(&format!("{state}; `flux-gen build` encrypts it"));
    }
    found.extend(problems);
    found.extend(std::mem::take(&mut compiled.diagnostics));
    (compiled, certificates)
}

fn bundle(compiled: CompiledCluster, inputs: &Inputs, secret: SecretForm) -> Bundle {
    Bundle {
        namespace: compiled.cluster.namespace,
        name: compiled.cluster.minicluster,
        objects: compiled.objects,
        source: inputs.source_ref(compiled.file),
        span: Some(compiled.span),
        public_key: compiled.cluster.certificate.public_key,
        secret,
        create_namespace: compiled.settings.create_namespace,
        pod_security: compiled.settings.pod_security,
    }
}

fn companion(read: &crate::spec::Companion, inputs: &Inputs) -> Companion {
    let source = inputs.source_ref(read.span.file);
    let mut value = read.value.clone();
    visit_value(&mut value, &mut |_, name| inputs.documents.images.get(name).cloned());
    Companion { value, source, span: Some(read.span) }
}

/// A failed file operation of the bundle module.
pub(crate) fn file_error(error: &FileError) -> CommandError {
    let message = format!("cannot {} {}: {}", error.action, error.path.display(), plain(&error.source));
    let read_only = error.source.kind() == std::io::ErrorKind::PermissionDenied
        || error.source.kind() == std::io::ErrorKind::ReadOnlyFilesystem;
    let error = CommandError::operation(message);
    if read_only { error.help("choose another folder with `-o DIR`, or mend the permissions") } else { error }
}

/// `3 files differ: 1 missing, 1 changed, 1 not wanted any more`.
pub(crate) fn count_changes(report: &Report) -> String {
    let count = |kind| report.changes.iter().filter(|c| c.kind == kind).count();
    let parts: Vec<String> = [
        (count(ChangeKind::Missing), "missing"),
        (count(ChangeKind::Changed), "changed"),
        (count(ChangeKind::Extra), "no longer wanted"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, what)| format!("{n} {what}"))
    .collect();
    let verb = if report.changes.len() == 1 { "differs" } else { "differ" };
    format!("{} {verb} ({})", plural(report.changes.len(), "file"), parts.join(", "))
}

/// The end of a comparison: what is left to do, and the exit code.
pub(crate) fn drift(rendered: &Rendered, report: &Report, ui: &Ui) -> Exit {
    let output = super::sources::shown(&rendered.inputs.output);
    if report.interrupted {
        let message = format!("an earlier `flux-gen build` into {output} was stopped in the middle");
        let warning = Diagnostic::global_warning(INTERRUPTED_WRITE, message).help("run `flux-gen build` again");
        ui.diagnostics([], &[], [warning].into_iter().collect());
    }
    for path in &report.re_encrypted {
        let message = format!(
            "{} is not the store's encrypted Secret, but one like it",
            rendered.inputs.output.join(path).display()
        );
        let warning = Diagnostic::global_warning(RE_ENCRYPTED, message);
        let help = "somebody has encrypted it again; `flux-gen build` copies the store's";
        ui.diagnostics([], &[], [warning.help(help)].into_iter().collect());
    }
    if report.changes.is_empty() {
        if !report.interrupted {
            let clusters = plural(rendered.clusters, "cluster");
            ui.status(&format!("{output} is up to date: {clusters}, {}", plural(report.unchanged, "file")));
        }
    } else {
        let count = count_changes(report);
        ui.failure(
            &format!("{output} is not what the specs give: {count}; `flux-gen build` brings it up to date"),
            None,
        );
    }
    if report.has_drift() { Exit::Drift } else { Exit::Ok }
}
