//! `checksums.sha256`: a line for each member, as `sha256sum` writes and `sha256sum -c` reads it. Names have no characters
//! that it would escape ([`super::contents`] refuses them).

use crate::oci::Digest;

/// The line of a member: hash, two blanks, name.
pub(super) fn line(name: &str, digest: &Digest) -> String {
    format!("{}  {name}\n", digest.hex())
}

/// The members of a list in their order. Lines that are none are left out: the list is compared byte for byte besides.
pub(super) fn parse(text: &str) -> Vec<(String, Digest)> {
    let one = |line: &str| {
        let (hex, name) = line.split_once("  ")?;
        Some((name.to_owned(), format!("sha256:{hex}").parse().ok()?))
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let names = ["a", "a  b", "d/é.yaml"];
        let text: String = names.iter().map(|name| line(name, &Digest::of(name.as_bytes()))).collect();
        assert_eq!(parse(&text), names.map(|name| (name.to_owned(), Digest::of(name.as_bytes()))));
        assert_eq!(parse("\nx  y\nabc y\n"), []);
    }
}
