//! Counts answers that equal the recorded ones, and those that differ deliberately.

use std::collections::BTreeMap;

use serde_json::Value;

/// The outcome of comparing our answers with recorded ones.
#[derive(Debug, Default)]
pub struct RecordedTally {
    /// Equal results.
    pub equal: usize,
    /// Equal errors.
    pub errors: usize,
    /// Deliberate differences, by reason.
    intended: BTreeMap<String, usize>,
    /// All other differences, as text.
    different: Vec<String>,
}

impl RecordedTally {
    /// Compares our answer with the response of a recorded line. `intended` returns the reason why an answer
    /// differs deliberately; `None` if it should be equal.
    pub fn add<R: Into<String>>(
        &mut self,
        line: &Value,
        ours: &Result<Value, Value>,
        intended: impl FnOnce() -> Option<R>,
    ) {
        let response = &line["response"];
        match (ours, response.get("result"), response.get("error")) {
            (Ok(ours), Some(theirs), _) if ours == theirs => self.equal += 1,
            (Err(ours), _, Some(theirs)) if ours == theirs => self.errors += 1,
            _ => match intended() {
                Some(reason) => *self.intended.entry(reason.into()).or_default() += 1,
                None => self.different.push(short(line, ours)),
            },
        }
    }

    /// Fails if an answer differs without a reason, or if fewer results and errors than these are equal.
    pub fn check(&self, equal: usize, errors: usize) {
        let Self { intended, different, .. } = self;
        println!("equal {}, equal errors {}, intended {intended:#?}", self.equal, self.errors);
        assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
        assert!(self.equal >= equal && self.errors >= errors, "equal {}, errors {}", self.equal, self.errors);
    }
}

/// A recorded request with both answers, each cut to 300 characters.
fn short(line: &Value, ours: &Result<Value, Value>) -> String {
    let (label, request) = (&line["label"], &line["request"]);
    format!(
        "{label} {} {}\n  ours   {:.300}\n  theirs {:.300}",
        request["method"],
        request["params"],
        format!("{ours:?}"),
        line["response"].to_string()
    )
}
