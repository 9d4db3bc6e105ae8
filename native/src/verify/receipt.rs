//! A receipt by its trie nodes.

use rootlight::consensus::Network;
use rootlight::trie::{prove_receipt, receipt_index};
use rootlight::types::json::receipt_from_json;
use rootlight::types::{Bytes, Receipt, B256};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::{bytes, hash, nodes, Input, InputError};
use super::{header, Report, VerifyError};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given<'a> {
    #[serde(borrow)]
    receipt: Option<&'a RawValue>,
    raw_receipt: Option<String>,
    #[serde(borrow)]
    nodes: &'a RawValue,
    receipts_root: Option<String>,
    #[serde(borrow)]
    header: Option<&'a RawValue>,
    #[serde(alias = "index")]
    transaction_index: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claims {
    transaction_index: Option<Box<RawValue>>,
    block_hash: Option<String>,
}

/// Checks `{receipt | rawReceipt, nodes, receiptsRoot | header, transactionIndex}`.
pub(super) fn check(input: &Input, network: &Network, report: &mut Report) -> Result<(), VerifyError> {
    let given: Given<'_> = input.object("receipt proof")?;
    let (root, block) = root(&given, network, report)?;
    let (encoded, claims) = encoded(&given)?;
    let receipt = Receipt::decode(&encoded).map_err(|error| VerifyError::rule("receipt", error))?;
    let list = node_list(given.nodes)?;
    let stated = given.transaction_index.as_ref().or(claims.transaction_index.as_ref());
    let index = match stated {
        Some(raw) => {
            let index = quantity(raw.get().trim_matches('"'), "transactionIndex")?;
            prove_receipt(root, index, &list, &encoded)
                .map_err(|error| VerifyError::rule("receipt proof", error))?;
            index
        }
        None => {
            receipt_index(root, &list, &encoded).map_err(|error| VerifyError::rule("receipt proof", error))?
        }
    };
    if let (Some(text), Some(block)) = (&claims.block_hash, block) {
        let claimed = hash(text, "receipt.blockHash")?;
        if claimed != block {
            let reason = format!("receipt says block {claimed}, the header is {block}");
            return Err(VerifyError::rule("blockHash", reason));
        }
    }
    if !receipt.bloom_matches() {
        return Err(VerifyError::rule("logsBloom", "is not the bloom of the receipt's logs"));
    }
    tell(&receipt, index, report);
    Ok(())
}

fn tell(receipt: &Receipt, index: u64, report: &mut Report) {
    let rule = "inclusion under the receipts root (RSKIP-107 trie)";
    report.proven("receipt", format_args!("of the transaction at index {index}"), rule);
    let status = if receipt.success { "success" } else { "failure" };
    report.proven("status", status, "receipt");
    report.proven("gas used", receipt.gas_used, "receipt");
    report.proven("logs", format_args!("{} in order, bloom recomputed", receipt.logs.len()), "receipt");
    report.not_proven(
        "transaction hash, sender, recipient, effective gas price and the logs' index in the block: they follow from the body and the receipts before",
    );
}

/// The root to prove under, and the block hash if a header vouches for it.
fn root(
    given: &Given<'_>,
    network: &Network,
    report: &mut Report,
) -> Result<(B256, Option<B256>), VerifyError> {
    match (&given.receipts_root, given.header) {
        (None, None) => Err(InputError::Shape("receiptsRoot or header is missing".into()).into()),
        (Some(text), None) => {
            report.not_proven("the receipts root itself; give \"header\" to prove it");
            Ok((hash(text, "receiptsRoot")?, None))
        }
        (stated, Some(raw)) => {
            let candidate = Input::of(raw)?.header(network)?;
            let sealed = candidate.header().clone();
            header::prove(candidate, network, report)?;
            if let Some(text) = stated {
                if hash(text, "receiptsRoot")? != sealed.receipts_root {
                    let reason = format!("stated as {text}, the header has {}", sealed.receipts_root);
                    return Err(VerifyError::rule("receiptsRoot", reason));
                }
            }
            report.proven("receipts root", sealed.receipts_root, "header");
            Ok((sealed.receipts_root, Some(sealed.hash())))
        }
    }
}

/// The nodes, bare or as a JSON-RPC response.
fn node_list(raw: &RawValue) -> Result<Vec<Bytes>, InputError> {
    let wrong = |error: &dyn std::fmt::Display| InputError::Shape(format!("nodes: {error}"));
    match Input::of(raw)? {
        Input::Raw(_) => Err(wrong(&"must be an array of hex strings")),
        Input::Json(list) => {
            let texts: Vec<String> = serde_json::from_str(list.get()).map_err(|error| wrong(&error))?;
            nodes(&texts, "nodes")
        }
    }
}

/// The receipt's RLP, and what its JSON claims beside it.
fn encoded(given: &Given<'_>) -> Result<(Bytes, Claims), VerifyError> {
    let nothing = Claims { transaction_index: None, block_hash: None };
    match (given.receipt, &given.raw_receipt) {
        (Some(raw), None) => match Input::of(raw)? {
            Input::Raw(bytes) => Ok((bytes.into(), nothing)),
            Input::Json(raw) => {
                let receipt =
                    receipt_from_json(raw.get()).map_err(|error| VerifyError::rule("receipt", error))?;
                let claims = serde_json::from_str(raw.get())
                    .map_err(|error| InputError::Shape(format!("receipt: {error}")))?;
                Ok((receipt.encode().into(), claims))
            }
        },
        (None, Some(text)) => Ok((bytes(text, "rawReceipt")?, nothing)),
        _ => Err(InputError::Shape("exactly one of receipt and rawReceipt is needed".into()).into()),
    }
}

/// A number as node JSON has it: `0x` hex or decimal.
fn quantity(text: &str, field: &str) -> Result<u64, InputError> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| InputError::Shape(format!("{field} is not a number")))
}
