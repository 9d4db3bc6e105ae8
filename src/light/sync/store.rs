//! Restores the headers of an earlier run, stretch by stretch: the newest ones at the start ([`Restoring`]), which become the chain at
//! once, and those below in the background ([`BackgroundProof`]). `pages.rs` explains what is proven when.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::{
    bitcoin_search::StoredBitcoin,
    followed::FollowedChain,
    options::{FORK_WINDOW, SyncOptions},
    pages::{HeaderStoreFault, PAGE_HEADERS, REPROVEN, ReadPage, WINDOW_PAGES, first_stored, read_page},
    window_record::WindowRecord,
};
use crate::{
    consensus::{Checkpoint, HeaderCandidate, HeaderChain},
    types::{B256, Header, SealedHeader, U256},
};

/// Pages that are read at the start, and in each stretch that is proven in the background: 7,680 headers. Together with new headers
/// on top they fit within the 8,192 headers kept in memory.
const START_PAGES: u64 = 120;

/// Most headers of a window below its base: no more are stored.
const MOST_BELOW_WINDOW: u64 = WINDOW_PAGES * PAGE_HEADERS;

/// One stretch of stored headers that is being restored: first some ancestors of its base, then the base, above which all headers
/// are checked. `first`, `next` and `end` are indexes of pages; `base` is a block number. See
/// [`HeaderSync::restore_page`](super::HeaderSync::restore_page).
#[derive(Debug)]
pub struct Restoring {
    /// The page of the checkpoint, until it is read, for a stretch that begins above the checkpoint: the work floor needs the
    /// checkpoint's difficulty.
    checkpoint_page: Option<u64>,
    /// The first page of the stretch.
    first: u64,
    /// The page that is read next.
    next: u64,
    /// The page after the last one.
    end: u64,
    /// Number of the base.
    base: u64,
    /// The headers below the base that were read, each with its uncles, lowest first.
    below: Vec<(SealedHeader, Vec<Header>)>,
    /// The chain from the base on, once the base was read.
    chain: Option<HeaderChain>,
    /// Number and hash of the header at which the stretch must end. `None` for the stretch at the top, whose headers
    /// are linked first and proven later.
    top: Option<(u64, B256)>,
    /// For the headers of a window: the block at which it started. If not all pages are read, the base is a later block.
    window: Option<Checkpoint>,
}

/// The restored headers and the other data of an earlier run.
#[derive(Debug, Default)]
pub(super) struct RestoreState {
    /// The number of the head that was restored.
    pub(super) resumed: Option<u64>,
    /// The proof of the headers below those in memory, until it is complete.
    pub(super) background: Option<BackgroundProof>,
    /// The record of an earlier run's window.
    pub(super) record: Option<WindowRecord>,
    /// Whether the headers of a window were restored and are not judged yet, so that no answers are given from them.
    pub(super) on_probation: bool,
    /// Hash of the base of the window, if the chain of a trusted block contains it.
    pub(super) linked: Option<B256>,
    /// Bitcoin's chain of an earlier run.
    pub(super) bitcoin: StoredBitcoin,
}

/// The state of proving the headers below those in memory.
#[derive(Debug)]
pub(super) struct BackgroundProof {
    /// The stretch that is read now.
    stretch: Restoring,
    /// Work of the headers from the base of the stretch up to the base of the chain.
    work: U256,
    /// Work of the uncles of these headers, if all uncles are proven.
    uncles: Option<U256>,
}

impl Restoring {
    /// The stretch of the newest of `pages` stored pages.
    pub(super) fn newest(checkpoint: &Checkpoint, pages: u64) -> Self {
        let stretch = Self::ending(checkpoint, pages, None);
        let checkpoint_page = checkpoint.number.saturating_sub(first_stored(checkpoint)) / PAGE_HEADERS;
        Self { checkpoint_page: (stretch.first > 0).then_some(checkpoint_page), ..stretch }
    }

    /// The stretch of at most [`START_PAGES`] pages that ends before page `end`. The base is the checkpoint or, if the stretch
    /// begins above it, a block with [`FORK_WINDOW`] headers below, which fork detection data is compared with.
    fn ending(checkpoint: &Checkpoint, end: u64, top: Option<(u64, B256)>) -> Self {
        let first = end.saturating_sub(START_PAGES);
        let lowest = first_stored(checkpoint).saturating_add(first.saturating_mul(PAGE_HEADERS));
        let base = if first > 0 { lowest.saturating_add(FORK_WINDOW) } else { checkpoint.number };
        let (checkpoint_page, below, chain, window) = (None, Vec::new(), None, None);
        Self { checkpoint_page, first, next: first, end, base, below, chain, top, window }
    }

