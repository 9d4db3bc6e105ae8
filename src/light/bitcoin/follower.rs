//! The Bitcoin chain of a client: the headers and coinbases that Bitcoin sources have shown, and the newest report that the judge
//! makes of the Rootstock chain from them.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::coinbases::{Coinbases, KEPT_COINBASES};
use super::commitments::COUNTED_BLOCKS;
use super::evidence::BlockEvidence;
use super::judge::{BitcoinJudge, BitcoinReport};
use super::seen_blocks::SeenBlocks;
use super::stored_coinbases::{split_stored, stored_coinbases};
use super::tags::JUDGED_TAGS;
use super::verdict::{BitcoinVerdict, CLOSE_RIVAL, DEEP_REORGANISATION};
use crate::consensus::ChainView;
use crate::consensus::bitcoin::{
    BitcoinBlock, BitcoinChain, BitcoinChainError, BitcoinInserted, BitcoinNetwork, CoinbaseProof,
    CoinbaseProofBuf, CoinbaseProofError, HEADER_LEN, HashedHeader, ProvenCoinbase, StoredBitcoinError,
};
use crate::types::B256;

/// Rootstock headers below the head that are judged at first: 30 for each of Bitcoin's newest [`COUNTED_BLOCKS`]. Usual are 20, a
/// header every 30 seconds, so these are three days of headers for two days of Bitcoin's blocks.
const JUDGED_HEADERS: u64 = COUNTED_BLOCKS as u64 * 30;
/// Seconds after which a new report is made although neither chain has changed: uncles may have been proven meanwhile, and the
/// age of Bitcoin's tip is judged too.
const REPORT_AGE: u64 = 30;
/// The first block number of a judge that has no chain to judge yet: above all blocks.
const NOT_BEGUN: u64 = u64::MAX;

/// The state of both chains from which a report was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReportBasis {
    /// Hash of the Rootstock head.
    head: B256,
    /// [`BitcoinFollower::changes`] at that time.
    changes: u64,
}

/// The Bitcoin chain that sources show, with the judge of the Rootstock chain that the client follows. Cloning copies 160
/// bytes for each stored header: 1 MB in a client (6,048), at most 21 MB in a server (129,024).
#[derive(Debug, Clone)]
pub struct BitcoinFollower {
    chain: BitcoinChain,
    coinbases: Coinbases,
    judge: BitcoinJudge,
    /// The number of headers, coinbases and replaced chains that were new, branches included.
    changes: u64,
    /// The newest report, with its basis and its time in seconds since 1970.
    report: Option<(ReportBasis, u64, BitcoinReport)>,
    /// For each Bitcoin block that commits to the chain, as of the report, the highest Rootstock block that it supports
    /// ([`Commitments::supported_blocks`](super::Commitments::supported_blocks)); lowest first.
    supported_blocks: Vec<u64>,
}

impl BitcoinFollower {
    /// A follower that starts at the network's checkpoint.
    #[must_use]
    pub fn new(network: BitcoinNetwork) -> Self {
        Self::resume(BitcoinChain::new(network))
    }

    /// A follower of a chain that was verified elsewhere.
    #[must_use]
    pub fn resume(chain: BitcoinChain) -> Self {
        Self::after(chain, SeenBlocks::default())
    }

    /// A follower of a chain, whose earlier run has seen these blocks.
    fn after(chain: BitcoinChain, mut seen: SeenBlocks) -> Self {
        seen.begin(&chain);
        let mut judge = BitcoinJudge::new(NOT_BEGUN);
        *judge.dated_mut().seen_mut() = seen;
        let (coinbases, supported_blocks) = (Coinbases::default(), Vec::new());
        Self { chain, coinbases, judge, changes: 0, report: None, supported_blocks }
    }

    /// Restores a follower from the bytes that [`Self::stored`] returned, and verifies them ([`BitcoinChain::restore`]). A stored
    /// coinbase whose proof fails is left out, and fetched again. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// [`StoredBitcoinError`]: none of the bytes can be used.
    pub fn restore(network: BitcoinNetwork, stored: &[u8], now: u64) -> Result<Self, StoredBitcoinError> {
        let (coinbases, stored) = split_stored(stored);
        let (seen, chain) = SeenBlocks::restore(stored)?;
        let mut follower = Self::after(BitcoinChain::restore(network, chain, now)?, seen);
        coinbases.into_iter().for_each(|(height, proof)| follower.take_coinbase(height, proof));
        Ok(follower)
    }

