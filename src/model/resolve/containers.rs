//! Containers: the one that runs Flux, sidecars, and those of the services Pod.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::security;
use super::volumes::mounts;
use super::written::{flag, number, owned, text, texts};
use crate::diag::{Diagnostic, Diagnostics, codes::model as codes};
use crate::model::kubernetes::Feature;
use crate::model::settings::{Settings, SidecarKind};
use crate::model::words::{self, CommandText};
use crate::model::{Entrypoint, Hooks, Pod, ResourceList, Runner, ServiceContainer, Sidecar, User, Words};
use crate::spec::minicluster::{Container, FluxUser, LifeCycle, MiniClusterSpec, Resources};
use crate::spec::{IntOrString, Map, Spanned};

/// The default of the MiniCluster API.
const DEFAULT_IMAGE: &str = "ghcr.io/rse-ops/accounting:app-latest";
const DEFAULT_LOGS: &str = "/tmp/fluxout";

/// Position of the container that runs Flux: the only one, or the one that says so; the rules see to exactly one.
pub(super) fn runner_index(spec: &MiniClusterSpec) -> usize {
    let Some(containers) = spec.containers.as_ref() else { return 0 };
    containers.iter().position(|c| flag(&c.run_flux)).unwrap_or(0)
}

/// The container at a position; rules make sure there is one.
pub(super) fn runner_spec(spec: &MiniClusterSpec, index: usize) -> Option<&Spanned<Container>> {
    spec.containers.as_ref().and_then(|c| c.value.get(index))
}

/// Resolves the container that runs Flux.
pub(super) fn runner(
    spec: &MiniClusterSpec,
    index: usize,
    name: &str,
    pod: &Pod,
    diagnostics: &mut Diagnostics,
) -> Runner {
    let default = Container::default();
    let written = runner_spec(spec, index).map_or(&default, |c| &c.value);
    let user = user(written);
    if let Some(span) = written.command.as_ref().map(|c| c.span)
        && let Some(CommandText::OpenQuote(_)) = text(&written.command).map(words::classify)
    {
        let message = "the command has an open quote, so its quotes are taken as letters";
        let help = "write \"it's\" with double quotes around, or close the quote";
        diagnostics.push(Diagnostic::warning(codes::OPEN_QUOTE, span, message).help(help));
    }
    Runner {
        index,
        container: container(written, name.to_owned()),
        hooks: hooks(written),
        script: script(written),
        prefix: prefix(written),
        certificate_mode: certificate_mode(written, pod),
        user,
        logs: owned(&written.logs).unwrap_or_else(|| DEFAULT_LOGS.to_owned()),
        cores: number(&written.cores),
    }
}

/// Warns where the API's default image stands in for a missing one.
pub(super) fn check_images(spec: &MiniClusterSpec, diagnostics: &mut Diagnostics) {
    let containers = [&spec.containers, &spec.services].into_iter().flatten().flat_map(|c| c.value.iter());
    for container in containers.filter(|c| c.image.is_none()) {
        let message = format!("a container without `image` gets the API's default, {DEFAULT_IMAGE}");
        diagnostics.push(Diagnostic::warning(codes::DEFAULT_IMAGE, container.span, message).help("write `image`"));
    }
}

/// Resolves the containers of the pods that do not run Flux.
pub(super) fn sidecars(spec: &MiniClusterSpec, runner: usize, settings: &Settings) -> Vec<Sidecar> {
    let socket = !spec.flux.as_ref().is_some_and(|f| flag(&f.disable_socket) || flag(&f.no_wait_socket));
    let containers = spec.containers.iter().flat_map(|c| c.value.iter()).enumerate();
    containers
        .filter(|(index, _)| *index != runner)
        .map(|(index, written)| {
            let entrypoint = entrypoint(written);
            Sidecar {
                index,
                container: container(written, owned(&written.name).unwrap_or_default()),
                native: is_native(written, settings),
                wait_for_socket: socket && matches!(entrypoint, Entrypoint::Wrapped { .. }),
                entrypoint,
                service_ports: ports(written).collect(),
            }
        })
        .collect()
}

