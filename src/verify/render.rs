//! Reports as text (`rootlight verify`) and as JSON (the same with `--json`, and the package's `verify.js`).

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use serde::{Serialize, Serializer};

use super::finding::Finding;
use super::report::{Check, CheckFailure, Report, Rule};

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
            Some(CheckFailure { what, reason, .. }) => {
                // Reasons quote the document, so control characters must not reach the terminal.
                let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                writeln!(f, "  FAILED      {what}: {reason}\nnot verified")
            }
        }
    }
}

/// A value of a report in JSON. One type serves all members: separate types with derived serializers would take three times as much code
/// in the browser module.
enum Json<'a> {
    Null,
    Bool(bool),
    Text(&'a str),
    Owned(String),
    List(Vec<Json<'a>>),
    Object(Vec<(&'a str, Json<'a>)>),
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Owned(text) => serializer.serialize_str(text),
            Self::List(members) => serializer.collect_seq(members),
            Self::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (*name, value)))
            }
        }
    }
}

impl<'a> Json<'a> {
    fn list<T>(of: &'a [T], member: impl Fn(&'a T) -> Self) -> Self {
        Self::List(of.iter().map(member).collect())
    }

    fn check(Check { rule, shown }: &'a Check) -> Self {
        Self::Object(vec![("rule", Self::Text(rule.name())), ("shown", Self::Text(shown))])
    }

    fn finding(Finding { what, value, rule }: &'a Finding) -> Self {
        let members = [("what", what.as_str()), ("value", value), ("rule", rule)];
        Self::Object(members.map(|(name, text)| (name, Self::Text(text))).into())
    }

    fn failure(CheckFailure { rule, what, reason }: &'a CheckFailure) -> Self {
        let members = [("rule", rule.name()), ("what", what), ("reason", reason)];
        Self::Object(members.map(|(name, text)| (name, Self::Text(text))).into())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (values, proven) = (self.values(), self.proven());
        let facts = values.iter().map(|(name, value)| (name.as_str(), Json::Text(value))).collect();
        let mut members = vec![
            ("subject", Json::Text(self.subject.name())),
            ("network", self.network.as_deref().map_or(Json::Null, Json::Text)),
            ("verified", Json::Bool(self.verified())),
            ("checks", Json::list(&self.checks, Json::check)),
            ("facts", Json::Object(facts)),
            ("proven", Json::list(&proven, Json::finding)),
            ("notProven", Json::list(&self.not_proven, |note| Json::Owned(note.to_string()))),
        ];
        if let Some(rules) = &self.header_rules {
            let names = |of| Json::list(of, |name: &&'static str| Json::Text(name));
            let lists = vec![("checked", names(&rules.checked)), ("needParent", names(&rules.need_parent))];
            members.push(("rules", Json::Object(lists)));
        }
        if let Some(failure) = &self.failed {
            members.push(("failed", Json::failure(failure)));
        }
        Json::Object(members).serialize(serializer)
    }
}
