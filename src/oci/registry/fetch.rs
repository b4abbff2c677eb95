//! Reading blobs: a stream that goes on where a connection broke.

use std::io::{self, Read};

use super::super::descriptor::Descriptor;
use super::super::error::Error;
use super::client::Client;
use super::repository::Repository;
use super::transport::{Failure, Method, Response};

/// The bytes of a blob.
pub struct BlobReader {
    repository: Repository,
    descriptor: Descriptor,
    at: u64,
    body: Box<dyn Read + Send>,
    /// How often it broke without a byte in between.
    stuck: usize,
}

impl std::fmt::Debug for BlobReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlobReader").field("descriptor", &self.descriptor).field("at", &self.at).finish_non_exhaustive()
    }
}

impl BlobReader {
    pub(super) fn open(repository: Repository, descriptor: &Descriptor, offset: u64) -> Result<Self, Error> {
        let body = request(&repository, descriptor, offset)?;
        Ok(Self { repository, descriptor: descriptor.clone(), at: offset, body, stuck: 0 })
    }

    /// Connects again at the present place, as often as a request is tried.
    fn reconnect(&mut self, why: Failure) -> io::Result<()> {
        self.stuck += 1;
        if self.stuck >= self.repository.client.options.retry.attempts || !why.may_pass() {
            let action = format!("read blob {}", self.descriptor.digest);
            let call = self.repository.call(Method::Get, "", action).map_err(Error::into_io)?;
            return Err(Client::failed(&call, why).into_io());
        }
        self.repository.client.wait(self.stuck);
        self.body = request(&self.repository, &self.descriptor, self.at).map_err(Error::into_io)?;
        Ok(())
    }
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let why = match self.body.read(buffer) {
                Ok(0) if self.at < self.descriptor.size => Failure::Broken("it ended too early".to_owned()),
                Ok(count) => {
                    self.at += count as u64;
                    if count > 0 {
                        self.stuck = 0;
                    }
                    return Ok(count);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => Failure::of(ureq::Error::from(e)),
            };
            self.reconnect(why)?;
        }
    }
}

/// The body from an offset on.
fn request(repository: &Repository, descriptor: &Descriptor, offset: u64) -> Result<Box<dyn Read + Send>, Error> {
    let digest = &descriptor.digest;
    let mut call = repository.call(Method::Get, &format!("blobs/{digest}"), format!("read blob {digest}"))?;
    if offset > 0 {
        if offset >= descriptor.size {
            return Ok(Box::new(io::empty()));
        }
        call.headers.push(("range", format!("bytes={offset}-")));
    }
    let answer = repository.client.send(&call)?;
    match answer.status {
        206 if offset > 0 => match starts_at(&answer) {
            Some(start) if start == offset => Ok(Box::new(answer.body.into_reader())),
            _ => Err(Client::strange(&call, 206, "it sends another part of the blob than was asked for")),
        },
        200 => {
            let mut reader = answer.body.into_reader();
            // A registry that does not know ranges sends all of it.
            let skipped = io::copy(&mut (&mut reader).take(offset), &mut io::sink());
            skipped.map_err(|e| Client::failed(&call, Failure::of(ureq::Error::from(e))))?;
            Ok(Box::new(reader))
        }
        404 => Err(Error::missing(&format!("{}/{}", repository.registry, repository.name), digest)),
        400..=599 => Err(repository.client.refused(&call, answer)),
        status => Err(Client::strange(&call, status, "it answers a request for a blob with something else")),
    }
}

/// First offset of `Content-Range: bytes 5-9/10`.
fn starts_at(answer: &Response) -> Option<u64> {
    let range = answer.header("content-range")?.strip_prefix("bytes ")?;
    range.split_once('-')?.0.trim().parse().ok()
}
