use super::*;

const HASH: &str = "abcdefghijklmnopqrstuvwxyz234567";

fn elf(needed: &[&str], search: &[&str]) -> Elf {
    Elf {
        machine: 62,
        interpreter: None,
        needed: needed.iter().map(|n| (*n).to_owned()).collect(),
        search: search.iter().map(|n| (*n).to_owned()).collect(),
        dynamic: true,
        ..Elf::default()
    }
}

/// A view that has nothing wrong with it.
fn good() -> (Tree, BTreeMap<TreePath, Elf>) {
    let software = format!("opt/software/linux-x86_64/flux-core-0.88.0-{HASH}");
    let view = "opt/views/._view/h";
    let mut tree = Tree::default();
    let mut add = |path: &str, entry| tree.entries.insert(path.as_bytes().to_vec(), entry);
    for folder in [
        "opt",
        "opt/software",
        "opt/software/linux-x86_64",
        &software,
        &format!("{software}/bin"),
        &format!("{software}/lib"),
        "opt/views",
        "opt/views/._view",
        view,
        &format!("{view}/bin"),
        &format!("{view}/lib"),
        &format!("{view}/lib/python3.11"),
        &format!("{view}/lib/python3.11/site-packages"),
        &format!("{view}/lib/python3.11/site-packages/flux"),
    ] {
        add(folder, Entry::folder());
    }
    add("opt/view", Entry::link("views/._view/h"));
    add(&format!("{software}/bin/flux"), Entry::made(b"flux", 0o755));
    add(&format!("{software}/lib/libflux.so.2"), Entry::made(b"lib", 0o755));
    add(
        &format!("{view}/bin/flux"),
        Entry::link(format!("../../../../software/linux-x86_64/flux-core-0.88.0-{HASH}/bin/flux")),
    );
    add(&format!("{view}/bin/python3.11"), Entry::made(b"py", 0o755));
    add(&format!("{view}/bin/python3"), Entry::link("python3.11"));
    add(&format!("{view}/bin/python"), Entry::link("python3"));
    let mut program = elf(&["libflux.so.2", "libc.so.6"], &["$ORIGIN/../lib"]);
    program.interpreter = Some("/lib64/ld-linux-x86-64.so.2".to_owned());
    program.glibc = Some(Glibc(2, 34, 0));
    let mut library = elf(&["libm.so.6"], &[]);
    library.glibc = Some(Glibc(2, 4, 0));
    let elves = [(format!("{software}/bin/flux"), program), (format!("{software}/lib/libflux.so.2"), library)];
    (tree, elves.into_iter().map(|(path, elf)| (path.into_bytes(), elf)).collect())
}

fn programs(elves: &BTreeMap<TreePath, Elf>) -> Programs {
    Programs { elves: elves.clone(), ..Programs::default() }
}

fn codes_of(tree: &Tree, elves: &BTreeMap<TreePath, Elf>, expected: Expected<'_>) -> Vec<String> {
    let found = check(tree, &programs(elves), expected).problems.diagnostics().sorted();
    found.iter().map(|d| format!("{} {}", d.severity.as_str(), d.code.id)).collect()
}

fn amd64() -> Expected<'static> {
    Expected { architecture: Some("amd64"), ..Expected::default() }
}

#[test]
fn a_good_view() {
    let (tree, elves) = good();
    let report = check(&tree, &programs(&elves), amd64());
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!(report.flux.as_deref(), Some("0.88.0"));
    assert_eq!(report.python.as_deref(), Some("3.11"));
    assert_eq!(report.glibc.as_ref().map(|(v, _)| v.to_string()).as_deref(), Some("2.34"));
    let labels = report.labels("amd64", Some("rocky-9"));
    let labels: Vec<(&str, &str)> = labels.iter().map(|(k, v)| (k.strip_prefix(LABEL).unwrap(), v.as_str())).collect();
    let expect = [
        ("architecture", "amd64"),
        ("flux-version", "0.88.0"),
        ("glibc", "2.34"),
        ("os", "rocky-9"),
        ("python", "3.11"),
    ];
    assert_eq!(labels, expect);
}

