//! The client's end of a broker's local socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::Failure;

/// A connection to a broker.
pub struct Client {
    writer: UnixStream,
    reader: BufReader<UnixStream>,
}

/// The socket of a `local://` URI.
///
/// # Errors
/// Another scheme.
pub fn socket(uri: &str) -> Result<String, String> {
    let path = uri.strip_prefix("local://").ok_or_else(|| format!("{uri}: stub-flux knows local:// URIs only"))?;
    Ok(path.to_owned())
}

impl Client {
    /// Connects to `FLUX_URI`.
    ///
    /// # Errors
    /// No broker answers there.
    pub fn new(command: &str) -> Result<Self, Failure> {
        let uri = std::env::var("FLUX_URI").unwrap_or_else(|_| "local:///run/flux/local".to_owned());
        Client::connect(command, &uri)
    }

    /// Connects to a URI.
    ///
    /// # Errors
    /// No broker answers there.
    pub fn connect(command: &str, uri: &str) -> Result<Self, Failure> {
        let path = socket(uri).map_err(|e| format!("flux-{command}: {e}"))?;
        let fail = |e: std::io::Error| format!("flux-{command}: {uri}: {}", crate::cert::describe(&e));
        let writer = UnixStream::connect(path).map_err(fail)?;
        let reader = BufReader::new(writer.try_clone().map_err(fail)?);
        Ok(Client { writer, reader })
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The broker is gone.
    pub fn send(&mut self, request: &Value) -> Result<(), String> {
        writeln!(self.writer, "{request}").map_err(|e| e.to_string())
    }

    /// The next line of an answer; `None` when the broker ended.
    ///
    /// # Errors
    /// What the broker answered as an error.
    pub fn receive(&mut self) -> Result<Option<Value>, String> {
        let mut line = String::new();
        self.reader.read_line(&mut line).map_err(|e| e.to_string())?;
        if line.is_empty() {
            return Ok(None);
        }
        let answer: Value = serde_json::from_str(&line).map_err(|e| e.to_string())?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(error.to_owned()),
            None => Ok(Some(answer)),
        }
    }

    /// A request with one answer.
    ///
    /// # Errors
    /// The broker is gone, or what it answered as an error.
    pub fn ask(&mut self, request: &Value) -> Result<Value, String> {
        self.send(request)?;
        self.receive()?.ok_or_else(|| "the broker is gone".to_owned())
    }
}
