//! Blocks of the index that were checked against their headers again, as JSON in the form of an upstream's responses.

use rootlight::consensus::Network;
use rootlight::types::json::{
    BlockParts, Location, RpcBlock, RpcReceipt, RpcTransaction, RpcTransactions, receipt_from_json,
    transaction_from_json,
};
use rootlight::types::{B256, BlockRef, Header, block_len};
use rootlight_index::{IndexedBlock, MatchedBlock};
use rootlight_node::light::index::TransactionPart;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// A block whose rows match its header.
#[derive(Debug)]
pub(super) struct CheckedIndexBlock {
    pub(super) block_ref: BlockRef,
    /// The block object with whole transactions, without uncles.
    pub(super) object: Box<RawValue>,
    /// The hashes of the transactions, in block order as the two lists below.
    hashes: Vec<B256>,
    transactions: Vec<Box<RawValue>>,
    receipts: Vec<Box<RawValue>>,
    /// The uncles as JSON; `None` if the index does not have them.
    uncles: Option<Vec<Box<RawValue>>>,
}

impl CheckedIndexBlock {
    /// Checks a block against its header, and writes its parts. `None` if the rows do not match, or if a part cannot be read
    /// back from JSON: the light client would blame the backend that seems to have sent that part ([`super::IndexedBackend`]).
    pub(super) fn of(block: IndexedBlock, network: &Network) -> Option<Self> {
        let block = block.check(network).ok()?;
        let header = block.header();
        let block_ref = BlockRef { number: header.number, hash: header.hash() };
        let transactions = transactions(&block, block_ref);
        let receipts = receipts(&block, block_ref)?;
        let texts: Vec<_> = transactions.iter().map(to_json).collect::<Option<_>>()?;
        for (text, hash) in texts.iter().zip(block.hashes()) {
            let read = transaction_from_json(text.get(), None, network.chain_id).ok()?;
            (read.hash() == *hash).then_some(())?;
        }
        let transactions = RpcTransactions::Full(transactions);
        let parts = BlockParts { transactions, uncles: None, total_difficulty: None, size: None };
        let object = to_json(&RpcBlock::new(header, parts))?;
        let uncles = match block.uncles() {
            Some(uncles) => Some(uncles.iter().map(uncle).collect::<Option<_>>()?),
            None => None,
        };
        let hashes = block.hashes().to_vec();
        Some(Self { block_ref, object, hashes, transactions: texts, receipts, uncles })
    }

    /// The transaction with this hash, or its receipt; `None` if it is not in the block.
    pub(super) fn part(&self, part: TransactionPart, transaction: &B256) -> Option<&RawValue> {
        let index = self.hashes.iter().position(|hash| hash == transaction)?;
        let list = match part {
            TransactionPart::Transaction => &self.transactions,
            TransactionPart::Receipt => &self.receipts,
        };
        list.get(index).map(|text| &**text)
    }

    /// The uncles; `None` if the index does not have them.
    pub(super) fn uncles(&self) -> Option<&[Box<RawValue>]> {
        self.uncles.as_deref()
    }

    /// The hashes of the transactions.
    pub(super) fn hashes(&self) -> &[B256] {
        &self.hashes
    }

    /// Bytes that the block takes in memory, approximately.
    pub(super) fn bytes(&self) -> usize {
        let uncles = self.uncles.iter().flatten();
        let texts = self.transactions.iter().chain(&self.receipts).chain(uncles).chain([&self.object]);
        let texts = texts.map(|text| text.get().len()).fold(0, usize::saturating_add);
        // Beside its place in `hashes`, each hash is in the map from transactions to blocks (`IndexSource`), with the block's hash and
        // what the map adds to an entry.
        texts.saturating_add(self.hashes.len().saturating_mul(size_of::<B256>() * 4))
    }
}

fn to_json(part: &impl Serialize) -> Option<Box<RawValue>> {
    to_raw_value(part).ok()
}

/// An uncle as JSON. Its own uncles and its total difficulty are not known here (`None`), and its size is that of the header.
fn uncle(header: &Header) -> Option<Box<RawValue>> {
    let size = block_len(header, [], []);
    to_json(&RpcBlock::uncle(&header.clone().seal(), None, None, Some(size)))
}

/// The locations of the transactions of a block, first to last.
fn locations(at: BlockRef) -> impl Iterator<Item = Location> {
    (0..).map(move |index| Location { block_hash: at.hash, block_number: at.number, index })
}

/// The transactions in the form of JSON objects.
fn transactions(block: &MatchedBlock, at: BlockRef) -> Vec<RpcTransaction> {
    let parts = block.transactions().iter().zip(block.hashes()).zip(block.senders()).zip(locations(at));
    parts
        .map(|(((one, hash), from), location)| RpcTransaction::new(one, *hash, *from, Some(&location)))
        .collect()
}

/// The receipts as JSON; `None` if one does not read back from JSON as it was.
fn receipts(block: &MatchedBlock, at: BlockRef) -> Option<Vec<Box<RawValue>>> {
    let (mut receipts, mut first_log) = (Vec::new(), 0_u64);
    let parts = block.transactions().iter().zip(block.hashes()).zip(block.senders()).zip(locations(at));
    for (receipt, (((transaction, hash), from), location)) in block.receipts().iter().zip(parts) {
        let shown = to_json(&RpcReceipt::new(receipt, transaction, *hash, *from, &location, first_log))?;
        (receipt_from_json(shown.get()).ok()?.encode() == receipt.encode()).then_some(())?;
        receipts.push(shown);
        first_log = first_log.saturating_add(receipt.logs.len() as u64);
    }
    Some(receipts)
}
