//! `eth_getLogs`, and the parsing of log filters, which `eth_newFilter` and `eth_subscribe` take too.

use alloc::{string::String, vec, vec::Vec};

use alloy_primitives::{Address, B256};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    error::{ParamError, RpcError},
    lookup::find,
    method::{Failure, HandlerResult, Indexed, LOG_FILTER, Method, verified},
    mode::Mode,
    params::{BlockParam, Params, block_param, parse_address, parse_hash, tag_in_any_case},
};
use crate::{
    engine::{
        FilterSpec, FoundLog, LogFilter, MAX_LOG_BYTES, MAX_LOGS, RangeStop, View, logs_by_hash, range_logs,
    },
    types::json::{Location, RpcLog},
};

pub(super) const METHODS: &[Method] = &[Method::read(
    "eth_getLogs",
    &[LOG_FILTER],
    "array of log objects",
    "Logs of a range of blocks, or of one block, by contract and topics.",
    get_logs,
)
.limited(BLOCKS_AT_ONCE)
.relayed()
.streamed()
.indexed(Indexed::Logs)
.costs(100)];

/// The limit of methods that look for logs, as the catalogue of methods states it.
pub(super) const BLOCKS_AT_ONCE: &[(Mode, &str)] = &[(Mode::Light, "at most 2,000 blocks at once")];

/// Most addresses and topics of one filter, where each position of topics counts as one more. The limit bounds the memory of a
/// filter and the comparisons for each log.
const MAX_TERMS: usize = 4_000;

/// A log filter as a caller writes it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct FilterObject<'a> {
    #[serde(default, borrow)]
    from_block: Option<&'a RawValue>,
    #[serde(default, borrow)]
    to_block: Option<&'a RawValue>,
    #[serde(default, borrow)]
    block_hash: Option<&'a RawValue>,
    #[serde(default, borrow)]
    address: Option<&'a RawValue>,
    #[serde(default, borrow)]
    topics: Option<&'a RawValue>,
}

/// The JSON of addresses or of the topics at a position: a value, a list of values or nulls, or null.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    None,
    One(String),
    Many(Vec<Option<String>>),
}

/// Reads a parameter as a log filter. `latest` as the start of the range means the present head; as its end it leaves
/// the range open.
///
/// # Errors
/// The errors of the parameters, and of the look-up of a block.
pub fn filter_spec(view: &dyn View, position: usize, params: Params<'_>) -> Result<FilterSpec, Failure> {
    let given: FilterObject<'_> = params.object(position, "a log filter")?.unwrap_or_default();
    let head = view.height()?;
    let filter = LogFilter { addresses: addresses(given.address)?, topics: topics(given.topics)? };
    let terms =
        filter.topics.iter().map(|position| position.len().saturating_add(1)).fold(0, usize::saturating_add);
    if terms.saturating_add(filter.addresses.len()) > MAX_TERMS {
        return Err(ParamError::TooManyTerms(MAX_TERMS).into());
    }
    if let Some(hash) = given.block_hash {
        if given.from_block.is_some() || given.to_block.is_some() {
            return Err(ParamError::HashAndRange.into());
        }
        let text: String =
            serde_json::from_str(hash.get()).map_err(|_| ParamError::HashLength("block hash"))?;
        return Ok(FilterSpec::BlockLogs { filter, block: parse_hash(&text, "block hash")? });
    }
    let from = match given.from_block.map(param).transpose()? {
        // The range begins with the next block: the pending block has no logs here.
        Some(BlockParam::Pending) => head.saturating_add(1),
        _ => height(view, given.from_block)?.unwrap_or(head),
    };
    let to = height(view, given.to_block)?;
    if to.is_some_and(|to| from > to) {
        return Err(ParamError::BlockRange.into());
    }
    Ok(FilterSpec::Logs { filter, from, to })
}