/// Resolves the containers of the services Pod.
pub(super) fn services(spec: &MiniClusterSpec) -> Vec<ServiceContainer> {
    let containers = spec.services.iter().flat_map(|c| c.value.iter()).enumerate();
    containers
        .map(|(index, written)| ServiceContainer {
            index,
            container: container(written, owned(&written.name).unwrap_or_default()),
            entrypoint: entrypoint(written),
        })
        .collect()
}

/// Native sidecars where Kubernetes has none cannot be.
pub(super) fn check_sidecars(spec: &MiniClusterSpec, settings: &Settings, found: &mut Diagnostics) {
    let version = settings.kubernetes_version;
    if settings.sidecar != SidecarKind::Native || version.has(Feature::NativeSidecars) {
        return;
    }
    for container in spec.containers.iter().flat_map(|c| c.value.iter()).filter(|c| !flag(&c.run_flux)) {
        let message = format!("`sidecar: native` needs native sidecars, which Kubernetes {version} has not");
        found.push(
            Diagnostic::error(codes::NEEDS_NEWER_KUBERNETES, container.span, message)
                .help(format!("{}, or `sidecar: ordinary`", Feature::NativeSidecars.help())),
        );
    }
}

/// A daemon would keep the Job running for ever: it has ports, or runs its image's own program.
fn is_native(written: &Container, settings: &Settings) -> bool {
    match settings.sidecar {
        SidecarKind::Native => true,
        SidecarKind::Ordinary => false,
        SidecarKind::Auto => {
            let has_work = text(&written.command).is_some() || script(written).is_some();
            settings.kubernetes_version.has(Feature::NativeSidecars) && (ports(written).next().is_some() || !has_work)
        }
    }
}

fn entrypoint(written: &Container) -> Entrypoint {
    let command = text(&written.command).map(command_words);
    if flag(&written.no_wrap_entrypoint) {
        return command.map_or(Entrypoint::Image, |command| Entrypoint::Direct(direct(command)));
    }
    let script = script(written);
    let hooks = hooks(written);
    if command.is_none() && script.is_none() && hooks == Hooks::default() {
        return Entrypoint::Image;
    }
    let command = command.or_else(|| script.as_ref().map(|_| Words::Script));
    Entrypoint::Wrapped { hooks: Box::new(hooks), command, prefix: prefix(written), script }
}

/// A command as words or shell text.
pub(super) fn command_words(text: &str) -> Words {
    match words::classify(text) {
        CommandText::Words(words) | CommandText::OpenQuote(words) => Words::Vector(words),
        CommandText::Shell(text) => Words::Shell(text),
    }
}

fn direct(command: Words) -> Vec<String> {
    match command {
        Words::Vector(words) => words,
        Words::Shell(text) => vec!["/bin/sh".to_owned(), "-c".to_owned(), text],
        Words::Script => Vec::new(),
    }
}

fn hooks(written: &Container) -> Hooks {
    let pre_command = owned(&written.pre_command);
    let Some(commands) = written.commands.as_ref() else { return Hooks { pre_command, ..Hooks::default() } };
    Hooks {
        init: owned(&commands.init),
        pre_command,
        pre: owned(&commands.pre),
        broker_pre: owned(&commands.broker_pre).or_else(|| owned(&commands.pre_broker)),
        worker_pre: owned(&commands.worker_pre).or_else(|| owned(&commands.pre_worker)),
        service_pre: owned(&commands.service_pre),
        post: owned(&commands.post),
    }
}

fn prefix(written: &Container) -> Vec<String> {
    let prefix = written.commands.as_ref().and_then(|c| text(&c.prefix));
    prefix.and_then(words::split).unwrap_or_default()
}

