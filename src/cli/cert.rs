//! `flux-gen cert`.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use zeroize::Zeroizing;

use super::certificates::{self, made_sentence, store};
use super::error::{CommandError, plain};
use super::exit::Exit;
use super::project::Found;
use super::sources::{self, Surroundings, shown};
use super::ui::Ui;
use crate::bundle::secret::{PrivateText, secret_yaml};
use crate::bundle::store::{Store, StoreError};
use crate::diag::{Diagnostics, SourceMap};
use crate::flux::certificate::{Certificate, KEY_BYTES};
use crate::model::settings::Settings;
use crate::model::{CertificateNeed, certificate_need, effective_settings, secret_name};
use crate::spec::ReadOptions;

/// Make, show and import the certificates that clusters encrypt their network with.
///
/// A certificate is an X25519 key pair that all brokers of a cluster share. Certificates are kept in `certs/` beside the
/// project file, out of git; their public keys are recorded in `certs/public.json`, for git.
#[derive(Debug, Args)]
pub(crate) struct CertArgs {
    #[command(subcommand)]
    command: CertCommand,
}

#[derive(Debug, Subcommand)]
enum CertCommand {
    New(NewArgs),
    Show(ShowArgs),
    Import(ImportArgs),
}

/// Make a certificate and store it.
#[derive(Debug, Args)]
struct NewArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Make a new one even if there is one.
    #[arg(long)]
    replace: bool,
    /// Print a Secret with the new certificate and store nothing, for a trial:
    /// `flux-gen cert new NAME --secret | kubectl apply -f -`.
    #[arg(long, value_name = "SECRET", num_args = 0..=1, require_equals = true, conflicts_with = "replace")]
    #[expect(clippy::option_option, reason = "absent, without a name, with a name")]
    secret: Option<Option<String>>,
}

/// Show public keys; never the private ones.
#[derive(Debug, Args)]
struct ShowArgs {
    /// Cluster, as NAME or NAMESPACE/NAME [default: all that are recorded].
    #[arg(value_name = "CLUSTER", value_parser = cluster)]
    cluster: Option<CertificateNeed>,
    #[command(flatten)]
    project: ProjectArgs,
}

/// Store a certificate that was made elsewhere, by `flux keygen` for example.
#[derive(Debug, Args)]
struct ImportArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// File with the certificate, or `-` for standard input.
    file: PathBuf,
    /// Take the place of another one.
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, Args)]
struct ClusterArgs {
    /// Cluster, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "CLUSTER", value_parser = cluster)]
    cluster: CertificateNeed,
    #[command(flatten)]
    project: ProjectArgs,
}

#[derive(Debug, Args)]
struct ProjectArgs {
    /// Project file [default: flux-gen.yaml, if it is there].
    #[arg(long, value_name = "FILE")]
    project: Option<PathBuf>,
}

/// Reads `NAME` or `NAMESPACE/NAME`.
fn cluster(text: &str) -> Result<CertificateNeed, String> {
    let (namespace, name) = text.split_once('/').map_or((None, text), |(namespace, name)| (Some(namespace), name));
    for part in namespace.iter().chain([&name]) {
        crate::rules::syntax::dns1123_label(part).map_err(|wrong| format!("`{part}` is no name: {wrong}"))?;
    }
    Ok(CertificateNeed { namespace: namespace.map(str::to_owned), name: name.to_owned() })
}

pub(crate) fn run(args: &CertArgs, ui: &Ui) -> Result<Exit, CommandError> {
    match &args.command {
        CertCommand::New(args) => match &args.secret {
            Some(secret) => print_secret(&args.cluster, secret.as_deref(), ui),
            None => new(args, ui),
        },
        CertCommand::Show(args) => show(args, ui),
        CertCommand::Import(args) => import(args, ui),
    }
}

fn new(args: &NewArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let store = open(&args.cluster.project)?;
    let added = store.make(&args.cluster.cluster, args.replace).map_err(|e| failed(&e, ui))?;
    ui.status(&made_sentence(&added));
    Ok(Exit::Ok)
}

