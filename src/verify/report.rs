//! The result of one verification, and the kinds of checks.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::Serialize;

use super::DocumentSubject;
use super::fact::ProvenFact;
use super::finding::Finding;
use super::input_error::InputError;
use super::root_kind::RootKind;

/// The kinds of checks. [`Rule::name`] is their name in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The document is complete and parses.
    Document,
    /// The header's fields hash to the stated block hash.
    HeaderHash,
    /// Proof of work, and the header rules that need no other block.
    HeaderRules,
    /// Each header is the child of the one before it.
    HeaderLinks,
    /// Values stated beside a header (a root, a block hash) equal those in the header.
    HeaderValues,
    /// The transactions are those that the transactions root commits to, in order.
    Transactions,
    /// The signature of each transaction gives a sender.
    Senders,
    /// The uncles are those that the uncles hash commits to, each with its own proof of work.
    Uncles,
    /// The receipts are those that the receipts root commits to, in order.
    Receipts,
    /// The receipt is the one that the receipts root commits to.
    ReceiptInclusion,
    /// The receipt's bloom is that of its logs. In a valid block it always is, so this check guards against faults of the parser too.
    ReceiptBloom,
    /// Trie nodes link the state root to the key, present or absent, and none is left over.
    StateProof,
    /// Balance, nonce, code hash, storage hash and storage values are those in the proven nodes.
    StateValues,
}

impl Rule {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::HeaderHash => "headerHash",
            Self::HeaderRules => "headerRules",
            Self::HeaderLinks => "headerLinks",
            Self::HeaderValues => "headerValues",
            Self::Transactions => "transactions",
            Self::Senders => "senders",
            Self::Uncles => "uncles",
            Self::Receipts => "receipts",
            Self::ReceiptInclusion => "receiptInclusion",
            Self::ReceiptBloom => "receiptBloom",
            Self::StateProof => "stateProof",
            Self::StateValues => "stateValues",
        }
    }
}

/// One check that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The kind of check.
    pub rule: Rule,
    /// The result of the check, in words.
    pub shown: String,
}

/// The check that failed. Nothing is proven beyond the checks before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct CheckFailure {
    /// The kind of check.
    pub rule: Rule,
    /// The part of the document that was checked, for instance `accountProof`; `input` if the document cannot be read.
    pub what: &'static str,
    /// The fault, in words, which may quote the document.
    pub reason: String,
}

impl CheckFailure {
    pub(super) fn new(rule: Rule, what: &'static str, reason: impl fmt::Display) -> Self {
        Self::of(rule, what, &reason)
    }

    /// As [`Self::new`], compiled once for all types of reasons.
    fn of(rule: Rule, what: &'static str, reason: &dyn fmt::Display) -> Self {
        Self { rule, what, reason: reason.to_string() }
    }
}

impl From<InputError> for CheckFailure {
    fn from(error: InputError) -> Self {
        Self::new(Rule::Document, "input", error)
    }
}

/// A statement or an assumption of the document that was not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotProven {
    /// A root was stated without a header.
    Root(RootKind),
    /// The position of a single header in the chain.
    HeaderChain,
    /// The position of consecutive headers in the chain.
    HeaderRunChain,
    /// The position of a block in the chain, and the execution of the block.
    BlockChain,
    /// The number of uncles of which the document has only the hashes.
    Uncles(usize),
    /// The values of a receipt that its inclusion does not prove.
    ReceiptContext,
    /// The stated storage hash, which the nodes do not show.
    StorageHash,
}

impl fmt::Display for NotProven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(kind) => write!(f, "the {} itself; give \"header\" to prove it", kind.words()),
            Self::HeaderChain => f.write_str(
                "that the header is on the heaviest chain, and that its difficulty follows from its parent",
            ),
            Self::HeaderRunChain => f.write_str(
                "that the first header is on the chain you mean, and that this is the heaviest one",
            ),
            Self::BlockChain => f.write_str(
                "that the block is on the heaviest chain, and that its state root follows from executing it",
            ),
            Self::Uncles(count) => {
                write!(f, "{count} uncle hashes: give their headers as \"uncles\" to prove them")
            }
            Self::ReceiptContext => f.write_str(
                "transaction hash, sender, recipient, effective gas price and the logs' index in the block: they \
                 follow from the body and the receipts before",
            ),
            Self::StorageHash => f.write_str("storageHash: the nodes given do not show it"),
        }
    }
}

/// The result of one verification. `Display` renders it as text, `Serialize` as JSON (docs/verify.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The subject of the document.
    pub subject: DocumentSubject,
    /// Name of the network whose rules apply to headers; `None` if the document may not have one.
    pub network: Option<String>,
    /// The checks that passed, in order.
    pub checks: Vec<Check>,
    /// The facts that the checks prove, in order.
    pub facts: Vec<ProvenFact>,
    /// The statements and assumptions that were not checked.
    pub not_proven: Vec<NotProven>,
    /// The rules of headers that were checked and those that were not, if the document is about one header.
    pub header_rules: Option<super::HeaderRules>,
    /// The check that failed, if one did.
    pub failed: Option<CheckFailure>,
}

impl Report {
    pub(super) fn new(subject: DocumentSubject, network: Option<&str>) -> Self {
        let (checks, facts, not_proven) = (Vec::new(), Vec::new(), Vec::new());
        let network = network.map(Into::into);
        Self { subject, network, checks, facts, not_proven, header_rules: None, failed: None }
    }

    /// Whether every check passed.
    pub const fn verified(&self) -> bool {
        self.failed.is_none()
    }

    /// The proven facts in words.
    pub fn proven(&self) -> Vec<Finding> {
        self.facts.iter().flat_map(ProvenFact::findings).collect()
    }

    /// The proven values by name, in order. Numbers are decimal, bytes and hashes are `0x` hexadecimal.
    pub fn values(&self) -> Vec<(String, String)> {
        let mut values = Vec::new();
        self.facts.iter().for_each(|fact| fact.put_values(&mut values));
        values
    }

    /// The proven value with this name (see [`Self::values`]).
    pub fn value(&self, name: &str) -> Option<String> {
        self.values().into_iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// Adds a check that passed, with its result in words.
    pub(super) fn passed(&mut self, rule: Rule, shown: impl fmt::Display) {
        self.add(rule, &shown);
    }

    /// As [`Self::passed`], compiled once for all types of values.
    fn add(&mut self, rule: Rule, shown: &dyn fmt::Display) {
        self.checks.push(Check { rule, shown: shown.to_string() });
    }
}
