//! The interface for hosts that keep headers between two runs (`keep.rs`).

use alloc::vec::Vec;

use super::{
    keep::{KeptFault, PAGE_HEADERS, Page, ReadPage, WORTH_WRITING, first_kept, page},
    phase::Phase,
    state::HeaderSync,
    store::Restoring,
    turns::Turns,
};
#[cfg(test)]
use crate::consensus::HeaderChain;

impl HeaderSync {
    /// Counts the pages from this number on as changed, because the host could not store them.
    pub fn keep_again(&mut self, page: u64) {
        self.line.touch(first_kept(&self.line.checkpoint).saturating_add(page.saturating_mul(PAGE_HEADERS)));
    }

    /// The pages that changed since the last call; none while only a few headers are new and more are expected. The
    /// host deletes stored pages above the last one.
    pub fn export(&mut self) -> Vec<Page> {
        // A start by work begins again in each run.
        let Some(chain) = self.line.chain.as_ref().filter(|_| !self.is_by_work()) else { return Vec::new() };
        let (view, first) = (chain.view(), first_kept(&self.line.checkpoint));
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
        Restoring::newest(&self.line.checkpoint, pages)
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
        restoring.read(&mut self.line, bytes)
    }

    /// Ends taking back: proves the work of the newest headers and returns the number of the newest block. After an
    /// error nothing that was taken back is used.
    ///
    /// # Errors
    /// A proof of work does not hold, or a page is missing.
    pub fn restored(&mut self, restoring: Restoring) -> Result<Option<u64>, KeptFault> {
        if restoring.is_empty() {
            return Ok(None);
        }
        let outcome = self.store.take_over(restoring, &mut self.line, &self.options);
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
    pub fn prove_kept(&mut self, read: ReadPage<'_>) -> Result<bool, KeptFault> {
        let outcome = self.store.prove_some(&mut self.line, read);
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
        self.store.wanted_page(&self.line)
    }

    /// Number of the highest header that was taken back and is not proven yet.
    pub fn unproven(&self) -> Option<u64> {
        self.store.unproven(&self.line)
    }

    /// Forgets what was taken back.
    fn forget(&mut self) {
        self.line.forget(&self.options);
        self.store.behind = None;
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
