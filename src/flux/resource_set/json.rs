//! The JSON text of a resource set.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{MAX_RANKS, ResourceError, ResourceSet};
use crate::flux::hostlist::Hostlist;
use crate::flux::idset::IdSet;

/// The spacing of flux-core's JSON library: a blank after each colon and comma.
struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

impl ResourceSet {
    /// The set as a JSON value. Keys are in the order of RFC 20's examples, children with `core` first, then
    /// by name.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut execution = Map::new();
        let entries = self.folded().into_iter().filter(|(_, children)| !children.is_empty());
        let lite: Vec<Value> = entries
            .map(|(ranks, children)| json!({ "rank": ranks.to_string(), "children": children_value(children) }))
            .collect();
        execution.insert("R_lite".to_owned(), Value::Array(lite));
        if let Some(nslots) = self.nslots {
            execution.insert("nslots".to_owned(), nslots.into());
        }
        execution.insert("starttime".to_owned(), self.starttime.into());
        execution.insert("expiration".to_owned(), self.expiration.into());
        if let Some(hosts) = self.hosts() {
            execution.insert("nodelist".to_owned(), json!([hosts.to_string()]));
        }
        if !self.properties.is_empty() {
            let properties = self.properties.iter().map(|(name, ranks)| (name.clone(), ranks.to_string().into()));
            execution.insert("properties".to_owned(), Value::Object(properties.collect()));
        }
        let mut all = Map::new();
        all.insert("version".to_owned(), 1.into());
        all.insert("execution".to_owned(), Value::Object(execution));
        if let Some(scheduling) = &self.scheduling {
            all.insert("scheduling".to_owned(), scheduling.clone());
        }
        Value::Object(all)
    }

    /// The set as one line of JSON without a line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut bytes = Vec::with_capacity(256);
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
        // Writing a value with text keys into memory cannot fail.
        let _ = self.to_value().serialize(&mut serializer);
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// Reads one resource set as the resource module does; nothing but blanks may follow it.
    ///
    /// # Errors
    /// What makes flux-core refuse the file. A rank without resources is not refused here but when the
    /// set is used; see [`ResourceSet::first_rank_without_resources`].
    pub fn parse(text: &str) -> Result<Self, ResourceError> {
        let value = serde_json::from_str(text).map_err(|error| ResourceError::Json(error.to_string()))?;
        Self::from_value(&value)
    }

    /// Reads all resource sets of a text one after the other, as `flux R` does from its input.
    ///
    /// # Errors
    /// As [`ResourceSet::parse`]; also when there is none.
    pub fn parse_many(text: &str) -> Result<Vec<Self>, ResourceError> {
        let mut sets = Vec::new();
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        loop {
            match values.next() {
                Some(Ok(value)) => sets.push(Self::from_value(&value)?),
                Some(Err(error)) if sets.is_empty() => return Err(ResourceError::Json(error.to_string())),
                // What follows the last readable set is ignored by the command.
                None | Some(Err(_)) => break,
            }
        }
        if sets.is_empty() {
            return Err(ResourceError::Json("no resource set".to_owned()));
        }
        Ok(sets)
    }

    /// Reads a resource set from JSON.
    ///
    /// # Errors
    /// As [`ResourceSet::parse`].
    pub fn from_value(value: &Value) -> Result<Self, ResourceError> {
        let all = object(value, "R")?;
        let version = integer(all, "version")?.ok_or_else(|| missing("version", "an integer"))?;
        let execution = object(all.get("execution").unwrap_or(&Value::Null), "execution")?;
        if version != 1 {
            return Err(ResourceError::Version(version));
        }
        let mut set = Self {
            nslots: integer(execution, "nslots")?.filter(|&n| n > 0),
            starttime: number(execution, "starttime")?,
            expiration: number(execution, "expiration")?,
            scheduling: all.get("scheduling").cloned(),
            ..Self::default()
        };
        let lite = execution.get("R_lite").unwrap_or(&Value::Null);
        let entries = lite.as_array().ok_or_else(|| wrong("execution.R_lite", "an array", lite))?;
        for (index, entry) in entries.iter().enumerate() {
            set.add_entry(entry, &format!("execution.R_lite[{index}]"))?;
        }
        if let Some(nodelist) = execution.get("nodelist") {
            set.assign_hosts(nodelist)?;
        }
        if let Some(properties) = execution.get("properties") {
            for (name, ranks) in object(properties, "execution.properties")? {
                set.set_property(name, &idset(ranks, "execution.properties", name)?)?;
            }
        }
        Ok(set)
    }

    fn add_entry(&mut self, entry: &Value, key: &str) -> Result<(), ResourceError> {
        let entry = object(entry, key)?;
        let ranks = idset(entry.get("rank").unwrap_or(&Value::Null), key, "rank")?;
        let mut children = BTreeMap::new();
        // flux-core takes children of another type for none at all.
        let given = entry.get("children").ok_or_else(|| missing(&format!("{key}.children"), "an object"))?;
        for (kind, ids) in given.as_object().into_iter().flatten() {
            children.insert(kind.clone(), idset(ids, &format!("{key}.children"), kind)?);
        }
        if ranks.len() > MAX_RANKS {
            return Err(ResourceError::TooManyRanks);
        }
        for rank in ranks.iter() {
            self.add(rank, None, &children)?;
        }
        Ok(())
    }

    /// Gives the hosts of the node list to the ranks in ascending order.
    fn assign_hosts(&mut self, nodelist: &Value) -> Result<(), ResourceError> {
        let mut hosts = Hostlist::new();
        for item in nodelist.as_array().into_iter().flatten() {
            let text = item.as_str().unwrap_or("");
            hosts.append(&Hostlist::decode_as_flux(text).map_err(|_| ResourceError::Hostlist(text.to_owned()))?);
        }
        if hosts.len() != self.nodes.len() {
            return Err(ResourceError::HostCount { hosts: hosts.len(), ranks: self.nodes.len() });
        }
        for (node, host) in self.nodes.values_mut().zip(hosts.iter()) {
            node.host = Some(host);
        }
        Ok(())
    }
}

