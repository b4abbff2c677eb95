//! The rules of the source tree, kept by a test: imports point downwards, pure stages stay pure, only `cli/` talks to the
//! outside, files and functions stay small, every diagnostic code is tested.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Most lines of a file without its tests.
const FILE: usize = 600;
/// Most lines of a function.
const FUNCTION: usize = 80;
/// Codes for what cannot happen unless flux-gen has a bug; no input shows them.
const BUGS: [&str; 2] = ["FG390", "FG608"];
/// Stages that may read and write files, run programs and so on. `cli` may do anything.
const IMPURE: [&str; 5] = ["bundle", "oci", "view", "airgap", "cli"];

/// One source file, tests taken away.
struct Source {
    /// Path below the package, with `/`.
    path: String,
    /// Module path: `["bundle", "yaml"]`; empty for lib.rs and main.rs.
    module: Vec<String>,
    /// What is left when tests are taken away.
    file: syn::File,
    /// Number of lines without tests.
    lines: usize,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).collect()
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/")
}

/// `src/bundle/yaml.rs` and `src/bundle/yaml/mod.rs` are `["bundle", "yaml"]`.
fn module_path(path: &str) -> Vec<String> {
    let inner = path.strip_prefix("src/").unwrap_or(path).strip_suffix(".rs").unwrap();
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        let text = a.meta.to_token_stream().to_string().replace(' ', "");
        text == "test" || (text.starts_with("cfg(") && text.contains("test") && !text.contains("not(test)"))
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(i) => &i.attrs,
        syn::Item::Enum(i) => &i.attrs,
        syn::Item::Fn(i) => &i.attrs,
        syn::Item::Impl(i) => &i.attrs,
        syn::Item::Macro(i) => &i.attrs,
        syn::Item::Mod(i) => &i.attrs,
        syn::Item::Static(i) => &i.attrs,
        syn::Item::Struct(i) => &i.attrs,
        syn::Item::Trait(i) => &i.attrs,
        syn::Item::Type(i) => &i.attrs,
        syn::Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// Takes the tests out of a file; the names of modules that are tests in files of their own go to `test_modules`.
fn without_tests(path: &str, text: &str, test_modules: &mut Vec<Vec<String>>) -> Source {
    let mut file = syn::parse_file(text).unwrap_or_else(|e| panic!("{path}: {e}"));
    let module = module_path(path);
    let mut lines = text.lines().count();
    file.items.retain(|item| {
        if !is_test(attributes(item)) {
            return true;
        }
        if let syn::Item::Mod(syn::ItemMod { ident, content: None, .. }) = item {
            test_modules.push(module.iter().cloned().chain([ident.to_string()]).collect());
        }
        lines -= span_lines(item);
        false
    });
    Source { path: path.to_owned(), module, file, lines }
}

fn span_lines(item: &impl Spanned) -> usize {
    item.span().end().line - item.span().start().line + 1
}

/// All sources of the library and the program, and the text of all tests.
fn load() -> (Vec<Source>, String) {
    let mut test_modules = Vec::new();
    let mut sources = Vec::new();
    let mut texts = BTreeMap::new();
    for path in rust_files(&root().join("src")) {
        let name = relative(&path);
        let text = fs::read_to_string(&path).unwrap();
        sources.push(without_tests(&name, &text, &mut test_modules));
        texts.insert(name, text);
    }
    let in_test = |s: &Source| test_modules.iter().any(|m| s.module.starts_with(m));
    let mut tests = String::new();
    for source in &sources {
        let text = &texts[&source.path];
        if in_test(source) {
            tests.push_str(text);
        } else if let Some(start) = text.find("#[cfg(test)]") {
            tests.push_str(&text[start..]);
        }
    }
    // Test data too: much of it is tables of documents and the codes that they give. This file names codes only in general.
    for path in files(&root().join("tests")).iter().filter(|p| !p.ends_with("tests/repository/layers.rs")) {
        tests.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap()));
    }
    sources.retain(|s| !in_test(s));
    (sources, tests)
}

/// The stages in the order of the documentation of lib.rs.
fn stages(lib: &str) -> Vec<String> {
    let docs = lib.lines().take_while(|l| l.starts_with("//!")).filter(|l| l.contains('→'));
    docs.flat_map(|l| l.split('[').skip(1))
        .map(|p| p.split('`').nth(1).unwrap().trim_start_matches("mod@").to_owned())
        .collect()
}

