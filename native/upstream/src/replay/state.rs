//! State responses computed from recorded trie nodes: proofs of inclusion and absence, code and storage.
//!
//! The reference node has no `eth_getProof`, so that its recordings have no proofs, but they can have trie nodes. Proofs have the
//! form of `eth_getProof`'s result: nodes from the root down, each as an RLP string.

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};
use rootlight::state::Account;
use rootlight::state::keys::{account_key, code_key, slot_key, storage_root_key};
use rootlight::trie::{EMPTY_ROOT, Lookup, NodeSource, WalkError, lookup_node, lookup_value, prove};
use serde_json::{Value, json};

use super::chain::quantity;
use super::index::RecordingIndex;
use crate::UpstreamError;

/// JSON-RPC code of bad parameters.
const INVALID_PARAMS: i64 = -32602;

/// Why a request about state has no response.
pub(super) enum NoAnswer {
    /// The recording lacks the method, block or node.
    NotRecorded,
    /// The parameters of the request are invalid.
    Invalid(String),
}

impl From<WalkError> for NoAnswer {
    fn from(_: WalkError) -> Self {
        Self::NotRecorded
    }
}

impl From<NoAnswer> for Option<UpstreamError> {
    fn from(reason: NoAnswer) -> Self {
        match reason {
            NoAnswer::NotRecorded => None,
            NoAnswer::Invalid(message) => Some(invalid_params(message)),
        }
    }
}

/// The JSON-RPC error of invalid parameters.
pub(super) fn invalid_params(message: String) -> UpstreamError {
    UpstreamError::Rpc { code: INVALID_PARAMS, message, data: None }
}

impl NodeSource for RecordingIndex {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        RecordingIndex::node(self, hash)
    }
}

/// Responds to the methods that read or prove state.
pub(super) fn answer(index: &RecordingIndex, method: &str, params: &[Value]) -> Result<Value, NoAnswer> {
    match (method, params) {
        ("eth_getProof", [address, slots, block]) => {
            let slots = slots.as_array().ok_or_else(|| invalid("storage keys are not an array"))?;
            let slots: Vec<U256> = slots.iter().map(slot).collect::<Result<_, _>>()?;
            proof(index, state_root(index, block)?, &self::address(address)?, &slots)
        }
        ("eth_getCode", [address, block]) => {
            let code = lookup_value(index, state_root(index, block)?, &code_key(&self::address(address)?))?;
            Ok(hex::encode_prefixed(code.unwrap_or_default()).into())
        }
        ("eth_getStorageAt", [address, slot, block]) => {
            let key = slot_key(&self::address(address)?, &self::slot(slot)?);
            let value = lookup_value(index, state_root(index, block)?, &key)?.unwrap_or_default();
            let word = U256::try_from_be_slice(&value).ok_or(NoAnswer::NotRecorded)?;
            Ok(hex::encode_prefixed(word.to_be_bytes::<32>()).into())
        }
        // The reference node's method for values longer than a word.
        ("rsk_getStorageBytesAt" | "ext_getStorageBytesAt", [address, slot, block]) => {
            let key = slot_key(&self::address(address)?, &self::slot(slot)?);
            let value = lookup_value(index, state_root(index, block)?, &key)?;
            Ok(value.map_or_else(|| "0x0".into(), hex::encode_prefixed).into())
        }
        _ => Err(NoAnswer::NotRecorded),
    }
}

/// Builds the response of `eth_getProof` (EIP-1186 fields; one trie holds accounts and storage).
pub(super) fn proof(
    source: &dyn NodeSource,
    root: B256,
    address: &Address,
    slots: &[U256],
) -> Result<Value, NoAnswer> {
    let key = account_key(address);
    let account = lookup_value(source, root, &key)?;
    let fields = account
        .as_ref()
        .map(|bytes| Account::decode(bytes))
        .transpose()
        .map_err(|_| NoAnswer::NotRecorded)?;
    let code_hash = match lookup_node(source, root, &code_key(address))?.map(|node| node.value) {
        Some(Lookup::Found(code)) => keccak256(code),
        Some(Lookup::FoundLong { hash, .. }) => hash,
        // The reference node returns a zero hash for absent accounts.
        _ if account.is_none() => B256::ZERO,
        // The code hash of an account without code.
        _ => KECCAK256_EMPTY,
    };
    let storage = lookup_node(source, root, &storage_root_key(address))?;
    let storage_hash =
        storage.filter(|node| node.value != Lookup::Absent).map_or(EMPTY_ROOT, |node| node.hash);
    let storage: Vec<Value> =
        slots.iter().map(|slot| storage_proof(source, root, address, slot)).collect::<Result<_, _>>()?;
    let fields = fields.unwrap_or_default();
    Ok(json!({
        "address": hex::encode_prefixed(address),
        "accountProof": wrapped(prove(source, root, &key)?),
        "balance": format!("{:#x}", fields.balance),
        "codeHash": hex::encode_prefixed(code_hash),
        "nonce": format!("{:#x}", fields.nonce),
        "storageHash": hex::encode_prefixed(storage_hash),
        "storageProof": storage,
    }))
}

/// The proof of one storage slot.
fn storage_proof(
    source: &dyn NodeSource,
    root: B256,
    address: &Address,
    slot: &U256,
) -> Result<Value, NoAnswer> {
    let key = slot_key(address, slot);
    let value = lookup_value(source, root, &key)?.unwrap_or_default();
    // A value longer than a word (the Bridge has some) is returned as its bytes.
    let value = U256::try_from_be_slice(&value)
        .map_or_else(|| hex::encode_prefixed(&value), |word| format!("{word:#x}"));
    Ok(json!({
        "key": format!("{slot:#x}"),
        "value": value,
        "proof": wrapped(prove(source, root, &key)?),
    }))
}

/// Encodes each node as an RLP string in hex.
fn wrapped(nodes: Vec<Bytes>) -> Vec<String> {
    nodes.iter().map(|node| hex::encode_prefixed(alloy_rlp::encode(node))).collect()
}

/// Returns the state root of the block that a parameter names: number, tag, hash, or EIP-1898 object.
fn state_root(index: &RecordingIndex, block: &Value) -> Result<B256, NoAnswer> {
    let chain = index.chain();
    let by_hash = |text: &str| text.parse().ok().and_then(|hash| chain.by_hash(&hash));
    let by_number = |text: &str| match text {
        "latest" => chain.head().and_then(|head| chain.by_number(head)),
        "earliest" => chain.by_number(0),
        number => quantity(number).and_then(|number| chain.by_number(number)),
    };
    let found = match block {
        Value::String(text) if text.len() == 66 => by_hash(text),
        Value::String(text) => by_number(text),
        Value::Object(members) => match (members.get("blockHash"), members.get("blockNumber")) {
            (Some(Value::String(hash)), None) => by_hash(hash),
            (None, Some(Value::String(number))) => by_number(number),
            _ => return Err(invalid("block object names no block")),
        },
        _ => return Err(invalid("block is neither a string nor an object")),
    };
    found.map(|block| block.state_root).ok_or(NoAnswer::NotRecorded)
}

fn address(value: &Value) -> Result<Address, NoAnswer> {
    value.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| invalid("not an address"))
}

/// Parses a slot: hex of up to 32 bytes, with or without leading zeros.
fn slot(value: &Value) -> Result<U256, NoAnswer> {
    let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
    digits
        .and_then(|digits| U256::from_str_radix(digits, 16).ok())
        .ok_or_else(|| invalid("not a storage slot"))
}

fn invalid(reason: &str) -> NoAnswer {
    NoAnswer::Invalid(reason.into())
}
