//! curve_cert.json.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use flux_gen::flux::Certificate;
use flux_gen::flux::certificate::check_mode;
use serde_json::Value;

use crate::{Outcome, all, same, text};

const KEYGEN_FAILS: &str = "certificate: keygen itself failed, there is no file";
const KEYGEN_FILE: &str = "certificate: how keygen treats its output file";

pub(crate) fn certificate(case: &Value, file: &Value) -> Outcome {
    match text(case, "kind") {
        "load" => {
            let ours = Certificate::parse(text(case, "file").as_bytes()).is_ok() && accessible(case);
            same(&ours, &case["accepted"].as_bool().unwrap())
        }
        "keygen" => match case["file"].as_str() {
            None => Outcome::OutOfScope(KEYGEN_FAILS),
            Some(written) => keygen(written, case["loads"].as_bool().unwrap()),
        },
        "keygen_perm" => Outcome::OutOfScope(KEYGEN_FILE),
        "load_path" => load_path(case, file),
        other => Outcome::Different(format!("unknown kind {other}")),
    }
}

fn mode_of(case: &Value) -> u32 {
    u32::from_str_radix(text(case, "mode").trim_start_matches("0o"), 8).unwrap()
}

/// What the kernel and then Flux make of mode and owner.
fn accessible(case: &Value) -> bool {
    let mode = mode_of(case);
    let [broker, owner] = ["broker_uid", "file_uid"].map(|key| case[key].as_u64().unwrap_or(0));
    let opens = broker == 0 || if broker == owner { mode & 0o400 != 0 } else { mode & 0o004 != 0 };
    opens && check_mode(mode).is_ok()
}

/// A file that keygen wrote loads or not as Flux says; if it does, ours of the same key loads as well.
fn keygen(written: &str, loads: bool) -> Outcome {
    let read = Certificate::parse(written.as_bytes());
    let again = match &read {
        Ok(read) => match Certificate::parse(read.to_file_text().as_bytes()) {
            Ok(again) => same(&(again.public_key(), again.metadata()), &(read.public_key(), read.metadata())),
            Err(error) => Outcome::Different(format!("our own file: {error}")),
        },
        Err(_) => Outcome::Same,
    };
    all([same(&read.is_ok(), &loads), again])
}

/// The five kinds of path, made for real.
fn load_path(case: &Value, file: &Value) -> Outcome {
    let good = file["cases"].as_array().unwrap().iter().find(|c| c["kind"] == "load" && c["accepted"] == true).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let make = |mode: u32| {
        let path = folder.path().join(format!("cert-{mode:o}"));
        fs::write(&path, text(good, "file")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let label = text(case, "label");
    let path = folder.path().join("it");
    if label.starts_with("missing") {
    } else if label.starts_with("directory") {
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    } else if let Some((_, mode)) = label.split_once("symlink to ") {
        let mode = u32::from_str_radix(mode.split(' ').next().unwrap(), 8).unwrap();
        symlink(make(mode), &path).unwrap();
    } else if label.starts_with("relative path") {
        // A relative path is looked up in the working directory "/" and led to something that others may read.
        return same(
            &check_mode(fs::metadata("/").unwrap().permissions().mode()).is_ok(),
            &case["accepted"].as_bool().unwrap(),
        );
    } else {
        return Outcome::Different("unknown path".to_owned());
    }
    same(&load(&path), &case["accepted"].as_bool().unwrap())
}

fn load(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return false };
    check_mode(metadata.permissions().mode()).is_ok()
        && fs::read(path).is_ok_and(|bytes| Certificate::parse(&bytes).is_ok())
}
