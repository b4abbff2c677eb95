//! r_encode.json and r_other.json.

use flux_gen::flux::resource_set::{BAD_PROPERTY_CHARACTERS, ConfigEntry, EncodeOptions};
use flux_gen::flux::{Hostlist, IdSet, ResourceError, ResourceSet};
use serde_json::Value;

use crate::{Outcome, all, same, text, texts};

const HARDWARE: &str = "R: the command looks at the machine (--local, --xml)";

fn compare(ours: &Result<ResourceSet, ResourceError>, case: &Value) -> Outcome {
    let accepted = case["rc"] == 0;
    match ours {
        Err(error) if accepted => Outcome::Different(format!("we refuse: {error}")),
        Err(_) => Outcome::Same,
        Ok(set) if !accepted => Outcome::Different(format!("we print {}", set.to_json())),
        Ok(set) => {
            let line = set.to_json();
            let ours: Value = serde_json::from_str(&line).unwrap();
            let theirs: Value = serde_json::from_str(text(case, "stdout")).unwrap();
            // Key order is theirs to vary; everything else, spacing included, is equal.
            let sorted = |text: &str| {
                let mut bytes: Vec<u8> = text.trim_end().bytes().collect();
                bytes.sort_unstable();
                bytes
            };
            all([same(&ours, &theirs), same(&sorted(&line), &sorted(text(case, "stdout")))])
        }
    }
}

pub(crate) fn encode(case: &Value, _: &Value) -> Outcome {
    let args = texts(&case["args"]);
    let mut options: Vec<(&str, &str)> = Vec::new();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word.as_str(), None),
        };
        let name = match name {
            "--ranks" | "-r" => "ranks",
            "--cores" | "-c" => "cores",
            "--gpus" | "-g" => "gpus",
            "--hosts" | "-H" => "hosts",
            "--property" | "-p" => "property",
            "--local" | "-l" | "--xml" | "-f" => return Outcome::OutOfScope(HARDWARE),
            other => return Outcome::Different(format!("unknown option {other}")),
        };
        options.push((name, value.unwrap_or_else(|| words.next().map_or("", |w| w))));
    }
    let get = |name: &str| options.iter().rfind(|(option, _)| *option == name).map(|(_, value)| *value);
    let properties: Vec<&str> = options.iter().filter(|(name, _)| *name == "property").map(|(_, v)| *v).collect();
    // Without --hosts the machine's own name is used; the case tells which it was.
    let nodelist = case["R"]["execution"]["nodelist"][0].as_str().unwrap_or("");
    let local_host = Hostlist::parse(nodelist).ok().and_then(|hosts| hosts.nth(0)).unwrap_or_default();
    let set = ResourceSet::encode(&EncodeOptions {
        ranks: get("ranks"),
        cores: get("cores"),
        gpus: get("gpus"),
        hosts: get("hosts"),
        properties: &properties,
        local_host: &local_host,
    });
    compare(&set, case)
}

pub(crate) fn other(case: &Value, _: &Value) -> Outcome {
    match text(case, "kind") {
        "parse-config" => compare(&parse_config(text(case, "toml")), case),
        "R" => command(case),
        other => Outcome::Different(format!("unknown kind {other}")),
    }
}

/// `[[resource.config]]` of a file, with the types that the command insists on.
fn parse_config(toml: &str) -> Result<ResourceSet, ResourceError> {
    let wrong = |what: &str| ResourceError::Json(what.to_owned());
    let table: toml::Table = toml.parse().map_err(|_| wrong("TOML"))?;
    let config = table.get("resource").and_then(|r| r.get("config")).and_then(toml::Value::as_array);
    let mut entries = Vec::new();
    for entry in config.ok_or_else(|| wrong("no resource.config array"))? {
        let entry = entry.as_table().ok_or_else(|| wrong("entry"))?;
        if entry.keys().any(|key| !["hosts", "cores", "gpus", "properties"].contains(&key.as_str())) {
            return Err(wrong("unknown key"));
        }
        let string =
            |key: &str| entry.get(key).map(|v| v.as_str().map(str::to_owned).ok_or_else(|| wrong(key))).transpose();
        let mut properties = Vec::new();
        if let Some(given) = entry.get("properties") {
            for property in given.as_array().ok_or_else(|| wrong("properties"))? {
                properties.push(property.as_str().ok_or_else(|| wrong("property"))?.to_owned());
            }
        }
        let hosts = string("hosts")?.ok_or_else(|| wrong("no hosts"))?;
        entries.push(ConfigEntry { hosts, cores: string("cores")?, gpus: string("gpus")?, properties });
    }
    ResourceSet::from_config(&entries)
}

