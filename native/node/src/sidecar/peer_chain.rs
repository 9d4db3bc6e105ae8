//! The node's chain and its states, as the server for peers reads them (`rootlight sidecar --p2p-port`).

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use rootlight::consensus::{ChainView, Network};
use rootlight::trie::NodeSource;
use rootlight::types::{Block, BlockRef, SealedHeader};
use rootlight_limits::caller_id::CallerId;
use rootlight_server::service::Service as _;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::debug;

use super::service::SidecarService;
use crate::follow::{FetchError, WINDOW, fetch_block, fetch_blocks, fetch_header, fetch_headers};
use crate::peer_server::{PeerChain, PeerHead, ServedBlock, Submitter, TakeBlock, wait_without_permit};

/// The chain of a [`SidecarService`]: headers that it has verified, older ones and bodies from its node, states from the
/// node's store. All but the head and the pool may wait for the node, so they must be read on threads that may block.
pub struct NodeChain {
    service: Arc<SidecarService>,
    network: Arc<Network>,
    runtime: Handle,
    submitter: Submitter,
}

impl NodeChain {
    /// Serves the chain of this sidecar; must be called inside a runtime.
    #[must_use]
    pub fn new(service: Arc<SidecarService>, network: Network) -> Self {
        let submitter = Submitter::new(service.clone());
        Self { service, network: Arc::new(network), runtime: Handle::current(), submitter }
    }

    /// Reads the verified chain.
    fn verified<T>(&self, read: impl FnOnce(&ChainView) -> Option<T>) -> Option<T> {
        read(self.service.parts().light.pinned().chain()?)
    }

    /// Waits for the node without the permit of the response, so that other peers are answered. `None` if the node does not answer.
    fn wait<T>(&self, fetch: impl Future<Output = Result<T, FetchError>>) -> Option<T> {
        let fetched = wait_without_permit(&self.runtime, fetch);
        fetched.inspect_err(|error| debug!("peers: the node: {error}")).ok()
    }

    /// The headers of a range of heights, as the node shows them; fewer if its chain ends before.
    fn shown(&self, first: u64, last: u64) -> Option<Vec<SealedHeader>> {
        let (node, mut headers) = (&*self.service.parts().node, Vec::new());
        while let Some(next) = first.checked_add(headers.len() as u64).filter(|next| *next <= last) {
            let some = self.wait(fetch_headers(node, &self.network, next, last))?;
            if some.is_empty() {
                break;
            }
            headers.extend(some);
        }
        Some(headers)
    }

    /// The canonical header of a height.
    fn canonical(&self, number: u64) -> Option<SealedHeader> {
        let known = self.verified(|chain| match number > chain.head().number {
            true => Some(None),
            false => chain.by_number(number).map(|header| Some(header.sealed().clone())),
        });
        match known {
            Some(known) => known,
            None => self.shown(number, number)?.pop(),
        }
    }

    /// Total difficulty up to a block of the verified chain. While its uncles are not proven, it lacks their difficulty.
    fn verified_sum(&self, hash: &B256) -> Option<U256> {
        let pinned = self.service.parts().light.pinned();
        let chain = pinned.chain()?;
        let base = pinned.checkpoint().total_difficulty;
        let at_least = || base?.checked_add(chain.header_work(hash)?);
        chain.total_difficulty(hash).or_else(at_least)
    }
}

impl PeerChain for NodeChain {
    fn head(&self) -> Option<PeerHead> {
        let (block, parent) = self.verified(|chain| {
            let head = chain.head();
            Some((BlockRef { number: head.number, hash: head.hash() }, head.parent_hash))
        })?;
        Some(PeerHead { total_difficulty: self.verified_sum(&block.hash)?, block, parent })
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        self.canonical(number).map(|header| header.hash())
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        let known = self.verified(|chain| chain.by_hash(&hash).map(|header| header.sealed().clone()));
        let node = &*self.service.parts().node;
        known.or_else(|| Some(self.wait(fetch_header(node, &self.network, hash))??.0))
    }

