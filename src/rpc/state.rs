//! Account state: balance, nonce, code, storage and `eth_getProof`, all from proven trie nodes.

use alloc::{format, string::String, vec::Vec};

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde::Serialize;

use super::{
    lookup::{require, state_failure},
    method::{AT_BLOCK, Failure, HandlerResult, Method, Param, account_of, contract_of, required, verified},
    params::{BlockParam, Params},
};
use crate::{
    engine::{BlockHeader, State, View},
    state::{AccountState, StateError, StateKey, StateReader, keys},
    trie,
    types::json::Quantity,
};

const ACCOUNT: &[Param] = &[account_of("address"), AT_BLOCK];
const CODE: &[Param] = &[contract_of("address"), AT_BLOCK];
const SLOT: &[Param] = &[contract_of("address"), required("position", "QUANTITY"), AT_BLOCK];
const PROOF: &[Param] = &[contract_of("address"), required("storageKeys", "array of HASH"), AT_BLOCK];

pub(super) const METHODS: &[Method] = &[
    Method::read("eth_getBalance", ACCOUNT, "QUANTITY", "Balance of an account in wei.", |view, params| {
        verified(&Quantity(account(view, params)?.balance))
    })
    .takes_hash(),
    Method::read("eth_getTransactionCount", ACCOUNT, "QUANTITY", "Nonce of an account.", nonce).takes_hash(),
    Method::read("eth_getCode", CODE, "DATA", "Code of a contract.", code).costs(20).takes_hash(),
    Method::read("eth_getStorageAt", SLOT, "DATA, 32 bytes", "A storage cell of a contract.", storage)
        .takes_hash(),
    Method::read(
        "ext_getStorageBytesAt",
        SLOT,
        "DATA",
        "A storage cell as it is stored: without leading zeros; longer values of native contracts are \
         complete.",
        storage_bytes,
    )
    .also(&["rsk_getStorageBytesAt"]),
    Method::read(
        "eth_getProof",
        PROOF,
        "account proof object",
        "Account and storage cells with their trie nodes (EIP-1186), absence included.",
        proof,
    )
    .costs(30),
];

/// The account that the reference node reports for an address without one; the code hash is zero.
pub(super) const NO_ACCOUNT: AccountState =
    AccountState { nonce: 0, balance: U256::ZERO, code_hash: B256::ZERO, code_size: 0 };

/// Reads the state after a block.
pub(super) fn read<T>(
    view: &dyn State,
    header: &BlockHeader,
    get: impl FnOnce(&dyn StateReader) -> Result<T, StateError>,
) -> Result<T, Failure> {
    let state = view.state(header)?;
    get(&*state).map_err(|error| state_failure(header, error))
}

/// The account that the first two parameters name.
fn account(view: &dyn View, params: Params<'_>) -> Result<AccountState, Failure> {
    account_at(view, &params.address(0)?, &params.block(1)?)
}

/// An account after a block; [`NO_ACCOUNT`] if it does not exist.
fn account_at(view: &dyn View, address: &Address, block: &BlockParam) -> Result<AccountState, Failure> {
    let header = require(view, block)?;
    Ok(read(view, &header, |state| state.account(address))?.unwrap_or(NO_ACCOUNT))
}

/// The nonce of an account. For `pending`, transactions count that wait in the pool or were sent through this client; no pending
/// block is built for that.
fn nonce(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let (address, block) = (params.address(0)?, params.block(1)?);
    let nonce = match block {
        BlockParam::Pending => next_nonce(view, &address)?,
        block => account_at(view, &address, &block)?.nonce,
    };
    verified(&Quantity::from(nonce))
}

/// The nonce of the account's next transaction.
pub(super) fn next_nonce(view: &dyn View, address: &Address) -> Result<u64, Failure> {
    let nonce = account_at(view, address, &BlockParam::Latest)?.nonce;
    Ok(view.next_nonce(address, nonce))
}

fn code(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let address = params.address(0)?;
    let header = require(view, &params.block(1)?)?;
    let code = read(view, &header, |state| state.code(&address))?;
    verified(&hex::encode_prefixed(&code))
}

fn storage(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let address = params.address(0)?;
    let slot = params.number(1)?;
    let header = require(view, &params.block(2)?)?;
    let value = read(view, &header, |state| state.storage(&address, &slot))?;
    verified(&hex::encode_prefixed(word(&value)))
}

