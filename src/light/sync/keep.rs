//! Keeps headers between two runs as bytes, and takes them back.
//!
//! The chain is kept in pages of [`PAGE_HEADERS`] numbers each, from [`FORK_WINDOW`] blocks below the checkpoint on. A
//! page is `keccak256(list) | list`, with the list that `rootlight_getHeaders` packs ([`header_batch`](crate::light)).
//! Page 0 starts at that number; unknown headers are left out. A page is replaced as a whole, so hosts only store
//! numbered values.
//!
//! Nothing that is read back is trusted, and hash links cost nothing: a forger can link any headers to the checkpoint.
//! Answers therefore rest on the work at the top. At the start the newest [`START_PAGES`] pages are read. Their headers
//! must link by hash and keep all header rules, the newest [`REPROVEN`] must show their proofs of work, and the work
//! floor judges them by what the checkpoint promises. Everything else is proven in the background, from the top down
//! ([`HeaderSync::prove_kept`]): the rest of these headers, then stretch by stretch those below, until the checkpoint is
//! reached. The work of a header counts for nothing until its proof is checked. If anything does not hold, all of it is
//! forgotten.

use alloc::{string::String, vec::Vec};
use core::cmp::Ordering;

use alloy_primitives::{B256, keccak256};
use thiserror::Error;

use super::{
    options::FORK_WINDOW,
    phase::Phase,
    state::{BackgroundProof, HeaderSync, Restoring},
    turns::Turns,
};
use crate::{
    consensus::{ChainError, ChainView, HeaderCandidate, HeaderChain},
    light::header_batch::{Batch, BatchError, MAX_BATCH_BYTES, decode_list, encode_list},
    types::{Header, SealedHeader, U256},
};

/// Numbers in one page: some 70 kB, written again with each new block.
pub const PAGE_HEADERS: u64 = 64;

/// Number of newest headers whose work is proven again at the start: a day of blocks. That is the longest stretch that
/// the work floor judges, 24 times the depth called final, and takes some hundredths of a second.
pub const REPROVEN: usize = 2_880;

/// Fewest new headers that are written while synchronization has not reached the head.
const WORTH_WRITING: u64 = 512;

/// Bytes of a page's hash.
const HASH_BYTES: usize = 32;
/// Most bytes of a page. A host need not read longer ones, which are [`KeptFault::Damaged`].
pub const MAX_PAGE_BYTES: usize = HASH_BYTES + MAX_BATCH_BYTES;

/// A page to store under its number, in place of the page stored there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The number of the page, from 0. The host deletes stored pages above the last one of an export.
    pub index: u64,
    /// The bytes to store.
    pub bytes: Vec<u8>,
}

/// Why stored headers cannot be used: they are damaged, or belong to another chain.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeptFault {
    /// The host cannot read the page.
    #[error("page {index}: {reason}")]
    Unreadable {
        /// The number of the page.
        index: u64,
        /// The host's reason.
        reason: String,
    },
    /// The bytes are not those that were written, or are more than any page has.
    #[error("page {index} is damaged")]
    Damaged {
        /// The number of the page.
        index: u64,
    },
    /// The bytes do not decode as headers.
    #[error("page {index}: {error}")]
    Decode {
        /// The number of the page.
        index: u64,
        /// Why they do not decode.
        error: BatchError,
    },
    /// The headers do not form a chain from the checkpoint.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A start by work uses only headers that upstreams show in this run.
    #[error("a start by work restores no stored headers")]
    ByWork,
    /// A header that later ones need is missing, or headers are out of order.
    #[error("stored headers: block {0} is missing or out of order")]
    Gap(u64),
}

/// Pages that are read at the start, and in each stretch that is proven in the background. Together with new headers on
/// top they fit within the headers kept in memory.
const START_PAGES: u64 = 120;

impl Restoring {
    /// The number of the page to read next, if one is left.
    #[must_use]
    pub fn page(&self) -> Option<u64> {
        self.checkpoint_page.or((self.next < self.end).then_some(self.next))
    }

