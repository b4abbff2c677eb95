//! `FG6xx`.

super::codes! {}
