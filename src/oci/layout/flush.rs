//! Waiting for the disk beside the work: what is written goes to the disk while more is written, and only the end waits for all.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Most waits at once; one more waits for the oldest, so that no more than these are behind.
const MOST: usize = 8;

type Wait = JoinHandle<io::Result<()>>;

/// Waits that were begun. Clones share them.
#[derive(Debug, Default, Clone)]
pub(super) struct Flushes(Arc<Mutex<VecDeque<Wait>>>);

impl Flushes {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Wait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins one. The error is that of an earlier one, or that none can be begun.
    pub(super) fn begin(&self, wait: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
        let begun = Builder::new().name("flush".to_owned()).spawn(wait)?;
        let mut queue = self.queue();
        queue.push_back(begun);
        let oldest = if queue.len() > MOST { queue.pop_front() } else { None };
        drop(queue);
        oldest.map_or(Ok(()), ended)
    }

    /// Waits for all; the error is the first one's.
    pub(super) fn all(&self) -> io::Result<()> {
        let waits: Vec<Wait> = self.queue().drain(..).collect();
        // All of them, also after an error: nothing goes on behind the caller's back.
        let results: Vec<io::Result<()>> = waits.into_iter().map(ended).collect();
        results.into_iter().collect()
    }
}

fn ended(wait: Wait) -> io::Result<()> {
    wait.join().unwrap_or_else(|_| Err(io::Error::other("a thread stopped")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_end_and_the_first_error_is_told() {
        let flushes = Flushes::default();
        let done = Arc::new(Mutex::new(0));
        for number in 0..5 {
            let done = Arc::clone(&done);
            let wait = move || {
                *done.lock().unwrap() += 1;
                if number < 3 { Ok(()) } else { Err(io::Error::other(format!("{number}"))) }
            };
            flushes.clone().begin(wait).unwrap();
        }
        assert_eq!(flushes.all().unwrap_err().to_string(), "3");
        assert_eq!(*done.lock().unwrap(), 5);
        assert!(flushes.all().is_ok());
        // An error is not lost when so many are begun that the oldest has to end.
        let begun: Vec<io::Result<()>> =
            (0..=MOST).map(|_| flushes.begin(|| Err(io::ErrorKind::StorageFull.into()))).collect();
        assert!(begun[..MOST].iter().all(Result::is_ok) && begun[MOST].is_err());
        assert!(flushes.all().is_err());
    }
}
