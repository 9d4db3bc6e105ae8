//! Federations, the groups of members whose keys hold the bitcoins of the Bridge: members, Bitcoin scripts, and the Bridge's cells in
//! which they are stored.

use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::{Bytes, U256};
use sha2::{Digest as _, Sha256};

use super::super::bitcoin::{OP_CHECKMULTISIG, hash160, multisig, push};
use super::super::cell_slot;
use super::address;
use super::constants::{Bitcoin, Constants, PublicKey, TEST_EARLY_KEYS};
use crate::consensus::{Rule, RuleSet};
use crate::types::insert_sorted;
use crate::types::rlp::{self, RlpReader};

// The formats of a federation's script, as the version cell of a federation states them.

/// Plain multisignature script.
pub(super) const STANDARD: u64 = 1000;
/// With emergency keys and a single CHECKMULTISIG for both sets of keys (RSKIP-201).
const NON_STANDARD_ERP: u64 = 2000;
/// With emergency keys and a CHECKMULTISIG for each set of keys (RSKIP-353).
pub(super) const P2SH_ERP: u64 = 3000;
/// The script of format 3000, as a witness program (RSKIP-305).
pub(super) const P2WSH_ERP: u64 = 4000;

// Opcodes of Bitcoin script that the scripts with emergency keys use.
const OP_NOTIF: u8 = 0x64;
const OP_ELSE: u8 = 0x67;
const OP_ENDIF: u8 = 0x68;
const OP_CHECKSEQUENCEVERIFY: u8 = 0xb2;
const OP_DROP: u8 = 0x75;

/// A function that reads a cell of the Bridge by its slot; empty if the cell is not set.
pub(super) type Cells<'c> = dyn FnMut(U256) -> Bytes + 'c;

/// A member. The order of members is that of their keys, the BTC keys first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FederationMember {
    /// The key that signs Bitcoin transactions.
    pub(super) btc: PublicKey,
    /// The key of the member's Rootstock account.
    pub(super) rsk: PublicKey,
    /// The key named `mst` in the Bridge's methods.
    pub(super) mst: PublicKey,
}

impl FederationMember {
    /// A member with one key for all purposes, as before RSKIP-123.
    fn of_one(key: PublicKey) -> Self {
        Self { btc: key, rsk: key, mst: key }
    }

    /// Reads `[btc, rsk, mst]`.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut keys = RlpReader::list(bytes, "member").ok()?;
        let mut key = || keys.next_str("key").ok()?.try_into().ok();
        Some(Self { btc: key()?, rsk: key()?, mst: key()? })
    }

    /// Writes `[btc, rsk, mst]`.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut items = Vec::new();
        for key in [&self.btc, &self.rsk, &self.mst] {
            rlp::put_str(&mut items, key);
        }
        let mut out = Vec::new();
        rlp::put_list(&mut out, &items);
        out
    }
}

/// A federation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Federation {
    /// Members, sorted.
    pub(super) members: Vec<FederationMember>,
    /// Creation time, in milliseconds since 1970 or in seconds; see
    /// [`lowest_height`](super::checkpoints::lowest_height).
    pub(super) created: u64,
    /// Number of the Rootstock block of its creation.
    pub(super) block: u64,
    /// The format of its script, such as [`STANDARD`].
    pub(super) format: u64,
}

impl Federation {
    /// The genesis federation of a network.
    fn genesis(constants: &Constants) -> Self {
        Self {
            members: constants.genesis_keys.iter().map(|key| FederationMember::of_one(*key)).collect(),
            created: constants.genesis_time,
            block: 1,
            format: constants.genesis_format,
        }
    }

    /// Reads the cell with this name and its version cell; `None` if the cell is not set.
    pub(super) fn stored(name: &str, cells: &mut Cells<'_>) -> Option<Self> {
        let bytes = cells(cell_slot(name));
        if bytes.is_empty() {
            return None;
        }
        let mut version_name = String::from(name);
        version_name.push_str("FormatVersion");
        Self::decode(&bytes, number(&cells(cell_slot(&version_name))))
    }

