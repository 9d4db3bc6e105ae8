//! Verifies a receipt with its trie nodes under a receipts root.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::fact::ProvenFact;
use super::input::{DocumentMembers, Input, bytes, hash, nodes, number};
use super::input_error::InputError;
use super::report::{CheckFailure, NotProven, Report, Rule};
use super::root::Root;
use super::root_kind::RootKind;
use crate::consensus::Network;
use crate::trie::{ReceiptProofError, prove_receipt, receipt_index};
use crate::types::json::receipt_from_json;
use crate::types::{B256, Bytes, Receipt};

/// A receipt, the trie nodes that prove it, and the claims about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptProof {
    /// The receipt's RLP. A receipt that was given as JSON is encoded.
    pub encoded: Bytes,
    /// A second encoding of the receipt, if it was given as JSON and has log data of one zero byte: older nodes show
    /// such data for empty data.
    pub other: Option<Bytes>,
    /// Trie nodes, raw or as RLP strings, root first or leaf first.
    pub nodes: Vec<Bytes>,
    /// The claimed index of the transaction in its block: the document's, and the one inside the receipt's JSON.
    pub indices: [Option<u64>; 2],
    /// The block hash that the receipt's JSON claims.
    pub block_hash: Option<B256>,
}

impl ReceiptProof {
    fn read(given: &DocumentMembers<'_>) -> Result<Self, CheckFailure> {
        let list = given.nodes.ok_or(InputError::Shape("nodes are missing".into()))?;
        let nodes = match Input::of(list.get())? {
            Input::Json(text) => nodes(text, "nodes")?,
            Input::Raw(_) => {
                return Err(InputError::Shape("nodes must be an array of hex strings".into()).into());
            }
        };
        let index = index(given)?;
        let mut proof =
            Self { encoded: Bytes::new(), other: None, nodes, indices: [index, None], block_hash: None };
        match (given.receipt, given.raw_receipt) {
            (Some(raw), None) => match Input::of(raw.get())? {
                Input::Raw(bytes) => proof.encoded = bytes.into(),
                Input::Json(text) => proof.read_json(text)?,
            },
            (None, Some(raw)) => proof.encoded = bytes(raw, "rawReceipt")?,
            _ => {
                return Err(
                    InputError::Shape("exactly one of receipt and rawReceipt is needed".into()).into()
                );
            }
        }
        Ok(proof)
    }

    /// Reads the receipt and its claims from a node's JSON.
    fn read_json(&mut self, text: &str) -> Result<(), CheckFailure> {
        let claims = DocumentMembers::read(text, "receipt")?;
        self.indices[1] = index(&claims)?;
        self.block_hash = claims.block_hash.map(|raw| hash(raw, "receipt.blockHash")).transpose()?;
        let mut receipt =
            receipt_from_json(text).map_err(|error| CheckFailure::new(Rule::Document, "receipt", error))?;
        self.encoded = receipt.encode().into();
        self.other = receipt.read_zero_byte_data_as_empty().then(|| receipt.encode().into());
        Ok(())
    }

    /// Proves the receipt under `root` and returns its index.
    fn prove(&mut self, root: B256) -> Result<u64, CheckFailure> {
        let found = self.index(root, &self.encoded);
        let index = match (found, self.other.take()) {
            (Err(_), Some(other)) => {
                self.encoded = other;
                self.index(root, &self.encoded)
            }
            (found, _) => found,
        };
        let index = index.map_err(|error| refuse(&error))?;
        match self.indices.into_iter().flatten().find(|claimed| *claimed != index) {
            Some(claimed) => Err(refuse(&format_args!("index {claimed} is claimed, {index} is proven"))),
            None => Ok(index),
        }
    }

    /// Proves this encoding and returns its index: the one that is claimed, or without a claim the one that the nodes show.
    fn index(&self, root: B256, encoded: &Bytes) -> Result<u64, ReceiptProofError> {
        match self.indices.into_iter().flatten().next() {
            Some(index) => prove_receipt(root, index, &self.nodes, encoded).map(|()| index),
            None => receipt_index(root, &self.nodes, encoded),
        }
    }
}

/// The failure of the proof.
fn refuse(reason: &dyn core::fmt::Display) -> CheckFailure {
    CheckFailure::new(Rule::ReceiptInclusion, "receipt proof", reason)
}

/// The index that a document claims, if it does.
fn index(given: &DocumentMembers<'_>) -> Result<Option<u64>, InputError> {
    const FIELD: &str = "transactionIndex";
    let Some(raw) = given.transaction_index else { return Ok(None) };
    let wide = number(raw, FIELD)?;
    u64::try_from(wide).map(Some).map_err(|_| InputError::Shape(format!("{FIELD} is not a 64-bit number")))
}

/// Checks `{receipt | rawReceipt, nodes, receiptsRoot | header, transactionIndex | index}`.
pub(super) fn check(
    input: &Input<'_>,
    network: Option<&Network>,
    report: &mut Report,
) -> Result<(), CheckFailure> {
    let given = input.members("receipt proof")?;
    let (root, mut proof) = (Root::read(&given, RootKind::Receipts, network)?, ReceiptProof::read(&given)?);
    report.passed(Rule::Document, format_args!("{} trie nodes", proof.nodes.len()));
    let (root, block) = root.prove(RootKind::Receipts, network, report)?;
    let index = proof.prove(root)?;
    report.passed(Rule::ReceiptInclusion, format_args!("receipt {index} under root {root}"));
    if let (Some(claimed), Some(block)) = (proof.block_hash, block)
        && claimed != block
    {
        let reason = format!("receipt says block {claimed}, the header is {block}");
        return Err(CheckFailure::new(Rule::HeaderValues, "blockHash", reason));
    }
    let receipt = Receipt::decode(&proof.encoded)
        .map_err(|error| CheckFailure::new(Rule::Document, "receipt", error))?;
    report.passed(Rule::Document, format_args!("a receipt with {} logs", receipt.logs.len()));
    if !receipt.bloom_matches() {
        let reason = "is not the bloom of the receipt's logs";
        return Err(CheckFailure::new(Rule::ReceiptBloom, "logsBloom", reason));
    }
    report.passed(Rule::ReceiptBloom, "the bloom is that of the logs");
    report.facts.push(ProvenFact::Receipt { index, receipt: Box::new(receipt) });
    report.not_proven.push(NotProven::ReceiptContext);
    Ok(())
}
