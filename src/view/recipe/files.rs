//! Files of a recipe's own folder: patches, lock files, folders with sources.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::model::FolderFiles;
use super::resolve::Context;
use crate::bundle::sha256_hex;
use crate::diag::codes::recipe as codes;
use crate::spec::Spanned;

/// Largest patch or lock file, in bytes.
const LIMIT: u64 = 64 << 20;

/// The path of a name in the recipe's folder; reports names that lead out.
fn inside(name: &Spanned<String>, context: &mut Context<'_>) -> Option<PathBuf> {
    let plain = !name.is_empty()
        && name
            .split('/')
            .all(|part| !matches!(part, "" | "." | "..") && !part.starts_with('-') && !part.contains('\0'));
    let path = context.folder.join(&name.value);
    let stays = plain
        && match (fs::canonicalize(&path), fs::canonicalize(context.folder)) {
            (Ok(real), Ok(folder)) => real.starts_with(folder),
            // What is not there is reported when it is read.
            _ => true,
        };
    if !stays {
        let message = format!("`{}` is not in the recipe's folder", name.value);
        context.error(codes::FILE, name.span, message, "put it there and name it without `..`");
        return None;
    }
    Some(path)
}

fn cannot(name: &Spanned<String>, error: &io::Error, context: &mut Context<'_>) {
    let message = format!("`{}` cannot be read: {error}", name.value);
    context.error(codes::FILE, name.span, message, "it must be a file in the recipe's folder");
}

/// The bytes of a small file.
pub(super) fn read(name: &Spanned<String>, context: &mut Context<'_>) -> Option<Vec<u8>> {
    let path = inside(name, context)?;
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > LIMIT => {
            let error = io::Error::other("it is larger than 64 MiB");
            cannot(name, &error, context);
            None
        }
        Ok(_) => Some(bytes),
        Err(e) => {
            cannot(name, &e, context);
            None
        }
    }
}

/// The text of a small file.
pub(super) fn read_text(name: &Spanned<String>, context: &mut Context<'_>) -> Option<String> {
    let bytes = read(name, context)?;
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(_) => {
            cannot(name, &io::Error::other("it is not UTF-8"), context);
            None
        }
    }
}

/// The files below a folder of the recipe, with their digests.
pub(super) fn folder(name: &Spanned<String>, context: &mut Context<'_>) -> Option<FolderFiles> {
    let path = inside(name, context)?;
    let mut digests = BTreeMap::new();
    match walk(&path, "", &mut digests) {
        Ok(()) if digests.is_empty() => {
            cannot(name, &io::Error::other("it holds no files"), context);
            None
        }
        Ok(()) => Some(FolderFiles { name: name.value.clone(), digests }),
        Err(e) => {
            cannot(name, &e, context);
            None
        }
    }
}

fn walk(folder: &Path, before: &str, digests: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| io::Error::other("a name in it is not UTF-8"))?;
        let path = format!("{before}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), &format!("{path}/"), digests)?;
        } else if kind.is_file() {
            let executable = entry.metadata()?.permissions().mode() & 0o100 != 0;
            let digest = sha256_hex(&fs::read(entry.path())?);
            digests.insert(path, if executable { format!("x:{digest}") } else { digest });
        } else {
            return Err(io::Error::other(format!("{path} is neither a file nor a folder")));
        }
    }
    Ok(())
}
