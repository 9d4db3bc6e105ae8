//! `eth_sendRawTransaction`: signed transactions, into a pool of this program or on to upstreams.

use alloc::format;

use alloy_primitives::{Address, Bytes};

use super::{
    error::ParamError,
    method::{required, told, Handler, Method, Pages},
};
use crate::{
    engine::Level,
    types::{SenderError, Transaction},
};

/// `v` of an EIP-155 signature with chain id 0 and an even y.
const PROTECTED_V: i64 = 35;
/// First bytes of an RLP list; typed transactions (EIP-2718) start lower.
const LIST: u8 = 0xc0;

pub(super) const METHODS: &[Method] = &[Method {
    name: "eth_sendRawTransaction",
    aliases: &[],
    params: &[required("transactionData", "DATA")],
    result: told("HASH"),
    level: Level::Local,
    cost: 20,
    pages: Pages::Any,
    doc: told("Takes a signed transaction into the pool; with instant mining it is mined before this answers. A light client hands it to upstreams."),
    handler: Handler::Write(pool),
}];

#[cfg(feature = "local")]
use super::dev::send_raw as pool;

/// Without a chain of its own a module has no pool either; sessions hand transactions on before they get here.
#[cfg(not(feature = "local"))]
fn pool(
    _: &mut dyn crate::engine::Node,
    _: super::params::Params<'_>,
) -> Result<super::method::Done, super::method::Failure> {
    Err(super::error::RpcError::NeedsLocalChain("eth_sendRawTransaction").into())
}

/// Decodes a transaction and recovers its sender, with the reference's words where it has some.
pub(super) fn decode(raw: &Bytes, chain_id: u64) -> Result<(Transaction, Address), ParamError> {
    if raw.first().is_some_and(|first| *first < LIST) {
        return Err(ParamError::TypedTransaction);
    }
    let transaction = Transaction::decode(raw).map_err(ParamError::Transaction)?;
    if transaction.gas_limit.is_empty() {
        return Err(ParamError::MissingGas);
    }
    match transaction.recover_sender(chain_id) {
        // The pool has a word for the transactions that only blocks hold.
        Ok(sender) => Ok((transaction, sender)),
        Err(SenderError::ChainId { found, .. }) => Err(ParamError::ChainId(format!("{found}"))),
        // The reference reports every signature that it does not accept like this.
        Err(_) => Err(ParamError::ChainId(format!("{}", named_chain(transaction.v)))),
    }
}

/// The chain id that `v` names in the reference's arithmetic.
fn named_chain(v: u8) -> i64 {
    match v {
        0 | 27 | 28 => 0,
        v => i64::from(v).saturating_sub(PROTECTED_V) / 2,
    }
}
