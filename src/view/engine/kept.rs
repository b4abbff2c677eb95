//! What failed steps have left to look at: until the next build of the same recipe, system and architecture with the same
//! engine. By then the recipe has been mended, so its key, and with it the name of its container, is another one: what was kept is
//! written down in the cache, a file for each key.

use std::fs;
use std::io;
use std::path::Path;

use super::run::RunError;

/// What one failed build has left.
pub(super) struct Kept {
    /// The build's key.
    pub(super) key: String,
    /// The container that it failed in.
    pub(super) container: String,
}

/// Writes down that an engine has kept a container.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn remember(folder: &Path, key: &str, engine: &str, container: &str) -> Result<(), RunError> {
    let file = folder.join(key);
    fs::write(&file, format!("{engine}\n{container}\n")).map_err(|e| RunError::file(&file, e))
}

/// What an engine has kept of builds whose keys differ in the last part only.
///
/// # Errors
/// When the folder or a file of it cannot be read.
pub(super) fn of(folder: &Path, key: &str, engine: &str) -> Result<Vec<Kept>, RunError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| RunError::file(folder, e))? {
        let entry = entry.map_err(|e| RunError::file(folder, e))?;
        let Some(key) = entry.file_name().to_str().filter(|name| family(name) == family(key)).map(str::to_owned) else {
            continue;
        };
        let text = match fs::read_to_string(entry.path()) {
            Ok(text) => text,
            // Another build has just removed it.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(RunError::file(&entry.path(), e)),
        };
        if let Some((_, container)) = text.trim_end().split_once('\n').filter(|(by, _)| *by == engine) {
            found.push(Kept { key, container: container.to_owned() });
        }
    }
    Ok(found)
}

/// Forgets what was removed.
///
/// # Errors
/// When its file cannot be removed.
pub(super) fn forget(folder: &Path, key: &str) -> Result<(), RunError> {
    let file = folder.join(key);
    match fs::remove_file(&file) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(RunError::file(&file, e)),
        _ => Ok(()),
    }
}

/// A key without its last part: recipe, system and architecture.
fn family(key: &str) -> Option<&str> {
    key.rsplit_once('-').map(|(family, _)| family)
}
