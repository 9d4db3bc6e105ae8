//! Blocks as RLP: header, transactions, uncles. Peers and `rootlight verify` read and write this form.

use alloc::vec::Vec;

use alloy_primitives::{B256, keccak256};

use super::header::{EMPTY_UNCLES_HASH, Header, HeaderError, HeaderForm, HeaderShape};
use super::rlp::{RlpReader, list_len, list_of, put_list};
use super::transaction::Transaction;

/// The transactions of a block; the REMASC transaction is the last one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockBody {
    /// Transactions in block order.
    pub transactions: Vec<Transaction>,
}

/// A decoded block. Nothing in it has been checked against the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The header with all mining fields.
    pub header: Header,
    /// The transactions.
    pub body: BlockBody,
    /// Full uncle headers.
    pub uncles: Vec<Header>,
}

impl Block {
    /// Decodes a block: the RLP list of the full header, the transactions and the uncles.
    pub fn decode(rlp: &[u8], shape_of: &dyn Fn(u64) -> HeaderShape) -> Result<Self, HeaderError> {
        let mut reader = RlpReader::list(rlp, "block")?;
        let header = Header::decode(reader.next_raw("block.header")?, shape_of)?;
        let mut list = reader.next_list("block.transactions")?;
        let mut transactions = Vec::new();
        while !list.is_empty() {
            transactions.push(Transaction::decode(list.next_raw("block.transactions")?)?);
        }
        let uncles = read_uncles(reader.next_list("block.uncles")?, shape_of)?;
        reader.finish("block")?;
        Ok(Self { header, body: BlockBody { transactions }, uncles })
    }

    /// Encodes the block as RLP. The length of the encoding is the `size` field of JSON-RPC blocks.
    pub fn encode(&self) -> Vec<u8> {
        encode_block(&self.header, &self.body.transactions, &self.uncles)
    }
}

/// Encodes a block from its parts.
pub fn encode_block(header: &Header, transactions: &[Transaction], uncles: &[Header]) -> Vec<u8> {
    let mut payload = header.encode(HeaderForm::Full);
    let txs: Vec<u8> = transactions.iter().flat_map(Transaction::encode).collect();
    put_list(&mut payload, &txs);
    payload.extend_from_slice(&encode_uncles(uncles));
    let mut out = Vec::with_capacity(payload.len().saturating_add(9));
    put_list(&mut out, &payload);
    out
}

/// Length of a block's RLP in bytes: the `size` field of JSON-RPC blocks.
pub fn block_len<'a>(
    header: &Header,
    transactions: impl IntoIterator<Item = &'a Transaction>,
    uncles: impl IntoIterator<Item = &'a Header>,
) -> u64 {
    let full = |header: &Header| header.encode(HeaderForm::Full).len();
    let sum = |total: usize, len: usize| total.saturating_add(len);
    let txs = transactions.into_iter().map(|tx| tx.encode().len()).fold(0, sum);
    let uncles = uncles.into_iter().map(full).fold(0, sum);
    let parts = [full(header), list_len(txs), list_len(uncles)];
    list_len(parts.into_iter().fold(0, sum)) as u64
}

/// Decodes the RLP list of full uncle headers.
pub fn decode_uncles(rlp: &[u8], shape_of: &dyn Fn(u64) -> HeaderShape) -> Result<Vec<Header>, HeaderError> {
    read_uncles(RlpReader::list(rlp, "uncles")?, shape_of)
}

/// Reads the headers of a list to its end.
fn read_uncles(
    mut list: RlpReader<'_>,
    shape_of: &dyn Fn(u64) -> HeaderShape,
) -> Result<Vec<Header>, HeaderError> {
    let mut uncles = Vec::new();
    while !list.is_empty() {
        uncles.push(Header::decode(list.next_raw("uncles")?, shape_of)?);
    }
    Ok(uncles)
}

/// Encodes the RLP list of full uncle headers.
pub fn encode_uncles(uncles: &[Header]) -> Vec<u8> {
    let items: Vec<Vec<u8>> = uncles.iter().map(|u| u.encode(HeaderForm::Full)).collect();
    list_of(items.iter().map(Vec::as_slice))
}

/// The uncles hash of a header: keccak-256 of the RLP list of full uncle headers.
pub fn uncles_hash(uncles: &[Header]) -> B256 {
    if uncles.is_empty() {
        return EMPTY_UNCLES_HASH;
    }
    keccak256(encode_uncles(uncles))
}
