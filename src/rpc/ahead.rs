//! What is asked for before a run misses it: the witness of a call, or what earlier calls to the same contract read.
//!
//! All of it only saves rounds. An answer comes from a run that missed nothing, whoever said what it would read.

use alloc::{format, vec::Vec};

use alloy_primitives::{Address, B256, keccak256};

use super::{message::message, request::Request};
use crate::{
    light::{BlockRef, Errand, Fact, Facts, Known, Pin, Task, Touch, Wanted, facts},
    state::{StateKey, StateReader as _, TrieState},
};

/// Methods that run a message on the state after a block.
const RUNS: [&str; 2] = ["eth_call", "eth_estimateGas"];

/// Longest message that is sent to an upstream for its witness, in bytes of JSON.
const MAX_MESSAGE: usize = 256 * 1024;

/// Where a call runs a message on state that is lacking.
#[derive(Clone, Copy)]
struct Run {
    block: BlockRef,
    contract: Address,
    /// Hash of the call data.
    data: B256,
}

/// A call that lacks state.
pub(super) struct Ahead<'a> {
    call: &'a Request,
    facts: &'a Facts,
    run: Option<Run>,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(call: &'a Request, facts: &'a Facts) -> Self {
        Self { call, facts, run: run(call, facts) }
    }

    /// Asks for the witnesses of the call where somebody may give them; whether that is enough for this round. A state
    /// is asked about once.
    pub(super) fn witness(&self, pin: &Pin, asked: &mut Vec<B256>, tasks: &mut Vec<Errand>) -> bool {
        let Some((upstream, sure)) = pin.witness_from() else { return false };
        let mut covered = true;
        let mut last = None;
        for fact in self.facts {
            let block = match fact {
                Fact::State(block, _) if last == Some(*block) => continue,
                Fact::State(block, _) => *block,
                _ => continue,
            };
            last = Some(block);
            let wanted = self.wanted(&block, pin).filter(|_| !asked.contains(&block.hash));
            asked.push(block.hash);
            covered &= wanted.is_some();
            tasks.extend(wanted.map(|wanted| Errand::new(Task::new(wanted, &[]), &[upstream])));
        }
        sure && covered && last.is_some()
    }

    fn wanted(&self, block: &BlockRef, pin: &Pin) -> Option<Wanted> {
        let method = self.call.row.name;
        #[cfg(feature = "local")]
        if method.starts_with("trace_") || method.starts_with("debug_trace") {
            // The state before a block is what it runs on.
            let child = pin.chain()?.by_number(block.number.checked_add(1)?)?;
            let (hash, steps) = (child.hash(), method.starts_with("debug_"));
            let params = format!(r#"["{hash}",null,{steps}]"#);
            let wanted = Wanted::Witness { block: *block, method: "rootlight_getBlockWitness", params };
            return (child.parent_hash == block.hash).then_some(wanted);
        }
        let _ = pin;
        if !RUNS.contains(&method) {
            return None;
        }
        let message = self.call.values().first().map_or("{}", |message| message.get());
        let overrides = self.call.values().get(2).map_or("null", |overrides| overrides.get());
        let hash = block.hash;
        let params = match overrides {
            "null" => format!(r#"[{message},{{"blockHash":"{hash}"}}]"#),
            _ => format!(r#"[{message},{{"blockHash":"{hash}"}},{overrides}]"#),
        };
        let wanted = Wanted::Witness { block: *block, method: "rootlight_getWitness", params };
        (message.len().saturating_add(overrides.len()) <= MAX_MESSAGE).then_some(wanted)
    }

    /// What earlier calls to the contract with the same data read, and what those with other data have in common with
    /// others, as far as nothing shows it yet in the state of this block.
    pub(super) fn touched_before(&self, known: &Known<'_>, pin: &Pin) -> Facts {
        let Some(Run { block, contract, data }) = self.run else { return Facts::new() };
        let header = pin.chain().and_then(|chain| chain.by_number(block.number));
        let state = header
            .filter(|header| header.hash() == block.hash)
            .map(|header| TrieState::new(*known, header.state_root));
        let open = |key: &StateKey| match (&state, key) {
            (Some(state), StateKey::Account(address)) => state.account(address).is_err(),
            (Some(state), StateKey::Storage(address, slot)) => state.storage(address, slot).is_err(),
            _ => true,
        };
        facts(known.touched(contract, data).filter(open).map(|key| Fact::State(block, key)))
    }

    /// Notes what a proof shows of it, for later calls; codes are kept by their hash anyway.
    pub(super) fn touch(&self, touched: &mut Vec<Touch>) {
        let Some(Run { contract, data, .. }) = self.run else { return };
        touched.extend(self.facts.iter().filter_map(|fact| match fact {
            Fact::State(_, key @ (StateKey::Account(_) | StateKey::Storage(..))) => {
                Some(Touch { contract, key: *key, data: Some(data) })
            }
            _ => None,
        }));
    }
}

fn run(call: &Request, facts: &Facts) -> Option<Run> {
    let state = |fact: &Fact| match fact {
        Fact::State(block, _) => Some(*block),
        _ => None,
    };
    let block = facts.iter().find_map(state).filter(|_| RUNS.contains(&call.row.name))?;
    let message = message(call.params()).ok()?;
    Some(Run { block, contract: message.to?, data: keccak256(&message.data) })
}
