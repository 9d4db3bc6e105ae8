//! `updateCollections`: members of the federation trigger the Bridge's pending work, such as the next batch of peg-outs.
//!
//! The method is simulated only while the federation has no coins to spend, because coins come from peg-ins, which
//! are not simulated.

use alloy_primitives::U256;

use super::super::NativeFailure;
use super::super::federation::{Federation, number, number_cell};
use super::super::session::{Bridge, BridgeResult};
use super::events::COMMIT_FAILED;
use crate::consensus::Rule;
use crate::evm::precompiles::abi::Arg;

/// Number of peg-out requests that one call tries, before RSKIP-271.
const TRIES: usize = 30;
/// The empty RLP list.
const EMPTY: u8 = 0xc0;
/// Names of the cells with the Bitcoin transactions by which a proposed federation is validated (RSKIP-419).
const VALIDATION: [&str; 4] =
    ["svpFundTxHashUnsigned", "svpFundTxSigned", "svpSpendTxHashUnsigned", "svpSpendTxWaitingForSignatures"];

/// `updateCollections`
pub(in super::super) fn run(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    if !bridge.is_federator() {
        return Err(NativeFailure::Failed);
    }
    bridge.log_update();
    if bridge.retiring_federation().is_some() {
        return Err(NativeFailure::NotSimulated("updateCollections with a retiring federation"));
    }
    bridge.serve_queue()?;
    bridge.confirm()?;
    bridge.update_heights();
    bridge.validate()?;
    Ok(None)
}

impl Bridge<'_> {
    /// Writes a cell with a list back, as the reference node does with each list that it has read; a cell that is not set becomes an
    /// empty list. Returns whether the list has items.
    pub(super) fn keep_list(&mut self, name: &str) -> bool {
        let cell = self.named(name);
        let empty = matches!(cell.as_ref(), [] | [EMPTY]);
        self.save_named(name, if empty { alloc::vec![EMPTY] } else { cell.to_vec() });
        !empty
    }

    /// Does the part of the work on the peg-out queue that needs no coins: no batch is made, and if the queue is empty when a batch is
    /// due, the next one is due an interval later.
    fn serve_queue(&mut self) -> Result<(), NativeFailure> {
        let mut queue = self.queue()?;
        let coins = self.has_coins();
        self.keep_confirmations()?;
        if coins && !queue.is_empty() {
            return Err(NativeFailure::NotSimulated("updateCollections with peg-outs to make"));
        }
        if !self.has(Rule::Rskip271) {
            // Requests that fail are moved behind those that were not tried.
            let tried = TRIES.min(queue.len());
            queue.rotate_left(tried);
            self.save_queue(&queue);
            return Ok(());
        }
        let height = self.call.block.number;
        let due = height >= self.next_pegout();
        if due && queue.is_empty() {
            let next = height.saturating_add(self.constants.pegout_interval);
            self.save_named("nextPegoutHeight", number_cell(next));
        }
        Ok(())
    }

    /// Writes the lists of peg-outs that wait for confirmations back. The lists are empty, because no peg-outs are made.
    fn keep_confirmations(&mut self) -> Result<(), NativeFailure> {
        let mut waiting = self.keep_list("releaseTransactionSet");
        if self.has(Rule::Rskip146) {
            waiting |= self.keep_list("releaseTransactionSetWithTxHash");
        }
        match waiting {
            true => Err(NativeFailure::NotSimulated("updateCollections with peg-outs to confirm")),
            false => Ok(()),
        }
    }

    /// Writes the list of peg-outs that wait for signatures back. No peg-out joins it, because none waits for confirmations.
    fn confirm(&mut self) -> Result<(), NativeFailure> {
        self.keep_list("rskTxsWaitingFS");
        Ok(())
    }

    /// Makes the next federation's creation height the active one's once that federation is old enough
    /// (RSKIP-186).
    fn update_heights(&mut self) {
        const NEXT: &str = "nextFedCreationBlockHeight";
        if !self.has(Rule::Rskip186) {
            return;
        }
        let age = self.constants.activation_age(self.call.rules);
        let Some(next) = number(&self.named(NEXT)) else { return };
        if self.call.block.number >= next.saturating_add(age) {
            self.save_named("activeFedCreationBlockHeight", number_cell(next));
            self.save_named(NEXT, alloc::vec![]);
        }
    }

    /// Drops the proposed federation at the end of the period in which it must prove that it can spend. Without coins it cannot prove
    /// this earlier.
    fn validate(&mut self) -> Result<(), NativeFailure> {
        let Some(proposed) = self.proposed_federation() else { return Ok(()) };
        let end = proposed.block.saturating_add(self.constants.validation_period);
        if self.call.block.number >= end {
            return self.drop_proposed(&proposed);
        }
        let started = VALIDATION.iter().any(|name| !self.named(name).is_empty());
        if started || self.has_coins() {
            return Err(NativeFailure::NotSimulated("updateCollections with a validation"));
        }
        Ok(())
    }

    /// Removes the proposed federation and its validation, and writes the event.
    fn drop_proposed(&mut self, proposed: &Federation) -> Result<(), NativeFailure> {
        let script = proposed.redeem_script(self.constants, self.call.rules);
        let height = U256::from(self.call.block.number);
        self.event(COMMIT_FAILED, None, &[None, Some(height)], &[&script]);
        for name in ["proposedFederation", "proposedFederationFormatVersion"].iter().chain(&VALIDATION) {
            self.save_named(name, alloc::vec![]);
        }
        Ok(())
    }
}
