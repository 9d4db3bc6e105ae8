//! A JSON array of an answer, which takes its bytes from a budget.

use std::sync::Arc;

use rootlight_limits::budget::{Budget, Reservation};
use serde::Serialize;
use serde_json::value::RawValue;

use super::failure::NoAnswer;

/// A JSON array that grows member by member.
#[derive(Debug)]
pub(super) struct List {
    budget: Arc<Budget>,
    /// The array without the closing bracket; empty as long as there is no member.
    text: String,
    count: usize,
    reserved: Reservation,
}

impl List {
    /// An empty array that takes its bytes from this budget.
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, text: String::new(), count: 0, reserved: Reservation::default() }
    }

    /// Adds a member. Its bytes are not taken from the budget yet, see [`Self::reserve`].
    pub(super) fn add(&mut self, member: &impl Serialize) -> Result<(), NoAnswer> {
        self.text.push(if self.count == 0 { '[' } else { ',' });
        self.text.push_str(&serde_json::to_string(member)?);
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// Number of members.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the text.
    pub(super) const fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Takes those bytes of the text from the budget that were not taken yet.
    pub(super) async fn reserve(&mut self) -> Result<(), NoAnswer> {
        let missing = self.text.len().saturating_sub(self.reserved.bytes());
        if missing > 0 {
            self.reserved.merge(self.budget.take_soon(missing).await.ok_or(NoAnswer::BudgetUsedUp)?);
        }
        Ok(())
    }

    /// The number of members, the array, and the bytes that it takes from the budget.
    pub(super) async fn finish(mut self) -> Result<(usize, Box<RawValue>, Reservation), NoAnswer> {
        self.text.push_str(if self.count == 0 { "[]" } else { "]" });
        self.reserve().await?;
        Ok((self.count, RawValue::from_string(self.text)?, self.reserved))
    }
}
