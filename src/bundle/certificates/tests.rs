use super::*;
use crate::flux::Certificate;
use std::os::unix::fs::PermissionsExt;

fn need(namespace: Option<&str>, name: &str) -> CertificateNeed {
    CertificateNeed { namespace: namespace.map(str::to_owned), name: name.to_owned() }
}

fn ids(found: &Certificates) -> Vec<&'static str> {
    found.diagnostics.iter().map(|d| d.code.id).collect()
}

fn wants(needs: &[CertificateNeed], want: &Want) -> BTreeMap<CertificateNeed, Want> {
    needs.iter().map(|need| (need.clone(), want.clone())).collect()
}

fn private(needs: &[CertificateNeed]) -> BTreeMap<CertificateNeed, Want> {
    wants(needs, &Want { private: true, ..Want::default() })
}

fn now() -> Duration {
    Duration::from_secs(1_800_000_000)
}

fn gather(store: &Store, needs: &BTreeMap<CertificateNeed, Want>, missing: Missing) -> Certificates {
    super::gather(store, needs, missing, now())
}

#[test]
fn made_once_then_read_and_public_half_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("certs"));
    let (solo, lammps) = (need(None, "solo"), need(Some("hpc"), "lammps"));
    let needs = private(&[solo.clone(), lammps.clone()]);
    let public: BTreeMap<_, _> = needs.keys().map(|need| (need.clone(), Want::default())).collect();
    assert_eq!(ids(&gather(&store, &needs, Missing::Report)), ["FG501", "FG501"]);
    let unknown = gather(&store, &public, Missing::Make);
    assert!(unknown.diagnostics.is_empty() && unknown.public_keys.is_empty());
    assert!(!store.folder().exists());

    let made = gather(&store, &needs, Missing::Make);
    assert!(made.diagnostics.is_empty() && made.made.len() == 2 && made.public_keys.len() == 2, "{made:?}");
    assert_eq!(made.made.iter().filter(|added| added.ignored_in.is_some()).count(), 1);
    let path = store.path(&lammps);
    assert!(path.ends_with("certs/hpc/lammps.cert"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);

    let again = gather(&store, &needs, Missing::Make);
    assert!(again.made.is_empty() && again.public_keys == made.public_keys);
    let form = again.plain(&solo, "s");
    assert!(!format!("{form:?} {again:?} {store:?}").contains("secret-key"));

    std::fs::remove_file(&path).unwrap();
    let known = gather(&store, &public, Missing::Report);
    assert!(known.diagnostics.is_empty() && known.public_keys == made.public_keys);
    assert_eq!(known.plain(&lammps, "s"), SecretForm::Existing);
    // What is recorded is never made again.
    let lost = gather(&store, &needs, Missing::Make);
    assert!(ids(&lost) == ["FG506"] && lost.made.is_empty() && !path.exists());
}

#[test]
fn a_stale_open_or_broken_certificate_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let one = need(None, "a");
    let needs = private(std::slice::from_ref(&one));
    store.make(&one, false).unwrap();
    let old = std::fs::read(store.path(&one)).unwrap();
    assert!(matches!(store.make(&one, false), Err(StoreError::Exists { .. })));
    store.make(&one, true).unwrap();
    let new = std::fs::read(store.path(&one)).unwrap();
    assert_ne!(old, new);

    std::fs::write(store.path(&one), &old).unwrap();
    assert_eq!(ids(&gather(&store, &needs, Missing::Make)), ["FG503"]);
    store.import(&one, &new, true).unwrap();
    assert_eq!(ids(&gather(&store, &needs, Missing::Make)), [""; 0]);

    std::fs::set_permissions(store.path(&one), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(ids(&gather(&store, &needs, Missing::Make)), ["FG504"]);
    std::fs::write(store.path(&one), "metadata\n").unwrap();
    assert_eq!(ids(&gather(&store, &needs, Missing::Make)), ["FG502"]);
    std::fs::write(store.folder().join(PUBLIC_FILE), "<<<<<<<").unwrap();
    assert_eq!(ids(&gather(&store, &needs, Missing::Make)), ["FG507"]);
}