    /// The stretch of the newest pages of a window; `end` is the page after the last one.
    pub(super) fn window(record: &WindowRecord, end: u64) -> Self {
        let first = (record.lowest / PAGE_HEADERS).max(end.saturating_sub(WINDOW_PAGES));
        // If not all pages are read, the base moves up to the first block with the ancestors that a base needs.
        let is_cut = first > record.lowest / PAGE_HEADERS;
        let lowest_base = first.saturating_mul(PAGE_HEADERS).saturating_add(FORK_WINDOW);
        let base = if is_cut { record.base.number.max(lowest_base) } else { record.base.number };
        Self { first, next: first, base, window: Some(record.base), ..Self::ending(&record.base, end, None) }
    }

    /// An empty stretch.
    pub(super) fn nothing() -> Self {
        let base = Checkpoint { number: 0, hash: B256::ZERO, total_difficulty: None };
        Self::ending(&base, 0, None)
    }

    /// The stretch below one that begins with page `first`. The lower stretch ends at the base `top` of the upper one, which is
    /// [`FORK_WINDOW`] headers above that page.
    fn below(checkpoint: &Checkpoint, first: u64, top: (u64, B256)) -> Self {
        let end = first.saturating_add(FORK_WINDOW / PAGE_HEADERS).saturating_add(1);
        Self::ending(checkpoint, end, Some(top))
    }

    /// The index of the page to read next; `None` if all are read.
    pub fn page(&self) -> Option<u64> {
        self.checkpoint_page.or((self.next < self.end).then_some(self.next))
    }

    /// Whether there are no pages.
    pub(super) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Takes the headers of the page that [`Self::page`] names.
    pub(super) fn read(
        &mut self,
        followed: &mut FollowedChain,
        bytes: &[u8],
    ) -> Result<(), HeaderStoreFault> {
        let Some(index) = self.page() else { return Ok(()) };
        let page = read_page(index, bytes, &followed.network)?;
        if self.checkpoint_page.take().is_some() {
            let (number, hash) = (followed.checkpoint.number, followed.checkpoint.hash);
            let mut headers = page.iter().map(|(candidate, _)| candidate.header());
            let header = headers.find(|header| header.hash() == hash).ok_or(HeaderStoreFault::Gap(number))?;
            followed.floor.promise(header.difficulty.value());
            return Ok(());
        }
        self.next = self.next.saturating_add(1);
        page.into_iter()
            .try_for_each(|(candidate, uncles)| self.take(followed, candidate, uncles.unwrap_or_default()))
    }

    /// Takes the next header. Headers of the stretch at the top are only linked, those of other stretches are proven.
    fn take(
        &mut self,
        followed: &FollowedChain,
        candidate: HeaderCandidate,
        uncles: Vec<Header>,
    ) -> Result<(), HeaderStoreFault> {
        let number = candidate.header().number;
        // The last page of a stretch overlaps the one above.
        if self.top.is_some_and(|(top, _)| number > top) {
            return Ok(());
        }
        let most_below = self.most_below();
        match (number.cmp(&self.base), &mut self.chain) {
            (Ordering::Less, None) if (self.below.len() as u64) < most_below => {
                self.below.push((candidate.into_header(), uncles));
            }
            (Ordering::Equal, None) => {
                self.chain = Some(self.start(followed, candidate.into_header(), uncles)?)
            }
            (Ordering::Greater, Some(chain)) if self.top.is_none() => {
                let header = chain.insert_linked(candidate)?;
                if !uncles.is_empty() {
                    chain.attach_linked(&header.hash(), uncles)?;
                }
            }
            (Ordering::Greater, Some(chain)) => {
                let inserted = chain.insert(candidate, None)?;
                if !uncles.is_empty() {
                    chain.attach_uncles(&inserted.header.hash(), uncles, None)?;
                }
            }
            // Too many headers below the base, a header that comes twice, or no base.
            _ => return Err(HeaderStoreFault::Gap(number)),
        }
        Ok(())
    }

    /// Most headers below the base.
    fn most_below(&self) -> u64 {
        if self.window.is_some() { MOST_BELOW_WINDOW } else { FORK_WINDOW }
    }

    /// Starts the chain at its base, with the headers below.
    fn start(
        &mut self,
        followed: &FollowedChain,
        header: SealedHeader,
        uncles: Vec<Header>,
    ) -> Result<HeaderChain, HeaderStoreFault> {
        let (network, hash) = (followed.network.clone(), header.hash());
        // The hash of the base is known only if it is the checkpoint, or the block at which the window started.
        let checkpoint = match self.window {
            Some(base) => Some(base).filter(|base| base.number == header.number),
            None => Some(followed.checkpoint).filter(|_| self.first == 0),
        };
        let mut chain = match checkpoint {
            Some(checkpoint) => HeaderChain::from_checkpoint(network, &checkpoint, header)?,
            None => HeaderChain::from_restored(network, header),
        };
        let below = core::mem::take(&mut self.below).into_iter().rev();
        let mut uncles_of_blocks = alloc::vec![(hash, uncles)];
        for (header, uncles) in below {
            uncles_of_blocks.push((header.hash(), uncles));
            chain.prepend(header)?;
        }
        // These uncles do not count as work, but no block above may list them again.
        for (block, uncles) in uncles_of_blocks.into_iter().filter(|(_, uncles)| !uncles.is_empty()) {
            chain.attach_linked(&block, uncles)?;
        }
        Ok(chain)
    }
}

