use super::{Config, parse, uri};

fn read(text: &str) -> Result<Config, String> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.message().to_owned())?;
    parse(&table)
}

const FULL: &str = r#"
[resource]
path = "/r"
noverify = true
[bootstrap]
curve_cert = "/c"
default_port = 8050
default_bind = "tcp://*:%p"
default_connect = "tcp://%h.sim:%p"
hosts = [ { host = "sim-0", bind = "tcp://eth0:%p" }, { host = "sim-[0-2]" } ]
[archive]
anything = 1
"#;

#[test]
fn a_bundles_configuration() {
    let c = read(FULL).expect("parses");
    let got: Vec<_> = c.hosts.iter().map(|h| (h.name.as_str(), h.bind.as_deref(), h.connect.as_deref())).collect();
    assert_eq!(
        got,
        [
            ("sim-0", Some("tcp://eth0:8050"), Some("tcp://sim-0.sim:8050")),
            ("sim-1", Some("tcp://*:8050"), Some("tcp://sim-1.sim:8050")),
            ("sim-2", Some("tcp://*:8050"), Some("tcp://sim-2.sim:8050")),
        ]
    );
    assert!(c.noverify && c.bootstrap && c.r_path.as_deref() == Some("/r"));
}

#[test]
fn refused() {
    for (from, to) in [
        ("default_port = 8050", "default_port = \"8050\""),
        ("default_port = 8050", "default_port = 99999"),
        ("noverify = true", "noverify = \"true\""),
        ("noverify = true", "foo = 1"),
        ("curve_cert = \"/c\"", ""),
        ("curve_cert = \"/c\"", "curve_cert = \"/c\"\nfoo = 1"),
        ("sim-[0-2]", "sim_[0-2]"),
        ("sim-[0-2]", "sim-[2-0]"),
        ("tcp://*:%p", "*:%p"),
        ("tcp://*:%p", "tcp://*:*"),
        ("{ host = \"sim-0\"", "{ port = 1, host = \"sim-0\""),
        ("hosts = [", "hosts = ["),
        ("[archive]", "[access]"),
        ("[archive]\nanything = 1", "[tbon]\nconnect_timeout = 5"),
        ("[archive]\nanything = 1", "[tbon]\nconnect_timeout = \"x\""),
    ] {
        let text = FULL.replace(from, to);
        assert_eq!(read(&text).is_err(), text != FULL, "{to}");
    }
}

#[test]
fn uri_templates() {
    assert_eq!(uri("tcp://%h:%p/%%%x", "h", "1").as_deref(), Ok("tcp://h:1/%%x"));
}
