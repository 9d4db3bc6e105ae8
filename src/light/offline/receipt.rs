//! A single receipt under a receipts root.

use alloc::{format, string::String};

use alloy_primitives::{Bytes, B256};
use serde::Deserialize;

use super::{
    document,
    report::{Failure, Report, Rule},
};
use crate::{
    trie::{prove_receipt, receipt_index},
    types::Receipt,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    receipts_root: B256,
    #[serde(deserialize_with = "document::unwrapped")]
    receipt: Bytes,
    #[serde(deserialize_with = "document::unwrapped")]
    nodes: alloc::vec::Vec<Bytes>,
    /// Where the receipt stands in its block, if the document says so.
    #[serde(default)]
    index: Option<u64>,
}

/// Checks `{"receiptsRoot", "receipt", "nodes", "index"?}`: a receipt's RLP (`rsk_getRawTransactionReceiptByHash`) and
/// the trie nodes from the root to it (`rsk_getTransactionReceiptNodesByHash`), in either order.
///
/// # Errors
/// [`Failure`]: the rule that is broken.
pub fn check_receipt(text: &str) -> Result<Report, Failure> {
    let mut report = Report::default();
    let parsed = document::parse::<Document>(text);
    let document = report.check(Rule::Document, parsed, |d| format!("{} trie nodes", d.nodes.len()))?;
    let index = report.check(Rule::ReceiptInclusion, place(&document), |index| {
        format!("receipt {index} under root {}", document.receipts_root)
    })?;
    let decoded = Receipt::decode(&document.receipt);
    let receipt =
        report.check(Rule::Document, decoded, |r| format!("a receipt with {} logs", r.logs.len()))?;
    let bloom = if receipt.bloom_matches() { Ok(()) } else { Err("the bloom is not the one of the logs") };
    report.check(Rule::ReceiptBloom, bloom, |()| String::from("the bloom is the one of the logs"))?;
    put_facts(&mut report, index, &receipt);
    Ok(report)
}

fn place(document: &Document) -> Result<u64, crate::trie::ReceiptProofError> {
    match document.index {
        Some(index) => {
            prove_receipt(document.receipts_root, index, &document.nodes, &document.receipt).map(|()| index)
        }
        None => receipt_index(document.receipts_root, &document.nodes, &document.receipt),
    }
}

fn put_facts(report: &mut Report, index: u64, receipt: &Receipt) {
    report.facts.put("index", index);
    report.facts.put("status", if receipt.success { "success" } else { "failure" });
    report.facts.put("gasUsed", receipt.gas_used);
    report.facts.put("cumulativeGasUsed", receipt.cumulative_gas_used);
    for (at, log) in receipt.logs.iter().enumerate() {
        report.facts.put(format!("logs[{at}].address"), format!("{:#x}", log.address));
        for (position, topic) in log.topics.iter().enumerate() {
            report.facts.put(format!("logs[{at}].topics[{position}]"), topic);
        }
        report.facts.put(format!("logs[{at}].data"), &log.data);
    }
}
