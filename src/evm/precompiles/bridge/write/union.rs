//! The union bridge contract (RSKIP-502), a second bridge to Bitcoin, which borrows RBTC of this Bridge: its address, its locking cap, the
//! amount it has borrowed, and its events. Below, it is called the union contract.

use alloc::vec::Vec;

use alloy_primitives::{Address, U256};

use super::super::NativeFailure;
use super::super::constants::Bitcoin;
use super::super::federation::{number, number_cell};
use super::super::session::{Bridge, BridgeResult, hashed_slot};
use super::code;
use super::events::{UNION_CAP, UNION_PERMISSIONS, UNION_RELEASED, UNION_REQUESTED};
use crate::evm::precompiles::abi::{Arg, is_negative};
use crate::types::rlp;

/// Most bytes of the super event or base event, data that the union contract stores in the Bridge (RSKIP-529).
const MAX_EVENT: usize = 128;
/// The caller is not the union contract.
const UNAUTHORISED: i64 = -1;
/// The amount or cap is out of range.
const INVALID: i64 = -2;
/// The transfer is disabled.
const DISABLED: i64 = -3;
/// Name of the cell with the borrowed wei.
const BORROWED: &str = "weisTransferredToUnionBridge";
/// Name of the cell with the permission to borrow.
const REQUESTS: &str = "unionBridgeRequestEnabled";
/// Name of the cell with the permission to give back.
const RELEASES: &str = "unionBridgeReleaseEnabled";

impl Bridge<'_> {
    /// Fails unless the caller is the union voter at this index: 0 sets the address, 1 the locking cap, 2 the permissions.
    fn only(&self, index: usize) -> Result<(), NativeFailure> {
        let voter = self.constants.union_voters.get(index);
        match voter.is_some() && voter.copied() == self.call.caller {
            true => Ok(()),
            false => Err(NativeFailure::Failed),
        }
    }

    /// Whether the caller is the union contract.
    fn is_union(&mut self) -> bool {
        Some(self.union_contract()) == self.call.caller
    }

    /// Sets the cell whose slot is the hash of this name.
    fn save_hashed(&mut self, name: &str, bytes: Vec<u8>) {
        self.save(hashed_slot(name), bytes);
    }

    /// Sets a cell to an amount in wei.
    fn save_amount(&mut self, name: &str, amount: U256) {
        let mut bytes = Vec::new();
        rlp::put_u256(&mut bytes, &amount);
        self.save_hashed(name, bytes);
    }

    /// Whether the permission in this cell is on. The default is on.
    fn enabled(&mut self, name: &str) -> bool {
        number(&self.hashed(name)).is_none_or(|on| on == 1)
    }

    /// Writes both permissions and their event; `by` is the account in the event.
    fn switch(&mut self, requests: bool, releases: bool, by: Address) {
        self.save_hashed(REQUESTS, number_cell(u64::from(requests)));
        self.save_hashed(RELEASES, number_cell(u64::from(releases)));
        let words = [requests, releases].map(|on| Some(U256::from(u64::from(on))));
        self.event(UNION_PERMISSIONS, Some(by), &words, &[]);
    }

    /// Writes the cell of a super event or base event.
    fn set_event(&mut self, name: &str, data: &[u8]) -> BridgeResult {
        if !self.is_union() || data.len() > MAX_EVENT {
            return Err(NativeFailure::Failed);
        }
        self.save_hashed(name, data.to_vec());
        Ok(None)
    }
}

