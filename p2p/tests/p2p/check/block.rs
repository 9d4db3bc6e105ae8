//! Blocks and bodies against the headers that commit to them.

use alloy_primitives::B256;
use rootlight::consensus::body::{root_format, transactions_root};
use rootlight::consensus::{HeaderCandidate, Network};
use rootlight::types::{Header, HeaderError, Transaction, uncles_hash};
use rootlight_p2p::message::{BlockParts, Body, Items};

use super::error::CheckError;
use super::header::PeerHeader;

/// A header, and the transactions and uncles to which it commits. The header itself is not verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckedBlock {
    /// The header with all fields.
    pub(crate) header: HeaderCandidate,
    /// The transactions in block order.
    pub(crate) transactions: Vec<Transaction>,
    /// The uncles.
    pub(crate) uncles: Vec<Header>,
}

/// Checks a block that was requested by its hash.
///
/// # Errors
/// The block has another hash, or other transactions or uncles than its header commits to.
pub(crate) fn block(hash: &B256, block: &[u8], network: &Network) -> Result<CheckedBlock, CheckError> {
    let checked = any_block(block, network)?;
    let found = checked.header.header().hash();
    match found == *hash {
        true => Ok(checked),
        false => Err(CheckError::Hash { expected: *hash, found }),
    }
}

pub(super) fn any_block(block: &[u8], network: &Network) -> Result<CheckedBlock, CheckError> {
    let parts = BlockParts::split(block)?;
    let header = HeaderCandidate::decode(parts.header, network)?;
    let transactions = transactions(header.header(), parts.transactions, network)?;
    let uncles = uncles(header.header(), parts.uncles, network)?;
    Ok(CheckedBlock { header, transactions, uncles })
}

/// Checks the body of the block with this header.
///
/// # Errors
/// The header commits to other transactions, uncles or another extension.
pub(crate) fn body(
    header: &PeerHeader,
    body: &Body<'_>,
    network: &Network,
) -> Result<CheckedBlock, CheckError> {
    let transactions = transactions(header.fields(), body.transactions, network)?;
    let uncles = uncles(header.fields(), body.uncles, network)?;
    let header = header.complete(body.extension.as_ref(), network)?;
    Ok(CheckedBlock { header, transactions, uncles })
}

fn transactions(header: &Header, list: Items<'_>, network: &Network) -> Result<Vec<Transaction>, CheckError> {
    let transactions = list.iter().map(Transaction::decode).collect::<Result<Vec<_>, _>>()?;
    let expected = header.transactions_root;
    let found = transactions_root(&transactions, root_format(network, header.number));
    match found == expected {
        true => Ok(transactions),
        false => Err(CheckError::TransactionsRoot { expected, found }),
    }
}

fn uncles(header: &Header, list: Items<'_>, network: &Network) -> Result<Vec<Header>, CheckError> {
    let shape = |number| network.header_shape(number);
    let decode = |uncle| -> Result<Header, HeaderError> { Header::decode(uncle, &shape) };
    let uncles = list.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
    let (expected, found) = (header.uncles_hash, uncles_hash(&uncles));
    match found == expected {
        true => Ok(uncles),
        false => Err(CheckError::UnclesHash { expected, found }),
    }
}
