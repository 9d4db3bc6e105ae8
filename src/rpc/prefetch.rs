//! Prefetch: requests the witness of a call, or the state that earlier calls to the same contract read, before a run
//! misses it.
//!
//! A prefetch only saves rounds. An answer always comes from a run that found every fact it read, so that a wrong
//! prefetch cannot make it wrong.

use alloc::{format, vec::Vec};

use alloy_primitives::{Address, B256, keccak256};

#[cfg(feature = "local")]
use super::call_witness::as_simulation;
use super::{call_object::message, method::Runs, request::Request};
use crate::{
    light::{Fetch, FetchTarget, KnownFacts, PinnedHead, TouchedKey, UpstreamFetch},
    state::{Fact, Facts, StateKey, StateReader as _, TrieState},
    types::BlockRef,
};

/// Longest message, in bytes of JSON, that is sent to an upstream to request its witness.
const MAX_MESSAGE: usize = 256 * 1024;

/// The prefetched facts of a request. A prefetch that fails is not repeated.
#[derive(Debug, Default)]
pub(super) struct Prefetched {
    /// Blocks for whose state a witness was requested.
    pub(super) witnesses: Vec<B256>,
    /// Whether the state that earlier calls read was requested.
    pub(super) touched: bool,
}

/// The block and contract of a call whose state is missing.
#[derive(Clone, Copy)]
struct CallState {
    block: BlockRef,
    contract: Address,
    /// Hash of the call data.
    data: B256,
}

/// A request whose run misses state.
pub(super) struct Prefetch<'a> {
    request: &'a Request,
    facts: &'a Facts,
    run: Option<CallState>,
}

impl<'a> Prefetch<'a> {
    pub(super) fn new(request: &'a Request, facts: &'a Facts) -> Self {
        Self { request, facts, run: run(request, facts) }
    }

    /// Requests the witness of the call from an upstream that offers them. Returns whether the witnesses cover
    /// everything that is missing, so that nothing else needs to be fetched in this round. Each state is asked about
    /// once.
    pub(super) fn witness(
        &self,
        pinned: &PinnedHead,
        asked: &mut Vec<B256>,
        fetches: &mut Vec<Fetch>,
    ) -> bool {
        let Some((upstream, sure)) = pinned.witness_from() else { return false };
        let mut covered = true;
        let mut last = None;
        for fact in self.facts {
            let block = match fact {
                Fact::State(block, _) if last == Some(*block) => continue,
                Fact::State(block, _) => *block,
                _ => continue,
            };
            last = Some(block);
            let target = self.target(&block, pinned).filter(|_| !asked.contains(&block.hash));
            asked.push(block.hash);
            covered &= target.is_some();
            fetches.extend(target.map(|target| Fetch::new(UpstreamFetch::new(target), &[upstream])));
        }
        sure && covered && last.is_some()
    }

    fn target(&self, block: &BlockRef, pinned: &PinnedHead) -> Option<FetchTarget> {
        match self.request.row.runs {
            Runs::Call | Runs::WatchedCall => self.call(block),
            Runs::Calls => self.calls(block),
            #[cfg(feature = "local")]
            Runs::Block => self.block(block, pinned),
            _ => {
                let _ = pinned;
                None
            }
        }
    }

    /// A block runs on the state of its parent.
    #[cfg(feature = "local")]
    fn block(&self, block: &BlockRef, pinned: &PinnedHead) -> Option<FetchTarget> {
        let child = pinned.chain()?.by_number(block.number.checked_add(1)?)?;
        let (hash, steps) = (child.hash(), self.request.row.namespace() == "debug");
        let params = format!(r#"["{hash}",null,{steps}]"#);
        let target = FetchTarget::Witness { block: *block, method: "rootlight_getBlockWitness", params };
        (child.parent_hash == block.hash).then_some(target)
    }

    /// Several messages read what a simulation of them reads.
    #[cfg(feature = "local")]
    fn calls(&self, block: &BlockRef) -> Option<FetchTarget> {
        let calls = as_simulation(self.request.row, self.request.values())?;
        let params = format!(r#"[{calls},{{"blockHash":"{}"}}]"#, block.hash);
        let target = FetchTarget::Witness { block: *block, method: "rootlight_getWitness", params };
        (calls.len() <= MAX_MESSAGE).then_some(target)
    }

    /// Without executed chains, `eth_simulateV1` is the only method that runs several messages.
    #[cfg(not(feature = "local"))]
    fn calls(&self, block: &BlockRef) -> Option<FetchTarget> {
        self.call(block)
    }

    fn call(&self, block: &BlockRef) -> Option<FetchTarget> {
        let mut values = self.request.values().iter().map(|value| value.get());
        let mut params = format!(r#"[{},{{"blockHash":"{}"}}"#, values.next().unwrap_or("{}"), block.hash);
        // The overrides follow the block.
        for overrides in values.skip(1) {
            params.extend([",", overrides]);
        }
        params.push(']');
        let is_short = params.len() <= MAX_MESSAGE;
        is_short.then_some(FetchTarget::Witness { block: *block, method: "rootlight_getWitness", params })
    }

    /// Adds state that earlier calls to the contract with the same data read, and state that calls with different data
    /// had in common, except what is already proven for this block.
    pub(super) fn add_touched_before(&self, to: &mut Facts, known: &KnownFacts<'_>, pinned: &PinnedHead) {
        let Some(CallState { block, contract, data }) = self.run else { return };
        let header = pinned.chain().and_then(|chain| chain.by_number(block.number));
        let state = header
            .filter(|header| header.hash() == block.hash)
            .map(|header| TrieState::new(*known, header.state_root));
        let open = |key: &StateKey| match (&state, key) {
            (Some(state), StateKey::Account(address)) => state.account(address).is_err(),
            (Some(state), StateKey::Storage(address, slot)) => state.storage(address, slot).is_err(),
            _ => true,
        };
        to.extend(known.touched(contract, data).filter(open).map(|key| Fact::State(block, key)));
    }

    /// Records which accounts and storage cells the call reads, for later calls. Code needs no record: it is cached
    /// by its hash.
    pub(super) fn touch(&self, touched: &mut Vec<TouchedKey>) {
        let Some(CallState { contract, data, .. }) = self.run else { return };
        touched.extend(self.facts.iter().filter_map(|fact| match fact {
            Fact::State(_, key @ (StateKey::Account(_) | StateKey::Storage(..))) => {
                Some(TouchedKey { contract, key: *key, data: Some(data) })
            }
            _ => None,
        }));
    }
}

fn run(request: &Request, facts: &Facts) -> Option<CallState> {
    let state = |fact: &Fact| match fact {
        Fact::State(block, _) => Some(*block),
        _ => None,
    };
    let block = facts.iter().find_map(state).filter(|_| request.row.runs.is_call())?;
    let message = message(request.params()).ok()?;
    Some(CallState { block, contract: message.to?, data: keccak256(&message.data) })
}
