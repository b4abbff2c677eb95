//! `FG3xx`.

super::codes! {}
