//! Names of files and folders in the output.

use super::sha256_hex;

/// Folder of the objects that belong to no namespace, beside the namespaces' folders.
pub const CLUSTER_FOLDER: &str = "cluster";
/// Folder of companions in a namespace's folder, beside the clusters' folders.
pub const COMPANIONS_FOLDER: &str = "companions";
/// Folder for objects that carry no namespace.
pub const DEFAULT_FOLDER: &str = "default";
/// What kustomize reads in a folder.
pub const KUSTOMIZATION_FILE: &str = "kustomization.yaml";

/// Longest part of a file name that is taken from a Kubernetes name; file systems allow 255 bytes in all.
const LONGEST: usize = 190;
/// Digits of the digest that an odd name gets.
const DIGITS: usize = 8;

/// The folder of a namespace.
#[must_use]
pub fn namespace_folder(namespace: Option<&str>) -> String {
    namespace.map_or_else(|| DEFAULT_FOLDER.to_owned(), safe)
}

/// A file name part for a Kubernetes name. Names of lower-case letters, digits, `-` and `.` stay; others (RBAC objects may
/// be called `system:node`) get their odd characters replaced and a digest added, so that two of them never meet, on a
/// file system that ignores case neither.
#[must_use]
pub fn safe(name: &str) -> String {
    let kept = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || (c == '.');
    let plain = !name.is_empty() && name.len() <= LONGEST && name.chars().all(kept) && !name.starts_with('.');
    if plain {
        return name.to_owned();
    }
    let lowered = name.chars().flat_map(char::to_lowercase).map(|c| if kept(c) { c } else { '-' });
    let short: String = lowered.take(LONGEST - DIGITS - 1).collect();
    let digest = sha256_hex(name.as_bytes());
    format!("{}-{}", short.trim_start_matches('.'), &digest[..DIGITS])
}

/// `<kind>-<name>.yaml`, or `<kind>.yaml` when the name says nothing beyond the folder's.
#[must_use]
pub fn object_file(kind: &str, name: &str) -> String {
    let kind = safe(&kind.to_ascii_lowercase());
    if name.is_empty() { format!("{kind}.yaml") } else { format!("{kind}-{}.yaml", safe(name)) }
}

/// Whether `name` names an entry of a folder and nothing else.
#[must_use]
pub fn is_plain_file_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_or_get_a_digest() {
        assert_eq!(safe("lammps-7.x"), "lammps-7.x");
        assert_eq!(object_file("ConfigMap", "scripts"), "configmap-scripts.yaml");
        assert_eq!(object_file("Job", ""), "job.yaml");
        for odd in ["system:node", "System-node", "", ".", "..", "a/b", "a\nb", "é", &"x".repeat(253)] {
            let name = safe(odd);
            assert!(is_plain_file_name(&name) && !name.starts_with('.') && name.len() < 200, "{odd:?} -> {name:?}");
            assert_eq!(safe(&name), name, "stable");
        }
        assert_ne!(safe("system:node"), safe("system/node"));
        assert_ne!(safe("Node"), safe("node"));
    }
}
