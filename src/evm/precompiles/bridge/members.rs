//! The Bridge's methods that return federations and their members. The active federation accepts peg-ins; the retiring one has still
//! bitcoins to move to it; the proposed one (RSKIP-419) is being validated; the pending one is under construction by votes.

use alloc::vec::Vec;

use alloy_primitives::Bytes;
use alloy_primitives::keccak256;

use super::super::abi::{Arg, bytes_result, int_result};
use super::NativeFailure;
use super::constants::PublicKey;
use super::federation::{Federation, FederationMember};
use super::session::{Bridge, BridgeResult};
use crate::consensus::Rule;
use crate::types::insert_sorted;
use crate::types::rlp::{self, RlpReader};

/// The federation that a method is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FederationKind {
    Active,
    Retiring,
    Proposed,
}

/// Result of the numeric getters if the federation does not exist.
const NO_FEDERATION: i64 = -1;

impl Bridge<'_> {
    /// The active federation.
    pub(super) fn active_federation(&mut self) -> Federation {
        let (constants, rules, height) = (self.constants, self.call.rules, self.call.block.number);
        Federation::active(constants, rules, height, &mut |slot| self.read(slot))
    }

    /// The retiring federation, if there is one.
    pub(super) fn retiring_federation(&mut self) -> Option<Federation> {
        let (constants, rules, height) = (self.constants, self.call.rules, self.call.block.number);
        Federation::retiring(constants, rules, height, &mut |slot| self.read(slot))
    }

    /// The federation that is being validated (RSKIP-419).
    pub(super) fn proposed_federation(&mut self) -> Option<Federation> {
        if !self.has(Rule::Rskip419) {
            return None;
        }
        Federation::stored("proposedFederation", &mut |slot| self.read(slot))
    }

    /// Members of the pending federation; `None` if there is none. Before RSKIP-123 its cell has one key for each member.
    pub(super) fn pending_members(&mut self) -> Option<Vec<FederationMember>> {
        let cell = self.named("pendingFederation");
        let multikey = !self.named("pendingFederationFormatVersion").is_empty();
        let mut list = RlpReader::list(&cell, "pending").ok()?;
        let mut members = Vec::new();
        while !list.is_empty() {
            let member = if multikey {
                FederationMember::decode(list.next_raw("member").ok()?)?
            } else {
                let key: PublicKey = list.next_str("key").ok()?.try_into().ok()?;
                FederationMember { btc: key, rsk: key, mst: key }
            };
            insert_sorted(&mut members, member);
        }
        Some(members)
    }

    /// The federation that a method is about.
    fn federation(&mut self, which: FederationKind) -> Option<Federation> {
        match which {
            FederationKind::Active => Some(self.active_federation()),
            FederationKind::Retiring => self.retiring_federation(),
            FederationKind::Proposed => self.proposed_federation(),
        }
    }
}

/// Hash of the BTC keys of a pending federation, by which voters name the federation when they commit it.
pub(super) fn hash(members: &[FederationMember]) -> [u8; 32] {
    let mut keys = Vec::new();
    members.iter().for_each(|member| rlp::put_str(&mut keys, &member.btc));
    let mut list = Vec::new();
    rlp::put_list(&mut list, &keys);
    keccak256(&list).0
}

/// A result of type `bytes` or `string`.
fn bytes(bytes: &[u8]) -> BridgeResult {
    Ok(Some(bytes_result(bytes)))
}

/// A number as the result; -1 if there is no federation.
fn int(number: Option<u64>) -> BridgeResult {
    // Java stores these numbers as signed 64-bit integers.
    Ok(Some(int_result(number.map_or(NO_FEDERATION, |number| number as i64))))
}

/// The Bitcoin address of a federation; empty if there is none.
pub(super) fn address(bridge: &mut Bridge<'_>, which: FederationKind, _: &[Arg<'_>]) -> BridgeResult {
    let Some(federation) = bridge.federation(which) else { return bytes(&[]) };
    bytes(federation.address(bridge.constants, bridge.call.rules).as_bytes())
}

/// The number of the block in which a federation was created.
pub(super) fn creation_block(bridge: &mut Bridge<'_>, which: FederationKind, _: &[Arg<'_>]) -> BridgeResult {
    int(bridge.federation(which).map(|federation| federation.block))
}

