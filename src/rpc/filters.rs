//! Filters by polling: `eth_newFilter` and its kin.

use alloc::{string::String, vec::Vec};

use alloy_primitives::U256;

use super::{
    error::{ParamError, RpcError},
    logs::{range_failure, shown, watch},
    method::{done, required, Done, Failure, Handler, Method, Param},
    params::{parse_data, Params},
};
use crate::{
    engine::{Changes, Level, Node, View, Watch, MAX_FILTERS},
    types::json::Quantity,
};

const FILTER: &[Param] = &[required("filterId", "QUANTITY")];

pub(super) const METHODS: &[Method] = &[
    Method {
        name: "eth_newFilter",
        aliases: &[],
        params: &[required("filter", "LOG_FILTER")],
        result: "QUANTITY",
        level: Level::Verified,
        cost: 10,
        doc: "Installs a filter of logs; the first poll gives what its range holds already.",
        handler: Handler::Write(|node, params| install(node, |view| watch(view, params))),
    },
    Method {
        name: "eth_newBlockFilter",
        aliases: &[],
        params: &[],
        result: "QUANTITY",
        level: Level::Verified,
        cost: 10,
        doc: "Installs a filter of new blocks of the canonical chain.",
        handler: Handler::Write(|node, _| install(node, |_| Ok(Watch::Blocks))),
    },
    Method {
        name: "eth_newPendingTransactionFilter",
        aliases: &[],
        params: &[],
        result: "QUANTITY",
        level: Level::Local,
        cost: 10,
        doc: "Installs a filter of transactions that enter the pool.",
        handler: Handler::Write(|node, _| install(node, |_| Ok(Watch::Pending))),
    },
    Method {
        name: "eth_getFilterChanges",
        aliases: &[],
        params: FILTER,
        result: "array of log objects or hashes",
        level: Level::Verified,
        cost: 20,
        doc: "What is new since the last poll; logs taken back by a reorganisation come marked as removed.",
        handler: Handler::Write(changes),
    },
    Method {
        name: "eth_getFilterLogs",
        aliases: &[],
        params: FILTER,
        result: "array of log objects",
        level: Level::Verified,
        cost: 100,
        doc: "All logs in the range of a log filter.",
        handler: Handler::Write(all_logs),
    },
    Method {
        name: "eth_uninstallFilter",
        aliases: &[],
        params: FILTER,
        result: "boolean",
        level: Level::Local,
        cost: 1,
        doc:
            "Removes a filter; false if there is none. One that nobody polls for five minutes goes by itself.",
        handler: Handler::Write(uninstall),
    },
];

fn install(
    node: &mut dyn Node,
    watched: impl FnOnce(&dyn View) -> Result<Watch, Failure>,
) -> Result<Done, Failure> {
    let (snapshot, now) = (node.snapshot(), node.now());
    let view = snapshot.view(now, &|| false);
    let watched = watched(&*view)?;
    let id = node.filters().install(watched, &*view, now)?.ok_or(RpcError::TooManyFilters(MAX_FILTERS))?;
    done(&Quantity(U256::from(id)), Level::Local)
}

/// The id in the first parameter; `None` for one that no filter has.
fn id(params: Params<'_>) -> Result<Option<u128>, ParamError> {
    let text: String = match params.object(0, "a filter id") {
        Ok(text) => text.unwrap_or_default(),
        // A number is an id too, of no filter.
        Err(_) if params.number(0).is_ok() => return Ok(None),
        Err(_) => return Err(ParamError::FilterId),
    };
    let bytes = parse_data(&text).map_err(|_| ParamError::FilterId)?;
    Ok(U256::try_from_be_slice(&bytes).and_then(|id| u128::try_from(id).ok()))
}

fn changes(node: &mut dyn Node, params: Params<'_>) -> Result<Done, Failure> {
    let id = id(params)?.ok_or(RpcError::FilterNotFound)?;
    let (snapshot, now) = (node.snapshot(), node.now());
    let view = snapshot.view(now, &|| false);
    match node.filters().poll(id, &*view, now).map_err(range_failure)? {
        None => Err(RpcError::FilterNotFound.into()),
        Some(Changes::Hashes(hashes)) => done(&hashes, Level::Verified),
        Some(Changes::Logs(logs)) => {
            let logs: Vec<_> = logs.iter().map(|(log, removed)| shown(log, *removed)).collect();
            done(&logs, Level::Verified)
        }
    }
}

fn all_logs(node: &mut dyn Node, params: Params<'_>) -> Result<Done, Failure> {
    let id = id(params)?.ok_or(RpcError::FilterNotFound)?;
    let (snapshot, now) = (node.snapshot(), node.now());
    let view = snapshot.view(now, &|| false);
    let logs = node.filters().all_logs(id, &*view, now).map_err(range_failure)?;
    let logs = logs.ok_or(RpcError::FilterNotFound)?;
    done(&logs.iter().map(|log| shown(log, false)).collect::<Vec<_>>(), Level::Verified)
}

fn uninstall(node: &mut dyn Node, params: Params<'_>) -> Result<Done, Failure> {
    let removed = id(params)?.is_some_and(|id| node.filters().uninstall(id));
    done(&removed, Level::Local)
}
