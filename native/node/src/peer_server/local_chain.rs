//! A chain that this program executes ([`LocalService`]), as peers read it.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use rootlight::engine::{BlockHeader, View};
use rootlight::local::{ChainEvent, marked_sender};
use rootlight::trie::NodeSource;
use rootlight::types::{BlockRef, SealedHeader};
use rootlight_limits::caller_id::CallerId;
use rootlight_server::service::Service;
use tokio::sync::watch;

use super::chain::{MAX_PENDING, PeerChain, PeerHead, ServedBlock};
use super::submit::Submitter;
use crate::local::LocalService;

/// Once the transactions of one announcement have this many bytes, no more are added, so that the message stays far below the longest
/// one that peers accept (8 MiB).
const MAX_PENDING_BYTES: usize = 1024 * 1024;

/// The chain of a [`LocalService`].
pub struct LocalChain {
    service: Arc<LocalService>,
    submitter: Submitter,
}

impl LocalChain {
    /// Serves this chain; must be called inside a runtime.
    #[must_use]
    pub fn new(service: Arc<LocalService>) -> Self {
        Self { submitter: Submitter::new(service.clone()), service }
    }

    /// Reads the view with the header of this hash, if the chain has it.
    fn with_header<T>(
        &self,
        hash: B256,
        read: impl FnOnce(&dyn View, &BlockHeader) -> Option<T>,
    ) -> Option<T> {
        self.service.read(|view| read(view, &view.header_by_hash(hash).ok()??))
    }
}

impl PeerChain for LocalChain {
    fn head(&self) -> Option<PeerHead> {
        self.service.read(|view| {
            let head = view.head().ok()?;
            let block = BlockRef { number: head.number, hash: head.hash() };
            let total_difficulty = view.total_difficulty(block.hash).ok()??;
            Some(PeerHead { block, parent: head.parent_hash, total_difficulty })
        })
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        self.service.read(|view| Some(view.header_by_number(number).ok()??.hash()))
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        self.with_header(hash, |_, header| Some(header.sealed().clone()))
    }

    fn block(&self, hash: B256) -> Option<ServedBlock> {
        self.with_header(hash, |view, header| {
            Some(ServedBlock {
                header: header.sealed().clone(),
                transactions: view.body(header).ok()?.transactions().to_vec(),
                uncles: view
                    .uncles(header)
                    .ok()?
                    .headers()
                    .iter()
                    .map(|uncle| uncle.header().clone())
                    .collect(),
            })
        })
    }

    fn total_difficulty(&self, hash: B256) -> Option<U256> {
        self.service.read(|view| view.total_difficulty(hash).ok()?)
    }

    fn with_state(&self, number: u64, read: &mut dyn FnMut(B256, &dyn NodeSource)) {
        self.service.read(|view| {
            let header = view.header_by_number(number).ok()??;
            let trie = view.state_trie(&header)?;
            read(header.state_root, &trie.nodes());
            Some(())
        });
    }

    fn submit(&self, peer: CallerId, transactions: Vec<Vec<u8>>) {
        self.submitter.submit(peer, transactions);
    }

    fn pending(&self, next: &mut u64) -> Vec<Vec<u8>> {
        self.service.read(|view| {
            let (Some(events), Some(pool)) = (view.events(), view.pool()) else { return Vec::new() };
            let (mut found, mut bytes) = (Vec::new(), 0usize);
            for (number, event) in events.since(*next).into_iter().flatten() {
                if found.len() >= MAX_PENDING || bytes >= MAX_PENDING_BYTES {
                    *next = number;
                    return found;
                }
                let ChainEvent::Pending { hash, .. } = event else { continue };
                // A transaction of an impersonated account has no signature from which peers could recover its sender. The signatures of
                // all others were checked when they entered the pool.
                let waiting = pool.get(hash).filter(|waiting| marked_sender(waiting.transaction).is_none());
                let Some(waiting) = waiting else { continue };
                let rlp = waiting.transaction.encode();
                bytes = bytes.saturating_add(rlp.len());
                found.push(rlp);
            }
            *next = events.next();
            found
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.service.changes().unwrap_or_else(|| watch::channel(0).1)
    }
}
