//! What a check found, for people and for programs.

use std::fmt;

use serde::Serialize;

use super::{Subject, VerifyError};

/// One thing that was proven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is proven, for instance `transactions`.
    pub what: String,
    /// The proven value, or how many things it covers.
    pub value: String,
    /// The rule that proves it.
    pub rule: String,
}

/// Where a check failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What was being checked.
    pub what: String,
    /// Field, rule and values.
    pub reason: String,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `header`, `block`, `receipt` or `account`.
    pub subject: String,
    /// Network whose rules were applied.
    pub network: String,
    /// Whether everything that was to be checked holds.
    pub verified: bool,
    /// What is proven, in the order it was checked.
    pub proven: Vec<Finding>,
    /// What the input says or is used for that was not checked.
    #[serde(rename = "notProven")]
    pub not_proven: Vec<String>,
    /// Where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failure>,
}

impl Report {
    pub(super) fn new(subject: Subject, network: &str) -> Self {
        let subject = format!("{subject:?}").to_lowercase();
        Self {
            subject,
            network: network.into(),
            verified: true,
            proven: vec![],
            not_proven: vec![],
            failed: None,
        }
    }

    pub(super) fn proven(&mut self, what: &str, value: impl fmt::Display, rule: &str) {
        self.proven.push(Finding { what: what.into(), value: value.to_string(), rule: rule.into() });
    }

    pub(super) fn not_proven(&mut self, note: impl Into<String>) {
        self.not_proven.push(note.into());
    }

    pub(super) fn failed(mut self, error: VerifyError) -> Self {
        let (what, reason) = match error {
            VerifyError::Input(error) => ("input".to_owned(), error.to_string()),
            VerifyError::Rule { step, reason } => (step.to_owned(), reason),
        };
        self.verified = false;
        self.failed = Some(Failure { what, reason });
        self
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} on {}", self.subject, self.network)?;
        for Finding { what, value, rule } in &self.proven {
            writeln!(f, "  proven      {what}: {value}\n              by {rule}")?;
        }
        for note in &self.not_proven {
            writeln!(f, "  not proven  {note}")?;
        }
        match &self.failed {
            None => writeln!(f, "verified"),
            Some(Failure { what, reason }) => {
                // Reasons carry pieces of the input; a terminal must not act on them.
                let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                writeln!(f, "  FAILED      {what}: {reason}\nnot verified")
            }
        }
    }
}