/// The word of the argument at an index.
fn word(args: &[Arg<'_>], index: usize) -> U256 {
    args.get(index).map_or(U256::ZERO, Arg::word)
}

/// `setUnionBridgeContractAddressForTestnet`
pub(in super::super) fn set_address(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    if bridge.constants.bitcoin == Bitcoin::Main {
        return Err(NativeFailure::Failed);
    }
    bridge.only(0)?;
    let mut bytes = Vec::new();
    rlp::put_str(&mut bytes, Address::from_word(word(args, 0).into()).as_slice());
    bridge.save_hashed("unionBridgeContractAddress", bytes);
    code(0)
}

/// `increaseUnionBridgeLockingCap`: the new cap must be above the current one and at most twice as high.
pub(in super::super) fn increase_cap(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    bridge.only(1)?;
    let (cap, current) = (word(args, 0), bridge.union_cap());
    let valid = cap > current && cap <= current.saturating_mul(U256::from(2));
    if is_negative(&cap) || !valid {
        return code(INVALID);
    }
    bridge.save_amount("unionBridgeLockingCap", cap);
    bridge.event(UNION_CAP, Some(bridge.caller()), &[Some(current), Some(cap)], &[]);
    code(0)
}

/// `requestUnionBridgeRbtc`: lends to the union contract, up to the cap.
pub(in super::super) fn request(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    if !bridge.is_union() {
        return code(UNAUTHORISED);
    }
    if !bridge.enabled(REQUESTS) {
        return code(DISABLED);
    }
    let amount = word(args, 0);
    let sum = bridge.union_amount(BORROWED).unwrap_or_default().saturating_add(amount);
    if amount.is_zero() || is_negative(&amount) || sum > bridge.union_cap() {
        return code(INVALID);
    }
    bridge.save_amount(BORROWED, sum);
    let union = bridge.caller();
    if !bridge.host.pay(Bridge::own(), union, amount) {
        return Err(NativeFailure::Failed);
    }
    bridge.event(UNION_REQUESTED, Some(union), &[Some(amount)], &[]);
    code(0)
}

/// `releaseUnionBridgeRbtc`: takes back the value sent, or returns it to the caller if the union contract may not give it back.
pub(in super::super) fn release(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    let (caller, value) = (bridge.caller(), bridge.call.value);
    let result = take_back(bridge, value);
    if result != 0 && !value.is_zero() && !bridge.host.pay(Bridge::own(), caller, value) {
        return Err(NativeFailure::Failed);
    }
    code(result)
}

/// Subtracts the value from the borrowed amount. Returns 0 or an error code.
fn take_back(bridge: &mut Bridge<'_>, value: U256) -> i64 {
    if !bridge.is_union() {
        return UNAUTHORISED;
    }
    if !bridge.enabled(RELEASES) {
        return DISABLED;
    }
    if value.is_zero() {
        return INVALID;
    }
    match bridge.union_amount(BORROWED).unwrap_or_default().checked_sub(value) {
        // More than was borrowed: the Bridge withdraws both permissions.
        None => {
            bridge.switch(false, false, Bridge::own());
            INVALID
        }
        Some(left) => {
            bridge.save_amount(BORROWED, left);
            bridge.event(UNION_RELEASED, Some(bridge.caller()), &[Some(value)], &[]);
            0
        }
    }
}

/// `setUnionBridgeTransferPermissions`: whether the union contract may borrow and may give back.
pub(in super::super) fn set_permissions(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    bridge.only(2)?;
    // Java reads a bool from the low 32 bits.
    let on = |index: usize| args.get(index).is_some_and(|arg| arg.int() != 0);
    let wanted = (on(0), on(1));
    if wanted != (bridge.enabled(REQUESTS), bridge.enabled(RELEASES)) {
        bridge.switch(wanted.0, wanted.1, bridge.caller());
    }
    code(0)
}

/// `setSuperEvent`
pub(in super::super) fn set_super_event(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    bridge.set_event("superEvent", args.first().map_or(&[][..], Arg::bytes))
}

/// `clearSuperEvent`
pub(in super::super) fn clear_super_event(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    bridge.set_event("superEvent", &[])
}

/// `setBaseEvent`
pub(in super::super) fn set_base_event(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    bridge.set_event("baseEvent", args.first().map_or(&[][..], Arg::bytes))
}

/// `clearBaseEvent`
pub(in super::super) fn clear_base_event(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    bridge.set_event("baseEvent", &[])
}
