//! idset.json and hostlist.json.

use flux_gen::flux::{Hostlist, IdSet};
use serde_json::Value;

use crate::{Outcome, all, same, text, texts};

const TOO_LARGE: &str = "idset: an id above 2147483647 is refused, flux-core takes it modulo 2^32";
const ODD: &str = "hostlist: read by decode_as_flux as Flux does, refused by the strict reader (blank, comma, bracket, sign, open range, uneven padding or overlong number)";
const CLI: &str = "hostlist: an option of the command, not of the format";
const NEEDS_FLUX: &str = "hostlist: a single argument without brackets may be a job id, the command asks Flux";

pub(crate) fn idset(case: &Value, _: &Value) -> Outcome {
    match text(case, "kind") {
        "decode" => decoded(text(case, "input"), case),
        "encode" => {
            let ids = case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap());
            let small: Option<Vec<u32>> = ids.map(|id| u32::try_from(id).ok()).collect();
            let set = small.and_then(|ids| IdSet::from_ids(ids).ok());
            compare_set(set.as_ref(), case)
        }
        "op" => {
            let [a, b] = ["a", "b"].map(|key| text(case, key).parse::<IdSet>().unwrap());
            let result = match text(case, "op") {
                "union" | "add" => a.union(&b),
                "subtract" | "difference" => a.difference(&b),
                "intersect" => a.intersection(&b),
                other => return Outcome::Different(format!("unknown operation {other}")),
            };
            same(&result.to_string().as_str(), &text(case, "result"))
        }
        other => Outcome::Different(format!("unknown kind {other}")),
    }
}

fn decoded(input: &str, case: &Value) -> Outcome {
    let set = input.parse::<IdSet>().ok();
    let wraps = input
        .split(|c: char| !c.is_ascii_digit())
        .any(|n| n.parse::<u64>().is_ok_and(|n| n > u64::from(i32::MAX as u32)));
    if set.is_none() && case["ok"] == true && wraps {
        return Outcome::Rule(TOO_LARGE);
    }
    compare_set(set.as_ref(), case)
}

fn compare_set(set: Option<&IdSet>, case: &Value) -> Outcome {
    let Some(set) = set else {
        return same(&false, &case["ok"].as_bool().unwrap());
    };
    let number = |id: Option<u32>| id.map_or(Value::Null, Value::from);
    let present = |key: &str, ours: Value| {
        case.get(key).filter(|v| !v.is_null() || ours.is_null()).map(|theirs| same(&ours, theirs))
    };
    all([
        same(&true, &case["ok"].as_bool().unwrap()),
        same(&set.to_string().as_str(), &text(case, "encode")),
        same(&Value::from(set.len()), &case["count"]),
    ]
    .into_iter()
    .chain(present("first", number(set.first())))
    .chain(present("last", number(set.last())))
    .chain(present("encode_range_brackets", set.to_bracketed_string().into()))
    .chain(case.get("first").and(present("ids", set.iter().collect::<Vec<_>>().into()))))
}

pub(crate) fn hostlist(case: &Value, _: &Value) -> Outcome {
    match text(case, "kind") {
        "decode" => decode_hosts(case),
        "encode" => {
            let mut list = Hostlist::new();
            for part in texts(&case["hosts"]) {
                match Hostlist::decode_as_flux(&part) {
                    Ok(more) => list.append(&more),
                    Err(_) => return same(&false, &case["ok"].as_bool().unwrap()),
                }
            }
            all([
                same(&list.to_string().as_str(), &text(case, "encode")),
                same(&Value::from(list.len()), &case["count"]),
            ])
        }
        "cli" => command(case),
        other => Outcome::Different(format!("unknown kind {other}")),
    }
}

fn decode_hosts(case: &Value) -> Outcome {
    let input = text(case, "input");
    let lenient = Hostlist::decode_as_flux(input);
    let strict = Hostlist::parse(input);
    let Ok(list) = &lenient else {
        return all([same(&false, &case["ok"].as_bool().unwrap()), same(&true, &strict.is_err())]);
    };
    let hosts: Vec<String> = list.iter().collect();
    let (mut uniq, mut sort) = (list.clone(), list.clone());
    uniq.uniq();
    sort.sort();
    let tail = |n: usize| hosts[hosts.len().saturating_sub(n)..].to_vec();
    let outcome = all([
        same(&true, &case["ok"].as_bool().unwrap()),
        same(&Value::from(list.len()), &case["count"]),
        same(&list.to_string().as_str(), &text(case, "encode")),
        same(&uniq.to_string().as_str(), &text(case, "uniq")),
        same(&Value::from(uniq.len()), &case["uniq_count"]),
        same(&sort.to_string().as_str(), &text(case, "sort")),
        case.get("hosts").map_or(Outcome::Same, |theirs| same(&hosts, &texts(theirs))),
        case.get("hosts_first3")
            .map_or(Outcome::Same, |theirs| same(&hosts[..3.min(hosts.len())].to_vec(), &texts(theirs))),
        case.get("hosts_last3").map_or(Outcome::Same, |theirs| same(&tail(3), &texts(theirs))),
    ]);
    match (outcome, strict) {
        (Outcome::Same, Ok(strict)) => same(&strict, list),
        (Outcome::Same, Err(_)) if is_odd(input) => Outcome::Rule(ODD),
        (Outcome::Same, Err(error)) => Outcome::Different(format!("strict reader refuses it: {error}")),
        (other, _) => other,
    }
}

