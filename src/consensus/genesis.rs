//! Block 0 from an allocation file (the format of the reference's `genesis/*.json`).

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use super::network::Network;
use super::rule::Rule;
use crate::trie::{Trie, EMPTY_ROOT};
use crate::types::{
    keccak256, Address, Bloom, Bytes, Header, RawUint, SealedHeader, SignedUint, B256, EMPTY_UNCLES_HASH,
    U256,
};

/// Why a text is no genesis.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GenesisError {
    /// Not JSON of the right shape.
    #[error("genesis: {0}")]
    Json(#[from] serde_json::Error),
    /// A field is not what it should be.
    #[error("genesis: {field}: {value} is not {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its text.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// An account with code or storage: the state root must be given then.
    #[error("genesis: account {0} has a contract, and there is no stateRoot")]
    Contract(Address),
}

/// The native contracts that get an account at the start, with the rule that brings each (evm addresses, low bytes).
const NATIVE_CONTRACTS: &[(Rule, &[u64])] = &[
    (Rule::Rskip126, &[1, 2, 3, 4, 5, 0x0100_0006, 0x0100_0008]),
    (Rule::Rskip106, &[0x0100_0009]),
    (Rule::Rskip119, &[0x0100_0010]),
    (Rule::Rskip137, &[6, 7, 8]),
    (Rule::Rskip153, &[9]),
    (Rule::Rskip203, &[0x0100_0011]),
    (Rule::Rskip516, &[0x0100_0016, 0x0100_0017]),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow, default)]
    alloc: BTreeMap<Cow<'a, str>, AllocFile<'a>>,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    extra_data: Cow<'a, str>,
    #[serde(borrow)]
    gas_limit: Cow<'a, str>,
    #[serde(borrow)]
    difficulty: Cow<'a, str>,
    #[serde(borrow)]
    coinbase: Cow<'a, str>,
    #[serde(borrow)]
    minimum_gas_price: Cow<'a, str>,
    #[serde(borrow, default)]
    parent_hash: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    state_root: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    bitcoin_merged_mining_header: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    bitcoin_merged_mining_merkle_proof: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    bitcoin_merged_mining_coinbase_transaction: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct AllocFile<'a> {
    #[serde(borrow, default)]
    balance: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    nonce: Option<&'a RawValue>,
    #[serde(borrow, default)]
    contract: Option<&'a RawValue>,
}

/// An account of the allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// The account.
    pub address: Address,
    /// Balance in wei.
    pub balance: U256,
    /// Nonce.
    pub nonce: u64,
}

/// Block 0's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genesis {
    /// Accounts that start with a balance.
    pub alloc: Vec<Allocation>,
    /// State root that the file states; without one it is computed from the allocation.
    pub state_root: Option<B256>,
    timestamp: u64,
    extra_data: Bytes,
    gas_limit: RawUint,
    /// Its bytes are kept as they are, leading zeros too.
    difficulty: SignedUint,
    coinbase: Address,
    minimum_gas_price: SignedUint,
    parent_hash: B256,
    /// Bitcoin header, Merkle proof, coinbase.
    mining: [Bytes; 3],
}

