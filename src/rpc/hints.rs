//! Locations of transactions, which upstreams report without proof, and the upstreams that are asked when a reported location
//! turns out wrong.

use alloc::vec::Vec;

use alloy_primitives::B256;

use crate::{
    engine::Refusal,
    light::{Cause, Fetch, FetchTarget, Observation, PinnedHead, UpstreamFetch, UpstreamRequest},
    state::Fact,
};

/// The reported locations of transactions, by transaction hash.
pub(super) type LocationHints = Vec<(B256, LocationHint)>;

/// The upstream that reported a transaction's location, and those to ask next.
#[derive(Debug, Default)]
pub(super) struct LocationHint {
    /// The upstream and the request whose response named the location; taken out when the location turns out wrong.
    pub(super) asked: Option<(usize, UpstreamRequest)>,
    /// The upstreams that have not been asked for the location.
    pub(super) others: Vec<usize>,
    /// Whether an upstream named a block that is too old to be proven here.
    pub(super) old: bool,
}

/// The hint about a transaction; inserts `new()` if there is none.
pub(super) fn hint(
    hints: &mut LocationHints,
    transaction: B256,
    new: impl FnOnce() -> LocationHint,
) -> Option<&mut LocationHint> {
    if hints.iter().all(|(hash, _)| *hash != transaction) {
        hints.push((transaction, new()));
    }
    hints.iter_mut().find(|(hash, _)| *hash == transaction).map(|(_, hint)| hint)
}

/// The transaction whose reported location turned out wrong, if that is the reason of the refusal.
fn misplaced_transaction(refusal: &Refusal) -> Option<B256> {
    match refusal {
        Refusal::Misplaced { transaction, .. }
        | Refusal::TransactionTooOld { transaction, .. }
        | Refusal::Abandoned { transaction, .. } => Some(*transaction),
        _ => None,
    }
}

/// Whether a fetch in flight looks for the transaction that the refusal is about. Another request of the same message has
/// started the fetch then, and both requests wait for its result.
pub(super) fn is_about(fetch: &Fetch, refusal: &Refusal) -> bool {
    matches!(fetch.current.target, FetchTarget::One(Fact::Location(hash)) if misplaced_transaction(refusal) == Some(hash))
}

/// Handles a refusal because of a wrong transaction location: adds an observation of the upstream that reported a wrong one,
/// and returns a fetch that asks the other upstreams; `None` if none is left, or if the refusal has another reason.
pub(super) fn ask_others(
    refusal: &Refusal,
    hints: &mut LocationHints,
    pinned: &PinnedHead,
    observations: &mut Vec<Observation>,
) -> Option<Fetch> {
    let transaction = misplaced_transaction(refusal)?;
    // Without a hint, the location comes from the cache, and all upstreams are asked. No upstream is asked twice: if
    // the others do not have the transaction either, the request is refused.
    let others = || LocationHint { others: pinned.roster().to_vec(), ..LocationHint::default() };
    let hint = hint(hints, transaction, others)?;
    hint.old |= matches!(refusal, Refusal::TransactionTooOld { .. });
    let (asked, others) = (hint.asked.take(), core::mem::take(&mut hint.others));
    // Only `Misplaced` proves that the upstream was wrong. A block that is too old, or that left the chain, may be a true answer.
    if let (Some((upstream, request)), Refusal::Misplaced { .. }) = (asked, refusal) {
        let outcome = Err(Cause::Refuted(alloc::format!("{refusal}")));
        observations.push(Observation { upstream, request, outcome });
    }
    if others.is_empty() {
        return None;
    }
    let fetch = UpstreamFetch::new(FetchTarget::One(Fact::Location(transaction)));
    Some(Fetch::new(fetch, &others))
}
