//! What is worth keeping between two runs, and taking it back: bytes out, bytes in.
//!
//! The chain is kept in pages of [`PAGE_HEADERS`] numbers each, from [`FORK_WINDOW`] blocks below the checkpoint on:
//! `keccak256(list) | list`, the list that `rootlight_getHeaders` packs ([`header_batch`](crate::light)). Page 0 starts at
//! that number; headers that are not known are left out. A page is replaced as a whole, so hosts need nothing but
//! numbered values.
//!
//! Nothing read back is believed as such, and links cost nobody anything: a forger links what he likes to the checkpoint.
//! So what an answer rests on is the work at the top. At the start the newest [`START_PAGES`] are read; their headers must
//! link by hash, keep all header rules, and the newest [`REPROVEN`] show their proofs of work; the floor judges them by what
//! the checkpoint promises. Everything else is proven behind, from the top down ([`Sync::prove_kept`]): the rest of these
//! headers, then stretch by stretch what lies below, until the checkpoint is reached. Until a header's proof is checked its
//! work counts for nothing; where anything does not hold, all of it is forgotten.

use alloc::{string::String, vec::Vec};
use core::cmp::Ordering;

use alloy_primitives::{B256, keccak256};
use thiserror::Error;

use super::{
    below_range::Below,
    peer::{FIRST_REWIND, Phase},
    state::{Behind, FORK_WINDOW, Restoring, Sync},
};
use crate::{
    consensus::{Candidate, ChainError, ChainView, HeaderChain},
    light::{
        backlog::Backlog,
        floor::Floor,
        header_batch::{Batch, BatchError, decode_list, encode_list},
    },
    types::{Header, SealedHeader, U256},
};

/// Numbers in one page: some 70 kB, which each new block writes again.
pub const PAGE_HEADERS: u64 = 64;

/// Newest headers whose work is proven again: a day of blocks. That is the longest stretch the work floor looks at, 24
/// times the depth called final, and takes some hundredths of a second.
pub const REPROVEN: usize = 2_880;

/// Headers that are worth writing while there are more to come.
const WORTH_WRITING: u64 = 512;

/// Bytes of a page's hash.
const HASH_BYTES: usize = 32;

/// A page to be kept under its number; what was there is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its number, from 0. Pages above the last one of an export are to be forgotten.
    pub index: u64,
    /// What to keep.
    pub bytes: Vec<u8>,
}

/// Why what was kept is of no use: it is damaged, or about something else.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeptFault {
    /// The host cannot read it.
    #[error("page {index}: {reason}")]
    Unreadable {
        /// The page.
        index: u64,
        /// The host's reason.
        reason: String,
    },
    /// The bytes are not those that were written.
    #[error("page {index} is damaged")]
    Damaged {
        /// The page.
        index: u64,
    },
    /// The bytes are no headers.
    #[error("page {index}: {error}")]
    Decode {
        /// The page.
        index: u64,
        /// What is wrong with them.
        error: BatchError,
    },
    /// The headers are not the checkpoint's chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A start by work is made of what upstreams show in this run.
    #[error("a start by work takes nothing back")]
    ByWork,
    /// There is no header of the checkpoint before those of later blocks.
    #[error("block {0} without those before it")]
    Gap(u64),
}

/// Pages that are read at the start, and in each stretch that is proven behind: with new headers on top they stay within
/// the headers in memory.
const START_PAGES: u64 = 120;

impl Restoring {
    /// The page that is wanted next.
    #[must_use]
    pub fn page(&self) -> Option<u64> {
        self.promise.or((self.next < self.end).then_some(self.next))
    }

