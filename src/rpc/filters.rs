//! Filters that callers poll (`eth_newFilter` and related methods), and subscriptions.
//!
//! A subscription is a filter that the host polls for its caller: each element that `eth_getFilterChanges` returns
//! for its id is the `result` of one notification. Hosts poll when their chain has changed.

use alloc::{string::String, vec::Vec};

use alloy_primitives::U256;

use super::{
    chain::sync_status,
    error::{ParamError, RpcError},
    logs::{BLOCKS_AT_ONCE, filter_spec, log_json, range_failure},
    method::{
        Effect, Handler, HandlerOutput, HandlerResult, LOG_FILTER, Method, Param, ParamSubject, done,
        optional, required,
    },
    mode::Mode,
    params::{Params, parse_data},
};
use crate::{
    engine::{FilterChanges, FilterLimit, FilterSpec, Filters, Level, View},
    types::json::{Quantity, RpcHead},
};

/// The type of a subscription to logs.
const LOGS: &str = "logs";

const FILTER: &[Param] = &[required("filterId", "QUANTITY").of(ParamSubject::Filter)];

pub(super) const METHODS: &[Method] = &[
    Method::new(
        "eth_newFilter",
        &[LOG_FILTER],
        "QUANTITY",
        "Installs a log filter. The first poll returns the logs that its range has \
         already.",
        Handler::Install(|filters, view, now, params| {
            install(filters, view, now, filter_spec(view, 0, params)?)
        }),
    )
    .limited(BLOCKS_AT_ONCE),
    Method::new(
        "eth_newBlockFilter",
        &[],
        "QUANTITY",
        "Installs a filter of new blocks of the canonical chain.",
        Handler::Install(|filters, view, now, _| install(filters, view, now, FilterSpec::Blocks)),
    ),
    Method::new(
        "eth_newPendingTransactionFilter",
        &[],
        "QUANTITY",
        "Installs a filter of transactions that enter the pool; on a light client, of \
         those sent through it.",
        Handler::Install(|filters, view, now, _| install(filters, view, now, FilterSpec::Pending)),
    )
    .limited(&[
        (Mode::Follow, "has no pool: never reports a transaction"),
        (Mode::Light, "reports the transactions that are sent through this client"),
    ])
    .at(Level::Local),
    Method::new(
        "eth_getFilterChanges",
        FILTER,
        "array of log objects or hashes",
        "What is new since the last poll. Logs that a reorganisation took back are marked \
         as removed.",
        Handler::ReadFilter(changes),
    )
    .limited(BLOCKS_AT_ONCE)
    // A poll that fails runs the whole query of its filter each time.
    .costs(100),
    Method::new(
        "eth_getFilterLogs",
        FILTER,
        "array of log objects",
        "All logs in the range of a log filter.",
        Handler::ReadFilter(all_logs),
    )
    .limited(BLOCKS_AT_ONCE)
    .costs(100),
    Method::new(
        "eth_uninstallFilter",
        FILTER,
        "boolean",
        "Removes a filter; false if it does not exist. A filter that is not polled for \
         five minutes expires.",
        Handler::Uninstall(|filters, _, _, params| uninstall(filters, params)),
    )
    .at(Level::Local)
    .costs(1),
    Method::new(
        "eth_subscribe",
        &[
            required("type", "newHeads, logs, newPendingTransactions or syncing"),
            optional("filter", "LOG_FILTER").of(ParamSubject::Subscription),
        ],
        "DATA",
        "Notifies of what is new, over WebSocket. Logs that a reorganisation took back \
         are marked as removed.",
        Handler::Subscribe(subscribe),
    )
    // Subscriptions to logs run a query for each new block.
    .costs(100),
    Method::new(
        "eth_unsubscribe",
        &[required("subscriptionId", "DATA").of(ParamSubject::Filter)],
        "boolean",
        "Ends a subscription; false if it does not exist.",
        Handler::Unsubscribe(unsubscribe),
    )
    .at(Level::Local)
    .costs(1),
];

fn install(filters: &mut Filters, view: &dyn View, now: u64, spec: FilterSpec) -> HandlerResult {
    installed(filters.install(spec, view, now)?, Effect::Filter)
}

