//! Looks at the bytes of an archive file: which members there are, and whether every header, padding and the end are what
//! `save` writes. Goes on behind what is damaged.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use tar::{EntryType, Header};

use super::contents::END;
use super::{ABOUT_FILE, DOCKER_FILE};
use crate::oci::tar::{BLOCK, padding};

/// Most bytes of pax records that are looked at; `save` writes two, of a name and a number.
const RECORDS: u64 = 16 << 10;
/// Blocks that are read at once when the next header is looked for.
const STRIDE: usize = 2048;

/// A member in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    /// Of the header.
    pub(super) header: u64,
    /// Of the content.
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Found {
    fn end(&self) -> u64 {
        self.offset + self.size + padding(self.size) as u64
    }
}

/// Something that is not as `save` writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Damage {
    /// Bytes that should be the header of a member.
    Header {
        /// Where.
        offset: u64,
        /// Name of the member before it.
        after: Option<String>,
    },
    /// Bytes after a member's content that are not zero.
    Padding {
        /// The member.
        name: String,
        /// Of the first such byte.
        offset: u64,
    },
    /// The file ends in the middle.
    Cut {
        /// The member in which it ends, when that is known.
        name: Option<String>,
        /// Bytes that are there.
        length: u64,
        /// Bytes that this member would need at least.
        wanted: u64,
    },
    /// Bytes after the end.
    Trailing {
        /// Of the first.
        offset: u64,
    },
}

/// Reads all headers.
pub(super) fn scan(file: &File, length: u64) -> io::Result<(Vec<Found>, Vec<Damage>)> {
    let (mut found, mut damages): (Vec<Found>, Vec<Damage>) = (Vec::new(), Vec::new());
    let mut at = 0;
    loop {
        let last = found.last().map(|member: &Found| member.name.clone());
        if length < at + BLOCK {
            let name = None;
            damages.push(Damage::Cut { name, length, wanted: at + END });
            return Ok((found, damages));
        }
        match member(file, at, length)? {
            Next::Member(member) if member.end() > length => {
                let wanted = member.end() + END;
                damages.push(Damage::Cut { name: Some(member.name), length, wanted });
                return Ok((found, damages));
            }
            Next::Member(member) => {
                if let Some(offset) = not_zero(file, member.offset + member.size, member.end())? {
                    damages.push(Damage::Padding { name: member.name.clone(), offset });
                }
                at = member.end();
                found.push(member);
            }
            Next::Cut(wanted) => {
                damages.push(Damage::Cut { name: None, length, wanted });
                return Ok((found, damages));
            }
            Next::Zeros => {
                // The end, unless there are members behind it.
                if let Some(next) = resync(file, at + BLOCK, length)? {
                    damages.push(Damage::Header { offset: at, after: last });
                    at = next;
                    continue;
                }
                if length < at + END {
                    damages.push(Damage::Cut { name: None, length, wanted: at + END });
                } else if length > at + END {
                    damages.push(Damage::Trailing { offset: at + END });
                } else if let Some(offset) = not_zero(file, at, length)? {
                    damages.push(Damage::Trailing { offset });
                }
                return Ok((found, damages));
            }
            Next::Strange => {
                // With nothing behind it, it may be the end that is damaged.
                match resync(file, at + BLOCK, length)? {
                    Some(next) => {
                        damages.push(Damage::Header { offset: at, after: last });
                        at = next;
                    }
                    None if length == at + END => {
                        damages.push(Damage::Trailing { offset: not_zero(file, at, length)?.unwrap_or(at) });
                        return Ok((found, damages));
                    }
                    None => {
                        damages.push(Damage::Header { offset: at, after: last });
                        return Ok((found, damages));
                    }
                }
            }
        }
    }
}

/// What begins at an offset.
enum Next {
    Member(Found),
    Zeros,
    /// A header that would go on behind the end of the file.
    Cut(u64),
    Strange,
}

