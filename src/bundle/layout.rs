//! Bundles and companions → [`FileTree`]. Pure: the same input gives the same bytes, whatever the order of its parts.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::cipher::{CipherKind, Leeway};
use super::companion::{self, Companion, ObjectId, ObjectKey, Prepared};
use super::index::{INDEX_FILE, Index};
use super::names::{self, COMPANIONS_FOLDER, KUSTOMIZATION_FILE};
use super::tree::{FileTree, Folder, order};
use super::yaml::{self, YamlError};
use super::{Bundle, SecretForm, SourceRef, kustomization, sealed, secret, sha256_hex};
use crate::diag::codes::bundle as codes;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::model::hardening::PodSecurity;
use crate::model::secret_name;
use crate::object::Object;
use crate::object::carry::find_uncarried;
use crate::parallel;

/// Most bytes of data in one ConfigMap. An API server stores 1 MiB, metadata included.
pub const CONFIG_MAP_MAX: usize = 900_000;
/// Bytes of data above which client-side apply may refuse a ConfigMap (annotations are limited to 256 KiB).
pub const CONFIG_MAP_WARN: usize = 200_000;

/// Namespaces that every Kubernetes cluster has: making them is not ours, and neither is deleting them.
const STANDING_NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// About how many bytes of YAML an object with pods is.
const LARGE_OBJECT: usize = 8192;
/// And one without, data not counted.
const SMALL_OBJECT: usize = 1024;

/// Settings of the whole output.
#[derive(Debug, Clone, Copy, Default)]
pub struct LayoutSettings {
    /// Whether the output folder itself gets a kustomization of all namespaces (setting `root-kustomization`).
    pub root_kustomization: bool,
}

/// What an earlier build left in the output, from sources that this build is not about. It stays, so the kustomizations
/// must go on naming it. Nothing when a whole project is built.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Folders of clusters, relative to the output.
    pub clusters: BTreeSet<String>,
    /// Files of companions: folder, then file name.
    pub companions: BTreeMap<String, BTreeMap<String, KeptFile>>,
}

