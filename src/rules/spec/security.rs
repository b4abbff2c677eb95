//! Security contexts of pods, containers and the view.

use std::collections::BTreeMap;

use super::check::{Check, is_true, shown, text};
use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Span};
use crate::rules::syntax;
use crate::spec::Spanned;
use crate::spec::minicluster::{PodSecurityContext, SeccompProfile, SecurityContext, WindowsOptions};

pub(super) fn check(check: &mut Check<'_>) {
    let pod = check.spec.pod.as_ref().and_then(|pod| pod.value.security_context.as_ref()).map(|context| &context.value);
    if let Some(context) = pod {
        self::pod(check, context);
    }
    for place in check.all_containers() {
        let own = place.container.security_context.as_ref();
        if let Some(context) = own {
            container(check, &context.value);
        }
        runs_as_root(check, pod, own.map(|context| &context.value));
    }
    if let Some(context) = check.view().and_then(|view| view.security_context.as_ref()) {
        container(check, &context.value);
        runs_as_root(check, pod, Some(&context.value));
    }
}

fn id(check: &mut Check<'_>, what: &str, written: &Option<Spanned<i64>>) {
    if let Some(id) = written {
        one_id(check, what, id);
    }
}

fn one_id(check: &mut Check<'_>, what: &str, id: &Spanned<i64>) {
    if !(0..=i64::from(i32::MAX)).contains(&id.value) {
        let message = format!("{what} {} is not between 0 and 2147483647", id.value);
        check.error(codes::ID_RANGE, id.span, message, "use an id in this range");
    }
}

fn pod(check: &mut Check<'_>, context: &PodSecurityContext) {
    id(check, "fsGroup", &context.fs_group);
    id(check, "runAsUser", &context.run_as_user);
    id(check, "runAsGroup", &context.run_as_group);
    for group in context.supplemental_groups.iter().flat_map(|list| &list.value) {
        one_id(check, "supplemental group", group);
    }
    let policies = &["OnRootMismatch", "Always"];
    check.one_of(codes::UNSUPPORTED_VALUE, "fsGroupChangePolicy", &context.fs_group_change_policy, policies);
    seccomp(check, &context.seccomp_profile);
    windows(check, &context.windows_options);
    sysctls(check, context);
}

fn sysctls(check: &mut Check<'_>, context: &PodSecurityContext) {
    let shares_ipc = check.spec.pod.as_ref().is_some_and(|pod| is_true(&pod.value.host_ipc));
    let mut seen: BTreeMap<String, Span> = BTreeMap::new();
    for sysctl in context.sysctls.iter().flat_map(|list| &list.value) {
        // Reading has reported a name or value that is missing.
        let Some(name) = &sysctl.value.name else { continue };
        if !check.form(codes::SYSCTL, "sysctl", name, syntax::sysctl) {
            continue;
        }
        let dotted = name.value.replace('/', ".");
        if shares_ipc
            && (dotted.starts_with("kernel.shm")
                || dotted.starts_with("kernel.msg")
                || dotted == "kernel.sem"
                || dotted.starts_with("fs.mqueue."))
        {
            let message = format!("sysctl `{dotted}` cannot be set with hostIPC");
            check.error(codes::SYSCTL, name.span, message, "remove one of the two");
        }
        if let Some(first) = seen.insert(dotted, name.span) {
            let message = format!("sysctl `{}` is listed twice", shown(&name.value));
            let diagnostic = Diagnostic::error(codes::SYSCTL, name.span, message).help("remove one");
            check.push(diagnostic.related(first, "first listed here"));
        }
    }
}

fn container(check: &mut Check<'_>, context: &SecurityContext) {
    id(check, "runAsUser", &context.run_as_user);
    id(check, "runAsGroup", &context.run_as_group);
    seccomp(check, &context.seccomp_profile);
    windows(check, &context.windows_options);
    if check.one_of(codes::UNSUPPORTED_VALUE, "procMount", &context.proc_mount, &["Default", "Unmasked"])
        && let Some(mount) = context.proc_mount.as_ref().filter(|mount| mount.value == "Unmasked")
    {
        let message = "procMount Unmasked needs a user namespace of the pod's own";
        check.error(codes::SECURITY_CONFLICT, mount.span, message, "remove it");
    }
    capabilities(check, context);
}

