//! Sending transactions to the pool: raw, or made from a transaction object and signed by the node.

use alloc::string::String;

use alloy_primitives::{Address, B256, U256, hex};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{TRANSACTION, brief, chain, chain_at, milliseconds, number, sync, write};
use crate::{
    dev::{DevChain, PrivateKey},
    engine::{Level, LocalNode},
    local::mark_sender,
    rpc::{
        call::gas_of_transaction,
        error::{ParamError, RpcError},
        method::{Failure, HandlerResult, Method, Param, ParamSubject, Runs, done, optional, required},
        params::{Params, parse_address, parse_data},
        signed::sent,
    },
    types::{RawUint, Transaction},
};

/// The gas limit of a transaction object without one, as in the reference node. Methods that send the transaction raise it to
/// the gas that the transaction would use ([`to_send`]).
const DEFAULT_GAS: u64 = 90_000;

/// How long the caller waits for a block. The handlers do not read the parameter and answer at once; a server waits itself, and sends
/// the receipt in place of their error (`NOT_MINED` in `sync`).
const TIMEOUT: Param = optional("timeout", "QUANTITY, milliseconds");

pub(super) const METHODS: &[Method] = &[
    brief(write(
        ("eth_sendTransaction", &[]),
        &[TRANSACTION],
        "HASH",
        "Signs a transaction with a key that the node holds, or for an impersonated account, and sends it.",
        |node, params| {
            let object = to_send(node, params)?;
            let (chain, now) = chain_at(node)?;
            let (transaction, from) = transaction_of(chain, &object, now)?;
            submit(chain, transaction, from, now)
        },
    ))
    .runs(Runs::Transaction),
    brief(write(
        ("eth_sendTransactionSync", &[]),
        &[TRANSACTION, TIMEOUT],
        "receipt object",
        "As eth_sendTransaction, with the receipt (EIP-7966).",
        |node, params| {
            let object = to_send(node, params)?;
            let (chain, now) = chain_at(node)?;
            let (transaction, from) = transaction_of(chain, &object, now)?;
            sync::submit(node, transaction, from)
        },
    ))
    .runs(Runs::Transaction),
    brief(write(
        ("eth_sendRawTransactionSync", &[]),
        &[required("transactionData", "DATA").of(ParamSubject::Signed), TIMEOUT],
        "receipt object",
        "As eth_sendRawTransaction, with the receipt (EIP-7966).",
        |node, params| {
            let chain_id = chain(node)?.view().network().chain_id;
            let (transaction, from) = sent(params, chain_id)?;
            sync::submit(node, transaction, from)
        },
    ))
    .runs(Runs::Transaction),
    brief(write(
        ("eth_sendUnsignedTransaction", &[]),
        &[TRANSACTION],
        "HASH",
        "Sends a transaction of any account, as if that were impersonated.",
        |node, params| {
            let object = to_send(node, params)?;
            let (chain, now) = chain_at(node)?;
            let from = object.sender()?;
            let transaction = object.unsigned(chain, from)?;
            submit(chain, transaction, from, now)
        },
    ))
    .runs(Runs::Transaction),
    write(
        ("eth_signTransaction", &[]),
        &[TRANSACTION],
        "DATA",
        "Signs a transaction with a key that the node holds, and returns it encoded.",
        |node, params| {
            let (chain, now) = chain_at(node)?;
            let object = object(params)?;
            let from = object.sender()?;
            let key = chain.wallet().key(&from, milliseconds(now)).cloned();
            let key = key.ok_or(ParamError::NoSuchAccount(from))?;
            done(&hex::encode_prefixed(object.signed(chain, &key)?.encode()), Level::Local)
        },
    ),
];

/// The transaction object in the first parameter, with the gas that the transaction would use if it states no gas limit: the
/// reference node's default is too low for most contract creations. A transaction that would fail keeps the default, and fails.
fn to_send<'a>(node: &mut dyn LocalNode, params: Params<'a>) -> Result<TransactionObject<'a>, Failure> {
    let object = object(params)?;
    let is_null = |raw: Option<&RawValue>| raw.is_none_or(|raw| raw.get() == "null");
    if !(is_null(object.gas) && is_null(object.gas_limit)) || object.sender().is_err() {
        return Ok(object);
    }
    let (snapshot, now) = (node.snapshot(), node.now());
    let chain = chain(node)?;
    match gas_of_transaction(&*snapshot.view(now, &|| chain.is_interrupted()), params) {
        Ok(used_gas) => Ok(TransactionObject { used_gas, ..object }),
        Err(Failure::Stop(stop)) => Err(stop.into()),
        Err(Failure::Error(_)) => Ok(object),
    }
}

/// The transaction of an object and its sender. The transaction is signed if the node has the sender's key, else marked as that of
/// an impersonated account.
pub(super) fn transaction_of(
    chain: &DevChain,
    object: &TransactionObject<'_>,
    now: u64,
) -> Result<(Transaction, Address), Failure> {
    let from = object.sender()?;
    let transaction = match chain.wallet().key(&from, milliseconds(now)).cloned() {
        Some(key) => object.signed(chain, &key)?,
        None if chain.wallet().is_impersonated(&from) => object.unsigned(chain, from)?,
        None => return Err(ParamError::NoSuchAccount(from).into()),
    };
    Ok((transaction, from))
}

/// Sends a transaction and returns its hash. Errors have the reference node's messages.
pub(super) fn submit(
    chain: &mut DevChain,
    transaction: Transaction,
    from: Address,
    now: u64,
) -> HandlerResult {
    let hash = chain.submit(transaction, from, now).map_err(sync::not_sent)?;
    done(&alloc::format!("{hash}"), Level::Local)
}