    fn block(&self, hash: B256) -> Option<ServedBlock> {
        let node = &*self.service.parts().node;
        self.wait(fetch_block(node, &self.network, hash))?.map(served)
    }

    fn total_difficulty(&self, hash: B256) -> Option<U256> {
        let node = &*self.service.parts().node;
        let known = self.verified(|chain| chain.total_difficulty(&hash));
        known.or_else(|| self.wait(fetch_header(node, &self.network, hash))??.1)
    }

    fn headers(&self, hash: B256, count: usize) -> Vec<SealedHeader> {
        let (mut found, mut next) = (Vec::new(), hash);
        // Verified headers are in memory.
        self.verified(|chain| {
            while let Some(header) = chain.by_hash(&next).filter(|_| found.len() < count) {
                next = header.parent_hash;
                found.push(header.sealed().clone());
            }
            Some(())
        });
        if found.is_empty() {
            found.extend(self.header(hash));
        }
        // Further headers are fetched by height, in few requests. If they are on another branch than the node's, they are fetched by hash,
        // one by one.
        while let Some(last) = found.last().filter(|last| last.number > 0 && found.len() < count) {
            let (parent, below) = (last.parent_hash, last.number.saturating_sub(1));
            let left = u64::try_from(count.saturating_sub(found.len())).unwrap_or(u64::MAX).min(WINDOW);
            let run = self.shown(below.saturating_sub(left - 1), below).unwrap_or_default();
            let before = found.len();
            for header in run.into_iter().rev() {
                let wanted = found.last().map_or(parent, |last: &SealedHeader| last.parent_hash);
                if header.hash() != wanted {
                    break;
                }
                found.push(header);
            }
            if found.len() == before {
                let Some(header) = self.header(parent) else { break };
                found.push(header);
            }
        }
        found
    }

    fn blocks(&self, first: u64, last: u64, take: &mut TakeBlock<'_>) -> Option<()> {
        let (node, mut next, mut before) = (&*self.service.parts().node, first, None::<(B256, U256)>);
        while next <= last {
            let some = self.wait(fetch_blocks(node, &self.network, next, last))?;
            if some.is_empty() {
                return None;
            }
            for block in some {
                let hash = block.header.hash();
                let sum = match before {
                    None => self.total_difficulty(hash)?,
                    // The node has changed to another branch meanwhile.
                    Some((before, _)) if block.header.parent_hash != before => return None,
                    Some((_, sum)) => sum.checked_add(work(&block)?)?,
                };
                (before, next) = (Some((hash, sum)), next.checked_add(1)?);
                take(served(block), sum)?;
            }
        }
        Some(())
    }

    fn with_state(&self, number: u64, read: &mut dyn FnMut(B256, &dyn NodeSource)) {
        let store = self.service.parts().store();
        if let Some(header) = self.canonical(number).filter(|header| store.node(&header.state_root).is_some())
        {
            read(header.state_root, store);
        }
    }

    fn serves_state(&self) -> bool {
        self.service.provable_block().is_some()
    }

    fn submit(&self, peer: CallerId, transactions: Vec<Vec<u8>>) {
        self.submitter.submit(peer, transactions);
    }

    /// None, because the node announces its transactions to its own peers.
    fn pending(&self, _: &mut u64) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.service.changes().unwrap_or_else(|| watch::channel(0).1)
    }
}

/// A block of the node for peers.
fn served(block: Block) -> ServedBlock {
    ServedBlock { header: block.header.seal(), transactions: block.body.transactions, uncles: block.uncles }
}

/// Difficulty of a block and its uncles.
fn work(block: &Block) -> Option<U256> {
    let mut uncles = block.uncles.iter().map(|uncle| uncle.difficulty.value());
    uncles.try_fold(block.header.difficulty.value(), U256::checked_add)
}
