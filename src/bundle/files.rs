//! Files and folders, as few operations: the only way in which this module touches a disk, and the place where tests let
//! single steps fail.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// What an entry of a folder is; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, a socket, a device.
    Other,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name. Names that are not UTF-8 are shown with replacement characters and are never ours.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// The operations. Paths are used as they are.
pub trait Files: Sync {
    /// The entries of a folder in no order; `None` when there is no such folder.
    ///
    /// # Errors
    /// As the operating system says.
    fn list(&self, folder: &Path) -> io::Result<Option<Vec<Entry>>>;

    /// The bytes of a regular file; `None` when there is nothing of that name.
    ///
    /// # Errors
    /// As the operating system says.
    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>>;

    /// Makes a folder of mode 0755, whatever the umask, and those above it; existing ones are fine.
    ///
    /// # Errors
    /// As the operating system says.
    fn make_folder(&self, folder: &Path) -> io::Result<()>;

    /// Writes a new file of mode 0644, whatever the umask. `durable`: wait until it is on the disk.
    ///
    /// # Errors
    /// As the operating system says; also when the file exists.
    fn create(&self, file: &Path, bytes: &[u8], durable: bool) -> io::Result<()>;

    /// Gives a file a second name.
    ///
    /// # Errors
    /// As the operating system says.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Moves a file over another one, or a folder to where nothing is.
    ///
    /// # Errors
    /// As the operating system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Swaps two folders in one step.
    ///
    /// # Errors
    /// As the operating system says; [`cannot_exchange`] tells the errors that mean it cannot be done here at all.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;

    /// Removes a file or link; a missing one is fine.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove_file(&self, file: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;

    /// Waits until the entries of a folder are on the disk.
    ///
    /// # Errors
    /// As the operating system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Waits until everything on the file system of `folder` is on the disk.
    ///
    /// # Errors
    /// As the operating system says.
    fn sync_file_system(&self, folder: &Path) -> io::Result<()>;
}

/// Whether an error of [`Files::exchange`] says that this system or file system has no such operation.
#[must_use]
pub fn cannot_exchange(error: &io::Error) -> bool {
    use rustix::io::Errno;
    const MISSING: [Errno; 5] = [Errno::NOSYS, Errno::INVAL, Errno::OPNOTSUPP, Errno::NOTTY, Errno::XDEV];
    error.kind() == io::ErrorKind::Unsupported
        || error.raw_os_error().is_some_and(|code| MISSING.iter().any(|errno| errno.raw_os_error() == code))
}

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn list(&self, folder: &Path) -> io::Result<Option<Vec<Entry>>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut list = Vec::new();
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            let kind = match (kind.is_file(), kind.is_dir()) {
                (true, _) => EntryKind::File,
                (_, true) => EntryKind::Folder,
                _ => EntryKind::Other,
            };
            list.push(Entry { name: entry.file_name().to_string_lossy().into_owned(), kind });
        }
        Ok(Some(list))
    }

    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        match fs::read(file) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        match fs::create_dir(folder) {
            Ok(()) if has_mode(&fs::metadata(folder)?, 0o755) => Ok(()),
            Ok(()) => fs::set_permissions(folder, fs::Permissions::from_mode(0o755)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => match folder.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => {
                    self.make_folder(parent)?;
                    self.make_folder(folder)
                }
                _ => Err(e),
            },
            Err(e) => Err(e),
        }
    }

    fn create(&self, file: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        let mut handle = OpenOptions::new().write(true).create_new(true).mode(0o644).open(file)?;
        // A look is much cheaper than a change, and few have an umask that makes one needed.
        if !has_mode(&handle.metadata()?, 0o644) {
            handle.set_permissions(fs::Permissions::from_mode(0o644))?;
        }
        handle.write_all(bytes)?;
        if durable { handle.sync_all() } else { Ok(()) }
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
    }

    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    fn exchange(&self, _one: &Path, _other: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove_file(&self, file: &Path) -> io::Result<()> {
        match fs::remove_file(file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn sync_file_system(&self, folder: &Path) -> io::Result<()> {
        sync_file_system(&File::open(folder)?)
    }
}

fn has_mode(metadata: &fs::Metadata, mode: u32) -> bool {
    metadata.mode() & 0o7777 == mode
}

#[cfg(target_os = "linux")]
fn sync_file_system(folder: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(folder)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(_folder: &File) -> io::Result<()> {
    rustix::fs::sync();
    Ok(())
}

/// A lock that ends with the process at the latest.
#[derive(Debug)]
pub struct Lock {
    // Closing the file releases the lock.
    _file: File,
}

impl Lock {
    /// Waits for the lock file `path` and takes it. The holder may remove the file while it holds the lock: who waited for
    /// a file that is gone tries again.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn take(path: &Path) -> io::Result<Self> {
        loop {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o644).open(path)?;
            file.lock()?;
            match fs::symlink_metadata(path) {
                Ok(now) if same_file(&now, &file.metadata()?) => return Ok(Self { _file: file }),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
    }
}

fn same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    one.dev() == other.dev() && one.ino() == other.ino()
}
