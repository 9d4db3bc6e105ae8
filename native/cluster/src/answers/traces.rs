//! The index's answers to questions about traces.

use rootlight_index::{
    FoundTraces, IndexReader, IndexedTrace, MAX_BLOCK_TRACE_BYTES, TraceFilter, TraceRange, TracedBlock,
};
use rootlight_limits::budget::Reservation;
use rootlight_node::light::index::{AskedBlock, TraceQuestion, TraceReply};
use rootlight_node::light::{BlockPosition, ProvenChain};
use serde_json::value::RawValue;

use super::failure::NoAnswer;
use super::list::List;
use crate::trace_json::TraceObject;

/// Number of traces after which their bytes are taken from the budget.
const RESERVE_EVERY: usize = 256;

/// The traces that a question asks for, as JSON, and their bytes, taken from the budget of upstream responses.
pub(super) async fn answer(
    reader: &IndexReader,
    chain: &ProvenChain,
    question: TraceQuestion,
) -> Result<(TraceReply, Reservation), NoAnswer> {
    let TraceQuestion { from, to, must_reach: least, senders, recipients, after, count } = question;
    let range = TraceRange { from, to, must_reach: least, after, count, bytes: MAX_BLOCK_TRACE_BYTES };
    let (traces, skipped, last) = match reader.traces(&TraceFilter { senders, recipients }, &range).await? {
        FoundTraces::All { traces, skipped, last } => (traces, skipped, last),
        FoundTraces::TooLong => return Ok((TraceReply::TooLong, Reservation::default())),
    };
    let elsewhere = traces.iter().find(|trace| chain.position(&trace.block) == BlockPosition::Elsewhere);
    if let Some(trace) = elsewhere {
        // The index and the chain are on different branches for a moment.
        return Err(NoAnswer::OtherBranch(trace.block.number));
    }
    let (count, traces, reserved) = to_json(chain, traces).await?;
    Ok((TraceReply::Found { count, skipped, last, traces }, reserved))
}

/// The traces of a block or transaction below the proven chain; `None` if the index does not have them.
pub(super) async fn of_block(
    reader: &IndexReader,
    chain: &ProvenChain,
    block: AskedBlock,
) -> Result<Option<(Box<RawValue>, Reservation)>, NoAnswer> {
    let which = match block {
        AskedBlock::Number(number) => TracedBlock::Number(number),
        AskedBlock::Hash(hash) => TracedBlock::Hash(hash),
        AskedBlock::Transaction(hash) => TracedBlock::Transaction(hash),
    };
    let found =
        reader.traces_of(which).await?.filter(|(block, _)| chain.position(block) == BlockPosition::Below);
    let Some((_, traces)) = found else { return Ok(None) };
    let (_, traces, reserved) = to_json(chain, traces).await?;
    Ok(Some((traces, reserved)))
}

/// The number of traces, their JSON array, and the reservation of its bytes.
async fn to_json(
    chain: &ProvenChain,
    traces: Vec<IndexedTrace>,
) -> Result<(usize, Box<RawValue>, Reservation), NoAnswer> {
    let mut list = List::new(chain.limits().upstreams().clone());
    for trace in traces {
        list.add(&TraceObject::of(trace))?;
        if list.count().is_multiple_of(RESERVE_EVERY) {
            list.reserve().await?;
        }
    }
    list.finish().await
}
