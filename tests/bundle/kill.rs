//! `kill -9` at any moment leaves each folder old or new, and the next write goes on from there.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::*;
use flux_gen::bundle::FileTree;
use flux_gen::bundle::files::Disk;
use flux_gen::bundle::layout::Kept;
use flux_gen::bundle::write::{WriteOptions, write};

/// Tells the child of this test where to write.
const FOLDER: &str = "FLUX_GEN_TEST_KILL_FOLDER";
const QUICK: WriteOptions = WriteOptions { force: false, durable: false };

fn trees() -> [FileTree; 2] {
    let many = |text: &str, range: std::ops::Range<u32>| {
        let bundles: Vec<_> = range.map(|i| bundle(Some(&format!("ns{}", i % 3)), &format!("c{i}"), text)).collect();
        tree(&bundles, &[])
    };
    [many("one\n", 0..24), many("two\n", 12..36)]
}

fn put(root: &Path, tree: &FileTree) {
    let report = write(&Disk, root, tree, &Kept::default(), QUICK).unwrap();
    assert!(report.conflicts.is_empty(), "{:?}", report.conflicts);
}

/// Not a test of its own: what the other test starts and kills.
#[test]
#[allow(clippy::disallowed_methods, reason = "the parent says so by the environment")]
fn writes_for_ever_when_told_to() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let trees = trees();
    // Says that it has begun.
    std::fs::write(Path::new(&folder).with_extension("begun"), "").unwrap();
    loop {
        for tree in &trees {
            put(Path::new(&folder), tree);
        }
    }
}

fn start(root: &Path) -> Child {
    let begun = root.with_extension("begun");
    let _ = std::fs::remove_file(&begun);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::writes_for_ever_when_told_to"])
        .env(FOLDER, root)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !begun.exists() {
        assert!(child.try_wait().unwrap().is_none(), "the child ended before it began to write");
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn killed_again_and_again() {
    let folder = quick_folder();
    let root = folder.path().join("generated");
    let trees = trees();
    put(&root, &trees[0]);
    let mut interrupted = 0;
    for round in 0..60_u64 {
        let mut child = start(&root);
        std::thread::sleep(Duration::from_micros(200 + round * 7919 % 40_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = snapshot(&root);
        let when = format!("round {round}");
        assert_old_or_new(&now, &trees[0], &trees[1], &when);
        assert_kustomizations(&now, &trees[0], &trees[1], &when);
        interrupted += usize::from(root.join(".flux-gen").exists());
        if round % 10 == 9 {
            let tree = &trees[usize::from(round % 20 == 9)];
            put(&root, tree);
            assert!(snapshot(&root) == files_of(tree), "{when}");
        }
    }
    assert!(interrupted > 20, "only {interrupted} kills hit a write");
}
