//! What an ELF file needs: machine, loader, libraries, versions of glibc. Only the parts that say so are read.

use std::io;

use goblin::container::{Ctx, Endian};
use goblin::elf::dynamic::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ, DT_STRTAB, DT_VERNEED, DT_VERNEEDNUM,
};
use goblin::elf::program_header::{PT_DYNAMIC, PT_INTERP, PT_LOAD};
use goblin::elf::{Dynamic, Header, ProgramHeader};
use serde::{Deserialize, Serialize};

use super::entry::{Content, Reader};
pub use crate::model::fit::Glibc;

/// Most bytes of a table of an ELF file; larger ones are not ELF files of this world.
const LARGEST: u64 = 64 << 20;

/// What an ELF program or library says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elf {
    /// `e_machine`.
    pub machine: u16,
    /// The dynamic loader it asks for (`PT_INTERP`).
    pub interpreter: Option<String>,
    /// Libraries it needs (`DT_NEEDED`).
    pub needed: Vec<String>,
    /// Where it looks for them: `DT_RUNPATH`, else `DT_RPATH`.
    pub search: Vec<String>,
    /// Whether `search` also counts for the libraries that it loads (`DT_RPATH`).
    pub inherited: bool,
    /// The newest version of glibc that it names.
    pub glibc: Option<Glibc>,
    /// Whether it is linked with anything at run time.
    pub dynamic: bool,
}

/// Reads an ELF program or library; `None` for all other files, object files (`.o`) included.
///
/// # Errors
/// When the file cannot be read. A damaged ELF file is none.
pub fn read(content: &Content) -> io::Result<Option<Elf>> {
    if content.size < 52 {
        return Ok(None);
    }
    let reader = content.open()?;
    let start = reader.read_range(0, 64)?;
    if !start.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    File { reader, size: content.size }.parse(&start)
}

struct File {
    reader: Reader,
    size: u64,
}

impl File {
    fn bytes(&self, offset: u64, size: u64) -> io::Result<Option<Vec<u8>>> {
        if size > LARGEST || offset.checked_add(size).is_none_or(|end| end > self.size) {
            return Ok(None);
        }
        self.reader.read_range(offset, usize::try_from(size).unwrap_or_default()).map(Some)
    }

    fn parse(&self, start: &[u8]) -> io::Result<Option<Elf>> {
        let Ok(header) = goblin::elf::Elf::parse_header(start) else { return Ok(None) };
        // ET_EXEC and ET_DYN.
        if !matches!(header.e_type, 2 | 3) {
            return Ok(None);
        }
        let Some((context, programs)) = self.programs(&header)? else { return Ok(None) };
        let mut elf = Elf { machine: header.e_machine, ..Elf::default() };
        if let Some(program) = programs.iter().find(|p| p.p_type == PT_INTERP)
            && let Some(bytes) = self.bytes(program.p_offset, program.p_filesz)?
        {
            elf.interpreter = Some(text(&bytes));
        }
        let Some(dynamic) = programs.iter().find(|p| p.p_type == PT_DYNAMIC) else { return Ok(Some(elf)) };
        elf.dynamic = true;
        let Some(bytes) = self.bytes(dynamic.p_offset, dynamic.p_filesz)? else { return Ok(None) };
        // The parser looks for the table at the segment's offset in the bytes it is given.
        let alone = ProgramHeader { p_offset: 0, ..dynamic.clone() };
        let Ok(Some(dynamic)) = Dynamic::parse(&bytes, &[alone], context) else { return Ok(None) };
        self.libraries(&mut elf, &dynamic, &programs, context)?;
        Ok(Some(elf))
    }

    fn programs(&self, header: &Header) -> io::Result<Option<(Ctx, Vec<ProgramHeader>)>> {
        let (Ok(container), Ok(endian)) = (header.container(), header.endianness()) else { return Ok(None) };
        let context = Ctx::new(container, endian);
        let size = u64::from(header.e_phentsize) * u64::from(header.e_phnum);
        let Some(bytes) = self.bytes(header.e_phoff, size)? else { return Ok(None) };
        let programs = ProgramHeader::parse(&bytes, 0, usize::from(header.e_phnum), context);
        Ok(programs.ok().map(|programs| (context, programs)))
    }