    fn take(&mut self, sync: &Sync, candidate: Candidate, uncles: Vec<Header>) -> Result<(), KeptFault> {
        let number = candidate.header().number;
        if self.top.is_some_and(|(top, _)| number > top) {
            return Ok(());
        }
        match (number.cmp(&self.base), &mut self.chain) {
            (Ordering::Less, None) if (self.below.len() as u64) < FORK_WINDOW => {
                self.below.push((candidate.into_header(), uncles));
            }
            (Ordering::Equal, None) => {
                self.chain = Some(self.start(sync, candidate.into_header(), uncles)?)
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
            // Too many below, a header twice, or none to begin with.
            _ => return Err(KeptFault::Gap(number)),
        }
        Ok(())
    }

    /// The chain from its first header on, with those below.
    fn start(
        &mut self,
        sync: &Sync,
        header: SealedHeader,
        uncles: Vec<Header>,
    ) -> Result<HeaderChain, KeptFault> {
        let (network, hash) = (sync.network.clone(), header.hash());
        let mut chain = match self.first {
            0 => HeaderChain::from_checkpoint(network, &sync.checkpoint, header)?,
            _ => HeaderChain::from_kept(network, header),
        };
        let below = core::mem::take(&mut self.below).into_iter().rev();
        let mut families = alloc::vec![(hash, uncles)];
        for (header, uncles) in below {
            families.push((header.hash(), uncles));
            chain.prepend(header)?;
        }
        // They do not count; no block above may use them again.
        for (block, uncles) in families.into_iter().filter(|(_, uncles)| !uncles.is_empty()) {
            chain.attach_linked(&block, uncles)?;
        }
        Ok(chain)
    }
}

/// Gives the page of a number, or `None` where there is none.
pub type ReadPage<'a> = &'a mut dyn FnMut(u64) -> Result<Option<Vec<u8>>, KeptFault>;

impl Sync {
    /// The first number of page 0.
    fn first_kept(&self) -> u64 {
        self.checkpoint.number.saturating_sub(FORK_WINDOW)
    }

    /// A canonical header is new from here on, or its uncles are.
    pub(super) fn touch(&mut self, number: u64) {
        self.unsaved = Some(self.unsaved.map_or(number, |lowest| lowest.min(number)));
    }

    /// Counts the pages from this number on as changed: what was handed out of them was not kept.
    pub fn keep_again(&mut self, page: u64) {
        self.touch(self.first_kept().saturating_add(page.saturating_mul(PAGE_HEADERS)));
    }

    /// The pages that changed since the last call; none while few headers came and more are on their way. A page's
    /// number ends what was kept: those above the last one are to be forgotten.
    pub fn export(&mut self) -> Vec<Page> {
        // A start by work is made anew each time.
        let Some(chain) = self.chain.as_ref().filter(|_| !self.is_by_work()) else { return Vec::new() };
        let (view, first) = (chain.view(), self.first_kept());
        let head = view.head().number;
        let Some(from) = self.unsaved else { return Vec::new() };
        if !self.synced_once && head.saturating_sub(from) < WORTH_WRITING {
            return Vec::new();
        }
        self.unsaved = None;
        let page_of = |number: u64| number.saturating_sub(first) / PAGE_HEADERS;
        // Of a page that reaches below the headers in memory only a part could be written.
        let cut = view.lowest() > self.checkpoint.number || view.base().number > self.checkpoint.number;
        let whole = if cut { view.lowest().saturating_sub(first).div_ceil(PAGE_HEADERS) } else { 0 };
        (page_of(from).max(whole)..=page_of(head)).map(|index| page(view, first, index)).collect()
    }

    /// Takes back what was kept in so many pages, before anything else is done; gives the newest block's number. What is
    /// there but does not hold is a fault, and nothing of it stays.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn restore(&mut self, pages: u64, read: ReadPage<'_>) -> Result<Option<u64>, KeptFault> {
        let mut restoring = self.restoring(pages);
        let read_all = loop {
            let Some(index) = restoring.page() else { break Ok(()) };
            let page = match read(index) {
                Ok(page) => page.ok_or(KeptFault::Damaged { index }),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = page.and_then(|bytes| self.restore_page(&mut restoring, &bytes)) {
                break Err(fault);
            }
        };
        let outcome = read_all.and_then(|()| self.restored(restoring));
        if outcome.is_err() {
            self.forget();
        }
        outcome
    }

    /// Begins taking back what was kept in so many pages: the host gives [`Self::restore_page`] each page that
    /// [`Restoring::page`] names, until it names none, and then calls [`Self::restored`].
    pub fn restoring(&self, pages: u64) -> Restoring {
        let stretch = self.stretch(pages, None);
        let promise = self.checkpoint.number.saturating_sub(self.first_kept()) / PAGE_HEADERS;
        Restoring { promise: (stretch.first > 0).then_some(promise), ..stretch }
    }

