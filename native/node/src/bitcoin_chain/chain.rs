//! A Bitcoin chain beside a development chain, by the rules of Bitcoin's regtest: the easiest target, and no retargets. The
//! development chain mines on its blocks ([`SimulatedBitcoin`]); the servers of `serve.rs` read it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::{B256, U256};
use rootlight::consensus::bitcoin::{BitcoinHeader, HEADER_LEN, ServedBitcoin, pack_headers};
use rootlight::consensus::mining::BitcoinWork;
use rootlight::dev::{BitcoinBlocks, BitcoinTip, SimulatedBitcoin};
use rootlight::light::bitcoin::{
    MAX_SERVED_COINBASES, MAX_SERVED_HEADERS, encode_coinbase_proofs, encode_packed_headers,
};
use tokio::sync::watch;

use super::coinbase::BlockCoinbase;

/// Number of newest blocks whose coinbases are kept, and the most blocks that a reorganisation replaces. Older coinbases are
/// dropped to bound memory.
pub const KEPT_COINBASES: u32 = 2_016;

/// Most blocks of the chain. Their headers and hashes take 126 MB (120 bytes each), and the chain does not grow beyond that.
const MAX_BLOCKS: usize = 1 << 20;

/// Target of all blocks, in Bitcoin's compact form: about half of all hashes meet it.
const BITS: u32 = 0x207f_ffff;

/// Version of the blocks: the bits that BIP-9 demands, with no proposal set.
const VERSION: u32 = 0x2000_0000;

/// Version of block 0 of Bitcoin's regtest. Its time and nonce follow; the time is of 2 February 2011.
const GENESIS_VERSION: u32 = 1;
const GENESIS_TIME: u32 = 1_296_688_602;
const GENESIS_NONCE: u32 = 2;

/// Number of newest blocks whose median time is below the time of the next block, by Bitcoin's rules.
const MEDIAN_OF: usize = 11;

/// Exclusive bound, in seconds, of the difference between the time of a Bitcoin header and that of the Rootstock block that it
/// mines (RSKIP-179).
const TIME_BOUND: u32 = 300;

/// Most nonces that are tried for one block. Three are needed on average, because Rootstock's least difficulty is 3.
const ATTEMPTS: u32 = 1 << 22;

/// A Bitcoin chain in memory. Each block of the development chain is merge-mined in a Bitcoin header; one of `every` such headers
/// becomes the next block of this chain.
#[derive(Debug)]
pub struct RegtestChain {
    blocks: Mutex<Blocks>,
    /// Number of merge-mined headers for one block of this chain.
    every: u32,
    /// Changes with the newest block.
    changes: watch::Sender<()>,
}

/// The blocks of the chain, and the changes that are in progress.
#[derive(Debug)]
struct Blocks {
    /// By height.
    blocks: Vec<Block>,
    /// Coinbase of the last result of [`SimulatedBitcoin::next`], which the next merge-mined block has.
    pending: Option<BlockCoinbase>,
    /// Blocks of the development chain that were mined on the newest block.
    mined_on_tip: u32,
    /// Number of coinbases made so far, by which no two coinbases are equal.
    coinbases_made: u64,
    /// The changes of the development chain that are in progress, the outermost first.
    open_changes: Vec<OpenChange>,
}

/// A change of the development chain that is in progress, with this chain as it was when the change began.
#[derive(Debug)]
struct OpenChange {
    /// Whether readers see the chain from before the change until the change has ended.
    hides_change: bool,
    /// Number of lowest blocks that the change has not replaced.
    base: usize,
    /// The blocks above these that the change has replaced, lowest first.
    replaced: Vec<Block>,
    pending: Option<BlockCoinbase>,
    mined_on_tip: u32,
    coinbases_made: u64,
}

/// A block: its header and, while it is among the newest, its coinbase.
#[derive(Debug, Clone)]
struct Block {
    header: [u8; HEADER_LEN],
    hash: B256,
    /// `None` for a block below the newest [`KEPT_COINBASES`]. In a box, because most blocks have none.
    coinbase: Option<Box<BlockCoinbase>>,
}

