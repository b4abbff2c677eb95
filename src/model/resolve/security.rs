//! Security contexts and other Kubernetes types that are passed through whole.

use k8s_openapi::api::core::v1 as core;

use super::written::{list, owned};
use crate::spec::Spanned;
use crate::spec::minicluster as written;

/// Kubernetes' security context of a container.
pub(super) fn container(value: Option<&Spanned<written::SecurityContext>>) -> Option<core::SecurityContext> {
    let s = value?;
    let context = core::SecurityContext {
        allow_privilege_escalation: s.allow_privilege_escalation.as_ref().map(|v| v.value),
        app_armor_profile: None,
        capabilities: s.capabilities.as_ref().map(|c| core::Capabilities { add: list(&c.add), drop: list(&c.drop) }),
        privileged: s.privileged.as_ref().map(|v| v.value),
        proc_mount: owned(&s.proc_mount),
        read_only_root_filesystem: s.read_only_root_filesystem.as_ref().map(|v| v.value),
        run_as_group: s.run_as_group.as_ref().map(|v| v.value),
        run_as_non_root: s.run_as_non_root.as_ref().map(|v| v.value),
        run_as_user: s.run_as_user.as_ref().map(|v| v.value),
        se_linux_options: s.se_linux_options.as_ref().map(|v| se_linux(v)),
        seccomp_profile: s.seccomp_profile.as_ref().map(|v| seccomp(v)),
        windows_options: s.windows_options.as_ref().map(|v| windows(v)),
    };
    (context != core::SecurityContext::default()).then_some(context)
}

/// Kubernetes' security context of a pod.
pub(super) fn pod(value: Option<&Spanned<written::PodSecurityContext>>) -> Option<core::PodSecurityContext> {
    let s = value?;
    let context = core::PodSecurityContext {
        fs_group: s.fs_group.as_ref().map(|v| v.value),
        fs_group_change_policy: owned(&s.fs_group_change_policy),
        run_as_group: s.run_as_group.as_ref().map(|v| v.value),
        run_as_non_root: s.run_as_non_root.as_ref().map(|v| v.value),
        run_as_user: s.run_as_user.as_ref().map(|v| v.value),
        se_linux_options: s.se_linux_options.as_ref().map(|v| se_linux(v)),
        seccomp_profile: s.seccomp_profile.as_ref().map(|v| seccomp(v)),
        supplemental_groups: list(&s.supplemental_groups),
        sysctls: s.sysctls.as_ref().map(|l| l.value.iter().map(|v| sysctl(v)).collect()),
        windows_options: s.windows_options.as_ref().map(|v| windows(v)),
        ..Default::default()
    };
    (context != core::PodSecurityContext::default()).then_some(context)
}

/// Tolerations.
pub(super) fn tolerations(
    value: Option<&Spanned<written::List<written::Toleration>>>,
) -> Option<Vec<core::Toleration>> {
    let tolerations = value?.value.iter().map(|t| &t.value).map(|t| core::Toleration {
        effect: owned(&t.effect),
        key: owned(&t.key),
        operator: owned(&t.operator),
        toleration_seconds: t.toleration_seconds.as_ref().map(|v| v.value),
        value: owned(&t.value),
    });
    Some(tolerations.collect())
}

fn sysctl(value: &written::Sysctl) -> core::Sysctl {
    core::Sysctl { name: owned(&value.name).unwrap_or_default(), value: owned(&value.value).unwrap_or_default() }
}

fn se_linux(value: &written::SeLinuxOptions) -> core::SELinuxOptions {
    core::SELinuxOptions {
        level: owned(&value.level),
        role: owned(&value.role),
        type_: owned(&value.type_),
        user: owned(&value.user),
    }
}

fn seccomp(value: &written::SeccompProfile) -> core::SeccompProfile {
    core::SeccompProfile {
        localhost_profile: owned(&value.localhost_profile),
        type_: owned(&value.type_).unwrap_or_default(),
    }
}

fn windows(value: &written::WindowsOptions) -> core::WindowsSecurityContextOptions {
    core::WindowsSecurityContextOptions {
        gmsa_credential_spec: owned(&value.gmsa_credential_spec),
        gmsa_credential_spec_name: owned(&value.gmsa_credential_spec_name),
        host_process: value.host_process.as_ref().map(|v| v.value),
        run_as_user_name: owned(&value.run_as_user_name),
    }
}