/// A companion's file that stays.
#[derive(Debug, Clone)]
pub struct KeptFile {
    /// Where it came from.
    pub source: SourceRef,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Lays everything out. The tree is only to be used when no diagnostic is an error.
#[must_use]
pub fn layout(
    bundles: &[Bundle],
    companions: &[Companion],
    kept: &Kept,
    settings: LayoutSettings,
) -> (FileTree, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    if bundles.is_empty() && companions.is_empty() {
        let message = "the sources hold no MiniCluster and no other Kubernetes document";
        diagnostics.push(Diagnostic::global_error(codes::EMPTY_RESULT, message));
    }
    let mut sorted: Vec<(String, &Bundle)> = bundles.iter().map(|bundle| (folder_of(bundle), bundle)).collect();
    sorted.sort_by(|a, b| (&a.0, &a.1.source, a.1.span).cmp(&(&b.0, &b.1.source, b.1.span)));
    check_clusters(&sorted, &mut diagnostics);
    let prepared = companion::prepare(companions, &mut diagnostics);
    let prepared = check_objects(&sorted, prepared, &mut diagnostics);
    check_sizes(bundles, &prepared, &mut diagnostics);

    let mut tree = FileTree::default();
    let secrets: BTreeSet<String> = secret_folders(&sorted).into_values().collect();
    let make = |(path, bundle): &(String, &Bundle)| cluster_folder(bundle, secrets.contains(path));
    for (path, bundle, folder) in parallel::map(&sorted, |item| (&item.0, item.1, make(item))) {
        match folder {
            Ok(folder) => drop(tree.folders.insert(path.clone(), folder)),
            Err(Unwritable { code, why }) => {
                diagnostics.push(companion::at(bundle.span, code, format!("{}: {why}", bundle.title())));
            }
        }
    }
    check_folders(&tree, &prepared, kept, &mut diagnostics);
    let result = companion_folders(&prepared, &wanted_namespaces(&sorted, &prepared), kept, &mut tree)
        .and_then(|()| kustomizations(&mut tree, kept, settings));
    if let Err(e) = result {
        diagnostics.push(Diagnostic::global_error(codes::UNWRITABLE_OBJECT, e.to_string()));
    }
    (tree, diagnostics)
}

/// `<namespace or default>/<cluster>`.
fn folder_of(bundle: &Bundle) -> String {
    format!("{}/{}", names::namespace_folder(bundle.namespace.as_deref()), names::safe(&bundle.name))
}

/// Two clusters may not share a folder.
fn check_clusters(sorted: &[(String, &Bundle)], diagnostics: &mut Diagnostics) {
    for pair in sorted.windows(2) {
        let ((folder, first), (other, second)) = (&pair[0], &pair[1]);
        if folder != other {
            continue;
        }
        let message = format!(
            "MiniCluster {} is in {} and again ({}) in {}",
            second.title(),
            first.source.path,
            first.title(),
            second.source.path
        );
        let mut error = companion::at(second.span, codes::DUPLICATE_CLUSTER, message).help("rename one of them");
        if let Some(span) = first.span {
            error = error.related(span, "the other one");
        }
        diagnostics.push(error);
    }
}

/// One object, one description. Equal companions are merged: of several the first stays.
fn check_objects(
    sorted: &[(String, &Bundle)],
    prepared: Vec<Prepared>,
    diagnostics: &mut Diagnostics,
) -> Vec<Prepared> {
    let mut seen: BTreeMap<ObjectKey<'_>, &Bundle> = BTreeMap::new();
    for (_, bundle) in sorted {
        for key in bundle.objects.iter().map(ObjectKey::of).chain(ObjectKey::of_secret(bundle)) {
            let Some(first) = seen.insert(key, bundle) else { continue };
            let shared = ObjectKey::of_secret(bundle) == Some(key) && first.secret == bundle.secret;
            if shared || folder_of(first) == folder_of(bundle) {
                continue;
            }
            let message = format!(
                "{} would be made by {} ({}) and by {} ({})",
                key.id(),
                first.title(),
                first.source.path,
                bundle.title(),
                bundle.source.path
            );
            let mut error = companion::at(bundle.span, codes::DUPLICATE_OBJECT, message);
            if let Some(span) = first.span {
                error = error.related(span, "the other MiniCluster");
            }
            diagnostics.push(error);
        }
    }
    let mut merged: Vec<Prepared> = Vec::new();
    for companion in prepared {
        if let Some(bundle) = seen.get(&companion.id.key()) {
            let message = format!(
                "{} in {} is also made by MiniCluster {} ({})",
                companion.id,
                companion.source.path,
                bundle.title(),
                bundle.source.path
            );
            let mut error = companion::at(companion.span, codes::DUPLICATE_OBJECT, message);
            if let Some(span) = bundle.span {
                error = error.related(span, "the MiniCluster");
            }
            diagnostics.push(error);
            continue;
        }
        match merged.last() {
            Some(first) if first.id == companion.id && first.value == companion.value => {}
            Some(first) if first.id == companion.id => {
                let message = format!(
                    "{} is in {} and, with other content, in {}",
                    companion.id, first.source.path, companion.source.path
                );
                let mut error = companion::at(companion.span, codes::DUPLICATE_OBJECT, message)
                    .help("keep one of them, or make both the same");
                if let Some(span) = first.span {
                    error = error.related(span, "the other document");
                }
                diagnostics.push(error);
            }
            _ => merged.push(companion),
        }
    }
    merged
}

/// In which folder each Secret stands. Clusters of a bursting group share one: it goes to the cluster that it is named
/// after, or to the first.
fn secret_folders(sorted: &[(String, &Bundle)]) -> BTreeMap<ObjectId, String> {
    let mut folders = BTreeMap::new();
    for (path, bundle) in sorted {
        let (Some(id), Some(name)) = (ObjectId::of_secret(bundle), bundle.secret.name()) else { continue };
        let owner = bundle.public_key.as_ref().is_some_and(|key| name == secret_name(&bundle.name, key));
        if owner || !folders.contains_key(&id) {
            folders.insert(id, path.clone());
        }
    }
    folders
}

/// Size rules of ConfigMaps.
fn check_sizes(bundles: &[Bundle], companions: &[Prepared], diagnostics: &mut Diagnostics) {
    for bundle in bundles {
        for object in &bundle.objects {
            if let Object::ConfigMap(map) = object {
                let title = format!("ConfigMap {} of {}", object.name(), bundle.title());
                check_size(&title, config_map_size(map), bundle.span, diagnostics);
            }
        }
    }
    for companion in companions.iter().filter(|c| c.id.kind == "ConfigMap" && c.id.group.is_empty()) {
        let entries = ["data", "binaryData"].iter().filter_map(|field| companion.value.get(field)?.as_object());
        let size = entries.flatten().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
        let title = format!("{} in {}", companion.id, companion.source.path);
        check_size(&title, size, companion.span, diagnostics);
    }
}

fn check_size(title: &str, size: usize, span: Option<crate::diag::Span>, diagnostics: &mut Diagnostics) {
    let kilobytes = size.div_ceil(1000);
    if size > CONFIG_MAP_MAX {
        let message = format!("{title} holds {kilobytes} kB; more than 900 kB cannot be stored");
        diagnostics.push(companion::at(span, codes::CONFIG_MAP_TOO_LARGE, message).help("move data to a volume"));
    } else if size > CONFIG_MAP_WARN {
        let message = format!("{title} holds {kilobytes} kB, too much for client-side apply");
        let mut warning = Diagnostic::global_warning(codes::CONFIG_MAP_LARGE, message);
        warning.span = span;
        diagnostics.push(warning.help("apply with --server-side"));
    }
}

fn config_map_size(map: &ConfigMap) -> usize {
    let text = map.data.iter().flatten().map(|(key, value)| key.len() + value.len());
    // The API server counts the bytes, kubectl's annotation their base64 text.
    let binary = map.binary_data.iter().flatten().map(|(key, ByteString(bytes))| key.len() + bytes.len() * 4 / 3);
    text.sum::<usize>() + binary.sum::<usize>()
}

/// Why an object cannot be part of a bundle.
struct Unwritable {
    code: Code,
    why: String,
}

impl From<YamlError> for Unwritable {
    fn from(error: YamlError) -> Self {
        Self { code: codes::UNWRITABLE_OBJECT, why: error.to_string() }
    }
}

/// The folder of one cluster.
fn cluster_folder(bundle: &Bundle, with_secret: bool) -> Result<Folder, Unwritable> {
    let header = yaml::header(&bundle.source.path);
    let mut files = BTreeMap::new();
    for (name, object) in file_names(bundle) {
        files.insert(name, object_yaml(&header, object)?.into_bytes());
    }
    let mut encrypted = BTreeMap::new();
    if with_secret && let Some(secret) = secret_file(bundle, &header)? {
        encrypted.extend(secret.leeway.map(|leeway| (secret.name.clone(), leeway)));
        files.insert(secret.name, secret.bytes);
    }
    let mut index = Index::new();
    index.namespace.clone_from(&bundle.namespace);
    index.name = Some(bundle.name.clone());
    index.source = Some(bundle.source.clone());
    index.public_key.clone_from(&bundle.public_key);
    Ok(Folder { encrypted, ..finish(&bundle.source.path, files, index)? })
}

/// The file with the certificate's Secret.
struct SecretFile {
    name: String,
    bytes: Vec<u8>,
    /// Of an encrypted one: how far what is in the output may be from it.
    leeway: Option<Leeway>,
}

/// What a bundle carries of its certificate. Encrypted forms are copied byte for byte, without a header: SOPS would take a
/// comment for a part of the document.
fn secret_file(bundle: &Bundle, header: &str) -> Result<Option<SecretFile>, YamlError> {
    Ok(match &bundle.secret {
        SecretForm::Existing => None,
        SecretForm::Plain { name, certificate } => {
            let body = secret::secret_yaml(bundle.namespace.as_deref(), name, certificate)?;
            let file = names::object_file("secret", &short_name(bundle, name, true));
            let bytes = format!("{header}{}", body.as_str()).into_bytes();
            Some(SecretFile { name: file, bytes, leeway: None })
        }
        SecretForm::Encrypted { name, kind, bytes, leeway } => {
            let short = short_name(bundle, name, true);
            let file = match kind {
                // The name by which people's `.sops.yaml` know such files.
                CipherKind::Sops => names::object_file("secret", &short).replace(".yaml", kind.suffix()),
                CipherKind::Sealed => names::object_file(sealed::KIND, &short),
            };
            Some(SecretFile { name: file, bytes: bytes.clone(), leeway: Some(*leeway) })
        }
    })
}

/// Adds kustomization and index.
fn finish(source: &str, mut files: BTreeMap<String, Vec<u8>>, mut index: Index) -> Result<Folder, YamlError> {
    let mut documents: Vec<String> = files.keys().cloned().collect();
    documents.sort_by_cached_key(|name| (kustomization::rank_of_file(name), name.clone()));
    files.insert(KUSTOMIZATION_FILE.to_owned(), kustomization::of_folder(source, &documents)?.into_bytes());
    index.files = files.iter().map(|(name, bytes)| (name.clone(), sha256_hex(bytes))).collect();
    let bytes = index.to_bytes().map_err(|e| YamlError::new(&e))?;
    files.insert(INDEX_FILE.to_owned(), bytes);
    Ok(Folder { files, index, documents, encrypted: BTreeMap::new() })
}

/// A rendered object with its first line, without the empty `status` that a patch may have left.
fn object_yaml(header: &str, object: &Object) -> Result<String, Unwritable> {
    let expected = match object {
        // A line of a script is some 30 bytes, and gets four blanks in front.
        Object::ConfigMap(map) => config_map_size(map) * 5 / 4 + SMALL_OBJECT,
        Object::Job(_) | Object::Pod(_) => LARGE_OBJECT,
        _ => SMALL_OBJECT,
    };
    let text = match object.without_empty_status() {
        Some(object) => yaml::below(header, &object, expected),
        None => yaml::below(header, object, expected),
    }?;
    // What kustomize cannot carry is written as an escape, so texts without escapes need no search.
    if (text.contains("\\x") || text.contains("\\u"))
        && let Ok(value) = serde_json::to_value(object)
        && let Some((path, c)) = find_uncarried(&value)
    {
        let place = path.trim_start_matches('.');
        let why = format!("{} {} holds U+{:04X} in {place}", object.kind(), object.name(), u32::from(c));
        return Err(Unwritable { code: codes::NOT_FOR_KUSTOMIZE, why });
    }
    Ok(text)
}

/// Short names; where two objects would get the same one both keep their whole names.
fn file_names(bundle: &Bundle) -> BTreeMap<String, &Object> {
    let short = |object: &Object| {
        let immutable = matches!(object, Object::ConfigMap(ConfigMap { immutable: Some(true), .. }));
        names::object_file(object.kind(), &short_name(bundle, object.name(), immutable))
    };
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for object in &bundle.objects {
        *count.entry(short(object)).or_default() += 1;
    }
    let mut files = BTreeMap::new();
    for object in &bundle.objects {
        let name = short(object);
        let name = if count[&name] > 1 { names::object_file(object.kind(), object.name()) } else { name };
        files.insert(name, object);
    }
    files
}

/// The part of an object's name that tells it from the cluster's other objects: without the cluster's name in front and,
/// for names that follow the content, without the digest behind, so that a file keeps its name when the content changes.
fn short_name(bundle: &Bundle, name: &str, hashed: bool) -> String {
    let mut rest = name;
    if hashed
        && let Some((front, digest)) = name.rsplit_once('-')
        && digest.len() == 10
        && digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b) || b"ghkmt".contains(&b))
    {
        rest = front;
    }
    // A strategy may have given all names a suffix; the Job has it too.
    let job = bundle.objects.iter().find(|object| matches!(object, Object::Job(_))).map(Object::name);
    let suffix = job.and_then(|name| name.strip_prefix(bundle.name.as_str())).filter(|suffix| !suffix.is_empty());
    let rest = suffix.map_or_else(|| rest.to_owned(), |suffix| rest.replacen(suffix, "", 1));
    match rest.strip_prefix(bundle.name.as_str()) {
        Some("") => String::new(),
        Some(tail) if tail.starts_with('-') => tail[1..].to_owned(),
        _ => rest,
    }
}

