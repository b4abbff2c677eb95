use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::super::error::ErrorKind;
use super::*;

fn basic(user: &str, password: &str) -> Credential {
    Credential::Basic { user: user.to_owned(), password: Zeroizing::new(password.to_owned()) }
}

fn files(home: &Path) -> LoginFiles {
    let helpers = vec![home.join("bin")];
    LoginFiles::new(Places { home: Some(home.to_owned()), helpers, ..Places::default() })
}

fn write(home: &Path, name: &str, text: &str) {
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn helper(home: &Path, name: &str, script: &str) {
    let path = home.join("bin").join(format!("docker-credential-{name}"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn files_are_asked_in_order() {
    let p = |text: &str| Some(PathBuf::from(text));
    let places = Places { home: p("/h"), runtime_dir: p("/run/u"), ..Places::default() };
    let expected = ["/run/u/containers/auth.json", "/h/.config/containers/auth.json", "/h/.docker/config.json"];
    assert_eq!(places.files(), expected.map(PathBuf::from));
    let places = Places { config_home: p("/c"), docker_config: p("/d"), ..places };
    let expected = ["/run/u/containers/auth.json", "/c/containers/auth.json", "/d/config.json"];
    assert_eq!(places.files(), expected.map(PathBuf::from));
    let places = Places { registry_auth_file: p("/only"), ..places };
    assert_eq!(places.files(), [PathBuf::from("/only")]);
    assert_eq!(Places::default().files(), Vec::<PathBuf>::new());
}

#[test]
fn the_most_exact_entry_counts() {
    let home = tempfile::tempdir().unwrap();
    // dXNlcjpwYXNz is user:pass, c2NvcGU6cDpx is scope:p:q, aHViOmh1Yg is hub:hub without padding.
    let text = r#"{"auths": {
        "quay.io": {"auth": "dXNlcjpwYXNz"},
        "quay.io/team/app": {"auth": "c2NvcGU6cDpx"},
        "https://index.docker.io/v1/": {"auth": "aHViOmh1Yg"},
        "https://localhost:5000": {"username": "u", "password": "w"},
        "empty.example": {},
        "token.example": {"auth": "dXNlcjpwYXNz", "identitytoken": "refresh"},
        "direct.example": {"registrytoken": "bearer"}
    }}"#;
    write(home.path(), ".config/containers/auth.json", text);
    let find = |registry: &str, repository: &str| files(home.path()).find(registry, repository).unwrap();
    assert_eq!(find("quay.io", "other"), basic("user", "pass"));
    assert_eq!(find("quay.io", "team/app"), basic("scope", "p:q"));
    assert_eq!(find("quay.io", "team/app/part"), basic("scope", "p:q"));
    assert_eq!(find("quay.io", "team/apple"), basic("user", "pass"));
    assert_eq!(find("quay.io", ""), basic("user", "pass"));
    assert_eq!(find("docker.io", "library/a"), basic("hub", "hub"));
    assert_eq!(find("localhost:5000", "a"), basic("u", "w"));
    assert_eq!(find("empty.example", "a"), Credential::Anonymous);
    assert_eq!(find("ghcr.io", "a"), Credential::Anonymous);
    let token = |text: &str| Zeroizing::new(text.to_owned());
    assert_eq!(find("token.example", "a"), Credential::IdentityToken { token: token("refresh") });
    assert_eq!(find("direct.example", "a"), Credential::RegistryToken(token("bearer")));
}

#[test]
fn later_files_fill_what_earlier_ones_lack() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), ".config/containers/auth.json", r#"{"auths": {"a.example": {"auth": "dXNlcjpwYXNz"}}}"#);
    write(
        home.path(),
        ".docker/config.json",
        r#"{"auths": {"a.example": {"auth": "aHViOmh1Yg=="}, "b.example": {"auth": "aHViOmh1Yg=="}}}"#,
    );
    assert_eq!(files(home.path()).find("a.example", "x").unwrap(), basic("user", "pass"));
    assert_eq!(files(home.path()).find("b.example", "x").unwrap(), basic("hub", "hub"));
}

#[test]
fn helpers_are_asked_by_the_servers_name() {
    let home = tempfile::tempdir().unwrap();
    let text = r#"{"auths": {"plain.example": {"auth": "dXNlcjpwYXNz"}}, "credsStore": "all",
        "credHelpers": {"own.example": "own", "https://index.docker.io/v1/": "own", "token.example": "token"}}"#;
    write(home.path(), ".docker/config.json", text);
    // The secret is the server that was asked for.
    helper(home.path(), "own", r#"test "$1" = get && printf '{"Username":"u","Secret":"%s"}' "$(cat)""#);
    helper(home.path(), "token", r#"cat > /dev/null; echo '{"Username":"<token>","Secret":"refresh"}'"#);
    helper(home.path(), "all", "echo credentials not found in native keychain; exit 1");
    let find = |registry: &str| files(home.path()).find(registry, "a").unwrap();
    assert_eq!(find("own.example"), basic("u", "own.example"));
    assert_eq!(find("docker.io"), basic("u", HUB_SERVER));
    assert_eq!(find("token.example"), Credential::IdentityToken { token: Zeroizing::new("refresh".to_owned()) });
    assert_eq!(find("plain.example"), basic("user", "pass"), "the store knows nothing, the file does");
    assert_eq!(find("ghcr.io"), Credential::Anonymous);
}

#[test]
fn failures_are_told_without_secrets() {
    let home = tempfile::tempdir().unwrap();
    helper(home.path(), "bad", "echo hunter2; echo hunter2 >&2; exit 3");
    helper(home.path(), "odd", "echo hunter2");
    let cases = [
        (r#"{"credHelpers": {"a.example": "bad"}}"#, ErrorKind::Helper, "exit status: 3"),
        (r#"{"credHelpers": {"a.example": "odd"}}"#, ErrorKind::Helper, "not what helpers write"),
        (r#"{"credHelpers": {"a.example": "none"}}"#, ErrorKind::Helper, "not installed"),
        (r#"{"credHelpers": {"a.example": "../bin/bad"}}"#, ErrorKind::Helper, "not the name of a program"),
        (r#"{"auths": {"a.example": {"auth": "hunter2"}}}"#, ErrorKind::Credentials, "not user and password in base64"),
        (r#"{"auths": {"a.example": {"auth": "dXNlcg=="}}}"#, ErrorKind::Credentials, "not user and password"),
        (r#"{"auths": "hunter2"}"#, ErrorKind::Credentials, "line 1 column"),
        ("hunter2", ErrorKind::Credentials, "line 1 column"),
    ];
    for (text, kind, why) in cases {
        write(home.path(), ".docker/config.json", text);
        let error = files(home.path()).find("a.example", "x").unwrap_err();
        let shown = format!("{error} {:?} {error:?}", error.advice());
        assert!(error.kind() == kind && shown.contains(why) && !shown.contains("hunter2"), "{shown}");
    }
    let only = Places { registry_auth_file: Some(home.path().join("gone")), ..Places::default() };
    assert_eq!(LoginFiles::new(only).find("a", "b").unwrap_err().kind(), ErrorKind::Credentials);
    assert_eq!(format!("{:?}", basic("u", "hunter2")), "Basic(..)");
}
