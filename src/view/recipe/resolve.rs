//! From a recipe as written to a [`Recipe`]: defaults, checks, and the files of its folder that it names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::files;
use super::model::{Arch, Download, How, Mirror, Recipe, Spack, SpackInstall, System};
use super::packages;
use crate::diag::codes::recipe as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::spec::minicluster::List;
use crate::spec::pins::{ImagePins, is_pinned};
use crate::spec::recipe_common::{RecipeDownload, RecipeSystem};
use crate::spec::recipe_spack::SpackRecipe;
use crate::spec::{BuildRecipe, Map, Spanned};

/// Where packages and views are unless a recipe says otherwise.
const PREFIX: &str = "/opt/software";
const VIEWS: &str = "/opt/views";

/// What resolving a recipe needs besides its text.
#[derive(Debug)]
pub(super) struct Context<'a> {
    /// The recipe's folder.
    pub(super) folder: &'a Path,
    /// What base images are pinned to.
    pub(super) pins: &'a ImagePins,
    /// What is wrong.
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl Context<'_> {
    pub(super) fn error(&mut self, code: crate::diag::Code, span: Span, message: String, help: &str) {
        self.diagnostics.push(Diagnostic::error(code, span, message).help(help));
    }
}

/// Resolves a recipe of `folder`, whose name is the recipe's; base images that are named by a tag become what `pins` says.
/// Everything that is wrong is reported; `None` when it cannot be gone on with.
pub fn resolve(
    name: &str,
    folder: &Path,
    written: &BuildRecipe,
    pins: &ImagePins,
    diagnostics: &mut Diagnostics,
) -> Option<Recipe> {
    let mut context = Context { folder, pins, diagnostics };
    let common = Common::of(written);
    let systems = systems(common.systems, &mut context)?;
    let how = match written {
        BuildRecipe::Source(recipe) => How::Source(packages::resolve(recipe, &systems, &mut context)?),
        BuildRecipe::Spack(recipe) => How::Spack(spack(recipe, &systems, &mut context)),
    };
    Some(Recipe {
        name: name.to_owned(),
        description: text(common.description),
        prefix: folder_name(common.prefix, PREFIX, &mut context),
        views: folder_name(common.views, VIEWS, &mut context),
        target: target(common.target, &mut context),
        strip: common.strip.is_none_or(|strip| strip.value),
        systems,
        not_checked: common.not_checked.map(|text| text.value.clone()),
        how,
    })
}

/// Fields that both kinds have.
struct Common<'a> {
    description: Option<&'a Spanned<String>>,
    systems: Option<&'a Spanned<Map<RecipeSystem>>>,
    prefix: Option<&'a Spanned<String>>,
    views: Option<&'a Spanned<String>>,
    target: Option<&'a Spanned<Map<String>>>,
    strip: Option<&'a Spanned<bool>>,
    not_checked: Option<&'a Spanned<String>>,
}

impl<'a> Common<'a> {
    fn of(written: &'a BuildRecipe) -> Self {
        // Two records of the same fields: each kind is documented, and has its schema, by itself.
        macro_rules! fields {
            ($recipe:ident: $($field:ident),*) => { Self { $($field: $recipe.$field.as_ref()),* } };
        }
        match written {
            BuildRecipe::Source(recipe) => {
                fields!(recipe: description, systems, prefix, views, target, strip, not_checked)
            }
            BuildRecipe::Spack(recipe) => {
                fields!(recipe: description, systems, prefix, views, target, strip, not_checked)
            }
        }
    }
}

fn text(written: Option<&Spanned<String>>) -> String {
    written.map(|t| t.value.clone()).unwrap_or_default()
}

/// The values of a list of texts.
pub(super) fn list(written: Option<&Spanned<List<String>>>) -> Vec<String> {
    written.map(|l| l.value.iter().map(|t| t.value.clone()).collect()).unwrap_or_default()
}

/// Whether a text can be part of a path and of the name of an image tag.
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.+".contains(&b))
}

/// Reports a name that cannot be one.
pub(super) fn check_name(what: &str, name: &str, span: Span, context: &mut Context<'_>) {
    if !is_name(name) {
        let message = format!("`{name}` cannot be the name of a {what}");
        let help = "start with a letter or digit; letters, digits, `-`, `_`, `.` and `+` may follow, 64 in all";
        context.error(codes::NAME, span, message, help);
    }
}

