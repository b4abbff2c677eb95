//! `FG5xx`.

super::codes! {}
