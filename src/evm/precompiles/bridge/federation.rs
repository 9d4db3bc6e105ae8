//! Federations: members, scripts, and the cells they are kept in.

use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::{Bytes, U256};
use sha2::{Digest as _, Sha256};

use super::super::bitcoin::{hash160, multisig, push};
use super::super::cell_slot;
use super::address;
use super::constants::{Bitcoin, Constants, Key, TEST_EARLY_KEYS};
use crate::consensus::{Rule, RuleSet};
use crate::types::rlp::{self, Reader};
use crate::types::sorted;

/// Plain multisignature.
pub(super) const STANDARD: u64 = 1000;
/// With emergency keys, one CHECKMULTISIG for both (RSKIP-201).
const NON_STANDARD_ERP: u64 = 2000;
/// With emergency keys, each with a CHECKMULTISIG (RSKIP-353).
#[cfg(feature = "bridge-write")]
pub(super) const P2SH_ERP: u64 = 3000;
/// The same script behind a witness program (RSKIP-305).
pub(super) const P2WSH_ERP: u64 = 4000;

/// Where cells are read from.
pub(super) type Cells<'c> = dyn FnMut(U256) -> Bytes + 'c;

/// Keys of one member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    pub(super) btc: Key,
    pub(super) rsk: Key,
    pub(super) mst: Key,
}

impl Member {
    fn of_one(key: Key) -> Self {
        Self { btc: key, rsk: key, mst: key }
    }

    /// Reads `[btc, rsk, mst]`.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut keys = Reader::list(bytes, "member").ok()?;
        let mut key = || keys.next_str("key").ok()?.try_into().ok();
        Some(Self { btc: key()?, rsk: key()?, mst: key()? })
    }

    /// Writes `[btc, rsk, mst]`.
    #[cfg(feature = "bridge-write")]
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
    /// Sorted.
    pub(super) members: Vec<Member>,
    /// Creation in milliseconds since 1970.
    pub(super) created: u64,
    /// Block of its creation.
    pub(super) block: u64,
    /// Format version.
    pub(super) format: u64,
}

impl Federation {
    fn genesis(constants: &Constants) -> Self {
        Self {
            members: constants.genesis_keys.iter().map(|key| Member::of_one(*key)).collect(),
            created: constants.genesis_time,
            block: 1,
            format: constants.genesis_format,
        }
    }

    /// Reads the cell of a name and its version cell; nothing where there is none.
    pub(super) fn stored(name: &str, cells: &mut Cells<'_>) -> Option<Self> {
        let bytes = cells(cell_slot(name));
        if bytes.is_empty() {
            return None;
        }
        let mut version_name = String::from(name);
        version_name.push_str("FormatVersion");
        Self::decode(&bytes, number(&cells(cell_slot(&version_name))))
    }

    /// Before RSKIP-123 there is no version, and members have one key.
    fn decode(bytes: &[u8], version: Option<u64>) -> Option<Self> {
        let mut fields = Reader::list(bytes, "federation").ok()?;
        let created = big_endian(fields.next_str("time").ok()?);
        let block = big_endian(fields.next_str("block").ok()?);
        let mut list = fields.next_list("members").ok()?;
        let mut members = Vec::new();
        while !list.is_empty() {
            let member = list.next_str("member").ok()?;
            members.push(match version {
                None => Member::of_one(member.try_into().ok()?),
                Some(_) => Member::decode(member)?,
            });
        }
        Some(Self { members: sorted(members), created, block, format: version.unwrap_or(STANDARD) })
    }

    /// Bytes of its cell (since RSKIP-123).
    #[cfg(feature = "bridge-write")]
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

    /// The federation in charge at a height: the new one once it is old enough, before that the old
    /// one; the genesis federation where none was ever elected.
    pub(super) fn active(constants: &Constants, rules: RuleSet, height: u64, cells: &mut Cells<'_>) -> Self {
        let Some(new) = Self::stored("newFederation", cells) else { return Self::genesis(constants) };
        match Self::stored("oldFederation", cells) {
            Some(old) if !new.is_active(constants, rules, height) => old,
            _ => new,
        }
    }

