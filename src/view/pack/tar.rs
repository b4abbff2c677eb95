//! The tar stream of a layer (POSIX.1-2017 pax). Only names, modes, links and contents of the tree are in it: owner 0, no names
//! of users, one time for all.

use std::io::{Read, Write};

use tar::{EntryType, Header};

use super::{Item, ItemKind, Layer, PackError};
use crate::view::entry::{Content, shown};

const BLOCK: usize = 512;
/// Longest name that fits into a header.
const NAME: usize = 100;
/// Largest number of eleven octal digits: larger files need a pax record.
const LARGEST: u64 = 0o777_7777_7777;
/// What one read of a file takes.
const BUFFER: usize = 256 << 10;

/// Writes a layer. `time`: modification time of every entry, in seconds since 1970.
pub(super) fn write(layer: &Layer, time: u64, out: &mut impl Write) -> Result<(), PackError> {
    let mut buffer = vec![0; BUFFER];
    for item in &layer.items {
        header(item, time, out)?;
        if let ItemKind::File(content) = &item.kind {
            copy(content, &item.path, &mut buffer, out)?;
        }
    }
    out.write_all(&[0; 2 * BLOCK]).map_err(PackError::Write)
}

fn copy(content: &Content, path: &[u8], buffer: &mut [u8], out: &mut impl Write) -> Result<(), PackError> {
    let failed = |error| PackError::Read { path: shown(path), error };
    let mut reader = content.open().map_err(failed)?;
    let mut left = content.size;
    while left > 0 {
        let read = reader.read(buffer).map_err(failed)?;
        if read == 0 {
            return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
        }
        out.write_all(&buffer[..read]).map_err(PackError::Write)?;
        left -= read as u64;
    }
    reader.check_unchanged().map_err(failed)?;
    pad(content.size, out)
}

fn pad(size: u64, out: &mut impl Write) -> Result<(), PackError> {
    let over = (size % BLOCK as u64) as usize;
    let zeros = [0; BLOCK];
    out.write_all(&zeros[..(BLOCK - over) % BLOCK]).map_err(PackError::Write)
}

/// The header of an entry, and a pax one before it when something does not fit.
fn header(item: &Item, time: u64, out: &mut impl Write) -> Result<(), PackError> {
    let mut name = item.path.clone();
    let (kind, link, size) = match &item.kind {
        ItemKind::Folder => {
            name.push(b'/');
            (EntryType::Directory, &[][..], 0)
        }
        ItemKind::File(content) => (EntryType::Regular, &[][..], content.size),
        ItemKind::Link(target) => (EntryType::Symlink, target.as_slice(), 0),
        ItemKind::HardLink(target) => (EntryType::Link, target.as_slice(), 0),
    };
    let mut records = Vec::new();
    for (key, value) in [(&b"path"[..], name.as_slice()), (b"linkpath", link)] {
        if value.len() > NAME {
            record(&mut records, key, value);
        }
    }
    if size > LARGEST {
        record(&mut records, b"size", size.to_string().as_bytes());
    }
    for (key, value) in &item.xattrs {
        record(&mut records, &[b"SCHILY.xattr.", key.as_slice()].concat(), value);
    }
    if !records.is_empty() {
        let length = records.len() as u64;
        block(b"pax", b"", EntryType::XHeader, 0o644, length, time, out)?;
        out.write_all(&records).map_err(PackError::Write)?;
        pad(length, out)?;
    }
    block(&name, link, kind, item.mode, if size > LARGEST { 0 } else { size }, time, out)
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

/// One header block.
fn block(
    name: &[u8],
    link: &[u8],
    kind: EntryType,
    mode: u32,
    size: u64,
    time: u64,
    out: &mut impl Write,
) -> Result<(), PackError> {
    let mut header = Header::new_ustar();
    let fields = header.as_old_mut();
    for (field, text) in [(&mut fields.name, name), (&mut fields.linkname, link)] {
        let fits = text.len().min(NAME);
        field[..fits].copy_from_slice(&text[..fits]);
    }
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header.set_mtime(time.min(LARGEST));
    header.set_entry_type(kind);
    header.set_cksum();
    out.write_all(header.as_bytes()).map_err(PackError::Write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::entry::Entry;

    fn item(path: &[u8], kind: ItemKind) -> Item {
        Item { path: path.to_vec(), mode: 0o644, xattrs: Vec::new(), kind }
    }

    /// A writer that keeps the first bytes and counts the others.
    #[derive(Default)]
    struct Head(Vec<u8>);

    impl Write for Head {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0.len() > 1 << 16 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            self.0.extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn names_that_are_long_or_no_text_come_back() {
        let long = [b"d/".as_slice(), &[b'x'; 200]].concat();
        let hundred = vec![b'h'; 100];
        let odd = b"d/\xff\xfe".to_vec();
        let long_odd = [&[0xff; 150][..], b"z"].concat();
        let content = Entry::made(b"abc", 0o644).content().unwrap().clone();
        let mut with_xattr = item(b"x", ItemKind::File(content.clone()));
        with_xattr.xattrs = vec![(b"security.capability".to_vec(), vec![1, 0, 2])];
        let items = vec![
            item(&long, ItemKind::File(content.clone())),
            item(&hundred, ItemKind::Folder),
            item(&odd, ItemKind::Link(long.clone())),
            item(&long_odd, ItemKind::HardLink(long.clone())),
            with_xattr,
        ];
        let mut bytes = Vec::new();
        write(&Layer { items }, 7, &mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!((entry.header().uid().unwrap(), entry.header().mtime().unwrap()), (0, 7));
            let xattr = entry.pax_extensions().unwrap().into_iter().flatten().map(|e| e.unwrap());
            let xattr = xattr.filter(|e| e.key_bytes().starts_with(b"SCHILY")).map(|e| e.value_bytes().to_vec()).next();
            found.push((entry.path_bytes().into_owned(), entry.link_name_bytes().map(|l| l.into_owned()), xattr));
        }
        let folder = [hundred, b"/".to_vec()].concat();
        assert_eq!(
            found,
            [
                (long.clone(), None, None),
                (folder, None, None),
                (odd, Some(long.clone()), None),
                (long_odd, Some(long), None),
                (b"x".to_vec(), None, Some(vec![1, 0, 2])),
            ]
        );
    }

    #[test]
    fn a_file_above_eight_gib_has_its_size_in_a_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge");
        std::fs::File::create(&path).unwrap().set_len(LARGEST + 2).unwrap();
        let facts = crate::view::entry::Facts::of(&std::fs::metadata(&path).unwrap());
        let source = crate::view::entry::Source::Disk { path, facts };
        let content = Content { size: LARGEST + 2, source, shared: None };
        let mut head = Head::default();
        let result = write(&Layer { items: vec![item(b"huge", ItemKind::File(content))] }, 0, &mut head);
        assert!(matches!(result, Err(PackError::Write(_))), "the writer stops after 64 KiB");
        let mut archive = tar::Archive::new(head.0.as_slice());
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.size(), 8_589_934_593);
    }

    #[test]
    fn lengths_of_records_count_themselves() {
        for length in 1..1100 {
            let mut bytes = Vec::new();
            record(&mut bytes, b"path", &vec![b'x'; length]);
            let written: usize = std::str::from_utf8(&bytes).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert_eq!(written, bytes.len());
        }
    }
}
