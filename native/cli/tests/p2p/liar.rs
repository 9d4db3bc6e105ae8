//! A server whose headers have no proof of work.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use rootlight::trie::NodeSource;
use rootlight::types::SealedHeader;
use rootlight_limits::caller_id::CallerId;
use rootlight_node::peer_server::{PeerChain, PeerHead, ServedBlock};
use tokio::sync::watch;

use crate::chain::RecordedChain;

/// Gives every header but that of block 0 another time than it was mined with.
pub(crate) struct Liar(pub(crate) Arc<RecordedChain>);

impl PeerChain for Liar {
    fn head(&self) -> Option<PeerHead> {
        self.0.head()
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        self.0.hash_at(number)
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        let mut header = self.0.header(hash)?.header().clone();
        header.timestamp += u64::from(header.number > 0);
        Some(header.seal())
    }

    fn block(&self, hash: B256) -> Option<ServedBlock> {
        self.0.block(hash)
    }

    fn total_difficulty(&self, hash: B256) -> Option<U256> {
        self.0.total_difficulty(hash)
    }

    fn with_state(&self, number: u64, read: &mut dyn FnMut(B256, &dyn NodeSource)) {
        self.0.with_state(number, read);
    }

    fn submit(&self, peer: CallerId, transactions: Vec<Vec<u8>>) {
        self.0.submit(peer, transactions);
    }

    fn pending(&self, next: &mut u64) -> Vec<Vec<u8>> {
        self.0.pending(next)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }
}
