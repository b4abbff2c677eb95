//! The command line as clap reads it. Doc comments are the help text.

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    archive, audit, build, cert, check, completions, diff, explain, gitops, lock, man, new, publish, recipe, schema,
    validate, view,
};

/// Compiles Flux MiniClusters into static Kubernetes bundles: no controller in the cluster.
///
/// `build` reads MiniCluster specs and writes, for each, a folder of Kubernetes objects that Argo CD, Flux CD or
/// `kubectl apply -k` brings up. The result depends on nothing but its inputs, so it belongs into git; `check` tells when it
/// is out of date.
#[derive(Debug, Parser)]
#[command(name = "flux-gen", version, disable_help_subcommand = true, after_help = AFTER_HELP)]
pub(crate) struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

const AFTER_HELP: &str = "\
Start here:
  flux-gen new my-job -o examples/my-job.yaml               a commented spec to fill in
  flux-gen build                                            examples/ -> generated/
  flux-gen cert new my-job --secret | kubectl apply -f -    the cluster's certificate, for a trial
  kubectl apply -k generated/default/my-job                 bring it up

`flux-gen explain CODE` tells more about a message, `flux-gen explain exit-codes` what
scripts can rely on.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Build(build::BuildArgs),
    Check(check::CheckArgs),
    Diff(diff::DiffArgs),
    Validate(validate::ValidateArgs),
    Audit(audit::AuditArgs),
    Explain(explain::ExplainArgs),
    Schema(schema::SchemaArgs),
    New(new::NewArgs),
    Cert(cert::CertArgs),
    Recipe(recipe::RecipeArgs),
    View(view::ViewArgs),
    Lock(lock::LockArgs),
    Archive(archive::ArchiveArgs),
    Publish(publish::PublishArgs),
    Gitops(gitops::GitopsArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Message options")]
pub(crate) struct GlobalArgs {
    /// When to use colour; NO_COLOR, CLICOLOR and CLICOLOR_FORCE count for auto.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
    /// How to print messages: for people, as JSON lines, or as GitHub annotations.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) message_format: MessageFormat,
    /// Print errors only.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print notes too: where values came from.
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    // On a terminal.
    #[default]
    Auto,
    // Always.
    Always,
    // Never.
    Never,
}

/// How messages on standard error look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    // Text with excerpts.
    #[default]
    Human,
    // One JSON object per line.
    Json,
    // GitHub workflow commands.
    Github,
}