    fn libraries(&self, elf: &mut Elf, dynamic: &Dynamic, programs: &[ProgramHeader], context: Ctx) -> io::Result<()> {
        let value = |tag| dynamic.dyns.iter().find(|d| d.d_tag == tag).map(|d| d.d_val);
        let (Some(table), Some(size)) = (value(DT_STRTAB), value(DT_STRSZ)) else { return Ok(()) };
        let Some(strings) = self.at_address(programs, table, size)? else { return Ok(()) };
        let string =
            |offset: u64| usize::try_from(offset).ok().and_then(|at| strings.get(at..)).map(text).unwrap_or_default();
        elf.needed = dynamic.dyns.iter().filter(|d| d.d_tag == DT_NEEDED).map(|d| string(d.d_val)).collect();
        let paths = |tag| value(tag).map(string).map(|paths| split(&paths));
        let (runpath, rpath) = (paths(DT_RUNPATH), paths(DT_RPATH));
        elf.inherited = runpath.is_none() && rpath.is_some();
        elf.search = runpath.or(rpath).unwrap_or_default();
        if let (Some(address), Some(count)) = (value(DT_VERNEED), value(DT_VERNEEDNUM)) {
            elf.glibc = self.versions(programs, address, count, context, &string)?;
        }
        // A library of its own name is no need.
        if let Some(own) = value(DT_SONAME).map(string) {
            elf.needed.retain(|needed| *needed != own);
        }
        Ok(())
    }

    /// Bytes at an address of memory, as many as there are. They may be those of several segments: patchelf, which Spack and
    /// makers of wheels use too, puts tables where two meet.
    fn at_address(&self, programs: &[ProgramHeader], address: u64, size: u64) -> io::Result<Option<Vec<u8>>> {
        let size = size.min(LARGEST);
        let mut found = Vec::new();
        while let Some(missing) = size.checked_sub(found.len() as u64).filter(|missing| *missing > 0) {
            let place = address.checked_add(found.len() as u64).and_then(|at| offset_of(programs, at));
            let Some((offset, left)) = place else { break };
            match self.bytes(offset, missing.min(left))? {
                Some(bytes) if !bytes.is_empty() => found.extend(bytes),
                _ => break,
            }
        }
        Ok((!found.is_empty()).then_some(found))
    }

    /// The newest `GLIBC_` version that is needed (`Elf_Verneed`, `Elf_Vernaux` of the gABI supplements: 16 bytes each, for
    /// both classes).
    fn versions(
        &self,
        programs: &[ProgramHeader],
        address: u64,
        count: u64,
        context: Ctx,
        string: &dyn Fn(u64) -> String,
    ) -> io::Result<Option<Glibc>> {
        let Some(bytes) = self.at_address(programs, address, 1 << 20)? else { return Ok(None) };
        let half = |at: usize| bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map(|b| number16(context, b));
        let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(|b| number32(context, b));
        let mut newest = None;
        let mut at = 0;
        for _ in 0..count.min(10_000) {
            let (Some(entries), Some(first), Some(next)) = (half(at + 2), word(at + 8), word(at + 12)) else { break };
            let mut entry = at + first as usize;
            for _ in 0..entries {
                let (Some(name), Some(following)) = (word(entry + 8), word(entry + 12)) else { break };
                let version = string(name.into()).strip_prefix("GLIBC_").and_then(|text| text.parse().ok());
                newest = newest.max(version);
                if following == 0 {
                    break;
                }
                entry += following as usize;
            }
            if next == 0 {
                break;
            }
            at += next as usize;
        }
        Ok(newest)
    }
}

/// Where an address is in the file, and how many bytes of its segment are left there.
fn offset_of(programs: &[ProgramHeader], address: u64) -> Option<(u64, u64)> {
    programs.iter().filter(|p| p.p_type == PT_LOAD).find_map(|p| {
        let inside = address.checked_sub(p.p_vaddr).filter(|inside| *inside < p.p_filesz)?;
        Some((p.p_offset.checked_add(inside)?, p.p_filesz - inside))
    })
}

fn number16(context: Ctx, bytes: [u8; 2]) -> u16 {
    if context.le == Endian::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
}

fn number32(context: Ctx, bytes: [u8; 4]) -> u32 {
    if context.le == Endian::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
}

/// Text up to a zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn split(paths: &str) -> Vec<String> {
    paths.split(':').filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

/// `e_machine` of an architecture in OCI words.
#[must_use]
pub fn machine_of(architecture: &str) -> Option<u16> {
    Some(match architecture {
        "amd64" => 62,
        "arm64" => 183,
        "386" => 3,
        "arm" => 40,
        "ppc64le" => 21,
        "s390x" => 22,
        "riscv64" => 243,
        _ => return None,
    })
}