/// An absolute folder without surprises.
fn folder_name(written: Option<&Spanned<String>>, default: &str, context: &mut Context<'_>) -> String {
    let Some(written) = written else { return default.to_owned() };
    let plain = written.strip_prefix("/opt/").is_some_and(|rest| !rest.is_empty() && rest.split('/').all(is_name));
    if !plain {
        let message = format!("`{}` cannot be a folder of a view", written.value);
        context.error(codes::VALUE, written.span, message, "it is a folder below `/opt`, such as `/opt/software`");
    }
    written.value.clone()
}

fn target(written: Option<&Spanned<Map<String>>>, context: &mut Context<'_>) -> BTreeMap<Arch, String> {
    let mut target = BTreeMap::new();
    for entry in written.iter().flat_map(|map| map.iter()) {
        let Some(arch) = arch(&entry.key, context) else { continue };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+');
        if entry.value.is_empty() || !entry.value.chars().all(plain) {
            let message = format!("`{}` is no processor", entry.value.value);
            context.error(codes::VALUE, entry.value.span, message, "for example `x86-64-v2` or `armv8-a`");
        }
        target.insert(arch, entry.value.value.clone());
    }
    target
}

/// An architecture as a key.
pub(super) fn arch(key: &Spanned<String>, context: &mut Context<'_>) -> Option<Arch> {
    let arch = Arch::ALL.into_iter().find(|arch| arch.oci() == key.value);
    if arch.is_none() {
        let message = format!("`{}` is no architecture that views are made for", key.value);
        context.error(codes::VALUE, key.span, message, "it is `amd64` or `arm64`");
    }
    arch
}

/// Names and values of an environment.
pub(super) fn environment(
    written: Option<&Spanned<Map<String>>>,
    context: &mut Context<'_>,
) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    for entry in written.iter().flat_map(|map| map.iter()) {
        let name = &entry.key.value;
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
        if !plain {
            let message = format!("`{name}` cannot be the name of a variable");
            context.error(codes::NAME, entry.key.span, message, "use letters, digits and `_`");
        } else if matches!(name.as_str(), "PATH" | "MAKEFLAGS" | "LDFLAGS" | "CPPFLAGS" | "PKG_CONFIG_PATH") {
            let message = format!("`{name}` is set by flux-gen, so it cannot be set here");
            let help = "for PATH use `path` of the system; for single packages give `configure` arguments";
            context.error(codes::VALUE, entry.key.span, message, help);
        }
        environment.insert(name.clone(), entry.value.value.clone());
    }
    environment
}

fn systems(
    written: Option<&Spanned<Map<RecipeSystem>>>,
    context: &mut Context<'_>,
) -> Option<BTreeMap<String, System>> {
    let written = written?;
    if written.is_empty() {
        context.error(
            codes::SYSTEM,
            written.span,
            "there is no system to build on".to_owned(),
            "add one below `systems`",
        );
        return None;
    }
    let systems = written.iter().map(|entry| {
        check_name("system", &entry.key, entry.key.span, context);
        (entry.key.value.clone(), system(&entry.key, &entry.value, context))
    });
    Some(systems.collect())
}

fn system(name: &Spanned<String>, written: &RecipeSystem, context: &mut Context<'_>) -> System {
    let system = System {
        base: written.base.as_ref().map(|base| self::base(base, context)).unwrap_or_default(),
        apt: list(written.apt.as_ref()),
        dnf: list(written.dnf.as_ref()),
        before: written.before.as_ref().map(|t| t.value.clone()),
        environment: environment(written.environment.as_ref(), context),
        path: list(written.path.as_ref()),
    };
    if let (Some(apt), Some(_)) = (&written.apt, &written.dnf) {
        let message = format!("system `{}` has packages of apt and of dnf", name.value);
        context.error(codes::SYSTEM, apt.span, message, "a system has one package manager");
    }
    for package in written.apt.iter().chain(&written.dnf).flat_map(|l| l.value.iter()) {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.+:~=@/".contains(&b);
        if !package.bytes().all(plain) || !package.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric()) {
            let message = format!("`{}` is no name of a package", package.value);
            context.error(codes::NAME, package.span, message, "one item for each package");
        }
    }
    for folder in written.path.iter().flat_map(|l| l.value.iter()) {
        if !folder.starts_with('/') || folder.contains([':', '\n']) {
            let message = format!("`{}` cannot be in PATH", folder.value);
            context.error(codes::VALUE, folder.span, message, "write one absolute folder for each item");
        }
    }
    system
}

