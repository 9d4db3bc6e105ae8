//! The interface of a chain that a server for peers reads: its blocks, states and waiting transactions.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use rootlight::trie::NodeSource;
use rootlight::types::block::encode_block;
use rootlight::types::header::HeaderForm;
use rootlight::types::rlp::{put_list, put_str};
use rootlight::types::{BlockRef, Header, HeaderVersion, SealedHeader, Transaction};
use rootlight_limits::caller_id::CallerId;
use rootlight_p2p::message::Extension;
use rootlight_p2p::message::{Body, Items, Message, MessageError, Response, list_payload};
use tokio::sync::watch;

/// Most transactions that one message announces to a peer.
pub const MAX_PENDING: usize = 256;

/// A block of the chain.
pub struct ServedBlock {
    /// The header, with the proof of its work.
    pub header: SealedHeader,
    /// The transactions.
    pub transactions: Vec<Transaction>,
    /// The uncles.
    pub uncles: Vec<Header>,
}

impl ServedBlock {
    /// The block in RLP.
    pub(super) fn encode(&self) -> Vec<u8> {
        encode_block(&self.header, &self.transactions, &self.uncles)
    }

    /// The payload of the message with the block's body.
    pub(super) fn body_message(&self, id: u64) -> Result<Vec<u8>, MessageError> {
        let transactions = list_payload(self.transactions.iter().map(Transaction::encode));
        let uncles = list_payload(self.uncles.iter().map(|uncle| uncle.encode(HeaderForm::Full)));
        let fields = extension_fields(&self.header);
        let version = self.header.shape.version;
        let body = Body {
            transactions: Items::lists(&transactions, usize::MAX, "transactions")?,
            uncles: Items::lists(&uncles, usize::MAX, "uncles")?,
            extension: (version != HeaderVersion::V0).then_some(Extension { version, fields: &fields }),
        };
        Ok(Message::Response { id, response: Response::Body(body) }.encode())
    }
}

/// The header fields that the compressed form of a header omits, as a list: bloom, base event (version 2) and edges.
fn extension_fields(header: &Header) -> Vec<u8> {
    let mut payload = Vec::new();
    put_str(&mut payload, header.logs_bloom.as_slice());
    if header.shape.version == HeaderVersion::V2 {
        put_str(&mut payload, &header.base_event);
    }
    if header.shape.edges {
        let edges: Vec<u8> = header.edges.iter().flat_map(|edge| edge.to_le_bytes()).collect();
        put_str(&mut payload, &edges);
    }
    let mut list = Vec::new();
    put_list(&mut list, &payload);
    list
}

/// The newest block, as a status names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerHead {
    /// The block.
    pub block: BlockRef,
    /// Hash of the block's parent; zeros for genesis.
    pub parent: B256,
    /// Total difficulty up to the block.
    pub total_difficulty: U256,
}

/// Takes a block and the total difficulty up to it. `None` ends the run.
pub type TakeBlock<'a> = dyn FnMut(ServedBlock, U256) -> Option<()> + 'a;

/// A chain that a server gives to its peers.
pub trait PeerChain: Send + Sync + 'static {
    /// The newest block.
    fn head(&self) -> Option<PeerHead>;

    /// Hash of the canonical block of a height.
    fn hash_at(&self, number: u64) -> Option<B256>;

    /// A header by hash, canonical or not.
    fn header(&self, hash: B256) -> Option<SealedHeader>;

    /// A block by hash, canonical or not.
    fn block(&self, hash: B256) -> Option<ServedBlock>;

    /// Total difficulty up to a canonical block.
    fn total_difficulty(&self, hash: B256) -> Option<U256>;

    /// A header by hash and its ancestors, descending to genesis: at most `count`, and at least one. Empty if the header is missing; ends
    /// before the first ancestor that is missing.
    fn headers(&self, hash: B256, count: usize) -> Vec<SealedHeader> {
        let mut found: Vec<SealedHeader> = Vec::new();
        let mut next = self.header(hash);
        while let Some(header) = next {
            let last = header.number == 0 || found.len().saturating_add(1) >= count;
            next = (!last).then(|| self.header(header.parent_hash)).flatten();
            found.push(header);
        }
        found
    }

    /// Hands the canonical blocks from one height to another to `take`, one after another, each with the total difficulty up
    /// to it. `None` if a block is missing, or if `take` ends the run.
    fn blocks(&self, first: u64, last: u64, take: &mut TakeBlock<'_>) -> Option<()> {
        let hashes: Vec<B256> = (first..=last).map(|number| self.hash_at(number)).collect::<Option<_>>()?;
        hashes.into_iter().try_for_each(|hash| take(self.block(hash)?, self.total_difficulty(hash)?))
    }

    /// Whether there are states to read, which the handshake announces to peers.
    fn serves_state(&self) -> bool {
        true
    }

    /// Reads the state after the canonical block of a height: its root and its nodes. Does not call `read` if the
    /// state is not stored.
    fn with_state(&self, number: u64, read: &mut dyn FnMut(B256, &dyn NodeSource));

    /// Takes transactions of a peer, each in RLP. They are checked like those of any client at its address.
    fn submit(&self, peer: CallerId, transactions: Vec<Vec<u8>>);

    /// Transactions that entered the pool from the position `next` on and are still in it, each in RLP, at most
    /// [`MAX_PENDING`]; `next` becomes the position after them. An unknown position becomes the present one.
    fn pending(&self, next: &mut u64) -> Vec<Vec<u8>>;

    /// A counter of changes: the head may be another one after each.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// A chain that all connections share.
pub type SharedChain = Arc<dyn PeerChain>;
