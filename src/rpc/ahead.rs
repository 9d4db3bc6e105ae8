//! What is asked for before a run misses it: the witness of a call, or what earlier calls to the same contract read.
//!
//! All of it only saves rounds. An answer comes from a run that missed nothing, whoever said what it would read.

use alloc::{format, vec::Vec};

use alloy_primitives::Address;

use super::{envelope::Call, message::CallObject};
use crate::{
    light::{BlockRef, Errand, Fact, Facts, Known, Pin, Task, Wanted},
    state::StateKey,
};

/// Methods that run a message on the state after a block.
const RUNS: [&str; 2] = ["eth_call", "eth_estimateGas"];

/// Longest message that is sent to an upstream for its witness, in bytes of JSON.
const MAX_MESSAGE: usize = 256 * 1024;

/// A call that lacks state.
pub(super) struct Ahead<'a> {
    call: &'a Call,
    facts: &'a Facts,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(call: &'a Call, facts: &'a Facts) -> Self {
        Self { call, facts }
    }

    /// The block whose state is lacking, where this call runs a message.
    fn block(&self) -> Option<BlockRef> {
        let state = |fact: &Fact| match fact {
            Fact::State(block, _) => Some(*block),
            _ => None,
        };
        self.facts.iter().find_map(state).filter(|_| RUNS.contains(&self.call.method.as_str()))
    }

    fn contract(&self) -> Option<Address> {
        self.block()?;
        let message: CallObject = serde_json::from_str(self.call.params.first()?.get()).ok()?;
        message.message().ok()?.to
    }

    /// Asks for the witness of the call where somebody may give it; whether that is enough for this round.
    pub(super) fn witness(&self, pin: &Pin, tasks: &mut Vec<Errand>) -> bool {
        let (Some(block), Some((upstream, sure))) = (self.block(), pin.witness_from()) else { return false };
        let message = self.call.params.first().map_or("{}", |message| message.get());
        let overrides = self.call.params.get(2).map_or("null", |overrides| overrides.get());
        if message.len().saturating_add(overrides.len()) > MAX_MESSAGE {
            return false;
        }
        let hash = block.hash;
        let params = match overrides {
            "null" => format!(r#"[{message},{{"blockHash":"{hash}"}}]"#),
            _ => format!(r#"[{message},{{"blockHash":"{hash}"}},{overrides}]"#),
        };
        let wanted = Wanted::Witness { block, method: "rootlight_getWitness", params };
        tasks.push(Errand::new(Task::new(wanted, &[]), &[upstream]));
        sure
    }

    /// What earlier calls to the contract read, in the state of this block.
    pub(super) fn touched_before(&self, known: &Known<'_>) -> Facts {
        let (Some(block), Some(contract)) = (self.block(), self.contract()) else { return Facts::new() };
        known.touched(contract).map(|key| Fact::State(block, key)).collect()
    }

    /// Notes what a proof shows of it, for later calls; codes are kept by their hash anyway.
    pub(super) fn touch(&self, touched: &mut Vec<(Address, StateKey)>) {
        let Some(contract) = self.contract() else { return };
        touched.extend(self.facts.iter().filter_map(|fact| match fact {
            Fact::State(_, key @ (StateKey::Account(_) | StateKey::Storage(..))) => Some((contract, *key)),
            _ => None,
        }));
    }
}
