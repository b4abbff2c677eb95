//! What files of a tree need to run: programs and libraries, and scripts.

use std::collections::BTreeMap;
use std::io;

use super::elf::{self, Elf};
use super::entry::{Content, TreePath};

/// Bytes of the first line that the kernel reads (`BINPRM_BUF_SIZE`).
const FIRST_LINE: usize = 256;

/// What one file needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program or library.
    Elf(Elf),
    /// A script that may be run: what stands after `#!`.
    Script(String),
}

/// What files need, by path.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// Programs and libraries.
    pub elves: BTreeMap<TreePath, Elf>,
    /// Scripts that may be run, with what stands after `#!`.
    pub scripts: BTreeMap<TreePath, String>,
}

impl Extend<(TreePath, Program)> for Programs {
    fn extend<T: IntoIterator<Item = (TreePath, Program)>>(&mut self, found: T) {
        for (path, program) in found {
            match program {
                Program::Elf(elf) => {
                    self.elves.insert(path, elf);
                }
                Program::Script(line) => {
                    self.scripts.insert(path, line);
                }
            }
        }
    }
}

impl FromIterator<(TreePath, Program)> for Programs {
    fn from_iter<T: IntoIterator<Item = (TreePath, Program)>>(found: T) -> Self {
        let mut programs = Self::default();
        programs.extend(found);
        programs
    }
}

/// Reads what a file needs; `None` when it is neither. A file that may not be run is no script, whatever its first line says:
/// python's own modules have one too.
///
/// # Errors
/// When the file cannot be read.
pub fn read(content: &Content, mode: u32) -> io::Result<Option<Program>> {
    if mode & 0o111 != 0 && content.size > 2 {
        let start =
            content.open()?.read_range(0, FIRST_LINE.min(usize::try_from(content.size).unwrap_or(FIRST_LINE)))?;
        if let Some(rest) = start.strip_prefix(b"#!") {
            let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
            return Ok(Some(Program::Script(String::from_utf8_lossy(line).trim().to_owned())));
        }
    }
    Ok(elf::read(content)?.map(Program::Elf))
}
