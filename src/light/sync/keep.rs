//! What is worth keeping between two runs, and taking it back: bytes out, bytes in.
//!
//! The chain is kept in pages of [`PAGE_HEADERS`] numbers each, from [`FORK_WINDOW`] blocks below the checkpoint on:
//! `keccak256(list) | list`, the list that `rootlight_getHeaders` packs ([`header_batch`](crate::light)). Page 0 starts at
//! that number; headers that are not known are left out. A page is replaced as a whole, so hosts need nothing but
//! numbered values.
//!
//! Nothing read back is believed as such. The hash of a page finds damage; links by hash from the checkpoint to the
//! newest header and all header rules on the way decide at once, and the proofs of work from the newest header down: of the
//! last [`REPROVEN`] before anything is answered, of the rest step by step ([`Sync::prove_kept`]). Until a header's proof is
//! checked its work counts for nothing.

use alloc::{string::String, vec::Vec};
use core::cmp::Ordering;

use alloy_primitives::keccak256;
use thiserror::Error;

use super::{
    below::Below,
    machine::{Sync, FORK_WINDOW},
    peer::Phase,
};
use crate::{
    consensus::{ChainError, ChainView, HeaderChain},
    light::{
        backlog::Backlog,
        floor::Floor,
        header_batch::{decode_list, encode_list, Batch, BatchError},
    },
    types::{Header, SealedHeader, EMPTY_UNCLES_HASH},
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

/// How far pages were taken back one by one; see [`Sync::restore_page`].
#[derive(Debug, Default)]
pub struct Restoring {
    /// The number of the next page.
    next: u64,
    /// Headers below the checkpoint, lowest first, until the checkpoint's own is read.
    below: Vec<SealedHeader>,
}

/// Gives the page of a number; `None` ends what was kept.
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
        let whole =
            if view.lowest() > view.base().number { page_of(view.lowest()).saturating_add(1) } else { 0 };
        (page_of(from).max(whole)..=page_of(head)).map(|index| page(view, first, index)).collect()
    }

    /// Takes back what was kept, before anything else is done; gives the newest block's number. What is there but does
    /// not hold is a fault, and nothing of it stays.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn restore(&mut self, read: ReadPage<'_>) -> Result<Option<u64>, KeptFault> {
        let mut restoring = Restoring::default();
        let read_all = loop {
            let page =
                read(restoring.next).map(|page| page.map(|bytes| self.restore_page(&mut restoring, &bytes)));
            match page {
                Ok(Some(Ok(()))) => {}
                Ok(None) => break Ok(()),
                Ok(Some(Err(fault))) | Err(fault) => break Err(fault),
            }
        };
        let outcome = read_all.and_then(|()| self.restored(restoring));
        if outcome.is_err() {
            self.forget();
        }
        outcome
    }

    /// Takes back the next page, before anything else is done. After a fault the headers that linked before it stay, and
    /// no further page can follow: the host calls [`Self::restored`] next.
    ///
    /// # Errors
    /// The first thing in the page that does not hold.
    pub fn restore_page(&mut self, restoring: &mut Restoring, bytes: &[u8]) -> Result<(), KeptFault> {
        let outcome = self.take_back_page(restoring, bytes);
        restoring.next = restoring.next.saturating_add(1);
        outcome
    }

    /// Ends taking back page by page: proves the work of the newest headers and gives the newest block's number. After a
    /// fault nothing that was taken back stays.
    ///
    /// # Errors
    /// A proof of work does not hold, or the checkpoint's header was not among the pages.
    pub fn restored(&mut self, restoring: Restoring) -> Result<Option<u64>, KeptFault> {
        let outcome = match &mut self.chain {
            Some(chain) => chain.prove(REPROVEN).map_err(KeptFault::from),
            None if restoring.next == 0 => return Ok(None),
            None => Err(KeptFault::Gap(self.checkpoint.number)),
        };
        match outcome {
            Ok(_) => self.resumed = self.chain.as_ref().map(|chain| chain.head().number),
            Err(fault) => {
                self.forget();
                return Err(fault);
            }
        }
        self.judge_work();
        Ok(self.resumed)
    }

    /// Proves some more of the headers that were taken back, newest first, until it says that nothing is left to do: in
    /// small steps of some milliseconds, so that answers go on meanwhile. `read` gives the pages of those that are not in
    /// memory any more; without them these stay unproven.
    ///
    /// # Errors
    /// What was kept does not hold. All of it is forgotten, and the machine starts from the checkpoint.
    pub fn prove_kept(&mut self, read: ReadPage<'_>) -> Result<bool, KeptFault> {
        let outcome = self.prove_some(read);
        match &outcome {
            Ok(_) => self.judge_work(),
            Err(_) => {
                self.forget();
                (self.synced_once, self.resumed, self.lease) = (false, None, None);
                for peer in &mut self.peers {
                    // What is on its way belongs to the old chain.
                    (peer.at_end, peer.at) = (false, None);
                    if !peer.is_resting() {
                        peer.phase = Phase::Idle(0);
                    }
                }
            }
        }
        outcome
    }

    fn prove_some(&mut self, read: ReadPage<'_>) -> Result<bool, KeptFault> {
        let Some(chain) = &mut self.chain else { return Ok(false) };
        if chain.prove(PAGE_HEADERS as usize)? {
            return Ok(true);
        }
        let Some(number) = chain.view().unproven() else { return Ok(false) };
        let index = number.saturating_sub(self.first_kept()) / PAGE_HEADERS;
        let Some(bytes) = read(index)? else { return Ok(false) };
        for (header, uncles) in self.read_page(index, &bytes)?.into_iter().rev() {
            let header = header.into_header();
            if let Some(chain) =
                self.chain.as_mut().filter(|chain| chain.view().unproven() == Some(header.number))
            {
                chain.prove_kept(header, &uncles)?;
            }
        }
        match self.unproven() {
            Some(left) if left == number => Err(KeptFault::Gap(number)),
            left => Ok(left.is_some()),
        }
    }

    /// The highest header that was taken back and is not proven yet.
    pub fn unproven(&self) -> Option<u64> {
        self.chain.as_ref()?.view().unproven()
    }

    /// Forgets what was taken back.
    fn forget(&mut self) {
        (self.chain, self.unsaved) = (None, None);
        (self.below, self.backlog) = (Below::default(), Backlog::default());
        self.floor = Floor::new(self.options.work_floor, self.options.promised);
    }

    fn take_back_page(&mut self, restoring: &mut Restoring, bytes: &[u8]) -> Result<(), KeptFault> {
        if self.is_by_work() {
            // Whoever wrote them would choose the start.
            return Err(KeptFault::ByWork);
        }
        for (header, uncles) in self.read_page(restoring.next, bytes)? {
            let (header, below) = (header.into_header(), &mut restoring.below);
            match header.number.cmp(&self.checkpoint.number) {
                // Too many, or the checkpoint's header has been read.
                Ordering::Less if below.len() as u64 >= FORK_WINDOW => {
                    return Err(KeptFault::Gap(header.number))
                }
                Ordering::Less | Ordering::Equal if self.chain.is_some() => {
                    return Err(KeptFault::Gap(header.number));
                }
                Ordering::Less => below.push(header),
                Ordering::Equal => self.take_back_base(header, core::mem::take(below))?,
                Ordering::Greater => self.take_back_one(header, uncles)?,
            }
        }
        Ok(())
    }

    fn read_page(&self, index: u64, bytes: &[u8]) -> Result<Batch, KeptFault> {
        let (hash, list) = bytes.split_at_checked(HASH_BYTES).ok_or(KeptFault::Damaged { index })?;
        if keccak256(list) != hash {
            return Err(KeptFault::Damaged { index });
        }
        let decoded = decode_list(list, PAGE_HEADERS as usize, &self.network);
        decoded.map_err(|error| KeptFault::Decode { index, error })
    }

    fn take_back_one(&mut self, header: SealedHeader, uncles: Vec<Header>) -> Result<(), KeptFault> {
        let gap = KeptFault::Gap(header.number);
        let chain = self.chain.as_mut().ok_or(gap)?;
        let header = chain.insert_linked(header)?;
        let attached = match uncles.is_empty() {
            true => Ok(()),
            false => chain.attach_uncles(&header.hash(), uncles, None).map(drop),
        };
        if header.uncles_hash != EMPTY_UNCLES_HASH && chain.view().uncles(&header.hash()).is_none() {
            self.backlog.add(&header);
        }
        Ok(attached?)
    }

    /// The checkpoint's header, and those below it that were read before; their uncles do not count.
    fn take_back_base(&mut self, header: SealedHeader, below: Vec<SealedHeader>) -> Result<(), KeptFault> {
        let number = header.number;
        let mut chain = HeaderChain::from_checkpoint(self.network.clone(), &self.checkpoint, header)?;
        for header in below.into_iter().rev() {
            chain.prepend(header)?;
        }
        self.below.start(number, self.options.below);
        // The floor takes the checkpoint's promise from here: later the header may not be in memory any more.
        self.floor.follow(chain.view(), &self.network);
        self.chain = Some(chain);
        Ok(())
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
