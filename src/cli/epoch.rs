//! The time that builds are told to take for now.

use super::error::CommandError;

/// Seconds since 1970 of the variable SOURCE_DATE_EPOCH (reproducible-builds.org), if it is set.
///
/// # Errors
/// When it is no number.
#[allow(clippy::disallowed_methods)] // cli/ is where the environment is read.
pub(crate) fn source_date_epoch() -> Result<Option<u64>, CommandError> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Err(_) => Ok(None),
        Ok(text) if text.is_empty() => Ok(None),
        Ok(text) => text.parse().map(Some).map_err(|_| {
            CommandError::operation(format!("SOURCE_DATE_EPOCH is `{text}`, which is no number of seconds"))
        }),
    }
}