#[test]
fn the_private_half_of_a_recorded_key_can_be_imported() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let one = need(Some("hpc"), "a");
    store.make(&one, false).unwrap();
    let text = std::fs::read(store.path(&one)).unwrap();
    std::fs::remove_file(store.path(&one)).unwrap();
    let other = Certificate::from_secret_bytes([3; 32], "a").to_file_text();
    assert!(matches!(store.import(&one, other.as_bytes(), false), Err(StoreError::Exists { .. })));
    store.import(&one, &text, false).unwrap();
    assert_eq!(std::fs::read(store.path(&one)).unwrap(), text);
    assert!(matches!(store.import(&one, b"nonsense", true), Err(StoreError::Certificate { .. })));
}

#[test]
fn certificates_put_there_by_hand_are_recorded_by_a_build() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let one = need(None, "a");
    std::fs::create_dir(folder.path().join("default")).unwrap();
    let certificate = Certificate::from_secret_bytes([3; 32], "a");
    std::fs::write(store.path(&one), certificate.to_file_text().as_bytes()).unwrap();
    std::fs::set_permissions(store.path(&one), std::fs::Permissions::from_mode(0o600)).unwrap();
    let needs = private(std::slice::from_ref(&one));
    assert_eq!(gather(&store, &needs, Missing::Report).public_keys.len(), 1);
    assert!(store.record().unwrap().keys.is_empty());
    assert_eq!(gather(&store, &needs, Missing::Make).public_keys.len(), 1);
    assert_eq!(store.record().unwrap().keys["default/a"], certificate.public_key());
}

#[test]
fn plain_keys_stay_out_of_git() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().canonicalize().unwrap();
    let output = tree.join("deep/generated");
    let titles = ["hpc/lammps".to_owned()];
    assert_eq!(git_work_tree(&output), None);
    assert!(refuse_plain_in_git(&titles, &output, false).is_none());
    std::fs::write(tree.join(".git"), "gitdir: elsewhere\n").unwrap();
    assert_eq!(git_work_tree(&output), Some(tree.clone()));
    let refused = refuse_plain_in_git(&titles, &output, false).unwrap();
    assert!(refused.help.unwrap().contains("plain-secrets-in-git"));
    assert!(refuse_plain_in_git(&titles, &output, true).is_none());
    assert!(refuse_plain_in_git(&[], &output, false).is_none());
    // A link into a work tree is in it.
    let outside = tempfile::tempdir().unwrap();
    let link = outside.path().join("link");
    std::os::unix::fs::symlink(&tree, &link).unwrap();
    assert_eq!(git_work_tree(&link.join("generated")), Some(tree));
}

/// A store with the certificate of hpc/a, a person who can decrypt, and what it takes to encrypt to them.
struct Encrypting {
    _folder: tempfile::TempDir,
    store: Store,
    need: CertificateNeed,
    identity: age::x25519::Identity,
}

impl Encrypting {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("certs"));
        let need = need(Some("hpc"), "a");
        Self { store, need, identity: age::x25519::Identity::generate(), _folder: folder }
    }

    fn sops(people: &[&age::x25519::Identity]) -> Cipher {
        Cipher::Sops { recipients: people.iter().map(|person| person.to_public().to_string()).collect() }
    }

    fn run(&self, ciphers: &[Cipher], missing: Missing) -> Certificates {
        let want = Want { ciphers: ciphers.to_vec(), ..Want::default() };
        gather(&self.store, &wants(std::slice::from_ref(&self.need), &want), missing)
    }

    fn file(&self) -> Vec<u8> {
        std::fs::read(self.store.encrypted_path(&self.need, CipherKind::Sops)).unwrap()
    }
}

fn whys(found: &Certificates) -> Vec<Option<&str>> {
    found.stored.iter().map(|stored| stored.why.as_deref()).collect()
}

