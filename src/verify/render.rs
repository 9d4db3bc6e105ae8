//! Reports as text and as JSON.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::finding::Finding;
use super::report::{Check, Failure, Report, Rule};

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.subject.name())?;
        match &self.network {
            Some(network) => writeln!(f, " on {network}")?,
            None => writeln!(f)?,
        }
        for Finding { what, value, rule } in self.proven() {
            writeln!(f, "  proven      {what}: {value}\n              by {rule}")?;
        }
        for note in &self.not_proven {
            writeln!(f, "  not proven  {note}")?;
        }
        match &self.failed {
            None => writeln!(f, "verified"),
            Some(Failure { what, reason, .. }) => {
                // Reasons quote the document, so control characters must not reach the terminal.
                let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                writeln!(f, "  FAILED      {what}: {reason}\nnot verified")
            }
        }
    }
}

/// The JSON of a report.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    subject: &'static str,
    network: Option<&'a str>,
    verified: bool,
    checks: &'a [Check],
    facts: Values,
    proven: Vec<Finding>,
    not_proven: Vec<String>,
    #[cfg(feature = "verify-headers")]
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<&'a super::HeaderRules>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<&'a Failure>,
}

/// Values by name, in order.
struct Values(Vec<(String, String)>);

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let not_proven = self.not_proven.iter().map(ToString::to_string).collect();
        Json {
            subject: self.subject.name(),
            network: self.network.as_deref(),
            verified: self.verified(),
            checks: &self.checks,
            facts: Values(self.values()),
            proven: self.proven(),
            not_proven,
            #[cfg(feature = "verify-headers")]
            rules: self.header_rules.as_ref(),
            failed: self.failed.as_ref(),
        }
        .serialize(serializer)
    }
}