/// The creation time as stored, from RSKIP-419 on divided by 1,000. [`lowest_height`](super::checkpoints::lowest_height) explains the
/// unit of the stored time.
pub(super) fn creation_time(bridge: &mut Bridge<'_>, which: FederationKind, _: &[Arg<'_>]) -> BridgeResult {
    let in_seconds = bridge.has(Rule::Rskip419);
    int(bridge.federation(which).map(|federation| match in_seconds {
        true => federation.created / 1_000,
        false => federation.created,
    }))
}

/// The number of a federation's members.
pub(super) fn size(bridge: &mut Bridge<'_>, which: FederationKind, _: &[Arg<'_>]) -> BridgeResult {
    int(bridge.federation(which).map(|federation| federation.members.len() as u64))
}

/// The number of signatures that a federation needs.
pub(super) fn threshold(bridge: &mut Bridge<'_>, which: FederationKind, _: &[Arg<'_>]) -> BridgeResult {
    int(bridge.federation(which).map(|federation| federation.required() as u64))
}

/// BTC key of a member; fails if the index is out of range.
pub(super) fn key(bridge: &mut Bridge<'_>, which: FederationKind, args: &[Arg<'_>]) -> BridgeResult {
    let Some(federation) = bridge.federation(which) else { return bytes(&[]) };
    bytes(&member(&federation.members, args)?.btc)
}

/// The key of a type of a member; fails if the index is out of range.
pub(super) fn key_of_type(bridge: &mut Bridge<'_>, which: FederationKind, args: &[Arg<'_>]) -> BridgeResult {
    let kind = kind(args)?;
    let Some(federation) = bridge.federation(which) else { return bytes(&[]) };
    bytes(kind(member(&federation.members, args)?))
}

/// BTC key of a member of the pending federation.
pub(super) fn pending_key(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let Some(members) = bridge.pending_members() else { return bytes(&[]) };
    bytes(&member(&members, args)?.btc)
}

/// The key of a type of a member of the pending federation.
pub(super) fn pending_key_of_type(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let kind = kind(args)?;
    let Some(members) = bridge.pending_members() else { return bytes(&[]) };
    bytes(kind(member(&members, args)?))
}

/// The number of members of the pending federation.
pub(super) fn pending_size(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    int(bridge.pending_members().map(|members| members.len() as u64))
}

/// The hash of the pending federation; empty if there is none.
pub(super) fn pending_hash(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    match bridge.pending_members() {
        Some(members) => bytes(&hash(&members)),
        None => bytes(&[]),
    }
}

/// Redeem script of the active federation (RSKIP-293).
pub(super) fn redeem_script(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    bytes(&bridge.active_federation().redeem_script(bridge.constants, bridge.call.rules))
}

/// The member with the index in the first argument, a signed 32-bit number.
fn member<'m>(
    members: &'m [FederationMember],
    args: &[Arg<'_>],
) -> Result<&'m FederationMember, NativeFailure> {
    let index = args.first().map_or(-1, Arg::int);
    usize::try_from(index).ok().and_then(|index| members.get(index)).ok_or(NativeFailure::Failed)
}

/// A function that picks the key of the type that the second argument names.
fn kind(args: &[Arg<'_>]) -> Result<fn(&FederationMember) -> &PublicKey, NativeFailure> {
    match args.get(1).map_or(&[][..], Arg::bytes) {
        b"btc" => Ok(|member| &member.btc),
        b"rsk" => Ok(|member| &member.rsk),
        b"mst" => Ok(|member| &member.mst),
        _ => Err(NativeFailure::Failed),
    }
}

/// Rootstock accounts of a federation's members.
pub(super) fn accounts(federation: &Federation) -> impl Iterator<Item = alloy_primitives::Address> + '_ {
    federation.members.iter().filter_map(|member| super::payees::address(&member.rsk))
}

/// Encodes the members of a pending federation as RLP.
pub(super) fn encode_pending(members: &[FederationMember]) -> Bytes {
    let encoded: Vec<Vec<u8>> = members.iter().map(FederationMember::encode).collect();
    rlp::list_of(encoded.iter().map(Vec::as_slice)).into()
}
