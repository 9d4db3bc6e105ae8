//! `trace_filter`: the traces of a range of blocks.

use alloc::{string::String, vec, vec::Vec};

use alloy_primitives::Address;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{shape, too_large, traced_block, traces};
use crate::{
    engine::{BlockHeader, Refusal, Stop, View},
    exec::trace::{MAX_TRACE_BYTES, Tracer, TransactionTrace},
    rpc::{
        error::ParamError,
        lookup::find,
        method::{Failure, HandlerResult, verified},
        params::{BlockParam, Params, block_param, parse_address},
    },
    state::Facts,
    types::BlockRef,
};

/// Most traces of one answer and the largest `after`, as `rpc.trace.maxTracesPerRequest` of the reference node (rskj 9.1).
const MAX_TRACES: usize = 10_000;

/// The limits of a profile of the server: [`NODE`] or [`HOSTED`].
struct FilterRules {
    /// The first block of a filter without `fromBlock`.
    default_from: BlockParam,
    /// The largest `count`, which is also the default.
    max_count: usize,
    /// Largest number of blocks in the range. `Policy::max_traced_blocks` of the view limits it further.
    max_blocks: u64,
}

impl FilterRules {
    /// Refuses a range that is empty or has too many blocks.
    fn check(&self, from: u64, to: u64) -> Result<(), ParamError> {
        if from > to {
            return Err(ParamError::BlockRange);
        }
        if to.saturating_sub(from) >= self.max_blocks {
            return Err(ParamError::TraceRange(self.max_blocks));
        }
        Ok(())
    }
}

/// The profile `node`: the limits of the reference node.
const NODE: FilterRules =
    FilterRules { default_from: BlockParam::Earliest, max_count: MAX_TRACES, max_blocks: u64::MAX };

/// The profile `hosted`: the limits of a public service, which docs/server.md lists.
const HOSTED: FilterRules =
    FilterRules { default_from: BlockParam::Latest, max_count: 100, max_blocks: 2_000 };

/// A trace filter as a caller writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FilterObject<'a> {
    #[serde(default, borrow)]
    from_block: Option<&'a RawValue>,
    #[serde(default, borrow)]
    to_block: Option<&'a RawValue>,
    #[serde(default)]
    from_address: Option<Addresses>,
    #[serde(default)]
    to_address: Option<Addresses>,
    #[serde(default, borrow)]
    after: Option<&'a RawValue>,
    #[serde(default, borrow)]
    count: Option<&'a RawValue>,
}

/// One address or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Addresses {
    One(String),
    Many(Vec<String>),
}

impl Addresses {
    /// Parses a list of addresses. An empty list, as a missing one, matches any address.
    fn parse(given: Option<&Self>) -> Result<Vec<Address>, ParamError> {
        match given {
            None => Ok(Vec::new()),
            Some(Self::One(one)) => Ok(vec![parse_address(one)?]),
            Some(Self::Many(many)) => many.iter().map(|text| parse_address(text)).collect(),
        }
    }
}

/// A trace filter.
#[derive(Debug)]
pub struct TraceFilter {
    /// The first block.
    pub from: BlockParam,
    /// The last block.
    pub to: BlockParam,
    /// The selected senders of transactions; an empty list selects all.
    pub senders: Vec<Address>,
    /// The selected receivers of transactions; an empty list selects all.
    pub receivers: Vec<Address>,
    /// How many traces are left out at the start.
    pub after: usize,
    /// Most traces.
    pub count: usize,
}

impl TraceFilter {
    /// The first and the last block of the filter; empty if the filter cannot be read.
    pub fn ends(params: Params<'_>) -> Vec<BlockParam> {
        Self::read(params, &NODE).map_or_else(|_| Vec::new(), |filter| vec![filter.from, filter.to])
    }

    /// Reads the filter in the first parameter by the rules of a profile: `hosted`, or else `node`. `height_of` returns the block
    /// number of each end of the range. Returns the filter with both numbers; `None` if `height_of` returns none for one of them.
    ///
    /// # Errors
    /// The filter is not valid, or the profile does not allow its range of blocks.
    pub fn of_params(
        params: Params<'_>,
        hosted: bool,
        height_of: impl Fn(&BlockParam) -> Option<u64>,
    ) -> Result<Option<(Self, u64, u64)>, ParamError> {
        let rules = if hosted { &HOSTED } else { &NODE };
        let filter = Self::read(params, rules)?;
        let (Some(from), Some(to)) = (height_of(&filter.from), height_of(&filter.to)) else {
            return Ok(None);
        };
        rules.check(from, to)?;
        Ok(Some((filter, from, to)))
    }

    /// Reads the filter in the first parameter, with the defaults and limits of a profile.
    fn read(params: Params<'_>, rules: &FilterRules) -> Result<Self, ParamError> {
        let given: Option<FilterObject<'_>> =
            params.object(0, "a trace filter").map_err(|_| ParamError::TraceFilter)?;
        let given = given.ok_or(ParamError::TraceFilter)?;
        let count = number_up_to(
            given.count,
            rules.max_count,
            ParamError::TraceCountNegative,
            ParamError::TraceCount,
        )?;
        let after =
            number_up_to(given.after, MAX_TRACES, ParamError::TraceAfterNegative, ParamError::TraceAfter)?;
        let param = |raw: Option<&RawValue>, default| match raw {
            None => Ok(default),
            // `false`: a number has `0x`, decimal ones are refused.
            Some(raw) => traced_block(block_param(raw, false)),
        };
        Ok(Self {
            from: param(given.from_block, rules.default_from.clone())?,
            to: param(given.to_block, BlockParam::Latest)?,
            senders: Addresses::parse(given.from_address.as_ref())?,
            receivers: Addresses::parse(given.to_address.as_ref())?,
            after: after.unwrap_or(0),
            count: count.unwrap_or(rules.max_count),
        })
    }