/// Rewrites a filter so that both ends of its range are numbers; `number` gives the JSON of one end. A filter by
/// block hash is returned unchanged. Returns `None` if the filter or an end of its range cannot be read.
#[cfg(feature = "light")]
pub(super) fn pinned_range(filter: &str, number: impl Fn(&str) -> Option<String>) -> Option<String> {
    let given: FilterObject<'_> = super::params::object(serde_json::from_str(filter).ok()?).ok()?;
    if given.block_hash.is_some() {
        return Some(filter.into());
    }
    let end = |raw: Option<&RawValue>| number(raw.map_or("null", RawValue::get));
    let (from, to) = (end(given.from_block)?, end(given.to_block)?);
    let mut range = alloc::format!(r#"{{"fromBlock":{from},"toBlock":{to}"#);
    for (name, value) in [("address", given.address), ("topics", given.topics)] {
        if let Some(value) = value {
            range.push_str(&alloc::format!(r#","{name}":{}"#, value.get()));
        }
    }
    range.push('}');
    Some(range)
}

/// The contracts whose logs a filter selects (senders of logs, not of transactions); `None` if the filter selects logs of all contracts, or cannot be read.
#[cfg(all(feature = "dev", feature = "light"))]
pub(super) fn senders(params: Params<'_>, position: usize) -> Option<Vec<Address>> {
    let given: FilterObject<'_> = params.object(position, "a log filter").ok()??;
    addresses(given.address).ok().filter(|addresses| !addresses.is_empty())
}

/// The ends of a filter's range that the filter states and that can be parsed.
#[cfg(all(feature = "dev", feature = "light"))]
pub(super) fn ends(params: Params<'_>, position: usize) -> Vec<BlockParam> {
    let given = params.object::<FilterObject<'_>>(position, "a log filter").ok().flatten();
    let ends = given.into_iter().flat_map(|given| [given.from_block, given.to_block]);
    ends.flatten().filter_map(|end| param(end).ok()).collect()
}

/// The block parameter at one end of a range.
fn param(raw: &RawValue) -> Result<BlockParam, ParamError> {
    // `false`: a number has `0x`, decimal ones are refused.
    tag_in_any_case(block_param(raw, false))
}

/// The height of one end of a range; `None` if the end is missing or is the head.
fn height(view: &dyn View, raw: Option<&RawValue>) -> Result<Option<u64>, Failure> {
    let Some(raw) = raw else { return Ok(None) };
    match param(raw)? {
        BlockParam::Latest | BlockParam::Pending => Ok(None),
        BlockParam::Earliest => Ok(Some(0)),
        // A height above the head has no logs, which is not an error.
        BlockParam::Number(number, _) => Ok(Some(number.unwrap_or(u64::MAX))),
        other => match find(view, &other)? {
            Some(header) => Ok(Some(header.number)),
            None => Err(RpcError::BlockNotFound(raw.get().trim_matches('"').into()).into()),
        },
    }
}

/// Parses one address or a list.
fn addresses(raw: Option<&RawValue>) -> Result<Vec<Address>, ParamError> {
    match one_or_many(raw).ok_or(ParamError::AddressLength)? {
        OneOrMany::None => Ok(Vec::new()),
        OneOrMany::One(one) => Ok(vec![parse_address(&one)?]),
        OneOrMany::Many(many) => {
            // `null` in a list of addresses is an error, like an empty text.
            let parse = |text: &Option<String>| parse_address(text.as_deref().unwrap_or_default());
            many.iter().map(parse).collect()
        }
    }
}

/// The topics that match at each position; a single topic is one for the first position. `null` at a position, or a list
/// without hashes, matches any topic; `null` in a list of hashes is ignored.
fn topics(raw: Option<&RawValue>) -> Result<Vec<Vec<B256>>, ParamError> {
    // The name of the parameter in errors.
    const SUBJECT: &str = "topic";
    let Some(raw) = raw else { return Ok(Vec::new()) };
    let positions: Vec<Option<&RawValue>> = match raw.get().starts_with('"') {
        true => vec![Some(raw)],
        false => serde_json::from_str(raw.get()).map_err(|_| ParamError::HashLength(SUBJECT))?,
    };
    let parse = |raw: &Option<&RawValue>| match one_or_many(*raw).ok_or(ParamError::HashLength(SUBJECT))? {
        OneOrMany::None => Ok(Vec::new()),
        OneOrMany::One(one) => Ok(vec![parse_hash(&one, SUBJECT)?]),
        OneOrMany::Many(many) => many.iter().flatten().map(|text| parse_hash(text, SUBJECT)).collect(),
    };
    positions.iter().map(parse).collect()
}

fn one_or_many(raw: Option<&RawValue>) -> Option<OneOrMany> {
    raw.map_or(Some(OneOrMany::None), |raw| serde_json::from_str(raw.get()).ok())
}

fn get_logs(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let logs = match filter_spec(view, 0, params)? {
        FilterSpec::Logs { filter, from, to } => {
            range_logs(view, from, to.unwrap_or(u64::MAX), &filter).map_err(range_failure)?
        }
        FilterSpec::BlockLogs { filter, block } => logs_by_hash(view, block, &filter)?,
        // `filter_spec` returns filters of logs only.
        FilterSpec::Blocks | FilterSpec::Heads | FilterSpec::Pending | FilterSpec::Syncing => Vec::new(),
    };
    // `false`: the blocks of these logs are on the chain.
    verified(&logs.iter().map(|log| log_json(log, false)).collect::<Vec<_>>())
}

/// The failure of a query for the logs of a range.
pub fn range_failure(stop: RangeStop) -> Failure {
    match stop {
        RangeStop::Stop(stop) => Failure::Stop(stop),
        RangeStop::TooMany { fits } => RpcError::TooManyLogs { max: MAX_LOGS, fits }.into(),
        RangeStop::TooLong { fits } => RpcError::LogsTooLong { max: MAX_LOG_BYTES, fits }.into(),
        RangeStop::TooWide { max, fits } => RpcError::TooManyBlocks { max, fits }.into(),
    }
}

/// A log as answers show it; `removed` tells whether a reorganisation took its block off the chain.
pub(super) fn log_json(found: &FoundLog, removed: bool) -> RpcLog {
    let location = Location {
        block_hash: found.block.hash,
        block_number: found.block.number,
        index: found.transaction_index,
    };
    RpcLog::new(&found.log, found.transaction, &location, found.log_index).with_removed(removed)
}
