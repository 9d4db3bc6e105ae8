//! The pages of bytes in which hosts store headers between two runs. `restore.rs` writes and reads them back, `store.rs` proves what
//! was read.
//!
//! A page has [`PAGE_HEADERS`] consecutive block numbers; page 0 starts [`FORK_WINDOW`] blocks below the checkpoint, and unknown
//! headers are left out. A page is `keccak256(list) | list`, with the list that `rootlight_getHeaders` packs
//! ([`header_batch`](crate::light)). A page is replaced as a whole, so hosts only store numbered values. In a start by window,
//! whose base is another one in each run, page 0 starts at number 0, and only the newest pages are stored ([`WINDOW_PAGES`]).
//!
//! Stored headers are not trusted when they are read back, and hash links cost nothing: a forger can link any headers to the
//! checkpoint. Answers therefore depend on the work at the top. At the start the newest pages are read. Their headers must link by
//! hash and follow all header rules, the newest [`REPROVEN`] must show their proofs of work, and the work floor judges them
//! by the work that the checkpoint promises. Everything else is proven in the background, from the top down
//! ([`HeaderSync::prove_restored`](super::HeaderSync::prove_restored)): the rest of these headers, then stretch by stretch those
//! below, until the checkpoint is reached. The work of a header does not count until its proof is checked. If
//! any check fails, all stored headers are dropped.

use alloc::{string::String, vec::Vec};

use alloy_primitives::keccak256;
use thiserror::Error;

use super::options::FORK_WINDOW;
use crate::{
    consensus::{ChainError, ChainView, Checkpoint, Network},
    light::header_batch::{Batch, BatchError, MAX_BATCH_BYTES, decode_list, encode_list},
};

/// Block numbers in one page: some 70 kB, which are written again with each new block.
pub const PAGE_HEADERS: u64 = 64;

/// Number of newest headers whose work is proven again at the start: a day of blocks. A day is the longest stretch that
/// the work floor judges, and 24 times the depth called final; proving it takes some hundredths of a second.
pub const REPROVEN: usize = 2_880;

/// Fewest new headers that are written while synchronization has not reached the head, so that a page is not written many times.
pub(super) const WORTH_WRITING: u64 = 512;

/// Bytes of a page's hash.
const HASH_BYTES: usize = 32;
/// Most bytes of a page. A host need not read longer ones, which are [`HeaderStoreFault::Damaged`].
pub const MAX_PAGE_BYTES: usize = HASH_BYTES + MAX_BATCH_BYTES;

/// A page to store under its number, in place of the page stored there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderPage {
    /// The number of the page, from 0. The host deletes stored pages above the last one of an export.
    pub index: u64,
    /// The bytes to store.
    pub bytes: Vec<u8>,
}

/// Why stored headers cannot be used: they are damaged, or belong to another chain.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum HeaderStoreFault {
    /// The host cannot read the page.
    #[error("page {index}: {reason}")]
    Unreadable { index: u64, reason: String },
    /// The bytes are not those that were written, or are more than any page has.
    #[error("page {index} is damaged")]
    Damaged { index: u64 },
    /// The bytes do not decode as headers.
    #[error("page {index}: {error}")]
    Decode { index: u64, error: BatchError },
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

/// Reads the page of a number; `None` if there is none.
pub type ReadPage<'a> = &'a mut dyn FnMut(u64) -> Result<Option<Vec<u8>>, HeaderStoreFault>;

/// The first number of page 0, if the chain starts at a checkpoint.
pub(super) fn first_stored(checkpoint: &Checkpoint) -> u64 {
    checkpoint.number.saturating_sub(FORK_WINDOW)
}

/// Most pages of a window that are stored, and read at the start: 7,680 headers, more than two and a half days. Together with new
/// headers on top they fit within the 8,192 headers kept in memory.
pub const WINDOW_PAGES: u64 = 120;

/// The headers of a page, with their uncles.
pub(super) fn read_page(index: u64, bytes: &[u8], network: &Network) -> Result<Batch, HeaderStoreFault> {
    let (hash, list) = bytes.split_at_checked(HASH_BYTES).ok_or(HeaderStoreFault::Damaged { index })?;
    if bytes.len() > MAX_PAGE_BYTES || keccak256(list) != hash {
        return Err(HeaderStoreFault::Damaged { index });
    }
    let decoded = decode_list(list, PAGE_HEADERS as usize, network);
    decoded.map_err(|error| HeaderStoreFault::Decode { index, error })
}

/// A page of a chain whose page 0 starts at number `first`.
pub(super) fn page(view: &ChainView, first: u64, index: u64) -> HeaderPage {
    let start = first.saturating_add(index.saturating_mul(PAGE_HEADERS));
    let headers = (start..start.saturating_add(PAGE_HEADERS)).filter_map(|number| view.by_number(number));
    let list = encode_list(headers.map(|header| {
        let uncles = view.uncles(&header.hash()).map_or(&[][..], |uncles| uncles.headers());
        (header.header(), Some(uncles))
    }))
    .into_list();
    let mut bytes = keccak256(&list).to_vec();
    bytes.extend(list);
    HeaderPage { index, bytes }
}
