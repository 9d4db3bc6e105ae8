//! A chain with headers as those of the main network, as a peer serves it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::{B256, U256};
use rootlight::consensus::Network;
use rootlight::trie::NodeSource;
use rootlight::types::{BlockRef, SealedHeader};
use rootlight_node::peer_server::{PeerChain, PeerHead, ServedBlock};
use tokio::sync::watch;

use super::chain::{BELOW, BlockFile, HeaderAndUncles, START};

/// Rules of a chain, under the name of a network whose peers may have any block 0.
pub(crate) fn network(rules: &str) -> Network {
    let mut network = Network::from_json(rules).expect("a network");
    network.name = "regtest".into();
    network
}

/// A mined chain, and what was asked of it.
pub(crate) struct CountedChain {
    chain: BlockFile,
    numbers: BTreeMap<B256, u64>,
    /// The number of the newest header of each run that was asked for, and its length.
    pub(crate) runs: Mutex<Vec<(u64, usize)>>,
    /// Whether total difficulties are known, without which peers get no runs of blocks.
    pub(crate) knows_totals: bool,
    /// Blocks that were asked for, alone and in runs.
    pub(crate) blocks: AtomicUsize,
}

impl CountedChain {
    /// Mines a chain with so many headers above its start, or takes that of an earlier run.
    pub(crate) fn new(rules: &str, headers: u64) -> Self {
        let chain = BlockFile::open_or_make(rules, headers);
        let numbers = (START - BELOW..=chain.head()).map(|number| (chain.hash(number), number)).collect();
        Self { chain, numbers, runs: Mutex::default(), knows_totals: false, blocks: AtomicUsize::new(0) }
    }

    pub(crate) fn at(&self, number: u64) -> Option<SealedHeader> {
        self.chain.block(number).map(|(header, _)| header.into_header())
    }

    pub(crate) fn with_uncles(&self, number: u64) -> Option<HeaderAndUncles> {
        self.chain.block(number)
    }

    /// The number of the newest block.
    pub(crate) fn newest(&self) -> u64 {
        self.chain.head()
    }
}

impl PeerChain for CountedChain {
    fn head(&self) -> Option<PeerHead> {
        let head = self.at(self.newest())?;
        let block = BlockRef { number: head.number, hash: head.hash() };
        Some(PeerHead { block, parent: head.parent_hash, total_difficulty: U256::from(1) })
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        self.at(number).map(|header| header.hash())
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        self.at(*self.numbers.get(&hash)?)
    }

    fn headers(&self, hash: B256, count: usize) -> Vec<SealedHeader> {
        let Some(newest) = self.numbers.get(&hash).copied() else { return Vec::new() };
        let oldest = newest.saturating_sub(count as u64 - 1);
        let found: Vec<SealedHeader> = (oldest..=newest).rev().map_while(|number| self.at(number)).collect();
        self.runs.lock().expect("no panic").push((newest, found.len()));
        found
    }

    /// A block without its transactions, which no client asks for.
    fn block(&self, hash: B256) -> Option<ServedBlock> {
        self.blocks.fetch_add(1, Ordering::Relaxed);
        let (header, uncles) = self.chain.block(*self.numbers.get(&hash)?)?;
        let uncles = uncles.into_iter().map(SealedHeader::into_header).collect();
        Some(ServedBlock { header: header.into_header(), transactions: Vec::new(), uncles })
    }

    fn total_difficulty(&self, hash: B256) -> Option<U256> {
        self.knows_totals.then(|| self.numbers.get(&hash).map(|number| U256::from(*number)))?
    }

    fn with_state(&self, _: u64, _: &mut dyn FnMut(B256, &dyn NodeSource)) {}

    fn submit(&self, _: rootlight_limits::caller_id::CallerId, _: Vec<Vec<u8>>) {}

    fn pending(&self, _: &mut u64) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}
