//! The index's answer to a question about logs.

use rootlight::engine::{FoundLog, LogFilter, MAX_LOG_BYTES};
use rootlight::light::{LogQuestion, LogReply};
use rootlight::types::json::{Location, RpcLog};
use rootlight_index::Reader;
use serde_json::value::{RawValue, to_raw_value};

use super::failure::NoAnswer;
use crate::budget::{self, Held};
use crate::light::{Place, ProvenChain};

/// The logs that a question asks for, and the budget's bytes that they take.
///
/// # Errors
/// [`NoAnswer`].
pub(super) async fn answer(
    reader: &Reader,
    chain: &ProvenChain,
    question: LogQuestion,
) -> Result<(Box<RawValue>, Held), NoAnswer> {
    let LogQuestion { from, to, addresses, topics, most } = question;
    let mut found = reader.logs(&LogFilter { addresses, topics }, from, to);
    let mut list = List { text: "[".into(), count: 0, held: Held::default() };
    while let Some(logs) = found.next().await {
        for log in logs? {
            let at = log.found.block.number;
            if chain.place(&log.found.block) == Place::Elsewhere {
                return Err(NoAnswer::OtherBranch(at));
            }
            list.add(&log.found)?;
            if most.is_some_and(|most| list.count > most) {
                return Ok((to_raw_value(&LogReply::TooMany { at })?, Held::default()));
            }
            if list.text.len() > MAX_LOG_BYTES {
                return Ok((to_raw_value(&LogReply::TooLong { at })?, Held::default()));
            }
        }
        list.hold().await?;
    }
    list.finish().await
}

/// A JSON array of logs.
struct List {
    text: String,
    count: usize,
    held: Held,
}

impl List {
    fn add(&mut self, found: &FoundLog) -> Result<(), NoAnswer> {
        let block = found.block;
        let at =
            Location { block_hash: block.hash, block_number: block.number, index: found.transaction_index };
        let log = RpcLog::new(&found.log, found.transaction, &at, found.log_index).with_removed(false);
        if self.count > 0 {
            self.text.push(',');
        }
        self.text.push_str(&serde_json::to_string(&log)?);
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// Takes the bytes of the text from the budget.
    async fn hold(&mut self) -> Result<(), NoAnswer> {
        let missing = self.text.len().saturating_sub(self.held.bytes());
        if missing > 0 {
            self.held.merge(budget::upstreams().take_soon(missing).await.ok_or(NoAnswer::NoRoom)?);
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<(Box<RawValue>, Held), NoAnswer> {
        self.text.push(']');
        self.hold().await?;
        let logs = RawValue::from_string(std::mem::take(&mut self.text))?;
        Ok((to_raw_value(&LogReply::All { count: self.count, logs })?, self.held))
    }
}