fn subscribe(filters: &mut Filters, view: &dyn View, now: u64, params: Params<'_>) -> HandlerResult {
    let spec = match params.text(0).as_str() {
        "newHeads" => FilterSpec::Heads,
        LOGS => filter_spec(view, 1, params)?,
        "newPendingTransactions" => FilterSpec::Pending,
        "syncing" => FilterSpec::Syncing,
        _ => return Err(ParamError::Type { position: 0, expected: "a type of subscription" }.into()),
    };
    if !filters.may_subscribe(now) {
        return Err(RpcError::TooManySubscriptions(filters.owner().subscriptions).into());
    }
    installed(filters.subscribe(spec, view, now)?, Effect::Subscribed)
}

/// The answer with the id of a new filter or subscription, and the effect for the host.
fn installed(id: Result<u128, FilterLimit>, effect: fn(u128) -> Effect) -> HandlerResult {
    let id = id.map_err(RpcError::TooManyFilters)?;
    Ok(done(&Quantity(U256::from(id)), Level::Local)?.with(effect(id)))
}

/// Whether the parameters of `eth_subscribe` subscribe to logs.
#[cfg(all(feature = "dev", feature = "light"))]
pub(super) fn is_of_logs(params: Params<'_>) -> bool {
    params.text(0) == LOGS
}

/// The id in the first parameter; `None` for an id that no filter can have.
pub(super) fn id(params: Params<'_>) -> Result<Option<u128>, ParamError> {
    let text: String = match params.value(0, "a filter id") {
        Ok(text) => text.unwrap_or_default(),
        // The reference node accepts a number too; no filter has such an id.
        Err(_) if params.number(0).is_ok() => return Ok(None),
        Err(_) => return Err(ParamError::FilterId),
    };
    let bytes = parse_data(&text).map_err(|_| ParamError::FilterId)?;
    Ok(U256::try_from_be_slice(&bytes).and_then(|id| u128::try_from(id).ok()))
}

/// `eth_getFilterChanges`.
fn changes(filters: &mut Filters, view: &dyn View, now: u64, params: Params<'_>) -> HandlerResult {
    let id = id(params)?.ok_or(RpcError::FilterNotFound)?;
    match filters.poll(id, view, now).map_err(range_failure)? {
        None => Err(RpcError::FilterNotFound.into()),
        Some(FilterChanges::Hashes(hashes)) => done(&hashes, Level::Verified),
        Some(FilterChanges::Logs(logs)) => {
            let logs: Vec<_> = logs.iter().map(|(log, removed)| log_json(log, *removed)).collect();
            done(&logs, Level::Verified)
        }
        Some(FilterChanges::Heads(heads)) => {
            done(&heads.iter().map(|head| RpcHead::new(head)).collect::<Vec<_>>(), Level::Verified)
        }
        Some(FilterChanges::Syncing(changed)) => {
            let status = changed.map(sync_status).transpose()?;
            done(&status.iter().map(|status| &status.value).collect::<Vec<_>>(), Level::Local)
        }
    }
}

/// `eth_getFilterLogs`.
fn all_logs(filters: &mut Filters, view: &dyn View, now: u64, params: Params<'_>) -> HandlerResult {
    let id = id(params)?.ok_or(RpcError::FilterNotFound)?;
    let logs = filters.all_logs(id, view, now).map_err(range_failure)?;
    let logs = logs.ok_or(RpcError::FilterNotFound)?;
    // `false`: the blocks of these logs are on the chain.
    done(&logs.iter().map(|log| log_json(log, false)).collect::<Vec<_>>(), Level::Verified)
}

/// Ends a subscription. Only the connection that made it may end it.
fn unsubscribe(filters: &mut Filters, _: &dyn View, _: u64, params: Params<'_>) -> HandlerResult {
    ended(id(params)?.filter(|id| filters.unsubscribe(*id)).map(Effect::Unsubscribed))
}

fn uninstall(filters: &mut Filters, params: Params<'_>) -> HandlerResult {
    ended(id(params)?.filter(|id| filters.uninstall(*id)).map(Effect::Uninstalled))
}

/// The answer whether a filter or subscription was removed, and the effect for the host if it was.
fn ended(effect: Option<Effect>) -> HandlerResult {
    Ok(HandlerOutput { effect, ..done(&effect.is_some(), Level::Local)? })
}