    /// Decodes a federation. Before RSKIP-123 there is no version cell, and members have one key.
    fn decode(bytes: &[u8], version: Option<u64>) -> Option<Self> {
        let mut fields = RlpReader::list(bytes, "federation").ok()?;
        let created = big_endian(fields.next_str("time").ok()?);
        let block = big_endian(fields.next_str("block").ok()?);
        let mut list = fields.next_list("members").ok()?;
        let mut members = Vec::new();
        while !list.is_empty() {
            let member = list.next_str("member").ok()?;
            let member = match version {
                None => FederationMember::of_one(member.try_into().ok()?),
                Some(_) => FederationMember::decode(member)?,
            };
            insert_sorted(&mut members, member);
        }
        Some(Self { members, created, block, format: version.unwrap_or(STANDARD) })
    }

    /// Encodes the federation for its cell (from RSKIP-123 on).
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut members = Vec::new();
        for member in &self.members {
            rlp::put_str(&mut members, &member.encode());
        }
        let mut items = Vec::new();
        rlp::put_u64(&mut items, self.created);
        rlp::put_u64(&mut items, self.block);
        rlp::put_list(&mut items, &members);
        let mut out = Vec::new();
        rlp::put_list(&mut out, &items);
        out
    }

    /// The active federation at a height: the new one once it is old enough, the old one before that. If none
    /// was ever elected, it is the genesis federation.
    pub(super) fn active(constants: &Constants, rules: RuleSet, height: u64, cells: &mut Cells<'_>) -> Self {
        let Some(new) = Self::stored("newFederation", cells) else { return Self::genesis(constants) };
        match Self::stored("oldFederation", cells) {
            Some(old) if !new.is_active(constants, rules, height) => old,
            _ => new,
        }
    }

    /// The retiring federation: the old one, once the new one is active.
    pub(super) fn retiring(
        constants: &Constants,
        rules: RuleSet,
        height: u64,
        cells: &mut Cells<'_>,
    ) -> Option<Self> {
        let new = Self::stored("newFederation", cells)?;
        Self::stored("oldFederation", cells).filter(|_| new.is_active(constants, rules, height))
    }

    /// Whether the federation is old enough to be active.
    pub(super) fn is_active(&self, constants: &Constants, rules: RuleSet, height: u64) -> bool {
        let age = i128::from(height).saturating_sub(i128::from(self.block));
        age >= i128::from(constants.activation_age(rules))
    }

    /// Number of signatures that the federation needs.
    pub(super) fn required(&self) -> usize {
        required(self.members.len())
    }

    /// The script that spends the federation's bitcoins. With emergency keys: NOTIF members' keys ELSE delay, emergency keys ENDIF.
    pub(super) fn redeem_script(&self, constants: &Constants, rules: RuleSet) -> Vec<u8> {
        // Whether one CHECKMULTISIG checks the signatures of either set of keys.
        let joint = self.format == NON_STANDARD_ERP;
        // All federations with this format on testnet at that time had the same script.
        let early = joint && constants.bitcoin == Bitcoin::Test && !rules.has(Rule::Rskip284);
        let keys: Vec<Vec<u8>> = match early {
            true => TEST_EARLY_KEYS.iter().map(|key| key.to_vec()).collect(),
            false => self.members.iter().map(|member| member.btc.to_vec()).collect(),
        };
        let own = multisig(required(keys.len()), &keys);
        if !(NON_STANDARD_ERP..=P2WSH_ERP).contains(&self.format) || !self.format.is_multiple_of(1000) {
            return own;
        }
        let keys: Vec<Vec<u8>> = constants.emergency_keys.iter().map(|key| key.to_vec()).collect();
        let emergency = multisig(required(keys.len()), &keys);
        // In the two early scripts the delay has 3 or 2 bytes in big endian, unlike a number of Bitcoin script.
        let delay = match constants.emergency_delay.to_be_bytes() {
            [_, rest @ ..] if early => rest.to_vec(),
            [_, _, rest @ ..] if joint && !rules.has(Rule::Rskip293) => rest.to_vec(),
            _ => script_number(constants.emergency_delay),
        };
        // OP_CHECKMULTISIG ends both parts, or follows once after them (`joint`).
        let part = |script: &[u8]| {
            let end = script.len().saturating_sub(usize::from(joint));
            script.get(..end).unwrap_or_default().to_vec()
        };
        let mut script = alloc::vec![OP_NOTIF];
        script.extend(part(&own));
        script.push(OP_ELSE);
        push(&mut script, &delay);
        script.extend([OP_CHECKSEQUENCEVERIFY, OP_DROP]);
        script.extend(part(&emergency));
        script.push(OP_ENDIF);
        if joint {
            script.push(OP_CHECKMULTISIG);
        }
        script
    }

    /// The Bitcoin address to which peg-ins send.
    pub(super) fn address(&self, constants: &Constants, rules: RuleSet) -> String {
        let script = self.redeem_script(constants, rules);
        let hash = match self.format {
            P2WSH_ERP => {
                // Witness version 0, and a push of the 32 bytes of the script's hash.
                let mut program = alloc::vec![0, 32];
                program.extend_from_slice(&Sha256::digest(&script));
                hash160(&program)
            }
            _ => hash160(&script),
        };
        address::of_script(constants, &hash)
    }
}