/// The name of a machine, for messages.
#[must_use]
pub fn machine_name(machine: u16) -> String {
    let known = ["amd64", "arm64", "386", "arm", "ppc64le", "s390x", "riscv64"];
    match known.into_iter().find(|name| machine_of(name) == Some(machine)) {
        Some(name) => name.to_owned(),
        None => format!("machine {machine}"),
    }
}

/// Machines of code that a processor's libraries carry along: GPUs and the kernel's.
#[must_use]
pub fn is_guest(machine: u16) -> bool {
    // EM_CUDA, EM_AMDGPU, EM_BPF
    matches!(machine, 190 | 224 | 247)
}

/// The dynamic loader of glibc on an architecture.
#[must_use]
pub fn loader_of(architecture: &str) -> Option<&'static str> {
    Some(match architecture {
        "amd64" => "/lib64/ld-linux-x86-64.so.2",
        "arm64" => "/lib/ld-linux-aarch64.so.1",
        "386" => "/lib/ld-linux.so.2",
        "arm" => "/lib/ld-linux-armhf.so.3",
        "ppc64le" => "/lib64/ld64.so.2",
        "s390x" => "/lib/ld64.so.1",
        "riscv64" => "/lib/ld-linux-riscv64-lp64d.so.1",
        _ => return None,
    })
}

/// Whether a library is part of glibc itself, which comes with the application's image.
#[must_use]
pub fn is_glibc(library: &str) -> bool {
    const NAMES: [&str; 12] = [
        "libc",
        "libm",
        "libdl",
        "librt",
        "libpthread",
        "libutil",
        "libresolv",
        "libnsl",
        "libanl",
        "libmvec",
        "libthread_db",
        "libBrokenLocale",
    ];
    let stem = library.split(".so").next().unwrap_or_default();
    library.starts_with("ld-linux") || library.starts_with("ld64.so") || NAMES.contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::entry::{Entry, EntryKind, Facts, Source};

    fn of(path: &str) -> Option<Elf> {
        let metadata = std::fs::metadata(path).unwrap();
        let source = Source::Disk { path: path.into(), facts: Facts::of(&metadata) };
        read(&Content { size: metadata.len(), source, shared: None }).unwrap()
    }

    #[test]
    fn this_program() {
        let path = std::env::current_exe().unwrap();
        let elf = of(path.to_str().unwrap()).unwrap();
        assert!(elf.dynamic && elf.needed.iter().any(|n| n == "libc.so.6"), "{elf:?}");
        assert!(elf.glibc.unwrap() >= Glibc(2, 17, 0), "{elf:?}");
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        assert_eq!(Some(elf.machine), machine_of(architecture));
        assert_eq!(elf.interpreter.as_deref(), loader_of(architecture));
    }

    #[test]
    fn what_is_no_program() {
        for bytes in [
            &b"#!/bin/sh\n"[..],
            &[0x7f, b'E', b'L', b'F'],
            &[b"\x7fELF\x02\x01\x01".as_slice(), &[0xff; 100]].concat(),
        ] {
            let entry = Entry::made(bytes, 0o755);
            let EntryKind::File(content) = &entry.kind else { unreachable!() };
            assert_eq!(read(content).unwrap(), None);
        }
    }

    #[test]
    fn tables_that_lie_in_two_segments() {
        let bytes: Vec<u8> = (0..64).collect();
        let entry = Entry::made(&bytes, 0o755);
        let EntryKind::File(content) = &entry.kind else { unreachable!() };
        let file = File { reader: content.open().unwrap(), size: content.size };
        let segment = |address, offset, size| {
            let mut header = ProgramHeader::new();
            (header.p_type, header.p_vaddr, header.p_offset, header.p_filesz) = (PT_LOAD, address, offset, size);
            header
        };
        // The second goes on in memory where the first ends, from elsewhere in the file; a hole is behind it.
        let programs = [segment(0x1000, 0, 16), segment(0x1010, 32, 16), segment(0x1030, 48, 16)];
        for (address, size, expect) in [
            (0x1000, 4, Some(vec![0, 1, 2, 3])),
            (0x100e, 4, Some(vec![14, 15, 32, 33])),
            (0x101e, 9, Some(vec![46, 47])),
            (0x1020, 1, None),
            (u64::MAX, u64::MAX, None),
        ] {
            assert_eq!(file.at_address(&programs, address, size).unwrap(), expect, "{address:x}");
        }
        assert_eq!(file.at_address(&[segment(0, 60, 16)], 0, 8).unwrap(), None, "behind the end of the file");
    }

    #[test]
    fn libraries_of_glibc() {
        assert!(is_glibc("libc.so.6") && is_glibc("ld-linux-x86-64.so.2") && !is_glibc("libcrypt.so.1"));
    }
}