#[test]
fn encrypted_once_then_copied_without_the_private_half() {
    let world = Encrypting::new();
    let cipher = [Encrypting::sops(&[&world.identity])];
    for missing in [Missing::Report, Missing::Encrypt] {
        assert_eq!(ids(&world.run(&cipher, missing)), ["FG501"]);
    }
    world.store.make(&world.need, false).unwrap();
    assert_eq!(ids(&world.run(&cipher, Missing::Report)), ["FG510"]);
    let compared = world.run(&cipher, Missing::Encrypt);
    assert!(compared.diagnostics.is_empty() && compared.pending.len() == 1 && compared.stored.is_empty());
    assert!(!world.store.encrypted_path(&world.need, CipherKind::Sops).exists());

    let built = world.run(&cipher, Missing::Make);
    assert_eq!(whys(&built), [None]);
    assert!(built.pending.is_empty() && !format!("{built:?}").contains("secret-key"));
    let certificate = std::fs::read(world.store.path(&world.need)).unwrap();
    let file = world.file();
    assert_eq!(crate::bundle::sops::tests::decrypt(&file, &world.identity).unwrap(), certificate);
    let form = built.encrypted(&world.need, CipherKind::Sops, "s");
    assert!(matches!(&form, SecretForm::Encrypted { bytes, leeway: Leeway::Either, .. } if *bytes == file));
    assert_eq!(built.encrypted(&world.need, CipherKind::Sealed, "s"), SecretForm::Existing);

    // CI: no private half, no identity.
    std::fs::remove_file(world.store.path(&world.need)).unwrap();
    for missing in [Missing::Report, Missing::Encrypt, Missing::Make] {
        let again = world.run(&cipher, missing);
        assert!(again.diagnostics.is_empty() && again.stored.is_empty() && again.pending.is_empty());
        assert_eq!(again.encrypted(&world.need, CipherKind::Sops, "s"), form);
        assert_eq!(world.file(), file);
    }
    // Out of date, and nothing to make a new one of: with the command that mends it.
    let other = [Encrypting::sops(&[&age::x25519::Identity::generate()])];
    for missing in [Missing::Report, Missing::Encrypt, Missing::Make] {
        let locked = world.run(&other, missing);
        assert_eq!(ids(&locked), ["FG516"]);
        let help = locked.diagnostics.iter().next().unwrap().help.clone().unwrap();
        assert!(
            help.contains("base64 -d | flux-gen cert import hpc/a -") && help.contains("cert rotate hpc/a"),
            "{help}"
        );
    }
    std::fs::remove_file(world.store.encrypted_path(&world.need, CipherKind::Sops)).unwrap();
    let gone = world.run(&cipher, Missing::Make);
    let problem = gone.diagnostics.iter().next().unwrap();
    assert!(problem.message.contains("hpc/a.sops.yaml is missing;"), "{problem:?}");
    assert!(!problem.help.as_ref().unwrap().contains("sops -d"), "{problem:?}");
}

#[test]
fn other_recipients_or_another_certificate_encrypt_anew() {
    let world = Encrypting::new();
    world.run(&[Encrypting::sops(&[&world.identity])], Missing::Make);
    let friend = age::x25519::Identity::generate();
    let both = [Encrypting::sops(&[&friend, &world.identity])];
    let why = format!("it cannot be decrypted by {}", friend.to_public());
    assert_eq!(whys(&world.run(&both, Missing::Make)), [Some(why.as_str())]);
    assert_eq!(whys(&world.run(&both, Missing::Make)), [None::<&str>; 0]);
    world.store.make(&world.need, true).unwrap();
    assert_eq!(whys(&world.run(&both, Missing::Make)), [Some("it holds another key pair")]);
    let certificate = std::fs::read(world.store.path(&world.need)).unwrap();
    assert_eq!(crate::bundle::sops::tests::decrypt(&world.file(), &friend).unwrap(), certificate);
}

