//! One repository of a registry: what is there, manifests in and out, tags.

use std::sync::Arc;

use super::super::descriptor::Descriptor;
use super::super::digest::Digest;
use super::super::document::{DOCUMENT_LIMIT, Document, check_size};
use super::super::error::{Error, ErrorKind};
use super::super::media::{self, Kind};
use super::super::reference::Reference;
use super::super::source::{Bytes, Source};
use super::auth::Scopes;
use super::client::{Call, Client};
use super::fetch::BlobReader;
use super::transport::{Body, Method, Response};

/// Most pages of a list.
const PAGES: usize = 10_000;

/// A repository, and what we are allowed to do with it.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(super) client: Arc<Client>,
    pub(super) registry: String,
    pub(super) name: String,
    pub(super) scopes: Scopes,
}

/// What became of a manifest that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Whether the registry keeps the list of referrers itself (`OCI-Subject`).
    pub subject_listed: bool,
}

impl Repository {
    /// To read from.
    #[must_use]
    pub fn to_pull(client: &Arc<Client>, reference: &Reference) -> Self {
        Self::new(client, reference, "pull", &[])
    }

    /// To write to. `mount_from` names other repositories of the same registry that blobs may be taken from; their `pull`
    /// permission becomes part of the token.
    #[must_use]
    pub fn to_push(client: &Arc<Client>, reference: &Reference, mount_from: &[String]) -> Self {
        Self::new(client, reference, "pull,push", mount_from)
    }

    fn new(client: &Arc<Client>, reference: &Reference, actions: &str, more: &[String]) -> Self {
        let name = reference.repository().to_owned();
        let mut scopes = vec![format!("repository:{name}:{actions}")];
        scopes.extend(more.iter().filter(|other| **other != name).map(|other| format!("repository:{other}:pull")));
        Self {
            client: Arc::clone(client),
            registry: reference.registry().to_owned(),
            scopes: Scopes { repository: name.clone(), scopes },
            name,
        }
    }