    /// The stretch of the pages before this one.
    fn stretch(&self, end: u64, top: Option<(u64, B256)>) -> Restoring {
        let first = end.saturating_sub(START_PAGES);
        let above = self.first_kept().saturating_add(first.saturating_mul(PAGE_HEADERS));
        let base = if first > 0 { above.saturating_add(FORK_WINDOW) } else { self.checkpoint.number };
        let (promise, below, chain) = (None, Vec::new(), None);
        Restoring { promise, first, next: first, end, base, below, chain, top }
    }

    /// Takes back the next page. After a fault what came before it may be used: the host begins again with the pages
    /// before this one.
    ///
    /// # Errors
    /// The first thing in the page that does not hold.
    pub fn restore_page(&mut self, restoring: &mut Restoring, bytes: &[u8]) -> Result<(), KeptFault> {
        if self.is_by_work() {
            // Whoever wrote them would choose the start.
            return Err(KeptFault::ByWork);
        }
        let Some(index) = restoring.page() else { return Ok(()) };
        let page = self.read_page(index, bytes)?;
        if restoring.promise.take().is_some() {
            let (number, hash) = (self.checkpoint.number, self.checkpoint.hash);
            let mut headers = page.iter().map(|(candidate, _)| candidate.header());
            let header = headers.find(|header| header.hash() == hash).ok_or(KeptFault::Gap(number))?;
            self.floor.promise(header.difficulty.value());
            return Ok(());
        }
        restoring.next = restoring.next.saturating_add(1);
        page.into_iter().try_for_each(|(candidate, uncles)| restoring.take(self, candidate, uncles))
    }

    /// Ends taking back: proves the work of the newest headers and gives the newest block's number. After a fault nothing
    /// that was taken back stays.
    ///
    /// # Errors
    /// A proof of work does not hold, or a page is missing.
    pub fn restored(&mut self, restoring: Restoring) -> Result<Option<u64>, KeptFault> {
        if restoring.end == 0 {
            return Ok(None);
        }
        let outcome = self.take_over(restoring);
        if outcome.is_err() {
            self.forget();
        }
        outcome.map(Some)
    }

    fn take_over(&mut self, restoring: Restoring) -> Result<u64, KeptFault> {
        let (first, gap) = (restoring.first, KeptFault::Gap(restoring.base));
        let wanted = restoring.page();
        let mut chain = restoring.chain.filter(|_| wanted.is_none()).ok_or(gap)?;
        chain.prove(REPROVEN)?;
        let view = chain.view();
        let (base, head) = (view.base(), view.head().number);
        if first > 0 {
            self.behind = Some(Behind {
                stretch: self.stretch_below(first, (base.number, base.hash)),
                work: U256::ZERO,
                uncles: Some(U256::ZERO),
            });
        } else {
            self.below.start(base.number, self.options.below);
        }
        let above = (base.number.saturating_add(1)..=head).filter_map(|number| view.by_number(number));
        for header in above.filter(|header| view.uncles(&header.hash()).is_none()) {
            self.backlog.add(header);
        }
        (self.chain, self.resumed) = (Some(chain), Some(head));
        self.judge_work();
        Ok(head)
    }

    /// The stretch below one that begins with this page: it ends at that one's base, which is 449 headers further up.
    fn stretch_below(&self, first: u64, top: (u64, B256)) -> Restoring {
        self.stretch(first.saturating_add(FORK_WINDOW / PAGE_HEADERS).saturating_add(1), Some(top))
    }

    /// Proves some more of the headers that were taken back, newest first, until it says that nothing is left to do: in
    /// small steps of some milliseconds, so that answers go on meanwhile. `read` gives the page that
    /// [`Self::wanted_page`] names.
    ///
    /// # Errors
    /// What was kept does not hold. All of it is forgotten, and the machine starts from the checkpoint.
    pub fn prove_kept(&mut self, read: ReadPage<'_>) -> Result<bool, KeptFault> {
        let outcome = self.prove_some(read);
        match &outcome {
            Ok(_) => self.judge_work(),
            Err(_) => {
                self.forget();
                (self.synced_once, self.first_end, self.resumed, self.lease) = (false, None, None, None);
                for peer in &mut self.peers {
                    // What is on its way belongs to the old chain, and so does what they were judged by.
                    (peer.at_end, peer.at, peer.rewind) = (false, None, FIRST_REWIND);
                    peer.phase = Phase::Idle(0);
                }
            }
        }
        outcome
    }