    /// The receivers that the filter in the first parameter selects; `None` if it selects all, or cannot be read.
    pub fn receivers(params: Params<'_>) -> Option<Vec<Address>> {
        let filter = Self::read(params, &NODE).ok()?;
        Some(filter.receivers).filter(|receivers| !receivers.is_empty())
    }

    /// Whether the filter selects a transaction. Sender and receiver are compared with the transaction's only; a
    /// selected transaction contributes all its traces.
    fn selects(&self, trace: &TransactionTrace) -> bool {
        let listed = |list: &[Address], address: Option<Address>| {
            list.is_empty() || address.is_some_and(|address| list.contains(&address))
        };
        let receiver =
            trace.calls.as_ref().and_then(|calls| calls.nodes.first()).and_then(|node| node.frame()?.to);
        // The transaction that calls REMASC has no sender, so that no address matches.
        let sender = Some(trace.sender).filter(|sender| !sender.is_zero());
        listed(&self.senders, sender) && listed(&self.receivers, receiver)
    }
}

/// Reads `after` or `count`: a JSON number, or a decimal number in a string, from 0 to `max`.
fn number_up_to(
    given: Option<&RawValue>,
    max: usize,
    negative: ParamError,
    too_big: fn(usize) -> ParamError,
) -> Result<Option<usize>, ParamError> {
    let Some(given) = given else { return Ok(None) };
    let given: i64 = given.get().trim_matches('"').parse().map_err(|_| ParamError::TraceFilter)?;
    if given < 0 {
        return Err(negative);
    }
    match usize::try_from(given) {
        Ok(number) if number <= max => Ok(Some(number)),
        _ => Err(too_big(max)),
    }
}

/// `trace_filter` of the profile `node`.
pub(super) fn filter(view: &dyn View, params: Params<'_>) -> HandlerResult {
    filter_by(&NODE, view, params)
}

/// `trace_filter` of the hosted profile.
///
/// # Errors
/// Parameters that are not valid, missing facts, or a refusal.
pub fn hosted(view: &dyn View, params: Params<'_>) -> HandlerResult {
    filter_by(&HOSTED, view, params)
}

fn filter_by(rules: &FilterRules, view: &dyn View, params: Params<'_>) -> HandlerResult {
    let filter = TraceFilter::read(params, rules)?;
    let Some(from) = find(view, &filter.from)? else { return verified(&[(); 0]) };
    let to = match find(view, &filter.to)? {
        Some(to) => to.number,
        // A range that ends above the head ends with the head.
        None => view.height()?,
    };
    rules.check(from.number, to)?;
    verified(&collect(view, &filter, from, to)?)
}

/// The traces of the blocks from `from` to the height `to` that the filter selects.
fn collect(
    view: &dyn View,
    filter: &TraceFilter,
    from: BlockHeader,
    to: u64,
) -> Result<Vec<shape::RpcTrace>, Failure> {
    let max = view.policy().max_traced_blocks;
    if to.saturating_sub(from.number) >= max {
        return Err(Failure::Stop(Stop::Refused(Refusal::TooManyBlocks { max })));
    }
    let mut found = TraceCollector { entries: Vec::new(), skip: filter.after, bytes_left: MAX_TRACE_BYTES };
    let mut missing = Facts::new();
    // The index has canonical blocks only. If the range begins with the pending block or a block of another branch, that block
    // is searched first, without the index.
    let canonical = view.is_canonical(BlockRef { number: from.number, hash: from.hash() });
    let indexed_from = from.number.saturating_add(u64::from(!canonical));
    let mut off_chain = Some(from).filter(|_| !canonical);
    let indexed = view.transaction_blocks(&filter.senders, &filter.receivers, indexed_from, to);
    let first = off_chain.as_ref().map(|header| header.number);
    for number in first.into_iter().chain(indexed) {
        if view.policy().interrupted() {
            return Err(Failure::Stop(Stop::Refused(Refusal::Interrupted)));
        }
        let header =
            off_chain.take().map_or_else(|| view.header_by_number(number), |header| Ok(Some(header)))?;
        let Some(header) = header else { break };
        // `None`: of all transactions of the block.
        let block_traces = match traces(view, &header, Tracer::CALLS, None) {
            // The loop goes on after missing facts, so that those of all blocks are requested together.
            Err(Failure::Stop(Stop::Missing(facts))) => {
                missing.extend(facts);
                Vec::new()
            }
            traced => traced?,
        };
        for trace in block_traces.iter().filter(|trace| filter.selects(trace)) {
            found.add(shape::transaction(&header, trace), filter.count)?;
        }
        if found.entries.len() >= filter.count {
            break;
        }
    }
    if !missing.is_empty() {
        return Err(Failure::Stop(Stop::Missing(missing)));
    }
    Ok(found.entries)
}

/// The entries that a filter has found so far.
struct TraceCollector {
    entries: Vec<shape::RpcTrace>,
    /// How many of the next entries are left out.
    skip: usize,
    /// Bytes that further entries may take.
    bytes_left: usize,
}

impl TraceCollector {
    /// Adds the entries of a transaction, up to `most` in all.
    fn add(&mut self, entries: Vec<shape::RpcTrace>, most: usize) -> Result<(), Failure> {
        let skipped = self.skip.min(entries.len());
        self.skip = self.skip.saturating_sub(skipped);
        let allowed = most.saturating_sub(self.entries.len());
        for entry in entries.into_iter().skip(skipped).take(allowed) {
            self.bytes_left = self.bytes_left.checked_sub(entry.json_bytes()).ok_or_else(too_large)?;
            self.entries.push(entry);
        }
        Ok(())
    }
}