    /// Host and port.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The repository's name.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.name
    }

    /// A request below `/v2/<name>/`.
    pub(super) fn call<'a>(&'a self, method: Method, path: &str, action: String) -> Result<Call<'a>, Error> {
        let url = self.client.url(&self.registry, &format!("{}/{path}", self.name))?;
        Ok(Call {
            registry: &self.registry,
            repository: &self.name,
            action,
            method,
            url,
            headers: Vec::new(),
            body: Body::None,
            scopes: &self.scopes,
            stays: false,
        })
    }

    fn accepting<'a>(&'a self, method: Method, reference: &str, action: String) -> Result<Call<'a>, Error> {
        let mut call = self.call(method, &format!("manifests/{reference}"), action)?;
        call.headers.push(("accept", media::ACCEPTED.join(", ")));
        Ok(call)
    }

    /// What a tag or digest stands for; `None` when there is nothing of that name.
    ///
    /// # Errors
    /// When the registry does not tell.
    pub fn resolve(&self, reference: &str) -> Result<Option<Descriptor>, Error> {
        let call = self.accepting(Method::Head, reference, format!("look up {reference}"))?;
        let answer = self.client.send(&call)?;
        match answer.status {
            200 => {}
            404 => return Ok(None),
            // Some do not know HEAD here.
            400 | 405 => return Ok(self.manifest(reference)?.map(|(descriptor, _)| descriptor)),
            _ => return Err(self.client.refused(&call, answer)),
        }
        let digest = answer.header("docker-content-digest").and_then(|d| d.parse::<Digest>().ok());
        let digest = digest.or_else(|| reference.parse().ok());
        let size = answer.header("content-length").and_then(|n| n.parse::<u64>().ok());
        match (answer.header("content-type"), digest, size) {
            (Some(media_type), Some(digest), Some(size)) => {
                Ok(Some(Descriptor::new(media::essence(media_type), digest, size)))
            }
            _ => Ok(self.manifest(reference)?.map(|(descriptor, _)| descriptor)),
        }
    }

    /// A manifest or index by tag or digest, as it is; `None` when there is nothing of that name. Asked for by digest it is
    /// checked; by tag it is compared with the digest that the registry names.
    ///
    /// # Errors
    /// When it cannot be read, is larger than 4 MiB, no document, or not what its digest says.
    pub fn manifest(&self, reference: &str) -> Result<Option<(Descriptor, Vec<u8>)>, Error> {
        let call = self.accepting(Method::Get, reference, format!("read manifest {reference}"))?;
        let answer = self.client.send(&call)?;
        match answer.status {
            200 => {}
            404 => return Ok(None),
            _ => return Err(self.client.refused(&call, answer)),
        }
        let media_type = answer.header("content-type").map(media::essence).unwrap_or_default().to_owned();
        let said = answer.header("docker-content-digest").and_then(|d| d.parse::<Digest>().ok());
        let place = format!("{}/{}", self.registry, self.name);
        let bytes = answer.bytes(DOCUMENT_LIMIT).map_err(|e| Client::failed(&call, e))?;
        check_size(&format!("{place}: manifest {reference}"), bytes.len() as u64)?;
        let wanted = reference.parse::<Digest>().ok().or(said);
        if let Some(wanted) = wanted.as_ref().filter(|wanted| !wanted.matches(&bytes)) {
            return Err(Error::mismatch(&place, wanted, None, &Digest::of(&bytes), bytes.len() as u64));
        }
        let document = Document::parse(&format!("{place}: manifest {reference}"), &media_type, &bytes)?;
        let kind = if Kind::of(&media_type) == Kind::Blob { document.media_type() } else { &media_type };
        let digest = wanted.unwrap_or_else(|| Digest::of(&bytes));
        Ok(Some((Descriptor::new(kind, digest, bytes.len() as u64), bytes)))
    }

    /// Whether a blob is there, and its size when the registry says it.
    ///
    /// # Errors
    /// When the registry does not tell.
    pub fn blob(&self, digest: &Digest) -> Result<Option<Option<u64>>, Error> {
        let mut call = self.call(Method::Head, &format!("blobs/{digest}"), format!("look up blob {digest}"))?;
        // Who sends us to a storage has the blob. The storage itself may not know HEAD: its signed addresses are for GET.
        call.stays = true;
        let answer = self.client.send(&call)?;
        match answer.status {
            200 => Ok(Some(answer.header("content-length").and_then(|n| n.parse().ok()))),
            301..=303 | 307 | 308 => Ok(Some(None)),
            // 405: it cannot be asked for, so it is sent.
            404 | 405 => Ok(None),
            _ => Err(self.client.refused(&call, answer)),
        }
    }

    /// Puts a manifest or index under a tag or its digest, after all that it names. A registry that does not know one of these is
    /// asked again: docker-registry loses sight of a manifest for the moment in which somebody else puts the same one, and
    /// storages of several machines take a while to agree.
    ///
    /// # Errors
    /// When the registry refuses it, or took it for another digest.
    pub fn put_manifest(&self, reference: &str, descriptor: &Descriptor, bytes: &[u8]) -> Result<Stored, Error> {
        let mut call = self.call(
            Method::Put,
            &format!("manifests/{reference}"),
            match reference.contains(':') {
                true => format!("put manifest {reference}"),
                false => format!("put manifest {} as {reference}", descriptor.digest),
            },
        )?;
        call.headers.push(("content-type", descriptor.media_type.clone()));
        call.body = Body::Bytes(bytes);
        let mut retry = self.client.retry();
        let answer = loop {
            let answer = self.client.send(&call)?;
            if matches!(answer.status, 200..=204) {
                break answer;
            }
            let refused = self.client.refused(&call, answer);
            if !lacks_a_part(&refused) || !retry.again(None) {
                return Err(refused);
            }
        };
        let stored = answer.header("docker-content-digest").and_then(|d| d.parse::<Digest>().ok());
        if let Some(stored) =
            stored.filter(|stored| stored.algorithm() == descriptor.digest.algorithm() && *stored != descriptor.digest)
        {
            let place = format!("{}/{}", self.registry, self.name);
            return Err(Error::mismatch(&place, &descriptor.digest, None, &stored, descriptor.size));
        }
        Ok(Stored { subject_listed: answer.header("oci-subject").is_some() })
    }

    /// All tags, in the registry's order; none when there is no such repository.
    ///
    /// # Errors
    /// When the registry does not tell.
    pub fn tags(&self) -> Result<Vec<String>, Error> {
        #[derive(serde::Deserialize)]
        struct Page {
            #[serde(default, deserialize_with = "super::super::descriptor::null_is_default")]
            tags: Vec<String>,
        }
        let mut tags = Vec::new();
        self.pages("tags/list?n=1000", "list the tags", |bytes| {
            tags.extend(super::super::document::from_slice::<Page>("list of tags", bytes)?.tags);
            Ok(())
        })?;
        Ok(tags)
    }

    /// Reads a list page by page (`Link: <…>; rel="next"`). `false` when there is nothing of that name.
    pub(super) fn pages(
        &self,
        path: &str,
        action: &str,
        mut page: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        let mut call = self.call(Method::Get, path, action.to_owned())?;
        for _ in 0..PAGES {
            let answer = self.client.send(&call)?;
            match answer.status {
                200 => {}
                404 => return Ok(false),
                _ => return Err(self.client.refused(&call, answer)),
            }
            let next = next_page(&call, &answer)?;
            let bytes = answer.bytes(DOCUMENT_LIMIT).map_err(|e| Client::failed(&call, e))?;
            check_size(action, bytes.len() as u64)?;
            page(&bytes)?;
            match next {
                Some(next) => call.url = next,
                None => return Ok(true),
            }
        }
        Err(Error::new(ErrorKind::Protocol, format!("{}/{}: a list without an end", self.registry, self.name)))
    }

    /// The bytes of a blob; a connection that breaks is taken up where it broke. They are not checked: see
    /// [`super::super::source::open`].
    ///
    /// # Errors
    /// When it is not there or cannot be read.
    pub fn read_blob(&self, descriptor: &Descriptor, offset: u64) -> Result<BlobReader, Error> {
        BlobReader::open(self.clone(), descriptor, offset)
    }
}

