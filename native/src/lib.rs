//! Rootlight native host.
