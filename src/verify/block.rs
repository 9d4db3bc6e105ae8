//! Verifies a block: header, transactions, uncles and, if given, all receipts.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::header;
use super::header_fact::HeaderFact;
use super::input::{Input, list};
use super::input_error::InputError;
use super::report::{CheckFailure, NotProven, Report, Rule};
use crate::consensus::{Network, VerifiedBody, VerifiedHeader, VerifiedReceipts, verify_merged_mining};
use crate::types::json::{JsonError, block_from_json, header_from_json, receipt_from_json};
use crate::types::{B256, Block, Header, Receipt, SealedHeader, Transaction, uncles_hash};

/// The parts of a block. No rule was checked; only the header's hash was computed, or compared with the one in the JSON.
struct UncheckedBlock {
    header: Box<SealedHeader>,
    transactions: Vec<Transaction>,
    /// `None` if the document has only the hashes of the uncles.
    uncles: Option<Vec<SealedHeader>>,
    uncle_hashes: Vec<B256>,
    receipts: Option<Vec<Receipt>>,
}

/// Checks a node's block JSON with full transactions, `{block, uncles, receipts}`, or a block's RLP.
pub(super) fn check(input: &Input<'_>, network: &Network, report: &mut Report) -> Result<(), CheckFailure> {
    let parts = parts(input, network)?;
    let verified = header::prove(SealedHeader::clone(&parts.header).into(), network, report)?;
    report.not_proven.push(NotProven::BlockChain);
    let Some(header) = verified else { return genesis(&parts, report) };
    body(&header, parts.transactions, network, report)?;
    uncles(&header, parts.uncles, &parts.uncle_hashes, network, report)?;
    let Some(receipts) = parts.receipts else { return Ok(()) };
    let count = receipts.len();
    VerifiedReceipts::check(&header, receipts, network)
        .map_err(|error| CheckFailure::new(Rule::Receipts, "receipts", error))?;
    report.passed(Rule::Receipts, format_args!("{count} receipts"));
    report.facts.push(HeaderFact::Receipts(count).into());
    Ok(())
}

/// Checks a genesis block. On every network it has a state, but no transactions, uncles or receipts.
fn genesis(parts: &UncheckedBlock, report: &mut Report) -> Result<(), CheckFailure> {
    let receipts = parts.receipts.as_ref().map_or(0, Vec::len);
    if !parts.transactions.is_empty() || !parts.uncle_hashes.is_empty() || receipts > 0 {
        let reason = "genesis has no transactions, uncles or receipts";
        return Err(CheckFailure::new(Rule::Transactions, "transactions", reason));
    }
    report.passed(Rule::Transactions, "0 transactions");
    report.facts.push(HeaderFact::Transactions { count: 0, genesis: true }.into());
    Ok(())
}

/// Checks the transactions against the header, and the signature of each.
fn body(
    header: &VerifiedHeader,
    transactions: Vec<Transaction>,
    network: &Network,
    report: &mut Report,
) -> Result<(), CheckFailure> {
    let body = VerifiedBody::check(header, transactions, network)
        .map_err(|error| CheckFailure::new(Rule::Transactions, "transactions", error))?;
    let count = body.transactions().len();
    report.passed(Rule::Transactions, format_args!("{count} transactions"));
    report.facts.push(HeaderFact::Transactions { count, genesis: false }.into());
    let mut signed = 0_usize;
    for (transaction, index) in body.transactions().iter().zip(0_usize..) {
        // The transaction to REMASC, which pays miners, is not signed.
        if transaction.is_remasc() {
            continue;
        }
        transaction.recover_sender(network.chain_id).map_err(|error| {
            CheckFailure::new(Rule::Senders, "senders", format_args!("transaction {index}: {error}"))
        })?;
        signed = signed.saturating_add(1);
    }
    report.passed(Rule::Senders, format_args!("{signed} senders"));
    report.facts.push(HeaderFact::Senders(signed).into());
    Ok(())
}

