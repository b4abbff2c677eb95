//! What recipes of kind `source` and `spack` have in common: the systems they build for and what they download.

use super::Map;
use super::minicluster::List;
use super::record::record;

record! {
    /// A system to build on: an operating system in one version, with what the compiler needs there.
    pub struct RecipeSystem {
        /// Image to build in, best with its digest: `docker.io/library/ubuntu:24.04@sha256:…`. Its C library is the oldest that the view needs.
        "base" base: String [Required],
        /// Packages to install with apt-get.
        "apt" apt: List<String>,
        /// Packages to install with dnf.
        "dnf" dnf: List<String>,
        /// Shell, run as root before packages are installed, with network: to enable a repository, say.
        "before" before: String,
        /// Environment of every later step.
        "environment" environment: Map<String>,
        /// Folders to put in front of PATH, such as that of a newer compiler.
        "path" path: List<String>,
        /// Where the view can be used besides this system, in words; for lists.
        "note" note: String,
    }
}

record! {
    /// A file to download.
    pub struct RecipeDownload {
        /// Where it is: http, https or file.
        "url" url: String [Required],
        /// Its SHA-256, 64 hexadecimal digits. Nothing is used whose checksum differs.
        "sha256" sha256: String [Required],
        /// Who recorded the checksum, when nobody has compared it with the file where the recipe was written.
        "checksum-from" checksum_from: String,
        /// Name of the file when it is kept; default: the last part of the URL.
        "file" file: String,
    }
}
