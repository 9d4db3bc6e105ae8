//! Lists of headers and blocks that follow each other.

use alloy_primitives::{B256, U256};
use rootlight::consensus::Network;
use rootlight::types::BlockRef;
use rootlight_p2p::message::limits::{MAX_BLOCKS, SKELETON_STEP};
use rootlight_p2p::message::{Items, SnapBlocks, SnapStatus};

use super::block::{CheckedBlock, any_block};
use super::error::CheckError;
use super::header::PeerHeader;

/// Number of full steps in a skeleton.
const SKELETON_STEPS: u64 = 20;

/// Checks headers that were requested by the hash of the first one: each is the parent of the one before, and there are
/// as many as requested, or fewer down to genesis. Their proof of work is not checked: see [`PeerHeader::check_work`].
///
/// # Errors
/// The first header has another hash, a link is broken, or headers are missing or too many.
pub(crate) fn headers(
    hash: &B256,
    count: u64,
    list: &Items<'_>,
    network: &Network,
) -> Result<Vec<PeerHeader>, CheckError> {
    // A request for none is answered with one.
    let expected = count.max(1);
    let wrong = CheckError::Count { expected, found: list.len() };
    if list.is_empty() || list.len() as u64 > expected {
        return Err(wrong);
    }
    let mut headers: Vec<PeerHeader> = Vec::with_capacity(list.len());
    for (index, rlp) in list.iter().enumerate() {
        let header = PeerHeader::decode(rlp, network)?;
        match headers.last() {
            None if header.hash() != *hash => {
                return Err(CheckError::Hash { expected: *hash, found: header.hash() });
            }
            Some(child) if header.hash() != child.parent_hash() => return Err(CheckError::Link(index)),
            Some(child) if header.number().checked_add(1) != Some(child.number()) => {
                let (expected, found) = (child.number().saturating_sub(1), header.number());
                return Err(CheckError::Number { index, expected, found });
            }
            _ => headers.push(header),
        }
    }
    let at_genesis = headers.last().is_some_and(|last| last.number() == 0);
    match headers.len() as u64 == expected || at_genesis {
        true => Ok(headers),
        false => Err(wrong),
    }
}

/// Checks the blocks that were requested as those before a number: up to 400 consecutive ones, each the child of the one
/// before, with total difficulties that grow accordingly. The first total difficulty is not checked.
///
/// # Errors
/// A block is malformed or missing, a link is broken, or a total difficulty is wrong.
pub(crate) fn snap_blocks(
    before: u64,
    list: &SnapBlocks<'_>,
    network: &Network,
) -> Result<Vec<(CheckedBlock, U256)>, CheckError> {
    let most = MAX_BLOCKS.saturating_sub(1) as u64;
    let first = before.saturating_sub(most).max(1);
    let expected = before.saturating_sub(first);
    if list.blocks.len() as u64 != expected {
        return Err(CheckError::Count { expected, found: list.blocks.len() });
    }
    linked(Some(first), list, network)
}

/// Checks the blocks of a snapshot server's status: consecutive ones, each the child of the one before, with total
/// difficulties that grow accordingly. The last one is the checkpoint. Neither its place in the chain nor the first total
/// difficulty nor the size of the trie is checked.
///
/// # Errors
/// There is no block, one is malformed, a link is broken, or a total difficulty is wrong.
pub(crate) fn snap_status(
    status: &SnapStatus<'_>,
    network: &Network,
) -> Result<Vec<(CheckedBlock, U256)>, CheckError> {
    match status.blocks.blocks.is_empty() {
        true => Err(CheckError::Count { expected: MAX_BLOCKS as u64, found: 0 }),
        false => linked(None, &status.blocks, network),
    }
}

/// Checks consecutive blocks, of which the first one has this number.
fn linked(
    mut first: Option<u64>,
    list: &SnapBlocks<'_>,
    network: &Network,
) -> Result<Vec<(CheckedBlock, U256)>, CheckError> {
    let mut blocks: Vec<(CheckedBlock, U256)> = Vec::with_capacity(list.blocks.len());
    for (index, (rlp, total)) in list.iter().enumerate() {
        let block = any_block(rlp, network)?;
        let header = block.header.header();
        let number = first.get_or_insert(header.number).saturating_add(index as u64);
        if header.number != number {
            return Err(CheckError::Number { index, expected: number, found: header.number });
        }
        if let Some((parent, before)) = blocks.last() {
            if header.parent_hash != parent.header.header().hash() {
                return Err(CheckError::Link(index));
            }
            let expected = before.saturating_add(work(&block));
            if total != expected {
                return Err(CheckError::TotalDifficulty { index, expected, found: total });
            }
        }
        blocks.push((block, total));
    }
    Ok(blocks)
}

/// The difficulties of a block and its uncles.
fn work(block: &CheckedBlock) -> U256 {
    let own = block.header.header().difficulty.value();
    let uncles = block.uncles.iter().map(|uncle| uncle.difficulty.value());
    uncles.fold(own, U256::saturating_add)
}

/// Checks the numbers of a skeleton: multiples of [`SKELETON_STEP`] from the start on, then the end.
///
/// # Errors
/// A number is not the one at its position, or there is none.
pub(crate) fn skeleton(start: u64, blocks: &[BlockRef]) -> Result<(), CheckError> {
    let first = start.saturating_sub(start.checked_rem(SKELETON_STEP).unwrap_or(0));
    let end = first.saturating_add(SKELETON_STEP.saturating_mul(SKELETON_STEPS));
    let mut expected = first;
    for (index, block) in blocks.iter().enumerate() {
        let last = index.saturating_add(1) == blocks.len();
        // The last entry is the head of the peer, or the end.
        let before = expected.saturating_sub(SKELETON_STEP);
        let is_head = last && index > 0 && before < block.number && block.number <= expected;
        if (block.number != expected && !is_head) || block.number > end {
            return Err(CheckError::Number { index, expected, found: block.number });
        }
        expected = expected.saturating_add(SKELETON_STEP);
    }
    match blocks.is_empty() {
        true => Err(CheckError::Count { expected: 1, found: 0 }),
        false => Ok(()),
    }
}
