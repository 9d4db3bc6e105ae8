//! The gate that every header of a light client passes.
//!
//! Handlers get headers by number, by hash, as the head or as an ancestor. The view of a light client passes all of them through
//! this file: the chain is available only while it is synchronized, has enough work and a recent head, and a block only if it
//! is as deep as the host requires.

use super::{BlockHeader, Refusal, Stop, ViewResult};
use crate::{
    consensus::{ChainView, VerifiedHeader},
    light::{PinnedHead, bitcoin::WeakReason},
};

/// The pinned chain, if answers may be given from it.
///
/// # Errors
/// [`Refusal::Syncing`] or [`Refusal::SyncFailed`] before the head is reached, [`Refusal::LowWork`] or
/// [`Refusal::LowDatedWork`] if the chain shows too little work, [`Refusal::Bitcoin`] if the host asks for Bitcoin's support and
/// the chain has none, [`Refusal::Stale`] if its head is older than the host accepts.
pub fn usable_chain(pinned: &PinnedHead) -> Result<&ChainView, Refusal> {
    let Some(chain) = pinned.chain().filter(|_| pinned.is_synced()) else {
        return Err(pinned.stopped().map_or_else(|| syncing(pinned), Refusal::SyncFailed));
    };
    if let Some(low) = pinned.low_work() {
        return Err(Refusal::LowWork(*low));
    }
    if let Some(low) = pinned.low_dated_work() {
        return Err(Refusal::LowDatedWork(WeakReason::LowWork(low)));
    }
    if let Some(verdict) = pinned.bitcoin_refusal() {
        return Err(Refusal::Bitcoin(verdict));
    }
    match pinned.too_old() {
        Some(age) => {
            let (number, most) = (chain.head().number, pinned.config.max_age);
            Err(Refusal::Stale { number, age, most, upstreams: pinned.names_in_errors() })
        }
        None => Ok(chain),
    }
}

/// Number of the newest block that answers may be about: it is as deep as the host requires, and enough Bitcoin blocks commit to
/// it or to a block above it (`PinnedHead::min_depth` is the depth that both demand). `None` if there is none.
pub fn newest_allowed(pinned: &PinnedHead) -> Option<u64> {
    usable_chain(pinned).ok()?.head().number.checked_sub(pinned.min_depth())
}

/// The refusal of a chain that is still synchronizing.
pub(super) fn syncing(pinned: &PinnedHead) -> Refusal {
    let head = pinned.chain().map_or(0, |chain| chain.head().number);
    Refusal::Syncing { verified: head.saturating_sub(pinned.start), upstreams: pinned.names_in_errors() }
}

/// A header of the pinned chain, if it is as deep as the host requires and has the required Bitcoin blocks. Off the heaviest chain
/// the depth is 0, whatever the header's number.
///
/// # Errors
/// [`Refusal::TooYoung`], [`Refusal::FewBitcoinBlocks`].
pub(super) fn admit(
    pinned: &PinnedHead,
    chain: &ChainView,
    header: &VerifiedHeader,
) -> ViewResult<BlockHeader> {
    // The host's depth alone; the Bitcoin blocks are counted below, with an error of their own.
    let (number, wanted) = (header.number, pinned.config.min_depth);
    let canonical = chain.depth(number, &header.hash());
    let depth = canonical.unwrap_or(0);
    if depth < wanted {
        return Err(Stop::Refused(Refusal::TooYoung { number, depth, wanted }));
    }
    // Bitcoin blocks count for blocks of the heaviest chain only.
    let least = pinned.config.min_bitcoin.unwrap_or(0);
    let newest = pinned.newest_supported();
    if least > 0 && (canonical.is_none() || newest.is_none_or(|newest| number > newest)) {
        return Err(Stop::Refused(Refusal::FewBitcoinBlocks { number, least, newest }));
    }
    Ok(header.into())
}