#[test]
fn sealed_for_another_controller_is_sealed_anew_unless_expired() {
    let world = Encrypting::new();
    let sealed = |text: &str| Cipher::Sealed {
        certificate: crate::bundle::sealed::SealingCertificate::parse(text.as_bytes()).unwrap(),
        scope: crate::model::settings::SealedScope::Strict,
    };
    let one = [sealed(include_str!("../../../tests/sealing/one.pem"))];
    let two = [sealed(include_str!("../../../tests/sealing/two.pem"))];
    assert_eq!(whys(&world.run(&one, Missing::Make)), [None]);
    assert_eq!(whys(&world.run(&one, Missing::Make)), [None::<&str>; 0]);
    let again = world.run(&two, Missing::Make);
    assert_eq!(whys(&again), [Some("it was sealed with another certificate")]);
    assert!(again.stored[0].audience.ends_with(", scope strict"), "{again:?}");
    let later = |certificates: &[Cipher], missing| {
        let want = Want { ciphers: certificates.to_vec(), ..Want::default() };
        let needs = wants(std::slice::from_ref(&world.need), &want);
        let year_2200 = now() + Duration::from_secs(173 * 31_557_600);
        super::gather(&world.store, &needs, missing, year_2200)
    };
    // What is sealed stays good; only sealing anew is refused.
    assert!(later(&two, Missing::Make).diagnostics.is_empty());
    let refused = later(&one, Missing::Make);
    assert_eq!(ids(&refused), ["FG513"]);
    assert!(refused.diagnostics.iter().next().unwrap().message.contains("has expired on 2126-"), "{refused:?}");
}

#[test]
fn what_cannot_be_encrypted_is_told() {
    let world = Encrypting::new();
    let cipher = Cipher::Sops { recipients: ["age1nobody".to_owned()].into() };
    let found = world.run(std::slice::from_ref(&cipher), Missing::Make);
    assert_eq!(ids(&found), ["FG518"]);
    let want = Want { ciphers: vec![Encrypting::sops(&[&world.identity])], ..Want::default() };
    let needs = wants(std::slice::from_ref(&world.need), &want);
    let far = Duration::from_secs(u64::MAX);
    assert_eq!(ids(&super::gather(&world.store, &needs, Missing::Make, far)), ["FG518"]);
}

#[test]
fn a_certificate_of_a_spec_is_encrypted_and_not_stored() {
    let world = Encrypting::new();
    let inline = Certificate::from_secret_bytes([5; 32], "a");
    let want =
        Want { ciphers: vec![Encrypting::sops(&[&world.identity])], inline: Some(inline.clone()), ..Want::default() };
    let needs = wants(std::slice::from_ref(&world.need), &want);
    let found = gather(&world.store, &needs, Missing::Make);
    assert!(found.diagnostics.is_empty() && found.public_keys.is_empty() && found.stored.len() == 1);
    assert!(!world.store.path(&world.need).exists() && world.store.record().unwrap().keys.is_empty());
    let text = crate::bundle::sops::tests::decrypt(&world.file(), &world.identity).unwrap();
    assert_eq!(text, inline.to_file_text().as_bytes());
    assert!(gather(&world.store, &needs, Missing::Make).stored.is_empty());
}

#[test]
fn the_plain_secret_of_the_bundle_serves_when_it_is_the_recorded_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("certs"));
    let one = need(Some("hpc"), "a");
    let bundle = folder.path().join("generated/hpc/a");
    let want = Want { private: true, earlier: vec![folder.path().join("nothing"), bundle.clone()], ..Want::default() };
    let needs = wants(std::slice::from_ref(&one), &want);
    let made = gather(&store, &needs, Missing::Make);
    let text = made.private(&one).unwrap().clone();
    std::fs::remove_file(store.path(&one)).unwrap();
    assert_eq!(ids(&gather(&store, &needs, Missing::Encrypt)), ["FG506"]);
    let secret = |text: &PrivateText| crate::bundle::secret::secret_yaml(Some("hpc"), "x", text).unwrap();
    std::fs::create_dir_all(&bundle).unwrap();
    let other = PrivateText::new(Certificate::from_secret_bytes([5; 32], "a").to_file_text().as_bytes().to_vec());
    std::fs::write(bundle.join("secret-curve.yaml"), secret(&other).as_bytes()).unwrap();
    std::fs::write(bundle.join("secret-broken.yaml"), "kind: Secret\ndata: {curve.cert: '!'}\n").unwrap();
    assert_eq!(ids(&gather(&store, &needs, Missing::Encrypt)), ["FG506"]);
    std::fs::write(bundle.join("secret-curve.yaml"), secret(&text).as_bytes()).unwrap();
    for missing in [Missing::Report, Missing::Encrypt, Missing::Make] {
        let found = gather(&store, &needs, missing);
        assert!(found.diagnostics.is_empty() && found.private(&one) == Some(&text));
    }
}
