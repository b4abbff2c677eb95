//! `views/<name>/view.yaml` as written.

use super::Map;
use super::minicluster::List;
use super::record::record;
use super::single;
use crate::diag::{Diagnostics, SourceMap};

record! {
    /// `views/<name>/view.yaml`: an image that brings Flux into application pods.
    pub struct View {
        /// What the view is for, in a sentence; it becomes the image's description.
        "description" description: String,
        /// Image below the view, by digest (`registry/name@sha256:...`), or `scratch`. Default `scratch`.
        "base" base: String,
        /// For a view on `scratch`: a static program for each platform that the init container of a bundle copies the view
        /// with, such as busybox of Debian's package busybox-static. Paths are relative to the project file.
        "helper" helper: Map<String>,
        /// Platforms, such as `linux/amd64` and `linux/arm64`. Each becomes an image, all of them one index.
        "platforms" platforms: List<String> [Required],
        /// Name of the recipe: the folder below `recipes/`.
        "recipe" recipe: String [Required],
        /// Repository that `view push` pushes to, such as `ghcr.io/me/flux-view-rocky`.
        "repository" repository: String,
        /// Tags that `view push` moves.
        "tags" tags: List<Tag>,
        /// Labels of the image beside those that flux-gen makes (`dev.flux-gen.view.*`).
        "labels" labels: Map<String>,
        /// Operating system that the tree was compiled on, such as `rocky-9`. For people; what counts is the glibc that is
        /// measured.
        "os" os: String,
        /// The newest glibc that the view may need, such as `2.28`. The build fails when a file of the tree needs a newer one.
        "glibc" glibc: String,
        /// Most layers of the view, those of the base not counted. Default 12.
        "budget" budget: i32,
        /// Layers to make beside those that flux-gen chooses, in order.
        "layers" layers: List<LayerRule>,
        /// `gzip` (default; every container runtime reads it) or `zstd` (smaller, faster to unpack, not for Docker before 23).
        "compression" compression: String,
        /// Extended attributes to pack: `none` (default), `capabilities`, or `user` (capabilities and `user.*`).
        "xattrs" xattrs: String,
        /// Set-user-id and set-group-id bits: `refuse` (default), `drop` or `keep`.
        "setuid" setuid: String,
        /// Links that lead out of `/opt/software` and `/opt/views`: `refuse` (default) or `keep`.
        "outsideLinks" outside_links: String,
        /// Libraries that every application image has, such as `libstdc++.so.6`, so that the tree need not hold them. Patterns
        /// take `*`.
        "provided" provided: List<String>,
    }
}

record! {
    /// A tag of a view.
    pub struct Tag {
        /// The tag, such as `tag-9`.
        "name" name: String [Required],
        /// The platform whose image it names; the index of all of them when it is left out.
        "platform" platform: String,
    }
}

record! {
    /// A layer to make.
    pub struct LayerRule {
        /// Name, shown in the image's history.
        "name" name: String [Required],
        /// Names of Spack packages. Patterns take `*`.
        "packages" packages: List<String>,
        /// Paths, such as `/opt/software/mpi`. Patterns take `*` and `**`; one without a slash is any name in a path.
        "paths" paths: List<String>,
    }
}

impl View {
    /// Reads a view file. What cannot be read is reported and left out.
    pub fn read(sources: &mut SourceMap, name: impl Into<String>, bytes: Vec<u8>) -> (Self, Diagnostics) {
        single::read(sources, name.into(), bytes, Self::RECORD, "view")
    }
}
