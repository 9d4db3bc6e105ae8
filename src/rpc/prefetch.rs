//! Prefetch: when the first run of a call misses state, a session requests the witness of the call, or the state that earlier
//! calls to the same contract read, besides what the run has missed.
//!
//! A prefetch only saves rounds. An answer always comes from a run that found every fact it read, so that a wrong
//! prefetch cannot make an answer wrong.

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

/// Longest call, in bytes of JSON, that is sent to an upstream to request its witness. The limit bounds the bytes that one call
/// makes this client send.
const MAX_MESSAGE: usize = 256 * 1024;

/// The prefetches that were made for a request. None is repeated, also if it failed.
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
    /// The missing facts.
    facts: &'a Facts,
    /// The block and contract, if the request runs a single call of a contract.
    call_state: Option<CallState>,
}

impl<'a> Prefetch<'a> {
    /// The prefetch for a request whose run has missed these facts.
    pub(super) fn new(request: &'a Request, facts: &'a Facts) -> Self {
        Self { request, facts, call_state: call_state(request, facts) }
    }

    /// Adds fetches of the witness of the call, for each block whose state is missing, from an upstream that may give witnesses.
    /// Returns whether the witnesses cover everything that is missing, so that nothing else needs to be fetched in this
    /// round. `requested` are the blocks for which a witness was requested before; none is requested twice.
    pub(super) fn witness(
        &self,
        pinned: &PinnedHead,
        requested: &mut Vec<B256>,
        fetches: &mut Vec<Fetch>,
    ) -> bool {
        // `gives_witnesses`: the upstream has given some before. Otherwise the missing facts are fetched too.
        let Some((upstream, gives_witnesses)) = pinned.witness_from() else { return false };
        let mut covered = true;
        // Facts are sorted, so that those of one block follow each other.
        let mut last = None;
        for fact in self.facts {
            let block = match fact {
                Fact::State(block, _) if last == Some(*block) => continue,
                Fact::State(block, _) => *block,
                _ => continue,
            };
            last = Some(block);
            let target = self.target(&block, pinned).filter(|_| !requested.contains(&block.hash));
            requested.push(block.hash);
            covered &= target.is_some();
            fetches.extend(target.map(|target| Fetch::new(UpstreamFetch::new(target), &[upstream])));
        }
        gives_witnesses && covered && last.is_some()
    }

    /// The witness of the request on the state after a block; `None` if its run has no witness.
    fn target(&self, block: &BlockRef, pinned: &PinnedHead) -> Option<FetchTarget> {
        match self.request.row.runs {
            Runs::Call | Runs::WatchedCall => self.call(block),
            Runs::Calls => self.calls(block),
            #[cfg(feature = "local")]
            Runs::Block => self.block(block, pinned),
            _ => {
                // Without the feature `local`, nothing else uses the parameter.
                let _ = pinned;
                None
            }
        }
    }

    /// The witness of a block that is executed again. `block` is its parent, on whose state it runs.
    #[cfg(feature = "local")]
    fn block(&self, block: &BlockRef, pinned: &PinnedHead) -> Option<FetchTarget> {
        let child = pinned.chain()?.by_number(block.number.checked_add(1)?)?;
        let (hash, steps) = (child.hash(), self.request.row.namespace() == "debug");
        // `null`: all transactions of the block. `steps`: also the whole storage of the contracts, which traces of instructions list.
        let params = format!(r#"["{hash}",null,{steps}]"#);
        let target = FetchTarget::Witness { block: *block, method: "rootlight_getBlockWitness", params };
        (child.parent_hash == block.hash).then_some(target)
    }

    /// The witness of several calls: that of a simulation of the same calls, which reads the same state.
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

    /// The witness of a single call, or of the simulation in the first parameter.
    fn call(&self, block: &BlockRef) -> Option<FetchTarget> {
        let mut values = self.request.values().iter().map(|value| value.get());
        let mut params = format!(r#"[{},{{"blockHash":"{}"}}"#, values.next().unwrap_or("{}"), block.hash);
        // The second value, the block, is replaced by its hash. The overrides follow it.
        for overrides in values.skip(1) {
            params.extend([",", overrides]);
        }
        params.push(']');
        let is_short = params.len() <= MAX_MESSAGE;
        is_short.then_some(FetchTarget::Witness { block: *block, method: "rootlight_getWitness", params })
    }

    /// Adds to `facts` the state that earlier calls to the contract with the same data read, and the state that calls with
    /// different data had in common, except state that is already proven for this block.
    pub(super) fn add_touched_before(&self, facts: &mut Facts, known: &KnownFacts<'_>, pinned: &PinnedHead) {
        let Some(CallState { block, contract, data }) = self.call_state else { return };
        let header = pinned.chain().and_then(|chain| chain.by_number(block.number));
        let state = header
            .filter(|header| header.hash() == block.hash)
            .map(|header| TrieState::new(*known, header.state_root));
        let is_unproven = |key: &StateKey| match (&state, key) {
            (Some(state), StateKey::Account(address)) => state.account(address).is_err(),
            (Some(state), StateKey::Storage(address, slot)) => state.storage(address, slot).is_err(),
            _ => true,
        };
        facts.extend(known.touched(contract, data).filter(is_unproven).map(|key| Fact::State(block, key)));
    }

    /// Records which accounts and storage cells the call reads, for later calls. Code needs no record: it is cached
    /// by its hash.
    pub(super) fn touch(&self, touched: &mut Vec<TouchedKey>) {
        let Some(CallState { contract, data, .. }) = self.call_state else { return };
        touched.extend(self.facts.iter().filter_map(|fact| match fact {
            Fact::State(_, key @ (StateKey::Account(_) | StateKey::Storage(..))) => {
                Some(TouchedKey { contract, key: *key, data: Some(data) })
            }
            _ => None,
        }));
    }
}

/// The block and contract of a request that runs a single call of a contract and misses state.
fn call_state(request: &Request, facts: &Facts) -> Option<CallState> {
    let state = |fact: &Fact| match fact {
        Fact::State(block, _) => Some(*block),
        _ => None,
    };
    let block = facts.iter().find_map(state).filter(|_| request.row.runs.is_call())?;
    let message = message(request.params()).ok()?;
    Some(CallState { block, contract: message.to?, data: keccak256(&message.data) })
}
