//! Container output: conmon writes the CRI format, tests want plain text.
//!
//! One thread follows all files and appends what is new to `STATE/logs/<ns>/<pod>/<container>.log`.

use crate::say::say;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Follows the output of containers.
#[derive(Clone, Default)]
pub struct LogPump(Arc<Mutex<BTreeMap<PathBuf, Follow>>>);

struct Follow {
    plain: PathBuf,
    offset: u64,
}

impl LogPump {
    /// Starts the following thread.
    pub fn start() -> Self {
        let pump = LogPump::default();
        let inner = pump.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(100));
                let mut all = inner.0.lock().unwrap_or_else(PoisonError::into_inner);
                for (source, follow) in all.iter_mut() {
                    if let Err(e) = copy_new(source, follow) {
                        say!("log {}: {e}", source.display());
                    }
                }
            }
        });
        pump
    }

    /// Follows `source` (CRI format) into `plain`.
    pub fn follow(&self, source: &Path, plain: &Path) {
        let follow = Follow { plain: plain.to_owned(), offset: 0 };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(source.to_owned(), follow);
    }

    /// Copies the rest and stops following.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn finish(&self, source: &Path) -> std::io::Result<()> {
        let follow = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(source);
        follow.map_or(Ok(()), |mut f| copy_new(source, &mut f))
    }
}

fn copy_new(source: &Path, follow: &mut Follow) -> std::io::Result<()> {
    let mut file = match File::open(source) {
        Ok(file) => file,
        // conmon has not made it yet.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let size = file.metadata()?.len();
    if size == follow.offset {
        return Ok(());
    }
    file.seek(SeekFrom::Start(follow.offset))?;
    let (text, used) = plain(&mut BufReader::new(file.take(size - follow.offset)))?;
    follow.offset += used;
    if let Some(parent) = follow.plain.parent() {
        std::fs::create_dir_all(parent)?;
    }
    OpenOptions::new().create(true).append(true).open(&follow.plain)?.write_all(&text)
}

/// The text of complete CRI lines (`TIME STREAM F|P TEXT`) and how many bytes they took.
fn plain(reader: &mut impl BufRead) -> std::io::Result<(Vec<u8>, u64)> {
    let (mut text, mut used) = (Vec::new(), 0);
    loop {
        let mut line = Vec::new();
        let n = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok((text, used));
        }
        used += n as u64;
        line.pop();
        let mut fields = line.splitn(4, |b| *b == b' ');
        let tag = fields.nth(2);
        let body = fields.next().unwrap_or_default();
        // A terminal ends lines with CR LF; the CR is no output of the program.
        let body = body.strip_suffix(b"\r").unwrap_or(body);
        text.extend_from_slice(body);
        if tag != Some(b"P") {
            text.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn cri_lines() {
        let raw = b"t stdout F one two\nt stderr P par\nt stdout F tial\r\nt stdout F \nt stdout F cut";
        let (text, used) = plain(&mut &raw[..]).expect("reads");
        assert_eq!(String::from_utf8_lossy(&text), "one two\npartial\n\n");
        assert_eq!(used as usize, raw.len() - "t stdout F cut".len());
    }
}
