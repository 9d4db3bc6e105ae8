//! A proven fact in words.

use alloc::string::{String, ToString};
use core::fmt;

use serde::Serialize;

/// A proven fact in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The proven item, for instance `transactions`.
    pub what: String,
    /// The proven value, or how many things it covers.
    pub value: String,
    /// The rule that proves it.
    pub rule: &'static str,
}

pub(super) fn finding(what: &str, value: &dyn fmt::Display, rule: &'static str) -> Finding {
    Finding { what: what.into(), value: value.to_string(), rule }
}

/// Takes a name and a value.
pub(super) type Put<'a> = &'a mut dyn FnMut(&str, &dyn fmt::Display);
