//! The interface for hosts that store headers between two runs: export of pages, and restoring them at the next start. `pages.rs`
//! explains the pages, `store.rs` does the work.

use alloc::{sync::Arc, vec::Vec};

use super::{
    pages::{
        HeaderPage, HeaderStoreFault, PAGE_HEADERS, ReadPage, WINDOW_PAGES, WORTH_WRITING, first_stored, page,
    },
    phase::Phase,
    state::HeaderSync,
    store::Restoring,
    window::LONGEST_PAUSE,
};
#[cfg(test)]
use crate::consensus::HeaderChain;
use crate::{light::bitcoin::BitcoinFollower, types::B256};

/// Number of new Bitcoin blocks, or coinbases, after which Bitcoin's chain is written again: those of three hours, because each
/// export has up to 300 kB. A restart fetches what is missing.
const BITCOIN_WORTH_WRITING: u32 = 18;

impl HeaderSync {
    /// Counts the pages from the index `page` on, and Bitcoin's chain, as changed, because the host could not store them.
    pub fn store_again(&mut self, page: u64) {
        self.store.bitcoin.tip = B256::ZERO;
        self.followed.touch(self.first_stored().saturating_add(page.saturating_mul(PAGE_HEADERS)));
    }

    /// The lowest block number of page 0.
    fn first_stored(&self) -> u64 {
        if self.is_by_window() { 0 } else { first_stored(&self.followed.checkpoint) }
    }

    /// The pages that changed since the last call; none while only a few headers are new and more are expected. The
    /// host deletes stored pages above the last one.
    pub fn export(&mut self) -> Vec<HeaderPage> {
        // A start by work begins again in each run, so it stores nothing; a window is stored once it is proven.
        let is_stored = if self.is_by_window() { self.window_record().is_some() } else { !self.is_by_work() };
        let Some(chain) = self.followed.chain.as_ref().filter(|_| is_stored) else { return Vec::new() };
        let (view, first) = (chain.view(), self.first_stored());
        let head = view.head().number;
        let Some(from) = self.followed.changed else { return Vec::new() };
        if !self.followed.synced_once && head.saturating_sub(from) < WORTH_WRITING {
            return Vec::new();
        }
        self.followed.changed = None;
        let page_of = |number: u64| number.saturating_sub(first) / PAGE_HEADERS;
        // If the lowest headers are not in memory any more, the first page that is written is one whose headers all are.
        let is_cut = view.lowest() > self.followed.checkpoint.number
            || view.base().number > self.followed.checkpoint.number;
        let first_whole = if is_cut { view.lowest().saturating_sub(first).div_ceil(PAGE_HEADERS) } else { 0 };
        let first_page = if self.is_by_window() {
            let newest = page_of(head).saturating_add(1).saturating_sub(WINDOW_PAGES);
            first_whole.max(page_of(view.lowest())).max(newest)
        } else {
            first_whole
        };
        (page_of(from).max(first_page)..=page_of(head)).map(|index| page(view, first, index)).collect()
    }

    /// Bitcoin's chain, if the host has to store its bytes ([`BitcoinFollower::stored`]) again: the stored bytes lack the blocks or the
    /// coinbases of some hours or a reorganisation, or their newest block was replaced.
    pub fn export_bitcoin(&mut self) -> Option<Arc<BitcoinFollower>> {
        let follower = self.bitcoin.as_ref()?;
        let (tip, removed) = (follower.tip()?, follower.reorganisation());
        let stored = &mut self.store.bitcoin;
        let stored_height = follower.chain().height_of(&stored.tip);
        let is_recent = |stored: u32| tip.height.saturating_sub(stored) < BITCOIN_WORTH_WRITING;
        let missing = follower.missing_coinbases().len();
        // The stored bytes may lack coinbases that have arrived since.
        let lacks_few = stored.missing < missing.saturating_add(BITCOIN_WORTH_WRITING as usize);
        let has_reorganisation = removed.is_none() || removed == stored.removed;
        if stored_height.is_some_and(is_recent) && lacks_few && has_reorganisation {
            return None;
        }
        stored.note(follower);
        Some(follower.clone())
    }

    /// Restores Bitcoin's chain from the bytes of an earlier run. To be called before any other method. The chain is used once an
    /// upstream shows its newest block. Bytes that do not verify, or whose chain ended too long ago, are ignored. `now` is the wall
    /// clock in seconds since 1970.
    pub fn restore_bitcoin(&mut self, stored: &[u8], now: u64) {
        let Some(network) = self.followed.network.bitcoin else { return };
        let Ok(follower) = BitcoinFollower::restore(network, stored, now) else { return };
        if now.saturating_sub(follower.chain().tip().time.into()) <= LONGEST_PAUSE {
            self.store.bitcoin.chain = Some(Arc::new(follower));
        }
    }

