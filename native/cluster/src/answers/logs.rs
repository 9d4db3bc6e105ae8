//! The index's answer to a question about logs.

use rootlight::engine::{FoundLog, LogFilter, MAX_LOG_BYTES};
use rootlight::types::json::{Location, RpcLog};
use rootlight_index::IndexReader;
use rootlight_limits::budget::Reservation;
use rootlight_node::light::index::{LogQuestion, LogReply};
use rootlight_node::light::{BlockPosition, ProvenChain};

use super::failure::NoAnswer;
use super::list::List;

/// The logs that a question asks for, as JSON, and their bytes, taken from the budget of upstream responses.
pub(super) async fn answer(
    reader: &IndexReader,
    chain: &ProvenChain,
    question: LogQuestion,
) -> Result<(LogReply, Reservation), NoAnswer> {
    let LogQuestion { from, to, addresses, topics, most } = question;
    let mut found = reader.logs(&LogFilter { addresses, topics }, from, to);
    let mut list = List::new(chain.limits().upstreams().clone());
    while let Some(logs) = found.next().await {
        for log in logs? {
            let at = log.found.block.number;
            if chain.position(&log.found.block) == BlockPosition::Elsewhere {
                // The index and the chain are on different branches for a moment.
                return Err(NoAnswer::OtherBranch(at));
            }
            add(&mut list, &log.found)?;
            if most.is_some_and(|most| list.count() > most) {
                return Ok((LogReply::TooMany { at }, Reservation::default()));
            }
            if list.bytes() > MAX_LOG_BYTES {
                return Ok((LogReply::TooLong { at }, Reservation::default()));
            }
        }
        list.reserve().await?;
    }
    let (count, logs, reserved) = list.finish().await?;
    Ok((LogReply::All { count, logs }, reserved))
}

/// Adds a log in the form of `eth_getLogs`.
fn add(list: &mut List, found: &FoundLog) -> Result<(), NoAnswer> {
    let block = found.block;
    let at = Location { block_hash: block.hash, block_number: block.number, index: found.transaction_index };
    list.add(&RpcLog::new(&found.log, found.transaction, &at, found.log_index).with_removed(false))
}
