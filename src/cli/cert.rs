//! `flux-gen cert`.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use zeroize::Zeroizing;

use super::cert_rotate;
use super::cert_users::Users;
use super::certificates::{self, made_sentence, store};
use super::error::{CommandError, plain};
use super::exit::Exit;
use super::project::Found;
use super::sources::shown;
use super::ui::Ui;
use crate::bundle::certificates::spelled;
use crate::bundle::cipher::CipherKind;
use crate::bundle::secret::{PrivateText, secret_yaml};
use crate::bundle::store::{Store, StoreError};
use crate::diag::{Diagnostics, SourceMap};
use crate::flux::certificate::{Certificate, KEY_BYTES};
use crate::model::settings::SecretBackend;
use crate::model::{CertificateNeed, secret_name};

/// Make, show, import and renew the certificates that clusters encrypt their network with.
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
    Rotate(RotateArgs),
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

/// Make new certificates in place of recorded ones, and name the clusters that have to start anew.
///
/// The next `flux-gen build` changes their Secrets, the names of these, and what refers to them; nothing else.
#[derive(Debug, Args)]
pub(super) struct RotateArgs {
    /// Cluster, as NAME or NAMESPACE/NAME.
    #[arg(value_name = "CLUSTER", value_parser = cluster, required_unless_present = "all", conflicts_with = "all")]
    pub(super) cluster: Option<CertificateNeed>,
    /// All certificates that are recorded.
    #[arg(long)]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) project: ProjectArgs,
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
pub(super) struct ProjectArgs {
    /// Project file [default: flux-gen.yaml, if it is there].
    #[arg(long, value_name = "FILE")]
    pub(super) project: Option<PathBuf>,
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
        CertCommand::Rotate(args) => cert_rotate::run(args, ui),
    }
}

fn new(args: &NewArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let (store, need) = args.cluster.owner(ui)?;
    let added = store.make(&need, args.replace).map_err(|e| failed(&e, ui))?;
    ui.status(&made_sentence(&added));
    Ok(Exit::Ok)
}

impl ProjectArgs {
    /// The project. A file with mistakes does not matter here, its place does.
    pub(super) fn find(&self) -> Result<Found, CommandError> {
        Found::find(self.project.as_deref(), &mut SourceMap::new(), &mut Diagnostics::new())
    }
}

impl ClusterArgs {
    /// The store, and the certificate that the cluster uses there: of a bursting group that of the main cluster.
    fn owner(&self, ui: &Ui) -> Result<(Store, CertificateNeed), CommandError> {
        let found = self.project.find()?;
        let need = match Users::of(&found).pick(&self.cluster) {
            Some(user) => {
                if let Some(text) = user.shares() {
                    ui.status(&text);
                }
                user.need.clone()
            }
            None => self.cluster.clone(),
        };
        Ok((store(&found), need))
    }
}

/// A Secret as the bundle refers to it, with a certificate that is kept nowhere.
fn print_secret(args: &ClusterArgs, name: Option<&str>, ui: &Ui) -> Result<Exit, CommandError> {
    if std::io::stdout().is_terminal() {
        let error = CommandError::usage("this would show a private key on the terminal");
        return Err(error.help("send it on: flux-gen cert new NAME --secret | kubectl apply -f -"));
    }
    let (need, wanted) = wanted_secret(args, ui)?;
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
fn wanted_secret(args: &ClusterArgs, ui: &Ui) -> Result<(CertificateNeed, String), CommandError> {
    let found = args.project.find()?;
    let record = store(&found).record().map_err(|e| failed(&e, ui))?;
    let users = Users::of(&found);
    let Some(user) = users.pick(&args.cluster) else {
        return Ok((args.cluster.clone(), format!("{}-curve", args.cluster.name)));
    };
    if user.settings.secrets != SecretBackend::Existing {
        let message = format!("the bundle of {} brings its Secret along", spelled(&user.cluster));
        return Err(CommandError::operation(message).help("apply the bundle; nothing else is needed"));
    }
    if record.keys.contains_key(&Store::title(&user.need)) && user.settings.secret_name.is_none() {
        let message = format!("{} has a certificate, and its bundle wants that one", Store::title(&user.need));
        let help = "make the Secret from the stored certificate: `flux-gen build` prints the command";
        return Err(CommandError::operation(message).help(help));
    }
    let secret = user.settings.secret_name.clone().unwrap_or_else(|| format!("{}-curve", user.need.name));
    Ok((user.need.clone(), secret))
}

fn show(args: &ShowArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let found = args.project.find()?;
    let store = store(&found);
    let recorded = store.record().map_err(|e| failed(&e, ui))?.keys;
    let titles: Vec<String> = match &args.cluster {
        Some(asked) => vec![Store::title(Users::of(&found).pick(asked).map_or(asked, |user| &user.need))],
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
        for path in CipherKind::ALL.map(|kind| store.encrypted_path(&need, kind)) {
            if path.exists() {
                text.push_str(&format!("  encrypted:   {}\n", shown(&path)));
            }
        }
    }
    ui.print(text.as_bytes())?;
    Ok(Exit::Ok)
}

/// The cluster of a title of the record, whose folder `default` stands for no namespace too: both have the same title.
pub(super) fn need_of(title: &str) -> CertificateNeed {
    let (namespace, name) = title.split_once('/').unwrap_or(("default", title));
    CertificateNeed { namespace: Some(namespace.to_owned()), name: name.to_owned() }
}

fn import(args: &ImportArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let bytes = read_private(&args.file)?;
    let (store, need) = args.cluster.owner(ui)?;
    let added = store.import(&need, &bytes, args.replace).map_err(|e| match e {
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

/// Prints what the store says, with its code.
pub(super) fn failed(error: &StoreError, ui: &Ui) -> CommandError {
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
