//! The plain bytes of an archive. Those of a compressed one are made when the first of them is asked for: when nothing of it
//! has changed since an earlier build, nobody asks.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes the plain bytes.
type Open = Box<dyn Fn() -> io::Result<Arc<File>> + Send>;

/// A plain tar archive, made or to be made.
pub struct PlainTar {
    identity: Arc<str>,
    state: Mutex<State>,
}

enum State {
    Open(Arc<File>),
    Later(Open),
}

impl fmt::Debug for PlainTar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainTar").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl PlainTar {
    /// One that is there. `identity` tells it from others.
    #[must_use]
    pub fn of(file: File, identity: Arc<str>) -> Arc<Self> {
        Arc::new(Self { identity, state: Mutex::new(State::Open(Arc::new(file))) })
    }

    /// One that `open` makes when it is needed. It has to fail when the bytes are not those of `identity`.
    #[must_use]
    pub fn later(identity: Arc<str>, open: impl Fn() -> io::Result<Arc<File>> + Send + 'static) -> Arc<Self> {
        Arc::new(Self { identity, state: Mutex::new(State::Later(Box::new(open))) })
    }

    /// What tells it from another archive.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Its bytes.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn file(&self) -> io::Result<Arc<File>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &*state {
            State::Open(file) => return Ok(Arc::clone(file)),
            State::Later(open) => open()?,
        };
        *state = State::Open(Arc::clone(&file));
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn made_once_and_only_when_it_is_needed() {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let tar = PlainTar::later("x".into(), move || {
            // The first attempt fails.
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(Arc::new(tempfile::tempfile()?))
        });
        assert_eq!((tar.identity(), calls.load(Ordering::Relaxed)), ("x", 0));
        assert!(tar.file().is_err());
        assert!(tar.file().is_ok() && tar.file().is_ok());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
