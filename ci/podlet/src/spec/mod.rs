//! The pod fields that podlet implements, as typed structs, and nothing else.
//!
//! The structs *are* the closed list: [`decode`] reports every field of a pod that no struct
//! has, so that a test never passes because podlet quietly skipped something. Fields that have no
//! effect on a single test node are listed too, with the type [`Accepted`].

mod container;
pub mod expand;
mod pod;
mod quantity;
mod volume;

pub use container::*;
pub use pod::*;
pub use quantity::*;
pub use volume::*;

use serde_json::Value;

/// A field that podlet knows and on purpose does nothing with. (Not `IgnoredAny`: serde_ignored reports that.)
pub type Accepted = Option<Value>;

/// Why a pod cannot be run here.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DecodeError {
    /// Fields (or values) outside the closed list; each entry is a path below the pod.
    #[error("podlet does not implement: {}", .0.join(", "))]
    Unsupported(Vec<String>),
    /// A value of the wrong type.
    #[error("cannot decode the pod: {0}")]
    Invalid(String),
}

/// Reads the pod's spec, refusing every field that podlet does not implement.
///
/// # Errors
/// [`DecodeError::Unsupported`] lists all such fields at once.
pub fn decode(pod: &Value) -> Result<PodSpec, DecodeError> {
    let mut unknown = Vec::new();
    let spec = pod.get("spec").cloned().unwrap_or(Value::Null);
    let decoded: PodSpec = serde_ignored::deserialize(spec, |path| {
        unknown.push(format!("spec.{}", dotted(&path.to_string())));
    })
    .map_err(|e| DecodeError::Invalid(e.to_string()))?;
    unknown.extend(decoded.unsupported_values());
    if unknown.is_empty() { Ok(decoded) } else { Err(DecodeError::Unsupported(unknown)) }
}

/// `containers.0.?.ports` as `containers[0].ports`: serde_ignored writes `?` for an `Option`.
fn dotted(path: &str) -> String {
    let mut out = String::new();
    for part in path.split('.').filter(|p| *p != "?") {
        if part.bytes().all(|b| b.is_ascii_digit()) {
            out.push_str(&format!("[{part}]"));
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(part);
        }
    }
    out
}

#[cfg(test)]
mod tests;
