//! The Bridge's methods that read one or two cells, which `methods.rs` names.

use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256, U256, hex};

use super::super::abi::{Arg, bytes_result, int_result, word_result};
use super::NativeFailure;
use super::constants::Bitcoin;
use super::federation::{big_endian, number};
use super::session::{Bridge, BridgeResult};
use crate::consensus::Rule;
use crate::types::rlp::{self, RlpReader};

/// Initial cap of the amount that the union bridge contract (RSKIP-502) may borrow: 1 RBTC in wei.
const UNION_CAP: u64 = 1_000_000_000_000_000_000;

impl Bridge<'_> {
    /// Fee per 1,000 bytes in satoshi.
    pub(super) fn fee_per_kb(&mut self) -> u64 {
        number(&self.named("feePerKb")).unwrap_or(self.constants.initial_fee)
    }

    /// Locking cap in satoshi.
    pub(super) fn locking_cap(&mut self) -> u64 {
        number(&self.named("lockingCap")).unwrap_or(self.constants.initial_cap)
    }

    /// Address of the union bridge contract; always the zero address on mainnet.
    pub(super) fn union_contract(&mut self) -> Address {
        let cell = match self.constants.bitcoin {
            Bitcoin::Main => return Address::ZERO,
            _ => self.hashed("unionBridgeContractAddress"),
        };
        let address =
            RlpReader::new(&cell).next_str("address").ok().and_then(|address| address.try_into().ok());
        address.unwrap_or(Address::ZERO)
    }

    /// The most that the union bridge contract may have borrowed, in wei.
    pub(super) fn union_cap(&mut self) -> U256 {
        self.union_amount("unionBridgeLockingCap").unwrap_or(U256::from(UNION_CAP))
    }

    /// An amount in wei from a cell about the union bridge contract.
    pub(super) fn union_amount(&mut self, name: &str) -> Option<U256> {
        let cell = self.hashed(name);
        RlpReader::new(&cell).next_str("amount").ok().and_then(U256::try_from_be_slice)
    }

    /// Rootstock height at which a Bitcoin transaction (hash in display order) was processed. The height is in the old map of
    /// transactions or in a cell of its own (RSKIP-134).
    pub(super) fn processed(&mut self, hash: &B256) -> Option<u64> {
        let map = self.named("btcTxHashesAP");
        if let Some(height) = find(&map, hash.as_slice()) {
            return Some(height);
        }
        if !self.has(Rule::Rskip134) {
            return None;
        }
        let mut name = String::from("btcTxHashAP-");
        name.push_str(&hex::encode(hash));
        number(&self.hashed(&name))
    }
}

/// The hash of a Bitcoin transaction in the first argument.
fn hash(args: &[Arg<'_>]) -> Result<B256, NativeFailure> {
    lower_hex(args.first().map_or(&[][..], Arg::bytes)).ok_or(NativeFailure::Failed)
}

/// Parses 32 bytes in lower-case hex.
fn lower_hex(text: &[u8]) -> Option<B256> {
    let lower = text.iter().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != 64 || !lower {
        return None;
    }
    B256::try_from(hex::decode(text).ok()?.as_slice()).ok()
}

/// Looks up a key in an RLP list of alternating keys and numbers.
fn find(map: &[u8], key: &[u8]) -> Option<u64> {
    let mut items = RlpReader::list(map, "hashes").ok()?;
    while !items.is_empty() {
        let found = items.next_str("hash").ok()?;
        let height = items.next_str("height").ok()?;
        if found == key {
            return Some(big_endian(height));
        }
    }
    None
}

/// A number as the result, which Java stores as a signed 64-bit integer.
fn amount(number: u64) -> BridgeResult {
    Ok(Some(int_result(number as i64)))
}

/// `getFeePerKb`, in satoshi
pub(super) fn fee_per_kb(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    amount(bridge.fee_per_kb())
}

/// `getLockingCap`, in satoshi
pub(super) fn locking_cap(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    amount(bridge.locking_cap())
}

/// `getMinimumLockTxValue`, in satoshi
pub(super) fn minimum_pegin(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    amount(bridge.constants.minimum_pegin(bridge.call.rules))
}

/// `getBtcTxHashProcessedHeight`: -1 if the transaction was not processed.
pub(super) fn processed_height(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(int_result(bridge.processed(&hash(args)?).map_or(-1, |height| height as i64))))
}

/// `isBtcTxHashAlreadyProcessed`
pub(super) fn is_processed(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(int_result(i64::from(bridge.processed(&hash(args)?).is_some()))))
}

/// `hasBtcBlockCoinbaseTransactionInformation`
pub(super) fn has_coinbase(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let known = bridge.coinbase_root(args.first().map_or(&[][..], Arg::bytes)).is_some();
    Ok(Some(int_result(i64::from(known))))
}

/// Block of the active federation's creation as stored in the cells (RSKIP-186); 0 if they are not set.
pub(super) fn creation_height(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    let age = bridge.constants.activation_age(bridge.call.rules);
    let next = number(&bridge.named("nextFedCreationBlockHeight"));
    let height = bridge.call.block.number;
    match next.filter(|next| height >= next.saturating_add(age)) {
        Some(next) => amount(next),
        None => amount(number(&bridge.named("activeFedCreationBlockHeight")).unwrap_or(0)),
    }
}

/// The cell with the peg-outs that wait for signatures, in an RLP list.
pub(super) fn release_state(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    wrapped(&bridge.named("rskTxsWaitingFS"))
}

/// The cell with the Bitcoin transaction by which a proposed federation proves that it can spend (RSKIP-419), in an RLP list.
pub(super) fn svp_state(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    wrapped(&bridge.named("svpSpendTxWaitingForSignatures"))
}

/// An RLP list with the content of a cell; with an empty list if the cell is not set.
fn wrapped(cell: &[u8]) -> BridgeResult {
    let mut out = Vec::new();
    rlp::put_list(&mut out, if cell.is_empty() { &[0xc0] } else { cell });
    Ok(Some(bytes_result(&out)))
}

/// `getUnionBridgeContractAddress`
pub(super) fn union_address(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(word_result(bridge.union_contract().into_word().into())))
}

/// `getUnionBridgeLockingCap`, in wei
pub(super) fn union_cap(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(word_result(bridge.union_cap())))
}

/// `getSuperEvent`
pub(super) fn super_event(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(bytes_result(&bridge.hashed("superEvent"))))
}

/// `getBaseEvent`
pub(super) fn base_event(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(bytes_result(&bridge.hashed("baseEvent"))))
}
