//! `eth_fillTransaction`: adds the members that the sender of a transaction has left out. The node needs no key of the sender.

use alloc::{format, string::String};

use alloy_primitives::{Address, U256, hex};
use serde::Serialize;

use super::{
    TRANSACTION,
    send::{self, Defaults},
};
use crate::{
    engine::View,
    rpc::{
        call::gas_of_transaction,
        chain::gas_price,
        error::ParamError,
        method::{Failure, HandlerResult, Method, Runs, verified},
        params::Params,
        state::next_nonce,
    },
    types::{Transaction, json::RpcTransaction},
};

pub(super) const METHODS: &[Method] = &[Method::read(
    "eth_fillTransaction",
    &[TRANSACTION],
    "{raw: DATA, tx: transaction object}",
    "A transaction with nonce, gas limit and gas price where they are left out, without a signature. The Keccak-256 of raw is what \
     its sender signs (EIP-155).",
    fill,
)
.runs(Runs::Call)
.costs(200)];

/// The result: the transaction to sign, encoded and as an object.
#[derive(Serialize)]
struct Filled {
    raw: String,
    tx: RpcTransaction,
}

fn fill(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let object = send::object(params)?;
    // As in go-ethereum, a transaction without a sender is completed for account 0.
    let from = match object.sender() {
        Err(ParamError::NoSender) => Address::ZERO,
        sender => sender?,
    };
    let defaults = ChainDefaults { view, params, from };
    let chain_id = defaults.chain_id();
    // EIP-155: `v` of an unsigned transaction is the chain id. Rootstock encodes `v` in one byte.
    let v = u8::try_from(chain_id).map_err(|_| ParamError::ChainId(format!("{chain_id}")))?;
    let transaction = Transaction { v, ..object.complete(&defaults)? };
    // `None`: the transaction is in no block.
    let tx = RpcTransaction::new(&transaction, transaction.hash(), from, None);
    verified(&Filled { raw: hex::encode_prefixed(transaction.encode()), tx })
}

/// Defaults from the state after the newest block.
struct ChainDefaults<'a> {
    view: &'a dyn View,
    params: Params<'a>,
    from: Address,
}

impl Defaults for ChainDefaults<'_> {
    fn chain_id(&self) -> u64 {
        self.view.policy().network.chain_id
    }

    fn price(&self) -> Result<U256, Failure> {
        gas_price(self.view)
    }

    fn nonce(&self) -> Result<u64, Failure> {
        next_nonce(self.view, &self.from)
    }

    fn gas(&self) -> Result<u64, Failure> {
        gas_of_transaction(self.view, self.params)
    }
}