fn children_value(children: &BTreeMap<String, IdSet>) -> Value {
    let core = children.get_key_value("core");
    let others = children.iter().filter(|(kind, _)| *kind != "core");
    Value::Object(core.into_iter().chain(others).map(|(kind, ids)| (kind.clone(), ids.to_string().into())).collect())
}

fn missing(key: &str, expected: &'static str) -> ResourceError {
    ResourceError::Type { key: key.to_owned(), expected, found: "nothing".to_owned() }
}

fn wrong(key: &str, expected: &'static str, found: &Value) -> ResourceError {
    let found = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(n) if n.is_f64() => "a real number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    ResourceError::Type { key: key.to_owned(), expected, found: found.to_owned() }
}

fn object<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>, ResourceError> {
    value.as_object().ok_or_else(|| wrong(key, "an object", value))
}

fn integer(map: &Map<String, Value>, key: &str) -> Result<Option<i64>, ResourceError> {
    map.get(key).map(|value| value.as_i64().ok_or_else(|| wrong(key, "an integer", value))).transpose()
}

/// Seconds; absent and negative mean unset.
fn number(map: &Map<String, Value>, key: &str) -> Result<f64, ResourceError> {
    let value = map.get(key).map(|value| value.as_f64().ok_or_else(|| wrong(key, "a number", value))).transpose()?;
    Ok(value.filter(|&seconds| seconds > 0.0).unwrap_or(0.0))
}

fn idset(value: &Value, parent: &str, name: &str) -> Result<IdSet, ResourceError> {
    let key = format!("{parent}.{name}");
    let text = value.as_str().ok_or_else(|| wrong(&key, "an idset string", value))?;
    text.parse().map_err(|error| ResourceError::IdSet { key, error })
}
