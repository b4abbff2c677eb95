use super::parents;
use crate::config::Host;

fn hosts(n: usize) -> Vec<Host> {
    (0..n).map(|i| Host { name: format!("h{i}"), ..Host::default() }).collect()
}

#[test]
fn topologies() {
    for (topo, size, want) in [
        ("custom", 4, vec![0, 0, 0]),
        ("kary:2", 7, vec![0, 0, 1, 1, 2, 2]),
        ("kary:0", 3, vec![0, 0]),
        ("binomial", 8, vec![0, 0, 2, 0, 4, 4, 6]),
        ("mincrit:2", 6, vec![0, 0, 1, 2, 1]),
        ("mincrit", 4, vec![0, 0, 0]),
        ("custom", 1, vec![]),
    ] {
        assert_eq!(parents(topo, &hosts(size)).expect(topo), want, "{topo}");
    }
    for topo in ["foo", "kary", "kary:x", "custom:1", "binomial:2", "kary:-1"] {
        assert!(parents(topo, &hosts(4)).is_err(), "{topo}");
    }
}

#[test]
fn custom_parents() {
    let mut list = hosts(4);
    list[2].parent = Some("h1".to_owned());
    assert_eq!(parents("custom", &list).expect("tree"), [0, 1, 0]);
    list[1].parent = Some("h2".to_owned());
    assert!(parents("custom", &list).is_err(), "cycle");
    list[1].parent = Some("nobody".to_owned());
    assert!(parents("custom", &list).is_err(), "unknown");
    let mut list = hosts(2);
    list[0].parent = Some("h1".to_owned());
    assert!(parents("custom", &list).is_err(), "parent of rank 0");
}
