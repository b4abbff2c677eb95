//! No byte of a private key leaves the program but in the Secret and the store: every command, every message format, good
//! input and bad, on a project whose bundles carry their keys.

mod bundle_support;

use std::path::Path;
use std::process::{Command, Output};

use bundle_support::secrets::Needles;
use bundle_support::snapshot;

const PROJECT: &str = "settings:\n  secrets: plain\n";
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
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("flux-gen.yaml"), PROJECT).unwrap();
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
    let commands: [&[&str]; 14] = [
        &["check"],
        &["diff"],
        &["validate"],
        &["build"],
        &["build", "--force", "--no-sync"],
        &["build", "-o", "other"],
        &["cert", "show"],
        &["cert", "show", "hpc/lammps"],
        &["cert", "new", "hpc/lammps"],
        &["cert", "import", "hpc/lammps", "certs/public.json"],
        &["explain", "settings"],
        &["explain", "FG505"],
        &["build", "--set", "secrets=existing", "--stdout"],
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
    let project = Project::new();
    let first = project.run(&["build"]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let file = std::fs::read(project.path().join("certs/hpc/lammps.cert")).unwrap();
    let needles = Needles::of(&file);
    assert_clean(&needles, &["build"], &first);

    // The places where it belongs, which also shows that the search finds it.
    let holders = |project: &Project| {
        let files = snapshot(project.path()).into_iter();
        files.filter(|(_, bytes)| needles.find(bytes).is_some()).map(|(path, _)| path).collect::<Vec<_>>()
    };
    assert_eq!(holders(&project), ["certs/hpc/lammps.cert", "generated/hpc/lammps/secret-curve.yaml"]);
    assert!(needles.find(&project.run(&["build", "--stdout"]).stdout).is_some(), "the objects hold the Secret");

    all_commands(&project, &needles);
    // Drift, hand edits of the Secret, broken specs, a certificate in the wrong place, a broken certificate.
    project.spec(&CLUSTER.replace("size: 4", "size: 5"));
    all_commands(&project, &needles);
    let secret = project.path().join("generated/hpc/lammps/secret-curve.yaml");
    let edited = std::fs::read_to_string(&secret).unwrap().replace("immutable: true", "immutable: false");
    std::fs::write(&secret, edited).unwrap();
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
}
