//! Blobs into a registry: looked for first, mounted if another repository has them, else sent in one PUT. Pieces (PATCH) are
//! for registries and proxies that refuse one PUT: they are slower, and some registries lose data with them.

use std::io::Read;
use std::time::Duration;

use url::Url;

use super::super::descriptor::Descriptor;
use super::super::digest::Digest;
use super::super::error::{Error, ErrorKind};
use super::super::source::{self, Source};
use super::client::{Call, Client, Retry, Unanswered, passes, retry_after};
use super::repository::Repository;
use super::transport::{Body, Method, Open, Response};

/// How a blob came to be in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was there.
    Present,
    /// Taken from another repository of the registry.
    Mounted {
        /// That repository.
        from: String,
    },
    /// Sent.
    Uploaded,
}

/// Gets the number of bytes that are sent so far; it goes back when an upload starts again.
pub type Progress<'a> = &'a (dyn Fn(u64) + Sync);

/// Why one try of an upload ended.
enum Stop {
    /// For good.
    Final(Error),
    /// Another try may work, after the time that the registry asked for.
    Passing(Error, Option<Duration>),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// An upload that the registry has agreed to.
struct Session {
    url: Url,
    /// Fewest bytes of a piece (`OCI-Chunk-Min-Length`).
    least: u64,
}

/// How an upload begins.
enum Begin {
    /// With a session.
    Session(Session),
    /// The registry gave no address for a session: one POST with everything is left.
    Nowhere,
    /// The blob is there now.
    Done(Outcome),
}

impl Repository {
    /// Brings a blob into the repository. `mount_from` are repositories of the same registry that may have it.
    ///
    /// # Errors
    /// When the source cannot be read or is not what its digest says, or the registry refuses it.
    pub fn upload(
        &self,
        source: &dyn Source,
        blob: &Descriptor,
        mount_from: &[String],
        progress: Progress<'_>,
    ) -> Result<Outcome, Error> {
        if self.blob(&blob.digest)?.is_some() {
            return Ok(Outcome::Present);
        }
        let mut retry = self.client.retry();
        let mut mount_from = mount_from;
        loop {
            match self.try_upload(source, blob, mount_from, progress) {
                Ok(outcome) => return Ok(outcome),
                Err(Stop::Final(error)) => return Err(error),
                Err(Stop::Passing(error, asked)) => {
                    progress(0);
                    if !retry.again(asked) {
                        return Err(error);
                    }
                    // The answer may be all that was lost.
                    if self.blob(&blob.digest)?.is_some() {
                        progress(blob.size);
                        return Ok(Outcome::Uploaded);
                    }
                    mount_from = &[];
                }
            }
        }
    }

    fn try_upload(
        &self,
        source: &dyn Source,
        blob: &Descriptor,
        mount_from: &[String],
        progress: Progress<'_>,
    ) -> Result<Outcome, Stop> {
        let begin = match self.mount(blob, mount_from)? {
            Some(begin) => begin,
            None => self.begin(blob)?,
        };
        match begin {
            Begin::Done(outcome) => Ok(outcome),
            Begin::Nowhere => {
                let mut url = self.client.url(&self.registry, &format!("{}/blobs/uploads/", self.name))?;
                url.query_pairs_mut().append_pair("digest", &blob.digest.to_string());
                match self.send_whole(Method::Post, url, source, blob, progress)? {
                    Whole::Stored => Ok(Outcome::Uploaded),
                    Whole::Refused(error) => Err(Stop::Final(error)),
                }
            }
            Begin::Session(session) => {
                let mut url = session.url.clone();
                url.query_pairs_mut().append_pair("digest", &blob.digest.to_string());
                match self.send_whole(Method::Put, url, source, blob, progress)? {
                    Whole::Stored => Ok(Outcome::Uploaded),
                    Whole::Refused(_) => {
                        progress(0);
                        self.send_pieces(source, blob, progress).map(|()| Outcome::Uploaded)
                    }
                }
            }
        }
    }