#[test]
fn each_part_of_the_contract() {
    type Change = fn(&mut Tree, &mut BTreeMap<TreePath, Elf>);
    fn remove(tree: &mut Tree, end: &str) {
        tree.entries.retain(|path, _| !path.ends_with(end.as_bytes()));
    }
    let cases: Vec<(&str, Change, &[&str])> = vec![
        ("no view link", |t, _| remove(t, "opt/view"), &["error FG831"]),
        ("view is a folder", |t, _| drop(t.entries.insert(b"opt/view".to_vec(), Entry::folder())), &["error FG831"]),
        (
            "view leads nowhere",
            |t, _| drop(t.entries.insert(b"opt/view".to_vec(), Entry::link("views/x"))),
            &["error FG831"],
        ),
        (
            "absolute",
            |t, _| drop(t.entries.insert(b"opt/view".to_vec(), Entry::link("/opt/views/._view/h"))),
            &["warning FG832"],
        ),
        (
            "software is a link",
            |t, _| drop(t.entries.insert(b"opt/software".to_vec(), Entry::link("views"))),
            &["error FG831", "error FG835", "error FG839"],
        ),
        ("no flux", |t, _| remove(t, "bin/flux"), &["error FG839"]),
        (
            "flux not executable",
            |t, _| {
                let path = t.follow(b"opt/view/bin/flux").unwrap();
                t.entries.get_mut(&path).unwrap().mode = 0o644;
            },
            &["error FG839"],
        ),
        ("no python", |t, _| t.entries.retain(|p, _| !p.windows(10).any(|w| w == b"bin/python")), &["warning FG838"]),
        ("no python3", |t, _| remove(t, "bin/python3"), &["error FG838"]),
        ("no module", |t, _| remove(t, "site-packages/flux"), &["warning FG838"]),
        (
            "outside",
            |t, _| drop(t.entries.insert(b"opt/software/x".to_vec(), Entry::link("/etc/x"))),
            &["warning FG817"],
        ),
        (
            "climbs",
            |t, _| drop(t.entries.insert(b"opt/software/x".to_vec(), Entry::link("../../../../x"))),
            &["error FG817"],
        ),
        ("machine", |_, e| e.values_mut().last().unwrap().machine = 183, &["error FG833"]),
        ("gpu code is welcome", |_, e| e.values_mut().last().unwrap().machine = 190, &[]),
        (
            "loader",
            |_, e| e.values_mut().next().unwrap().interpreter = Some("/lib/ld-musl-x86_64.so.1".into()),
            &["error FG834"],
        ),
        ("library", |_, e| e.values_mut().last().unwrap().needed.push("libzmq.so.5".into()), &["error FG835"]),
        ("library is gone", |t, _| remove(t, "libflux.so.2"), &["error FG835"]),
        (
            "library where no program looks",
            |t, e| {
                t.entries.insert(b"opt/views/._view/h/lib/libzmq.so.5".to_vec(), Entry::made(b"x", 0o755));
                e.values_mut().next().unwrap().needed.push("libzmq.so.5".into());
            },
            &["error FG835"],
        ),
        (
            "library where no library looks",
            |t, e| {
                t.entries.insert(b"opt/views/._view/h/lib/libzmq.so.5".to_vec(), Entry::made(b"x", 0o755));
                e.values_mut().last().unwrap().needed.push("libzmq.so.5".into());
            },
            &["warning FG835"],
        ),
    ];
    for (name, change, expect) in cases {
        let (mut tree, mut elves) = good();
        change(&mut tree, &mut elves);
        assert_eq!(codes_of(&tree, &elves, amd64()), expect, "{name}");
    }
}

#[test]
fn promises() {
    let (tree, mut elves) = good();
    let old = Expected { glibc: Some(Glibc(2, 28, 0)), ..amd64() };
    assert_eq!(codes_of(&tree, &elves, old), ["error FG836"]);
    elves.values_mut().last().unwrap().needed.push("libstdc++.so.6".into());
    let provided = ["libstdc++.*".to_owned()];
    assert_eq!(codes_of(&tree, &elves, Expected { provided: &provided, ..amd64() }), Vec::<String>::new());
    elves.values_mut().last().unwrap().machine = 183;
    assert_eq!(codes_of(&tree, &elves, Expected { provided: &provided, ..Expected::default() }), ["error FG833"]);
}

#[test]
fn labels() {
    let (tree, elves) = good();
    let mut labels = check(&tree, &programs(&elves), amd64()).labels("amd64", None);
    let with =
        |labels: &BTreeMap<String, String>| codes_of(&tree, &elves, Expected { labels: Some(labels), ..amd64() });
    assert_eq!(with(&labels), Vec::<String>::new());
    labels.insert(format!("{LABEL}glibc"), "2.17".to_owned());
    assert_eq!(with(&labels), ["error FG837"]);
    assert_eq!(with(&BTreeMap::new()), ["note FG837"]);
    let provided = ["libgcc_s.so.1".to_owned(), "libstdc++.*".to_owned()];
    labels = provided_label(&provided).into_iter().collect();
    assert_eq!(provided_by(&labels), provided);
    assert_eq!((provided_label(&[]), provided_by(&BTreeMap::new())), (None, Vec::new()));
}

