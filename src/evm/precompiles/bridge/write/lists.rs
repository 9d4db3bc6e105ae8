//! The Bridge's methods that edit the whitelist of Bitcoin addresses. Each returns 1, or an error code.

use alloc::vec::Vec;

use super::super::NativeFailure;
use super::super::address::hash_of;
use super::super::session::{Bridge, BridgeResult};
use super::super::whitelist::{NEVER, Whitelist};
use super::code;
use crate::consensus::Rule;
use crate::evm::precompiles::abi::Arg;
use crate::types::rlp;

/// The caller may not edit the list.
const UNAUTHORISED: i64 = -10;
/// The address is not one of this network, or the delay is invalid.
const INVALID: i64 = -2;
/// The address is already listed or not listed, or the list is already disabled.
const UNCHANGED: i64 = -1;

/// Whether the caller may edit the list.
fn authorised(bridge: &Bridge<'_>) -> bool {
    bridge.call.caller == Some(bridge.constants.whitelist_voter)
}

/// Writes the cells of the list. The reference node writes the list even if it has not changed.
fn save(bridge: &mut Bridge<'_>, list: &Whitelist) {
    let mut one_off = Vec::new();
    let mut unlimited = Vec::new();
    for (hash, amount) in &list.entries {
        match amount {
            Some(amount) => {
                rlp::put_str(&mut one_off, hash);
                rlp::put_u64(&mut one_off, *amount);
            }
            None => rlp::put_str(&mut unlimited, hash),
        }
    }
    rlp::put_u64(&mut one_off, list.disable_height);
    bridge.save_named("lockWhitelist", rlp::list_of([one_off.as_slice()]));
    if bridge.has(Rule::Rskip87) {
        bridge.save_named("unlimitedLockWhitelist", rlp::list_of([unlimited.as_slice()]));
    }
}

/// Adds an address with its amount (see [`Whitelist::entries`]), unless it is listed.
fn add(bridge: &mut Bridge<'_>, hash: [u8; 20], amount: Option<u64>) -> BridgeResult {
    if !authorised(bridge) {
        return code(UNAUTHORISED);
    }
    let mut list = bridge.whitelist();
    let new = list.get(&hash).is_none();
    if new {
        list.insert(hash, amount);
    }
    save(bridge, &list);
    code(if new { 1 } else { UNCHANGED })
}

/// The hash160 in the address of the first argument.
fn hash(bridge: &Bridge<'_>, args: &[Arg<'_>]) -> Option<[u8; 20]> {
    hash_of(bridge.constants, args.first().map_or(&[][..], Arg::bytes))
}

/// `addOneOffLockWhitelistAddress`, and `addLockWhitelistAddress` before RSKIP-87.
pub(in super::super) fn add_one_off(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let Some(hash) = hash(bridge, args) else { return code(INVALID) };
    let amount = args.get(1).and_then(Arg::signed).and_then(|amount| u64::try_from(amount).ok());
    add(bridge, hash, Some(amount.ok_or(NativeFailure::Failed)?))
}

/// `addUnlimitedLockWhitelistAddress`.
pub(in super::super) fn add_unlimited(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    match hash(bridge, args) {
        Some(hash) => add(bridge, hash, None),
        None => code(INVALID),
    }
}

/// `removeLockWhitelistAddress`.
pub(in super::super) fn remove(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    if !authorised(bridge) {
        return code(UNAUTHORISED);
    }
    let mut list = bridge.whitelist();
    let listed = list.entries.len();
    let removed = hash(bridge, args).map(|hash| {
        list.entries.retain(|(listed, _)| *listed != hash);
        list.entries.len() < listed
    });
    save(bridge, &list);
    match removed {
        None => code(INVALID),
        Some(false) => code(UNCHANGED),
        Some(true) => code(1),
    }
}

/// `setLockWhitelistDisableBlockDelay`: the list is not applied from a number of Bitcoin blocks above the best one on. The height is
/// computed in 32 bits, as in the reference node.
pub(in super::super) fn set_delay(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let head = i32::try_from(bridge.btc_head()?.height).map_err(|_| NativeFailure::Failed)?;
    if !authorised(bridge) {
        return code(UNAUTHORISED);
    }
    let mut list = bridge.whitelist();
    if list.disable_height < NEVER {
        save(bridge, &list);
        return code(UNCHANGED);
    }
    let delay = args.first().and_then(Arg::signed).and_then(|delay| i32::try_from(delay).ok());
    let height = head.wrapping_add(delay.ok_or(NativeFailure::Failed)?);
    // A delay that is negative or that overflows gives no later height.
    let later = u64::try_from(height).ok().filter(|_| height > head);
    list.disable_height = later.unwrap_or(list.disable_height);
    save(bridge, &list);
    code(if later.is_some() { 1 } else { INVALID })
}
