//! The records that a host stores of a fork for later runs of the program on the same block ([`ForkCache`]). Blocks are encoded here,
//! and checked against their headers again when they are read.

use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use super::values::FetchedState;
use crate::consensus::{BodyError, Network, VerifiedBody, VerifiedHeader, VerifiedReceipts, VerifiedUncles};
use crate::local::{ForkBody, StoredBlock, marked_sender};
use crate::types::rlp::{RlpReader, list_of};
use crate::types::{Header, Receipt, Transaction, decode_uncles, encode_uncles};

/// The key and the value of a stored part of a block. Only this file knows their encoding.
pub type Entry = (Vec<u8>, Vec<u8>);

/// The cache in which a host stores fetched data of a fork, for later runs on the same block.
pub trait ForkCache {
    /// Stores values of the state.
    fn store_values(&self, fetched: &FetchedState);

    /// Stores parts of blocks.
    fn store_blocks(&self, entries: &mut dyn Iterator<Item = Entry>);

    /// The value under the key of a part of a block. The caller checks it, because the cache is not trusted.
    fn block_part(&self, key: &[u8]) -> Option<Vec<u8>>;
}

/// The cache of a host, if it has one.
pub type HostCache<'a> = Option<&'a (dyn ForkCache + Sync)>;

// The first byte of a key says what is stored under it. For the first three a block number of eight bytes follows.

/// The transactions of a block, an RLP list.
const BODY: u8 = 0;
/// The receipts of a block, an RLP list.
const RECEIPTS: u8 = 1;
/// The uncles of a block, an RLP list.
const UNCLES: u8 = 2;
/// The number of the block that contains a transaction, in eight bytes; the transaction's hash follows the first byte of the key.
const PLACE: u8 = 3;

/// The key of stored data of this kind: the kind, then `of`.
fn key(kind: u8, of: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(of.len().saturating_add(1));
    key.push(kind);
    key.extend_from_slice(of);
    key
}

/// The key of a part of a block.
fn part(kind: u8, header: &VerifiedHeader) -> Vec<u8> {
    key(kind, &header.number.to_be_bytes())
}

/// An RLP list of encoded items.
fn listed<T>(items: &[T], encode: fn(&T) -> Vec<u8>) -> Vec<u8> {
    let items: Vec<Vec<u8>> = items.iter().map(encode).collect();
    list_of(items.iter().map(Vec::as_slice))
}

/// The items of an RLP list; `None` if the bytes are no list or `decode` rejects one.
fn decoded<T>(bytes: &[u8], decode: impl Fn(&[u8]) -> Option<T>) -> Option<Vec<T>> {
    let (mut list, mut items) = (RlpReader::list(bytes, "block").ok()?, Vec::new());
    while !list.is_empty() {
        items.push(decode(list.next_raw("block").ok()?)?);
    }
    Some(items)
}

/// Stores the transactions of blocks, and for each transaction the number of its block.
pub(super) fn store_bodies(cache: HostCache<'_>, bodies: &[(VerifiedHeader, ForkBody)]) {
    let Some(cache) = cache else { return };
    cache.store_blocks(&mut bodies.iter().flat_map(|(header, body)| {
        let number = header.number.to_be_bytes();
        let locations = body.body.hashes().iter();
        let locations = locations.map(move |hash| (key(PLACE, hash.as_slice()), number.to_vec()));
        let transactions = listed(body.body.transactions(), Transaction::encode);
        core::iter::once((part(BODY, header), transactions)).chain(locations)
    }));
}

/// Stores the receipts of blocks.
pub(super) fn store_receipts(cache: HostCache<'_>, blocks: &[(VerifiedHeader, Arc<StoredBlock>)]) {
    let Some(cache) = cache else { return };
    cache.store_blocks(
        &mut blocks.iter().map(|(header, block)| {
            (part(RECEIPTS, header), listed(block.receipts.receipts(), Receipt::encode))
        }),
    );
}

/// The stored transactions of a block, if the header commits to them.
pub(super) fn cached_body(
    cache: HostCache<'_>,
    header: &VerifiedHeader,
    network: &Network,
) -> Option<ForkBody> {
    let bytes = cache?.block_part(&part(BODY, header))?;
    let transactions = decoded(&bytes, |rlp| Transaction::decode(rlp).ok())?;
    checked_body(header, transactions, network).ok()
}

/// The block with its stored receipts, if the header commits to them.
pub(super) fn cached_receipts(
    cache: HostCache<'_>,
    header: &VerifiedHeader,
    body: &ForkBody,
    network: &Network,
) -> Option<StoredBlock> {
    let bytes = cache?.block_part(&part(RECEIPTS, header))?;
    let receipts = decoded(&bytes, |rlp| Receipt::decode(rlp).ok())?;
    checked_receipts(header, body, receipts, network).ok()
}

/// The transactions of a block with their senders, if the header commits to them.
pub(super) fn checked_body(
    header: &VerifiedHeader,
    transactions: Vec<Transaction>,
    network: &Network,
) -> Result<ForkBody, BodyError> {
    let body = VerifiedBody::check(header, transactions, network)?;
    let senders = body.transactions().iter().map(|sent| sender(sent, network)).collect();
    Ok(ForkBody { body: Arc::new(body), senders })
}

/// The block with these receipts, if its header commits to them and they fit its transactions.
pub(super) fn checked_receipts(
    header: &VerifiedHeader,
    ForkBody { body, senders }: &ForkBody,
    receipts: Vec<Receipt>,
    network: &Network,
) -> Result<StoredBlock, BodyError> {
    let receipts = VerifiedReceipts::check(header, receipts, network)?;
    receipts.matches(body)?;
    Ok(StoredBlock { body: body.clone(), receipts: Arc::new(receipts), senders: senders.clone() })
}

/// The sender of a transaction, the zero address for REMASC's. Blocks of a development chain, which has the rules of regtest, may hold
/// transactions of impersonated senders: marks in place of their signatures name the senders.
fn sender(sent: &Transaction, network: &Network) -> Address {
    let marked = marked_sender(sent).filter(|_| network.name == "regtest");
    // Blocks of a network hold no other transaction without a valid signature.
    marked.unwrap_or_else(|| sent.recover_sender(network.chain_id).unwrap_or_default())
}

/// The number of the block that contains a transaction, as the host has stored it.
pub(super) fn cached_block_number(cache: HostCache<'_>, transaction: &B256) -> Option<u64> {
    let bytes = cache?.block_part(&key(PLACE, transaction.as_slice()))?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

/// Stores the uncles of a block.
pub(super) fn store_uncles(cache: HostCache<'_>, header: &VerifiedHeader, uncles: &VerifiedUncles) {
    let Some(cache) = cache else { return };
    let headers: Vec<Header> = uncles.headers().iter().map(|uncle| uncle.header().clone()).collect();
    let entry = (part(UNCLES, header), encode_uncles(&headers));
    cache.store_blocks(&mut core::iter::once(entry));
}

/// The stored uncles of a block, if the header commits to them.
pub(super) fn cached_uncles(
    cache: HostCache<'_>,
    header: &VerifiedHeader,
    network: &Network,
) -> Option<VerifiedUncles> {
    let bytes = cache?.block_part(&part(UNCLES, header))?;
    let uncles = decode_uncles(&bytes, &|number| network.header_shape(number)).ok()?;
    VerifiedUncles::check(header, uncles).ok()
}