/// A Secret as the bundle refers to it, with a certificate that is kept nowhere.
fn print_secret(args: &ClusterArgs, name: Option<&str>, ui: &Ui) -> Result<Exit, CommandError> {
    if std::io::stdout().is_terminal() {
        let error = CommandError::usage("this would show a private key on the terminal");
        return Err(error.help("send it on: flux-gen cert new NAME --secret | kubectl apply -f -"));
    }
    let (need, wanted) = wanted_secret(&args.cluster, &args.project, ui)?;
    let mut random = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(random.as_mut_slice())
        .map_err(|e| CommandError::operation(format!("no random numbers from the operating system: {e}")))?;
    let certificate = Certificate::from_secret_bytes(*random, &need.name);
    let name = name.map_or(wanted, str::to_owned);
    let text = PrivateText::new(certificate.to_file_text().as_bytes().to_vec());
    let secret = secret_yaml(need.namespace.as_deref(), &name, &text)
        .map_err(|e| CommandError::operation(format!("cannot write the Secret: {e}")))?;
    ui.print(secret.as_bytes())?;
    Ok(Exit::Ok)
}

/// The namespace and the name of the Secret that the bundle of a cluster refers to: from its spec if the project has it, else
/// as for any spec that says nothing of it.
fn wanted_secret(
    asked: &CertificateNeed,
    args: &ProjectArgs,
    ui: &Ui,
) -> Result<(CertificateNeed, String), CommandError> {
    let default = || (asked.clone(), format!("{}-curve", asked.name));
    let found = Found::find(args.project.as_deref(), &mut SourceMap::new(), &mut Diagnostics::new())?;
    let recorded = store(&found).recorded().map_err(|e| failed(&e, ui))?;
    let Some((need, settings)) = find_spec(asked, &found) else { return Ok(default()) };
    if recorded.contains_key(&Store::title(&need)) && settings.secret_name.is_none() {
        let message = format!("{} has a certificate, and its bundle wants that one", Store::title(&need));
        let help = "make the Secret from the stored certificate: `flux-gen build` prints the command";
        return Err(CommandError::operation(message).help(help));
    }
    let secret = settings.secret_name.unwrap_or_else(|| format!("{}-curve", need.name));
    Ok((need, secret))
}

/// The cluster of the project's specs that is meant, with its settings; specs with mistakes count as far as they can be read.
fn find_spec(asked: &CertificateNeed, found: &Found) -> Option<(CertificateNeed, Settings)> {
    if !found.names_sources() {
        return None;
    }
    let ignored = &mut Diagnostics::new();
    let output = found.output(None);
    let around = Surroundings { root: &found.root, output: &output, project_file: found.file.as_deref() };
    let texts = sources::read(&found.wanted(&[]).ok()?, around, &mut std::io::empty(), ignored);
    let texts = texts.into_iter().map(|text| (text.origin, text.bytes)).collect();
    let (documents, _) = crate::spec::read(&mut SourceMap::new(), texts, &ReadOptions { allow_unknown: true });
    let all = documents.miniclusters.iter().map(|spec| {
        let settings = effective_settings(spec, found.written.as_ref(), &[], ignored);
        (certificate_need(spec, &settings), settings)
    });
    let fits = |need: &CertificateNeed| {
        need.name == asked.name && (asked.namespace.is_none() || asked.namespace == need.namespace)
    };
    let fitting: Vec<_> = all.filter(|(need, _)| fits(need)).collect();
    // With clusters of one name in several namespaces the one without a namespace is meant, or none of them.
    let exact = fitting.iter().position(|(need, _)| need == asked);
    match exact {
        Some(i) => fitting.into_iter().nth(i),
        None if fitting.len() == 1 => fitting.into_iter().next(),
        None => None,
    }
}