impl Genesis {
    /// Reads an allocation file.
    pub fn from_json(text: &str) -> Result<Self, GenesisError> {
        let file: File<'_> = serde_json::from_str(text)?;
        let state_root =
            file.state_root.as_deref().map(|text| fixed("stateRoot", text)).transpose()?.map(B256::from);
        let parent_hash = file.parent_hash.as_deref().map(|text| fixed("parentHash", text)).transpose()?;
        let mining = |field, text: &Option<Cow<'_, str>>| match text {
            Some(text) => bytes(field, text).map(Bytes::from),
            None => Ok(Bytes::from_static(&[0])),
        };
        let difficulty = bytes("difficulty", &file.difficulty)?;
        let minimum_gas_price = U256::try_from_be_slice(&bytes("minimumGasPrice", &file.minimum_gas_price)?);
        let out_of_range = |field, text: &str| wrong(field, text, "a number in range");
        Ok(Self {
            alloc: allocation(&file.alloc, state_root.is_some())?,
            state_root,
            timestamp: small("timestamp", &file.timestamp)?,
            extra_data: bytes("extraData", &file.extra_data)?.into(),
            gas_limit: RawUint::minimal(uint("gasLimit", &file.gas_limit)?),
            difficulty: SignedUint::from_be_slice(&difficulty, true, "genesis.difficulty")
                .map_err(|_| out_of_range("difficulty", &file.difficulty))?,
            coinbase: Address::from(fixed("coinbase", &file.coinbase)?),
            minimum_gas_price: SignedUint::new(
                minimum_gas_price.ok_or_else(|| out_of_range("minimumGasPrice", &file.minimum_gas_price))?,
            ),
            parent_hash: parent_hash.map(B256::from).unwrap_or_default(),
            mining: [
                mining("bitcoinMergedMiningHeader", &file.bitcoin_merged_mining_header)?,
                mining("bitcoinMergedMiningMerkleProof", &file.bitcoin_merged_mining_merkle_proof)?,
                mining(
                    "bitcoinMergedMiningCoinbaseTransaction",
                    &file.bitcoin_merged_mining_coinbase_transaction,
                )?,
            ],
        })
    }

    /// The header of block 0 on a network.
    #[must_use]
    pub fn header(&self, network: &Network) -> SealedHeader {
        let shape = network.header_shape(0);
        let [bitcoin_header, merkle_proof, coinbase_tx] = self.mining.clone();
        let header = Header {
            shape,
            parent_hash: self.parent_hash,
            uncles_hash: EMPTY_UNCLES_HASH,
            coinbase: Some(self.coinbase),
            state_root: self.state_root.unwrap_or_else(|| self.computed_state(network).root()),
            transactions_root: EMPTY_ROOT,
            receipts_root: EMPTY_ROOT,
            logs_bloom: Bloom::ZERO,
            difficulty: self.difficulty,
            number: 0,
            gas_limit: self.gas_limit,
            gas_used: 0,
            timestamp: self.timestamp,
            extra_data: self.extra_data.clone(),
            paid_fees: U256::ZERO,
            minimum_gas_price: self.minimum_gas_price,
            uncle_count: 0,
            umm_root: Bytes::new(),
            edges: Vec::new(),
            base_event: Bytes::new(),
            bitcoin_header,
            merkle_proof,
            coinbase_tx,
        };
        header.seal()
    }

    /// The state of the allocation and of the native contracts that exist from block 0 (Unitrie networks).
    #[must_use]
    pub fn computed_state(&self, network: &Network) -> Trie {
        let mut state = Trie::new();
        for account in &self.alloc {
            put_account(&mut state, &account.address, account.nonce, account.balance);
        }
        let natives = NATIVE_CONTRACTS.iter().filter(|(rule, _)| network.activation(*rule) == Some(0));
        for low in natives.flat_map(|(_, addresses)| addresses.iter()) {
            let address = Address::left_padding_from(&low.to_be_bytes());
            if !self.alloc.iter().any(|account| account.address == address) {
                put_account(&mut state, &address, 0, U256::ZERO);
            }
            let mut marker = account_key(&address);
            marker.push(0);
            state.put(&marker, Bytes::from_static(&[1]));
        }
        state
    }
}

/// Key of an account in the state trie: `00 | keccak(address)[0..10] | address`.
fn account_key(address: &Address) -> Vec<u8> {
    let mut key = alloc::vec![0];
    key.extend(keccak256(address).iter().take(10));
    key.extend(address.iter());
    key
}

/// `RLP([nonce, balance])`, the balance signed with 00 for zero.
fn put_account(state: &mut Trie, address: &Address, nonce: u64, balance: U256) {
    let mut items = Vec::new();
    RawUint::from(nonce).put(&mut items);
    SignedUint::new(balance).put(&mut items);
    let mut value = Vec::new();
    alloy_rlp::Header { list: true, payload_length: items.len() }.encode(&mut value);
    value.extend(items);
    state.put(&account_key(address), value);
}

fn allocation(
    accounts: &BTreeMap<Cow<'_, str>, AllocFile<'_>>,
    root_given: bool,
) -> Result<Vec<Allocation>, GenesisError> {
    let mut out = Vec::new();
    for (address, account) in accounts {
        let address = Address::from(fixed("alloc", address)?);
        if account.contract.is_some() && !root_given {
            return Err(GenesisError::Contract(address));
        }
        let balance = account.balance.as_deref().unwrap_or("0");
        let nonce = account.nonce.map_or("0", |raw| raw.get().trim_matches('"'));
        out.push(Allocation { address, balance: uint("balance", balance)?, nonce: small("nonce", nonce)? });
    }
    Ok(out)
}

fn wrong(field: &'static str, value: &str, expected: &'static str) -> GenesisError {
    GenesisError::Field { field, value: value.into(), expected }
}

/// Hex digits with or without 0x, an odd number of them taken as having a zero in front.
fn bytes(field: &'static str, text: &str) -> Result<Vec<u8>, GenesisError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let even = if digits.len().is_multiple_of(2) {
        Cow::Borrowed(digits)
    } else {
        Cow::Owned(["0", digits].concat())
    };
    alloy_primitives::hex::decode(even.as_ref()).map_err(|_| wrong(field, text, "hex data"))
}

fn fixed<const N: usize>(field: &'static str, text: &str) -> Result<[u8; N], GenesisError> {
    bytes(field, text)?.try_into().map_err(|_| wrong(field, text, "of the right length"))
}

/// Decimal, or hex with 0x.
fn uint(field: &'static str, text: &str) -> Result<U256, GenesisError> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) if !digits.is_empty() => U256::from_str_radix(digits, 16).ok(),
        None if !text.is_empty() => U256::from_str_radix(text, 10).ok(),
        _ => None,
    };
    parsed.ok_or_else(|| wrong(field, text, "a number in range"))
}

fn small(field: &'static str, text: &str) -> Result<u64, GenesisError> {
    // Times and nonces fit 63 bits.
    let value = u64::try_from(uint(field, text)?).ok().filter(|value| *value <= i64::MAX as u64);
    value.ok_or_else(|| wrong(field, text, "a number in range"))
}