/// The image to build in: by digest where the recipe or the lock has one.
fn base(base: &Spanned<String>, context: &mut Context<'_>) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:@".contains(&b);
    if !base.bytes().all(plain) || !base.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric()) {
        let message = format!("`{}` is no reference of an image", base.value);
        context.error(codes::SYSTEM, base.span, message, "for example `docker.io/library/ubuntu:24.04`");
    } else if is_tag_only(base) {
        if let Some(pinned) = context.pins.get(&base.value) {
            return pinned.clone();
        }
        let message = format!("the base image `{}` is named by a tag only", base.value);
        let help = "`flux-gen recipe lock` finds out its digest and keeps it".to_owned();
        context.diagnostics.push(Diagnostic::warning(codes::UNPINNED, base.span, message).help(help));
    }
    base.value.clone()
}

/// Whether an image can become another one tomorrow. What is `localhost/` was made on this machine.
#[must_use]
pub fn is_tag_only(image: &str) -> bool {
    !is_pinned(image) && !image.starts_with("localhost/")
}

/// A download; `None` when its fields are missing, which reading has reported.
pub(super) fn download(written: &RecipeDownload, context: &mut Context<'_>) -> Option<Download> {
    let (address, sha256) = (written.url.as_ref()?, written.sha256.as_ref()?);
    let digest = sha256.to_ascii_lowercase();
    if digest.len() != 64 || !digest.bytes().all(|b| b.is_ascii_hexdigit()) {
        let message = format!("`{}` is no SHA-256", sha256.value);
        context.error(codes::CHECKSUM, sha256.span, message, "write its 64 hexadecimal digits");
    }
    let last = check_url(address, context);
    let file = match &written.file {
        Some(file) => {
            check_name("file", file, file.span, context);
            file.value.clone()
        }
        None => {
            if !is_name(&last) {
                let message = format!("the URL ends in no file name: `{}`", address.value);
                context.error(codes::URL, address.span, message, "give the name with `file`");
            }
            last
        }
    };
    if let Some(from) = &written.checksum_from {
        let message = format!("the checksum of {file} is from {}: not verified here", from.value);
        context.diagnostics.push(Diagnostic::note(codes::UNVERIFIED, from.span, message));
    }
    let checksum_from = written.checksum_from.as_ref().map(|t| t.value.clone());
    Some(Download { url: address.value.clone(), sha256: digest, checksum_from, file })
}

/// Checks a URL and returns the last part of its path.
fn check_url(address: &Spanned<String>, context: &mut Context<'_>) -> String {
    let help = "write an https, http or file URL";
    match url::Url::parse(address) {
        Ok(parsed) => {
            let web = matches!(parsed.scheme(), "http" | "https");
            if !(web || parsed.scheme() == "file") {
                let message = format!("`{}` is a URL of a kind that flux-gen does not download", parsed.scheme());
                context.error(codes::URL, address.span, message, help);
            } else if !parsed.username().is_empty() || parsed.password().is_some() {
                let message = "the URL holds a user name or a password".to_owned();
                context.error(
                    codes::URL,
                    address.span,
                    message,
                    "recipes are public; use a mirror for what needs a login",
                );
            }
            parsed.path_segments().and_then(Iterator::last).unwrap_or_default().to_owned()
        }
        Err(e) => {
            context.error(codes::URL, address.span, format!("`{}` is no URL: {e}", address.value), help);
            String::new()
        }
    }
}

fn spack(written: &SpackRecipe, systems: &BTreeMap<String, System>, context: &mut Context<'_>) -> Spack {
    let concretizer = written.concretizer.as_ref();
    let flag = |f: Option<&Spanned<bool>>| f.is_none_or(|b| b.value);
    let lists = |map: &Option<Spanned<Map<List<String>>>>| -> BTreeMap<String, Vec<String>> {
        let pairs = map.iter().flat_map(|m| m.iter());
        pairs.map(|e| (e.key.value.clone(), list(Some(&e.value)))).collect()
    };
    for entry in written.specs_by_system.iter().flat_map(|map| map.iter()) {
        known_system(&entry.key, systems, context);
    }
    let install = match written.install.as_ref().map(|t| (t.value.as_str(), t.span)) {
        None | Some(("auto", _)) => SpackInstall::Auto,
        Some(("cache-only", _)) => SpackInstall::CacheOnly,
        Some(("source", _)) => SpackInstall::Source,
        Some((other, span)) => {
            let message = format!("`{other}` is no way to install");
            context.error(codes::VALUE, span, message, "it can be `auto`, `cache-only` or `source`");
            SpackInstall::Auto
        }
    };
    let resolved = Spack {
        root: written.spack_root.as_ref().map_or_else(|| "/opt/spack".to_owned(), |t| t.value.clone()),
        specs: list(written.specs.as_ref()),
        specs_by_system: lists(&written.specs_by_system),
        require: lists(&written.require),
        unify: flag(concretizer.and_then(|c| c.unify.as_ref())),
        reuse: flag(concretizer.and_then(|c| c.reuse.as_ref())),
        mirrors: mirrors(written, context),
        install,
        locks: locks(written, systems, context),
        exclude: list(written.exclude.as_ref()),
        offline: written.offline.as_ref().is_some_and(|b| b.value),
    };
    check_offline(written, &resolved, systems, context);
    resolved
}