fn member(file: &File, at: u64, length: u64) -> io::Result<Next> {
    let mut block = [0; BLOCK as usize];
    file.read_exact_at(&mut block, at)?;
    if block.iter().all(|byte| *byte == 0) {
        return Ok(Next::Zeros);
    }
    let Some(first) = header(&block) else { return Ok(Next::Strange) };
    let (name, size) = if first.entry_type() == EntryType::XHeader {
        let Some(records) = first.entry_size().ok().filter(|size| *size <= RECORDS) else { return Ok(Next::Strange) };
        let after = at + BLOCK + records + padding(records) as u64;
        if after + BLOCK > length {
            return Ok(Next::Cut(after + BLOCK));
        }
        let mut text = vec![0; records as usize];
        file.read_exact_at(&mut text, at + BLOCK)?;
        file.read_exact_at(&mut block, after)?;
        let Some(second) = header(&block) else { return Ok(Next::Strange) };
        let value = |key: &str| {
            tar::PaxExtensions::new(&text).flatten().find(|r| r.key() == Ok(key)).and_then(|r| r.value().ok())
        };
        let name = value("path").map_or_else(|| plain(second), |name| Some(name.to_owned()));
        let size = match value("size") {
            Some(size) => size.parse().ok(),
            None => second.entry_size().ok(),
        };
        (name, size)
    } else {
        (plain(first), first.entry_size().ok())
    };
    let (Some(name), Some(size)) = (name.filter(|name| is_ours(name)), size) else { return Ok(Next::Strange) };
    // What is said has to be said as `save` says it, in every byte.
    let wanted = super::header(&name, size);
    let mut there = vec![0; wanted.len()];
    if at + wanted.len() as u64 > length {
        return Ok(Next::Strange);
    }
    file.read_exact_at(&mut there, at)?;
    if there != wanted || size.checked_add(at).is_none_or(|end| end > 1 << 62) {
        return Ok(Next::Strange);
    }
    Ok(Next::Member(Found { name, header: at, offset: at + wanted.len() as u64, size }))
}

/// A header whose own sum is right.
fn header(block: &[u8; BLOCK as usize]) -> Option<&Header> {
    let header = Header::from_byte_slice(block);
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    // The sum is taken with blanks in its own place.
    let own = sum(&block[..148]) + 8 * u32::from(b' ') + sum(&block[156..]);
    header.cksum().is_ok_and(|written| written == own).then_some(header)
}

fn plain(header: &Header) -> Option<String> {
    String::from_utf8(header.path_bytes().into_owned()).ok()
}

/// Whether an archive may have a member of this name.
pub(super) fn is_ours(name: &str) -> bool {
    let top = ["oci-layout", "index.json", DOCKER_FILE, ABOUT_FILE];
    let below = ["flux-gen/", "blobs/sha256/", "blobs/sha512/"].iter().any(|folder| name.starts_with(folder));
    let plain = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    plain && (top.contains(&name) || below)
}

/// The next header from an offset on.
fn resync(file: &File, mut at: u64, length: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; STRIDE * BLOCK as usize];
    while at + BLOCK <= length {
        let most = usize::try_from(length - at).unwrap_or(buffer.len()).min(buffer.len());
        let most = most - most % BLOCK as usize;
        file.read_exact_at(&mut buffer[..most], at)?;
        for block in buffer[..most].chunks_exact(BLOCK as usize) {
            // A cheap look first: there may be gigabytes of content to skip.
            if block[257..262] == *b"ustar" && matches!(member(file, at, length)?, Next::Member(_)) {
                return Ok(Some(at));
            }
            at += BLOCK;
        }
    }
    Ok(None)
}

/// The first byte of a range that is not zero.
fn not_zero(file: &File, mut at: u64, end: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; 1 << 16];
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(buffer.len()).min(buffer.len());
        file.read_exact_at(&mut buffer[..most], at)?;
        if let Some(index) = buffer[..most].iter().position(|byte| *byte != 0) {
            return Ok(Some(at + index as u64));
        }
        at += most as u64;
    }
    Ok(None)
}
