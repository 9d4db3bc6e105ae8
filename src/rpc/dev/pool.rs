//! The transaction pool: `txpool_*` and `eth_pendingTransactions`.

use alloc::{collections::BTreeMap, string::String, sync::Arc, vec::Vec};

use alloy_primitives::{Address, hex};
use serde::Serialize;

use super::{address, read, send::shown};
use crate::{
    dev::pool::Pooled,
    engine::{Level, View},
    rpc::{
        method::{Done, Failure, Method, done},
        params::Params,
    },
    types::json::{Data, Quantity, RpcTransaction},
};

pub(super) const METHODS: &[Method] = &[
    read(
        "eth_pendingTransactions",
        &[],
        "array of transaction objects",
        "Transactions in the pool of accounts whose keys the node holds.",
        pending,
    ),
    read(
        "txpool_content",
        &[],
        "transactions by state, sender and nonce",
        "All transactions in the pool: pending ones can be mined, queued ones wait for earlier nonces.",
        |view, _| lists(view, |pooled| alloc::vec![content(pooled)]),
    ),
    read(
        "txpool_inspect",
        &[],
        "summaries by state, sender and nonce",
        "All transactions in the pool, a line of text each.",
        |view, _| lists(view, |pooled| alloc::vec![summary(pooled)]),
    ),
    read(
        "txpool_status",
        &[],
        "counts",
        "The numbers of pending and queued transactions in the pool.",
        status,
    ),
];

fn pending(view: &dyn View, _: Params<'_>) -> Result<Done, Failure> {
    let held = view.accounts();
    let pool = view.pool().map(|pool| pool.pending()).unwrap_or_default();
    let own = pool.iter().filter(|(sender, _)| held.contains(sender)).flat_map(|(_, all)| all);
    let shown = own.map(|pooled| RpcTransaction::new(&pooled.transaction, pooled.hash, pooled.sender, None));
    done(&shown.collect::<Vec<_>>(), Level::Local)
}

/// Transactions by sender (without `0x`) and decimal nonce, nested as in the reference node.
type Listed<T> = BTreeMap<String, BTreeMap<u64, T>>;

#[derive(Serialize)]
struct Lists<T> {
    pending: Listed<T>,
    queued: Listed<T>,
}

fn lists<T: Serialize>(view: &dyn View, show: impl Fn(&Pooled) -> T) -> Result<Done, Failure> {
    let listed = |all: BTreeMap<Address, Vec<Arc<Pooled>>>| -> Listed<T> {
        all.iter()
            .map(|(sender, of)| {
                let nonce =
                    |pooled: &Pooled| u64::try_from(pooled.transaction.nonce.value()).unwrap_or(u64::MAX);
                (hex::encode(sender), of.iter().map(|pooled| (nonce(pooled), show(pooled))).collect())
            })
            .collect()
    };
    let pool = view.pool();
    let lists = Lists {
        pending: listed(pool.map(|pool| pool.pending()).unwrap_or_default()),
        queued: listed(pool.map(|pool| pool.queued()).unwrap_or_default()),
    };
    done(&lists, Level::Local)
}

/// A transaction of the pool with the fields of the reference node, in its order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    block_hash: String,
    block_number: Option<Quantity>,
    transaction_index: Option<Quantity>,
    from: String,
    gas: Quantity,
    gas_price: Quantity,
    hash: String,
    input: Data,
    nonce: Quantity,
    to: Option<String>,
    value: Quantity,
}

fn content(pooled: &Pooled) -> Content {
    let transaction = &pooled.transaction;
    Content {
        block_hash: shown(&Default::default()),
        block_number: None,
        transaction_index: None,
        from: address(&pooled.sender),
        gas: transaction.gas_limit.value().into(),
        gas_price: transaction.gas_price.value().into(),
        hash: shown(&pooled.hash),
        input: Data(transaction.data.clone()),
        nonce: transaction.nonce.value().into(),
        to: transaction.to.as_ref().map(address),
        value: transaction.value.into(),
    }
}

fn summary(pooled: &Pooled) -> String {
    let transaction = &pooled.transaction;
    alloc::format!(
        "{}: {} wei + {} x {} gas",
        transaction.to.map(hex::encode).unwrap_or_default(),
        transaction.value,
        transaction.gas_limit.value(),
        transaction.gas_price.value()
    )
}

#[derive(Serialize)]
struct Status {
    pending: usize,
    queued: usize,
}

fn status(view: &dyn View, _: Params<'_>) -> Result<Done, Failure> {
    let status = view.pool().map_or(Status { pending: 0, queued: 0 }, |pool| Status {
        pending: pool.pending_len(),
        queued: pool.queued_len(),
    });
    done(&status, Level::Local)
}