    fn take(
        &mut self,
        sync: &HeaderSync,
        candidate: HeaderCandidate,
        uncles: Vec<Header>,
    ) -> Result<(), KeptFault> {
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
            // Too many headers below the base, a header that comes twice, or no base.
            _ => return Err(KeptFault::Gap(number)),
        }
        Ok(())
    }

    /// Starts the chain at its base, with the headers below.
    fn start(
        &mut self,
        sync: &HeaderSync,
        header: SealedHeader,
        uncles: Vec<Header>,
    ) -> Result<HeaderChain, KeptFault> {
        let (network, hash) = (sync.line.network.clone(), header.hash());
        let mut chain = match self.first {
            0 => HeaderChain::from_checkpoint(network, &sync.line.checkpoint, header)?,
            _ => HeaderChain::from_kept(network, header),
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

/// Reads the page of a number; `None` if there is none.
pub type ReadPage<'a> = &'a mut dyn FnMut(u64) -> Result<Option<Vec<u8>>, KeptFault>;

impl HeaderSync {
    /// The first number of page 0.
    fn first_kept(&self) -> u64 {
        self.line.checkpoint.number.saturating_sub(FORK_WINDOW)
    }

    /// Counts the pages from this number on as changed, because the host could not store them.
    pub fn keep_again(&mut self, page: u64) {
        self.line.touch(self.first_kept().saturating_add(page.saturating_mul(PAGE_HEADERS)));
    }

    /// The pages that changed since the last call; none while only a few headers are new and more are expected. The
    /// host deletes stored pages above the last one.
    pub fn export(&mut self) -> Vec<Page> {
        // A start by work begins again in each run.
        let Some(chain) = self.line.chain.as_ref().filter(|_| !self.is_by_work()) else { return Vec::new() };
        let (view, first) = (chain.view(), self.first_kept());
        let head = view.head().number;
        let Some(from) = self.line.changed else { return Vec::new() };
        if !self.line.synced_once && head.saturating_sub(from) < WORTH_WRITING {
            return Vec::new();
        }
        self.line.changed = None;
        let page_of = |number: u64| number.saturating_sub(first) / PAGE_HEADERS;
        // A page that reaches below the headers in memory could be written only in part.
        let cut =
            view.lowest() > self.line.checkpoint.number || view.base().number > self.line.checkpoint.number;
        let whole = if cut { view.lowest().saturating_sub(first).div_ceil(PAGE_HEADERS) } else { 0 };
        (page_of(from).max(whole)..=page_of(head)).map(|index| page(view, first, index)).collect()
    }

    /// Takes back the first `pages` stored pages, before anything else is done. Returns the number of the newest block,
    /// or `None` without pages. After an error nothing of them is used.
    ///
    /// # Errors
    /// The first page that is missing, damaged or invalid.
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

    /// Begins to take back `pages` stored pages. The host passes [`Self::restore_page`] each page that
    /// [`Restoring::page`] names, until it names none, and then calls [`Self::restored`].
    pub fn restoring(&self, pages: u64) -> Restoring {
        let stretch = self.stretch(pages, None);
        let checkpoint_page = self.line.checkpoint.number.saturating_sub(self.first_kept()) / PAGE_HEADERS;
        Restoring { checkpoint_page: (stretch.first > 0).then_some(checkpoint_page), ..stretch }
    }

    /// The stretch of pages that ends before page `end`.
    fn stretch(&self, end: u64, top: Option<(u64, B256)>) -> Restoring {
        let first = end.saturating_sub(START_PAGES);
        let above = self.first_kept().saturating_add(first.saturating_mul(PAGE_HEADERS));
        let base = if first > 0 { above.saturating_add(FORK_WINDOW) } else { self.line.checkpoint.number };
        let (checkpoint_page, below, chain) = (None, Vec::new(), None);
        Restoring { checkpoint_page, first, next: first, end, base, below, chain, top }
    }

    /// Takes back the next page. After an error the pages before this one may be usable: the host begins again with
    /// them.
    ///
    /// # Errors
    /// The page is damaged or invalid.
    pub fn restore_page(&mut self, restoring: &mut Restoring, bytes: &[u8]) -> Result<(), KeptFault> {
        if self.is_by_work() {
            // Otherwise whoever wrote the pages would choose the start.
            return Err(KeptFault::ByWork);
        }
        let Some(index) = restoring.page() else { return Ok(()) };
        let page = self.read_page(index, bytes)?;
        if restoring.checkpoint_page.take().is_some() {
            let (number, hash) = (self.line.checkpoint.number, self.line.checkpoint.hash);
            let mut headers = page.iter().map(|(candidate, _)| candidate.header());
            let header = headers.find(|header| header.hash() == hash).ok_or(KeptFault::Gap(number))?;
            self.line.floor.promise(header.difficulty.value());
            return Ok(());
        }
        restoring.next = restoring.next.saturating_add(1);
        page.into_iter()
            .try_for_each(|(candidate, uncles)| restoring.take(self, candidate, uncles.unwrap_or_default()))
    }

    /// Ends taking back: proves the work of the newest headers and returns the number of the newest block. After an
    /// error nothing that was taken back is used.
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
            self.store.behind = Some(BackgroundProof {
                stretch: self.stretch_below(first, (base.number, base.hash)),
                work: U256::ZERO,
                uncles: Some(U256::ZERO),
            });
        } else {
            self.line.backfill.start(base.number, self.options.backfill);
        }
        self.store.resumed = Some(head);
        self.line.go_on_from(chain);
        Ok(head)
    }

    /// The stretch below one that begins with page `first`. It ends at the base of that stretch, which is 449 headers
    /// above its first page.
    fn stretch_below(&self, first: u64, top: (u64, B256)) -> Restoring {
        self.stretch(first.saturating_add(FORK_WINDOW / PAGE_HEADERS).saturating_add(1), Some(top))
    }

    /// Proves some more of the headers that were taken back, newest first. Returns whether more are left. Each step
    /// takes some milliseconds, so that requests are answered meanwhile. `read` returns the page that
    /// [`Self::wanted_page`] names.
    ///
    /// # Errors
    /// The stored headers are invalid. All of them are forgotten, and the machine starts from the checkpoint.
    pub fn prove_kept(&mut self, read: ReadPage<'_>) -> Result<bool, KeptFault> {
        let outcome = self.prove_some(read);
        match &outcome {
            Ok(_) => self.line.judge_work(),
            Err(_) => {
                self.forget();
                (self.line.synced_once, self.store.resumed, self.turns) = (false, None, Turns::default());
                for peer in &mut self.peers {
                    // Requests in progress belong to the old chain.
                    peer.search.again();
                    peer.phase = Phase::Idle(0);
                }
            }
        }
        outcome
    }

    /// The page that [`Self::prove_kept`] reads next.
    pub fn wanted_page(&self) -> Option<u64> {
        let proven = self.line.chain.as_ref().is_some_and(|chain| chain.view().unproven().is_none());
        self.store.behind.as_ref().filter(|_| proven)?.stretch.page()
    }

    fn prove_some(&mut self, read: ReadPage<'_>) -> Result<bool, KeptFault> {
        let Some(chain) = &mut self.line.chain else { return Ok(false) };
        if chain.view().unproven().is_some() {
            return Ok(chain.prove(PAGE_HEADERS as usize)? || self.store.behind.is_some());
        }
        let Some(mut behind) = self.store.behind.take() else { return Ok(false) };
        let Some(index) = behind.stretch.page() else {
            self.stretch_proven(behind)?;
            return Ok(self.store.behind.is_some());
        };
        let bytes = read(index)?.ok_or(KeptFault::Damaged { index })?;
        self.restore_page(&mut behind.stretch, &bytes)?;
        self.store.behind = Some(behind);
        Ok(true)
    }

    /// Joins a stretch that was read to its end with the chain above it.
    fn stretch_proven(&mut self, mut behind: BackgroundProof) -> Result<(), KeptFault> {
        let Restoring { first, base, chain: stretch, top, .. } = behind.stretch;
        let (Some(stretch), Some(chain)) = (&stretch, &mut self.line.chain) else {
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
        self.store.behind = Some(behind);
        Ok(())
    }

    /// Number of the highest header that was taken back and is not proven yet.
    pub fn unproven(&self) -> Option<u64> {
        let behind = self.store.behind.as_ref().and_then(|behind| behind.stretch.top);
        self.line.chain.as_ref()?.view().unproven().or(behind.map(|(number, _)| number))
    }

    /// Forgets what was taken back.
    fn forget(&mut self) {
        self.line.forget(&self.options);
        self.store.behind = None;
    }

    fn read_page(&self, index: u64, bytes: &[u8]) -> Result<Batch, KeptFault> {
        let (hash, list) = bytes.split_at_checked(HASH_BYTES).ok_or(KeptFault::Damaged { index })?;
        if bytes.len() > MAX_PAGE_BYTES || keccak256(list) != hash {
            return Err(KeptFault::Damaged { index });
        }
        let decoded = decode_list(list, PAGE_HEADERS as usize, &self.line.network);
        decoded.map_err(|error| KeptFault::Decode { index, error })
    }
}

#[cfg(test)]
impl HeaderSync {
    /// The pages that a machine with this chain would store.
    pub(crate) fn pages_of(checkpoint: crate::consensus::Checkpoint, chain: HeaderChain) -> Vec<Vec<u8>> {
        let mut sync = Self::new(chain.view().network().clone(), checkpoint);
        (sync.line.chain, sync.line.synced_once) = (Some(chain), true);
        sync.line.touch(0);
        sync.export().into_iter().map(|page| page.bytes).collect()
    }
}

fn page(view: &ChainView, first: u64, index: u64) -> Page {
    let start = first.saturating_add(index.saturating_mul(PAGE_HEADERS));
    let headers = (start..start.saturating_add(PAGE_HEADERS)).filter_map(|number| view.by_number(number));
    let list = encode_list(headers.map(|header| {
        let uncles = view.uncles(&header.hash()).map_or(&[][..], |uncles| uncles.headers());
        (header.header(), Some(uncles))
    }))
    .into_list();
    let mut bytes = keccak256(&list).to_vec();
    bytes.extend(list);
    Page { index, bytes }
}
