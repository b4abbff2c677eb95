//! From arguments to compiled clusters: read the project, read the specs, compile. Every command that looks at specs starts
//! here.

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;

use super::error::CommandError;
use super::images;
use super::mirror;
use super::project::Found;
use super::report::{SourceText, Tally};
use super::sources::{self, Surroundings};
use super::ui::Ui;
use super::view::pin::read_all;
use crate::airgap::rewrite::Rewriter;
use crate::bundle::survey::Scope;
use crate::bundle::{SourceRef, sha256_hex};
use crate::compile::Input;
use crate::diag::{Diagnostics, FileId, SourceFile, SourceMap};
use crate::model::CertificateNeed;
use crate::spec::pins::view_name;
use crate::spec::{Documents, ReadOptions, read};

/// Where specs come from and how they are taken.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input options")]
pub(crate) struct InputArgs {
    /// Specs: files, folders, or `-` for standard input [default: `sources` of the project file, else examples].
    #[arg(value_name = "PATH", help_heading = "Arguments")]
    pub(crate) paths: Vec<PathBuf>,
    /// Project file [default: flux-gen.yaml, if it is there].
    #[arg(long, value_name = "FILE")]
    pub(crate) project: Option<PathBuf>,
    /// Choose a setting, for all clusters; `flux-gen explain settings` lists them. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Warn about unknown fields instead of refusing them; an API server would drop them.
    #[arg(long)]
    pub(crate) allow_unknown: bool,
    /// Refuse images that are not named by digest, in the specs or by images.lock.
    #[arg(long)]
    pub(crate) locked: bool,
    /// Threads to use [default: one per processor].
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

impl InputArgs {
    /// A whole project, for commands that take no paths.
    pub(crate) fn of_project(project: Option<PathBuf>, set: Vec<(String, String)>) -> Self {
        Self { paths: Vec::new(), project, set, allow_unknown: false, locked: false, threads: None }
    }
}

/// Where bundles are.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Folder for bundles [default: `output` of the project file, else generated].
    #[arg(short, long, value_name = "DIR", help_heading = "Output options")]
    pub(crate) output: Option<PathBuf>,
}

/// `KEY=VALUE` of a setting.
pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE, such as kubernetes-version=1.31".to_owned()),
    }
}

/// Everything that was read, and what was wrong so far.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// The project.
    pub(crate) project: Found,
    /// MiniClusters and companions.
    pub(crate) documents: Documents,
    /// Problems found so far.
    pub(crate) diagnostics: Diagnostics,
    /// What a write may remove: the bundles of these sources.
    pub(crate) scope: Scope,
    /// Where bundles go.
    pub(crate) output: PathBuf,
    /// Settings from the command line.
    pub(crate) set: Vec<(String, String)>,
    /// Whether every image must be named by digest.
    pub(crate) locked: bool,
    /// Whether the project has a lock of images.
    pub(crate) has_lock: bool,
    /// What writes references behind the gap, if the project has a mirror.
    pub(crate) mirror: Option<Rewriter>,
    sources: SourceMap,
    /// Names to show, in the order of the sources.
    shown: Vec<String>,
    /// What generated files say of each source, in the same order.
    refs: Vec<SourceRef>,
}

impl Inputs {
    /// Reads the project file and the specs. Problems in the specs go to the diagnostics.
    ///
    /// # Errors
    /// When it is not known what to read, or the project file itself is wrong.
    pub(crate) fn read(args: &InputArgs, output: Option<&Path>, ui: &Ui) -> Result<Self, CommandError> {
        let mut inputs = Self::open(args, output, ui)?;
        inputs.read_specs(args, ui)?;
        inputs.read_lock();
        Ok(inputs)
    }

    /// Reads the lock of images. A problem with it goes to the diagnostics.
    fn read_lock(&mut self) {
        match images::lock(&self.project) {
            Ok(lock) => {
                self.has_lock = lock.is_some();
                self.documents.images = lock.as_ref().map(images::pins).unwrap_or_default();
                self.documents.facts = lock.as_ref().map(images::facts).unwrap_or_default();
                self.mirror = mirror::of_project(self.project.written.as_ref(), lock.as_ref(), &mut self.diagnostics);
            }
            Err(problem) => self.diagnostics.push(*problem),
        }
    }

    /// Reads the project file.
    ///
    /// # Errors
    /// When it cannot be read, or something in it is wrong, which has been printed then.
    pub(crate) fn open(args: &InputArgs, output: Option<&Path>, ui: &Ui) -> Result<Self, CommandError> {
        set_threads(args.threads)?;
        let mut sources = SourceMap::new();
        let mut diagnostics = Diagnostics::new();
        let project = Found::find(args.project.as_deref(), &mut sources, &mut diagnostics)?;
        let mut inputs = Self {
            shown: project.file.iter().map(|file| sources::shown(file)).collect(),
            output: project.output(output),
            scope: scope(&args.paths, &project.root),
            set: args.set.clone(),
            locked: args.locked,
            has_lock: false,
            mirror: None,
            documents: Documents::default(),
            project,
            diagnostics,
            sources,
            refs: Vec::new(),
        };
        if inputs.diagnostics.has_errors() {
            // What to read is not known, and the version may be the wrong one.
            inputs.report(ui, Diagnostics::new());
            return Err(CommandError::reported());
        }
        Ok(inputs)
    }

