use super::*;
use proptest::prelude::*;

fn names(list: &Hostlist) -> Vec<String> {
    list.iter().collect()
}

#[test]
fn encodes_in_order() {
    for (hosts, text) in [
        ("", ""),
        ("foo1 foo2 foo3", "foo[1-3]"),
        ("foo3 foo2 foo1", "foo[3,2,1]"),
        ("foo1 foo1", "foo[1,1]"),
        ("foo9 foo10 foo11", "foo[9-11]"),
        ("foo09 foo10", "foo[09-10]"),
        ("foo8 foo09 foo10", "foo[8,09-10]"),
        ("foo01 foo02 foo3", "foo[01-02,3]"),
        ("10 11 12", "[10-12]"),
        ("a b a1 a2", "a,b,a[1-2]"),
        ("foo-0 foo-1 bar-0 bar-1 foo-2", "foo-[0-1],bar-[0-1],foo-2"),
        ("n1-ib n2-ib", "n1-ib,n2-ib"),
        ("a18446744073709551615", "a18446744073709551615"),
    ] {
        let list = Hostlist::from_hosts(hosts.split_whitespace()).unwrap();
        assert_eq!(list.to_string(), text);
        assert_eq!(Hostlist::parse(text).unwrap(), list);
    }
}

#[test]
fn strict_refuses_with_the_place_what_flux_reads_oddly() {
    for (text, offset, flux_reads) in [
        ("a b", 1, true),
        ("a,,b", 2, true),
        ("a,", 2, true),
        ("node[0-3]]", 9, true),
        ("r[0-1]n[0-3]", 7, true),
        ("node[+1-3]", 5, true),
        ("node[1-]", 5, true),
        ("node[001-3]", 5, true),
        ("node99999999999999999999", 0, true),
        ("a1],a[3-4]", 2, true),
        ("a[3-4]b],c", 7, true),
        ("a\u{1}", 1, true),
        ("b,a[0]77777777777777777777", 2, true),
        ("a9999999999999999999[5]", 0, true),
        ("node[0-3", 4, false),
        ("node0]", 5, false),
        ("node[]", 5, false),
        ("node[3-1]", 5, false),
        ("node[0-1048576]", 5, false),
        ("node[1--3]", 5, false),
        ("a[0],b[0-1048575]", 5, false),
        ("b[0-1048575,0]-x", 0, false),
    ] {
        assert_eq!(Hostlist::parse(text).map_err(|e| e.offset), Err(offset), "{text}");
        assert_eq!(Hostlist::decode_as_flux(text).is_ok(), flux_reads, "{text}");
    }
}

#[test]
fn finds_and_deletes() {
    let mut list = Hostlist::parse("a[08-11],b,a[0-3]").unwrap();
    assert_eq!(
        (list.find("a10"), list.find("a2"), list.find("a02"), list.find("b")),
        (Some(2), Some(7), None, Some(4))
    );
    assert_eq!((list.nth(4), list.nth(8), list.nth(9)), (Some("b".into()), Some("a3".into()), None));
    assert_eq!(list.delete(&Hostlist::parse("a09,b,zz").unwrap()), 2);
    assert_eq!(list.to_string(), "a[08,10-11,0-3]");
    assert!(list.has_mixed_widths());
    assert_eq!(list.first_repeated(), None);
    assert_eq!(Hostlist::parse("x[0-1],x1").unwrap().first_repeated().as_deref(), Some("x1"));
}

#[test]
fn indexed_jobs() {
    assert_eq!(Hostlist::indexed("sim2", 0).to_string(), "");
    assert_eq!(Hostlist::indexed("sim2", 1).to_string(), "sim2-0");
    assert_eq!(Hostlist::indexed("sim2", 12).to_string(), "sim2-[0-11]");
}

#[test]
fn huge_padding_does_not_panic() {
    let text = format!("n[{}1]", "0".repeat(100_000));
    assert_eq!(Hostlist::parse(&text).unwrap().iter().next().unwrap().len(), 100_002);
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,2}[0-9]{1,3}", "[a-c]{1,2}", "[a-c][0-9]{1,2}-x", "a[0-3]"]
}

proptest! {
    #[test]
    fn encoding_keeps_the_names(hosts in proptest::collection::vec(host(), 0..30)) {
        let list = Hostlist::from_hosts(&hosts).unwrap();
        prop_assert_eq!(names(&list), hosts.clone());
        prop_assert_eq!(list.len(), hosts.len());
        let text = list.to_string();
        prop_assert_eq!(names(&Hostlist::parse(&text).unwrap()), hosts.clone());
        prop_assert_eq!(names(&Hostlist::decode_as_flux(&text).unwrap()), hosts.clone());
        prop_assert_eq!(Hostlist::parse(&text).unwrap().to_string(), text);
        for (i, name) in hosts.iter().enumerate() {
            prop_assert_eq!(list.nth(i), Some(name.clone()));
            prop_assert_eq!(list.find(name), hosts.iter().position(|h| h == name));
        }
    }

    #[test]
    fn expansion_is_the_naive_one(
        prefix in "[a-c]{1,3}-?", lo in 0u64..120, more in 0u64..30, width in 1usize..4, suffix in "(-[x-z])?"
    ) {
        let text = format!("{prefix}[{lo:0width$}-{:0width$}]{suffix}", lo + more);
        let naive: Vec<String> = (lo..=lo + more).map(|n| format!("{prefix}{n:0width$}{suffix}")).collect();
        prop_assert_eq!(names(&Hostlist::parse(&text).unwrap()), naive);
    }

    #[test]
    fn sorting_and_uniq_keep_the_right_names(hosts in proptest::collection::vec(host(), 0..30)) {
        let mut sorted = Hostlist::from_hosts(&hosts).unwrap();
        let mut unique = sorted.clone();
        sorted.sort();
        unique.uniq();
        let mut expected = hosts.clone();
        expected.sort();
        let mut got = names(&sorted);
        got.sort();
        prop_assert_eq!(&got, &expected);
        expected.dedup();
        let mut got = names(&unique);
        got.sort();
        got.dedup();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn strict_reads_a_subset_of_flux_and_the_same(text in "[ab0-3,\\[\\] +-]{0,16}") {
        if let Ok(list) = Hostlist::parse(&text) {
            prop_assert_eq!(Hostlist::decode_as_flux(&text).unwrap(), list);
        }
    }

    #[test]
    fn never_panics(text in "\\PC{0,60}") {
        let _ = Hostlist::parse(&text).map(|l| l.to_string());
        let _ = Hostlist::decode_as_flux(&text).map(|l| l.to_string());
    }
}