fn show(args: &ShowArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let store = open(&args.project)?;
    let recorded = store.recorded().map_err(|e| failed(&e, ui))?;
    let titles: Vec<String> = match &args.cluster {
        Some(need) => vec![Store::title(need)],
        None => recorded.keys().cloned().collect(),
    };
    if titles.is_empty() {
        ui.status(&format!("no certificate is recorded in {}", shown(store.folder())));
    }
    let mut text = String::new();
    for title in titles {
        let need = need_of(&title);
        let stored = store.read(&need).map_err(|e| failed(&e, ui))?;
        let key = match (recorded.get(&title), &stored) {
            (Some(key), Some(stored)) if *key != stored.public_key => {
                let message = format!("the certificate of {title} is not the recorded one");
                return Err(CommandError::operation(message).help("`flux-gen explain FG503` tells what to do"));
            }
            (Some(key), _) => key.clone(),
            (None, Some(stored)) => stored.public_key.clone(),
            (None, None) => {
                let error = CommandError::operation(format!("{title} has no certificate"));
                return Err(error.help(format!("make it with `flux-gen cert new {title}`")));
            }
        };
        let place = if stored.is_some() { shown(&store.path(&need)) } else { "not here".to_owned() };
        text.push_str(&format!(
            "{title}\n  public key:  {key}\n  private key: {place}\n  Secret:      {}\n",
            secret_name(&need.name, &key)
        ));
    }
    ui.print(text.as_bytes())?;
    Ok(Exit::Ok)
}

/// The cluster of a title of the record, whose folder `default` stands for no namespace too: both have the same title.
fn need_of(title: &str) -> CertificateNeed {
    let (namespace, name) = title.split_once('/').unwrap_or(("default", title));
    CertificateNeed { namespace: Some(namespace.to_owned()), name: name.to_owned() }
}

fn import(args: &ImportArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let store = open(&args.cluster.project)?;
    let bytes = read_private(&args.file)?;
    let added = store.import(&args.cluster.cluster, &bytes, args.replace).map_err(|e| match e {
        StoreError::Certificate { source, .. } => {
            let name = if args.file.as_os_str() == "-" { "standard input".to_owned() } else { shown(&args.file) };
            CommandError::operation(format!("{name} is no certificate that Flux takes: {source}"))
        }
        other => failed(&other, ui),
    })?;
    ui.status(&format!("stored {} (public key {})", shown(&added.path), added.public_key));
    Ok(Exit::Ok)
}

fn read_private(file: &Path) -> Result<Zeroizing<Vec<u8>>, CommandError> {
    let mut bytes = Zeroizing::new(Vec::new());
    if file.as_os_str() == "-" {
        let result = std::io::stdin().read_to_end(&mut bytes);
        result.map_err(|e| CommandError::operation(format!("cannot read standard input: {}", plain(&e))))?;
    } else {
        *bytes = std::fs::read(file).map_err(|e| CommandError::file("read", file, &e))?;
    }
    Ok(bytes)
}

/// The store of the project. A project file with mistakes does not matter here, its place does.
fn open(args: &ProjectArgs) -> Result<Store, CommandError> {
    let found = Found::find(args.project.as_deref(), &mut SourceMap::new(), &mut Diagnostics::new())?;
    Ok(store(&found))
}

/// Prints what the store says, with its code.
fn failed(error: &StoreError, ui: &Ui) -> CommandError {
    let mut problem = certificates::diagnostic(error);
    if matches!(error, StoreError::Exists { .. }) {
        problem = problem.help("`--replace` takes its place; running clusters keep the old one until they restart");
    }
    ui.diagnostics([], &[], [problem].into_iter().collect());
    CommandError::reported()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_named_with_or_without_namespace() {
        let need = |namespace: Option<&str>, name: &str| CertificateNeed {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        assert_eq!(cluster("a"), Ok(need(None, "a")));
        assert_eq!(cluster("ns/a"), Ok(need(Some("ns"), "a")));
        for wrong in ["", "/a", "a/", "a/b/c", "A", "../a", "a b"] {
            assert!(cluster(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(Store::title(&need_of("default/a")), Store::title(&need(None, "a")));
    }
}
