//! What `build`, `check` and `diff` say of Jobs that have to be made anew.

use crate::harness::{Sandbox, minicluster};

/// The last line on standard error.
fn last(stderr: &str) -> &str {
    stderr.lines().last().unwrap_or_default()
}

/// A cluster that is elastic and has a services Pod.
fn whole(image: &str, size: u32) -> String {
    let text = minicluster("lammps", size).replace("name: lammps", "name: lammps\n  namespace: hpc");
    let text = text.replace(&format!("size: {size}\n"), &format!("size: {size}\n  maxSize: 4\n"));
    format!("{}  services: [{{name: db, image: db:1, command: {image}}}]\n", text.replace("rockylinux:9", image))
}

#[test]
fn all_three_commands_end_with_what_becomes_of_changed_jobs() {
    const JOB: &str = "hpc/lammps (spec.template.spec.containers[0].image)";
    for (strategy, gitops, end) in [
        (
            "stable",
            "both",
            "the change will be refused at sync: delete the old Job before, or set `strategy` to recreate or run-once",
        ),
        ("recreate", "both", "Argo CD or Flux CD deletes the old Job and makes it anew"),
        ("recreate", "none", "apply with `kubectl apply --force`, because `gitops` is `none`"),
        ("hook", "argocd", "Argo CD runs it at every sync"),
    ] {
        let sandbox = Sandbox::new();
        let settings = [format!("strategy={strategy}"), format!("gitops={gitops}")];
        let run = |command: &str, code: i32| {
            sandbox.run(&[command, "--set", &settings[0], "--set", &settings[1]]).exits(code).stderr
        };
        let spec = |image: &str| {
            minicluster("lammps", 2)
                .replace("name: lammps", "name: lammps\n  namespace: hpc")
                .replace("rockylinux:9", image)
        };
        sandbox.write("examples/a.yaml", &spec("app:1"));
        assert!(!run("build", 0).contains("Job"), "a new cluster recreates nothing");
        sandbox.write("examples/a.yaml", &spec("app:2"));
        let expected = format!("recreates 1 Job: {JOB}; {end}");
        for (command, code) in [("check", 3), ("diff", 3), ("build", 0)] {
            let stderr = run(command, code);
            if command == "build" {
                assert!(stderr.contains(&expected), "{stderr}");
            }
            assert_eq!(last(&stderr), expected, "{strategy} {gitops} {command}: {stderr}");
        }
        for command in ["check", "diff", "build"] {
            assert!(!run(command, 0).contains("Job"), "nothing is left to say");
        }
    }
}

#[test]
fn a_resize_recreates_nothing_and_a_services_pod_follows_the_strategy() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &whole("one", 2));
    sandbox.run(&["build", "--set", "strategy=recreate"]).exits(0);
    sandbox.write("examples/a.yaml", &whole("one", 3));
    let resized = sandbox.run(&["build", "--set", "strategy=recreate"]).exits(0);
    assert!(!resized.stderr.contains("recreates"), "{}", resized.stderr);
    sandbox.write("examples/a.yaml", &whole("two", 3));
    let check = sandbox.run(&["check", "--set", "strategy=recreate"]).exits(3);
    for line in [
        "recreates 1 Job: hpc/lammps (spec.template.spec.containers[0].image, spec.template.spec.volumes[3].configMap.name: services-start-0.sh); Argo",
        "recreates 1 Pod: hpc/lammps-services (spec.volumes[0].configMap.name: services-start-0.sh); Argo",
    ] {
        assert!(check.stderr.contains(line), "{line}: {}", check.stderr);
    }
}

#[test]
fn a_run_has_a_new_name_and_files_keep_theirs() {
    let sandbox = Sandbox::new();
    let build = |keep: &str| sandbox.run(&["build", "--set", "strategy=run-once", "--set", keep]).exits(0);
    let files = || {
        let entries = std::fs::read_dir(sandbox.path("generated/hpc/lammps")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let job = || {
        let text = sandbox.read("generated/hpc/lammps/job.yaml");
        text.lines().find_map(|l| l.strip_prefix("  name: ")).unwrap().to_owned()
    };
    sandbox.write("examples/a.yaml", &whole("one", 2));
    build("keep-old=false");
    let (first, first_files) = (job(), files());
    assert!(first_files.contains(&"pod-services.yaml".to_owned()), "{first_files:?}");
    sandbox.write("examples/a.yaml", &whole("two", 2));
    let kept = sandbox.run(&["check", "--set", "strategy=run-once", "--set", "keep-old=true"]).exits(3).stderr;
    let stderr = build("keep-old=false").stderr;
    let second = job();
    assert!(first != second && first.len() == "lammps-".len() + 10 && first.starts_with("lammps-"), "{first} {second}");
    assert_eq!(files(), first_files);
    for (kind, end) in [("Job", ""), ("Pod", "-services")] {
        let line = format!("1 new {kind}: hpc/{second}{end} (before: {first}{end}); ");
        assert!(stderr.contains(&format!("{line}pruning deletes the old {kind}")), "{stderr}");
        assert!(kept.contains(&format!("{line}the old {kind} stays")), "{kept}");
    }
    // Another registry: what is on disk changes, the run does not.
    sandbox.write("examples/a.yaml", &whole("two", 2).replace("db:1", "mirror.example/db:1"));
    let mirrored = build("keep-old=false").stderr;
    assert_eq!(job(), second);
    assert!(
        !mirrored.contains("recreates") && !mirrored.contains("new Job"),
        "an image of a Pod may change: {mirrored}"
    );
}

#[test]
fn programs_get_one_line_for_each_job() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 2)).write("examples/b.yaml", &minicluster("b", 2));
    sandbox.run(&["build"]).exits(0);
    let changed = |name: &str| minicluster(name, 2).replace("rockylinux:9", "app:2").replace("cpu: 2", "cpu: 3");
    sandbox.write("examples/a.yaml", &changed("a")).write("examples/b.yaml", &changed("b"));
    let check = sandbox.run(&["check", "--message-format", "json"]).exits(3);
    let lines: Vec<serde_json::Value> = check.stderr.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let jobs: Vec<_> = lines.iter().filter(|line| line["code"] == "FG346").collect();
    assert_eq!(jobs.len(), 2, "{}", check.stderr);
    assert_eq!(
        jobs[0]["message"],
        "recreates Job default/a: spec.template.spec.containers[0].image, \
         spec.template.spec.containers[0].resources.limits.cpu, spec.template.spec.volumes[4].configMap.name: R"
    );
    assert_eq!(jobs[1]["file"], "generated/default/b/job.yaml");
    assert_eq!(jobs[1]["severity"], "info");
    assert!(jobs[1]["help"].as_str().unwrap().starts_with("the change will be refused at sync"));
    let keys = |line: &serde_json::Value| line.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(jobs[0]), keys(&lines[0]), "every line has the same keys");
    let quiet = sandbox.run(&["check", "-q", "--message-format", "json"]).exits(3);
    assert!(!quiet.stderr.contains("FG346"), "{}", quiet.stderr);
    let github = sandbox.run(&["check", "--message-format", "github"]).exits(3);
    assert!(
        github.stderr.contains("recreates 2 Jobs: default/a (") && github.stderr.contains(" and 1 more), default/b ("),
        "{}",
        github.stderr
    );
}
