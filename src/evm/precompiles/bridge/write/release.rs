//! `releaseBtc`: requests a peg-out, which puts bitcoins of the value sent into the queue (`queue.rs`).

use alloc::vec::Vec;

use alloy_primitives::U256;

use super::super::NativeFailure;
use super::super::address;
use super::super::queue::{PegoutRequest, WEI_PER_SATOSHI, satoshi};
use super::super::session::{Bridge, BridgeResult};
use super::events::{RECEIVED, RECEIVED_OLD, REJECTED};
use crate::consensus::Rule;
use crate::evm::precompiles::abi::Arg;
use crate::evm::precompiles::bitcoin::hash160;

/// Why a request is rejected, with the codes of the event.
#[derive(Clone, Copy)]
enum Reason {
    LowAmount = 1,
    CallerContract = 2,
    FeeAboveValue = 3,
}

/// Queues a peg-out of the value sent, to the address of the sender's key, or rejects it. If a contract
/// calls, the Bridge keeps the value.
pub(in super::super) fn request(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    if !bridge.call.is_direct() {
        if !bridge.has(Rule::Rskip185) {
            return Err(NativeFailure::Failed);
        }
        bridge.log_rejected(Reason::CallerContract);
        return Ok(None);
    }
    // A local call has no signature from which to recover the key.
    let run = bridge.call.transaction.ok_or(NativeFailure::Failed)?;
    let key = run.transaction.recover_public_key().ok_or(NativeFailure::Failed)?;
    let to = hash160(&compressed(&key));
    let amount = satoshi(&bridge.call.value);
    match bridge.rejection(amount)? {
        Some(reason) if bridge.has(Rule::Rskip185) => {
            bridge.refund()?;
            bridge.log_rejected(reason);
        }
        // Before RSKIP-185 the Bridge keeps the value of a rejected request.
        Some(_) => {}
        None => {
            let transaction = bridge.has(Rule::Rskip146).then(|| run.transaction.hash().0);
            let mut queue = bridge.queue()?;
            queue.push(PegoutRequest { to, amount, transaction });
            bridge.save_queue(&queue);
            if bridge.has(Rule::Rskip185) {
                bridge.log_received(&to);
            }
        }
    }
    Ok(None)
}

/// Compresses a public key to 33 bytes.
fn compressed(key: &[u8; 64]) -> Vec<u8> {
    let odd = key.last().is_some_and(|last| last & 1 == 1);
    let mut out = alloc::vec![if odd { 3 } else { 2 }];
    out.extend(key.iter().take(32));
    out
}

impl Bridge<'_> {
    /// The reason to reject an amount in satoshi, if there is one. From RSKIP-219 on the minimum is inclusive and covers the fee;
    /// before, it was a constant and exclusive.
    fn rejection(&mut self, amount: u64) -> Result<Option<Reason>, NativeFailure> {
        if !self.has(Rule::Rskip219) {
            let low = amount <= self.constants.legacy_minimum_pegout;
            return Ok(low.then_some(Reason::LowAmount));
        }
        // The reference node estimates the fee of a transaction with two inputs and two outputs.
        let fee = self.pegout_fee(2, 2)?;
        let needed = fee.saturating_add(fee.saturating_mul(self.constants.pegout_gap) / 100);
        let minimum = self.constants.minimum_pegout.max(needed);
        if amount >= minimum {
            return Ok(None);
        }
        Ok(Some(if minimum == needed { Reason::FeeAboveValue } else { Reason::LowAmount }))
    }

    /// Amount in events: wei from RSKIP-427 on, satoshi before.
    fn event_amount(&self) -> U256 {
        if self.has(Rule::Rskip427) { self.call.value } else { U256::from(satoshi(&self.call.value)) }
    }

    /// Writes the event of a rejected request.
    fn log_rejected(&mut self, reason: Reason) {
        let words = [Some(self.event_amount()), Some(U256::from(reason as u64))];
        self.event(REJECTED, Some(self.caller()), &words, &[]);
    }

    /// Returns the value to the caller. Before RSKIP-427 the Bridge kept what was less than a satoshi.
    fn refund(&mut self) -> Result<(), NativeFailure> {
        let (value, caller) = (self.call.value, self.caller());
        let whole = U256::from(satoshi(&value)).saturating_mul(U256::from(WEI_PER_SATOSHI));
        let amount = if self.has(Rule::Rskip427) { value } else { whole };
        match self.host.transfer(Self::own(), caller, amount) {
            true => Ok(()),
            false => Err(NativeFailure::Failed),
        }
    }

    /// Writes the event of a request that was queued; `to` is the hash160 of the destination.
    fn log_received(&mut self, to: &[u8; 20]) {
        let sender = Some(self.caller());
        if self.has(Rule::Rskip326) {
            let text = address::of_key(self.constants, to);
            let words = [None, Some(self.event_amount())];
            return self.event(RECEIVED, sender, &words, &[text.as_bytes()]);
        }
        let words = [None, Some(U256::from(satoshi(&self.call.value)))];
        self.event(RECEIVED_OLD, sender, &words, &[to]);
    }
}