/// The operator wrote scripts through a here-document, so its documents escape `$`: before a letter, `_` or `{`, `\$`
/// means `$`. Nothing else is changed.
fn script(written: &Container) -> Option<String> {
    let script = written.commands.as_ref().and_then(|c| text(&c.script))?;
    let mut out = String::with_capacity(script.len());
    let mut rest = script;
    while let Some(at) = rest.find("\\$") {
        let after = &rest[at + 2..];
        let is_name = after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '{');
        out.push_str(&rest[..at]);
        out.push_str(if is_name { "$" } else { "\\$" });
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// Only what the user asked for: an explicit user, or an explicit `runFluxAsRoot: false`.
fn user(written: &Container) -> User {
    let explicit: Option<&FluxUser> = written.flux_user.as_ref().or(written.fluxuser.as_ref()).map(|u| &u.value);
    let as_root = written.commands.as_ref().and_then(|c| c.run_flux_as_root.as_ref()).map(|v| v.value);
    if as_root == Some(true) || (explicit.is_none() && as_root != Some(false)) {
        return User::Container;
    }
    let uid = explicit.and_then(|u| u.uid.as_ref()).and_then(|uid| u32::try_from(uid.value).ok());
    let name = explicit.and_then(|u| owned(&u.name));
    User::Named { name: name.unwrap_or_else(|| "flux".to_owned()), uid: uid.unwrap_or(1000) }
}

/// Mode of the certificate in its Secret volume (F §5.5). The entrypoint copies it to a private file, so the volume, which
/// only this container mounts, need only be readable to whoever the entrypoint runs as.
fn certificate_mode(written: &Container, pod: &Pod) -> i32 {
    let in_container = written.security_context.as_ref().and_then(|s| s.run_as_user.as_ref()).map(|u| u.value);
    let context = pod.spec.security_context.as_ref();
    let uid = in_container.or_else(|| context.and_then(|s| s.run_as_user));
    if context.and_then(|s| s.fs_group).is_some() {
        0o440
    } else if uid == Some(0) {
        0o400
    } else {
        0o444
    }
}

fn container(written: &Container, name: String) -> core::Container {
    let env = environment(written);
    let ports: Vec<_> = ports(written)
        .map(|port| core::ContainerPort {
            container_port: i32::from(port),
            protocol: Some("TCP".to_owned()),
            ..Default::default()
        })
        .collect();
    let mounts = mounts(written.volumes.as_ref());
    core::Container {
        name,
        image: Some(owned(&written.image).unwrap_or_else(|| DEFAULT_IMAGE.to_owned())),
        image_pull_policy: Some(pull_policy(&written.pull_always, &written.image_pull_policy)),
        env: (!env.is_empty()).then_some(env),
        lifecycle: lifecycle(written.life_cycle.as_ref()),
        ports: (!ports.is_empty()).then_some(ports),
        resources: resources(written.resources.as_ref()),
        security_context: security::container(written.security_context.as_ref()),
        stdin: Some(true),
        tty: Some(true),
        volume_mounts: (!mounts.is_empty()).then_some(mounts),
        working_dir: owned(&written.working_dir),
        ..Default::default()
    }
}

fn ports(written: &Container) -> impl Iterator<Item = u16> {
    written.ports.iter().flat_map(|p| p.value.iter()).filter_map(|p| u16::try_from(p.value).ok())
}

/// `pullAlways` beats `imagePullPolicy`.
pub(super) fn pull_policy(always: &Option<Spanned<bool>>, policy: &Option<Spanned<String>>) -> String {
    if flag(always) { "Always".to_owned() } else { text(policy).unwrap_or("IfNotPresent").to_owned() }
}

/// Plain variables by name, then those from Secrets; where a name is in both the Secret wins.
fn environment(written: &Container) -> Vec<core::EnvVar> {
    let mut plain = texts(&written.environment);
    let mut secrets: Vec<_> = written.secrets.iter().flat_map(|s| s.value.iter()).collect();
    secrets.sort_by(|a, b| a.key.value.cmp(&b.key.value));
    for secret in &secrets {
        plain.remove(&secret.key.value);
    }
    let plain = plain.into_iter().map(|(name, value)| core::EnvVar { name, value: Some(value), value_from: None });
    let secrets = secrets.into_iter().map(|entry| core::EnvVar {
        name: entry.key.value.clone(),
        value: None,
        value_from: Some(core::EnvVarSource {
            secret_key_ref: Some(core::SecretKeySelector {
                key: owned(&entry.value.key).unwrap_or_default(),
                name: owned(&entry.value.name).unwrap_or_default(),
                optional: None,
            }),
            ..Default::default()
        }),
    });
    plain.chain(secrets).collect()
}

/// Each hook is a shell command.
fn lifecycle(written: Option<&Spanned<LifeCycle>>) -> Option<core::Lifecycle> {
    let hook = |text: Option<String>| {
        text.map(|text| core::LifecycleHandler {
            exec: Some(core::ExecAction { command: Some(vec!["/bin/sh".to_owned(), "-c".to_owned(), text]) }),
            ..Default::default()
        })
    };
    let post_start = hook(written.and_then(|l| owned(&l.post_start_exec)));
    let pre_stop = hook(written.and_then(|l| owned(&l.pre_stop_exec)));
    (post_start.is_some() || pre_stop.is_some()).then(|| core::Lifecycle { post_start, pre_stop, ..Default::default() })
}

/// Kubernetes' resources of a container.
pub(super) fn resources(written: Option<&Spanned<Resources>>) -> Option<core::ResourceRequirements> {
    let limits = written.and_then(|r| quantities(r.limits.as_ref()));
    let requests = written.and_then(|r| quantities(r.requests.as_ref()));
    (limits.is_some() || requests.is_some()).then_some(core::ResourceRequirements { limits, requests, claims: None })
}

/// Quantities by resource name; `None` when there is none.
pub(super) fn quantities(written: Option<&Spanned<Map<IntOrString>>>) -> Option<ResourceList> {
    let list: ResourceList =
        written?.value.iter().map(|e| (e.key.value.clone(), Quantity(e.value.value.to_string()))).collect();
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{FileId, Span};
    use crate::spec::minicluster::Commands;

    fn at<T>(value: T) -> Spanned<T> {
        Spanned::new(value, Span { file: FileId(0), start: 0, end: 0 })
    }

    fn with_script(text: &str) -> Container {
        let commands = Commands { script: Some(at(text.to_owned())), ..Commands::default() };
        Container { commands: Some(at(commands)), ..Container::default() }
    }

    #[test]
    fn escaped_dollars_of_scripts_become_dollars_before_names_only() {
        for (written, meant) in [
            (r"echo \${A} \$B \$_c", "echo ${A} $B $_c"),
            (r"echo \$1 \$$ \\$", r"echo \$1 \$$ \\$"),
            (r"awk '{print \$1}' \n", r"awk '{print \$1}' \n"),
            ("plain", "plain"),
        ] {
            assert_eq!(script(&with_script(written)).as_deref(), Some(meant));
        }
    }

    #[test]
    fn only_explicit_words_change_the_user() {
        let flux = |name: &str, uid| User::Named { name: name.to_owned(), uid };
        let root = |value| Container {
            commands: Some(at(Commands { run_flux_as_root: Some(at(value)), ..Commands::default() })),
            ..Container::default()
        };
        assert_eq!(user(&Container::default()), User::Container);
        assert_eq!(user(&root(true)), User::Container);
        assert_eq!(user(&root(false)), flux("flux", 1000));
        let named = FluxUser { uid: Some(at(1002)), name: Some(at("bob".to_owned())) };
        assert_eq!(user(&Container { fluxuser: Some(at(named)), ..Container::default() }), flux("bob", 1002));
    }
}
