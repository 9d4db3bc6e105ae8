//! A JSON array of an answer, which takes its bytes from a budget.

use std::sync::Arc;

use rootlight_limits::budget::{Budget, Reservation};
use serde::Serialize;
use serde_json::value::RawValue;

use super::failure::NoAnswer;

/// A JSON array.
#[derive(Debug)]
pub(super) struct List {
    budget: Arc<Budget>,
    text: String,
    count: usize,
    reserved: Reservation,
}

impl List {
    /// An empty array that takes its bytes from this budget.
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, text: String::new(), count: 0, reserved: Reservation::default() }
    }

    pub(super) fn add(&mut self, member: &impl Serialize) -> Result<(), NoAnswer> {
        self.text.push(if self.count == 0 { '[' } else { ',' });
        self.text.push_str(&serde_json::to_string(member)?);
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) const fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Takes the bytes of the text from the budget.
    pub(super) async fn hold(&mut self) -> Result<(), NoAnswer> {
        let missing = self.text.len().saturating_sub(self.reserved.bytes());
        if missing > 0 {
            self.reserved.merge(self.budget.take_soon(missing).await.ok_or(NoAnswer::NoRoom)?);
        }
        Ok(())
    }

    /// The number of members, the array, and the bytes that it takes from the budget.
    pub(super) async fn finish(mut self) -> Result<(usize, Box<RawValue>, Reservation), NoAnswer> {
        self.text.push_str(if self.count == 0 { "[]" } else { "]" });
        self.hold().await?;
        Ok((self.count, RawValue::from_string(self.text)?, self.reserved))
    }
}
