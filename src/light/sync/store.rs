//! Headers of an earlier run that are taken back, stretch by stretch.

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

/// Pages that are read at the start, and in each stretch that is proven in the background. Together with new headers on
/// top they fit within the headers kept in memory.
const START_PAGES: u64 = 120;

/// Most headers of a window below its base.
const MOST_BELOW_WINDOW: u64 = WINDOW_PAGES * PAGE_HEADERS;

/// Restores headers stored by an earlier run: first some ancestors of the base, then the base, above which all headers
/// are checked. `first`, `next`, `end` are page indexes, `base` and `top` block numbers. See
/// [`HeaderSync::restore_page`](super::HeaderSync::restore_page).
#[derive(Debug)]
pub struct Restoring {
    /// For a stretch that begins above the checkpoint: the page of the checkpoint, until it is read.
    checkpoint_page: Option<u64>,
    first: u64,
    next: u64,
    /// The page after the last one.
    end: u64,
    /// Number of the base.
    base: u64,
    below: Vec<(SealedHeader, Vec<Header>)>,
    chain: Option<HeaderChain>,
    /// Number and hash of the header at which the stretch must end. `None` for the stretch at the top, whose headers
    /// are linked first and proven later.
    top: Option<(u64, B256)>,
    /// For the headers of a window: the block at which it started, whose place a later one may take.
    window: Option<Checkpoint>,
}

/// The data of an earlier run.
#[derive(Debug, Default)]
pub(super) struct RestoreState {
    /// The number of the head that was restored.
    pub(super) resumed: Option<u64>,
    /// Headers below those in memory, which are still to be proven.
    pub(super) behind: Option<BackgroundProof>,
    /// The record of an earlier run's window.
    pub(super) record: Option<WindowRecord>,
    /// Whether the headers of a window were restored and are not judged yet.
    pub(super) on_probation: bool,
    /// The base of a window that a trusted block leads to.
    pub(super) linked: Option<B256>,
    pub(super) bitcoin: StoredBitcoin,
}

/// The state of proving the headers below those in memory.
#[derive(Debug)]
pub(super) struct BackgroundProof {
    stretch: Restoring,
    /// Work of the headers from the base of the stretch up to the base of the chain.
    work: U256,
    /// Work of the uncles of these headers, if all uncles are proven.
    uncles: Option<U256>,
}

impl Restoring {
    /// The newest of `pages` stored pages.
    pub(super) fn newest(checkpoint: &Checkpoint, pages: u64) -> Self {
        let stretch = Self::ending(checkpoint, pages, None);
        let checkpoint_page = checkpoint.number.saturating_sub(first_stored(checkpoint)) / PAGE_HEADERS;
        Self { checkpoint_page: (stretch.first > 0).then_some(checkpoint_page), ..stretch }
    }

    /// The stretch of pages that ends before page `end`.
    fn ending(checkpoint: &Checkpoint, end: u64, top: Option<(u64, B256)>) -> Self {
        let first = end.saturating_sub(START_PAGES);
        let above = first_stored(checkpoint).saturating_add(first.saturating_mul(PAGE_HEADERS));
        let base = if first > 0 { above.saturating_add(FORK_WINDOW) } else { checkpoint.number };
        let (checkpoint_page, below, chain, window) = (None, Vec::new(), None, None);
        Self { checkpoint_page, first, next: first, end, base, below, chain, top, window }
    }

    /// The newest pages of a window, of which `end` is the one after the last.
    pub(super) fn window(record: &WindowRecord, end: u64) -> Self {
        let first = (record.lowest / PAGE_HEADERS).max(end.saturating_sub(WINDOW_PAGES));
        // If not all pages are read, another base has the ancestors that it needs.
        let cut = first > record.lowest / PAGE_HEADERS;
        let above = first.saturating_mul(PAGE_HEADERS).saturating_add(FORK_WINDOW);
        let base = if cut { record.base.number.max(above) } else { record.base.number };
        Self { first, next: first, base, window: Some(record.base), ..Self::ending(&record.base, end, None) }
    }

    /// No pages.
    pub(super) fn nothing() -> Self {
        let base = Checkpoint { number: 0, hash: B256::ZERO, total_difficulty: None };
        Self::ending(&base, 0, None)
    }

    /// The stretch below one that begins with page `first`. It ends at the base of that stretch, which is 449 headers
    /// above its first page.
    fn below(checkpoint: &Checkpoint, first: u64, top: (u64, B256)) -> Self {
        let end = first.saturating_add(FORK_WINDOW / PAGE_HEADERS).saturating_add(1);
        Self::ending(checkpoint, end, Some(top))
    }

    /// The number of the page to read next, if one is left.
    pub fn page(&self) -> Option<u64> {
        self.checkpoint_page.or((self.next < self.end).then_some(self.next))
    }

