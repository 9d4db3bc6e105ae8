//! Blocks, transactions and receipts as callers see them, made from proven parts.

use alloc::{sync::Arc, vec::Vec};

use alloy_primitives::{Address, B256};

use super::method::Failure;
use crate::{
    consensus::{VerifiedBody, VerifiedReceipts},
    engine::{BlockHeader, Chain, Refusal, Stop, ViewResult, both},
    types::{
        BlockRef, EMPTY_UNCLES_HASH, SealedHeader,
        block::block_len,
        json::{BlockParts, Location, RpcBlock, RpcReceipt, RpcTransaction, RpcTransactions},
    },
};

/// A block with transaction hashes or whole transactions. Body and uncles are fetched in one round.
pub(super) fn block(view: &dyn Chain, header: &BlockHeader, full: bool) -> Result<RpcBlock, Failure> {
    let (body, uncles) = both(view.body(header), view.uncles(header))?;
    let transactions = if full {
        RpcTransactions::Full(transactions(view, header, &body)?)
    } else {
        RpcTransactions::Hashes(body.hashes().to_vec())
    };
    let size = block_len(header, body.transactions(), uncles.headers().iter().map(|uncle| uncle.header()));
    let total_difficulty = view.total_difficulty(header.hash())?;
    let parts =
        BlockParts { transactions, uncles: Some(uncles.headers()), total_difficulty, size: Some(size) };
    Ok(from_parts(view, header, parts))
}

/// A block made of its header and these parts. Fields of merged mining are left out if they are not proven.
pub(super) fn from_parts(view: &dyn Chain, header: &BlockHeader, parts: BlockParts<'_>) -> RpcBlock {
    if header.is_pending() {
        return RpcBlock::pending(header, parts);
    }
    let block = RpcBlock::new(header, parts);
    if view.shows_work(header) { block } else { block.without_proof() }
}

/// An uncle: a block object without transactions. The member `size` counts the header alone, as in the reference node, which
/// has no bodies of uncles.
pub(super) fn uncle(view: &dyn Chain, uncle: &SealedHeader) -> Result<RpcBlock, Failure> {
    let (mut own_uncles, mut total) = (None, None);
    if uncle.uncles_hash == EMPTY_UNCLES_HASH {
        let parent_total = view.total_difficulty(uncle.parent_hash)?;
        total = parent_total.map(|total| total.saturating_add(uncle.difficulty.value()));
    } else {
        let header = match view.header_by_hash(uncle.hash()) {
            // The view may refuse to show the uncle as a block: it has no depth, and its branch may be unknown. The uncle is
            // proven all the same, only its own uncles and its total difficulty are not.
            Err(Stop::Refused(_)) => None,
            found => found?,
        };
        if let Some(header) = header {
            own_uncles = Some(view.uncles(&header)?);
            total = view.total_difficulty(uncle.hash())?;
        }
    }
    let own_uncles = own_uncles.as_ref().map(|uncles| uncles.headers());
    Ok(RpcBlock::uncle(uncle, own_uncles, total, Some(block_len(uncle, [], []))))
}

fn transactions(
    view: &dyn Chain,
    header: &BlockHeader,
    body: &VerifiedBody,
) -> Result<Vec<RpcTransaction>, Failure> {
    (0..body.transactions().len())
        .filter_map(|index| transaction(view, header, body, index).transpose())
        .collect()
}

/// The transaction at an index, or `None` past the end.
pub(super) fn transaction(
    view: &dyn Chain,
    header: &BlockHeader,
    body: &VerifiedBody,
    index: usize,
) -> Result<Option<RpcTransaction>, Failure> {
    let (Some(transaction), Some(hash)) = (body.transactions().get(index), body.hashes().get(index)) else {
        return Ok(None);
    };
    let from = sender(view, body, index, header)?;
    let location = (!header.is_pending()).then(|| location(header, index));
    Ok(Some(RpcTransaction::new(transaction, *hash, from, location.as_ref())))
}

/// The receipt at an index, or `None` past the end.
pub(super) fn receipt(
    view: &dyn Chain,
    header: &BlockHeader,
    body: &VerifiedBody,
    receipts: &VerifiedReceipts,
    index: usize,
) -> Result<Option<RpcReceipt>, Failure> {
    let parts = (body.transactions().get(index), body.hashes().get(index), receipts.receipts().get(index));
    let (Some(transaction), Some(hash), Some(receipt)) = parts else { return Ok(None) };
    let from = sender(view, body, index, header)?;
    let first_log: usize = receipts.receipts().iter().take(index).map(|earlier| earlier.logs.len()).sum();
    Ok(Some(RpcReceipt::new(receipt, transaction, *hash, from, &location(header, index), first_log as u64)))
}

fn location(header: &BlockHeader, index: usize) -> Location {
    Location { block_hash: header.hash(), block_number: header.number, index: index as u64 }
}

/// The sender, recovered from the signature; the zero address for the unsigned transaction that calls REMASC, the contract that
/// pays miners.
fn sender(
    view: &dyn Chain,
    body: &VerifiedBody,
    index: usize,
    header: &BlockHeader,
) -> Result<Address, Failure> {
    // Callers have found the transaction at this index before, so that the zero address is not returned for a missing one.
    let Some(transaction) = body.transactions().get(index) else { return Ok(Address::ZERO) };
    let block = BlockRef { number: header.number, hash: header.hash() };
    let refuse = |error| Failure::Stop(Stop::Refused(Refusal::Sender { block, index, error }));
    view.sender(&header.hash(), index, transaction).map_err(refuse)
}

/// Body and receipts of a block, fetched in one round.
pub(super) fn body_and_receipts(
    view: &dyn Chain,
    header: &BlockHeader,
) -> ViewResult<(Arc<VerifiedBody>, Arc<VerifiedReceipts>)> {
    both(view.body(header), view.receipts(header))
}

/// The index of a transaction in a proven body.
pub(super) fn position(body: &VerifiedBody, hash: &B256) -> Option<usize> {
    body.hashes().iter().position(|other| other == hash)
}
