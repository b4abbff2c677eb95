//! Tags under which cosign keeps what belongs to an image in registries that list no referrers: signatures, attestations and
//! SBOMs (cosign's `SIGNATURE_SPEC.md`, "Tag-based Discovery").

use super::digest::{Algorithm, Digest};

/// What the tags end in.
const KINDS: [&str; 3] = [".sig", ".att", ".sbom"];

/// The tags that may belong to a digest.
#[must_use]
pub fn tags(about: &Digest) -> Vec<String> {
    let tag = |kind: &&str| format!("{}-{}{kind}", about.algorithm().as_str(), about.hex());
    // With another hash the name would be longer than tags may be.
    if about.algorithm() == Algorithm::Sha256 { KINDS.iter().map(tag).collect() } else { Vec::new() }
}

/// What a tag is about; `None` for any other tag.
#[must_use]
pub fn subject(tag: &str) -> Option<Digest> {
    let name = KINDS.iter().find_map(|kind| tag.strip_suffix(kind))?;
    let (algorithm, hex) = name.split_once('-')?;
    format!("{algorithm}:{hex}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_name_what_they_are_about() {
        let digest = Digest::of(b"x");
        let made = tags(&digest);
        assert_eq!(made[0], format!("sha256-{}.sig", digest.hex()));
        assert!(made.iter().all(|tag| subject(tag).as_ref() == Some(&digest)), "{made:?}");
        let long: Digest = format!("sha512:{}", "a".repeat(128)).parse().unwrap();
        assert_eq!(tags(&long), Vec::<String>::new());
        for other in ["latest", "1.sig", "sha256-12.sig", &format!("sha256-{}", digest.hex())] {
            assert_eq!(subject(other), None, "{other}");
        }
    }
}