impl RegtestChain {
    /// Makes a chain of block 0. One in `every` merge-mined headers becomes a block; 0 counts as 1.
    #[must_use]
    pub fn new(every: u32) -> Self {
        let coinbase = BlockCoinbase::genesis();
        let mut header = header_of(GENESIS_VERSION, &B256::ZERO, &coinbase.root(), GENESIS_TIME);
        header[76..].copy_from_slice(&GENESIS_NONCE.to_le_bytes());
        let hash = BitcoinHeader::from(&header).hash();
        let block = Block { header, hash, coinbase: Some(Box::new(coinbase)) };
        let blocks = Blocks {
            blocks: vec![block],
            pending: None,
            mined_on_tip: 0,
            coinbases_made: 0,
            open_changes: Vec::new(),
        };
        Self { blocks: Mutex::new(blocks), every: every.max(1), changes: watch::Sender::default() }
    }

    /// The newest block.
    pub fn tip(&self) -> BitcoinTip {
        let blocks = self.lock();
        let tip = tip_of(blocks.shown());
        drop(blocks);
        tip
    }

    /// At most `count` headers from a height on.
    pub fn headers(&self, from: u32, count: usize) -> Vec<[u8; HEADER_LEN]> {
        let blocks = self.lock();
        blocks.shown().skip(from as usize).take(count).map(|block| block.header).collect()
    }

    /// The coinbase of the block at a height; `None` if there is no such block, or if it is older than those that are kept.
    pub fn coinbase(&self, height: u32) -> Option<BlockCoinbase> {
        self.lock().shown().nth(height as usize)?.coinbase.as_deref().cloned()
    }

    /// The coinbase with this hash, in internal byte order, of the blocks whose coinbases are kept.
    pub(super) fn transaction(&self, hash: &B256) -> Option<BlockCoinbase> {
        let blocks = self.lock();
        let mut kept = blocks.shown().rev().map_while(|block| block.coinbase.as_deref());
        kept.find(|coinbase| coinbase.hash == *hash).cloned()
    }

    /// The median time of the block at a height and those below it; the next block's time must be later.
    pub(super) fn median_time(&self, height: u32) -> u32 {
        let (end, blocks) = (height as usize + 1, self.lock());
        let shown = blocks.shown().take(end);
        median_time(shown.skip(end.saturating_sub(MEDIAN_OF)))
    }

    /// A receiver that is notified when the newest block changes.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies receivers of a new newest block, unless a change is in progress, whose end notifies them.
    fn notify(&self, blocks: MutexGuard<'_, Blocks>) {
        let has_ended = blocks.open_changes.is_empty();
        drop(blocks);
        if has_ended {
            self.changes.send_replace(());
        }
    }
}

impl Blocks {
    /// The blocks that readers see.
    fn shown(&self) -> impl DoubleEndedIterator<Item = &Block> {
        let hidden = self.open_changes.iter().find(|change| change.hides_change);
        let (base, replaced) =
            hidden.map_or((self.blocks.len(), &[][..]), |change| (change.base, &change.replaced[..]));
        self.blocks.iter().take(base).chain(replaced)
    }

    fn tip(&self) -> BitcoinTip {
        tip_of(self.blocks.iter())
    }

    /// The median time of the newest [`MEDIAN_OF`] blocks, those of changes in progress included.
    fn newest_median(&self) -> u32 {
        median_time(self.blocks.iter().rev().take(MEDIAN_OF))
    }

    /// A new block on the newest one, whose nonce is not searched yet.
    fn template(&mut self, time: u32, commitment: Option<&B256>) -> (BitcoinWork, BlockCoinbase) {
        self.coinbases_made += 1;
        let tip = self.tip();
        let coinbase = BlockCoinbase::new(tip.height.saturating_add(1), self.coinbases_made, commitment);
        let work = BitcoinWork {
            header: header_of(VERSION, &tip.hash, &coinbase.root(), time),
            coinbase: coinbase.transaction.clone(),
            branch: coinbase.branch.clone(),
            transactions: 1 << coinbase.branch.len(),
        };
        (work, coinbase)
    }

