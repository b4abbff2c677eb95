//! The tar stream of a layer (POSIX.1-2017 pax). Only names, modes, links and contents of the tree are in it: owner 0, no names
//! of users, one time for all.

use std::borrow::Cow;
use std::io::{Read, Write};

use tar::EntryType;

use super::{Item, ItemKind, Layer, PackError};
use crate::oci::tar::{BLOCK, Entry, padding};
use crate::view::entry::{Content, shown};

/// What one read of a file takes.
const BUFFER: usize = 256 << 10;

/// Writes a layer. `time`: modification time of every entry, in seconds since 1970.
pub(super) fn write(layer: &Layer<'_>, time: u64, out: &mut impl Write) -> Result<(), PackError> {
    let mut buffer = vec![0; BUFFER];
    for item in &layer.items {
        header(item, time, out)?;
        if let ItemKind::File(content) = item.kind {
            copy(content, item.path, &mut buffer, out)?;
        }
    }
    out.write_all(&[0; 2 * BLOCK as usize]).map_err(PackError::Write)
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
    let zeros = [0; BLOCK as usize];
    out.write_all(&zeros[..padding(size)]).map_err(PackError::Write)
}

fn header(item: &Item<'_>, time: u64, out: &mut impl Write) -> Result<(), PackError> {
    let mut name = Cow::Borrowed(item.path);
    let (kind, link, size) = match item.kind {
        ItemKind::Folder => {
            name.to_mut().push(b'/');
            (EntryType::Directory, &[][..], 0)
        }
        ItemKind::File(content) => (EntryType::Regular, &[][..], content.size),
        ItemKind::Link(target) => (EntryType::Symlink, target, 0),
        ItemKind::HardLink(target) => (EntryType::Link, target, 0),
    };
    let named = |(key, value): &(Vec<u8>, Vec<u8>)| ([b"SCHILY.xattr.", key.as_slice()].concat(), value.clone());
    let records: Vec<_> = item.xattrs.iter().map(named).collect();
    let entry = Entry { name: &name, link, kind, mode: item.mode, size, time, records: &records };
    out.write_all(&entry.header()).map_err(PackError::Write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::entry;

    /// Largest size that fits into a header.
    const LARGEST: u64 = 0o777_7777_7777;

    fn item<'a>(path: &'a [u8], kind: ItemKind<'a>) -> Item<'a> {
        Item { path, mode: 0o644, xattrs: &[], kind }
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
        let content = entry::Entry::made(b"abc", 0o644).content().unwrap().clone();
        let xattrs = [(b"security.capability".to_vec(), vec![1, 0, 2])];
        let items = vec![
            item(&long, ItemKind::File(&content)),
            item(&hundred, ItemKind::Folder),
            item(&odd, ItemKind::Link(&long)),
            item(&long_odd, ItemKind::HardLink(&long)),
            Item { xattrs: &xattrs, ..item(b"x", ItemKind::File(&content)) },
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
        let facts = entry::Facts::of(&std::fs::metadata(&path).unwrap());
        let source = entry::Source::Disk { path, facts };
        let content = Content { size: LARGEST + 2, source, shared: None };
        let mut head = Head::default();
        let result = write(&Layer { items: vec![item(b"huge", ItemKind::File(&content))] }, 0, &mut head);
        assert!(matches!(result, Err(PackError::Write(_))), "the writer stops after 64 KiB");
        let mut archive = tar::Archive::new(head.0.as_slice());
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(entry.size(), 8_589_934_593);
    }
}
