//! Turns missing facts into fetches. Facts that one request gets, such as an account and its slots, form one fetch.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, U256};

use super::{
    fact_store::KnownFacts,
    pinned_head::PinnedHead,
    upstream_fetch::{FetchTarget, UpstreamFetch},
};
use crate::{
    state::{Fact, Facts, StateKey},
    types::BlockRef,
};

/// Most storage slots in one proof request. Larger sets are split, because upstreams limit the slots of a request.
pub const MAX_SLOTS_PER_PROOF: usize = 256;

/// The fetches for all of `missing`. Facts about blocks off the pinned chain are requested by block hash first.
pub fn fetches(missing: &Facts, known: &KnownFacts<'_>, pinned: &PinnedHead) -> Vec<UpstreamFetch> {
    let is_off_chain =
        |block: &BlockRef| pinned.chain().is_some_and(|chain| !chain.is_canonical(block.number, &block.hash));
    let mut proofs = Proofs::new();
    let mut targets = Vec::new();
    for fact in missing {
        match fact {
            Fact::State(block, StateKey::Account(address)) => {
                add_to_proofs(&mut proofs, *block, *address, None);
            }
            Fact::State(block, StateKey::Storage(address, slot)) => {
                add_to_proofs(&mut proofs, *block, *address, Some(*slot));
            }
            other => targets.push(FetchTarget::One(*other)),
        }
    }
    for ((block, address), slots) in proofs {
        if slots.is_empty() {
            targets.push(FetchTarget::Proof { block, address, slots });
            continue;
        }
        for slots in slots.chunks(MAX_SLOTS_PER_PROOF) {
            targets.push(FetchTarget::Proof { block, address, slots: slots.to_vec() });
        }
    }
    targets
        .into_iter()
        .map(|target| {
            let transactions = transactions(&target, known);
            let is_in_index =
                pinned.config.bodies_by_hash && matches!(target, FetchTarget::One(Fact::Body(_)));
            let by_hash = is_in_index || target.block().is_some_and(is_off_chain);
            UpstreamFetch::ordered(target, &transactions, by_hash)
        })
        .collect()
}

/// Accounts to prove, each with its slots, ordered by block and address.
type Proofs = Vec<((BlockRef, Address), Vec<U256>)>;

/// Adds an account, and one of its slots if one is given, to the proofs to request.
fn add_to_proofs(proofs: &mut Proofs, block: BlockRef, address: Address, slot: Option<U256>) {
    let found = proofs.binary_search_by_key(&(block, address), |(key, _)| *key);
    let index = found.unwrap_or_else(|index| {
        proofs.insert(index, ((block, address), Vec::new()));
        index
    });
    if let Some((_, slots)) = proofs.get_mut(index) {
        slots.extend(slot);
    }
}

/// The hashes of the transactions whose receipts are wanted; empty for other facts, and if the body is not known.
pub fn transactions(target: &FetchTarget, known: &KnownFacts<'_>) -> Vec<B256> {
    match target {
        FetchTarget::One(Fact::Receipts(block)) => {
            known.body(&block.hash).map(|body| body.hashes().to_vec()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The facts that a fetch gets.
pub fn facts_of(target: &FetchTarget) -> Vec<Fact> {
    match target {
        FetchTarget::One(fact) => alloc::vec![*fact],
        FetchTarget::Proof { block, address, slots } => core::iter::once(StateKey::Account(*address))
            .chain(slots.iter().map(|slot| StateKey::Storage(*address, *slot)))
            .map(|key| Fact::State(*block, key))
            .collect(),
        // No fact depends on a witness: data that the witness lacks is requested by itself.
        FetchTarget::Witness { .. } => Vec::new(),
    }
}
