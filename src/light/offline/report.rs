//! What a check has shown, in the order in which it was shown.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use serde::{ser::SerializeMap, Serialize, Serializer};
use thiserror::Error;

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Rule {
    /// The document is there in full and parses.
    Document,
    /// A receipt's bytes are the ones that the receipts root commits to.
    ReceiptInclusion,
    /// A receipt's bloom is the one of its logs (a consequence of consensus, so it also checks the parser).
    ReceiptBloom,
    /// Trie nodes link from the state root to every key asked for, present or absent, and none is left over.
    StateProof,
    /// Balance, nonce, code hash and storage values are the ones that the proven nodes hold.
    StateValues,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Document => "document",
            Self::ReceiptInclusion => "receipt inclusion",
            Self::ReceiptBloom => "receipt bloom",
            Self::StateProof => "state proof",
            Self::StateValues => "state values",
        })
    }
}

/// One check that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Which.
    pub rule: Rule,
    /// What it has shown, in words.
    pub shown: String,
}

/// Proven values by name, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts(Vec<(String, String)>);

impl Facts {
    /// Adds a value.
    pub(super) fn put(&mut self, name: impl Into<String>, value: impl ToString) {
        self.0.push((name.into(), value.to_string()));
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Everything a document has shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The checks, all passed.
    pub checks: Vec<Check>,
    /// The values they prove.
    pub facts: Facts,
}

/// A rule is broken; nothing is proven beyond the checks before it.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("{rule}: {reason}")]
pub struct Failure {
    /// The rule.
    pub rule: Rule,
    /// What is wrong, in words.
    pub reason: String,
    /// The checks that passed before.
    pub passed: Vec<Check>,
}

impl Report {
    /// Notes the outcome of one check.
    pub(super) fn check<T>(
        &mut self,
        rule: Rule,
        outcome: Result<T, impl fmt::Display>,
        shown: impl FnOnce(&T) -> String,
    ) -> Result<T, Failure> {
        match outcome {
            Ok(value) => {
                self.checks.push(Check { rule, shown: shown(&value) });
                Ok(value)
            }
            Err(reason) => {
                Err(Failure { rule, reason: reason.to_string(), passed: core::mem::take(&mut self.checks) })
            }
        }
    }
}
