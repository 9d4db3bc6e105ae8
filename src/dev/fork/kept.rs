//! The records that a host keeps of a fork for later runs. Blocks are encoded here, and checked again when they are read.

use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use super::values::Learned;
use crate::consensus::{BodyError, Network, VerifiedBody, VerifiedHeader, VerifiedReceipts, VerifiedUncles};
use crate::local::{ForkBody, StoredBlock, marked_sender};
use crate::types::rlp::{RlpReader, list_of};
use crate::types::{Header, Receipt, Transaction, decode_uncles, encode_uncles};

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Where a host keeps what was read below the block on which a chain begins, for later runs on the same block.
pub trait ForkKeeper {
    /// Keeps values of the state.
    fn keep_values(&self, learned: &Learned);

    /// Keeps parts of blocks.
    fn keep_blocks(&self, entries: &mut dyn Iterator<Item = Entry>);

    /// A part of a block that was kept. Nothing is trusted of it.
    fn block_part(&self, key: &[u8]) -> Option<Vec<u8>>;
}

/// A host's keeper, if it has one.
pub type Keeper<'a> = Option<&'a (dyn ForkKeeper + Sync)>;

/// The kinds of keys.
const BODY: u8 = 0;
const RECEIPTS: u8 = 1;
const UNCLES: u8 = 2;
const PLACE: u8 = 3;

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

fn decoded<T>(bytes: &[u8], decode: impl Fn(&[u8]) -> Option<T>) -> Option<Vec<T>> {
    let (mut list, mut items) = (RlpReader::list(bytes, "block").ok()?, Vec::new());
    while !list.is_empty() {
        items.push(decode(list.next_raw("block").ok()?)?);
    }
    Some(items)
}

/// Keeps the transactions of blocks, and where they are.
pub(super) fn keep_bodies(keeper: Keeper<'_>, bodies: &[(VerifiedHeader, ForkBody)]) {
    let Some(keeper) = keeper else { return };
    keeper.keep_blocks(&mut bodies.iter().flat_map(|(header, body)| {
        let number = header.number.to_be_bytes();
        let locations = body.body.hashes().iter();
        let locations = locations.map(move |hash| (key(PLACE, hash.as_slice()), number.to_vec()));
        let transactions = listed(body.body.transactions(), Transaction::encode);
        core::iter::once((part(BODY, header), transactions)).chain(locations)
    }));
}

/// Keeps the receipts of blocks.
pub(super) fn keep_receipts(keeper: Keeper<'_>, blocks: &[(VerifiedHeader, Arc<StoredBlock>)]) {
    let Some(keeper) = keeper else { return };
    keeper.keep_blocks(
        &mut blocks.iter().map(|(header, block)| {
            (part(RECEIPTS, header), listed(block.receipts.receipts(), Receipt::encode))
        }),
    );
}

/// The transactions of a block that were kept, if they are those of this header.
pub(super) fn kept_body(keeper: Keeper<'_>, header: &VerifiedHeader, network: &Network) -> Option<ForkBody> {
    let bytes = keeper?.block_part(&part(BODY, header))?;
    let transactions = decoded(&bytes, |rlp| Transaction::decode(rlp).ok())?;
    checked_body(header, transactions, network).ok()
}

/// As [`kept_body`], with the receipts.
pub(super) fn kept_receipts(
    keeper: Keeper<'_>,
    header: &VerifiedHeader,
    body: &ForkBody,
    network: &Network,
) -> Option<StoredBlock> {
    let bytes = keeper?.block_part(&part(RECEIPTS, header))?;
    let receipts = decoded(&bytes, |rlp| Receipt::decode(rlp).ok())?;
    checked_receipts(header, body, receipts, network).ok()
}

/// The transactions of a block with their senders, if they are those of this header.
pub(super) fn checked_body(
    header: &VerifiedHeader,
    transactions: Vec<Transaction>,
    network: &Network,
) -> Result<ForkBody, BodyError> {
    let body = VerifiedBody::check(header, transactions, network)?;
    let senders = body.transactions().iter().map(|sent| sender(sent, network)).collect();
    Ok(ForkBody { body: Arc::new(body), senders })
}

/// The block with these receipts, if they are those of its header.
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

/// The sender of a transaction. Impersonated ones are on development chains only.
fn sender(sent: &Transaction, network: &Network) -> Address {
    let marked = marked_sender(sent).filter(|_| network.name == "regtest");
    marked.unwrap_or_else(|| sent.recover_sender(network.chain_id).unwrap_or_default())
}

/// The height of the block that was kept with a transaction.
pub(super) fn kept_place(keeper: Keeper<'_>, transaction: &B256) -> Option<u64> {
    let bytes = keeper?.block_part(&key(PLACE, transaction.as_slice()))?;
    Some(u64::from_be_bytes(bytes.try_into().ok()?))
}

/// Keeps the uncles of a block.
pub(super) fn keep_uncles(keeper: Keeper<'_>, header: &VerifiedHeader, uncles: &VerifiedUncles) {
    let Some(keeper) = keeper else { return };
    let headers: Vec<Header> = uncles.headers().iter().map(|uncle| uncle.header().clone()).collect();
    let entry = (part(UNCLES, header), encode_uncles(&headers));
    keeper.keep_blocks(&mut core::iter::once(entry));
}

/// The uncles of a block that were kept, if they are those of this header.
pub(super) fn kept_uncles(
    keeper: Keeper<'_>,
    header: &VerifiedHeader,
    network: &Network,
) -> Option<VerifiedUncles> {
    let bytes = keeper?.block_part(&part(UNCLES, header))?;
    let uncles = decode_uncles(&bytes, &|number| network.header_shape(number)).ok()?;
    VerifiedUncles::check(header, uncles).ok()
}
