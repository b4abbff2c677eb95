//! Options as getopt and argparse read them: clusters of short options, `--name=value`, unique
//! prefixes of long names; everything from the first operand on is left alone.

use std::collections::BTreeMap;

/// One option: short letter (or none), long name, and whether it takes a value.
pub type Spec = (Option<char>, &'static str, Takes);

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Takes {
    Nothing,
    Value,
    /// Only when attached: `-v3`, `--verbose=3`.
    Optional,
}

/// Options by long name, in the order given, and the operands.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Values of each option; a flag has empty values.
    pub options: BTreeMap<&'static str, Vec<String>>,
    /// What is not an option.
    pub operands: Vec<String>,
}

impl Parsed {
    /// Whether the option was given.
    pub fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The last value of an option.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.options.get(name).and_then(|v| v.last()).map(String::as_str)
    }

    /// All values of an option.
    pub fn all(&self, name: &str) -> &[String] {
        self.options.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Reads options up to the first operand.
///
/// # Errors
/// An unknown or ambiguous option, a missing or superfluous value.
pub fn parse(specs: &[Spec], argv: &[String]) -> Result<Parsed, String> {
    let mut out = Parsed::default();
    let mut rest = argv.iter();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            break;
        }
        if let Some(long) = arg.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((n, v)) => (n, Some(v.to_owned())),
                None => (long, None),
            };
            let spec = find(specs, name)?;
            let value = match (spec.2, attached) {
                (Takes::Nothing, Some(_)) => return Err(format!("option '--{}' doesn't allow an argument", spec.1)),
                (Takes::Value, None) => {
                    rest.next().cloned().ok_or_else(|| format!("option '--{}' requires an argument", spec.1))?
                }
                (_, attached) => attached.unwrap_or_default(),
            };
            out.options.entry(spec.1).or_default().push(value);
        } else if arg.len() > 1 && arg.starts_with('-') {
            short(specs, &arg[1..], &mut rest, &mut out)?;
        } else {
            out.operands.push(arg.clone());
            break;
        }
    }
    out.operands.extend(rest.cloned());
    Ok(out)
}

fn short(
    specs: &[Spec],
    cluster: &str,
    rest: &mut std::slice::Iter<'_, String>,
    out: &mut Parsed,
) -> Result<(), String> {
    let mut letters = cluster.chars();
    while let Some(letter) = letters.next() {
        let spec =
            specs.iter().find(|s| s.0 == Some(letter)).ok_or_else(|| format!("unrecognized option '-{letter}'"))?;
        let entry = out.options.entry(spec.1).or_default();
        let attached = letters.as_str();
        match spec.2 {
            Takes::Nothing => entry.push(String::new()),
            // `-vvv` counts, `-v3` is a level.
            Takes::Optional if attached.starts_with(letter) || attached.is_empty() => entry.push(String::new()),
            Takes::Optional => {
                entry.push(attached.to_owned());
                return Ok(());
            }
            Takes::Value if attached.is_empty() => {
                entry.push(rest.next().cloned().ok_or_else(|| format!("option '-{letter}' requires an argument"))?);
                return Ok(());
            }
            Takes::Value => {
                entry.push(attached.to_owned());
                return Ok(());
            }
        }
    }
    Ok(())
}

fn find<'a>(specs: &'a [Spec], name: &str) -> Result<&'a Spec, String> {
    if let Some(exact) = specs.iter().find(|s| s.1 == name) {
        return Ok(exact);
    }
    let matches: Vec<&Spec> = specs.iter().filter(|s| s.1.starts_with(name)).collect();
    match matches[..] {
        [one] => Ok(one),
        [] => Err(format!("unrecognized option '--{name}'")),
        _ => Err(format!("option '--{name}' is ambiguous")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Spec, Takes, parse};

    const SPECS: &[Spec] = &[
        (Some('n'), "ntasks", Takes::Value),
        (Some('N'), "nodes", Takes::Value),
        (Some('v'), "verbose", Takes::Optional),
        (Some('x'), "exclusive", Takes::Nothing),
        (None, "quiet", Takes::Nothing),
        (None, "config-path", Takes::Value),
        (None, "conf", Takes::Value),
    ];

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn forms() {
        let p = parse(SPECS, &words("-n4 -N 2 -xvvv --quiet --config X cmd -n9 --nope")).expect("parses");
        assert_eq!((p.last("ntasks"), p.last("nodes"), p.last("config-path")), (Some("4"), Some("2"), Some("X")));
        assert_eq!(p.all("verbose").len(), 3);
        assert_eq!(p.operands, words("cmd -n9 --nope"));
        assert_eq!(parse(SPECS, &words("-v3 -- -n")).expect("parses").operands, ["-n"]);
    }

    #[test]
    fn refusals() {
        for text in ["--nope", "-Z", "-n", "--nodes", "--quiet=1", "--con"] {
            let got = parse(SPECS, &words(text));
            // `--con` starts both conf and config-path.
            assert!(got.is_err(), "{text}: {got:?}");
        }
    }
}