fn command(case: &Value) -> Outcome {
    let args = texts(&case["args"]);
    let sets = ResourceSet::parse_many(text(case, "stdin"));
    let sets = match sets {
        Ok(sets) => sets,
        Err(error) => return compare(&Err(error), case),
    };
    let union = || sets[1..].iter().fold(sets[0].clone(), |all, set| all.union(set));
    match args[0].as_str() {
        "append" => {
            let mut all = ResourceSet::default();
            let result = sets.iter().try_for_each(|set| all.append(set));
            compare(&result.map(|()| all), case)
        }
        "diff" => compare(&Ok(sets[1..].iter().fold(sets[0].clone(), |all, set| all.difference(set))), case),
        "intersect" => compare(&Ok(sets[1..].iter().fold(sets[0].clone(), |all, set| all.intersection(set))), case),
        "remap" => compare(&Ok(union().remap()), case),
        "rerank" => {
            let hosts = Hostlist::decode_as_flux(args.get(1).map_or("", |a| a));
            let hosts = hosts.map_err(|e| ResourceError::Hostlist(e.to_string()));
            compare(&hosts.and_then(|hosts| union().rerank(&hosts)), case)
        }
        "set-property" => {
            let words: Vec<&str> = args[1..].iter().map(String::as_str).collect();
            let mut set = union();
            let result = set.set_properties_from_text(&words);
            compare(&result.map(|()| set), case)
        }
        "verify" if sets.len() != 2 => same(&1, &case["rc"].as_i64().unwrap()),
        "verify" => {
            // The command compares strictly, but more than expected is only a message.
            let policy = flux_gen::flux::resource_set::VerifyPolicy {
                hostname: flux_gen::flux::resource_set::VerifyMode::Strict,
                core: flux_gen::flux::resource_set::VerifyMode::AllowExtra,
                gpu: flux_gen::flux::resource_set::VerifyMode::AllowExtra,
                other: flux_gen::flux::resource_set::VerifyMode::AllowExtra,
            };
            same(&i64::from(sets[0].verify(&sets[1], &policy).is_err()), &case["rc"].as_i64().unwrap())
        }
        "decode" => decode(union(), &args[1..], case),
        other => Outcome::Different(format!("unknown command {other}")),
    }
}

fn decode(mut set: ResourceSet, args: &[String], case: &Value) -> Outcome {
    let mut lines = Vec::new();
    let mut words = args.iter().flat_map(|arg| match arg.split_once('=') {
        Some((name, value)) => vec![name, value],
        None => vec![arg.as_str()],
    });
    while let Some(word) = words.next() {
        match word {
            "--include" | "-i" | "--exclude" | "-x" => match words.next().unwrap_or("").parse::<IdSet>() {
                Ok(ranks) if word.contains('i') && !word.contains('x') => set = set.include(&ranks),
                Ok(ranks) => set = set.exclude(&ranks),
                Err(_) => return same(&1, &case["rc"].as_i64().unwrap()),
            },
            "--properties" | "-p" => {
                let names: Vec<&str> = words.next().unwrap_or("").split(',').filter(|name| !name.is_empty()).collect();
                if names.iter().any(|name| {
                    name.trim_start_matches('^')
                        .contains(BAD_PROPERTY_CHARACTERS.chars().collect::<Vec<_>>().as_slice())
                }) {
                    return same(&1, &case["rc"].as_i64().unwrap());
                }
                set = set.with_properties(&names);
            }
            "--short" | "-s" => lines.push(set.to_short_string()),
            "--nodelist" | "-n" => match set.hosts() {
                Some(hosts) => lines.push(hosts.to_string()),
                None => return same(&1, &case["rc"].as_i64().unwrap()),
            },
            "--ranks" | "-r" => lines.push(set.ranks().to_string()),
            "--count" | "-c" => lines.push(match words.next().unwrap_or("") {
                "node" => set.len().to_string(),
                kind => set.count(kind).to_string(),
            }),
            other => return Outcome::Different(format!("unknown option {other}")),
        }
    }
    if lines.is_empty() {
        return compare(&Ok(set), case);
    }
    all([same(&0, &case["rc"].as_i64().unwrap()), same(&(lines.join("\n") + "\n").as_str(), &text(case, "stdout"))])
}
