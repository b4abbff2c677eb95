//! The stub against vectors measured with a real flux-core, where they are at hand.

use std::path::PathBuf;

use serde_json::Value;

use crate::{cert, config, overlay};

fn cases(name: &str) -> Vec<Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/flux").join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: no ../shared");
        return Vec::new();
    };
    let parsed: Value = serde_json::from_str(&text).expect(name);
    parsed["cases"].as_array().expect("cases").clone()
}

#[test]
fn certificates() {
    for case in cases("curve_cert.json").iter().filter(|c| c["kind"] == "load") {
        let mode = case["mode"].as_str().unwrap_or("0o600").trim_start_matches("0o");
        let mode = u32::from_str_radix(mode, 8).expect("mode");
        // Who may open a file is the kernel's business.
        if case.get("broker_uid").is_some() {
            continue;
        }
        let text = case["file"].as_str().expect("file");
        let accepted = mode & 0o044 == 0 && cert::parse(text).is_some();
        assert_eq!(Some(accepted), case["accepted"].as_bool(), "{}", case["label"]);
    }
}

#[test]
fn topologies() {
    for case in cases("topology.json") {
        let topo = case["effective_topo"].as_str().or(case["tbon_topo"].as_str()).unwrap_or("custom");
        let hosts = match case["config"].as_str() {
            Some(text) => match config_of(text) {
                Ok(c) => c.hosts,
                Err(_) => {
                    assert_ne!(case["rc"], 0, "{case}");
                    continue;
                }
            },
            None => {
                let size = case["size"].as_u64().unwrap_or(1);
                (0..size).map(|i| config::Host { name: format!("h{i}"), ..Default::default() }).collect()
            }
        };
        let got = overlay::parents(topo, &hosts);
        // strtoul takes a sign and blanks; nobody means that.
        if case["rc"] != 0 || topo.contains(['-', ' ', '+']) {
            continue;
        }
        let want: Vec<i64> = case["parents"].as_array().expect("parents").iter().filter_map(Value::as_i64).collect();
        let got: Vec<i64> = std::iter::once(-1).chain(got.expect("tree").into_iter().map(i64::from)).collect();
        assert_eq!(got, want, "{case}");
    }
}

fn config_of(text: &str) -> Result<config::Config, String> {
    let dir = tempfile::tempdir().expect("tempdir");
    std::fs::write(dir.path().join("broker.toml"), text).expect("write");
    config::load(&dir.path().display().to_string())
}

/// The tables that the stub reads. A configuration that stops a real broker must stop the stub; where the
/// stub stops and a real broker does not is listed.
#[test]
fn configurations() {
    // flux-core's TOML parser takes a comma before `}`; TOML 1.0 and the stub do not.
    const STRICTER: &[&str] = &["TOML: trailing comma in inline table"];
    // What only shows when the broker runs: files, interfaces, host names, other tables.
    const LATER: &[&str] = &[
        "bootstrap: hostname differs",
        "bootstrap: curve_cert missing file",
        "bootstrap: curve_cert 0644",
        "bootstrap: bind",
        "bootstrap: host",
        "bootstrap: parent",
        "bootstrap: two bracket",
        "access: roles",
        "tbon: topo",
        "tbon: torpid_min",
        "resource: path",
        "resource: R",
        "resource: exclude rank",
        "resource: scheduling",
    ];
    for case in cases("broker_config.json") {
        let label = case["label"].as_str().expect("label");
        let ours = ["TOML", "bootstrap", "resource", "access", "tbon"].iter().any(|t| label.starts_with(t));
        if !ours || STRICTER.contains(&label) {
            continue;
        }
        let got = config_of(case["toml"].as_str().expect("toml"));
        if case["start_ok"] == true {
            assert!(got.is_ok(), "{label}: {:?}", got.err());
        } else if !LATER.iter().any(|l| label.starts_with(l)) {
            assert!(got.is_err(), "{label}");
        }
    }
}
