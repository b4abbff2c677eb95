//! `FG4xx`.

super::codes! {}
