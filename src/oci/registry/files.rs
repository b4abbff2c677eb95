//! Plain files by URL, with the transport of registries: the same authorities, proxies, time limits and waits, but redirects
//! that lead anywhere and no credentials.

use std::io::{self, Read};
use std::time::Duration;

use url::Url;

use super::super::error::Error;
use super::client::{Retry, passes, retry_after};
use super::options::ClientOptions;
use super::transport::{Body, Failure, Http, Method, Request, Response};

/// Most redirects of one request.
const REDIRECTS: usize = 8;

/// Gets files.
#[derive(Debug)]
pub struct Files {
    http: Http,
    options: ClientOptions,
}

/// A file from some byte on.
pub struct Part {
    /// The bytes; what goes wrong while they are read is said in plain words.
    pub body: Box<dyn Read + Send>,
    /// The place of the first of them.
    pub from: u64,
    /// Bytes of the whole file, when the server says so.
    pub size: Option<u64>,
}

/// Why a request did not give a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFile {
    /// It may work later; with the time that the server asks to wait.
    Again(String, Option<Duration>),
    /// It will not.
    Never(String),
}

impl Files {
    /// Gets files in this way. Plain HTTP is a matter of the URL here; [`ClientOptions::plain_http`] counts for nothing.
    ///
    /// # Errors
    /// When an authority's certificate or a proxy's address cannot be used.
    pub fn new(options: ClientOptions) -> Result<Self, Error> {
        Ok(Self { http: Http::new(&options)?, options })
    }

    /// The waits between the attempts at one file.
    #[must_use]
    pub fn retry(&self) -> Retry<'_> {
        Retry::new(&self.options)
    }

    /// Asks once for a file from byte `from` on. A server that knows no ranges gives all of it: [`Part::from`] says so.
    ///
    /// # Errors
    /// As [`NoFile`] says.
    pub fn get(&self, url: &Url, from: u64) -> Result<Part, NoFile> {
        let mut url = url.clone();
        let range = [("range", format!("bytes={from}-"))];
        let headers = if from > 0 { &range[..] } else { &[] };
        for _ in 0..REDIRECTS {
            let request = Request { method: Method::Get, url: &url, headers, body: Body::None };
            let answer = self.http.send(&request).map_err(no_answer)?;
            match redirect(&url, &answer)? {
                Some(next) => url = next,
                None => return part(answer, from),
            }
        }
        Err(NoFile::Never("too many redirects".to_owned()))
    }
}

fn no_answer(failure: Failure) -> NoFile {
    let passes = failure.may_pass();
    let why = failure.error().to_string();
    if passes { NoFile::Again(why, None) } else { NoFile::Never(why) }
}

/// Where an answer sends us, if it does. What was asked for with TLS is not had without.
fn redirect(from: &Url, answer: &Response) -> Result<Option<Url>, NoFile> {
    if !matches!(answer.status, 301..=303 | 307 | 308) {
        return Ok(None);
    }
    let bad = |why: &str| NoFile::Never(why.to_owned());
    let location = answer.header("location").ok_or_else(|| bad("it redirects to nowhere"))?;
    let next = from.join(location).map_err(|_| bad("it redirects to what is no address"))?;
    match (from.scheme(), next.scheme()) {
        (_, "https") | ("http", "http") => Ok(Some(next)),
        ("https", "http") => Err(bad("it redirects to an address without TLS")),
        _ => Err(bad("it redirects to what is no web address")),
    }
}

fn part(answer: Response, from: u64) -> Result<Part, NoFile> {
    let length = answer.header("content-length").and_then(|l| l.parse::<u64>().ok());
    let starts = format!("bytes {from}-");
    let fits = answer.header("content-range").is_some_and(|range| range.starts_with(&starts));
    let asked = retry_after(&answer);
    match answer.status {
        200 => Ok(Part { body: body(answer), from: 0, size: length }),
        206 if from > 0 && fits => Ok(Part { body: body(answer), from, size: length.map(|l| l + from) }),
        // Nothing is left to send: the file is complete, or it is another one by now.
        416 if from > 0 => Ok(Part { body: Box::new(io::empty()), from, size: None }),
        status if passes(status) => Err(NoFile::Again(format!("the server answers {status}"), asked)),
        status => Err(NoFile::Never(format!("the server answers {status}"))),
    }
}

fn body(answer: Response) -> Box<dyn Read + Send> {
    Box::new(Plain(answer.body.into_reader()))
}

/// A body whose errors are said in plain words.
struct Plain<R>(R);

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let said = |e: io::Error| match e.kind() {
            io::ErrorKind::Interrupted => e,
            _ => io::Error::other(Failure::of(ureq::Error::from(e)).error().to_string()),
        };
        self.0.read(buffer).map_err(said)
    }
}
