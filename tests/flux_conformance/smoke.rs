//! The fuzz targets over arbitrary bytes and over damaged good inputs, without a fuzzer.

#[path = "../../fuzz/src/targets.rs"]
#[allow(unreachable_pub, reason = "public in the fuzz crate")]
mod targets;

use proptest::prelude::*;

/// Inputs that get far into each format.
const SEEDS: [&str; 14] = [
    "[0-3,5,7-9]",
    "flux-sample-[0-3,08-11]-ib,login,n[1-2]",
    r#"{"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-1", "gpu": "0"}}], "starttime": 0.0, "expiration": 0.0, "nodelist": ["h[0-1]"], "properties": {"p": "1"}}}"#,
    "[bootstrap]\ncurve_cert = \"/c\"\ndefault_port = 8050\ndefault_bind = \"tcp://eth0:%p\"\ndefault_connect = \"tcp://%h:%p\"\nhosts = [ { host = \"h[0-1]\", parent = \"h0\" } ]\n[tbon]\ntopo = \"kary:2\"\n[[resource.config]]\nhosts = \"h[0-1]\"\ncores = \"0-1\"\nproperties = [\"a\"]\n[resource]\nexclude = \"h1\"\n",
    "[policy.limits]\nduration = \"1h\"\njob-size.max.nnodes = 4\n[queues.a]\nrequires = [\"x\"]\n[queues.b]\nparent = \"a\"\n[exec]\nkill-timeout = \"5s\"\n[access.roles.admin]\nusers = [\"root\"]\n",
    "# c\nmetadata\n    name = \"n\"\ncurve\n    public-key = \"K3HW^WVq.zo69t)(umF>:XvwTj:QGN^yKlWaVH(S\"\n    secret-key = \"009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x\"\n",
    "kary: 12",
    "mincrit:3",
    "a = { b = [ { c = 1.5 }, ], \"d e\".f = 2024-01-01T00:00:00Z }\n",
    "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: a, namespace: b}\nspec:\n  size: &n 4\n  maxSize: 8\n  tasks: *n\n  flux: {container: {image: v}, optionFlags: -ompi=x}\n  containers:\n  - &c {image: x, command: run 'a b', resources: {limits: {cpu: 4}}}\n  - {<<: *c, name: s, runFlux: false, ports: [80], volumes: {v: {path: /v, claimName: c}}}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {k: v}\n",
    "sources: [specs]\noutput: out\nsettings: {secrets: plain, kubernetes-version: \"1.30\"}\n",
    "kind: tree\ntrees:\n  linux/amd64: {path: tree.tar, prefix: /opt/software/flux}\n",
    "recipe: mine\nplatforms: [linux/amd64]\nos: debian-12\nglibc: \"2.36\"\nbase: scratch\nhelper: {linux/amd64: busybox}\ntags: [{name: a}]\n",
    r#"{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", "size": 2}, "layers": []}"#,
];

/// The seeds as they are, and the last four as files of an archive, which is one more.
fn seeds() -> Vec<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, text) in ["flux-gen/archive.json", "opt/software/a", "oci-layout", "index.json"].iter().zip(&SEEDS[10..])
    {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).chain([archive.into_inner().unwrap()]).collect()
}

fn run_all(data: &[u8]) {
    for (_, target) in targets::TARGETS {
        target(data);
    }
}

#[test]
fn seeds_hold() {
    seeds().iter().for_each(|seed| run_all(seed));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        run_all(&data);
    }

    #[test]
    fn damaged_inputs(seed in 0..=SEEDS.len(), edits in proptest::collection::vec((any::<u16>(), 0u8..4, any::<u8>()), 1..6)) {
        let mut data = seeds().swap_remove(seed);
        for (at, what, byte) in edits {
            let at = usize::from(at) % data.len().max(1);
            match what {
                0 if at < data.len() => data[at] = byte,
                1 if at < data.len() => drop(data.remove(at)),
                2 => data.insert(at.min(data.len()), byte),
                _ => data.extend_from_within(at.min(data.len())..),
            }
        }
        run_all(&data);
    }
}
