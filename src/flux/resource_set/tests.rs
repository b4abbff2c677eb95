use super::*;
use proptest::prelude::*;

fn hosts(text: &str) -> Hostlist {
    text.parse().unwrap()
}

#[test]
fn equal_ranks_are_folded() {
    let group = |names: &str, cores: u32, gpus: u32| HostGroup {
        hosts: hosts(names),
        cores: IdSet::first_n(cores),
        gpus: IdSet::first_n(gpus),
        properties: vec![format!("c{cores}")],
    };
    let set = ResourceSet::from_groups(&[group("a[0-1]", 2, 0), group("b", 4, 1), group("a2", 2, 0)]).unwrap();
    assert_eq!(
        set.to_json(),
        concat!(
            r#"{"version": 1, "execution": {"R_lite": [{"rank": "0-1,3", "children": {"core": "0-1"}}, "#,
            r#"{"rank": "2", "children": {"core": "0-3", "gpu": "0"}}], "starttime": 0.0, "expiration": 0.0, "#,
            r#""nodelist": ["a[0-1],b,a2"], "properties": {"c2": "0-1,3", "c4": "2"}}}"#
        )
    );
    assert_eq!(set.to_short_string(), "rank[0-1,3]/core[0-1] rank2/core[0-3],gpu0");
    assert_eq!((set.count("core"), set.count("gpu"), set.len()), (10, 1, 4));
    assert_eq!((set.host(2), set.children(2, "gpu").to_string()), (Some("b"), "0".to_owned()));
}

#[test]
fn hosts_must_be_those_of_bootstrap() {
    let set = ResourceSet::uniform(&hosts("h[0-3]"), 1, 0).unwrap();
    assert_eq!(set.check_hosts(&hosts("h[3,2,1,0]")), Ok(()));
    assert_eq!(set.check_hosts(&hosts("h[0-2]")), Err(HostMismatch::Count { in_set: 4, expected: 3 }));
    assert_eq!(set.check_hosts(&hosts("h[0-2],x")), Err(HostMismatch::Missing("x".into())));
    let moved = set.rerank(&hosts("h[3,2,1,0]")).unwrap();
    assert_eq!((moved.host(0), moved.ranks().to_string()), (Some("h3"), "0-3".to_owned()));
}

#[test]
fn wrong_files_are_refused() {
    let text = |execution: &str| format!(r#"{{"version": 1, "execution": {{{execution}}}}}"#);
    for (execution, part) in [
        ("", "execution.R_lite: expected an array"),
        (r#""R_lite": {}"#, "expected an array, found an object"),
        (r#""R_lite": [{"rank": 0, "children": {}}]"#, "R_lite[0].rank: expected an idset string, found an integer"),
        (r#""R_lite": [{"rank": "0"}]"#, "children"),
        (r#""R_lite": [{"rank": "1,0", "children": {}}]"#, "not larger"),
        (
            r#""R_lite": [{"rank": "0", "children": {"core": "0"}}, {"rank": "0", "children": {"core": "0"}}]"#,
            "more than once",
        ),
        (r#""R_lite": [{"rank": "0-1", "children": {"core": "0"}}], "nodelist": ["a"]"#, "1 hosts for 2 ranks"),
        (
            r#""R_lite": [{"rank": "0", "children": {"core": "0"}}], "properties": {"p": "1"}"#,
            "rank 1 is not in the set",
        ),
        (r#""R_lite": [{"rank": "0", "children": {"core": "0"}}], "properties": {"p^": "0"}"#, "invalid character '^'"),
        (r#""R_lite": [], "starttime": "0""#, "expected a number"),
    ] {
        let error = ResourceSet::parse(&text(execution)).unwrap_err().to_string();
        assert!(error.contains(part), "{execution}: {error}");
    }
    assert_eq!(ResourceSet::parse(r#"{"version": 2, "execution": {"R_lite": []}}"#), Err(ResourceError::Version(2)));
    let huge = text(r#""R_lite": [{"rank": "0-2147483647", "children": {"core": "0"}}]"#);
    assert_eq!(ResourceSet::parse(&huge), Err(ResourceError::TooManyRanks));
    assert!(matches!(ResourceSet::parse("{} x"), Err(ResourceError::Json(_))));
    assert!(ResourceSet::uniform(&hosts("a"), 0, 0).is_err());
}

#[test]
fn repeated_ranks_add_up_and_other_kinds_stay() {
    let set = ResourceSet::parse(
        r#"{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0","memory":"0-3"}},{"rank":"0","children":{"core":"1"}}],"nodelist":["a"]}}"#,
    )
    .unwrap();
    assert_eq!(set.to_short_string(), "rank0/core[0-1],memory[0-3]");
}

#[test]
fn verification_policies() {
    let expected = |cores| ResourceSet::uniform(&hosts("h0"), cores, 1).unwrap();
    let actual = ResourceSet::uniform(&hosts("h0"), 2, 0).unwrap();
    let default = VerifyPolicy::default();
    assert!(expected(1).verify(&actual, &default).is_ok());
    assert!(expected(2).verify(&actual, &default).is_ok());
    assert_eq!(expected(4).verify(&actual, &default).unwrap_err().to_string(), "rank 0 lacks core[2-3]");
    let strict = VerifyPolicy::all(VerifyMode::Strict);
    assert_eq!(expected(2).verify(&actual, &strict).unwrap_err().to_string(), "rank 0 lacks gpu0");
    assert!(expected(4).verify(&actual, &VerifyPolicy::all(VerifyMode::Ignore)).is_ok());
    let other = ResourceSet::uniform(&hosts("x0"), 2, 0).unwrap();
    assert!(other.verify(&actual, &default).unwrap_err().to_string().contains("host"));
}

fn any_set() -> impl Strategy<Value = ResourceSet> {
    let node = (1u32..5, 0u32..3);
    proptest::collection::vec(node, 0..12).prop_map(|nodes| {
        let groups: Vec<HostGroup> = nodes
            .iter()
            .enumerate()
            .map(|(i, (cores, gpus))| HostGroup {
                hosts: Hostlist::from_hosts([format!("n{i}")]).unwrap(),
                cores: IdSet::first_n(*cores),
                gpus: IdSet::first_n(*gpus),
                properties: if i % 3 == 0 { vec!["p".to_owned()] } else { vec![] },
            })
            .collect();
        ResourceSet::from_groups(&groups).unwrap()
    })
}

proptest! {
    #[test]
    fn text_round_trip(set in any_set()) {
        prop_assert_eq!(ResourceSet::parse(&set.to_json()).unwrap(), set.clone());
        let hosts = set.hosts().unwrap();
        prop_assert!(set.check_hosts(&hosts).is_ok());
        prop_assert_eq!(set.rerank(&hosts).unwrap(), set);
    }

    #[test]
    fn set_laws(set in any_set(), cut in 0u32..12) {
        let some = IdSet::first_n(cut);
        let (low, high) = (set.include(&some), set.exclude(&some));
        prop_assert_eq!(low.union(&high), set.clone());
        prop_assert!(low.intersection(&high).is_empty());
        prop_assert!(set.difference(&set).is_empty());
        prop_assert_eq!(set.difference(&low), high.clone());
        let mut again = low.clone();
        prop_assert!(again.append(&high).is_ok());
        prop_assert_eq!(&again, &set);
        prop_assert_eq!(again.append(&high).is_err(), !high.is_empty());
    }

    #[test]
    fn never_panics(text in "\\PC{0,80}") {
        let _ = ResourceSet::parse(&text);
        let _ = ResourceSet::parse_many(&text);
    }
}
