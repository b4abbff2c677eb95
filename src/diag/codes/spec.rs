//! `FG2xx`.

super::codes! {}
