//! Shell scripts: the only templates of flux-gen. Values reach a shell quoted, unless their field is documented as shell.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use super::RenderError;
use crate::flux::topology::Topology;
use crate::model::words::{join, quote};
use crate::model::{
    Cluster, Entrypoint, FollowerEnd, Hooks, Leader, Program, Runner, Submission, User, ViewKind, Words,
};

const FILES: &str = "/flux_operator";
const BATCH_FILE: &str = "flux-job.batch";

const SOURCES: &[(&str, &str)] = &[
    ("common.sh", include_str!("templates/common.sh")),
    ("flux-init.sh", include_str!("templates/flux-init.sh")),
    ("wait.sh", include_str!("templates/wait.sh")),
    ("start.sh", include_str!("templates/start.sh")),
    ("timed.sh", include_str!("templates/timed.sh")),
    ("record.sh", include_str!("templates/record.sh")),
    ("diagnostics.sh", include_str!("templates/diagnostics.sh")),
    ("flux-view.sh", include_str!("templates/flux-view.sh")),
    ("flux-connect.sh", include_str!("templates/flux-connect.sh")),
    ("load-fluxion.sh", include_str!("templates/load-fluxion.sh")),
];

/// The parsed script templates; made once and shared.
pub struct Templates(Environment<'static>);

impl Templates {
    /// Parses the templates that are part of the program.
    ///
    /// # Errors
    /// When one has a mistake, which a test rules out.
    pub fn new() -> Result<Self, RenderError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_syntax(
            SyntaxConfig::builder()
                .trim_blocks(true)
                .lstrip_blocks(true)
                .keep_trailing_newline(true)
                .build()
                .map_err(|source| failed("syntax", source))?,
        );
        environment.add_filter("sh", |text: String| quote(&text));
        for (name, source) in SOURCES {
            environment.add_template(name, source).map_err(|source| failed(name, source))?;
        }
        Ok(Self(environment))
    }

    fn render(&self, name: &str, values: Value) -> Result<String, RenderError> {
        let template = self.0.get_template(name).map_err(|source| failed(name, source))?;
        let mut text = template.render(values).map_err(|source| failed(name, source))?;
        // The buffer is one for the longest branch of the template, and the text lives as long as all clusters do.
        text.shrink_to_fit();
        Ok(text)
    }
}

fn failed(script: &str, source: minijinja::Error) -> RenderError {
    RenderError { script: script.to_owned(), source }
}

type Files = BTreeMap<String, String>;

/// Every file of the scripts ConfigMap, by name.
pub(super) fn files(cluster: &Cluster, templates: &Templates) -> Result<Files, RenderError> {
    let mut files = Files::new();
    files.insert("common.sh".to_owned(), common(cluster, templates, true)?);
    files.insert(format!("wait-{}.sh", cluster.runner.index), wait(cluster, templates)?);
    add_user_files(&mut files, &format!("hook-{}", cluster.runner.index), &cluster.runner.hooks);
    add_script(&mut files, &script_file("", cluster.runner.index), cluster.runner.script.as_ref());
    if cluster.view.kind != ViewKind::Image {
        files.insert("flux-init.sh".to_owned(), init(cluster, templates)?);
    }
    for name in ["flux-view.sh", "flux-connect.sh", "load-fluxion.sh"] {
        files.insert(name.to_owned(), templates.render(name, view_values(cluster))?);
    }
    for name in helpers(cluster) {
        files.insert(name.to_owned(), templates.render(name, context! {})?);
    }
    if let Program::Batch { script, .. } = &cluster.program {
        files.insert(BATCH_FILE.to_owned(), script.clone());
    }
    for sidecar in &cluster.sidecars {
        let container = Container {
            kind: "",
            index: sidecar.index,
            name: &sidecar.container.name,
            entrypoint: &sidecar.entrypoint,
        };
        add_container(&mut files, templates, &container, sidecar.wait_for_socket)?;
    }
    for service in &cluster.services {
        let container = Container {
            kind: "services-",
            index: service.index,
            name: &service.container.name,
            entrypoint: &service.entrypoint,
        };
        add_container(&mut files, templates, &container, false)?;
    }
    if cluster.services.iter().any(|s| matches!(s.entrypoint, Entrypoint::Wrapped { .. })) {
        files.insert("services-common.sh".to_owned(), common(cluster, templates, false)?);
    }
    Ok(files)
}

/// Small programs that only some modes need.
fn helpers(cluster: &Cluster) -> impl Iterator<Item = &'static str> {
    let submits = !matches!(cluster.program, Program::Shell | Program::None);
    [
        (cluster.logging.timed && submits, "timed.sh"),
        (cluster.broker.archive.is_some() && submits, "record.sh"),
        (cluster.program == Program::Diagnostics, "diagnostics.sh"),
    ]
    .into_iter()
    .filter_map(|(needed, name)| needed.then_some(name))
}

fn common(cluster: &Cluster, templates: &Templates, has_flux: bool) -> Result<String, RenderError> {
    templates.render(
        "common.sh",
        context! {
            has_flux,
            main_host => cluster.broker.hosts.nth(0),
            hosts => cluster.broker.hosts.to_string(),
            quiet => cluster.logging.quiet,
            strict => cluster.logging.strict,
            simple_scheduler => cluster.broker.simple_scheduler,
            ..view_values(cluster)
        },
    )
}

