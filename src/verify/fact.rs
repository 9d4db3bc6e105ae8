//! Proven facts about receipts, accounts and storage, in words and as named values; `header_fact` has those about headers and blocks.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt;

use super::finding::{Finding, Put, finding};
use super::header_fact::HeaderFact;
use crate::state::AccountState;
use crate::types::number::Decimal;
use crate::types::{Address, B256, Bytes, Receipt, U256};

/// One proven fact.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProvenFact {
    /// A fact about a header or a block.
    Header(HeaderFact),
    /// A receipt and its index in the block.
    Receipt {
        /// Index of the transaction in the block.
        index: u64,
        /// The receipt.
        receipt: Box<Receipt>,
    },
    /// An account, or its absence.
    Account {
        /// The address of the account.
        address: Address,
        /// The state of the account; `None` if it does not exist.
        account: Option<AccountState>,
    },
    /// The hash of the node at the account's storage prefix.
    StorageHash(B256),
    /// A storage slot.
    Slot {
        /// The slot.
        key: U256,
        /// The proven content.
        content: SlotContent,
    },
}

/// The content of a storage slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotContent {
    /// Nothing, which reads as zero.
    Absent,
    /// A word.
    Word(U256),
    /// A longer value, as native contracts store.
    Bytes(Bytes),
    /// A longer value, of which only length and hash are proven.
    Hash {
        /// Keccak-256 of the value.
        hash: B256,
        /// Length in bytes.
        len: u32,
    },
}

impl SlotContent {
    /// The word; zero for an absent or longer value.
    pub(super) const fn word(&self) -> U256 {
        match self {
            Self::Word(word) => *word,
            _ => U256::ZERO,
        }
    }

    /// The words for the rule that proves this content.
    const fn rule(&self) -> &'static str {
        match self {
            Self::Absent => "absence under the state root",
            Self::Word(_) => "inclusion under the state root",
            Self::Bytes(_) | Self::Hash { .. } => "inclusion of its hash under the state root",
        }
    }
}

impl fmt::Display for SlotContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent | Self::Word(_) => write!(f, "{:#x}", self.word()),
            Self::Bytes(value) => write!(f, "{value}"),
            Self::Hash { hash, len } => write!(f, "{len} bytes with hash {hash}"),
        }
    }
}

impl From<HeaderFact> for ProvenFact {
    fn from(fact: HeaderFact) -> Self {
        Self::Header(fact)
    }
}

impl ProvenFact {
    /// The fact in words; large facts have several findings.
    pub fn findings(&self) -> Vec<Finding> {
        let one = |what: &str, value: &dyn fmt::Display, rule| vec![finding(what, value, rule)];
        match self {
            Self::Header(fact) => fact.findings(),
            Self::Receipt { index, receipt } => receipt_findings(*index, receipt),
            Self::Account { address, account } => account_findings(address, account.as_ref()),
            Self::StorageHash(hash) => one("storage hash", hash, "trie nodes of the account"),
            Self::Slot { key, content } => one(&format!("slot {key:#x}"), content, content.rule()),
        }
    }

    /// Adds the values by name (see [`super::Report::values`]).
    pub(super) fn put_values(&self, values: &mut Vec<(String, String)>) {
        let mut put = |name: &str, value: &dyn fmt::Display| values.push((name.into(), value.to_string()));
        match self {
            Self::Header(fact) => fact.put_values(&mut put),
            Self::Receipt { index, receipt } => put_receipt(*index, receipt, &mut put),
            Self::Account { address, account } => put_account(address, account.as_ref(), &mut put),
            Self::StorageHash(hash) => put("storageHash", hash),
            Self::Slot { key, content } => put(&format!("storage[{key:#x}]"), content),
        }
    }
}

fn receipt_findings(index: u64, receipt: &Receipt) -> Vec<Finding> {
    let rule = "inclusion under the receipts root (RSKIP-107 trie)";
    vec![
        finding("receipt", &format_args!("of the transaction at index {index}"), rule),
        finding("status", &status(receipt), "receipt"),
        finding("gas used", &receipt.gas_used, "receipt"),
        finding("logs", &format_args!("{} in order, bloom recomputed", receipt.logs.len()), "receipt"),
    ]
}

fn account_findings(address: &Address, account: Option<&AccountState>) -> Vec<Finding> {
    let Some(of) = account else {
        let value = format_args!("{address} does not exist");
        return vec![finding("account", &value, "absence under the state root")];
    };
    vec![
        finding("account", address, "inclusion under the state root"),
        finding("balance", &format_args!("{:#x} wei", of.balance), "account"),
        finding("nonce", &of.nonce, "account"),
        finding("code hash", &of.code_hash, "trie nodes of the account"),
    ]
}

const fn status(receipt: &Receipt) -> &'static str {
    if receipt.success { "success" } else { "failure" }
}

fn put_receipt(index: u64, receipt: &Receipt, put: Put<'_>) {
    put("index", &index);
    put("status", &status(receipt));
    put("gasUsed", &receipt.gas_used);
    put("cumulativeGasUsed", &receipt.cumulative_gas_used);
    for (at, log) in receipt.logs.iter().enumerate() {
        put(&format!("logs[{at}].address"), &format_args!("{:#x}", log.address));
        for (position, topic) in log.topics.iter().enumerate() {
            put(&format!("logs[{at}].topics[{position}]"), topic);
        }
        put(&format!("logs[{at}].data"), &log.data);
    }
}

fn put_account(address: &Address, account: Option<&AccountState>, put: Put<'_>) {
    put("address", &format_args!("{address:#x}"));
    put("exists", &account.is_some());
    if let Some(account) = account {
        put("nonce", &account.nonce);
        put("balance", &Decimal(&account.balance));
        put("codeHash", &account.code_hash);
        put("codeSize", &account.code_size);
    }
}