/// What the strict reader is documented to refuse although Flux reads it.
fn is_odd(input: &str) -> bool {
    let bad_comma = input.split(',').any(str::is_empty);
    let brackets = input.split(',').count() != 0 && {
        let mut depth = 0;
        let (mut groups, mut odd) = (0, false);
        for c in input.chars() {
            match c {
                '[' => (depth, groups) = (depth + 1, groups + 1),
                ']' => depth -= 1,
                ',' if depth == 0 => groups = 0,
                _ => {}
            }
            odd |= depth < 0 || groups > 1;
        }
        odd
    };
    let elements = input.split(['[', ']', ',']);
    let uneven = elements.clone().filter_map(|e| e.split_once('-')).any(|(lo, hi)| {
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        digits(lo)
            && (hi.is_empty() || digits(hi) && (hi.len() < lo.len() || hi.len() > lo.len() && hi.starts_with('0')))
    });
    let overlong = input.split(|c: char| !c.is_ascii_digit()).any(|n| !n.is_empty() && n.parse::<u64>().is_err());
    input.contains(|c: char| c.is_whitespace() || c.is_control())
        || input.contains('+')
        || bad_comma
        || brackets
        || uneven
        || overlong
}

/// `flux hostlist`: the options that are questions to the format.
fn command(case: &Value) -> Outcome {
    let args = texts(&case["args"]);
    let (mut lists, mut options) = (Vec::new(), Vec::new());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-c" | "-e" | "-S" | "-u" | "-q" => options.push((word.as_str(), "")),
            "-d" | "-n" | "-L" | "-x" | "-F" => options.push((word.as_str(), words.next().map_or("", |w| w))),
            word if word.starts_with('-') => return Outcome::OutOfScope(CLI),
            word => lists.push(word.to_owned()),
        }
    }
    let lists = if lists.is_empty() { text(case, "stdin").lines().map(str::to_owned).collect() } else { lists };
    if args.iter().filter(|a| !a.starts_with('-')).count() == 1
        && lists.len() == 1
        && text(case, "stderr").contains("connect to Flux")
    {
        return if lists[0].contains(['[', ',', ' ']) {
            same(&"reads it", &"asks Flux")
        } else {
            Outcome::OutOfScope(NEEDS_FLUX)
        };
    }
    match run(&lists, &options) {
        Ok(stdout) => all([same(&0, &case["rc"].as_i64().unwrap()), same(&stdout.as_str(), &text(case, "stdout"))]),
        Err(None) => Outcome::OutOfScope(CLI),
        Err(Some(_)) => same(&1, &case["rc"].as_i64().unwrap()),
    }
}

fn run(lists: &[String], options: &[(&str, &str)]) -> Result<String, Option<String>> {
    let mut hosts = Hostlist::new();
    for list in lists {
        hosts.append(&Hostlist::decode_as_flux(list).map_err(|e| Some(e.to_string()))?);
    }
    let option = |name: &str| options.iter().find(|(option, _)| *option == name).map(|(_, value)| *value);
    if option("-S").is_some() {
        hosts.sort();
    }
    if option("-u").is_some() {
        hosts.uniq();
    }
    if let Some(limit) = option("-L") {
        let limit: i64 = limit.parse().map_err(|_| None)?;
        let keep = usize::try_from(limit.unsigned_abs()).unwrap().min(hosts.len());
        let all: Vec<String> = hosts.iter().collect();
        hosts =
            Hostlist::from_hosts(if limit < 0 { &all[all.len() - keep..] } else { &all[..keep] }).map_err(|_| None)?;
    }
    if let Some(cut) = option("-x") {
        let gone = match cut.parse::<IdSet>() {
            Ok(ids) => Hostlist::from_hosts(ids.iter().filter_map(|id| hosts.nth(id as usize))).map_err(|_| None)?,
            Err(_) => Hostlist::decode_as_flux(cut).map_err(|e| Some(e.to_string()))?,
        };
        hosts.delete(&gone);
    }
    if let Some(index) = option("-n") {
        let ids: IdSet = index.parse().map_err(|_| None)?;
        let picked: Option<Vec<String>> = ids.iter().map(|id| hosts.nth(id as usize)).collect();
        hosts = Hostlist::from_hosts(picked.ok_or(Some("out of range".to_owned()))?).map_err(|_| None)?;
    }
    if option("-q").is_some() {
        return Ok(String::new());
    }
    if let Some(wanted) = option("-F") {
        let at = hosts.find(wanted).ok_or(Some("not found".to_owned()))?;
        return Ok(format!("{at}\n"));
    }
    if option("-c").is_some() {
        return Ok(format!("{}\n", hosts.len()));
    }
    if hosts.is_empty() {
        return Ok(String::new());
    }
    if option("-e").is_some() {
        let separator = option("-d").unwrap_or(" ").replace("\\n", "\n");
        return Ok(hosts.iter().collect::<Vec<_>>().join(&separator) + "\n");
    }
    Ok(format!("{hosts}\n"))
}
