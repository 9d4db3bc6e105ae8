//! Makes the responses to the requests of peers from a chain, with the limits and numbers of the reference node (rskj).

use alloy_primitives::B256;
use rootlight::types::header::HeaderForm;
use rootlight::types::rlp::put_str;
use rootlight::types::{BlockRef, SignedUint};
use rootlight_p2p::chunk::limits::SPAN;
use rootlight_p2p::chunk::serve;
use rootlight_p2p::message::limits::{MAX_HEADERS, MAX_SKELETON, SKELETON_STEP};
use rootlight_p2p::message::{
    Chunk, ChunkRequest, Items, Message, Request, Response, SnapBlocks, SnapStatus, list_payload,
};
use rootlight_p2p::rlpx::MAX_FRAME_SENT;

use super::chain::PeerChain;

/// Number of blocks in a response to a request for the blocks before one; a checkpoint has one block more.
const SNAP_BLOCKS: u64 = 400;

/// Blocks between two checkpoints, by whose states snapshot service (snap/1) works.
const CHECKPOINT_STEP: u64 = 5_000;

/// Least number of blocks on top of a checkpoint.
const CHECKPOINT_DEPTH: u64 = 3_840;

/// The payload of the message that answers a request, as the reference node answers it. `None` if it sends no response, because
/// data is missing, or because the request asks for more than its limits allow.
pub fn respond(chain: &dyn PeerChain, id: u64, request: Request) -> Option<Vec<u8>> {
    let wrap = |response| Some(Message::Response { id, response }.encode());
    let payload = match request {
        Request::BlockHash { height } => wrap(Response::BlockHash(
            Some(height).filter(|height| *height > 0).and_then(|n| chain.hash_at(n))?,
        )),
        Request::Headers { hash, count } => headers(chain, id, hash, count),
        Request::Block(hash) => wrap(Response::Block(&chain.block(hash)?.encode())),
        Request::Body(hash) => chain.block(hash)?.body_message(id).ok(),
        Request::Skeleton { start } => wrap(Response::Skeleton(skeleton(chain, start)?)),
        Request::Chunk(request) => chunk(chain, id, request),
        Request::SnapStatus => snap_status(chain, id),
        Request::SnapBlocks { before } => {
            let head = chain.head()?.block.number;
            let (blocks, sums) =
                consecutive_blocks(chain, before.checked_sub(1).filter(|last| (1..head).contains(last))?, 1)?;
            wrap(Response::SnapBlocks(snap_blocks(&blocks, &sums)?))
        }
    }?;
    // The frame also has the message's code of one byte. The reference node closes the connection at longer frames.
    (payload.len() < MAX_FRAME_SENT).then_some(payload)
}

/// A header and its ancestors, descending to genesis. A request for none gets one.
fn headers(chain: &dyn PeerChain, id: u64, hash: B256, count: u64) -> Option<Vec<u8>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= MAX_HEADERS)?.max(1);
    let found = chain.headers(hash, count);
    // The response has all requested headers, or those down to genesis.
    let last = found.last()?;
    if found.len() < count && last.number > 0 {
        return None;
    }
    let payload = list_payload(found.iter().map(|header| header.encode(HeaderForm::Compressed)));
    let headers = Items::lists(&payload, MAX_HEADERS, "headers").ok()?;
    Some(Message::Response { id, response: Response::Headers(headers) }.encode())
}

/// The hashes of every 192nd block, [`SKELETON_STEP`], from the one at or below `start` on, and of the head or of the last block of the
/// range.
fn skeleton(chain: &dyn PeerChain, start: u64) -> Option<Vec<BlockRef>> {
    let head = chain.head()?.block.number;
    if start > head {
        return None;
    }
    let first = start / SKELETON_STEP * SKELETON_STEP;
    let last = first.saturating_add(SKELETON_STEP * (MAX_SKELETON as u64 - 1)).min(head);
    let steps = (first..last).step_by(SKELETON_STEP as usize).chain([last]);
    let at = |number| Some(BlockRef { number, hash: chain.hash_at(number)? });
    steps.map(at).collect()
}

/// A range of the state after the canonical block of a height.
fn chunk(chain: &dyn PeerChain, id: u64, request: ChunkRequest) -> Option<Vec<u8>> {
    let ChunkRequest { block, from, .. } = request;
    let mut payload = None;
    chain.with_state(block, &mut |root, nodes| {
        let Some(served) = serve::chunk(nodes, &root, from) else { return };
        let to = from.saturating_add(SPAN);
        let chunk = Chunk { bytes: &served.bytes, block, from, to, complete: served.complete };
        payload = Some(Message::Response { id, response: Response::Chunk(chunk) }.encode());
    });
    payload
}

/// The newest checkpoint: its last 401 blocks, and the size of its state.
fn snap_status(chain: &dyn PeerChain, id: u64) -> Option<Vec<u8>> {
    let head = chain.head()?.block.number;
    let checkpoint = (head / CHECKPOINT_STEP * CHECKPOINT_STEP).saturating_sub(CHECKPOINT_DEPTH);
    let (blocks, sums) = consecutive_blocks(chain, checkpoint, 0)?;
    let mut trie_size = None;
    chain.with_state(checkpoint, &mut |root, nodes| trie_size = serve::trie_size(nodes, &root));
    let status = SnapStatus { blocks: snap_blocks(&blocks, &sums)?, trie_size: trie_size? };
    Some(Message::Response { id, response: Response::SnapStatus(status) }.encode())
}

/// The payloads of the lists of consecutive blocks up to `last`, and of their total difficulties. There are 401 blocks down to block 0,
/// as a checkpoint has, or 400 blocks down to block 1: `lowest` is 0 or 1.
fn consecutive_blocks(chain: &dyn PeerChain, last: u64, lowest: u64) -> Option<(Vec<u8>, Vec<u8>)> {
    let first = last.saturating_sub(SNAP_BLOCKS - lowest).max(lowest);
    let (mut blocks, mut sums) = (Vec::new(), Vec::new());
    chain.blocks(first, last, &mut |block, sum| {
        put_str(&mut blocks, &block.encode());
        // In the signed form of the reference node: a zero byte leads where the first bit would be set.
        SignedUint::new(sum).put(&mut sums);
        // A longer run is not sent, so the rest of it is not made.
        (blocks.len() < MAX_FRAME_SENT).then_some(())
    })?;
    Some((blocks, sums))
}

fn snap_blocks<'a>(blocks: &'a [u8], sums: &'a [u8]) -> Option<SnapBlocks<'a>> {
    let most = usize::try_from(SNAP_BLOCKS).ok()? + 1;
    Some(SnapBlocks {
        blocks: Items::strings(blocks, most, "blocks").ok()?,
        difficulties: Items::strings(sums, most, "difficulties").ok()?,
    })
}
