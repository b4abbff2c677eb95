//! Broker attributes of flux-core 0.88 that may be set with `-S`.

use std::collections::BTreeMap;

/// Attributes that are set at most once. Flux lets some of these be given twice; a bundle never should.
const ONCE: &[&str] = &[
    "broker.boot-method",
    "broker.cleanup-timeout",
    "broker.critical-ranks",
    "broker.quorum",
    "broker.quorum-warn",
    "broker.rc1_path",
    "broker.rc2_none",
    "broker.rc2_pgrp",
    "broker.rc3_path",
    "broker.sd-notify",
    "broker.sd-stop-timeout",
    "broker.shutdown-timeout",
    "broker.shutdown-warn",
    "broker.exit-norestart",
    "broker.recovery-mode",
    "config.path",
    "content.backing-module",
    "content.dump",
    "content.hash",
    "content.restore",
    "cron.directory",
    "hostname",
    "local-uri",
    "log-critical-level",
    "log-filename",
    "log-forward-level",
    "log-level",
    "log-ring-size",
    "log-stderr-mode",
    "log-syslog-enable",
    "log-syslog-level",
    "rundir",
    "rundir-cleanup",
    "statedir",
    "statedir-cleanup",
    "tbon.child_rcvhwm",
    "tbon.connect_timeout",
    "tbon.fanout",
    "tbon.interface-hint",
    "tbon.prefertcp",
    "tbon.tcp_user_timeout",
    "tbon.topo",
    "tbon.torpid_max",
    "tbon.torpid_min",
    "tbon.zmq_io_threads",
    "tbon.zmqdebug",
];
/// Attributes that may be set again.
const RUNTIME: &[&str] =
    &["broker.exit-restart", "broker.module-nopanic", "conf.shell_initrc", "conf.shell_pluginpath", "log-stderr-level"];
/// Attributes that only the broker sets.
const READ_ONLY: &[&str] = &[
    "broker.mapping",
    "broker.pid",
    "broker.starttime",
    "broker.uuid",
    "hostlist",
    "instance-level",
    "jobid",
    "parent-kvs-namespace",
    "parent-uri",
    "rank",
    "security.owner",
    "size",
    "tbon.descendants",
    "tbon.endpoint",
    "tbon.level",
    "tbon.maxlevel",
    "tbon.parent-endpoint",
    "version",
];

/// Attributes by name.
pub type Attributes = BTreeMap<String, String>;

/// Reads `NAME=VALUE` or `NAME`.
///
/// # Errors
/// Unknown, read-only, given twice, or a value that the broker refuses.
pub fn set(attributes: &mut Attributes, setting: &str) -> Result<(), String> {
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    if READ_ONLY.contains(&name) {
        return Err(format!("setattr {name}: attribute is read-only"));
    }
    let again = RUNTIME.contains(&name);
    if !again && !ONCE.contains(&name) {
        return Err(format!("{name}: unknown attribute"));
    }
    if !again && attributes.contains_key(name) {
        return Err(format!("setattr {name}: Operation not permitted"));
    }
    check(name, value)?;
    attributes.insert(name.to_owned(), value.to_owned());
    Ok(())
}

fn check(name: &str, value: &str) -> Result<(), String> {
    let ok = match name {
        "log-stderr-level" | "log-forward-level" | "log-critical-level" | "log-level" | "log-syslog-level" => {
            value.parse::<i32>().is_ok_and(|n| n <= 7)
        }
        "log-stderr-mode" => matches!(value, "leader" | "local"),
        "local-uri" => value.strip_prefix("local://").is_some_and(|p| !p.is_empty() && p.len() <= 107),
        "rundir" | "statedir" => !value.is_empty() && value.len() <= 96,
        "tbon.connect_timeout" | "tbon.tcp_user_timeout" | "tbon.torpid_min" | "tbon.torpid_max" => duration(value),
        "broker.cleanup-timeout" | "broker.shutdown-timeout" => value == "none" || duration(value),
        "broker.quorum-warn" | "broker.shutdown-warn" => value == "none" || duration(value),
        "tbon.zmqdebug" | "tbon.zmq_io_threads" | "tbon.child_rcvhwm" | "tbon.prefertcp" | "tbon.fanout" => {
            value.parse::<u32>().is_ok()
        }
        _ => true,
    };
    match (ok, name) {
        (true, _) => Ok(()),
        (false, "local-uri") => Err("local-uri is malformed".to_owned()),
        (false, n) if n.starts_with("log-") => Err(format!("{name}: Invalid argument")),
        (false, _) => Err(format!("Error parsing {name} attribute")),
    }
}

/// Flux Standard Duration (RFC 23): a number and one of `ms s m h d`; without a unit seconds.
pub fn duration(text: &str) -> bool {
    if matches!(text, "inf" | "infinity") {
        return true;
    }
    let number = ["ms", "s", "m", "h", "d"].iter().find_map(|u| text.strip_suffix(u)).unwrap_or(text);
    number.parse::<f64>().is_ok_and(|n| n >= 0.0 && n.is_finite())
}

/// `broker.quorum`: 1 to `size`; `0` and `0-<size-1>` are old spellings that are translated with a warning.
///
/// # Errors
/// Any other value.
pub fn quorum(value: &str, size: u32) -> Result<(u32, bool), String> {
    let old = if value == "0" {
        Some(1)
    } else if size > 1 && value == format!("0-{}", size - 1) {
        Some(size)
    } else {
        None
    };
    match (old, value.parse::<u32>()) {
        (Some(n), _) => Ok((n, true)),
        (None, Ok(n)) if (1..=size).contains(&n) => Ok((n, false)),
        _ => Err("Error parsing broker.quorum attribute".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Attributes, duration, quorum, set};

    #[test]
    fn settings() {
        for (list, ok) in [
            (vec!["broker.quorum=4", "log-stderr-mode=local"], true),
            (vec!["log-stderr-level=6", "log-stderr-level=3"], true),
            (vec!["broker.quorum=4", "broker.quorum=4"], false),
            (vec!["foo=bar"], false),
            (vec!["rank=0"], false),
            (vec!["log-stderr-level=8"], false),
            (vec!["log-stderr-mode=foo"], false),
            (vec!["tbon.connect_timeout=x"], false),
            (vec!["tbon.connect_timeout=5"], true),
            (vec!["local-uri=/x"], false),
            (vec!["local-uri=local:///x"], true),
            (vec!["broker.rc2_none"], true),
            (vec!["broker.quorum-timeout=1"], false),
        ] {
            let mut attributes = Attributes::new();
            let got = list.iter().try_for_each(|s| set(&mut attributes, s));
            assert_eq!(got.is_ok(), ok, "{list:?}: {got:?}");
        }
    }

    #[test]
    fn quorums_and_durations() {
        for (value, want) in [
            ("4", Some((4, false))),
            ("1", Some((1, false))),
            ("0", Some((1, true))),
            ("0-3", Some((4, true))),
            ("0-1", None),
            ("5", None),
            ("x", None),
            ("-1", None),
        ] {
            assert_eq!(quorum(value, 4).ok(), want, "{value}");
        }
        for (text, want) in [("5s", true), ("1.5m", true), ("5", true), ("x", false), ("5x", false), ("-1s", false)] {
            assert_eq!(duration(text), want, "{text}");
        }
    }
}