/// What scripts about the view need.
fn view_values(cluster: &Cluster) -> Value {
    let environment: Vec<Value> = cluster
        .broker
        .environment
        .iter()
        .map(|(name, value)| Value::from(vec![Value::from(name.as_str()), Value::from(value.as_str())]))
        .collect();
    context! {
        mount => cluster.view.mount_path.as_str(),
        view => cluster.view.kind != ViewKind::Disabled,
        python_path => cluster.view.python_path.as_deref(),
        environment => environment,
    }
}

fn init(cluster: &Cluster, templates: &Templates) -> Result<String, RenderError> {
    templates.render("flux-init.sh", context! { image => cluster.view.image.as_str(), ..view_values(cluster) })
}

fn wait(cluster: &Cluster, templates: &Templates) -> Result<String, RenderError> {
    let broker = &cluster.broker;
    let runner = &cluster.runner;
    let archive = broker.archive.as_deref();
    let user = match &runner.user {
        User::Container => None,
        User::Named { name, uid } => Some(context! { name => name.as_str(), uid => *uid }),
    };
    let lead = match &broker.leader {
        Leader::Here => None,
        Leader::Elsewhere { address, port } => Some(context! { address => address.as_str(), port => *port }),
    };
    let program = program(cluster);
    templates.render(
        "wait.sh",
        context! {
            comment => one_line(&cluster.name),
            name => cluster.name.as_str(),
            headless => cluster.network.headless.as_str(),
            port => cluster.network.port,
            hooks => format!("hook-{}", runner.index),
            leader_here => lead.is_none(),
            lead,
            cores => runner.cores,
            logs => runner.logs.as_str(),
            user,
            public_key => cluster.certificate.public_key.is_some(),
            public_key_quoted => cluster.certificate.public_key.as_ref().map(|key| format!("\"{key}\"")),
            secret => cluster.certificate.secret.as_str(),
            timed => cluster.logging.timed,
            quiet => cluster.logging.quiet,
            broker_command => broker_command(cluster),
            option => if broker.wrap.is_some() { "-o" } else { "" },
            elastic => cluster.size.elastic,
            archive,
            archive_new => archive.map(new_archive),
            splits_nodes => program.splits_nodes,
            program => program.words,
            batch => program.batch,
            parent => parent(broker.topology),
            follower_exits => broker.follower_end == FollowerEnd::Exit,
        },
    )
}

/// The new archive stands beside the old one, with the same ending, because Flux tells formats by it.
fn new_archive(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, file)) => format!("{folder}/.new-{file}"),
        None => format!(".new-{path}"),
    }
}

/// `flux broker` with everything that is known now; `flux start` when it is to be wrapped, because only that can.
fn broker_command(cluster: &Cluster) -> String {
    let broker = &cluster.broker;
    let config = format!("{}/config/etc/flux/config", cluster.view.mount_path);
    let mut options = vec![format!("--config-path={config}")];
    for (position, (name, value)) in broker.attributes.iter().enumerate() {
        options.push(format!("-S{name}={value}"));
        if position == 0 && cluster.program == Program::None {
            options.push("-Sbroker.rc2_none".to_owned());
        }
    }
    match &broker.wrap {
        None => join(&[vec!["flux".to_owned(), "broker".to_owned()], options].concat()),
        Some(wrap) => {
            let options = options.into_iter().map(|option| format!("-o{option}"));
            let words = ["flux".to_owned(), "start".to_owned(), format!("--wrap={wrap}")];
            join(&words.into_iter().chain(options).collect::<Vec<_>>())
        }
    }
}

/// The initial program as shell words.
#[derive(Default)]
struct InitialProgram {
    words: String,
    /// The words hold `$flux_gen_nodes`, which must be split.
    splits_nodes: bool,
    /// Parts of the shell text that submits a batch, around the numbers of an elastic cluster.
    batch: Option<Value>,
}

fn program(cluster: &Cluster) -> InitialProgram {
    let runner = &cluster.runner;
    let mut words = Vec::new();
    let has_program = !matches!(cluster.program, Program::Shell | Program::None);
    if cluster.broker.archive.is_some() && has_program {
        words.extend(["/bin/bash".to_owned(), format!("{FILES}/record.sh")]);
    }
    if cluster.logging.timed && has_program {
        words.extend(["/bin/bash".to_owned(), format!("{FILES}/timed.sh"), "fluxsubmit".to_owned()]);
    }
    words.extend(runner.prefix.iter().cloned());
    match &cluster.program {
        Program::Shell | Program::None => InitialProgram::default(),
        Program::Diagnostics => {
            words.extend(["/bin/bash".to_owned(), format!("{FILES}/diagnostics.sh")]);
            InitialProgram { words: join(&words), ..InitialProgram::default() }
        }
        Program::Launcher(command) => {
            words.extend(command_words(command, "", runner.index, runner.script.as_deref()));
            InitialProgram { words: join(&words), ..InitialProgram::default() }
        }
        Program::Submit(submission) => submit(cluster, words, submission),
        Program::Batch { submission, .. } => {
            InitialProgram { words: join(&words), batch: Some(batch(cluster, submission)), splits_nodes: false }
        }
    }
}

