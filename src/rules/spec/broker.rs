//! The user's own broker configuration and certificate.

use super::check::{Check, text};
use crate::diag::codes::spec as codes;
use crate::flux::Certificate;

pub(super) fn check(check: &mut Check<'_>) {
    certificate(check);
}

/// The message holds line numbers and reasons only: nothing of the certificate itself.
fn certificate(check: &mut Check<'_>) {
    let Some(written) = check.flux().and_then(|flux| text(&flux.curve_cert)) else { return };
    let help = "put a certificate made by `flux-gen cert new` or `flux keygen` into the certificate store instead";
    match Certificate::parse(written.value.as_bytes()) {
        Ok(certificate) if certificate.name().is_none() => {
            let message = "the certificate has no `name` in its metadata, which the leader needs";
            check.error(codes::CERTIFICATE, written.span, message, help);
        }
        Ok(_) => {}
        Err(wrong) => check.error(codes::CERTIFICATE, written.span, format!("curveCert: {wrong}"), help),
    }
}
