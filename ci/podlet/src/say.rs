//! What podlet tells the reader of a test's log, with the time of day (UTC).

use std::fmt::Arguments;

/// Prints one line to standard error.
pub fn line(text: Arguments<'_>) {
    eprintln!("podlet: {} {text}", jiff::Timestamp::now().strftime("%H:%M:%S%.2f"));
}

/// As `eprintln!`, with a time.
macro_rules! say {
    ($($argument:tt)*) => { $crate::say::line(format_args!($($argument)*)) };
}
pub(crate) use say;
