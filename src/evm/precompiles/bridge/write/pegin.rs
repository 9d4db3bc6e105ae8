//! The Bridge's methods about peg-ins and signatures, up to their checks: a call that a check refuses has its result, and a call that
//! passes them is not simulated.

use alloy_primitives::Address;

use super::super::NativeFailure;
use super::super::session::{Bridge, BridgeResult};
use super::code;
use crate::consensus::Rule;
use crate::consensus::bitcoin::{double_sha256, reversed};
use crate::evm::precompiles::abi::Arg;

/// `registerBtcTransaction`: a Bitcoin transaction that was processed before or has too few confirmations is ignored. Before RSKIP-199
/// only federation members may call.
pub(in super::super) fn register(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let public = bridge.has(Rule::Rskip199);
    if !public && !bridge.is_federator() {
        return Err(NativeFailure::Failed);
    }
    let [transaction, height, tree] = args else { return Err(NativeFailure::Failed) };
    let hash = reversed(&double_sha256(transaction.bytes()));
    bridge.keep_list("btcTxHashesAP");
    if bridge.processed(&hash).is_some() {
        return Ok(None);
    }
    let head = bridge.btc_head()?.height;
    let height = i64::from(height.int());
    let confirmations = head.saturating_sub(height).saturating_add(1);
    if height < 0 || confirmations < bridge.constants.pegin_confirmations {
        return Ok(None);
    }
    if !is_whole_tree(tree.bytes()) {
        return Err(NativeFailure::Failed);
    }
    Err(NativeFailure::NotSimulated("registerBtcTransaction"))
}

/// `registerBtcCoinbaseTransaction`: the store is initialised before any check.
pub(in super::super) fn register_coinbase(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    bridge.btc_head()?;
    match args.get(2).is_some_and(|tree| is_whole_tree(tree.bytes())) {
        true => Err(NativeFailure::NotSimulated("registerBtcCoinbaseTransaction")),
        false => Err(NativeFailure::Failed),
    }
}

/// `registerFastBridgeBtcTransaction`, a peg-in that a liquidity provider has paid in advance: returns -900 for invalid addresses, -300 if
/// the caller is no contract, and -301 if the caller is not the provider's contract.
pub(in super::super) fn register_fast(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let [_, _, _, _, refund, contract, provider, _] = args else { return Err(NativeFailure::Failed) };
    if ![refund, provider].iter().all(|address| bridge.is_address(address.bytes())) {
        return code(-900);
    }
    if bridge.call.is_direct() {
        return code(-300);
    }
    if bridge.call.caller != Some(Address::from_word(contract.word().into())) {
        return code(-301);
    }
    Err(NativeFailure::NotSimulated("registerFastBridgeBtcTransaction"))
}

impl Bridge<'_> {
    /// Whether the bytes are the version byte of an address of this network and a hash of 20 bytes. Before RSKIP-284 further bytes
    /// may follow, and versions from 0x80 on, which Java reads as negative, are refused.
    fn is_address(&self, bytes: &[u8]) -> bool {
        let long_enough = if self.has(Rule::Rskip284) { bytes.len() == 21 } else { bytes.len() >= 21 };
        let version = bytes.first().is_some_and(|first| {
            self.constants.address_versions().contains(first) && (self.has(Rule::Rskip284) || *first < 0x80)
        });
        long_enough && version
    }
}

/// `addSignature`: only members of a federation may sign.
pub(in super::super) fn sign(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    let proposed = bridge.proposed_federation();
    match bridge.is_federator() || proposed.is_some_and(|proposed| bridge.is_member(&proposed)) {
        true => Err(NativeFailure::NotSimulated("addSignature")),
        false => Err(NativeFailure::Failed),
    }
}

/// Whether a partial Merkle tree has the length that its counts state: 4 bytes, hashes, flag bytes.
fn is_whole_tree(tree: &[u8]) -> bool {
    let size = || {
        let (hashes, len) = count(tree.get(4..)?)?;
        let flags_at = len.checked_add(4)?.checked_add(usize::try_from(hashes).ok()?.checked_mul(32)?)?;
        let (flags, len) = count(tree.get(flags_at..)?)?;
        flags_at.checked_add(len)?.checked_add(usize::try_from(flags).ok()?)
    };
    size() == Some(tree.len())
}

/// A variable-length count of up to 31 bits, and its length in bytes.
fn count(bytes: &[u8]) -> Option<(u32, usize)> {
    let (first, rest) = bytes.split_first()?;
    let len = match first {
        0xfd => 2,
        0xfe => 4,
        0xff => 8,
        small => return Some((u32::from(*small), 1)),
    };
    let number = rest.get(..len)?.iter().rev().fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
    let number = u32::try_from(number).ok().filter(|number| i32::try_from(*number).is_ok())?;
    Some((number, len.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_must_have_the_length_they_state() {
        let mut tree = [1, 0, 0, 0, 1].to_vec();
        tree.extend([7; 32]);
        tree.extend([1, 1]);
        assert!(is_whole_tree(&tree));
        tree.push(0);
        assert!(!is_whole_tree(&tree));
        assert!(!is_whole_tree(&[]));
        assert!(!is_whole_tree(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]));
    }
}