    fn push(&mut self, header: [u8; HEADER_LEN], coinbase: BlockCoinbase) {
        let hash = BitcoinHeader::from(&header).hash();
        self.blocks.push(Block { header, hash, coinbase: Some(Box::new(coinbase)) });
    }

    /// Resets what belongs to the newest block, after another block has become the newest.
    fn begin_on_tip(&mut self) {
        self.mined_on_tip = 0;
        self.pending = None;
        if self.open_changes.is_empty() {
            self.drop_old_coinbases();
        }
    }

    /// Drops the coinbases of blocks below the newest [`KEPT_COINBASES`].
    fn drop_old_coinbases(&mut self) {
        let old = self.blocks.len().saturating_sub(KEPT_COINBASES as usize);
        let old = self.blocks.iter_mut().take(old).rev().take_while(|block| block.coinbase.is_some());
        old.for_each(|block| block.coinbase = None);
    }

    /// Mines blocks after the newest one.
    fn extend(&mut self, commitments: &[Option<B256>], time: u32) -> Result<(), String> {
        for commitment in commitments {
            let median = self.newest_median();
            let time =
                time.max(median.checked_add(1).ok_or("the chain's time is the last one of Bitcoin's")?);
            let (work, coinbase) = self.template(time, commitment.as_ref());
            // A difficulty of 0 counts as Rootstock's least, 3, whose target is below that of regtest.
            let solved = work.solved(U256::ZERO, ATTEMPTS).ok_or("no nonce was found")?;
            self.push(solved.header, coinbase);
        }
        Ok(())
    }

    /// Replaces the blocks above the height `parent` by more blocks.
    fn replace(&mut self, parent: u32, blocks: &BitcoinBlocks) -> Result<(), String> {
        let (tip, count) = (self.tip().height, blocks.commitments.len());
        let lowest = tip.saturating_sub(KEPT_COINBASES);
        if parent > tip || parent < lowest {
            return Err(format!("Bitcoin blocks can follow heights from {lowest} to {tip}, not {parent}"));
        }
        let replaced = (tip - parent) as usize;
        if count <= replaced {
            let least = replaced + 1;
            return Err(format!(
                "{count} blocks cannot replace {replaced}, which have more work: mine at least {least}"
            ));
        }
        if parent as usize + 1 + count > MAX_BLOCKS {
            return Err(format!("the Bitcoin chain can have {MAX_BLOCKS} blocks"));
        }
        let time =
            u32::try_from(blocks.time).map_err(|_| "the chain's time is later than Bitcoin's can be")?;
        let removed = self.blocks.split_off(parent as usize + 1);
        let extended = self.extend(&blocks.commitments, time);
        match extended {
            Ok(()) => {
                self.keep_replaced(parent as usize + 1, &removed);
                self.begin_on_tip();
            }
            Err(_) => {
                self.blocks.truncate(parent as usize + 1);
                self.blocks.extend(removed);
            }
        }
        extended
    }
}

impl Blocks {
    /// Stores removed blocks, of heights from `from` on, in each open change that began after they had joined the chain.
    fn keep_replaced(&mut self, from: usize, removed: &[Block]) {
        for change in self.open_changes.iter_mut().filter(|change| from < change.base) {
            let removed = removed.iter().take(change.base - from);
            change.replaced.splice(..0, removed.cloned());
            change.base = from;
        }
    }
}

impl ServedBitcoin for RegtestChain {
    fn served_headers(&self, from: u32, count: u32) -> String {
        let headers = self.headers(from, count.min(MAX_SERVED_HEADERS) as usize);
        let lowest = 0;
        encode_packed_headers(lowest, self.tip().height, &pack_headers(headers))
    }

    fn served_coinbases(&self, from: u32, count: u32) -> String {
        let heights = from..from.saturating_add(count.min(MAX_SERVED_COINBASES));
        let proofs: Vec<_> =
            heights.map(|height| self.coinbase(height).map(|coinbase| coinbase.proof(height))).collect();
        encode_coinbase_proofs(proofs.iter().map(Option::as_ref))
    }
}

