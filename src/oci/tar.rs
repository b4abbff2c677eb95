//! Headers of tar archives (POSIX.1-2017, ustar with pax records) that are a function of what they describe: the same entry
//! gives the same bytes, so a header can be made again and compared.

use tar::{EntryType, Header};

/// Size of a block; everything in an archive is padded to it.
pub(crate) const BLOCK: u64 = 512;
/// Longest name that fits into a header.
const NAME: usize = 100;
/// Largest number of eleven octal digits: larger files need a pax record.
const LARGEST: u64 = 0o777_7777_7777;
/// Name of the entry that holds pax records.
const RECORDS: &[u8] = b"pax";

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// Path in the archive; folders end in `/`.
    pub(crate) name: &'a [u8],
    /// Target of links.
    pub(crate) link: &'a [u8],
    /// File, folder or link.
    pub(crate) kind: EntryType,
    /// Permissions.
    pub(crate) mode: u32,
    /// Bytes that follow.
    pub(crate) size: u64,
    /// Modification time in seconds since 1970.
    pub(crate) time: u64,
    /// Further pax records.
    pub(crate) records: &'a [(Vec<u8>, Vec<u8>)],
}

impl<'a> Entry<'a> {
    /// A plain file of mode 0644 and time 0.
    pub(crate) fn file(name: &'a str, size: u64) -> Self {
        let kind = EntryType::Regular;
        Self { name: name.as_bytes(), link: b"", kind, mode: 0o644, size, time: 0, records: &[] }
    }

    /// The header, and a pax one before it when something does not fit: a whole number of blocks.
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut records = Vec::new();
        for (key, value) in [(&b"path"[..], self.name), (b"linkpath", self.link)] {
            if value.len() > NAME {
                record(&mut records, key, value);
            }
        }
        if self.size > LARGEST {
            record(&mut records, b"size", self.size.to_string().as_bytes());
        }
        for (key, value) in self.records {
            record(&mut records, key, value);
        }
        let mut header = Vec::new();
        if !records.is_empty() {
            let size = records.len() as u64;
            let pax = Entry { name: RECORDS, link: b"", kind: EntryType::XHeader, mode: 0o644, size, ..self.clone() };
            header.extend(pax.block());
            header.extend(&records);
            header.resize(header.len() + padding(size), 0);
        }
        header.extend(self.block());
        header
    }

    /// One header block.
    fn block(&self) -> [u8; BLOCK as usize] {
        let mut header = Header::new_ustar();
        let fields = header.as_old_mut();
        for (field, text) in [(&mut fields.name, self.name), (&mut fields.linkname, self.link)] {
            let fits = text.len().min(NAME);
            field[..fits].copy_from_slice(&text[..fits]);
        }
        header.set_mode(self.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(if self.size > LARGEST { 0 } else { self.size });
        header.set_mtime(self.time.min(LARGEST));
        header.set_entry_type(self.kind);
        header.set_cksum();
        *header.as_bytes()
    }
}

/// Zero bytes after content of this size.
pub(crate) fn padding(size: u64) -> usize {
    ((BLOCK - size % BLOCK) % BLOCK) as usize
}

/// A record: its own length, a blank, `key=value`, a line end.
fn record(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    records.extend(length.to_string().as_bytes());
    records.push(b' ');
    records.extend(key);
    records.push(b'=');
    records.extend(value);
    records.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_records_count_themselves() {
        for length in 1..1100 {
            let mut bytes = Vec::new();
            record(&mut bytes, b"path", &vec![b'x'; length]);
            let written: usize = std::str::from_utf8(&bytes).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert_eq!(written, bytes.len());
        }
    }

    #[test]
    fn headers_are_whole_blocks_and_read_back() {
        let long = "d/".to_owned() + &"é".repeat(80);
        for (name, size, blocks) in
            [("a", 0, 1), (&"x".repeat(100), 7, 1), (&"x".repeat(101), 7, 3), (&long, 7, 3), ("a", LARGEST + 1, 3)]
        {
            let header = Entry::file(name, size).header();
            assert_eq!(header.len() as u64, blocks * BLOCK, "{name}");
            let mut archive = tar::Archive::new(header.as_slice());
            let entry = archive.entries().unwrap().next().unwrap().unwrap();
            assert_eq!((entry.path_bytes().as_ref(), entry.size()), (name.as_bytes(), size));
        }
    }
}
