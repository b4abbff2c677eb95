//! Attributes of pods, images and pull secrets.

use super::check::{Check, is_true, shown, text};
use crate::diag::Diagnostic;
use crate::diag::codes::spec as codes;
use crate::rules::syntax;
use crate::spec::Spanned;
use crate::spec::minicluster::{Pod, Toleration};

pub(super) fn check(check: &mut Check<'_>) {
    for place in check.all_containers() {
        image(check, &place.container.image);
        pull_secret(check, &place.container.image_pull_secret);
    }
    if let Some(view) = check.view() {
        if text(&view.image).is_some() {
            image(check, &view.image);
        }
        pull_secret(check, &view.image_pull_secret);
    }
    let Some(pod) = check.spec.pod.as_ref().map(|pod| &pod.value) else { return };
    policies(check, pod);
    names(check, pod);
    for toleration in pod.tolerations.iter().flat_map(|list| &list.value) {
        self::toleration(check, toleration);
    }
    node_affinity(check, pod);
    if let (true, Some(flag)) = (is_true(&pod.host_pid), &check.spec.share_process_namespace)
        && flag.value
    {
        let message = "hostPID and shareProcessNamespace are both true";
        check.error(codes::SHARED_PROCESSES, flag.span, message, "keep one of them");
    }
}

fn pull_secret(check: &mut Check<'_>, written: &Option<Spanned<String>>) {
    check.optional_form(codes::OBJECT_NAME, "pull secret", written, syntax::dns1123_subdomain);
}

fn image(check: &mut Check<'_>, written: &Option<Spanned<String>>) {
    let Some(written) = written else { return };
    if written.value.is_empty() {
        check.error(codes::IMAGE, written.span, "the image is empty", "name an image, such as `rockylinux:9`");
    } else {
        check.form(codes::IMAGE, "image", written, reference);
    }
}

/// The form of an image reference (distribution `reference` grammar, without its length limit on tags of 128 aside).
fn reference(text: &str) -> Result<(), syntax::Wrong> {
    if let Some(c) = text.chars().find(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!("it must not hold blanks (U+{:04X})", u32::from(c)));
    }
    let (rest, digest) = text.split_once('@').map_or((text, None), |(rest, digest)| (rest, Some(digest)));
    if let Some(digest) = digest {
        let hex = digest.split_once(':').map(|(_, hex)| hex).unwrap_or_default();
        if hex.len() < 32 || !hex.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f')) {
            return Err("the part after `@` is no digest such as `sha256:…`".to_owned());
        }
    }
    let last_slash = rest.rfind('/').map_or(0, |at| at + 1);
    let (path, tag) = match rest[last_slash..].find(':') {
        Some(at) => (&rest[..last_slash + at], Some(&rest[last_slash + at + 1..])),
        None => (rest, None),
    };
    if let Some(tag) = tag {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if tag.is_empty() || tag.len() > 128 || !tag.chars().all(good) || tag.starts_with(['.', '-']) {
            return Err("the part after `:` is no tag".to_owned());
        }
    }
    let mut parts = path.split('/').peekable();
    let first = parts.peek().copied().unwrap_or_default();
    let has_registry =
        path.contains('/') && (first.contains(['.', ':']) || first == "localhost" || first != first.to_lowercase());
    if has_registry {
        parts.next();
        if first.chars().any(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']' | '_'))) {
            return Err("the part before the first `/` is no registry".to_owned());
        }
    }
    parts.try_for_each(path_part)
}

fn path_part(part: &str) -> Result<(), syntax::Wrong> {
    if part.is_empty() {
        return Err("its path has an empty part".to_owned());
    }
    if part.chars().any(|c| c.is_ascii_uppercase()) {
        return Err("its path must be in lower case".to_owned());
    }
    if let Some(c) =
        part.chars().find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-')))
    {
        return Err(format!("its path may hold letters, digits, `.`, `_` and `-` only, not `{c}`"));
    }
    if part.starts_with(['.', '_', '-']) || part.ends_with(['.', '_', '-']) {
        return Err("parts of its path must begin and end with a letter or digit".to_owned());
    }
    Ok(())
}