fn capabilities(check: &mut Check<'_>, context: &SecurityContext) {
    let capabilities = context.capabilities.as_ref().map(|capabilities| &capabilities.value);
    let added = || capabilities.and_then(|c| c.add.as_ref()).into_iter().flat_map(|list| &list.value);
    let dropped = || capabilities.and_then(|c| c.drop.as_ref()).into_iter().flat_map(|list| &list.value);
    for name in added().chain(dropped()) {
        if let Some(short) = name.value.to_ascii_uppercase().strip_prefix("CAP_") {
            let message = format!("capability `{}` is written without `CAP_`", shown(&name.value));
            check.error(codes::CAPABILITY, name.span, message, format!("write `{short}`"));
        }
    }
    let Some(refused) = context.allow_privilege_escalation.as_ref().filter(|flag| !flag.value) else { return };
    let privileged = context.privileged.as_ref().filter(|flag| flag.value).map(|flag| ("privileged", flag.span));
    let admin = added().find(|name| matches!(name.value.as_str(), "SYS_ADMIN" | "CAP_SYS_ADMIN"));
    let admin = admin.map(|name| ("capability SYS_ADMIN", name.span));
    for (what, span) in privileged.into_iter().chain(admin) {
        let message = format!("allowPrivilegeEscalation false contradicts {what}");
        let diagnostic =
            Diagnostic::error(codes::SECURITY_CONFLICT, refused.span, message).help("remove one of the two");
        check.push(diagnostic.related(span, what));
    }
}

/// The container's own settings go before the pod's.
fn runs_as_root(check: &mut Check<'_>, pod: Option<&PodSecurityContext>, own: Option<&SecurityContext>) {
    let non_root = own.and_then(|c| c.run_as_non_root.as_ref()).or(pod.and_then(|c| c.run_as_non_root.as_ref()));
    let user = own.and_then(|c| c.run_as_user.as_ref()).or(pod.and_then(|c| c.run_as_user.as_ref()));
    if let (Some(non_root), Some(user)) = (non_root, user)
        && non_root.value
        && user.value == 0
    {
        let diagnostic = Diagnostic::error(codes::SECURITY_CONFLICT, user.span, "runAsUser 0 contradicts runAsNonRoot")
            .help("use another user, or `runAsNonRoot: false`")
            .related(non_root.span, "runAsNonRoot");
        // The same two lines may hold for several containers.
        if !check.found.iter().any(|found| *found == diagnostic) {
            check.push(diagnostic);
        }
    }
}

fn seccomp(check: &mut Check<'_>, profile: &Option<Spanned<SeccompProfile>>) {
    const TYPES: &[&str] = &["RuntimeDefault", "Unconfined", "Localhost"];
    let Some(written) = profile else { return };
    let profile = &written.value;
    // Reading has reported a type that is not written at all.
    let Some(kind) = &profile.type_ else { return };
    if kind.value.is_empty() {
        check.error(
            codes::SECCOMP,
            written.span,
            "the seccomp profile has an empty type",
            "write `type: RuntimeDefault`",
        );
        return;
    }
    if !check.one_of(codes::SECCOMP, "seccomp type", &profile.type_, TYPES) {
        return;
    }
    match (kind.value.as_str(), text(&profile.localhost_profile)) {
        ("Localhost", None) => {
            let message = "seccomp type Localhost without localhostProfile";
            check.error(codes::SECCOMP, kind.span, message, "name the profile file on the node");
        }
        ("Localhost", Some(path)) => {
            check.form(codes::SECCOMP, "seccomp profile", path, syntax::relative_path);
        }
        (_, Some(path)) => {
            let message = format!("localhostProfile needs the type Localhost, not {}", kind.value);
            check.error(codes::SECCOMP, path.span, message, "remove it, or write `type: Localhost`");
        }
        _ => {}
    }
}

fn windows(check: &mut Check<'_>, options: &Option<Spanned<WindowsOptions>>) {
    let Some(options) = options.as_ref().filter(|options| options.value != WindowsOptions::default()) else { return };
    if let Some(flag) = options.value.host_process.as_ref().filter(|flag| flag.value) {
        let message = "hostProcess needs the node's network, which brokers cannot use";
        check.error(codes::WINDOWS, flag.span, message, "remove it");
    }
    let message = "windowsOptions have no effect: Flux runs on Linux";
    check.warn(codes::WINDOWS, options.span, message, "remove them");
}