/// A cell as it is stored, in the reference node's form: an absent cell is `0x0`.
fn storage_bytes(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let address = params.address(0)?;
    let slot = params.number(1)?;
    let header = require(view, &params.block(2)?)?;
    let value = read(view, &header, |state| state.storage(&address, &slot))?;
    verified(&if value.is_empty() { String::from("0x0") } else { hex::encode_prefixed(&value) })
}

/// A storage value as 32 bytes. Longer values, which native contracts store, are returned whole.
pub(super) fn word(value: &[u8]) -> Bytes {
    if value.len() >= 32 {
        return Bytes::copy_from_slice(value);
    }
    Bytes::copy_from_slice(B256::left_padding_from(value).as_slice())
}

/// An account proof (EIP-1186).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RpcAccountProof {
    address: String,
    account_proof: Vec<String>,
    balance: String,
    code_hash: String,
    nonce: String,
    storage_hash: String,
    storage_proof: Vec<RpcStorageProof>,
}

/// The proof of one storage cell.
#[derive(Serialize)]
struct RpcStorageProof {
    key: String,
    value: String,
    proof: Vec<String>,
}

fn proof(view: &dyn View, params: Params<'_>) -> HandlerResult {
    verified(&proof_with(view, params, root_first)?)
}

/// Writes the nodes on the path of a key, which are given from the root to the leaf; the flag tells whether the key exists.
pub(super) type ShowPath = fn(&[Bytes], bool) -> Vec<String>;

/// The nodes from the root to the leaf, each as an RLP string (EIP-1186).
fn root_first(nodes: &[Bytes], _: bool) -> Vec<String> {
    nodes.iter().map(|node| hex::encode_prefixed(alloy_rlp::encode(node))).collect()
}

/// The proof of the account and cells that the parameters name, with nodes as `show` writes them.
///
/// # Errors
/// Missing facts, a refusal, or parameters that are not valid.
pub(super) fn proof_with(
    view: &dyn View,
    params: Params<'_>,
    show: ShowPath,
) -> Result<RpcAccountProof, Failure> {
    let address = params.address(0)?;
    let slots = params.storage_keys(1)?;
    let header = require(view, &params.block(2)?)?;
    view.provable(&header)?;
    read(view, &header, |state| account_proof(view, state, &header, (address, &slots), show))
}

fn account_proof(
    view: &dyn State,
    state: &dyn StateReader,
    header: &BlockHeader,
    (address, slots): (Address, &[U256]),
    show: ShowPath,
) -> Result<RpcAccountProof, StateError> {
    // The values are read first, because their errors name the missing keys, for which proofs can be requested.
    let found = state.account(&address)?;
    let exists = found.is_some();
    let account = found.unwrap_or(NO_ACCOUNT);
    let path = |key: &[u8], missing: StateKey, exists: bool| {
        // Reading the value has refused nodes that do not parse, so that only a missing node can be the reason.
        let nodes = view.prove(header, key).map_err(|_| StateError::Missing(missing))?;
        Ok(show(&nodes, exists))
    };
    let mut storage_proof = Vec::with_capacity(slots.len());
    for slot in slots {
        let value = state.storage(&address, slot)?;
        let missing = StateKey::Storage(address, *slot);
        let proof = path(&keys::slot_key(&address, slot), missing, !value.is_empty())?;
        storage_proof.push(RpcStorageProof { key: format!("{slot:#x}"), value: quantity(&value), proof });
    }
    Ok(RpcAccountProof {
        address: format!("{address:#x}"),
        account_proof: path(&keys::account_key(&address), StateKey::Account(address), exists)?,
        balance: format!("{:#x}", account.balance),
        code_hash: format!("{}", account.code_hash),
        nonce: format!("{:#x}", account.nonce),
        storage_hash: format!("{}", storage_hash(view, header, &address)?),
        storage_proof,
    })
}

/// Hash of the node at the account's storage marker, which has no meaning in consensus; the hash of the empty trie if
/// there is no storage.
pub(super) fn storage_hash(
    view: &dyn State,
    header: &BlockHeader,
    address: &Address,
) -> Result<B256, StateError> {
    // The path of every slot leads through the marker, so that a proof of slot 0 contains it.
    let missing = StateError::Missing(StateKey::Storage(*address, U256::ZERO));
    let found = view.node_hash(header, &keys::storage_root_key(address)).map_err(|_| missing)?;
    Ok(found.unwrap_or(trie::EMPTY_ROOT))
}

/// A storage value as a number in hex; a value of more than 32 bytes, of a native contract, as its bytes.
fn quantity(value: &[u8]) -> String {
    match U256::try_from_be_slice(value) {
        Some(number) => format!("{number:#x}"),
        None => hex::encode_prefixed(value),
    }
}