    fn uploads<'a>(&'a self, blob: &Descriptor) -> Result<Call<'a>, Error> {
        self.call(Method::Post, "blobs/uploads/", format!("begin the upload of blob {}", blob.digest))
    }

    /// Takes the blob from another repository; a registry that cannot do that begins an upload instead (202).
    fn mount(&self, blob: &Descriptor, from: &[String]) -> Result<Option<Begin>, Stop> {
        let mut candidates: Vec<&String> = from.iter().filter(|from| **from != self.name).collect();
        if candidates.len() > 1 {
            // A wrong guess would begin an upload, so one of several is looked at first.
            candidates.retain(|from| self.elsewhere(from, &blob.digest));
        }
        for from in candidates {
            let mut call = self.uploads(blob)?;
            call.url.query_pairs_mut().append_pair("mount", &blob.digest.to_string()).append_pair("from", from);
            let answer = self.client.send(&call)?;
            match answer.status {
                201 => return Ok(Some(Begin::Done(Outcome::Mounted { from: from.clone() }))),
                202 => return self.session(&call, &answer).map(Some),
                // Not allowed to see the other one, or not able to mount: an upload works all the same.
                _ => {}
            }
        }
        Ok(None)
    }

    /// Whether another repository of the registry has a blob, as far as we may know.
    fn elsewhere(&self, name: &str, digest: &Digest) -> bool {
        let other = Self { name: name.to_owned(), ..self.clone() };
        matches!(other.blob(digest), Ok(Some(_)))
    }

    fn begin(&self, blob: &Descriptor) -> Result<Begin, Stop> {
        let call = self.uploads(blob)?;
        let answer = self.client.send(&call)?;
        match answer.status {
            202 => self.session(&call, &answer),
            201 => Ok(Begin::Done(Outcome::Uploaded)),
            _ => Err(Stop::Final(self.client.refused(&call, answer))),
        }
    }

    /// Where the upload goes on.
    fn session(&self, call: &Call<'_>, answer: &Response) -> Result<Begin, Stop> {
        let least = answer.header("oci-chunk-min-length").and_then(|n| n.parse().ok()).unwrap_or(0);
        if let Some(url) = self.location(call, answer)? {
            return Ok(Begin::Session(Session { url, least }));
        }
        match answer.header("docker-upload-uuid").filter(|id| plain_id(id)) {
            Some(id) => {
                let url = self.client.url(&self.registry, &format!("{}/blobs/uploads/{id}", self.name))?;
                Ok(Begin::Session(Session { url, least }))
            }
            None => Ok(Begin::Nowhere),
        }
    }

    /// `Location`, absolute or relative, with its query.
    fn location(&self, call: &Call<'_>, answer: &Response) -> Result<Option<Url>, Error> {
        let Some(location) = answer.header("location").filter(|l| !l.is_empty()) else { return Ok(None) };
        let strange = |why: &str| Client::strange(call, answer.status, why);
        let mut url = call.url.join(location).map_err(|_| strange("the address of the upload is not usable"))?;
        if url.scheme() == "http" && !self.client.is_plain(&self.registry) {
            // A proxy that ends TLS and does not say so to the registry behind it.
            let same = url.host_str() == call.url.host_str() && url.port().is_none();
            if !same || url.set_scheme("https").is_err() {
                return Err(strange("it wants the upload at an address without TLS"));
            }
        }
        if !matches!(url.scheme(), "https" | "http") {
            return Err(strange("the address of the upload is not usable"));
        }
        url.set_fragment(None);
        Ok(Some(url))
    }

    /// Everything in one request.
    fn send_whole(
        &self,
        method: Method,
        url: Url,
        source: &dyn Source,
        blob: &Descriptor,
        progress: Progress<'_>,
    ) -> Result<Whole, Stop> {
        let counted = Counted { source, blob, part: None, progress };
        let mut call = self.call(method, "", format!("upload blob {}", blob.digest))?;
        call.url = url;
        call.headers.push(("content-type", "application/octet-stream".to_owned()));
        call.body = Body::Stream { size: blob.size, open: &counted };
        let answer = self.once(&call)?;
        match answer.status {
            200 | 201 | 204 => {
                self.check_stored(blob, &answer)?;
                Ok(Whole::Stored)
            }
            status if passes(status) => Err(self.passing(&call, answer)),
            // The session is gone.
            404 | 416 => Err(self.passing(&call, answer)),
            400 | 405 | 411 | 413 | 501 => {
                let error = self.client.refused(&call, answer);
                let codes = error.request().map(|r| r.codes.clone()).unwrap_or_default();
                if codes.iter().any(|code| code == "DIGEST_INVALID" || code == "NAME_INVALID") {
                    return Err(Stop::Final(error));
                }
                Ok(Whole::Refused(error))
            }
            _ => Err(Stop::Final(self.client.refused(&call, answer))),
        }
    }

    fn passing(&self, call: &Call<'_>, answer: Response) -> Stop {
        let asked = retry_after(&answer);
        Stop::Passing(self.client.refused(call, answer), asked)
    }

    /// Sends once; what may pass is for the caller to try again.
    fn once(&self, call: &Call<'_>) -> Result<Response, Stop> {
        self.client.once(call).map_err(|unanswered| match unanswered {
            Unanswered::Error(error) if error.may_pass() => Stop::Passing(error, None),
            Unanswered::Error(error) => Stop::Final(error),
            Unanswered::Failure(failure) if failure.may_pass() => Stop::Passing(Client::failed(call, failure), None),
            Unanswered::Failure(failure) => Stop::Final(Client::failed(call, failure)),
        })
    }

    /// A registry that stored something else is not to be trusted with a tag.
    fn check_stored(&self, blob: &Descriptor, answer: &Response) -> Result<(), Error> {
        let said = answer.header("docker-content-digest").and_then(|d| d.parse::<Digest>().ok());
        match said.filter(|said| said.algorithm() == blob.digest.algorithm() && *said != blob.digest) {
            None => Ok(()),
            Some(said) => {
                let place = format!("{}/{}", self.registry, self.name);
                Err(Error::mismatch(&place, &blob.digest, None, &said, blob.size))
            }
        }
    }

    /// Piece by piece, going on where the registry has got to.
    fn send_pieces(&self, source: &dyn Source, blob: &Descriptor, progress: Progress<'_>) -> Result<(), Stop> {
        let Begin::Session(mut session) = self.begin(blob)? else {
            let message = format!("{}/{} takes neither whole blobs nor pieces", self.registry, self.name);
            return Err(Stop::Final(Error::new(ErrorKind::Protocol, message)));
        };
        let piece = self.client.options.chunk.max(session.least).max(1);
        let mut retry = self.client.retry();
        let mut at = 0;
        while at < blob.size {
            let length = piece.min(blob.size - at);
            match self.send_piece(&mut session, source, blob, (at, length), progress) {
                Ok(next) if next > at => at = next,
                Ok(_) => {
                    let message = format!("{}/{} takes no more pieces of {}", self.registry, self.name, blob.digest);
                    return Err(Stop::Final(Error::new(ErrorKind::Protocol, message)));
                }
                Err(Stop::Passing(error, asked)) => {
                    if !retry.again(asked) {
                        return Err(Stop::Final(error));
                    }
                    at = self.reached(&mut session, blob, &mut retry)?;
                    progress(at);
                }
                Err(stop) => return Err(stop),
            }
        }
        let mut call = self.call(Method::Put, "", format!("end the upload of blob {}", blob.digest))?;
        call.url = session.url.clone();
        call.url.query_pairs_mut().append_pair("digest", &blob.digest.to_string());
        call.headers.push(("content-type", "application/octet-stream".to_owned()));
        let answer = self.once(&call)?;
        match answer.status {
            200 | 201 | 204 => Ok(self.check_stored(blob, &answer)?),
            status if passes(status) || status == 404 => Err(self.passing(&call, answer)),
            _ => Err(Stop::Final(self.client.refused(&call, answer))),
        }
    }

    /// Sends one piece and gives the offset that the registry has got to.
    fn send_piece(
        &self,
        session: &mut Session,
        source: &dyn Source,
        blob: &Descriptor,
        (at, length): (u64, u64),
        progress: Progress<'_>,
    ) -> Result<u64, Stop> {
        let counted = Counted { source, blob, part: Some((at, length)), progress };
        let mut call = self.call(Method::Patch, "", format!("upload a piece of blob {}", blob.digest))?;
        call.url = session.url.clone();
        call.headers.push(("content-type", "application/octet-stream".to_owned()));
        call.headers.push(("content-range", format!("{at}-{}", at + length - 1)));
        call.body = Body::Stream { size: length, open: &counted };
        let answer = self.once(&call)?;
        match answer.status {
            200..=204 => {
                if let Some(url) = self.location(&call, &answer)? {
                    session.url = url;
                }
                Ok(end_of(&answer).unwrap_or(at + length))
            }
            status if passes(status) || status == 416 => Err(self.passing(&call, answer)),
            _ => Err(Stop::Final(self.client.refused(&call, answer))),
        }
    }

    /// Asks how far the registry has got. A session that is gone ends this try of the upload.
    fn reached(&self, session: &mut Session, blob: &Descriptor, retry: &mut Retry<'_>) -> Result<u64, Stop> {
        let mut call =
            self.call(Method::Get, "", format!("ask for the state of the upload of blob {}", blob.digest))?;
        call.url = session.url.clone();
        loop {
            match self.once(&call) {
                Ok(answer) if matches!(answer.status, 200..=204) => {
                    if let Some(url) = self.location(&call, &answer)? {
                        session.url = url;
                    }
                    return Ok(end_of(&answer).unwrap_or(0).min(blob.size));
                }
                Ok(answer) if answer.status == 404 => return Err(self.passing(&call, answer)),
                Ok(answer) if passes(answer.status) => {
                    let asked = retry_after(&answer);
                    if !retry.again(asked) {
                        return Err(Stop::Final(self.client.refused(&call, answer)));
                    }
                }
                Ok(answer) => return Err(Stop::Final(self.client.refused(&call, answer))),
                Err(Stop::Passing(error, _)) => {
                    if !retry.again(None) {
                        return Err(Stop::Final(error));
                    }
                }
                Err(stop) => return Err(stop),
            }
        }
    }
}