/// A namespace to be made: the source that its file names, and the level that all its pods keep.
type Wanted<'a> = (&'a SourceRef, PodSecurity);

/// Namespaces to be made (setting `create-namespace`). A companion that describes the namespace is the one that counts.
fn wanted_namespaces<'a>(sorted: &[(String, &'a Bundle)], companions: &[Prepared]) -> BTreeMap<&'a str, Wanted<'a>> {
    let mut wanted: BTreeMap<&str, Wanted<'_>> = BTreeMap::new();
    for (_, bundle) in sorted.iter().filter(|(_, bundle)| bundle.create_namespace) {
        let Some(namespace) = bundle.namespace.as_deref() else { continue };
        let written = companions.iter().any(|c| c.id.kind == "Namespace" && c.id.name == namespace);
        if !written && !STANDING_NAMESPACES.contains(&namespace) {
            let (_, level) = wanted.entry(namespace).or_insert((&bundle.source, bundle.pod_security));
            *level = (*level).min(bundle.pod_security);
        }
    }
    wanted
}

/// The folders of companions, made namespaces among them.
fn companion_folders(
    companions: &[Prepared],
    namespaces: &BTreeMap<&str, Wanted<'_>>,
    kept: &Kept,
    tree: &mut FileTree,
) -> Result<(), YamlError> {
    let mut folders: BTreeMap<String, BTreeMap<String, (SourceRef, Vec<u8>)>> = BTreeMap::new();
    let mut count: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for companion in companions {
        let file = names::object_file(&companion.id.kind, &companion.id.name);
        *count.entry((&companion.folder, file)).or_default() += 1;
    }
    for companion in companions {
        let ObjectId { group, kind, name, .. } = &companion.id;
        let mut file = names::object_file(kind, name);
        if count[&(companion.folder.as_str(), file.clone())] > 1 && !group.is_empty() {
            file = names::object_file(&format!("{kind}.{group}"), name);
        }
        let bytes = with_header(&companion.source, &companion.value)?;
        folders.entry(companion.folder.clone()).or_default().insert(file, (companion.source.clone(), bytes));
    }
    for (namespace, (source, level)) in namespaces {
        let mut metadata = json!({ "name": namespace });
        if let Some((label, level)) = level.enforced() {
            metadata["labels"] = json!({ label: level });
        }
        let value = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata });
        let bytes = with_header(source, &value)?;
        let folder = format!("{}/{COMPANIONS_FOLDER}", names::safe(namespace));
        let file = names::object_file("namespace", namespace);
        folders.entry(folder).or_default().insert(file, ((*source).clone(), bytes));
    }
    for (folder, files) in &kept.companions {
        let folder = folders.entry(folder.clone()).or_default();
        for (name, file) in files {
            folder.entry(name.clone()).or_insert_with(|| (file.source.clone(), file.bytes.clone()));
        }
    }
    for (path, files) in folders {
        let mut index = Index::new();
        index.sources = files.iter().map(|(name, (source, _))| (name.clone(), source.clone())).collect();
        let sources: BTreeSet<&str> = files.values().map(|(source, _)| source.path.as_str()).collect();
        let header = sources.into_iter().collect::<Vec<_>>().join(", ");
        let files = files.into_iter().map(|(name, (_, bytes))| (name, bytes)).collect();
        tree.folders.insert(path, finish(&header, files, index)?);
    }
    Ok(())
}