    /// The bytes to store: the judged coinbases whose proofs are kept, the deepest reorganisation of the last day, and the chain
    /// ([`BitcoinChain::stored`]). A reorganisation that the judge has not looked at yet is included, because the program may end
    /// before it does.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        let seen = self.judge.dated().seen().with_look(&self.chain);
        let mut stored = stored_coinbases(&self.coinbases, &self.chain, self.judged_heights());
        stored.append(&mut seen.stored(self.chain.tip().height));
        stored.append(&mut self.chain.stored());
        stored
    }

    /// Blocks removed by the deepest reorganisation of the chain's last day, as [`Self::stored`] stores it.
    pub(in crate::light) fn reorganisation(&self) -> Option<u32> {
        self.judge.dated().seen().with_look(&self.chain).removed(self.chain.tip().height)
    }

    /// The same follower, whose chain keeps so many headers ([`BitcoinChain::keeping`]).
    #[must_use]
    pub fn keeping(self, headers: u32) -> Self {
        Self { chain: self.chain.keeping(headers), ..self }
    }

    /// Remembers which Bitcoin blocks another follower has seen, whose chain is not used. A chain that is fetched later is compared
    /// with these blocks.
    pub(in crate::light) fn remember(&mut self, other: &Self) {
        *self.judge.dated_mut().seen_mut() = other.judge.dated().seen().as_stored();
    }

    /// The Bitcoin chain.
    pub const fn chain(&self) -> &BitcoinChain {
        &self.chain
    }

    /// Inserts the headers of a source, lowest first; `now` is in seconds since 1970. Returns how many are new.
    ///
    /// # Errors
    /// The first header that the chain refuses; those before it are inserted.
    pub fn insert(&mut self, headers: &[[u8; HEADER_LEN]], now: u64) -> Result<usize, BitcoinChainError> {
        let mut new = 0_usize;
        for header in headers {
            let is_new = self.chain.insert(header, now)? != BitcoinInserted::Known;
            new = new.saturating_add(usize::from(is_new));
            self.changes = self.changes.saturating_add(u64::from(is_new));
        }
        Ok(new)
    }

    /// Puts headers on top of the tip, in a chain without branches ([`BitcoinChain::extend`]). Headers that the chain has are
    /// skipped. Returns how many are new.
    ///
    /// # Errors
    /// The first header that the chain refuses; those before it are inserted.
    pub(in crate::light) fn extend(
        &mut self,
        headers: &[[u8; HEADER_LEN]],
        now: u64,
    ) -> Result<usize, BitcoinChainError> {
        let mut new = 0_usize;
        for header in headers {
            let header = HashedHeader::new(*header);
            if self.chain.height_of(header.hash()).is_none() {
                self.chain.extend(&header, now)?;
                new = new.saturating_add(1);
                self.changes = self.changes.saturating_add(1);
            }
        }
        Ok(new)
    }

    /// Follows another Bitcoin chain, which was verified apart. The blocks seen of the old chain are remembered, which tell how deep
    /// the reorganisation is, and so are the coinbases of blocks that both chains have.
    pub(in crate::light) fn replace_chain(&mut self, chain: BitcoinChain) {
        if !self.judge.dated().seen().reach(chain.lowest()) {
            // All seen blocks are below the new chain's headers, so they cannot show a reorganisation.
            self.judge = BitcoinJudge::new(NOT_BEGUN);
        }
        self.chain = chain;
        self.changes = self.changes.saturating_add(1);
    }

    /// Proves and keeps the coinbase of the chain's block at a height. If the chain has no header there, the coinbase is ignored.
    ///
    /// # Errors
    /// The coinbase is not that block's.
    pub fn insert_coinbase(
        &mut self,
        height: u32,
        proof: &CoinbaseProof<'_>,
    ) -> Result<(), CoinbaseProofError> {
        if let Some(proven) = self.prove_coinbase(height, proof)? {
            self.keep_coinbase(&proven, None);
        }
        Ok(())
    }

    /// Does what [`Self::insert_coinbase`] does, and keeps the proof for other clients ([`encode_coinbases`]).
    ///
    /// # Errors
    /// As [`Self::insert_coinbase`].
    ///
    /// [`encode_coinbases`]: super::encode_coinbases
    pub fn insert_coinbase_to_serve(
        &mut self,
        height: u32,
        proof: &CoinbaseProof<'_>,
    ) -> Result<(), CoinbaseProofError> {
        if let Some(proven) = self.prove_coinbase(height, proof)? {
            self.keep_coinbase(&proven, Some(proof.shortened(height)));
        }
        Ok(())
    }

    /// Proves a coinbase as another Rootlight gives it, and keeps it with its proof. A coinbase of another block is ignored.
    pub(in crate::light) fn take_coinbase(&mut self, height: u32, proof: CoinbaseProofBuf) {
        if let Ok(Some(proven)) = self.prove_coinbase(height, &proof.as_proof()) {
            self.keep_coinbase(&proven, Some(proof));
        }
    }

    /// Keeps a coinbase, with its proof if other clients are to get it. The coinbase counts while the chain has its block.
    pub fn keep_coinbase(&mut self, proven: &ProvenCoinbase, proof: Option<CoinbaseProofBuf>) {
        match proof {
            None => self.coinbases.insert(proven),
            Some(proof) => self.coinbases.insert_with_proof(proven, proof),
        }
        self.changes = self.changes.saturating_add(1);
    }

    /// Proves a coinbase; `None` if the chain has no header at this height.
    fn prove_coinbase(
        &self,
        height: u32,
        proof: &CoinbaseProof<'_>,
    ) -> Result<Option<ProvenCoinbase>, CoinbaseProofError> {
        let header = self.chain.header_at(height);
        header.map(|header| proof.prove(height, &header)).transpose()
    }

    /// The proven coinbases.
    pub const fn coinbases(&self) -> &Coinbases {
        &self.coinbases
    }

    /// Heights of the blocks whose coinbases are missing, newest first: of those whose tags are judged, or would be judged if a rival
    /// branch were known.
    #[must_use]
    pub fn missing_coinbases(&self) -> Vec<u32> {
        let (lowest, top) = self.judged_heights().into_inner();
        let mut missing: Vec<u32> = self.coinbases.wanted(&self.chain, lowest, top).collect();
        missing.reverse();
        missing
    }

    /// Heights of the blocks whose tags are judged, and of those whose tags would be judged if a rival branch were known.
    pub(crate) fn judged_heights(&self) -> RangeInclusive<u32> {
        let top = self.chain.tip().height;
        // The tip itself has no block on top and does not count, so the range includes one more block than is judged.
        let judged = JUDGED_TAGS.into_iter().max().unwrap_or_default();
        // Tags are judged from where a close rival branch leaves the chain, but no deeper than coinbases are kept.
        let deepest = top.saturating_sub((KEPT_COINBASES as u32).saturating_sub(judged).saturating_sub(1));
        // Clients that fetch coinbases from this one may know a rival branch that this one was not shown. A rival that leaves
        // deeper than this makes their verdict weak without any tags.
        let shown_elsewhere = top.saturating_sub(DEEP_REORGANISATION.saturating_sub(1));
        let fork = self.chain.rival_fork(CLOSE_RIVAL).unwrap_or(top).min(shown_elsewhere).max(deepest);
        fork.saturating_sub(judged).max(self.chain.lowest())..=top
    }

    /// Follows the Rootstock chain; `now` is in seconds since 1970. Call [`Self::is_due`] first where the follower is shared.
    pub(in crate::light) fn follow(&mut self, view: &ChainView, now: u64) {
        let first = view.head().number.saturating_sub(JUDGED_HEADERS);
        let judge = &mut self.judge;
        if judge.dated().from() > first {
            // The judge has no chain yet, or followed another one with higher numbers.
            judge.begin_at(first);
        }
        judge.follow(view, &self.chain);
        let report = judge.report(view, &self.chain, &self.coinbases, now);
        // The newest block has no block on top and does not count.
        self.supported_blocks =
            judge.commitments().supported_blocks(&self.chain, report.dated.tip.saturating_sub(1));
        self.report = Some((self.basis(view), now, report));
    }

    /// Whether [`Self::follow`] would find anything new.
    pub(in crate::light) fn is_due(&self, view: &ChainView, now: u64) -> bool {
        self.report.as_ref().is_none_or(|(basis, made, _)| {
            *basis != self.basis(view) || now.saturating_sub(*made) >= REPORT_AGE
        })
    }

    /// The basis of a report that would be made now.
    fn basis(&self, view: &ChainView) -> ReportBasis {
        ReportBasis { head: view.head().hash(), changes: self.changes }
    }

    /// The newest report on the Rootstock chain, as of the time when it was made; `None` before that chain was followed.
    #[must_use]
    pub fn report(&self) -> Option<&BitcoinReport> {
        self.report.as_ref().map(|(_, _, report)| report)
    }

    /// The newest report, with the age of Bitcoin's tip at `now`, in seconds since 1970, and the verdict at that age.
    /// While neither upstreams nor sources respond, no report is made.
    #[must_use]
    pub fn report_at(&self, now: u64) -> Option<BitcoinReport> {
        let report = self.report()?;
        let tip_age = now.saturating_sub(u64::from(self.chain.tip().time));
        Some(BitcoinReport { tip_age, verdict: report.verdict.at_tip_age(tip_age), ..report.clone() })
    }

    /// The verdict of the newest report at `now`, in seconds since 1970; [`BitcoinVerdict::Unavailable`] before there is
    /// a report.
    #[must_use]
    pub fn verdict(&self, now: u64) -> BitcoinVerdict {
        self.report_at(now).map_or(BitcoinVerdict::Unavailable, |report| report.verdict)
    }

    /// The tip of the Bitcoin chain; `None` while there is no block above the checkpoint.
    #[must_use]
    pub fn tip(&self) -> Option<BitcoinBlock> {
        let tip = self.chain.tip();
        (tip.height > self.chain.start().height).then_some(tip)
    }

    /// The highest Rootstock block that at least `least` Bitcoin blocks support, as of the newest report. A Bitcoin block
    /// supports a Rootstock block if it commits to that block or to one above it, and has another Bitcoin block on top.
    /// `None` if no Rootstock block has so many, or if `least` is 0.
    #[must_use]
    pub fn newest_supported(&self, least: u32) -> Option<u64> {
        self.supported_blocks.get(self.supported_blocks.len().checked_sub(least as usize)?).copied()
    }

    /// The Bitcoin blocks that commit to a canonical Rootstock block or to one above it, as of the newest report; `now` is in
    /// seconds since 1970. `None` before there is a report.
    #[must_use]
    pub fn evidence(&self, number: u64, now: u64) -> Option<BlockEvidence> {
        Some(self.judge.evidence(number, &self.chain, self.report()?, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::bitcoin::testing::mine_on;
    use crate::light::bitcoin::{MAX_TIP_AGE, WeakReason};

    const START: u32 = 1_700_000_000;
    const NOW: u64 = 2_000_000_000;
    const REGTEST: BitcoinNetwork = BitcoinNetwork::REGTEST;

    /// A client that has seen thirty blocks.
    fn with_thirty_blocks() -> BitcoinFollower {
        let mut follower = BitcoinFollower::new(REGTEST);
        follower.insert(&mine_on(REGTEST.checkpoint.hash, 0, START, 600, REGTEST.limit, 30), NOW).unwrap();
        look(&mut follower);
        follower
    }

    /// The input of the first judgement of the Rootstock chain.
    fn look(follower: &mut BitcoinFollower) {
        follower.judge.dated_mut().follow_bitcoin(&follower.chain);
    }

    /// A source shows a longer branch, which replaces the newest blocks.
    fn replace(follower: &mut BitcoinFollower, newest: u32) {
        let tip = follower.chain.tip().height;
        let fork = follower.chain.at(tip - newest).unwrap();
        let branch = mine_on(fork.hash, u64::from(tip), fork.time, 600, REGTEST.limit, newest as usize + 1);
        follower.insert(&branch, NOW).unwrap();
        look(follower);
        assert_eq!(follower.chain.tip().height, tip + 1);
    }

    fn removed(follower: &BitcoinFollower) -> Option<u32> {
        follower.judge.dated().reorganisation(follower.chain.tip().height)
    }

    fn restored(follower: &BitcoinFollower) -> BitcoinFollower {
        BitcoinFollower::restore(REGTEST, &follower.stored(), NOW).unwrap()
    }

    #[test]
    fn the_age_of_the_tip_hides_nothing_worse() {
        for worse in [BitcoinVerdict::Unavailable, BitcoinVerdict::Weak(WeakReason::Reorganised(6))] {
            assert_eq!(worse.at_tip_age(MAX_TIP_AGE + 1), worse);
        }
    }

    #[test]
    fn a_reorganisation_is_remembered_between_two_runs() {
        let before = with_thirty_blocks();
        assert_eq!((removed(&before), before.stored()), (None, before.chain.stored()));
        let mut during = before.clone();
        replace(&mut during, 6);
        assert_eq!((removed(&during), removed(&restored(&during))), (Some(6), Some(6)));
        // Again after the next run, until a day has passed.
        let mut later = restored(&restored(&during));
        replace(&mut later, 2);
        assert_eq!(removed(&later), Some(6));
        let tip = later.chain.tip();
        later.insert(&mine_on(tip.hash, 0, tip.time, 600, REGTEST.limit, 144), NOW).unwrap();
        look(&mut later);
        assert_eq!((removed(&later), later.stored()), (None, later.chain.stored()));
        // While no client ran.
        let mut between = restored(&before);
        replace(&mut between, 7);
        assert_eq!(removed(&between), Some(7));
    }

    #[test]
    fn a_reorganisation_is_stored_before_the_rootstock_chain_is_judged() {
        let (before, mut other) = (with_thirty_blocks(), with_thirty_blocks());
        replace(&mut other, 7);
        let mut follower = before.clone();
        let branch: Vec<_> = (24..=31).map(|height| other.chain.header_at(height).unwrap()).collect();
        follower.insert(&branch, NOW).unwrap();
        assert_eq!((removed(&follower), removed(&restored(&follower))), (None, Some(7)));
        let mut follower = BitcoinFollower::new(REGTEST);
        follower.remember(&before);
        assert_eq!(removed(&restored(&follower)), None, "no block is known");
        follower.replace_chain(other.chain);
        assert_eq!((removed(&follower), removed(&restored(&follower))), (None, Some(7)));
    }

    #[test]
    fn a_chain_that_is_fetched_anew_is_compared_with_the_stored_one() {
        let (before, mut other) = (with_thirty_blocks(), with_thirty_blocks());
        replace(&mut other, 8);
        let mut follower = BitcoinFollower::new(REGTEST);
        follower.remember(&before);
        // The head may be judged before the chain is there.
        look(&mut follower);
        assert_eq!(removed(&follower), None);
        follower.replace_chain(other.chain);
        look(&mut follower);
        assert_eq!(removed(&follower), Some(8));
    }

    #[test]
    fn a_stored_chain_of_others_is_no_reorganisation() {
        let [before, other] = [600, 601].map(|spacing| {
            let mut follower = BitcoinFollower::new(REGTEST);
            let headers = mine_on(REGTEST.checkpoint.hash, 0, START, spacing, REGTEST.limit, 80);
            follower.insert(&headers, NOW).unwrap();
            look(&mut follower);
            follower
        });
        let mut follower = BitcoinFollower::new(REGTEST);
        follower.remember(&before);
        follower.replace_chain(other.chain);
        look(&mut follower);
        assert_eq!(removed(&follower), None);
    }

    #[test]
    fn a_damaged_or_impossible_reorganisation_is_not_remembered() {
        let mut follower = with_thirty_blocks();
        replace(&mut follower, 6);
        let stored = follower.stored();
        let (seen, chain) = stored.split_at(stored.len() - follower.chain.stored().len());
        assert_eq!(seen.len(), 17);
        for at in 1..17 {
            let mut damaged = stored.clone();
            damaged[at] ^= 1;
            let read = BitcoinFollower::restore(REGTEST, &damaged, NOW).map(drop);
            assert_eq!(read, Err(StoredBitcoinError::Checksum), "byte {at}");
            let read = BitcoinFollower::restore(REGTEST, &seen[..at], NOW).map(drop);
            assert_eq!(read, Err(StoredBitcoinError::Form(Some(2))), "{at} bytes");
        }
        // A program that can write the file can write the checksum.
        let ahead = with_thirty_blocks().chain.stored();
        let ahead = BitcoinFollower::restore(REGTEST, &[seen, &ahead].concat(), NOW).unwrap();
        assert_eq!(removed(&ahead), None, "the reorganisation was at block 31");
        assert_eq!(removed(&BitcoinFollower::restore(REGTEST, chain, NOW).unwrap()), None);
    }
}
