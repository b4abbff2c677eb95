//! Trees, archives and projects for the tests of views.

#![allow(dead_code, unreachable_pub, missing_docs)] // Each test file uses some of it.

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use flux_gen::diag::{Diagnostics, SourceMap};
use flux_gen::oci::layout::{Layout, LayoutWriter, WriteOptions};
use flux_gen::oci::{Descriptor, Error, ErrorKind};
use flux_gen::spec::{Recipe, View};
use flux_gen::view::build::{self, BuildOptions, BuiltImage, Opened};
use flux_gen::view::cache::Cache;
use flux_gen::view::plan::{Plan, resolve};

pub const HASH: &str = "abcdefghijklmnopqrstuvwxyz234567";

/// A file of a tree: path, content, mode.
pub fn file(root: &Path, path: &str, content: &[u8], mode: u32) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

pub fn link(root: &Path, path: &str, target: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

/// A small view in the layout of Spack, with everything that makes packing interesting.
pub fn spack_tree(root: &Path) {
    let software = |name: &str| format!("opt/software/linux-x86_64_v3/{name}-{HASH}");
    let core = software("flux-core-0.88.0");
    file(root, &format!("{core}/bin/flux"), b"#!/bin/sh\necho flux\n", 0o755);
    file(root, &format!("{core}/etc/odd \u{e9}.conf"), b"a = 1\n", 0o600);
    // Larger than a chunk, and not all the same.
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    let noise: Vec<u8> = (0..3_500_000).map(|_| noise()).collect();
    file(root, &format!("{}/lib/libboost.so.1", software("boost-1.86.0")), &noise, 0o755);
    file(root, &format!("{}/lib/libz.so.1", software("zlib-1.3.1")), &noise[..70_000], 0o755);
    file(root, &format!("{}/share/{}/deep", software("zlib-1.3.1"), "long-name-".repeat(20)), b"x", 0o644);
    fs::hard_link(
        root.join(format!("{}/lib/libz.so.1", software("zlib-1.3.1"))),
        root.join(format!("{}/lib/libz.so.1.3.1", software("zlib-1.3.1"))),
    )
    .unwrap();
    file(root, &format!("{}/bin/python3.11", software("python-3.11.9")), b"#!/bin/sh\n", 0o755);
    let view = format!("opt/views/._view/{HASH}");
    let up = "../../../../software/linux-x86_64_v3";
    link(root, &format!("{view}/bin/flux"), &format!("{up}/flux-core-0.88.0-{HASH}/bin/flux"));
    link(root, &format!("{view}/bin/python3.11"), &format!("/{}/bin/python3.11", software("python-3.11.9")));
    file(root, &format!("{view}/lib/python3.11/site-packages/flux/__init__.py"), b"", 0o644);
    fs::create_dir_all(root.join(format!("{view}/empty"))).unwrap();
    link(root, "opt/view", &format!("views/._view/{HASH}"));
}

/// This program is linked dynamically, so a helper is made up of a static ELF header.
pub fn helper(path: &Path) {
    let mut elf = vec![0; 128];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[16] = 2; // ET_EXEC
    elf[18] = 62; // EM_X86_64
    elf[20] = 1;
    elf[32] = 64; // e_phoff
    elf[52] = 64;
    elf[54] = 56;
    elf[56] = 1; // one program header, of no kind
    fs::write(path, elf).unwrap();
}

pub fn plan(view: &str, recipe: &str) -> (Option<Plan>, Diagnostics) {
    let mut sources = SourceMap::new();
    let (view, mut found) = View::read(&mut sources, "view.yaml", view.as_bytes().to_vec());
    let (recipe, more) = Recipe::read(&mut sources, "recipe.yaml", recipe.as_bytes().to_vec());
    found.extend(more);
    let (plan, more) = resolve("test", &view, &recipe);
    found.extend(more);
    (plan, found)
}

/// The plan of a tree for amd64 on `scratch`; `more` are lines of view.yaml.
pub fn tree_plan(tree: &Path, helper: &Path, more: &str) -> Plan {
    let view = format!(
        "platforms: [linux/amd64]\nrecipe: r\nhelper: {{linux/amd64: {helper:?}}}\ntags: [{{name: tag-9}}]\n{more}"
    );
    let recipe = format!("kind: tree\ntrees: {{linux/amd64: {{path: {tree:?}}}}}\n");
    let (plan, found) = plan(&view, &recipe);
    assert!(!found.has_errors(), "{found:?}");
    plan.unwrap()
}

pub fn options(scratch: &Path, threads: usize, cache: Option<&Path>) -> BuildOptions {
    BuildOptions {
        threads: NonZeroUsize::new(threads).unwrap(),
        time: 0,
        cache: cache.map(Cache::new),
        scratch: scratch.to_path_buf(),
        root: scratch.to_path_buf(),
    }
}

/// Opens `layout:PATH`.
pub fn open_layout(text: &str) -> Result<Opened, Error> {
    let path = text.strip_prefix("layout:").ok_or_else(|| Error::new(ErrorKind::NotFound, "no registry here"))?;
    let layout = Layout::open(Path::new(path), &flux_gen::oci::layout::Limits::default())?;
    let root = layout.roots()[0].clone();
    Ok((std::sync::Arc::new(layout), root))
}

pub struct Built {
    pub images: Vec<BuiltImage>,
    pub root: Descriptor,
    pub layout: Layout,
}

pub fn build_into(plan: &Plan, output: &Path, options: &BuildOptions) -> Result<Built, Diagnostics> {
    let writer = LayoutWriter::create(output, WriteOptions { durable: false }).unwrap();
    let (images, _) = build::build(plan, &writer, options, &open_layout, &mut |_| ()).map_err(|failed| failed.0)?;
    let (layout, root) = build::publish(plan, &images, writer).unwrap();
    Ok(Built { images, root, layout })
}

pub fn codes(found: &Diagnostics) -> Vec<&'static str> {
    let mut codes: Vec<_> = found.iter().map(|d| d.code.id).collect();
    codes.sort_unstable();
    codes
}