/// Checks the uncles against the header, and the proof of work of each. `hashes` are those of the document, for uncles without headers.
fn uncles(
    header: &SealedHeader,
    uncles: Option<Vec<SealedHeader>>,
    hashes: &[B256],
    network: &Network,
    report: &mut Report,
) -> Result<(), CheckFailure> {
    let Some(uncles) = uncles else {
        report.not_proven.push(NotProven::Uncles(hashes.len()));
        return Ok(());
    };
    let headers: Vec<Header> = uncles.iter().map(|uncle| uncle.header().clone()).collect();
    let (count, computed, expected) = (headers.len(), uncles_hash(&headers), header.uncles_hash);
    let refuse = |reason: core::fmt::Arguments<'_>| CheckFailure::new(Rule::Uncles, "uncles", reason);
    if computed != expected {
        let reason =
            format_args!("sha3Uncles: the {count} uncles hash to {computed}, the header has {expected}");
        return Err(refuse(reason));
    }
    for uncle in &uncles {
        verify_merged_mining(uncle, network)
            .map_err(|error| refuse(format_args!("{}: {error}", uncle.hash())))?;
    }
    report.passed(Rule::Uncles, format_args!("{count} uncles"));
    report.facts.push(HeaderFact::Uncles(count).into());
    Ok(())
}

/// Reads a document about a block.
fn parts(input: &Input<'_>, network: &Network) -> Result<UncheckedBlock, CheckFailure> {
    let text = match input {
        Input::Raw(bytes) => return raw_parts(bytes, network),
        Input::Json(text) => text,
    };
    // A node's JSON of a block may have a list named `uncles`, but no member `block`.
    let given = input.members("block")?;
    let Some(block) = given.block else { return json_parts(text, None, None, network) };
    match Input::of(block.get())? {
        Input::Raw(bytes) => raw_parts(&bytes, network),
        Input::Json(text) => {
            json_parts(text, given.uncles.map(|raw| raw.get()), given.receipts.map(|raw| raw.get()), network)
        }
    }
}

/// Reads a block's RLP, which has the uncles' headers but no receipts.
fn raw_parts(bytes: &[u8], network: &Network) -> Result<UncheckedBlock, CheckFailure> {
    let block = Block::decode(bytes, &|number| network.header_shape(number))
        .map_err(|error| CheckFailure::new(Rule::Document, "block", error))?;
    let uncles: Vec<SealedHeader> = block.uncles.into_iter().map(Header::seal).collect();
    Ok(UncheckedBlock {
        header: Box::new(block.header.seal()),
        transactions: block.body.transactions,
        uncle_hashes: uncles.iter().map(SealedHeader::hash).collect(),
        uncles: Some(uncles),
        receipts: None,
    })
}

/// Reads a node's JSON of a block, with arrays of uncles and receipts if the document has them.
fn json_parts(
    block: &str,
    uncles: Option<&str>,
    receipts: Option<&str>,
    network: &Network,
) -> Result<UncheckedBlock, CheckFailure> {
    let shape = |number| network.header_shape(number);
    let failed = |error: JsonError| CheckFailure::new(Rule::Document, "block", error);
    let parsed = block_from_json(block, None, &shape, network.chain_id).map_err(failed)?;
    let transactions = parsed.transactions.into_full();
    let transactions = transactions.ok_or_else(|| {
        let reason = "only hashes are given; ask the node for full transactions (second parameter true)";
        CheckFailure::new(Rule::Transactions, "transactions", reason)
    })?;
    let uncles = match uncles {
        None if parsed.uncles.is_empty() => Some(Vec::new()),
        None => None,
        Some(text) => {
            Some(each(text, "uncles", |text| header_from_json(text, None, &shape).map_err(failed))?)
        }
    };
    let receipts = receipts
        .map(|text| each(text, "receipts", |text| receipt_from_json(text).map_err(failed)))
        .transpose()?;
    Ok(UncheckedBlock {
        header: Box::new(parsed.header),
        transactions,
        uncles,
        uncle_hashes: parsed.uncles,
        receipts,
    })
}

/// Reads an array of a node's objects, each bare or in a JSON-RPC response.
fn each<T>(
    text: &str,
    field: &'static str,
    read: impl Fn(&str) -> Result<T, CheckFailure>,
) -> Result<Vec<T>, CheckFailure> {
    list(text, field)?
        .into_iter()
        .map(|member| match Input::of(member.get())? {
            Input::Json(text) => read(text),
            Input::Raw(_) => Err(InputError::Shape(alloc::format!("{field} are JSON objects")).into()),
        })
        .collect()
}