fn submit(cluster: &Cluster, mut before: Vec<String>, submission: &Submission) -> InitialProgram {
    let runner: &Runner = &cluster.runner;
    before.extend(submission.submit.iter().cloned());
    let mut after = submission.flags.clone();
    after.extend(["--quiet".to_owned(), "--watch".to_owned()]);
    after.extend(command_words(&submission.command, "", runner.index, runner.script.as_deref()));
    let elastic = cluster.size.elastic;
    let nodes = if elastic { "$flux_gen_nodes".to_owned() } else { join(&submission.nodes) };
    InitialProgram { words: format!("{} {nodes} {}", join(&before), join(&after)), splits_nodes: elastic, batch: None }
}

fn batch(cluster: &Cluster, submission: &Submission) -> Value {
    let mut command = submission.submit.clone();
    if command.last().is_some_and(|last| last == "submit") {
        command.pop();
        command.push("batch".to_owned());
    } else {
        command = vec!["flux".to_owned(), "batch".to_owned()];
    }
    let nodes = if cluster.size.elastic { Vec::new() } else { submission.nodes.clone() };
    let before = [command, nodes].concat();
    let after = [submission.flags.clone(), vec!["--flags".to_owned(), "waitable".to_owned()]].concat();
    context! {
        before => format!("{} ", join(&before)),
        after => format!("{} {FILES}/{BATCH_FILE} && flux job wait --all", join(&after)),
    }
}

/// A command as an argument vector. A script that names another interpreter is started by it, else by bash.
fn command_words(command: &Words, kind: &str, index: usize, script: Option<&str>) -> Vec<String> {
    match command {
        Words::Vector(words) => words.clone(),
        Words::Shell(text) => vec!["/bin/bash".to_owned(), "-c".to_owned(), text.clone()],
        Words::Script => {
            let path = format!("{FILES}/{}", script_file(kind, index));
            let first = script.and_then(|text| text.lines().next()).unwrap_or_default();
            if first.starts_with("#!") && !first.trim_end().ends_with("sh") {
                vec![path]
            } else {
                vec!["/bin/bash".to_owned(), path]
            }
        }
    }
}

/// The parent's rank as shell arithmetic on `flux_gen_rank` (F §6).
fn parent(topology: Topology) -> String {
    match topology {
        Topology::Kary(0) | Topology::Custom | Topology::Mincrit(None | Some(0)) => "0".to_owned(),
        Topology::Kary(k) => format!("(flux_gen_rank - 1) / {k}"),
        Topology::Binomial => "flux_gen_rank & (flux_gen_rank - 1)".to_owned(),
        Topology::Mincrit(Some(k)) => {
            format!("flux_gen_rank <= {k} ? 0 : (flux_gen_rank - {k} - 1) % {k} + 1")
        }
    }
}

/// A container that does not run Flux.
struct Container<'a> {
    kind: &'a str,
    index: usize,
    name: &'a str,
    entrypoint: &'a Entrypoint,
}

fn add_container(
    files: &mut Files,
    templates: &Templates,
    container: &Container<'_>,
    wait_for_socket: bool,
) -> Result<(), RenderError> {
    let Entrypoint::Wrapped { hooks, command, prefix, script } = container.entrypoint else { return Ok(()) };
    let Container { kind, index, name, .. } = container;
    let hook_files = format!("{kind}hook-{index}");
    let program = command
        .as_ref()
        .map(|command| join(&[prefix.clone(), command_words(command, kind, *index, script.as_deref())].concat()));
    let text = templates.render(
        "start.sh",
        context! {
            comment => one_line(name),
            common => format!("{kind}common.sh"),
            has_flux => kind.is_empty(),
            hooks => hook_files.as_str(),
            wait_for_socket,
            program,
        },
    )?;
    files.insert(format!("{kind}start-{index}.sh"), text);
    add_user_files(files, &hook_files, hooks);
    add_script(files, &script_file(kind, *index), script.as_ref());
    Ok(())
}

fn script_file(kind: &str, index: usize) -> String {
    format!("{kind}script-{index}.sh")
}

fn add_user_files(files: &mut Files, prefix: &str, hooks: &Hooks) {
    let Hooks { init, pre_command, pre, broker_pre, worker_pre, service_pre, post } = hooks;
    for (name, text) in [
        ("init", init),
        ("preCommand", pre_command),
        ("pre", pre),
        ("brokerPre", broker_pre),
        ("workerPre", worker_pre),
        ("servicePre", service_pre),
        ("post", post),
    ] {
        add_script(files, &format!("{prefix}-{name}.sh"), text.as_ref());
    }
}

fn add_script(files: &mut Files, name: &str, text: Option<&String>) {
    if let Some(text) = text {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        files.insert(name.to_owned(), format!("{text}{end}"));
    }
}

/// A name in a comment must not end the comment.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
