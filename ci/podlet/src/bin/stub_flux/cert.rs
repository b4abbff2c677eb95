//! The CURVE certificate, read as flux-core 0.55 and later reads it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

const Z85: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
/// The parser reads lines in chunks of this size.
const LINE: usize = 256;

/// What of a certificate the overlay needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The public key, Z85.
    pub public: String,
    /// `metadata.name`.
    pub name: Option<String>,
}

/// Loads a certificate with the permission check of the overlay.
///
/// # Errors
/// What the broker prints after "Error loading certificate: ".
pub fn load(path: &str) -> Result<Certificate, String> {
    let readable = |e: std::io::Error| format!("{path}: {}", describe(&e));
    let meta = fs::metadata(path).map_err(readable)?;
    if meta.mode() & 0o044 != 0 {
        return Err(format!("{path}: readable by group/other"));
    }
    let bytes = fs::read(path).map_err(readable)?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{path}: Invalid argument"))?;
    parse(&text).ok_or_else(|| format!("{path}: Invalid argument"))
}

/// The system's words for an error, without Rust's addition.
pub fn describe(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Parses a certificate and checks that its keys belong together.
pub fn parse(text: &str) -> Option<Certificate> {
    let text = text.split('\0').next()?;
    let (mut section, mut name, mut public, mut secret) = ("", None, None, None);
    let mut seen = BTreeSet::new();
    for line in text.split('\n') {
        if line.len() >= LINE {
            return None;
        }
        let line = line.trim_end();
        if line.trim_start().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            section = ["metadata", "curve"].into_iter().find(|s| *s == line)?;
            continue;
        }
        let (key, value) = line.trim().split_once('=')?;
        let (key, value) = (key.trim(), value.trim().strip_prefix('"')?.strip_suffix('"')?);
        let key_ok = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b));
        let value_ok = value.bytes().all(|b| Z85.contains(&b) || b" \t".contains(&b));
        if !key_ok || !value_ok {
            return None;
        }
        match (section, key) {
            ("metadata", _) => {
                if !seen.insert(key.to_owned()) {
                    return None;
                }
                if key == "name" {
                    name = Some(value.to_owned());
                }
            }
            ("curve", "public-key") => public = Some(value.to_owned()),
            ("curve", "secret-key") => secret = Some(value.to_owned()),
            _ => return None,
        }
    }
    let (public, secret) = (public?, secret?);
    let secret: [u8; 32] = decode(&secret)?.try_into().ok()?;
    let expected = x25519_dalek::PublicKey::from(&x25519_dalek::StaticSecret::from(secret));
    (decode(&public)? == expected.as_bytes()).then_some(Certificate { public, name })
}

/// Z85 (ZeroMQ RFC 32) of 32 bytes.
fn decode(text: &str) -> Option<Vec<u8>> {
    if text.len() != 40 {
        return None;
    }
    let mut out = Vec::new();
    for chunk in text.as_bytes().chunks(5) {
        let mut value: u64 = 0;
        for byte in chunk {
            value = value * 85 + Z85.iter().position(|z| z == byte)? as u64;
        }
        out.extend(u32::try_from(value).ok()?.to_be_bytes());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::parse;

    // The public test pair of flux.md section 5.3: secret bytes 00, 01, … 1f.
    const PUBLIC: &str = "K3HW^WVq.zo69t)(umF>:XvwTj:QGN^yKlWaVH(S";
    const SECRET: &str = "009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x";

    fn text(meta: &str) -> String {
        format!("# c\nmetadata\n{meta}curve\n    public-key = \"{PUBLIC}\"\n    secret-key = \"{SECRET}\"\n")
    }

    #[test]
    fn accepted() {
        let cert = parse(&text("    name = \"sim\"\n")).expect("parses");
        assert_eq!((cert.public.as_str(), cert.name.as_deref()), (PUBLIC, Some("sim")));
        assert_eq!(parse(&text("")).expect("parses").name, None);
        assert!(parse(&text("\tname=\"a b\"  \r\n")).is_some());
    }

    #[test]
    fn refused() {
        for meta in [
            "name = \"n\"\n",
            "    name = n\n",
            "    name = \"a_b\"\n",
            "    na_me = \"a\"\n",
            "    k = \"1\"\n    k = \"2\"\n",
            "    name = \"n\" # c\n",
        ] {
            assert!(parse(&text(meta)).is_none(), "{meta}");
        }
        assert!(parse(&text("").replace(PUBLIC, SECRET)).is_none());
        assert!(parse(&text("").replace("secret-key", "private-key")).is_none());
        assert!(parse(&format!("#{}\n{}", "x".repeat(300), text(""))).is_none());
        assert!(parse("").is_none());
    }
}