    /// Reads the specs. Problems in them go to the diagnostics.
    ///
    /// # Errors
    /// When it is not known what to read.
    pub(crate) fn read_specs(&mut self, args: &InputArgs, ui: &Ui) -> Result<(), CommandError> {
        let wanted = self.project.wanted(&args.paths)?;
        let around = Surroundings {
            root: &self.project.root,
            output: Some(&self.output),
            project_file: self.project.file.as_deref(),
        };
        let mut stdin = std::io::stdin();
        if stdin.is_terminal() && args.paths.iter().any(|p| p.as_os_str() == "-") {
            ui.status("reading a spec from the terminal; end it with Ctrl-D");
        }
        let texts = sources::read(&wanted, around, &mut stdin, &mut self.diagnostics);
        let mut inputs = Vec::with_capacity(texts.len());
        for text in texts {
            self.shown.push(text.shown);
            inputs.push((text.origin, text.bytes));
        }
        if inputs.is_empty() && self.diagnostics.has_errors() {
            return Ok(());
        }
        let options = ReadOptions { allow_unknown: args.allow_unknown };
        let (documents, problems) = read(&mut self.sources, inputs, &options);
        self.documents = documents;
        let images = self.documents.miniclusters.iter().filter_map(|cluster| {
            cluster.spec.flux.as_ref()?.container.as_ref()?.image.as_ref().map(|image| image.value.as_str())
        });
        if images.into_iter().any(|image| view_name(image).is_some()) {
            self.documents.views = read_all(&self.project.inside("views"))?;
        }
        let source_ref =
            |(_, f): (FileId, &SourceFile)| SourceRef { path: f.name.clone(), sha256: sha256_hex(f.text.as_bytes()) };
        self.refs = self.sources.iter().map(source_ref).collect();
        self.diagnostics.extend(problems);
        Ok(())
    }

    /// What to compile, with the public keys that are known.
    pub(crate) fn to_compile<'a>(
        &'a self,
        public_keys: &'a std::collections::BTreeMap<CertificateNeed, String>,
    ) -> Input<'a> {
        Input {
            documents: &self.documents,
            project: self.project.written.as_ref(),
            set: &self.set,
            // A document that could not be read may be the one that the project file speaks of.
            is_whole: self.scope == Scope::Whole && !self.diagnostics.has_errors(),
            public_keys,
        }
    }

    /// The file a document came from, as generated files name it.
    pub(crate) fn source_ref(&self, file: FileId) -> SourceRef {
        let none = || SourceRef { path: String::new(), sha256: sha256_hex(b"") };
        self.refs.get(file.0 as usize).cloned().unwrap_or_else(none)
    }

    /// The files that were read: path seen from the project's folder, and the path itself. Standard input is `-`.
    pub(crate) fn files(&self) -> Vec<(String, PathBuf)> {
        let one = |(path, shown): (&SourceRef, &String)| {
            let of_project = self.project.file.as_ref().filter(|file| sources::shown(file) == *shown);
            match of_project {
                Some(file) => (sources::origin(file, &self.project.root), file.clone()),
                None => (path.path.clone(), PathBuf::from(shown)),
            }
        };
        self.refs.iter().zip(&self.shown).map(one).collect()
    }

    /// Prints what was found so far and `more`.
    pub(crate) fn report(&mut self, ui: &Ui, more: Diagnostics) -> Tally {
        let mut all = std::mem::take(&mut self.diagnostics);
        all.extend(more);
        self.documents.point_at_anchors(&mut all);
        let texts = self.sources.iter().map(|(id, file)| {
            let name = self.shown.get(id.0 as usize).map_or(file.name.as_str(), String::as_str);
            SourceText { id, name, text: &file.text }
        });
        ui.diagnostics(texts, &self.documents.secrets, all)
    }
}

/// Which bundles of an earlier build this one may replace.
fn scope(paths: &[PathBuf], root: &Path) -> Scope {
    if paths.is_empty() {
        return Scope::Whole;
    }
    Scope::Sources(paths.iter().map(|path| sources::origin(path, root)).collect())
}

/// Decides how many threads rayon has; without a wish it makes one per processor when first needed.
fn set_threads(threads: Option<NonZeroUsize>) -> Result<(), CommandError> {
    let Some(threads) = threads else { return Ok(()) };
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.get())
        .build_global()
        .map_err(|e| CommandError::operation(format!("cannot start {threads} threads: {e}")))
}
