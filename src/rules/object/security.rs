//! Security contexts.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    AppArmorProfile, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext, WindowsSecurityContextOptions,
};

use super::check::{Check, Path};
use crate::model::kubernetes::Feature;
use crate::rules::syntax;

const LARGEST_ID: i64 = i32::MAX as i64;

pub(super) fn pod(check: &mut Check, at: &Path, pod: &PodSpec) {
    if pod.host_pid == Some(true) && pod.share_process_namespace == Some(true) {
        check.problem(&at.key("shareProcessNamespace"), "does not go with hostPID");
    }
    let host_network = pod.host_network == Some(true);
    if pod.host_users == Some(false) {
        check.since(&at.key("hostUsers"), Feature::UserNamespaces, true);
        for (field, on) in [("hostNetwork", pod.host_network), ("hostPID", pod.host_pid), ("hostIPC", pod.host_ipc)] {
            if on == Some(true) {
                check.problem(&at.key(field), "does not go with hostUsers: false");
            }
        }
    }
    let Some(context) = &pod.security_context else { return };
    let at = at.key("securityContext");
    for (field, id) in
        [("fsGroup", context.fs_group), ("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group)]
    {
        check.optional_range(&at.key(field), id, 0, LARGEST_ID);
    }
    for (index, group) in context.supplemental_groups.iter().flatten().enumerate() {
        check.range(&at.item("supplementalGroups", index), *group, 0, LARGEST_ID);
    }
    let policies = &["OnRootMismatch", "Always"];
    check.optional_word(&at.key("fsGroupChangePolicy"), context.fs_group_change_policy.as_ref(), policies);
    let policies = &["Merge", "Strict"];
    let policy = at.key("supplementalGroupsPolicy");
    check.since(&policy, Feature::SupplementalGroupsPolicy, context.supplemental_groups_policy.is_some());
    check.optional_word(&policy, context.supplemental_groups_policy.as_ref(), policies);
    seccomp(check, &at.key("seccompProfile"), context.seccomp_profile.as_ref());
    app_armor(check, &at.key("appArmorProfile"), context.app_armor_profile.as_ref());
    windows(check, &at.key("windowsOptions"), context.windows_options.as_ref(), host_network);
    sysctls(check, &at, context, pod);
}

/// Parameters of namespaces that the pod shares with its node are refused.
fn sysctls(check: &mut Check, at: &Path, context: &PodSecurityContext, pod: &PodSpec) {
    let mut seen = BTreeSet::new();
    for (index, sysctl) in context.sysctls.iter().flatten().enumerate() {
        let at = at.item("sysctls", index);
        let at = at.key("name");
        check.form(&at, &sysctl.name, syntax::sysctl);
        let name = sysctl.name.replace('/', ".");
        let of_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|prefix| name.starts_with(prefix))
            || name == "kernel.sem";
        if of_ipc && pod.host_ipc == Some(true) {
            check.problem(&at, format!("`{name}` does not go with hostIPC"));
        }
        if name.starts_with("net.") && pod.host_network == Some(true) {
            check.problem(&at, format!("`{name}` does not go with hostNetwork"));
        }
        if !seen.insert(name.clone()) {
            check.problem(&at, format!("`{name}` is listed twice"));
        }
    }
}

pub(super) fn container(check: &mut Check, at: &Path, context: &SecurityContext, pod: &PodSpec) {
    check.optional_range(&at.key("runAsUser"), context.run_as_user, 0, LARGEST_ID);
    check.optional_range(&at.key("runAsGroup"), context.run_as_group, 0, LARGEST_ID);
    seccomp(check, &at.key("seccompProfile"), context.seccomp_profile.as_ref());
    app_armor(check, &at.key("appArmorProfile"), context.app_armor_profile.as_ref());
    let host_network = pod.host_network == Some(true);
    windows(check, &at.key("windowsOptions"), context.windows_options.as_ref(), host_network);
    let mount = at.key("procMount");
    check.optional_word(&mount, context.proc_mount.as_ref(), &["Default", "Unmasked"]);
    if context.proc_mount.as_deref() == Some("Unmasked") && pod.host_users != Some(false) {
        check.problem(&mount, "`Unmasked` needs hostUsers: false");
    }
    if context.allow_privilege_escalation == Some(false) {
        let at = at.key("allowPrivilegeEscalation");
        if context.privileged == Some(true) {
            check.problem(&at, "false does not go with privileged");
        }
        let added = context.capabilities.as_ref().and_then(|capabilities| capabilities.add.as_ref());
        if added.into_iter().flatten().any(|name| name == "CAP_SYS_ADMIN") {
            check.problem(&at, "false does not go with the capability CAP_SYS_ADMIN");
        }
    }
    // The kubelet's rule; a container that it refuses never starts.
    let pod = pod.security_context.as_ref();
    let non_root = context.run_as_non_root.or(pod.and_then(|pod| pod.run_as_non_root));
    let user = context.run_as_user.or(pod.and_then(|pod| pod.run_as_user));
    if (non_root, user) == (Some(true), Some(0)) {
        check.problem(&at.key("runAsUser"), "0 does not go with runAsNonRoot");
    }
}

fn seccomp(check: &mut Check, at: &Path, profile: Option<&SeccompProfile>) {
    let Some(profile) = profile else { return };
    check.word(&at.key("type"), &profile.type_, &["RuntimeDefault", "Unconfined", "Localhost"]);
    local_profile(check, &at.key("localhostProfile"), &profile.type_, profile.localhost_profile.as_deref(), true);
}

fn app_armor(check: &mut Check, at: &Path, profile: Option<&AppArmorProfile>) {
    let Some(profile) = profile else { return };
    check.since(at, Feature::AppArmor, true);
    check.word(&at.key("type"), &profile.type_, &["RuntimeDefault", "Unconfined", "Localhost"]);
    local_profile(check, &at.key("localhostProfile"), &profile.type_, profile.localhost_profile.as_deref(), false);
}

fn local_profile(check: &mut Check, at: &Path, kind: &str, profile: Option<&str>, is_path: bool) {
    match (kind, profile) {
        ("Localhost", None | Some("")) => check.required(at),
        ("Localhost", Some(path)) if is_path => check.form(at, path, syntax::relative_path),
        ("Localhost", Some(_)) | (_, None) => {}
        (_, Some(_)) => check.problem(at, format!("does not go with type {kind}")),
    }
}

fn windows(check: &mut Check, at: &Path, options: Option<&WindowsSecurityContextOptions>, host_network: bool) {
    let Some(options) = options else { return };
    let name = options.gmsa_credential_spec_name.as_ref();
    check.optional_form(&at.key("gmsaCredentialSpecName"), name, syntax::dns1123_subdomain);
    for (field, text) in [
        ("gmsaCredentialSpec", options.gmsa_credential_spec.as_deref()),
        ("gmsaCredentialSpecName", options.gmsa_credential_spec_name.as_deref()),
        ("runAsUserName", options.run_as_user_name.as_deref()),
    ] {
        if text == Some("") {
            check.problem(&at.key(field), "must not be empty");
        }
    }
    if options.host_process == Some(true) && !host_network {
        check.problem(&at.key("hostProcess"), "needs hostNetwork");
    }
}