/// `eth_sendRawTransaction` on a development chain.
pub(in crate::rpc) fn send_raw(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let (chain, now) = chain_at(node)?;
    let chain_id = chain.view().network().chain_id;
    let (transaction, sender) = sent(params, chain_id)?;
    submit(chain, transaction, sender, now)
}

/// A transaction object. Unknown fields are ignored; `input` takes precedence over `data`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct TransactionObject<'a> {
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    to: Option<String>,
    #[serde(borrow, default)]
    gas: Option<&'a RawValue>,
    #[serde(borrow, default)]
    gas_limit: Option<&'a RawValue>,
    #[serde(borrow, default)]
    gas_price: Option<&'a RawValue>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    nonce: Option<&'a RawValue>,
    #[serde(borrow, default)]
    chain_id: Option<&'a RawValue>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    input: Option<String>,
    /// The gas that the transaction would use, as [`to_send`] has found; 0 if it was not computed.
    #[serde(skip)]
    used_gas: u64,
}

/// The transaction object in the first parameter.
pub(super) fn object(params: Params<'_>) -> Result<TransactionObject<'_>, ParamError> {
    Ok(params.object(0, "a transaction object")?.unwrap_or_default())
}

/// The receiver of the transaction object in the first parameter; `None` if it has none or cannot be read.
#[cfg(feature = "light")]
pub(in crate::rpc) fn receiver(params: Params<'_>) -> Option<Address> {
    object(params).ok()?.receiver().ok()?
}

/// The values of members that a transaction object does not have.
pub(super) trait Defaults {
    /// The chain id that the object may state.
    fn chain_id(&self) -> u64;

    /// The gas price in wei.
    fn price(&self) -> Result<U256, Failure>;

    /// The sender's next nonce.
    fn nonce(&self) -> Result<u64, Failure>;

    /// The gas limit.
    fn gas(&self) -> Result<u64, Failure>;
}

/// The defaults of transactions that the node signs or sends.
struct NodeDefaults<'a> {
    chain: &'a DevChain,
    from: Address,
    used_gas: u64,
}

impl Defaults for NodeDefaults<'_> {
    fn chain_id(&self) -> u64 {
        self.chain.view().network().chain_id
    }

    fn price(&self) -> Result<U256, Failure> {
        Ok(self.chain.price())
    }

    fn nonce(&self) -> Result<u64, Failure> {
        Ok(self.chain.next_nonce(&self.from))
    }

    fn gas(&self) -> Result<u64, Failure> {
        Ok(self.used_gas.max(DEFAULT_GAS))
    }
}

impl TransactionObject<'_> {
    /// The account that sends the transaction.
    pub(super) fn sender(&self) -> Result<Address, ParamError> {
        self.from.as_deref().map(parse_address).transpose()?.ok_or(ParamError::NoSender)
    }

    /// The account or contract that receives the transaction; `None` if it creates a contract.
    fn receiver(&self) -> Result<Option<Address>, ParamError> {
        self.to.as_deref().filter(|to| !to.is_empty()).map(parse_address).transpose()
    }

    /// The transaction, signed with a key.
    pub(super) fn signed(&self, chain: &DevChain, key: &PrivateKey) -> Result<Transaction, Failure> {
        let defaults = NodeDefaults { chain, from: key.address(), used_gas: self.used_gas };
        let transaction = self.complete(&defaults)?;
        let chain_id = chain.view().network().chain_id;
        Ok(key.sign_transaction(transaction, chain_id).ok_or(RpcError::Internal)?)
    }

    /// The transaction of an impersonated account. The signature is replaced by the account's address, so that
    /// transactions of different accounts have different hashes.
    fn unsigned(&self, chain: &DevChain, from: Address) -> Result<Transaction, Failure> {
        let transaction = self.complete(&NodeDefaults { chain, from, used_gas: self.used_gas })?;
        let chain_id = chain.view().network().chain_id;
        Ok(mark_sender(transaction, from, chain_id).ok_or(RpcError::Internal)?)
    }

    /// The transaction without its signature.
    pub(super) fn complete(&self, defaults: &impl Defaults) -> Result<Transaction, Failure> {
        if let Some(chain_id) = self.chain_id.filter(|raw| raw.get() != "null") {
            let text: String = serde_json::from_str(chain_id.get()).unwrap_or_else(|_| chain_id.get().into());
            if number(chain_id)? != U256::from(defaults.chain_id()) {
                return Err(ParamError::ChainId(text).into());
            }
        }
        let given = |raw: Option<&RawValue>| raw.filter(|raw| raw.get() != "null").map(number).transpose();
        let gas = given(self.gas)?.or(given(self.gas_limit)?);
        let price = given(self.gas_price)?.map_or_else(|| defaults.price(), Ok)?;
        let nonce = given(self.nonce)?.map_or_else(|| defaults.nonce().map(U256::from), Ok)?;
        let gas = gas.map_or_else(|| defaults.gas().map(U256::from), Ok)?;
        let data = self.input.as_deref().or(self.data.as_deref());
        Ok(Transaction {
            nonce: nonce.into(),
            // Zero is encoded as one zero byte, as the reference node's wallet does.
            gas_price: RawUint::padded(price, 1),
            gas_limit: gas.into(),
            to: self.receiver()?,
            value: given(self.value)?.unwrap_or_default(),
            data: data.map(parse_data).transpose()?.unwrap_or_default(),
            v: 0,
            r: U256::ZERO,
            s: U256::ZERO,
        })
    }
}

/// Formats a hash for an answer.
pub(super) fn hash_text(hash: &B256) -> String {
    alloc::format!("{hash}")
}
