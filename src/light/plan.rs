//! From what is lacking to tasks: facts that one question answers go together.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, U256};

use super::{
    fact::{BlockRef, Fact, Facts},
    pin::Pin,
    store::Known,
    task::{Task, Wanted},
};
use crate::state::StateKey;

/// The most storage slots of one proof request; larger sets are split, since upstreams limit them.
pub const MAX_SLOTS_PER_PROOF: usize = 256;

/// Tasks that fetch all of `lacking`; what is about blocks off the pinned chain is asked for by their hashes first.
pub fn tasks(lacking: &Facts, known: &Known<'_>, pin: &Pin) -> Vec<Task> {
    let aside = |block: &BlockRef| pin.chain().is_some_and(|c| !c.is_canonical(block.number, &block.hash));
    let mut proofs = Proofs::new();
    let mut wanted = Vec::new();
    for fact in lacking {
        match fact {
            Fact::State(block, StateKey::Account(address)) => {
                wants(&mut proofs, *block, *address, None);
            }
            Fact::State(block, StateKey::Storage(address, slot)) => {
                wants(&mut proofs, *block, *address, Some(*slot));
            }
            other => wanted.push(Wanted::One(*other)),
        }
    }
    for ((block, address), slots) in proofs {
        if slots.is_empty() {
            wanted.push(Wanted::Proof { block, address, slots });
            continue;
        }
        for slots in slots.chunks(MAX_SLOTS_PER_PROOF) {
            wanted.push(Wanted::Proof { block, address, slots: slots.to_vec() });
        }
    }
    wanted
        .into_iter()
        .map(|wanted| {
            let transactions = transactions(&wanted, known);
            let by_hash = wanted.block().is_some_and(aside);
            Task::ordered(wanted, &transactions, by_hash)
        })
        .collect()
}

/// Accounts to be proven with slots, in the order of blocks and addresses.
type Proofs = Vec<((BlockRef, Address), Vec<U256>)>;

/// Adds an account, and a slot of it, to the proofs wanted.
fn wants(proofs: &mut Proofs, block: BlockRef, address: Address, slot: Option<U256>) {
    let place = proofs.binary_search_by_key(&(block, address), |(key, _)| *key);
    let place = place.unwrap_or_else(|place| {
        proofs.insert(place, ((block, address), Vec::new()));
        place
    });
    if let Some((_, slots)) = proofs.get_mut(place) {
        slots.extend(slot);
    }
}

/// The hashes of the transactions that receipts are wanted of.
pub fn transactions(wanted: &Wanted, known: &Known<'_>) -> Vec<B256> {
    match wanted {
        Wanted::One(Fact::Receipts(block)) => {
            known.body(&block.hash).map(|body| body.hashes().to_vec()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The facts a task was to fetch.
pub fn facts_of(wanted: &Wanted) -> Vec<Fact> {
    match wanted {
        Wanted::One(fact) => alloc::vec![*fact],
        Wanted::Proof { block, address, slots } => core::iter::once(StateKey::Account(*address))
            .chain(slots.iter().map(|slot| StateKey::Storage(*address, *slot)))
            .map(|key| Fact::State(*block, key))
            .collect(),
        // Nothing rests on a witness: what it should have shown is asked for in other ways.
        Wanted::Witness { .. } => Vec::new(),
    }
}
