//! A proven fact in words, as reports show it.

use alloc::string::{String, ToString};
use core::fmt;

use serde::Serialize;

/// A proven fact in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The proven item, for instance `transactions`.
    pub what: String,
    /// The proven value, or the number of proven items.
    pub value: String,
    /// The rule that proves the item, in words.
    pub rule: &'static str,
}

/// A finding with this name, value and rule.
pub(super) fn finding(what: &str, value: &dyn fmt::Display, rule: &'static str) -> Finding {
    Finding { what: what.into(), value: value.to_string(), rule }
}

/// The function to which a fact passes the name and the value of each of its parts.
pub(super) type Put<'a> = &'a mut dyn FnMut(&str, &dyn fmt::Display);
