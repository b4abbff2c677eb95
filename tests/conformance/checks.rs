//! Relations between ours and the operator's value that a row names when two plain values do not say it.

use serde_json::Value;

use crate::compare::Difference;
use crate::rows::Facts;

/// Whether the named relation holds.
pub fn holds(check: &str, difference: &Difference, _facts: &Facts<'_>) -> bool {
    let (Some(ours), Some(operator)) = (&difference.ours, &difference.operator) else { return false };
    match check {
        "ours-in-shell" => matches!(ours, Value::Array(list)
            if list.len() == 3 && list[..2] == [Value::from("/bin/sh"), Value::from("-c")]
                && operator == &Value::Array(vec![list[2].clone()])),
        other => panic!("differences.toml: unknown check {other}"),
    }
}