fn with_header(source: &SourceRef, value: &Value) -> Result<Vec<u8>, YamlError> {
    Ok(yaml::below(&yaml::header(&source.path), value, 0)?.into_bytes())
}

/// The kustomizations of namespaces and of the root.
fn kustomizations(tree: &mut FileTree, kept: &Kept, settings: LayoutSettings) -> Result<(), YamlError> {
    let mut namespaces: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut root: Vec<String> = Vec::new();
    let mut paths: Vec<&String> = tree.folders.keys().chain(&kept.clusters).collect();
    paths.sort_by_key(|path| order(path));
    paths.dedup();
    for path in paths {
        let (top, inner) = path.split_once('/').map_or((path.as_str(), None), |(top, inner)| (top, Some(inner)));
        if root.last().is_none_or(|last| last != top) {
            root.push(top.to_owned());
        }
        if let Some(inner) = inner {
            namespaces.entry(top.to_owned()).or_default().push(inner.to_owned());
        }
    }
    for (namespace, folders) in namespaces {
        let text = kustomization::of_folders(&folders)?;
        tree.files.insert(format!("{namespace}/{KUSTOMIZATION_FILE}"), text.into_bytes());
    }
    if settings.root_kustomization && !root.is_empty() {
        tree.files.insert(KUSTOMIZATION_FILE.to_owned(), kustomization::of_folders(&root)?.into_bytes());
    }
    Ok(())
}

/// Folders with a meaning of their own may not be a cluster's or a namespace's as well.
fn check_folders(clusters: &FileTree, companions: &[Prepared], kept: &Kept, diagnostics: &mut Diagnostics) {
    let taken: BTreeSet<&String> = clusters.folders.keys().chain(&kept.clusters).collect();
    let below = format!("{}/", names::CLUSTER_FOLDER);
    let mut told = BTreeSet::new();
    for companion in companions {
        let folder = &companion.folder;
        let namespace_called_cluster =
            folder == names::CLUSTER_FOLDER && taken.iter().any(|path| path.starts_with(&below));
        if (taken.contains(folder) || namespace_called_cluster) && told.insert(folder) {
            let message = format!(
                "the folder {folder} is needed for {} ({}) and for a MiniCluster",
                companion.id, companion.source.path
            );
            let error = companion::at(companion.span, codes::FOLDER_CLASH, message);
            diagnostics.push(error.help("rename the cluster or the namespace"));
        }
    }
}
