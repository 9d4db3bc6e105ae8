//! The interface for hosts that keep headers between two runs (`keep.rs`).

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

/// New blocks of Bitcoin's chain, or coinbases, with which it is written again, which takes up to 300 kB: those of three hours. A
/// restart asks for those that are missing.
const BITCOIN_WORTH_WRITING: u32 = 18;

impl HeaderSync {
    /// Counts the pages from this number on, and Bitcoin's chain, as changed, because the host could not store them.
    pub fn keep_again(&mut self, page: u64) {
        self.store.bitcoin.tip = B256::ZERO;
        self.followed.touch(self.first_stored().saturating_add(page.saturating_mul(PAGE_HEADERS)));
    }

    /// The first number of page 0.
    fn first_stored(&self) -> u64 {
        if self.is_by_window() { 0 } else { first_stored(&self.followed.checkpoint) }
    }

    /// The pages that changed since the last call; none while only a few headers are new and more are expected. The
    /// host deletes stored pages above the last one.
    pub fn export(&mut self) -> Vec<HeaderPage> {
        // A start by work begins again in each run, and a window is stored once it is proven.
        let is_kept = if self.is_by_window() { self.window_record().is_some() } else { !self.is_by_work() };
        let Some(chain) = self.followed.chain.as_ref().filter(|_| is_kept) else { return Vec::new() };
        let (view, first) = (chain.view(), self.first_stored());
        let head = view.head().number;
        let Some(from) = self.followed.changed else { return Vec::new() };
        if !self.followed.synced_once && head.saturating_sub(from) < WORTH_WRITING {
            return Vec::new();
        }
        self.followed.changed = None;
        let page_of = |number: u64| number.saturating_sub(first) / PAGE_HEADERS;
        // A page that reaches below the headers in memory could be written only in part.
        let cut = view.lowest() > self.followed.checkpoint.number
            || view.base().number > self.followed.checkpoint.number;
        let whole = if cut { view.lowest().saturating_sub(first).div_ceil(PAGE_HEADERS) } else { 0 };
        let whole = if self.is_by_window() {
            let newest = page_of(head).saturating_add(1).saturating_sub(WINDOW_PAGES);
            whole.max(page_of(view.lowest())).max(newest)
        } else {
            whole
        };
        (page_of(from).max(whole)..=page_of(head)).map(|index| page(view, first, index)).collect()
    }

    /// Bitcoin's chain, if the host has to store its bytes ([`BitcoinFollower::stored`]) in place of those of the last call: they lack the
    /// blocks or the coinbases of some hours or a reorganisation, or their newest block was replaced.
    pub fn export_bitcoin(&mut self) -> Option<Arc<BitcoinFollower>> {
        let follower = self.bitcoin.as_ref()?;
        let (tip, removed) = (follower.tip()?, follower.reorganisation());
        let kept = &mut self.store.bitcoin;
        let stored = follower.chain().height_of(&kept.tip);
        let is_recent = |stored: u32| tip.height.saturating_sub(stored) < BITCOIN_WORTH_WRITING;
        let missing = follower.missing_coinbases().len();
        let lacks_few = kept.missing < missing.saturating_add(BITCOIN_WORTH_WRITING as usize);
        if stored.is_some_and(is_recent) && lacks_few && (removed.is_none() || removed == kept.removed) {
            return None;
        }
        kept.note(follower);
        Some(follower.clone())
    }

    /// Takes back the bytes of what [`Self::export_bitcoin`] returned, before anything else is done. It counts once an upstream shows its newest
    /// block, and nothing of it does if it does not verify or ends too long ago. `now` is the wall clock in seconds since 1970.
    pub fn restore_bitcoin(&mut self, stored: &[u8], now: u64) {
        let Some(network) = self.followed.network.bitcoin else { return };
        let Ok(follower) = BitcoinFollower::restore(network, stored, now) else { return };
        if now.saturating_sub(follower.chain().tip().time.into()) <= LONGEST_PAUSE {
            self.store.bitcoin.chain = Some(Arc::new(follower));
        }
    }

    /// Takes back the first `pages` stored pages, before anything else is done. Returns the number of the newest block,
    /// or `None` without pages. After an error nothing of them is used.
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
        let outcome = read_all.and_then(|()| self.restored(restoring));
        if outcome.is_err() {
            self.forget();
        }
        outcome
    }

    /// Begins to take back `pages` stored pages. The host passes [`Self::restore_page`] each page that
    /// [`Restoring::page`] names, until it names none, and then calls [`Self::restored`].
    pub fn restoring(&self, pages: u64) -> Restoring {
        if !self.is_by_window() {
            return Restoring::newest(&self.followed.checkpoint, pages);
        }
        self.store.record.as_ref().map_or_else(Restoring::nothing, |record| Restoring::window(record, pages))
    }

    /// Takes back the next page. After an error the pages before this one may be usable: the host begins again with
    /// them.
    ///
    /// # Errors
    /// The page is damaged or invalid.
    pub fn restore_page(&mut self, restoring: &mut Restoring, bytes: &[u8]) -> Result<(), HeaderStoreFault> {
        if self.is_by_work() && !self.is_by_window() {
            // Otherwise whoever wrote the pages would choose the start.
            return Err(HeaderStoreFault::ByWork);
        }
        restoring.read(&mut self.followed, bytes)
    }

    /// Ends taking back: proves the work of the newest headers and returns the number of the newest block. After an
    /// error nothing that was taken back is used.
    ///
    /// # Errors
    /// A proof of work does not hold, or a page is missing.
    pub fn restored(&mut self, restoring: Restoring) -> Result<Option<u64>, HeaderStoreFault> {
        if restoring.is_empty() {
            return Ok(None);
        }
        let outcome = self.store.take_over(restoring, &mut self.followed, &self.options);
        if outcome.is_err() {
            self.forget();
        }
        outcome.map(Some)
    }

    /// Proves some more of the headers that were taken back, newest first. Returns whether more are left. Each step
    /// takes some milliseconds, so that requests are answered meanwhile. `read` returns the page that
    /// [`Self::wanted_page`] names.
    ///
    /// # Errors
    /// The stored headers are invalid. All of them are forgotten, and the machine starts from the checkpoint.
    pub fn prove_kept(&mut self, read: ReadPage<'_>) -> Result<bool, HeaderStoreFault> {
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

    /// The page that [`Self::prove_kept`] reads next.
    pub fn wanted_page(&self) -> Option<u64> {
        self.store.wanted_page(&self.followed)
    }

    /// Number of the highest header that was taken back and is not proven yet.
    pub fn unproven(&self) -> Option<u64> {
        self.store.unproven(&self.followed)
    }

    /// Forgets what was taken back.
    pub(super) fn forget(&mut self) {
        self.followed.forget(&self.options);
        (self.store.behind, self.store.record, self.store.on_probation) = (None, None, false);
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