#[test]
fn search_paths() {
    let (tree, mut elves) = good();
    let software = format!("/opt/software/linux-x86_64/flux-core-0.88.0-{HASH}");
    for (search, inherited, found) in [
        (format!("{software}/lib"), false, true),
        ("${ORIGIN}/../$LIB".to_owned(), false, true),
        ("$ORIGIN".to_owned(), false, false),
        ("/usr/lib:/opt/none".to_owned(), false, false),
    ] {
        let program = elves.values_mut().next().unwrap();
        program.search = search.split(':').map(str::to_owned).collect();
        program.inherited = inherited;
        assert_eq!(codes_of(&tree, &elves, amd64()).is_empty(), found, "{search}");
    }
    // A library without a path of its own uses the RPATH of the program.
    let program = elves.values_mut().next().unwrap();
    program.search = vec![format!("{software}/lib")];
    program.inherited = true;
    elves.insert(b"opt/views/._view/h/lib/plugin.so".to_vec(), elf(&["libflux.so.2"], &[]));
    assert_eq!(codes_of(&tree, &elves, amd64()), Vec::<String>::new());
}

/// Flux installed into a folder of another name, which nobody can run here: its files tell its version.
#[test]
fn the_version_of_flux_without_running_it() {
    let of = |name: &str, text: &str| {
        let mut tree = Tree::default();
        for (path, entry) in [
            ("opt/view", Entry::link("views/._view/h")),
            ("opt/views/._view/h/bin/flux", Entry::made(b"flux", 0o755)),
            (&format!("opt/views/._view/h/{name}"), Entry::made(text.as_bytes(), 0o644)),
        ] {
            let mut at = crate::view::entry::parent(path.as_bytes());
            while !at.is_empty() {
                tree.entries.entry(at.to_vec()).or_insert_with(Entry::folder);
                at = crate::view::entry::parent(at);
            }
            tree.entries.insert(path.as_bytes().to_vec(), entry);
        }
        check(&tree, &Programs::default(), Expected::default()).flux
    };
    let header = "/* x */\n#define FLUX_CORE_VERSION_MAJOR 0\n#define FLUX_CORE_VERSION_STRING \"0.79.0\"\n";
    for (name, text, expect) in [
        ("lib/pkgconfig/flux-core.pc", "Name: flux-core\nVersion: 0.79.0\n", Some("0.79.0")),
        ("lib64/pkgconfig/flux-core.pc", "Version:0.79.0-12-gabc\n", Some("0.79.0-12-gabc")),
        ("lib/pkgconfig/flux-core.pc", "Version:\n", None),
        ("include/flux/core/version.h", header, Some("0.79.0")),
        ("include/flux/core/version.h", "#define FLUX_CORE_VERSION_STRING\n", None),
        ("include/other.h", header, None),
    ] {
        assert_eq!(of(name, text).as_deref(), expect, "{name}: {text}");
    }
}

#[test]
fn interpreters_of_scripts() {
    let (mut tree, elves) = good();
    tree.entries.insert(b"opt/views/._view/h/bin/lua".to_vec(), Entry::made(b"lua", 0o755));
    tree.entries.insert(b"usr/bin/perl".to_vec(), Entry::made(b"a base has it, pods do not", 0o755));
    let told = |path: &str, lines: &[&str]| -> Vec<String> {
        let numbered = lines.iter().enumerate();
        let scripts = numbered.map(|(n, line)| (format!("{path}{n}").into_bytes(), (*line).to_owned())).collect();
        let programs = Programs { scripts, ..programs(&elves) };
        let found = check(&tree, &programs, amd64()).problems.diagnostics().sorted();
        found.iter().map(|d| format!("{} {}", d.code.id, d.message)).collect()
    };
    let inside = "opt/views/._view/h/bin/script";
    for line in [
        "/bin/sh",
        "/bin/bash -e",
        "/usr/bin/env bash",
        "/usr/bin/env -S python3 -u",
        "/usr/bin/env LC_ALL=C python3.11",
        "/usr/bin/env lua",
        "/usr/bin/env python",
        "",
        "/opt/view/bin/python3.11",
        "/opt/views/._view/h/bin/python -s",
    ] {
        assert_eq!(told(inside, &[line]), Vec::<String>::new(), "{line}");
    }
    for (line, interpreter) in [
        ("/usr/bin/perl -w", "/usr/bin/perl"),
        ("/usr/bin/python3.11", "/usr/bin/python3.11"),
        ("/opt/view/bin/python3.9", "/opt/view/bin/python3.9"),
        ("/opt/view/lib", "/opt/view/lib"),
        ("/usr/bin/env perl", "perl"),
        ("/usr/bin/env python3-config", "python3-config"),
        ("python3", "python3"),
    ] {
        let expect = format!("FG840 a script asks for {interpreter}, which the view does not hold: /{inside}0");
        assert_eq!(told(inside, &[line]), [expect], "{line}");
    }
    // One interpreter is told once; what stands outside of the view is not there in pods.
    assert_eq!(told(inside, &["/usr/bin/perl", "/bin/sh", "/usr/bin/perl", "/usr/bin/perl"]).len(), 1);
    assert_eq!(told("usr/bin/script", &["/usr/bin/perl"]), Vec::<String>::new());
}