/// The next page, which must be of the same registry.
fn next_page(call: &Call<'_>, answer: &Response) -> Result<Option<url::Url>, Error> {
    let Some(link) = answer.header("link") else { return Ok(None) };
    let next = link.split(',').find(|part| part.contains("rel=\"next\"") || part.contains("rel=next"));
    let Some((_, rest)) = next.and_then(|part| part.split_once('<')) else { return Ok(None) };
    let strange = || Client::strange(call, answer.status, "the next page of the list has no usable address");
    let (address, _) = rest.split_once('>').ok_or_else(strange)?;
    let next = call.url.join(address).map_err(|_| strange())?;
    if next.origin() != call.url.origin() || next == call.url {
        return Err(strange());
    }
    Ok(Some(next))
}

impl Source for Repository {
    fn name(&self) -> String {
        format!("{}/{}", self.registry, self.name)
    }

    fn size(&self, descriptor: &Descriptor) -> Result<Option<u64>, Error> {
        if descriptor.kind() == Kind::Blob {
            return Ok(self.blob(&descriptor.digest)?.map(|size| size.unwrap_or(descriptor.size)));
        }
        Ok(self.resolve(&descriptor.digest.to_string())?.map(|found| found.size))
    }

    fn read(&self, descriptor: &Descriptor, offset: u64) -> Result<Bytes, Error> {
        if descriptor.kind() == Kind::Blob {
            return Ok(Box::new(self.read_blob(descriptor, offset)?));
        }
        let Some((_, bytes)) = self.manifest(&descriptor.digest.to_string())? else {
            return Err(Error::missing(&self.name(), &descriptor.digest));
        };
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        Ok(Box::new(std::io::Cursor::new(bytes[from..].to_vec())))
    }
}

/// Whether a registry says that it has not what a manifest names.
fn lacks_a_part(refused: &Error) -> bool {
    let codes = refused.request().map(|request| request.codes.as_slice()).unwrap_or_default();
    codes.iter().any(|code| matches!(code.as_str(), "MANIFEST_BLOB_UNKNOWN" | "BLOB_UNKNOWN" | "MANIFEST_UNKNOWN"))
}