/// What became of a whole blob in one request.
enum Whole {
    Stored,
    /// The registry, or a proxy before it, does not take that much at once.
    Refused(Error),
}

/// Ids go into addresses as they are.
fn plain_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 256
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.=".contains(&b))
        && id != ".."
}

/// Number of bytes that the registry has: `Range: 0-9` is ten. `0-0` is what registries say for none.
fn end_of(answer: &Response) -> Option<u64> {
    let range = answer.header("range")?;
    let range = range.strip_prefix("bytes=").unwrap_or(range);
    match range.split_once('-')? {
        ("0", "0") => Some(0),
        ("0", end) => end.trim().parse::<u64>().ok()?.checked_add(1),
        _ => None,
    }
}

/// A blob, or offset and length of a part of it, that tells how far it has been read.
struct Counted<'a> {
    source: &'a dyn Source,
    blob: &'a Descriptor,
    part: Option<(u64, u64)>,
    progress: Progress<'a>,
}

impl Open for Counted<'_> {
    fn open(&self) -> Result<Box<dyn Read + Send + '_>, Error> {
        let (inner, at): (Box<dyn Read + Send>, u64) = match self.part {
            Some((at, length)) => (Box::new(self.source.read(self.blob, at)?.take(length)), at),
            None => (source::open(self.source, self.blob)?, 0),
        };
        Ok(Box::new(Counting { inner, at, progress: self.progress }))
    }
}

struct Counting<'a> {
    inner: Box<dyn Read + Send>,
    at: u64,
    progress: Progress<'a>,
}

impl Read for Counting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.at += count as u64;
        (self.progress)(self.at);
        Ok(count)
    }
}
