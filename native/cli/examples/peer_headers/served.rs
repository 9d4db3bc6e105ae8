//! A chain with headers as those of the main network, as a peer serves it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use alloy_primitives::{B256, U256};
use rootlight::consensus::Network;
use rootlight::trie::NodeSource;
use rootlight::types::{BlockRef, SealedHeader};
use rootlight_node::peer_server::{PeerChain, PeerHead, ServedBlock};
use tokio::sync::watch;

use super::chain::{BELOW, BlockFile, HeaderAndUncles, NETWORK, START};

/// The rules of the chain, under the name of a network whose peers may have any block 0.
pub(crate) fn network() -> Network {
    Network::from_json(&NETWORK.replace("\"cold\"", "\"regtest\"")).expect("a network")
}

/// A mined chain, and what was asked of it.
pub(crate) struct CountedChain {
    chain: BlockFile,
    numbers: BTreeMap<B256, u64>,
    /// The number of the newest header of each run that was asked for, and its length.
    pub(crate) runs: Mutex<Vec<(u64, usize)>>,
}

impl CountedChain {
    /// Mines a chain with so many headers above its start, or takes that of an earlier run.
    pub(crate) fn new(headers: u64) -> Self {
        let chain = BlockFile::open_or_make(headers);
        let numbers = (START - BELOW..=chain.head()).map(|number| (chain.hash(number), number)).collect();
        Self { chain, numbers, runs: Mutex::default() }
    }

    pub(crate) fn at(&self, number: u64) -> Option<SealedHeader> {
        self.chain.block(number).map(|(header, _)| header.into_header())
    }

    /// The header of a block, with the uncles.
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

    /// A block without its transactions, which nobody asks for.
    fn block(&self, hash: B256) -> Option<ServedBlock> {
        let (header, uncles) = self.chain.block(*self.numbers.get(&hash)?)?;
        let uncles = uncles.into_iter().map(SealedHeader::into_header).collect();
        Some(ServedBlock { header: header.into_header(), transactions: Vec::new(), uncles })
    }

    fn total_difficulty(&self, _: B256) -> Option<U256> {
        None
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
