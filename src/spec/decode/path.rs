//! Where in a document a value stands, as people write it.

use std::fmt::{self, Display, Formatter};

/// A path such as `spec.containers[0].environment.PATH`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Path(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Index(usize),
}

impl Path {
    pub(crate) fn push_key(&mut self, key: &str) {
        self.0.push(Step::Key(key.to_owned()));
    }

    pub(crate) fn push_index(&mut self, index: usize) {
        self.0.push(Step::Index(index));
    }

    pub(crate) fn pop(&mut self) {
        self.0.pop();
    }

    /// The path, or what to call the whole document.
    pub(crate) fn name(&self) -> String {
        if self.0.is_empty() { "the document".to_owned() } else { self.to_string() }
    }

    /// The path of a key under this one.
    pub(crate) fn child(&self, key: &str) -> String {
        let mut path = self.clone();
        path.push_key(key);
        path.to_string()
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for step in &self.0 {
            match step {
                Step::Key(key)
                    if key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') && !key.is_empty() =>
                {
                    write!(f, "{}{key}", if first { "" } else { "." })?;
                }
                Step::Key(key) => write!(f, "[{key:?}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
            first = false;
        }
        Ok(())
    }
}
