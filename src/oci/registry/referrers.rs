//! What refers to an image: SBOMs, signatures. Registries list it themselves or, when they do not know that API, clients keep
//! an index under a tag made from the digest (distribution specification, "Referrers Tag Schema").

use std::sync::PoisonError;

use super::super::descriptor::Descriptor;
use super::super::digest::Digest;
use super::super::document::{Document, Index, from_slice, to_vec};
use super::super::error::{Error, ErrorKind};
use super::super::media;
use super::repository::Repository;

/// How often the list is read again when others change it at the same time.
const TRIES: usize = 8;

/// The tag: `sha256-…`, cut to the length of tags.
#[must_use]
fn fallback_tag(digest: &Digest) -> String {
    let algorithm = digest.algorithm().as_str();
    let hex = digest.hex();
    format!("{algorithm}-{}", &hex[..hex.len().min(64)])
}

impl Repository {
    /// Descriptors of what refers to a digest, of one kind if one is given.
    ///
    /// # Errors
    /// When the registry does not tell.
    pub fn referrers(&self, digest: &Digest, artifact_type: Option<&str>) -> Result<Vec<Descriptor>, Error> {
        let mut found = Vec::new();
        let place = format!("{}/{}: referrers of {digest}", self.registry(), self.repository());
        let known =
            self.pages(&format!("referrers/{digest}"), &format!("list the referrers of {digest}"), |bytes| {
                found.extend(from_slice::<Index>(&place, bytes)?.manifests);
                Ok(())
            })?;
        if !known {
            found = self.fallback(digest)?;
        }
        // Registries may filter or not; by now it makes no difference.
        found.retain(|d| artifact_type.is_none_or(|kind| d.artifact_type.as_deref() == Some(kind)));
        Ok(found)
    }

    fn fallback(&self, digest: &Digest) -> Result<Vec<Descriptor>, Error> {
        let tag = fallback_tag(digest);
        let Some((descriptor, bytes)) = self.manifest(&tag)? else { return Ok(Vec::new()) };
        match Document::parse(&tag, &descriptor.media_type, &bytes)? {
            Document::Index(index) => Ok(index.manifests),
            Document::Manifest(_) => {
                let message =
                    format!("{}/{}: the tag {tag} is no list of referrers", self.registry(), self.repository());
                Err(Error::new(ErrorKind::Protocol, message))
            }
        }
    }

    /// Adds to the list under the tag, for registries that do not list referrers themselves. One thread of this client does so at
    /// a time. Other programs may write too: the list is read again until ours is in it. What another program overwrites
    /// after that is lost until the next push, because registries know no condition for writing a tag.
    ///
    /// # Errors
    /// When it cannot be written, or others write it again and again.
    pub fn add_referrer(&self, subject: &Digest, referrer: &Descriptor) -> Result<(), Error> {
        let tag = fallback_tag(subject);
        let _alone = self.client.lists.lock().unwrap_or_else(PoisonError::into_inner);
        for turn in 0..TRIES {
            let mut list = self.fallback(subject)?;
            if list.iter().any(|d| d.digest == referrer.digest) {
                return Ok(());
            }
            if turn > 0 {
                self.client.wait(turn);
            }
            list.push(referrer.clone());
            let bytes = to_vec(&Index::new(list))?;
            self.put_manifest(&tag, &Descriptor::of(media::INDEX, &bytes), &bytes)?;
        }
        let message = format!("{}/{}: others change the tag {tag} all the time", self.registry(), self.repository());
        Err(Error::new(ErrorKind::Refused, message).help("try again when nobody else pushes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_fit() {
        assert_eq!(fallback_tag(&Digest::of(b"")), format!("sha256-{}", Digest::of(b"").hex()));
        let long: Digest = format!("sha512:{}", "a".repeat(128)).parse().unwrap();
        assert_eq!(fallback_tag(&long), format!("sha512-{}", "a".repeat(64)));
    }
}