fn mirrors(written: &SpackRecipe, context: &mut Context<'_>) -> Vec<Mirror> {
    let mut mirrors = Vec::new();
    for entry in written.mirrors.iter().flat_map(|map| map.iter()) {
        check_name("mirror", &entry.key, entry.key.span, context);
        let mirror = &entry.value;
        let Some(address) = &mirror.url else { continue };
        let known = ["https://", "http://", "oci://", "s3://", "gs://", "file://"];
        if !known.iter().any(|scheme| address.starts_with(scheme)) {
            let message = format!("`{}` is no address of a mirror", address.value);
            context.error(
                codes::URL,
                address.span,
                message,
                "it starts with https, http, oci, s3, gs or file and `://`",
            );
        }
        let flag = |f: &Option<Spanned<bool>>| f.as_ref().is_none_or(|b| b.value);
        mirrors.push(Mirror {
            name: entry.key.value.clone(),
            url: address.value.clone(),
            source: flag(&mirror.source),
            binary: flag(&mirror.binary),
            signed: flag(&mirror.signed),
        });
    }
    mirrors
}

fn locks(
    written: &SpackRecipe,
    systems: &BTreeMap<String, System>,
    context: &mut Context<'_>,
) -> BTreeMap<String, String> {
    let mut locks = BTreeMap::new();
    let known: BTreeSet<String> =
        systems.keys().flat_map(|system| Arch::ALL.map(|arch| format!("{system}-{arch}"))).collect();
    for entry in written.locks.iter().flat_map(|map| map.iter()) {
        if !known.contains(&entry.key.value) {
            let message = format!("`{}` is no system and architecture of this recipe", entry.key.value);
            let all: Vec<&str> = known.iter().map(String::as_str).collect();
            context.error(codes::UNKNOWN, entry.key.span, message, &format!("it can be {}", all.join(", ")));
        }
        if let Some(text) = files::read_text(&entry.value, context) {
            if serde_json::from_str::<serde_json::Value>(&text).is_err() {
                let message = format!("`{}` is no lock file of Spack: it is not JSON", entry.value.value);
                context.error(codes::FILE, entry.value.span, message, "copy `spack.lock` as Spack writes it");
            }
            locks.insert(entry.key.value.clone(), text);
        }
    }
    locks
}

/// `offline` is a promise that can be checked in part: mirrors that are not files need network, and so does concretizing.
fn check_offline(written: &SpackRecipe, spack: &Spack, systems: &BTreeMap<String, System>, context: &mut Context<'_>) {
    let Some(offline) = written.offline.as_ref().filter(|b| b.value) else { return };
    for mirror in spack.mirrors.iter().filter(|m| !m.url.starts_with("file://")) {
        let message = format!("`offline` is set, and mirror `{}` is not a file", mirror.name);
        context.error(codes::VALUE, offline.span, message, "copy it into the base image and name it by `file://`");
    }
    if spack.mirrors.is_empty() {
        let message = "`offline` is set, and there is no mirror to take packages from".to_owned();
        context.error(codes::VALUE, offline.span, message, "name one below `mirrors`");
    }
    for system in systems.keys() {
        if !Arch::ALL.iter().any(|arch| spack.locks.contains_key(&format!("{system}-{arch}"))) {
            let message = format!("`offline` is set, and system `{system}` has no lock file");
            context.error(
                codes::VALUE,
                offline.span,
                message,
                "add one below `locks`; choosing versions needs the network",
            );
        }
    }
}

/// Reports a system that the recipe does not have.
pub(super) fn known_system(name: &Spanned<String>, systems: &BTreeMap<String, System>, context: &mut Context<'_>) {
    if !systems.contains_key(&name.value) {
        let message = format!("`{}` is no system of this recipe", name.value);
        let all: Vec<&str> = systems.keys().map(String::as_str).collect();
        context.error(codes::UNKNOWN, name.span, message, &format!("it has {}", all.join(", ")));
    }
}