    /// The page that [`Self::prove_kept`] reads next.
    pub fn wanted_page(&self) -> Option<u64> {
        let proven = self.chain.as_ref().is_some_and(|chain| chain.view().unproven().is_none());
        self.behind.as_ref().filter(|_| proven)?.stretch.page()
    }

    fn prove_some(&mut self, read: ReadPage<'_>) -> Result<bool, KeptFault> {
        let Some(chain) = &mut self.chain else { return Ok(false) };
        if chain.view().unproven().is_some() {
            return Ok(chain.prove(PAGE_HEADERS as usize)? || self.behind.is_some());
        }
        let Some(mut behind) = self.behind.take() else { return Ok(false) };
        let Some(index) = behind.stretch.page() else {
            self.stretch_proven(behind)?;
            return Ok(self.behind.is_some());
        };
        let bytes = read(index)?.ok_or(KeptFault::Damaged { index })?;
        self.restore_page(&mut behind.stretch, &bytes)?;
        self.behind = Some(behind);
        Ok(true)
    }

    /// A stretch was read to its end.
    fn stretch_proven(&mut self, mut behind: Behind) -> Result<(), KeptFault> {
        let Restoring { first, base, chain: stretch, top, .. } = behind.stretch;
        let (Some(stretch), Some(chain)) = (&stretch, &mut self.chain) else {
            return Err(KeptFault::Gap(base));
        };
        let view = stretch.view();
        if top.is_none_or(|top| top != (view.head().number, view.head().hash())) {
            return Err(KeptFault::Gap(base));
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
        behind.stretch = self.stretch_below(first, (base.number, base.hash));
        self.behind = Some(behind);
        Ok(())
    }

    /// The highest header that was taken back and is not proven yet.
    pub fn unproven(&self) -> Option<u64> {
        let behind = self.behind.as_ref().and_then(|behind| behind.stretch.top);
        self.chain.as_ref()?.view().unproven().or(behind.map(|(number, _)| number))
    }

    /// Forgets what was taken back.
    fn forget(&mut self) {
        (self.chain, self.unsaved, self.behind) = (None, None, None);
        (self.below, self.backlog) = (Below::default(), Backlog::default());
        self.floor = Floor::new(self.options.work_floor, self.options.promised);
    }

    fn read_page(&self, index: u64, bytes: &[u8]) -> Result<Batch, KeptFault> {
        let (hash, list) = bytes.split_at_checked(HASH_BYTES).ok_or(KeptFault::Damaged { index })?;
        if keccak256(list) != hash {
            return Err(KeptFault::Damaged { index });
        }
        let decoded = decode_list(list, PAGE_HEADERS as usize, &self.network);
        decoded.map_err(|error| KeptFault::Decode { index, error })
    }
}

#[cfg(test)]
impl Sync {
    /// The pages of a chain, whoever made it.
    pub(crate) fn pages_of(checkpoint: crate::consensus::Checkpoint, chain: HeaderChain) -> Vec<Vec<u8>> {
        let mut sync = Self::new(chain.view().network().clone(), checkpoint);
        (sync.chain, sync.synced_once) = (Some(chain), true);
        sync.touch(0);
        sync.export().into_iter().map(|page| page.bytes).collect()
    }
}

fn page(view: &ChainView, first: u64, index: u64) -> Page {
    let start = first.saturating_add(index.saturating_mul(PAGE_HEADERS));
    let headers = (start..start.saturating_add(PAGE_HEADERS)).filter_map(|number| view.by_number(number));
    let list = encode_list(headers.map(|header| {
        let uncles = view.uncles(&header.hash()).map_or(&[][..], |uncles| uncles.headers());
        (header.header(), uncles)
    }))
    .into_list();
    let mut bytes = keccak256(&list).to_vec();
    bytes.extend(list);
    Page { index, bytes }
}
