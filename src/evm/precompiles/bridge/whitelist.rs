//! The whitelist of Bitcoin addresses that may peg in, which is no longer applied. Its cells can still be read and edited
//! (`write/lists.rs`).

use alloc::vec::Vec;

use super::super::abi::{Arg, bytes_result, int_result};
use super::address;
use super::federation::big_endian;
use super::session::{Bridge, BridgeResult};
use crate::consensus::Rule;
use crate::types::rlp::RlpReader;

/// Disable height of a whitelist that was never disabled.
pub(super) const NEVER: u64 = i32::MAX as u64;

/// The whitelist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whitelist {
    /// The hash160 of each listed address, sorted, with the highest amount in satoshi of its one peg-in; `None` for any number of
    /// peg-ins of any amount.
    pub(super) entries: Vec<([u8; 20], Option<u64>)>,
    /// Bitcoin height from which the list is not applied.
    pub(super) disable_height: u64,
}

impl Bridge<'_> {
    /// Reads the whitelist from its cells.
    pub(super) fn whitelist(&mut self) -> Whitelist {
        let mut list = Whitelist { entries: Vec::new(), disable_height: NEVER };
        let one_off = self.named("lockWhitelist");
        if one_off.is_empty() {
            return list;
        }
        // If an entry does not decode, the entries before it count.
        let _ = list.read_one_off(&one_off);
        if self.has(Rule::Rskip87) {
            let unlimited = self.named("unlimitedLockWhitelist");
            let _ = list.read_unlimited(&unlimited);
        }
        list
    }
}

impl Whitelist {
    /// The amount of an address, as in `entries`; the outer `None` if the address is not listed.
    pub(super) fn get(&self, hash: &[u8; 20]) -> Option<Option<u64>> {
        self.entries.iter().find(|(listed, _)| listed == hash).map(|(_, amount)| *amount)
    }

    /// Adds an entry, or replaces it.
    pub(super) fn insert(&mut self, hash: [u8; 20], amount: Option<u64>) {
        let at = self.entries.partition_point(|(listed, _)| *listed < hash);
        match self.entries.get_mut(at) {
            Some((listed, old)) if *listed == hash => *old = amount,
            _ => self.entries.insert(at, (hash, amount)),
        }
    }

    /// Adds the entries of a cell `[hash, amount, .., disable height]`.
    fn read_one_off(&mut self, cell: &[u8]) -> Option<()> {
        let mut items = RlpReader::list(cell, "whitelist").ok()?;
        loop {
            let item = items.next_str("entry").ok()?;
            if items.is_empty() {
                self.disable_height = big_endian(item);
                return Some(());
            }
            let amount = big_endian(items.next_str("amount").ok()?);
            self.insert(item.try_into().ok()?, Some(amount));
        }
    }

    /// Adds the entries of a cell `[hash, ..]`.
    fn read_unlimited(&mut self, cell: &[u8]) -> Option<()> {
        let mut items = RlpReader::list(cell, "whitelist").ok()?;
        while !items.is_empty() {
            self.insert(items.next_str("entry").ok()?.try_into().ok()?, None);
        }
        Some(())
    }
}

/// `getLockWhitelistSize`
pub(super) fn size(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(int_result(bridge.whitelist().entries.len() as i64)))
}

/// `getLockWhitelistAddress`: the address of the entry at an index; empty if out of range. The method returns addresses of keys, also for
/// hashes of scripts.
pub(super) fn address_at(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let index = args.first().map_or(-1, Arg::int);
    let list = bridge.whitelist();
    let hash = usize::try_from(index).ok().and_then(|index| list.entries.get(index).map(|(hash, _)| hash));
    let text = hash.map(|hash| address::of_key(bridge.constants, hash)).unwrap_or_default();
    Ok(Some(bytes_result(text.as_bytes())))
}

/// `getLockWhitelistEntryByAddress`: the amount of an address: 0 if unlimited, -1 if not listed.
pub(super) fn entry(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let hash = address::hash_of(bridge.constants, args.first().map_or(&[][..], Arg::bytes));
    let entry = hash.and_then(|hash| bridge.whitelist().get(&hash));
    Ok(Some(int_result(entry.map_or(-1, |amount| amount.unwrap_or(0) as i64))))
}
