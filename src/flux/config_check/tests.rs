use super::*;
use proptest::prelude::*;

fn hosts(text: &str) -> Hostlist {
    text.parse().unwrap()
}

/// `line:column severity key` of all problems.
fn problems(text: &str) -> Vec<String> {
    let pods = hosts("h0");
    let context = Context { hardware: None, ..Context::of_hosts(&pods) };
    let report = check(text, &context);
    let word = |p: &Problem| if p.severity == Severity::Error { "error" } else { "warning" };
    report.problems.iter().map(|p| format!("{}:{} {} {}", p.line, p.column, word(p), p.key)).collect()
}

#[test]
fn places_and_keys() {
    for (text, expected) in [
        ("", vec![]),
        ("a = [ { b = 1 }\n", vec!["1:16 error "]),
        ("[resource]\n[resource]\n", vec!["2:2 error "]),
        ("\u{feff}[tbon]\n", vec!["1:1 error "]),
        (
            "[bootstrap]\nhosts = [ { host = \"h0\",\n bind = \"tcp://lo:1\" } ]\n",
            vec!["2:25 error bootstrap.hosts[0]"],
        ),
        (
            "[bootstrap]\nhosts = [ \"é\", { host = \"h0\" } ]\n",
            vec!["2:11 error bootstrap.hosts[0]", "2:16 error bootstrap.hosts[1]"],
        ),
        ("[bootstrap]\nhost = []\n", vec!["2:1 error bootstrap.host"]),
        ("[resource]\nexclude = 0\nfoo = 1\n", vec!["2:11 error resource.exclude", "3:1 error resource.foo"]),
        ("[tbon]\ntopology = \"flat\"\n", vec!["2:1 warning tbon.topology"]),
        ("[tbon]\nconnect_timeout = 5\n", vec!["2:19 error tbon.connect_timeout"]),
        ("[bootsrap]\n", vec!["1:2 warning bootsrap"]),
        ("[queues.batch]\n", vec!["1:2 warning queues"]),
        ("[policy]\njobspec.defaults.system.queue = \"x\"\n", vec!["2:33 error policy.jobspec.defaults.system.queue"]),
        ("a = \"\\u00e9\"\n", vec!["1:6 error a", "1:1 warning a"].into_iter().rev().collect()),
        ("[resource.config]\nhosts = \"h0\"\n", vec!["1:1 error resource.config"]),
    ] {
        assert_eq!(problems(text), expected, "{text}");
    }
}

#[test]
fn suggestions() {
    let pods = hosts("h0");
    let report = check("[access]\nallow_guest_user = true\n", &Context::of_hosts(&pods));
    assert_eq!(report.problems[0].help.as_deref(), Some("did you mean \"allow-guest-user\"?"));
}

#[test]
fn every_pod_must_be_listed_and_the_leader_first() {
    let pods = hosts("sim-[0-3]");
    let text = |hosts: &str| {
        format!(
            "[bootstrap]\ncurve_cert=\"/c\"\ndefault_bind=\"tcp://*:1\"\ndefault_connect=\"tcp://%h:1\"\nhosts=[{{host=\"{hosts}\"}}]\n"
        )
    };
    let messages = |hosts: &str| {
        let report = check(&text(hosts), &Context::of_hosts(&pods));
        report.problems.into_iter().map(|p| p.message).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(messages("sim-[0-3]"), "");
    assert!(messages("sim-[0-2]").contains("lacks sim-3"));
    assert!(messages("sim-[3,0-2]").contains("rank 0 would be sim-3"));
    assert!(messages("sim-[0-9]").contains("6 of the hosts are no pods"));
    assert!(check("", &Context::of_hosts(&pods)).has_errors());
}

#[test]
fn versions_gate_keys_of_strict_tables() {
    let pods = hosts("h0");
    let context = Context { version: Some(FluxVersion::release(74)), ..Context::of_hosts(&pods) };
    let report = check("[resource]\nverify = true\n[tbon]\ntopo = \"mincrit\"\n[access]\nroles = {}\n", &context);
    assert_eq!(report.problems.iter().filter(|p| p.severity == Severity::Error).count(), 3, "{:?}", report.problems);
}

#[test]
fn files_and_hardware() {
    let pods = hosts("h0");
    let hardware = ResourceSet::uniform(&pods, 2, 0).unwrap();
    let many = ResourceSet::uniform(&pods, 8, 0).unwrap().to_json();
    let files = |path: &str| match path {
        "/R" => PodFile::Text { text: many.clone(), mode: 0o644 },
        _ => PodFile::Missing,
    };
    let context = Context { files: &files, hardware: Some(&hardware), ..Context::of_hosts(&pods) };
    let first = |text: &str| check(text, &context).problems.first().map(|p| (p.severity, p.message.clone()));
    let (severity, message) = first("[resource]\npath = \"/R\"\n").unwrap();
    assert_eq!(severity, Severity::Warning);
    assert!(message.contains("lacks core[2-7]"), "{message}");
    assert_eq!(first("[resource]\npath = \"/R\"\nnoverify = true\n"), None);
    assert_eq!(first("[resource]\npath = \"/r\"\n").unwrap().0, Severity::Error);
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,100}|(\\[[a-z.\\[\\]-]{1,12}\\]\n|[a-z-]{1,8} = [0-9\"\\[\\]{}a-z,= -]{0,20}\n){0,8}") {
        let pods = hosts("h[0-1]");
        let report = check(&text, &Context::of_hosts(&pods));
        for problem in &report.problems {
            prop_assert!(text.get(problem.offset..).is_some());
            prop_assert!(problem.line >= 1 && problem.column >= 1);
        }
    }
}
