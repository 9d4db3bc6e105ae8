//! Block 0 of a network of one's own, from an allocation file (the format of the reference node's `genesis/*.json`) or as on regtest.
//! `genesis_state` computes its state.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::{address, uint};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use super::network::Network;
use crate::trie::EMPTY_ROOT;
use crate::types::{Address, B256, Bytes, Header, RawUint, SealedHeader, SignedUint, U256};

/// Why a text is not a valid genesis.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum GenesisError {
    /// The text is not JSON of the expected form.
    #[error("genesis: {0}")]
    Json(#[from] serde_json::Error),
    #[error("genesis: {field}: {value} is not {expected}")]
    Field { field: &'static str, value: String, expected: &'static str },
}

/// The fields of an allocation file; all but the accounts are fields of the header. Numbers and bytes are texts in hex or decimal.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GenesisFile<'a> {
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

/// An account in the field `alloc`.
#[derive(Deserialize)]
struct AllocFile<'a> {
    #[serde(borrow, default)]
    balance: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    nonce: Option<&'a RawValue>,
    #[serde(borrow, default)]
    contract: Option<ContractFile<'a>>,
}

/// Code and storage of an account; `data` is the storage, values by slot.
#[derive(Deserialize)]
struct ContractFile<'a> {
    #[serde(borrow, default)]
    code: Cow<'a, str>,
    #[serde(borrow, default)]
    data: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// An account of the allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The account.
    pub address: Address,
    /// Balance in wei.
    pub balance: U256,
    /// Nonce.
    pub nonce: u64,
    /// Code and storage, if the account is a contract.
    pub contract: Option<AllocatedContract>,
}

/// A contract of the allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllocatedContract {
    /// The code of the contract.
    pub code: Bytes,
    /// Storage cells by slot; the values have their leading zeros as in the file.
    pub storage: Vec<(U256, Bytes)>,
}

/// The contents of block 0: the fields of its header, and the accounts of its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genesis {
    /// Accounts that exist from block 0 on.
    pub alloc: Vec<Allocation>,
    /// The state root stated in the file. If `None`, it is computed from the allocation.
    pub state_root: Option<B256>,
    timestamp: u64,
    extra_data: Bytes,
    gas_limit: RawUint,
    /// With the leading zeros of the file, because they are hashed.
    difficulty: SignedUint,
    coinbase: Address,
    minimum_gas_price: SignedUint,
    parent_hash: B256,
    /// The header's fields of merged mining: Bitcoin header, Merkle proof, coinbase.
    mining: [Bytes; 3],
}

/// Accounts of the regtest genesis besides the Bridge, named after their private keys: the Keccak-256 of `cow`, `cow1` to `cow9`.
const COWS: [Address; 10] = [
    address!("cd2a3d9f938e13cd947ec05abc7fe734df8dd826"),
    address!("7986b3df570230288501eea3d890bd66948c9b79"),
    address!("0a3aa774752ec2042c46548456c094a76c7f3a79"),
    address!("cf7cdbbb5f7ba79d3ffe74a0bba13fc0295f6036"),
    address!("39b12c05e8503356e3a7df0b7b33efa4c054c409"),
    address!("c354d97642faa06781b76ffb6786f72cd7746c97"),
    address!("debe71e1de41fc77c44df4b6db940026e31b0e71"),
    address!("7857288e171c6159c5576d1bd9ac40c0c48a771c"),
    address!("a4dea4d5c954f5fd9e87f0e9752911e83a3d18b3"),
    address!("09a1eda29f664ac8f68106f6567276df0c65d859"),
];
/// Balance of each of these accounts: 10^12 RBTC, in wei.
const COW_BALANCE: U256 = uint!(1_000_000_000_000_000_000_000_000_000_000_U256);
/// The Bridge starts with all 21 million RBTC, in wei.
const BRIDGE_BALANCE: U256 = uint!(21_000_000_000_000_000_000_000_000_U256);
/// The Bridge, the native contract that moves coins between Bitcoin and Rootstock. Its balance is the coins that are not on Rootstock.
const BRIDGE: Address = address!("0000000000000000000000000000000001000006");

impl Genesis {
    /// The regtest genesis of the reference node (`rsk-dev.json`).
    #[must_use]
    pub fn regtest() -> Self {
        let account = |address, balance| Allocation { address, balance, ..Allocation::default() };
        let mut alloc = alloc::vec![account(BRIDGE, BRIDGE_BALANCE)];
        alloc.extend(COWS.map(|cow| account(cow, COW_BALANCE)));
        Self {
            alloc,
            state_root: None,
            timestamp: 0,
            extra_data: Bytes::from_static(b"horse"),
            gas_limit: RawUint::minimal(U256::from(10_000_000)),
            difficulty: SignedUint::padded(U256::from(1), 5),
            coinbase: Address::repeat_byte(0x33),
            minimum_gas_price: SignedUint::new(U256::ZERO),
            parent_hash: B256::ZERO,
            mining: [const { Bytes::from_static(&[0]) }; 3],
        }
    }

    /// Replaces the accounts that start with a balance. The caller includes the Bridge.
    #[must_use]
    pub fn with_alloc(self, alloc: Vec<Allocation>) -> Self {
        Self { alloc, state_root: None, ..self }
    }