    /// Whether there are no pages.
    pub(super) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Takes the headers of the next page.
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

    fn take(
        &mut self,
        followed: &FollowedChain,
        candidate: HeaderCandidate,
        uncles: Vec<Header>,
    ) -> Result<(), HeaderStoreFault> {
        let number = candidate.header().number;
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
        let known = match self.window {
            Some(base) => Some(base).filter(|base| base.number == header.number),
            None => Some(followed.checkpoint).filter(|_| self.first == 0),
        };
        let mut chain = match known {
            Some(known) => HeaderChain::from_checkpoint(network, &known, header)?,
            None => HeaderChain::from_kept(network, header),
        };
        let below = core::mem::take(&mut self.below).into_iter().rev();
        let mut families = alloc::vec![(hash, uncles)];
        for (header, uncles) in below {
            families.push((header.hash(), uncles));
            chain.prepend(header)?;
        }
        // These uncles do not count as work, but no block above may use them again.
        for (block, uncles) in families.into_iter().filter(|(_, uncles)| !uncles.is_empty()) {
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
        let wanted = stretch.page();
        let mut chain = stretch.chain.filter(|_| wanted.is_none()).ok_or(gap)?;
        chain.prove(REPROVEN)?;
        let view = chain.view();
        let (base, head) = (view.base().clone(), view.head().number);
        if stretch.window.is_some() {
            // No block below is trusted, so that nothing is gained by proving older headers.
            chain.base_proven(U256::ZERO, None);
            followed.checkpoint = Checkpoint { number: base.number, hash: base.hash, total_difficulty: None };
            followed.backfill.start(base.number, options.backfill);
            self.on_probation = true;
        } else if first > 0 {
            self.behind = Some(BackgroundProof {
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

    /// The page that [`Self::prove_some`] reads next.
    pub(super) fn wanted_page(&self, followed: &FollowedChain) -> Option<u64> {
        let proven = followed.chain.as_ref().is_some_and(|chain| chain.view().unproven().is_none());
        self.behind.as_ref().filter(|_| proven)?.stretch.page()
    }

    /// Number of the highest header that was taken back and is not proven yet.
    pub(super) fn unproven(&self, followed: &FollowedChain) -> Option<u64> {
        let behind = self.behind.as_ref().and_then(|behind| behind.stretch.top);
        followed.chain.as_ref()?.view().unproven().or(behind.map(|(number, _)| number))
    }

    /// Proves some more headers, newest first. Returns whether more are left.
    pub(super) fn prove_some(
        &mut self,
        followed: &mut FollowedChain,
        read: ReadPage<'_>,
    ) -> Result<bool, HeaderStoreFault> {
        let Some(chain) = &mut followed.chain else { return Ok(false) };
        if chain.view().unproven().is_some() {
            return Ok(chain.prove(PAGE_HEADERS as usize)? || self.behind.is_some());
        }
        let Some(mut behind) = self.behind.take() else { return Ok(false) };
        let Some(index) = behind.stretch.page() else {
            self.stretch_proven(followed, behind)?;
            return Ok(self.behind.is_some());
        };
        let bytes = read(index)?.ok_or(HeaderStoreFault::Damaged { index })?;
        behind.stretch.read(followed, &bytes)?;
        self.behind = Some(behind);
        Ok(true)
    }

    /// Joins a stretch that was read to its end with the chain above it.
    fn stretch_proven(
        &mut self,
        followed: &mut FollowedChain,
        mut behind: BackgroundProof,
    ) -> Result<(), HeaderStoreFault> {
        let Restoring { first, base, chain: stretch, top, .. } = behind.stretch;
        let (Some(stretch), Some(chain)) = (&stretch, &mut followed.chain) else {
            return Err(HeaderStoreFault::Gap(base));
        };
        let view = stretch.view();
        if top.is_none_or(|top| top != (view.head().number, view.head().hash())) {
            return Err(HeaderStoreFault::Gap(base));
        }
        let (work, uncles) = view.whole_work().unwrap_or_default();
        behind.work = behind.work.saturating_add(work);
        behind.uncles = behind.uncles.zip(uncles).map(|(above, below)| above.saturating_add(below));
        chain.know_below(view);
        if first == 0 {
            let uncles = behind.uncles.zip(view.base().total_difficulty);
            let total =
                uncles.map(|(uncles, start)| start.saturating_add(behind.work).saturating_add(uncles));
            chain.base_proven(behind.work, total);
            return Ok(());
        }
        let base = view.base();
        behind.stretch = Restoring::below(&followed.checkpoint, first, (base.number, base.hash));
        self.behind = Some(behind);
        Ok(())
    }
}