    /// The federation that hands over: the old one while the new one is active already.
    pub(super) fn retiring(
        constants: &Constants,
        rules: RuleSet,
        height: u64,
        cells: &mut Cells<'_>,
    ) -> Option<Self> {
        let new = Self::stored("newFederation", cells)?;
        Self::stored("oldFederation", cells).filter(|_| new.is_active(constants, rules, height))
    }

    /// Whether it is old enough to be in charge.
    pub(super) fn is_active(&self, constants: &Constants, rules: RuleSet, height: u64) -> bool {
        let age = i128::from(height).saturating_sub(i128::from(self.block));
        age >= i128::from(constants.activation_age(rules))
    }

    /// Signatures it needs.
    pub(super) fn required(&self) -> usize {
        required(self.members.len())
    }

    /// The script that spends its money.
    pub(super) fn redeem_script(&self, constants: &Constants, rules: RuleSet) -> Vec<u8> {
        let joint = self.format == NON_STANDARD_ERP;
        // One script for all federations of those days.
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
        let delay = match constants.emergency_delay.to_be_bytes() {
            [_, rest @ ..] if early => rest.to_vec(),
            [_, _, rest @ ..] if joint && !rules.has(Rule::Rskip293) => rest.to_vec(),
            _ => script_number(constants.emergency_delay),
        };
        // OP_CHECKMULTISIG ends both, or stands once behind them.
        let part = |script: &[u8]| {
            let end = script.len().saturating_sub(usize::from(joint));
            script.get(..end).unwrap_or_default().to_vec()
        };
        let mut script = alloc::vec![0x64];
        script.extend(part(&own));
        script.push(0x67);
        push(&mut script, &delay);
        script.extend([0xb2, 0x75]);
        script.extend(part(&emergency));
        script.push(0x68);
        if joint {
            script.push(0xae);
        }
        script
    }

    /// Its address.
    pub(super) fn address(&self, constants: &Constants, rules: RuleSet) -> String {
        let script = self.redeem_script(constants, rules);
        let hash = match self.format {
            P2WSH_ERP => {
                let mut program = alloc::vec![0, 32];
                program.extend_from_slice(&Sha256::digest(&script));
                hash160(&program)
            }
            _ => hash160(&script),
        };
        address::of_script(constants, &hash)
    }
}

/// Signatures that so many keys need: more than half of them.
fn required(keys: usize) -> usize {
    (keys / 2).saturating_add(1)
}

/// A number in script: little endian with a sign bit.
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

/// Low 64 bits of an unsigned number.
pub(super) fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// A cell that holds one number; nothing where it is absent.
pub(super) fn number(cell: &[u8]) -> Option<u64> {
    Reader::new(cell).next_str("number").ok().map(big_endian)
}

/// Bytes of a cell that holds one number.
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
    fn genesis_addresses() {
        assert_eq!(genesis_address(33), "2MvQSG61B4LtKLECeo1dRDeDWXgJfnr3fC7");
        assert_eq!(genesis_address(31), "2N1N5mdHWmRUfv49f7GnUeFfuyLcBQK7hj2");
        assert_eq!(genesis_address(30), "39AHNvUmzaYgewA8yCtBtNsfRz7QD7ZJYi");
    }

    /// The script's length and hash as the reference node has it.
    #[test]
    fn early_federations_of_testnet_share_one_script() {
        let (constants, network) = (Constants::of(31), Network::testnet());
        let members = vec![Member::of_one([2; 33])];
        let federation = Federation { members, created: 0, block: 1, format: NON_STANDARD_ERP };
        let script = federation.redeem_script(constants, network.rules(2_581_799));
        let expected =
            alloy_primitives::hex!("d491a78f46bd563403b57798d06d3f421fa6edad334e92835f8cd499654ddfa4");
        assert_eq!((script.len(), &Sha256::digest(&script)[..]), (286, &expected[..]));
        assert_eq!(
            federation.address(constants, network.rules(2_581_799)),
            "2Mw6KM642fbkypTzbgFi6DTgTFPRWZUD4BA"
        );
        // From RSKIP-284 on it is the members' own.
        let later = federation.redeem_script(constants, network.rules(2_581_800));
        assert!(later.windows(33).any(|key| key == [2; 33]));
    }

    #[test]
    fn delays_are_signed_numbers() {
        assert_eq!(script_number(500), [0xf4, 0x01]);
        assert_eq!(script_number(52_560), [0x50, 0xcd, 0x00]);
    }
}
