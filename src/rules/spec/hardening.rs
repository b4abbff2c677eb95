//! Fields that a pod security level does not allow, each where it is written.

use super::check::{Check, is_true, shown, text};
use crate::diag::codes::queue as codes;
use crate::diag::{Diagnostic, Span};
use crate::model::hardening::PodSecurity;
use crate::rules::object::{takes_se_linux_type, takes_sysctl};
use crate::spec::Spanned;
use crate::spec::minicluster::{PodSecurityContext, SeLinuxOptions, SeccompProfile, SecurityContext, WindowsOptions};

pub(super) fn check(check: &mut Check<'_>) {
    if check.context.pod_security == PodSecurity::None {
        return;
    }
    if let Some(pod) = check.spec.pod.as_ref().map(|pod| &pod.value) {
        for (field, flag) in [("hostPID", &pod.host_pid), ("hostIPC", &pod.host_ipc)] {
            if let Some(flag) = flag.as_ref().filter(|flag| flag.value) {
                refuse(check, flag.span, &format!("{field} shares a namespace with the node"), "remove it");
            }
        }
        if let Some(context) = &pod.security_context {
            self::pod(check, &context.value);
        }
    }
    for place in check.all_containers() {
        for volume in place.container.volumes.iter().flat_map(|map| &map.value) {
            if let Some(path) = text(&volume.value.host_path) {
                let message = format!("volume `{}` is a folder of the node", shown(&volume.key.value));
                refuse(check, path.span, &message, "use a PersistentVolumeClaim (`claimName`)");
            }
        }
        if let Some(context) = &place.container.security_context {
            container(check, &context.value);
        }
        flux_user(check, place.container);
    }
    if let Some(context) = check.view().and_then(|view| view.security_context.as_ref()) {
        container(check, &context.value);
    }
}

fn refuse(check: &mut Check<'_>, span: Span, what: &str, help: &str) {
    let level = check.context.pod_security.title();
    let message = format!("{what}, which the pod security level {level} does not allow");
    let diagnostic = Diagnostic::error(codes::POD_SECURITY, span, message);
    check.push(diagnostic.help(format!("{help}, or set `pod-security` to a weaker level")));
}

fn restricted(check: &Check<'_>) -> bool {
    check.context.pod_security == PodSecurity::Restricted
}

fn pod(check: &mut Check<'_>, context: &PodSecurityContext) {
    for sysctl in context.sysctls.iter().flat_map(|list| &list.value) {
        let name = sysctl.value.name.as_ref().filter(|name| !takes_sysctl(check.context.kubernetes, &name.value));
        if let Some(name) = name {
            refuse(check, name.span, &format!("sysctl `{}` is not a safe one", shown(&name.value)), "remove it");
        }
    }
    seccomp(check, &context.seccomp_profile);
    se_linux(check, &context.se_linux_options);
    windows(check, &context.windows_options);
    users(check, &context.run_as_non_root, &context.run_as_user);
}

fn container(check: &mut Check<'_>, context: &SecurityContext) {
    if let Some(flag) = context.privileged.as_ref().filter(|flag| flag.value) {
        refuse(check, flag.span, "the container is privileged", "remove `privileged`");
    }
    if let Some(mount) = text(&context.proc_mount).filter(|mount| mount.value != "Default") {
        refuse(check, mount.span, &format!("procMount is `{}`", shown(&mount.value)), "remove it");
    }
    let capabilities = context.capabilities.as_ref().and_then(|c| c.value.add.as_ref());
    for name in capabilities.into_iter().flat_map(|list| &list.value) {
        if !check.context.pod_security.takes_capability(&name.value) {
            refuse(check, name.span, &format!("capability `{}` is added", shown(&name.value)), "remove it");
        }
    }
    seccomp(check, &context.seccomp_profile);
    se_linux(check, &context.se_linux_options);
    windows(check, &context.windows_options);
    users(check, &context.run_as_non_root, &context.run_as_user);
    if let Some(flag) = context.allow_privilege_escalation.as_ref().filter(|flag| flag.value && restricted(check)) {
        refuse(check, flag.span, "allowPrivilegeEscalation is true", "remove it");
    }
}

fn users(check: &mut Check<'_>, non_root: &Option<Spanned<bool>>, user: &Option<Spanned<i64>>) {
    if !restricted(check) {
        return;
    }
    if let Some(flag) = non_root.as_ref().filter(|flag| !flag.value) {
        refuse(check, flag.span, "runAsNonRoot is false", "remove it");
    }
    if let Some(user) = user.as_ref().filter(|user| user.value == 0) {
        refuse(check, user.span, "runAsUser is root", "use another user, such as 1000");
    }
}

/// Root becomes another user by `setpriv`, anybody else by `sudo`: neither is possible without privileges.
fn flux_user(check: &mut Check<'_>, container: &crate::spec::minicluster::Container) {
    if !restricted(check) {
        return;
    }
    let pod = check.spec.pod.as_ref().and_then(|pod| pod.value.security_context.as_ref());
    let own = container.security_context.as_ref().and_then(|context| context.value.run_as_user.as_ref());
    let runs_as = own.or(pod.and_then(|context| context.value.run_as_user.as_ref())).map(|user| user.value);
    let user = container.flux_user.as_ref().or(container.fluxuser.as_ref());
    let switch = container.commands.as_ref().and_then(|c| c.value.run_flux_as_root.as_ref());
    let as_root = switch.is_some_and(|flag| flag.value);
    if let Some(flag) = switch.filter(|flag| flag.value) {
        refuse(check, flag.span, "runFluxAsRoot is true", "remove it");
    }
    let wanted = user.map(|user| (user.span, user.value.uid.as_ref().map_or(DEFAULT_FLUX_USER, |uid| uid.value)));
    let wanted = wanted.or(switch.map(|flag| (flag.span, DEFAULT_FLUX_USER))).filter(|_| !as_root);
    if let Some((span, uid)) = wanted.filter(|(_, uid)| runs_as != Some(*uid)) {
        let message = format!("to run Flux as user {uid} takes root or sudo");
        refuse(check, span, &message, &format!("write `runAsUser: {uid}` in the security context"));
    }
}

/// Default of `fluxUser.uid`.
const DEFAULT_FLUX_USER: i64 = 1000;

fn seccomp(check: &mut Check<'_>, profile: &Option<Spanned<SeccompProfile>>) {
    let kind = profile.as_ref().and_then(|profile| text(&profile.value.type_));
    if let Some(kind) = kind.filter(|kind| kind.value == "Unconfined") {
        refuse(check, kind.span, "the seccomp profile is Unconfined", "write `type: RuntimeDefault`");
    }
}

fn se_linux(check: &mut Check<'_>, options: &Option<Spanned<SeLinuxOptions>>) {
    let Some(options) = options.as_ref().map(|options| &options.value) else { return };
    if let Some(kind) = text(&options.type_).filter(|kind| !takes_se_linux_type(check.context.kubernetes, &kind.value))
    {
        refuse(check, kind.span, &format!("the SELinux type is `{}`", shown(&kind.value)), "remove it");
    }
    for (field, value) in [("user", &options.user), ("role", &options.role)] {
        if let Some(value) = text(value) {
            refuse(check, value.span, &format!("the SELinux {field} is set"), "remove it");
        }
    }
}

fn windows(check: &mut Check<'_>, options: &Option<Spanned<WindowsOptions>>) {
    let flag = options.as_ref().map(|options| &options.value.host_process);
    if let Some(Some(flag)) = flag.filter(|flag| is_true(flag)) {
        refuse(check, flag.span, "hostProcess is true", "remove it");
    }
}