/// Flat list of tokens: groups become their opening sign, what is in them, and their closing sign.
fn flatten(stream: TokenStream, out: &mut Vec<(String, usize)>) {
    for token in stream {
        let line = token.span().start().line;
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                out.push((open.to_owned(), line));
                flatten(group.stream(), out);
                out.push((close.to_owned(), group.span_close().start().line));
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => match out.last_mut() {
                Some((last, _)) if last == ":" => "::".clone_into(last),
                _ => out.push((":".to_owned(), line)),
            },
            // What doc comments say is no code.
            TokenTree::Literal(_) => out.push(("\"\"".to_owned(), line)),
            other => out.push((other.to_string(), line)),
        }
    }
}

/// First names after `prefix` at `at` (`crate::`): one, or those of a group `crate::{a::x, b}`.
fn names_after(tokens: &[(String, usize)], at: usize) -> Vec<String> {
    let Some((first, _)) = tokens.get(at) else { return Vec::new() };
    if first != "{" {
        return vec![first.clone()];
    }
    let mut names = Vec::new();
    let (mut depth, mut fresh) = (0, true);
    for (token, _) in &tokens[at..] {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 1 => fresh = true,
            name if fresh && depth == 1 => {
                names.push(name.to_owned());
                fresh = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// Every problem of one file.
fn problems(source: &Source, stages: &[String]) -> Vec<String> {
    let mut tokens = Vec::new();
    flatten(source.file.to_token_stream(), &mut tokens);
    let mut found = Vec::new();
    if source.lines > FILE {
        found.push(format!("{}: {} lines without tests; at most {FILE}", source.path, source.lines));
    }
    let mut functions = Functions { path: &source.path, found: &mut found };
    functions.visit_file(&source.file);
    if let Some(stage) = source.module.first() {
        found.extend(upward_imports(source, stage, stages, &tokens));
        found.extend(forbidden(source, stage, &tokens));
    }
    found
}

/// Imports of modules that come later in the order of stages.
fn upward_imports(source: &Source, stage: &str, stages: &[String], tokens: &[(String, usize)]) -> Vec<String> {
    let Some(own) = stages.iter().position(|s| s == stage) else {
        return vec![format!("{}: `{stage}` is not in the list of stages in src/lib.rs", source.path)];
    };
    let mut found = Vec::new();
    let mut supers = 0;
    for (i, (token, line)) in tokens.iter().enumerate() {
        let crate_path = token == "crate" || token == "flux_gen";
        if token == "super" {
            supers += 1;
        } else if token != "::" {
            supers = 0;
        }
        let at_root = crate_path || (supers > 0 && supers == source.module.len());
        if !at_root || tokens.get(i + 1).is_none_or(|t| t.0 != "::") {
            continue;
        }
        for name in names_after(tokens, i + 2) {
            if stages.iter().position(|s| *s == name).is_some_and(|other| other > own) {
                found.push(format!("{}:{line}: `{stage}` imports `{name}`, which comes after it", source.path));
            }
        }
    }
    found
}

/// Printing, clock, environment, process, and in pure stages all input and output.
fn forbidden(source: &Source, stage: &str, tokens: &[(String, usize)]) -> Vec<String> {
    if stage == "cli" {
        return Vec::new();
    }
    let text = |i: usize| tokens.get(i).map_or("", |t| t.0.as_str());
    let mut found = Vec::new();
    for (i, (token, line)) in tokens.iter().enumerate() {
        let before = if i > 0 { text(i - 1) } else { "" };
        let next = text(i + 1);
        let bad = match token.as_str() {
            "println" | "eprintln" | "print" | "eprint" | "dbg" => next == "!",
            "SystemTime" | "Instant" => true,
            // Methods of that name are those of programs that are run.
            "stdout" | "stderr" | "stdin" => next == "(" && before != ".",
            "env" => next == "::" || (before == "::" && next != "!"),
            "exit" | "abort" => before == "::" && i > 1 && text(i - 2) == "process",
            "fs" | "thread" | "process" | "File" | "TcpStream" | "TcpListener" | "UdpSocket" => {
                !IMPURE.contains(&stage) && (next == "::" || before == "::")
            }
            "getrandom" | "OsRng" => !IMPURE.contains(&stage) && (next == "::" || before == "::"),
            _ => false,
        };
        if bad {
            found.push(format!("{}:{line}: `{token}` belongs into cli/ (or bundle/)", source.path));
        }
    }
    found
}

/// Finds functions that are too long.
struct Functions<'a> {
    path: &'a str,
    found: &'a mut Vec<String>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let lines = block.span().end().line - signature.span().start().line + 1;
        if lines > FUNCTION {
            let line = signature.span().start().line;
            let name = &signature.ident;
            self.found.push(format!("{}:{line}: function `{name}` has {lines} lines; at most {FUNCTION}", self.path));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

#[test]
fn the_tree_keeps_its_rules() {
    let (sources, _) = load();
    let stages = stages(&fs::read_to_string(root().join("src/lib.rs")).unwrap());
    assert_eq!((stages.first().unwrap().as_str(), stages.last().unwrap().as_str()), ("diag", "cli"));
    let found: Vec<String> = sources.iter().flat_map(|s| problems(s, &stages)).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_code_appears_in_a_test() {
    let (sources, tests) = load();
    let code_files = sources.iter().filter(|s| s.path.starts_with("src/diag/codes/"));
    let names: BTreeMap<String, String> = code_files.flat_map(|s| code_names(&s.file)).collect();
    assert_eq!(names.len(), flux_gen::diag::codes::all().len(), "the list of codes was not understood");
    let untested: Vec<&str> = flux_gen::diag::codes::all()
        .iter()
        .map(|c| c.id)
        .filter(|id| !BUGS.contains(id))
        .filter(|id| !tests.contains(id) && !contains_word(&tests, &names[*id]))
        .collect();
    assert!(untested.is_empty(), "no test mentions {}", untested.join(", "));
}

#[test]
fn every_code_is_given_somewhere() {
    let (sources, _) = load();
    let (code_files, others): (Vec<_>, Vec<_>) = sources.iter().partition(|s| s.path.starts_with("src/diag/codes/"));
    let text: String = others.iter().map(|s| s.file.to_token_stream().to_string()).collect();
    let names = code_files.iter().flat_map(|s| code_names(&s.file));
    let unused: Vec<String> = names.filter(|(_, name)| !contains_word(&text, name)).map(|(id, _)| id).collect();
    assert!(unused.is_empty(), "no code gives {}", unused.join(", "));
}

/// Id to constant of the codes that a file defines with `codes!`.
fn code_names(file: &syn::File) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for item in &file.items {
        let syn::Item::Macro(item) = item else { continue };
        let tokens: Vec<TokenTree> = item.mac.tokens.clone().into_iter().collect();
        for three in tokens.windows(3) {
            let [TokenTree::Ident(name), TokenTree::Punct(equals), TokenTree::Literal(id)] = three else { continue };
            let id = id.to_string();
            if equals.as_char() == '=' && id.starts_with("\"FG") {
                names.push((id.trim_matches('"').to_owned(), name.to_string()));
            }
        }
    }
    names
}

fn contains_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(i, _)| {
        !text[..i].chars().next_back().is_some_and(part) && !text[i + word.len()..].chars().next().is_some_and(part)
    })
}

#[test]
fn the_checks_find_what_they_look_for() {
    let stages: Vec<String> = ["diag", "spec", "bundle", "cli"].map(str::to_owned).to_vec();
    let check = |path: &str, text: &str| problems(&without_tests(path, text, &mut Vec::new()), &stages).len();
    let long_function = format!("fn f() {{\n{}}}", "    g();\n".repeat(79));
    let long_file = "const A: u8 = 0;\n".repeat(601);
    for (path, text, expect) in [
        ("src/spec/mod.rs", "use crate::diag::A; use super::diag::B;", 0),
        ("src/spec/mod.rs", "use crate::bundle::A;", 1),
        ("src/spec/mod.rs", "use crate::{diag::{A, B}, bundle, cli as c};", 2),
        ("src/spec/mod.rs", "use super::bundle;", 1),
        ("src/spec/a.rs", "use super::bundle;", 0),
        ("src/spec/a.rs", "use super::super::bundle;", 1),
        ("src/spec/a.rs", "fn f() { vec![crate::cli::X] }", 1),
        ("src/spec/a.rs", "macro_rules! m { () => { $crate::cli::X } }", 1),
        ("src/spec/a.rs", "#[cfg(test)] mod tests { use crate::cli::X; }", 0),
        ("src/spec/a.rs", "/// use crate::cli\nfn f() { let s = \"std::env::var()\"; }", 0),
        ("src/other/mod.rs", "", 1),
        ("src/bundle/a.rs", "fn f() { println!() }", 1),
        ("src/bundle/a.rs", "use std::env;", 1),
        ("src/bundle/a.rs", "fn f() { std::env::args(); env!(\"X\"); }", 1),
        ("src/bundle/a.rs", "use std::{fs, time::SystemTime};", 1),
        ("src/bundle/a.rs", "fn f() { std::process::exit(1) }", 1),
        ("src/spec/a.rs", "use std::fs;", 1),
        ("src/cli/a.rs", "fn f() { println!(); std::process::exit(1) }", 0),
        ("src/spec/a.rs", long_function.as_str(), 1),
        ("src/spec/a.rs", long_file.as_str(), 1),
    ] {
        assert_eq!(check(path, text), expect, "{path}: {}", &text[..text.len().min(80)]);
    }
}
