//! The certificate's Secret: there, and the one that the bundle was built for. Messages hold names and public keys only.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use zeroize::Zeroizing;

use super::cause::{Cause, Renaming};
use super::cluster::Cluster;
use super::world::World;
use super::{Findings, Item};
use crate::bundle::secret::SECRET_KEY;
use crate::diag::codes::audit as codes;
use crate::flux::certificate::Certificate;
use crate::model::{secret_name, words};
use crate::render::paths;

/// Kinds that make a Secret of their own name in the cluster.
const MAKERS: [&str; 2] = ["sealedsecret", "externalsecret"];
/// Length of the hash in the names of Secrets.
const HASH: usize = 10;

pub(super) fn check(cluster: &Cluster<'_>, world: &World<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let volumes = job.list("/spec/template/spec/volumes");
    let mounted = volumes.iter().enumerate().find_map(|(index, volume)| {
        let ours = volume.get("name").and_then(Value::as_str) == Some(paths::CURVE.0);
        let name = volume.pointer("/secret/secretName")?.as_str()?;
        ours.then(|| (format!("/spec/template/spec/volumes/{index}/secret/secretName"), name))
    });
    let Some((pointer, name)) = mounted else { return };
    let built = cluster.listed.iter().find(|listed| listed.kind == "secret").map(|listed| listed.name.as_str());
    let object = world.get("secret", job.namespace, name);
    let maker = MAKERS.iter().find_map(|kind| world.get(kind, job.namespace, name));
    if let Some(built) = built.filter(|built| *built != name && object.is_none() && maker.is_none()) {
        let what = format!("pods mount the Secret `{name}`, and the bundle was built for `{built}`");
        findings.error(codes::WRONG_SECRET, job, &pointer, &what, &Cause::renamed(&Renaming::between(built, name)));
    } else if cluster.backend().is_some_and(|backend| backend != "existing") && object.is_none() && maker.is_none() {
        let what =
            format!("the Secret `{name}` of the bundle is not among the objects: pods wait in ContainerCreating");
        findings.error(codes::SECRET_MISSING, job, &pointer, &what, &Cause::Dropped);
    }
    if let Some(maker) = maker {
        sealed_elsewhere(job, maker, findings);
    }
    let expected = expected_key(cluster);
    if let (Some(key), Some(built)) = (&expected, built) {
        name_and_key(job, &pointer, built, key, findings);
    }
    if let Some(object) = object {
        content(object, expected.as_deref(), findings);
    }
}

/// A SealedSecret can be unsealed in the namespace that it was made for, unless its scope is the whole cluster.
fn sealed_elsewhere(job: Item<'_>, sealed: Item<'_>, findings: &mut Findings) {
    let built = job.text("/spec/template/metadata/labels/namespace");
    let everywhere = sealed.annotation("sealedsecrets.bitnami.com/cluster-wide") == Some("true");
    if sealed.kind == "SealedSecret" && !everywhere && built.is_some_and(|built| built != job.namespace) {
        let what = format!(
            "it was sealed for the namespace `{}`: the controller cannot unseal it in `{}`, and pods wait in ContainerCreating",
            built.unwrap_or_default(),
            job.namespace
        );
        findings.error(codes::WRONG_SECRET, sealed, "/metadata/namespace", &what, &Cause::Namespace);
    }
}

/// The public key that the entrypoint compares with.
fn expected_key(cluster: &Cluster<'_>) -> Option<String> {
    let script = cluster.entrypoint()?;
    let line = script.lines().find(|line| line.trim_start().starts_with("if [ \"$flux_gen_found\" != "))?;
    let words = words::split(line.trim().trim_end_matches("; then"))?;
    let key = words.get(4)?;
    Some(key.trim_matches('"').to_owned())
}

/// The name of a Secret that was made for a known key ends with that key's hash.
fn name_and_key(job: Item<'_>, pointer: &str, built: &str, key: &str, findings: &mut Findings) {
    let Some((owner, hash)) = built.rsplit_once("-curve-") else { return };
    let is_hash = hash.len() == HASH && hash.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hash && secret_name(owner, key) != built {
        let what = format!(
            "`{built}` is for another public key than `{key}`, which the entrypoint expects: every pod ends with exit code 78"
        );
        findings.error(codes::WRONG_SECRET, job, pointer, &what, &Cause::Patch);
    }
}

/// A Secret in plain text; encrypted ones cannot be looked into.
fn content(secret: Item<'_>, expected: Option<&str>, findings: &mut Findings) {
    if secret.at("/sops").is_some() {
        return;
    }
    let field = |part: &str| secret.at(part).and_then(|data| data.get(SECRET_KEY)?.as_str());
    let encoded = field("/data").and_then(|text| STANDARD.decode(text.trim()).ok());
    let bytes = encoded.or_else(|| field("/stringData").map(|text| text.as_bytes().to_vec())).map(Zeroizing::new);
    let Some(bytes) = bytes else {
        let what = format!("there is no readable file `{SECRET_KEY}` in the Secret: brokers cannot start");
        return findings.error(codes::WRONG_SECRET, secret, "/data", &what, &Cause::Patch);
    };
    match Certificate::parse(&bytes) {
        Err(error) => {
            let what = format!("`{SECRET_KEY}` is no certificate that Flux takes: {error}");
            findings.error(codes::WRONG_SECRET, secret, "/data", &what, &Cause::Patch);
        }
        Ok(found) if expected.is_some_and(|key| key != found.public_key()) => {
            let what = format!(
                "the certificate has the public key `{}`, and the entrypoint expects `{}`: every pod ends with exit code 78",
                found.public_key(),
                expected.unwrap_or_default()
            );
            findings.error(codes::WRONG_SECRET, secret, "/data", &what, &Cause::Patch);
        }
        Ok(_) => {}
    }
}
