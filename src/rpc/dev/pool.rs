//! The transaction pool: `txpool_*` and `eth_pendingTransactions`.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use alloy_primitives::hex;
use serde::Serialize;

use super::{address, read, send::hash_text};
use crate::{
    engine::{Level, Pool, PoolPart, View, WaitingTransaction},
    rpc::{
        error::RpcError,
        limits::MAX_RESPONSE,
        method::{HandlerResult, Method, PageAccess, done},
        mode::Mode,
        params::Params,
    },
    types::json::{Data, Quantity, RpcTransaction},
};

/// The limit in modes without a pool.
const NO_POOL: &[(Mode, &str)] =
    &[(Mode::Follow, "has no pool: always empty"), (Mode::Light, "has no pool: always empty")];

/// The row of a method that lists waiting transactions.
const fn listing(row: Method) -> Method {
    row.pages(PageAccess::Named).limited(NO_POOL).costs(100)
}

const PENDING: Method = listing(read(
    "eth_pendingTransactions",
    &[],
    "array of transaction objects",
    "Transactions in the pool of accounts whose keys the node holds.",
    pending,
));

pub(super) const METHODS: &[Method] = &[
    PENDING,
    listing(read(
        "txpool_content",
        &[],
        "transactions by state, sender and nonce",
        "All transactions in the pool: pending ones can be mined, queued ones wait for earlier nonces.",
        |view, _| {
            let mut size = AnswerSize::default();
            let listed = lists(view, |waiting| size.add(waiting).then(|| [content(waiting)]));
            size.check()?;
            listed
        },
    )),
    // Browser modules leave this method out, to be smaller.
    #[cfg(feature = "catalogue")]
    listing(read(
        "txpool_contentFrom",
        &[crate::rpc::method::account_of("address")],
        "transactions by state and nonce",
        "The transactions of one sender in the pool.",
        content_from,
    )),
    listing(read(
        "txpool_inspect",
        &[],
        "summaries by state, sender and nonce",
        "All transactions in the pool, a line of text each.",
        |view, _| lists(view, |waiting| alloc::vec![summary(waiting)]),
    )),
    read(
        "txpool_status",
        &[],
        "counts",
        "The numbers of pending and queued transactions in the pool.",
        status,
    )
    .limited(NO_POOL),
];

/// `eth_pendingTransactions`.
fn pending(view: &dyn View, _: Params<'_>) -> HandlerResult {
    let (accounts, mut size) = (view.accounts(), AnswerSize::default());
    let mut own = Vec::new();
    if let Some(pool) = view.pool() {
        pool.visit(PoolPart::Pending, &mut |waiting| {
            let WaitingTransaction { hash, sender, transaction, .. } = waiting;
            if accounts.contains(&sender) && size.add(&waiting) {
                // `None`: the transaction is in no block.
                own.push(RpcTransaction::new(transaction, hash, sender, None));
            }
        });
    }
    size.check()?;
    done(&own, Level::Local)
}

/// The bytes that the data of the listed transactions take in an answer, as hex. Without this count, all data would be copied
/// before the answer is found to be too long.
#[derive(Default)]
struct AnswerSize(usize);

impl AnswerSize {
    /// Adds a transaction. Returns whether the answer is still short enough.
    fn add(&mut self, waiting: &WaitingTransaction<'_>) -> bool {
        self.0 = self.0.saturating_add(waiting.transaction.data.len().saturating_mul(2));
        self.0 <= MAX_RESPONSE
    }

    /// An error if the answer is too long.
    fn check(&self) -> Result<(), RpcError> {
        if self.0 <= MAX_RESPONSE { Ok(()) } else { Err(RpcError::ResponseSize(MAX_RESPONSE)) }
    }
}

/// Transactions by sender (without `0x`) and decimal nonce, nested as in the reference node.
type BySender<T> = BTreeMap<String, BTreeMap<u64, T>>;

/// The result of `txpool_content` and `txpool_inspect`.
#[derive(Serialize)]
struct PoolLists<L> {
    pending: L,
    queued: L,
}

fn nonce(waiting: &WaitingTransaction<'_>) -> u64 {
    // The pool takes nonces of at most 8 bytes, so that each fits.
    u64::try_from(waiting.transaction.nonce.value()).unwrap_or(u64::MAX)
}

/// The transactions of the pool, each as `show` gives it.
fn lists<T: Serialize>(view: &dyn Pool, mut show: impl FnMut(&WaitingTransaction<'_>) -> T) -> HandlerResult {
    let mut list = |part| {
        let mut by_sender = BySender::<T>::new();
        if let Some(pool) = view.pool() {
            pool.visit(part, &mut |waiting| {
                let by_nonce = by_sender.entry(hex::encode(waiting.sender)).or_default();
                by_nonce.insert(nonce(&waiting), show(&waiting));
            });
        }
        by_sender
    };
    done(&PoolLists { pending: list(PoolPart::Pending), queued: list(PoolPart::Queued) }, Level::Local)
}

/// The lists of one sender. Each nonce has one transaction with all its fields, as in go-ethereum, which has defined the method.
#[cfg(feature = "catalogue")]
fn content_from(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let (sender, mut size) = (params.address(0)?, AnswerSize::default());
    let mut list = |part| {
        let mut by_nonce = BTreeMap::new();
        if let Some(pool) = view.pool() {
            pool.visit(part, &mut |waiting| {
                if waiting.sender == sender && size.add(&waiting) {
                    let WaitingTransaction { hash, sender, transaction, .. } = waiting;
                    // `None`: the transaction is in no block.
                    by_nonce.insert(nonce(&waiting), RpcTransaction::new(transaction, hash, sender, None));
                }
            });
        }
        by_nonce
    };
    let lists = PoolLists { pending: list(PoolPart::Pending), queued: list(PoolPart::Queued) };
    size.check()?;
    done(&lists, Level::Local)
}

/// A transaction of the pool with the fields of the reference node, in its order. It is in no block: `block_hash` is zero.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PoolTransaction {
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

fn content(waiting: &WaitingTransaction<'_>) -> PoolTransaction {
    let transaction = waiting.transaction;
    PoolTransaction {
        block_hash: hash_text(&Default::default()),
        block_number: None,
        transaction_index: None,
        from: address(&waiting.sender),
        gas: transaction.gas_limit.value().into(),
        gas_price: transaction.gas_price.value().into(),
        hash: hash_text(&waiting.hash),
        input: Data(transaction.data.clone()),
        nonce: transaction.nonce.value().into(),
        to: transaction.to.as_ref().map(address),
        value: transaction.value.into(),
    }
}

/// A transaction as `txpool_inspect` shows it.
fn summary(waiting: &WaitingTransaction<'_>) -> String {
    let transaction = waiting.transaction;
    alloc::format!(
        "{}: {} wei + {} x {} gas",
        transaction.to.map(hex::encode).unwrap_or_default(),
        transaction.value,
        transaction.gas_limit.value(),
        transaction.gas_price.value()
    )
}

/// The result of `txpool_status`.
#[derive(Serialize)]
struct PoolStatus {
    pending: usize,
    queued: usize,
}

fn status(view: &dyn View, _: Params<'_>) -> HandlerResult {
    let status = view.pool().map_or(PoolStatus { pending: 0, queued: 0 }, |pool| PoolStatus {
        pending: pool.count(PoolPart::Pending),
        queued: pool.count(PoolPart::Queued),
    });
    done(&status, Level::Local)
}