    /// Writes a chain id other than regtest's into the extra data, so that chains of different ids have different blocks 0.
    #[cfg(feature = "dev")]
    pub(crate) fn with_chain_id(self, chain_id: u64) -> Self {
        match chain_id == Network::regtest().chain_id {
            true => self,
            false => Self { extra_data: alloc::format!("chain id {chain_id}").into_bytes().into(), ..self },
        }
    }

    /// Replaces the timestamp, in seconds since 1970.
    #[must_use]
    pub fn with_timestamp(self, timestamp: u64) -> Self {
        Self { timestamp, ..self }
    }

    /// Reads an allocation file.
    pub fn from_json(text: &str) -> Result<Self, GenesisError> {
        let file: GenesisFile<'_> = serde_json::from_str(text)?;
        let state_root =
            file.state_root.as_deref().map(|text| fixed("stateRoot", text)).transpose()?.map(B256::from);
        let parent_hash = file.parent_hash.as_deref().map(|text| fixed("parentHash", text)).transpose()?;
        // A missing field counts as one zero byte, as in the reference node.
        let mining = |field, text: &Option<Cow<'_, str>>| match text {
            Some(text) => bytes(field, text).map(Bytes::from),
            None => Ok(Bytes::from_static(&[0])),
        };
        let difficulty = bytes("difficulty", &file.difficulty)?;
        let minimum_gas_price = U256::try_from_be_slice(&bytes("minimumGasPrice", &file.minimum_gas_price)?);
        let out_of_range = |field, text: &str| wrong(field, text, "a number in range");
        Ok(Self {
            alloc: allocation(&file.alloc)?,
            state_root,
            timestamp: parse_u64("timestamp", &file.timestamp)?,
            extra_data: bytes("extraData", &file.extra_data)?.into(),
            gas_limit: RawUint::minimal(number("gasLimit", &file.gas_limit)?),
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
    pub fn header(&self, network: &Network) -> SealedHeader {
        let [bitcoin_header, merkle_proof, coinbase_tx] = self.mining.clone();
        let header = Header {
            parent_hash: self.parent_hash,
            coinbase: Some(self.coinbase),
            state_root: self.state_root.unwrap_or_else(|| self.computed_state(network).root()),
            transactions_root: EMPTY_ROOT,
            receipts_root: EMPTY_ROOT,
            difficulty: self.difficulty,
            gas_limit: self.gas_limit,
            timestamp: self.timestamp,
            extra_data: self.extra_data.clone(),
            minimum_gas_price: self.minimum_gas_price,
            bitcoin_header,
            merkle_proof,
            coinbase_tx,
            ..Header::empty(network.header_shape(0), 0)
        };
        header.seal()
    }
}

fn allocation(accounts: &BTreeMap<Cow<'_, str>, AllocFile<'_>>) -> Result<Vec<Allocation>, GenesisError> {
    let mut out = Vec::new();
    // The reference node skips the key 00.
    for (address, account) in accounts.iter().filter(|(address, _)| address.as_ref() != "00") {
        let balance = account.balance.as_deref().unwrap_or("0");
        let nonce = account.nonce.map_or("0", |raw| raw.get().trim_matches('"'));
        out.push(Allocation {
            address: Address::from(fixed("alloc", address)?),
            balance: number("balance", balance)?,
            nonce: parse_u64("nonce", nonce)?,
            contract: account.contract.as_ref().map(contract).transpose()?,
        });
    }
    Ok(out)
}

fn contract(file: &ContractFile<'_>) -> Result<AllocatedContract, GenesisError> {
    let mut storage = Vec::new();
    for (slot, value) in &file.data {
        let slot = U256::try_from_be_slice(&bytes("contract.data", slot)?)
            .ok_or_else(|| wrong("contract.data", slot, "a word"))?;
        storage.push((slot, bytes("contract.data", value)?.into()));
    }
    Ok(AllocatedContract { code: bytes("contract.code", &file.code)?.into(), storage })
}

/// The error that a field has another value than expected.
fn wrong(field: &'static str, value: &str, expected: &'static str) -> GenesisError {
    GenesisError::Field { field, value: value.into(), expected }
}

/// Parses hex digits with or without 0x. An odd number of digits gets a leading zero.
fn bytes(field: &'static str, text: &str) -> Result<Vec<u8>, GenesisError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let even = if digits.len().is_multiple_of(2) {
        Cow::Borrowed(digits)
    } else {
        Cow::Owned(["0", digits].concat())
    };
    alloy_primitives::hex::decode(even.as_ref()).map_err(|_| wrong(field, text, "hex data"))
}

/// Parses hex digits of exactly `N` bytes.
fn fixed<const N: usize>(field: &'static str, text: &str) -> Result<[u8; N], GenesisError> {
    bytes(field, text)?.try_into().map_err(|_| wrong(field, text, "of the right length"))
}

/// Parses a number: decimal, or hex with 0x.
fn number(field: &'static str, text: &str) -> Result<U256, GenesisError> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) if !digits.is_empty() => U256::from_str_radix(digits, 16).ok(),
        None if !text.is_empty() => U256::from_str_radix(text, 10).ok(),
        _ => None,
    };
    parsed.ok_or_else(|| wrong(field, text, "a number in range"))
}

fn parse_u64(field: &'static str, text: &str) -> Result<u64, GenesisError> {
    // Times and nonces must fit in 63 bits.
    let value = u64::try_from(number(field, text)?).ok().filter(|value| *value <= i64::MAX as u64);
    value.ok_or_else(|| wrong(field, text, "a number in range"))
}