/// Number of signatures required of `keys` keys: more than half of them.
fn required(keys: usize) -> usize {
    (keys / 2).saturating_add(1)
}

/// A number in Bitcoin script: little-endian with a sign bit.
fn script_number(number: u32) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    if bytes.last().is_some_and(|top| *top >= 0x80) {
        bytes.push(0);
    }
    bytes
}

/// The low 64 bits of an unsigned big-endian number.
pub(super) fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Decodes a cell with one number; `None` if the cell is not set.
pub(super) fn number(cell: &[u8]) -> Option<u64> {
    RlpReader::new(cell).next_str("number").ok().map(big_endian)
}

/// Encodes a cell with one number.
pub(super) fn number_cell(number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    rlp::put_u64(&mut out, number);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::Network;

    fn genesis_address(chain_id: u64) -> String {
        let constants = Constants::of(chain_id);
        let rules = Network::regtest().rules(1);
        Federation::active(constants, rules, 5, &mut |_| Bytes::new()).address(constants, rules)
    }

    #[test]
    fn genesis_federations_have_their_known_addresses() {
        assert_eq!(genesis_address(33), "2MvQSG61B4LtKLECeo1dRDeDWXgJfnr3fC7");
        assert_eq!(genesis_address(31), "2N1N5mdHWmRUfv49f7GnUeFfuyLcBQK7hj2");
        assert_eq!(genesis_address(30), "39AHNvUmzaYgewA8yCtBtNsfRz7QD7ZJYi");
    }

    /// Length and hash of the script are those of the reference node.
    #[test]
    fn early_federations_of_testnet_share_one_script() {
        let (constants, network) = (Constants::of(31), Network::testnet());
        let members = vec![FederationMember::of_one([2; 33])];
        let federation = Federation { members, created: 0, block: 1, format: NON_STANDARD_ERP };
        let script = federation.redeem_script(constants, network.rules(2_581_799));
        let expected =
            alloy_primitives::hex!("d491a78f46bd563403b57798d06d3f421fa6edad334e92835f8cd499654ddfa4");
        assert_eq!((script.len(), &Sha256::digest(&script)[..]), (286, &expected[..]));
        assert_eq!(
            federation.address(constants, network.rules(2_581_799)),
            "2Mw6KM642fbkypTzbgFi6DTgTFPRWZUD4BA"
        );
        // From RSKIP-284 on the script has the members' own keys.
        let later = federation.redeem_script(constants, network.rules(2_581_800));
        assert!(later.windows(33).any(|key| key == [2; 33]));
    }

    #[test]
    fn delays_are_encoded_as_signed_script_numbers() {
        assert_eq!(script_number(500), [0xf4, 0x01]);
        assert_eq!(script_number(52_560), [0x50, 0xcd, 0x00]);
    }
}