impl RestoreState {
    /// Makes a stretch that was read to its end the chain that is followed. Returns the number of its head.
    pub(super) fn take_over(
        &mut self,
        stretch: Restoring,
        followed: &mut FollowedChain,
        options: &SyncOptions,
    ) -> Result<u64, HeaderStoreFault> {
        let (first, gap) = (stretch.first, HeaderStoreFault::Gap(stretch.base));
        let unread_page = stretch.page();
        let mut chain = stretch.chain.filter(|_| unread_page.is_none()).ok_or(gap)?;
        chain.prove(REPROVEN)?;
        let view = chain.view();
        let (base, head) = (view.base().clone(), view.head().number);
        if stretch.window.is_some() {
            // No block below is trusted, so older headers need no proof: no work below the base counts, and there is no total difficulty.
            chain.record_proven_base(U256::ZERO, None);
            followed.checkpoint = Checkpoint { number: base.number, hash: base.hash, total_difficulty: None };
            followed.backfill.start(base.number, options.backfill);
            self.on_probation = true;
        } else if first > 0 {
            self.background = Some(BackgroundProof {
                stretch: Restoring::below(&followed.checkpoint, first, (base.number, base.hash)),
                work: U256::ZERO,
                uncles: Some(U256::ZERO),
            });
        } else {
            followed.backfill.start(base.number, options.backfill);
        }
        self.resumed = Some(head);
        followed.continue_from(chain);
        Ok(head)
    }

    /// The index of the page that [`Self::prove_some`] reads next.
    pub(super) fn wanted_page(&self, followed: &FollowedChain) -> Option<u64> {
        let is_proven = followed.chain.as_ref().is_some_and(|chain| chain.view().unproven().is_none());
        self.background.as_ref().filter(|_| is_proven)?.stretch.page()
    }

    /// Number of the highest restored header that is not proven yet.
    pub(super) fn unproven(&self, followed: &FollowedChain) -> Option<u64> {
        let top = self.background.as_ref().and_then(|proof| proof.stretch.top);
        followed.chain.as_ref()?.view().unproven().or(top.map(|(number, _)| number))
    }

    /// Proves some more headers, newest first. Returns whether more are left.
    pub(super) fn prove_some(
        &mut self,
        followed: &mut FollowedChain,
        read: ReadPage<'_>,
    ) -> Result<bool, HeaderStoreFault> {
        let Some(chain) = &mut followed.chain else { return Ok(false) };
        if chain.view().unproven().is_some() {
            return Ok(chain.prove(PAGE_HEADERS as usize)? || self.background.is_some());
        }
        // After an error the proof is not put back: the caller drops all restored headers.
        let Some(mut proof) = self.background.take() else { return Ok(false) };
        let Some(index) = proof.stretch.page() else {
            self.stretch_proven(followed, proof)?;
            return Ok(self.background.is_some());
        };
        let bytes = read(index)?.ok_or(HeaderStoreFault::Damaged { index })?;
        proof.stretch.read(followed, &bytes)?;
        self.background = Some(proof);
        Ok(true)
    }

    /// Joins a stretch that was read to its end with the chain above it, and begins the next stretch below, if there is one.
    fn stretch_proven(
        &mut self,
        followed: &mut FollowedChain,
        mut proof: BackgroundProof,
    ) -> Result<(), HeaderStoreFault> {
        let Restoring { first, base, chain: stretch, top, .. } = proof.stretch;
        let (Some(stretch), Some(chain)) = (&stretch, &mut followed.chain) else {
            return Err(HeaderStoreFault::Gap(base));
        };
        let view = stretch.view();
        if top.is_none_or(|top| top != (view.head().number, view.head().hash())) {
            return Err(HeaderStoreFault::Gap(base));
        }
        // A stretch below the top has only headers whose work was proven when they were added, so its work is known.
        let (work, uncles) = view.whole_work().unwrap_or_default();
        proof.work = proof.work.saturating_add(work);
        proof.uncles = proof.uncles.zip(uncles).map(|(above, below)| above.saturating_add(below));
        chain.record_hashes_below(view);
        if first == 0 {
            let uncles = proof.uncles.zip(view.base().total_difficulty);
            let total = uncles.map(|(uncles, start)| start.saturating_add(proof.work).saturating_add(uncles));
            chain.record_proven_base(proof.work, total);
            return Ok(());
        }
        let base = view.base();
        proof.stretch = Restoring::below(&followed.checkpoint, first, (base.number, base.hash));
        self.background = Some(proof);
        Ok(())
    }
}