fn policies(check: &mut Check<'_>, pod: &Pod) {
    const DNS: &[&str] = &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    check.one_of(codes::UNSUPPORTED_VALUE, "restartPolicy", &pod.restart_policy, &["Never", "OnFailure"]);
    check.one_of(codes::UNSUPPORTED_VALUE, "dnsPolicy", &pod.dns_policy, DNS);
    let Some(policy) = &pod.dns_policy else { return };
    match policy.value.as_str() {
        "None" => {
            let help =
                "use ClusterFirst (the default), or set dnsConfig by a patch of the project file and dnsPolicy with it";
            check.error(codes::DNS_POLICY, policy.span, "dnsPolicy None needs a resolver configuration", help);
        }
        "Default" if check.max_size() > 1 => {
            let message = "with dnsPolicy Default the node's DNS is asked, which does not know the brokers' names";
            check.warn(codes::DNS_POLICY, policy.span, message, "use ClusterFirst, the default");
        }
        _ => {}
    }
}

fn names(check: &mut Check<'_>, pod: &Pod) {
    for (what, written) in [
        ("service account", &pod.service_account_name),
        ("scheduler", &pod.scheduler_name),
        ("runtime class", &pod.runtime_class_name),
    ] {
        check.optional_form(codes::OBJECT_NAME, what, written, syntax::dns1123_subdomain);
    }
}

fn toleration(check: &mut Check<'_>, written: &Spanned<Toleration>) {
    const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let toleration = &written.value;
    check.one_of(codes::UNSUPPORTED_VALUE, "operator of a toleration", &toleration.operator, &["Exists", "Equal"]);
    check.one_of(codes::UNSUPPORTED_VALUE, "effect of a toleration", &toleration.effect, EFFECTS);
    let exists = toleration.operator.as_ref().is_some_and(|operator| operator.value == "Exists");
    match text(&toleration.key) {
        Some(key) => {
            check.form(codes::LABEL, "key of a toleration", key, syntax::qualified_name);
        }
        None if !exists => {
            let message = "a toleration without a key must have the operator Exists";
            check.error(
                codes::TOLERATION,
                written.span,
                message,
                "add `key`, or write `operator: Exists` for every taint",
            );
        }
        None => {}
    }
    match text(&toleration.value) {
        Some(value) if exists => {
            let message = format!("a toleration with the operator Exists has no value, here `{}`", shown(&value.value));
            check.error(codes::TOLERATION, value.span, message, "remove `value`, or write `operator: Equal`");
        }
        Some(value) => {
            check.form(codes::LABEL, "value of a toleration", value, syntax::label_value);
        }
        None => {}
    }
    let executes = toleration.effect.as_ref().is_some_and(|effect| effect.value == "NoExecute");
    if let (Some(seconds), false) = (&toleration.toleration_seconds, executes) {
        let message = format!("tolerationSeconds {} needs the effect NoExecute", seconds.value);
        check.error(codes::TOLERATION, seconds.span, message, "write `effect: NoExecute`, or remove the seconds");
    }
}

fn node_affinity(check: &mut Check<'_>, pod: &Pod) {
    for entry in pod.node_affinity.iter().flat_map(|map| &map.value) {
        check.form(codes::LABEL, "node label", &entry.key, syntax::qualified_name);
        if entry.value.value.is_empty() {
            let message = format!("node label `{}` has no values to match", shown(&entry.key.value));
            let diagnostic = Diagnostic::error(codes::NODE_AFFINITY, entry.key.span, message);
            check.push(diagnostic.help("list the values of which one must match, or remove the label"));
        }
        for value in &entry.value.value {
            check.form(codes::LABEL, "value of a node label", value, syntax::label_value);
        }
    }
}
