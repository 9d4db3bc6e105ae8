//! A block: header, transactions, uncles and, where given, all receipts.

use rootlight::consensus::{verify_merged_mining, Network, VerifiedBody, VerifiedHeader, VerifiedReceipts};
use rootlight::types::json::{block_from_json, header_from_json, receipt_from_json};
use rootlight::types::{uncles_hash, Block, Header, Receipt, SealedHeader, Transaction, B256};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::{Input, InputError};
use super::{header, Report, VerifyError};

#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow)]
    block: Option<&'a RawValue>,
    #[serde(borrow)]
    uncles: Option<&'a RawValue>,
    #[serde(borrow)]
    receipts: Option<&'a RawValue>,
}

/// The parts of a block, none of them checked but the header's hash.
struct Parts {
    header: SealedHeader,
    transactions: Vec<Transaction>,
    /// `None` where only their hashes are at hand.
    uncles: Option<Vec<SealedHeader>>,
    uncle_hashes: Vec<B256>,
    receipts: Option<Vec<Receipt>>,
}

/// Checks a node's block JSON with full transactions, `{block, uncles, receipts}`, or a block's RLP.
pub(super) fn check(input: &Input, network: &Network, report: &mut Report) -> Result<(), VerifyError> {
    let parts = parts(input, network)?;
    let verified = header::prove(parts.header.clone().into(), network, report)?;
    report.not_proven(
        "that the block is on the heaviest chain, and that its state root follows from executing it",
    );
    let Some(header) = verified else { return genesis(&parts, report) };
    body(&header, parts.transactions, network, report)?;
    uncles(&header, parts.uncles, &parts.uncle_hashes, network, report)?;
    if let Some(receipts) = parts.receipts {
        let count = receipts.len();
        VerifiedReceipts::check(&header, receipts, network)
            .map_err(|error| VerifyError::rule("receipts", error))?;
        report.proven("receipts", format_args!("{count}, all of the block"), "receipts root of the header");
    }
    Ok(())
}

/// Every network's genesis is empty but for its state.
fn genesis(parts: &Parts, report: &mut Report) -> Result<(), VerifyError> {
    let receipts = parts.receipts.as_ref().map_or(0, Vec::len);
    if !parts.transactions.is_empty() || !parts.uncle_hashes.is_empty() || receipts > 0 {
        return Err(VerifyError::rule("transactions", "genesis has no transactions, uncles or receipts"));
    }
    report.proven("transactions", "0 in order", "genesis");
    Ok(())
}

fn body(
    header: &VerifiedHeader,
    transactions: Vec<Transaction>,
    network: &Network,
    report: &mut Report,
) -> Result<(), VerifyError> {
    let body = VerifiedBody::check(header, transactions, network)
        .map_err(|error| VerifyError::rule("transactions", error))?;
    let count = body.transactions().len();
    report.proven("transactions", format_args!("{count} in order"), "transactions root of the header");
    let mut signed = 0_usize;
    for (transaction, index) in body.transactions().iter().zip(0_usize..) {
        if transaction.is_remasc() {
            continue;
        }
        transaction
            .recover_sender(network.chain_id)
            .map_err(|error| VerifyError::rule("senders", format!("transaction {index}: {error}")))?;
        signed = signed.saturating_add(1);
    }
    report.proven("senders", format_args!("{signed} recovered"), "signature of each transaction");
    Ok(())
}

fn uncles(
    header: &SealedHeader,
    uncles: Option<Vec<SealedHeader>>,
    hashes: &[B256],
    network: &Network,
    report: &mut Report,
) -> Result<(), VerifyError> {
    let Some(uncles) = uncles else {
        report.not_proven(format!(
            "{} uncle hashes: give their headers as \"uncles\" to prove them",
            hashes.len()
        ));
        return Ok(());
    };
    let headers: Vec<Header> = uncles.iter().map(|uncle| uncle.header().clone()).collect();
    let (computed, expected) = (uncles_hash(&headers), header.uncles_hash);
    if computed != expected {
        let reason =
            format!("sha3Uncles: the {} uncles hash to {computed}, the header has {expected}", headers.len());
        return Err(VerifyError::rule("uncles", reason));
    }
    for uncle in &uncles {
        verify_merged_mining(uncle, network)
            .map_err(|error| VerifyError::rule("uncles", format!("{}: {error}", uncle.hash())))?;
    }
    report.proven("uncles", headers.len(), "uncles hash of the header, merged mining of each");
    Ok(())
}

fn parts(input: &Input, network: &Network) -> Result<Parts, VerifyError> {
    let raw = match input {
        Input::Raw(bytes) => return raw_parts(bytes, network),
        Input::Json(raw) => raw,
    };
    let given: Given<'_> =
        input.object("block").unwrap_or(Given { block: None, uncles: None, receipts: None });
    let Some(block) = given.block else { return json_parts(raw, None, None, network) };
    match Input::of(block)? {
        Input::Raw(bytes) => raw_parts(&bytes, network),
        Input::Json(block) => json_parts(&block, given.uncles, given.receipts, network),
    }
}

fn raw_parts(bytes: &[u8], network: &Network) -> Result<Parts, VerifyError> {
    let block = Block::decode(bytes, &|number| network.header_shape(number))
        .map_err(|error| VerifyError::rule("block", error))?;
    let uncles: Vec<SealedHeader> = block.uncles.into_iter().map(Header::seal).collect();
    Ok(Parts {
        header: block.header.seal(),
        transactions: block.body.transactions,
        uncle_hashes: uncles.iter().map(SealedHeader::hash).collect(),
        uncles: Some(uncles),
        receipts: None,
    })
}

fn json_parts(
    block: &RawValue,
    uncles: Option<&RawValue>,
    receipts: Option<&RawValue>,
    network: &Network,
) -> Result<Parts, VerifyError> {
    let shape = |number| network.header_shape(number);
    let failed = |error: rootlight::types::json::JsonError| VerifyError::rule("block", error);
    let parsed = block_from_json(block.get(), None, &shape, network.chain_id).map_err(failed)?;
    let transactions = parsed.transactions.into_full();
    let transactions = transactions.ok_or_else(|| {
        let reason = "only hashes are given; ask the node for full transactions (second parameter true)";
        VerifyError::rule("transactions", reason)
    })?;
    let uncles = match uncles {
        None if parsed.uncles.is_empty() => Some(Vec::new()),
        None => None,
        Some(raw) => Some(each(raw, "uncles", |text| header_from_json(text, None, &shape).map_err(failed))?),
    };
    let receipts = receipts
        .map(|raw| each(raw, "receipts", |text| receipt_from_json(text).map_err(failed)))
        .transpose()?;
    Ok(Parts { header: parsed.header, transactions, uncles, uncle_hashes: parsed.uncles, receipts })
}

/// Reads an array of node objects, each bare or a JSON-RPC response.
fn each<T>(
    raw: &RawValue,
    field: &'static str,
    read: impl Fn(&str) -> Result<T, VerifyError>,
) -> Result<Vec<T>, VerifyError> {
    let members: Vec<&RawValue> =
        serde_json::from_str(raw.get()).map_err(|error| InputError::Shape(format!("{field}: {error}")))?;
    members
        .into_iter()
        .map(|member| match Input::of(member)? {
            Input::Json(inner) => read(inner.get()),
            Input::Raw(_) => Err(InputError::Shape(format!("{field} are JSON objects")).into()),
        })
        .collect()
}