impl SimulatedBitcoin for RegtestChain {
    fn next(&self, commitment: &B256, time: u64) -> BitcoinWork {
        let mut blocks = self.lock();
        let time = u32::try_from(time).unwrap_or(u32::MAX);
        let earliest = blocks.newest_median().saturating_add(1);
        // Bitcoin's rule moves the time, unless it then breaks RSKIP-179: such a header mines the Rootstock block, and becomes no
        // Bitcoin block.
        let time = if earliest > time && earliest - time < TIME_BOUND { earliest } else { time };
        let (work, coinbase) = blocks.template(time, Some(commitment));
        blocks.pending = Some(coinbase);
        work
    }

    fn add_merge_mined(&self, work: &BitcoinWork) {
        let mut blocks = self.lock();
        blocks.mined_on_tip = blocks.mined_on_tip.saturating_add(1);
        if blocks.mined_on_tip < self.every || blocks.blocks.len() >= MAX_BLOCKS {
            return;
        }
        let header = BitcoinHeader::from(&work.header);
        let is_valid = header.previous() == blocks.tip().hash && header.time() > blocks.newest_median();
        let coinbase = blocks.pending.take().filter(|coinbase| coinbase.transaction == work.coinbase);
        if let (true, Some(coinbase)) = (is_valid, coinbase) {
            blocks.push(work.header, coinbase);
            blocks.begin_on_tip();
            self.notify(blocks);
        }
    }

    fn begin(&self, is_shown: bool) {
        let mut blocks = self.lock();
        let change = OpenChange {
            hides_change: !is_shown,
            base: blocks.blocks.len(),
            replaced: Vec::new(),
            pending: blocks.pending.clone(),
            mined_on_tip: blocks.mined_on_tip,
            coinbases_made: blocks.coinbases_made,
        };
        blocks.open_changes.push(change);
    }

    fn end(&self, stays: bool) {
        let mut blocks = self.lock();
        let Some(change) = blocks.open_changes.pop() else { return };
        let has_changed = change.base < blocks.blocks.len() || !change.replaced.is_empty();
        if !stays {
            blocks.blocks.truncate(change.base);
            blocks.blocks.extend(change.replaced);
            blocks.pending = change.pending;
            blocks.mined_on_tip = change.mined_on_tip;
            blocks.coinbases_made = change.coinbases_made;
        }
        if blocks.open_changes.is_empty() {
            blocks.drop_old_coinbases();
        }
        if stays && has_changed {
            self.notify(blocks);
        }
    }

    fn mine(&self, blocks: &BitcoinBlocks) -> Result<BitcoinTip, String> {
        let mut chain = self.lock();
        let parent = blocks.parent.unwrap_or(chain.tip().height);
        chain.replace(parent, blocks)?;
        let tip = chain.tip();
        self.notify(chain);
        Ok(tip)
    }
}

fn tip_of<'a>(mut blocks: impl DoubleEndedIterator<Item = &'a Block>) -> BitcoinTip {
    let hash = blocks.next_back().map_or(B256::ZERO, |block| block.hash);
    BitcoinTip { height: u32::try_from(blocks.count()).unwrap_or(u32::MAX), hash }
}

/// The median of the times of blocks; 0 without blocks.
fn median_time<'a>(blocks: impl Iterator<Item = &'a Block>) -> u32 {
    let mut times: Vec<u32> = blocks.map(|block| BitcoinHeader::from(&block.header).time()).collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// A header whose nonce is 0.
fn header_of(version: u32, previous: &B256, root: &B256, time: u32) -> [u8; HEADER_LEN] {
    let fields = version.to_le_bytes().into_iter().chain(previous.0).chain(root.0);
    let fields = fields.chain(time.to_le_bytes()).chain(BITS.to_le_bytes());
    let mut header = [0; HEADER_LEN];
    header.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    header
}

#[cfg(test)]
#[path = "chain_test.rs"]
mod tests;
