//! No byte of a private key leaves the program but in the Secret and the store: every command, every message format, good
//! input and bad, with every backend.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::secrets::Needles;
use crate::support::snapshot;

/// A backend: its name, its settings beside `secrets`, and where in the output its Secret is.
struct Backend {
    name: &'static str,
    settings: String,
    secret: Option<&'static str>,
}

/// All of them. The age identity is made for this run and forgotten.
fn backends() -> [Backend; 4] {
    let recipient = age::x25519::Identity::generate().to_public();
    let backend = |name, settings: &str, secret| Backend { name, settings: settings.to_owned(), secret };
    [
        backend("plain", "", Some("generated/hpc/lammps/secret-curve.yaml")),
        backend("existing", "", None),
        backend(
            "sops",
            &format!("  age-recipients: {recipient}\n"),
            Some("generated/hpc/lammps/secret-curve.sops.yaml"),
        ),
        backend("sealed", "  sealed-certificate: seal.pem\n", Some("generated/hpc/lammps/sealedsecret-curve.yaml")),
    ]
}

const CLUSTER: &str = "apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: lammps
  namespace: hpc
spec:
  size: 4
  tasks: 4
  containers:
  - image: ghcr.io/example/lammps:1
    command: lmp -in in.reaxff.hns
";

struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new(backend: &Backend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = format!("settings:\n  secrets: {}\n{}", backend.name, backend.settings);
        std::fs::write(folder.path().join("flux-gen.yaml"), settings).unwrap();
        std::fs::write(folder.path().join("seal.pem"), include_bytes!("../sealing/one.pem")).unwrap();
        std::fs::create_dir(folder.path().join("examples")).unwrap();
        std::fs::write(folder.path().join("examples/lammps.yaml"), CLUSTER).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        let command = env!("CARGO_BIN_EXE_flux-gen");
        Command::new(command).args(args).env("RUST_BACKTRACE", "full").current_dir(self.path()).output().unwrap()
    }

    fn spec(&self, text: &str) {
        std::fs::write(self.path().join("examples/lammps.yaml"), text).unwrap();
    }
}

fn assert_clean(needles: &Needles, args: &[&str], output: &Output) {
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        assert_eq!(needles.find(bytes), None, "{args:?} leaks to {stream}");
    }
}

/// Every command with every message format. Those that are meant to print the Secret are not among them.
fn all_commands(project: &Project, needles: &Needles) {
    let commands: [&[&str]; 21] = [
        &["check"],
        &["diff"],
        &["validate"],
        &["build"],
        &["build", "--force", "--no-sync"],
        &["build", "-o", "other"],
        &["build", "-o", "other", "--set", "strategy=recreate"],
        &["build", "-o", "other", "--set", "strategy=run-once", "--set", "keep-old=true"],
        &["diff", "--set", "strategy=hook", "--set", "gitops=argocd"],
        &["check", "--set", "strategy=service"],
        &["cert", "show"],
        &["cert", "show", "hpc/lammps"],
        &["cert", "new", "hpc/lammps"],
        &["cert", "import", "hpc/lammps", "certs/public.json"],
        &["explain", "settings"],
        &["explain", "FG505"],
        &["explain", "FG516"],
        &["build", "--set", "secrets=existing", "--stdout"],
        &["check", "--set", "secrets=sops", "--set", "age-recipients=nobody"],
        &["check", "--set", "secrets=sealed", "--set", "sealed-certificate=certs/hpc/lammps.cert"],
        &["certs/hpc/lammps.cert"],
    ];
    for command in commands {
        for format in ["human", "json", "github"] {
            let mut args = command.to_vec();
            args.extend(["--message-format", format, "--verbose"]);
            assert_clean(needles, &args, &project.run(&args));
        }
    }
}

#[test]
fn the_key_stays_where_it_belongs() {
    std::thread::scope(|scope| {
        for backend in backends() {
            scope.spawn(move || scan(&backend));
        }
    });
}

fn scan(backend: &Backend) {
    let project = Project::new(backend);
    let made = project.run(&["cert", "new", "hpc/lammps"]);
    let first = project.run(&["build"]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let file = std::fs::read(project.path().join("certs/hpc/lammps.cert")).unwrap();
    let needles = Needles::of(&file);
    assert_clean(&needles, &["cert", "new"], &made);
    assert_clean(&needles, &["build"], &first);

    // The places where it belongs, which also shows that the search finds it.
    let holders = |project: &Project| {
        let files = snapshot(project.path()).into_iter();
        files.filter(|(_, bytes)| needles.find(bytes).is_some()).map(|(path, _)| path).collect::<Vec<_>>()
    };
    let plain = backend.secret.filter(|_| backend.name == "plain");
    assert_eq!(holders(&project), ["certs/hpc/lammps.cert"].into_iter().chain(plain).collect::<Vec<_>>());
    let printed = project.run(&["build", "--stdout"]);
    assert_eq!(needles.find(&printed.stdout).is_some(), plain.is_some(), "the objects hold the Secret, or do not");
    assert_eq!(needles.find(&printed.stderr), None);

    all_commands(&project, &needles);
    // Drift, hand edits of the Secret, broken specs, a certificate in the wrong place, a broken certificate.
    project.spec(&CLUSTER.replace("size: 4", "size: 5"));
    all_commands(&project, &needles);
    if let Some(secret) = backend.secret.map(|secret| project.path().join(secret)) {
        let edited = std::fs::read_to_string(&secret).unwrap().replace("immutable: true", "immutable: false");
        std::fs::write(&secret, edited).unwrap();
    }
    project.spec(&CLUSTER.replace("size: 4", "size: 6"));
    all_commands(&project, &needles);
    let text = String::from_utf8(file.clone()).unwrap();
    let as_companion = format!(
        "{CLUSTER}---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: x\nstringData:\n  k: |\n    {}\nbogus: [\n",
        text.replace('\n', "\n    ")
    );
    let inline = |certificate: &str| {
        format!("{CLUSTER}  flux:\n    curveCert: |\n      {}\n", certificate.replace('\n', "\n      "))
    };
    for spec in [
        as_companion,
        inline(&text),
        inline(&text.replace("secret-key", "secretkey")),
        inline(&format!("{text}\n  x: \"y_\"\n")),
    ] {
        project.spec(&spec);
        let commands: [&[&str]; 5] = [
            &["check"],
            &["diff"],
            &["validate"],
            &["build", "--set", "secrets=existing"],
            &["build", "--set", "bogus=1"],
        ];
        for command in commands {
            for format in ["human", "json", "github"] {
                let mut args = command.to_vec();
                args.extend(["--message-format", format, "--verbose"]);
                assert_clean(&needles, &args, &project.run(&args));
            }
        }
    }
    project.spec(CLUSTER);
    std::fs::write(project.path().join("certs/hpc/lammps.cert"), text.replace("public-key = \"", "public-key = \"!"))
        .unwrap();
    all_commands(&project, &needles);
    // A new pair in its place: neither of them shows.
    std::fs::write(project.path().join("certs/hpc/lammps.cert"), &text).unwrap();
    let rotated = project.run(&["cert", "rotate", "hpc/lammps"]);
    let new = Needles::of(&std::fs::read(project.path().join("certs/hpc/lammps.cert")).unwrap());
    for needles in [&needles, &new] {
        assert_clean(needles, &["cert", "rotate"], &rotated);
        all_commands(&project, needles);
    }
}