    /// Restores the headers of the first `pages` stored pages. To be called before any other method. Returns the number of the newest
    /// block, or `None` without pages. After an error none of the headers is used.
    ///
    /// # Errors
    /// The first page that is missing, damaged or invalid.
    pub fn restore(&mut self, pages: u64, read: ReadPage<'_>) -> Result<Option<u64>, HeaderStoreFault> {
        let mut restoring = self.restoring(pages);
        let read_all = loop {
            let Some(index) = restoring.page() else { break Ok(()) };
            let page = match read(index) {
                Ok(page) => page.ok_or(HeaderStoreFault::Damaged { index }),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = page.and_then(|bytes| self.restore_page(&mut restoring, &bytes)) {
                break Err(fault);
            }
        };
        let outcome = read_all.and_then(|()| self.finish_restore(restoring));
        if outcome.is_err() {
            self.forget();
        }
        outcome
    }

    /// Begins to restore `pages` stored pages. The host passes each page that [`Restoring::page`] names to
    /// [`Self::restore_page`], until no page is named, and then calls [`Self::finish_restore`].
    pub fn restoring(&self, pages: u64) -> Restoring {
        if !self.is_by_window() {
            return Restoring::newest(&self.followed.checkpoint, pages);
        }
        self.store.record.as_ref().map_or_else(Restoring::nothing, |record| Restoring::window(record, pages))
    }

    /// Restores the next page. After an error the pages before this one may be usable: the host begins again with
    /// these.
    ///
    /// # Errors
    /// The page is damaged or invalid.
    pub fn restore_page(&mut self, restoring: &mut Restoring, bytes: &[u8]) -> Result<(), HeaderStoreFault> {
        if self.is_by_work() && !self.is_by_window() {
            // Otherwise a program that can write the pages could choose the start.
            return Err(HeaderStoreFault::ByWork);
        }
        restoring.read(&mut self.followed, bytes)
    }

    /// Ends restoring: proves the work of the newest headers and returns the number of the newest block. After an
    /// error none of the restored headers is used.
    ///
    /// # Errors
    /// A proof of work does not hold, or a page is missing.
    pub fn finish_restore(&mut self, restoring: Restoring) -> Result<Option<u64>, HeaderStoreFault> {
        if restoring.is_empty() {
            return Ok(None);
        }
        let outcome = self.store.take_over(restoring, &mut self.followed, &self.options);
        if outcome.is_err() {
            self.forget();
        }
        outcome.map(Some)
    }

    /// Proves some more of the restored headers, newest first. Returns whether more are left. Each call
    /// takes some milliseconds, so that hosts can answer requests between two calls. `read` returns the page that
    /// [`Self::wanted_page`] names.
    ///
    /// # Errors
    /// The stored headers are invalid. All of them are dropped, and the machine starts again from the checkpoint.
    pub fn prove_restored(&mut self, read: ReadPage<'_>) -> Result<bool, HeaderStoreFault> {
        let outcome = self.store.prove_some(&mut self.followed, read);
        match &outcome {
            Ok(_) => self.followed.judge_work(),
            Err(_) => {
                self.start_again();
                self.peers.iter_mut().for_each(|peer| peer.phase = Phase::Idle(0));
            }
        }
        outcome
    }

    /// The index of the page that [`Self::prove_restored`] reads next.
    pub fn wanted_page(&self) -> Option<u64> {
        self.store.wanted_page(&self.followed)
    }

    /// Number of the highest restored header that is not proven yet.
    pub fn unproven(&self) -> Option<u64> {
        self.store.unproven(&self.followed)
    }

    /// Drops the restored headers.
    pub(super) fn forget(&mut self) {
        self.followed.forget(&self.options);
        (self.store.background, self.store.record, self.store.on_probation) = (None, None, false);
    }
}

#[cfg(test)]
impl HeaderSync {
    /// The pages that a machine with this chain would store.
    pub(crate) fn pages_of(checkpoint: crate::consensus::Checkpoint, chain: HeaderChain) -> Vec<Vec<u8>> {
        let mut sync = Self::new(chain.view().network().clone(), checkpoint);
        (sync.followed.chain, sync.followed.synced_once) = (Some(chain), true);
        sync.followed.touch(0);
        sync.export().into_iter().map(|page| page.bytes).collect()
    }
}
