//! The Bridge's methods that add Bitcoin headers to its cells. The methods are simulated for the regression test network only, where the
//! difficulty is constant and times are not checked.

use alloy_primitives::{B256, U256};

use super::super::NativeFailure;
use super::super::constants::Bitcoin;
use super::super::federation::{number, number_cell};
use super::super::session::{Bridge, BridgeResult};
use super::super::store::{HEADER, StoredHeader};
use super::code;
use crate::consensus::Rule;
use crate::consensus::bitcoin::{double_sha256, hash_number, reversed};
use crate::evm::precompiles::abi::Arg;

/// Least seconds between two headers received by `receiveHeader`, which is open to all callers.
const INTERVAL: i64 = 300;
/// Most blocks that a header for `receiveHeader` may be below the best header.
const MAX_DEPTH: i64 = 25;
/// Name of the cell with the time of the last header received by `receiveHeader`.
const LAST: &str = "receiveHeadersLastTimestamp";
/// Highest target of the regression test network, in compact form.
const MAX_BITS: u32 = 0x207f_ffff;

/// A header to be added to the store.
struct NewHeader([u8; HEADER]);

impl NewHeader {
    /// The hash in display order.
    fn hash(&self) -> B256 {
        reversed(&double_sha256(&self.0))
    }

    /// The hash of the parent, in display order.
    fn previous(&self) -> B256 {
        self.stored(U256::ZERO, 0).previous()
    }

    /// The header as the store has it. `work` is the chain work up to this header.
    fn stored(&self, work: U256, height: i64) -> StoredHeader {
        StoredHeader { work, height, header: self.0 }
    }
}

/// The target that a header states, in compact form.
fn bits(header: &[u8; HEADER]) -> u32 {
    header.get(72..).and_then(|rest| rest.first_chunk()).map_or(0, |bits| u32::from_le_bytes(*bits))
}

/// The target in compact form as a number: 3 bytes of mantissa, whose top bit is a sign, and 1 byte of length. `None` if the number is
/// zero, negative or has more than 256 bits.
fn target(bits: u32) -> Option<U256> {
    let mantissa = bits & 0x007f_ffff;
    if bits & 0x0080_0000 != 0 || mantissa == 0 {
        return None;
    }
    let shift = (bits >> 24).checked_sub(3);
    match shift {
        Some(bytes @ 0..=29) => Some(U256::from(mantissa).wrapping_shl(bytes.saturating_mul(8) as usize)),
        Some(_) => None,
        None => Some(U256::from(mantissa >> 3u32.saturating_sub(bits >> 24).saturating_mul(8))),
    }
}

/// Expected number of hashes for a target.
fn work(target: U256) -> U256 {
    // 2^256 / (target + 1), computed as (2^256 - target - 1) / (target + 1) + 1, which fits 256 bits.
    let next = target.saturating_add(U256::from(1));
    (!target).checked_div(next).unwrap_or_default().saturating_add(U256::from(1))
}

impl Bridge<'_> {
    /// Fails with the method's name except on the regression test network, whose headers are the only ones
    /// checked here.
    fn check_network(&self, method: &'static str) -> Result<(), NativeFailure> {
        match self.constants.bitcoin {
            Bitcoin::Regtest => Ok(()),
            Bitcoin::Main | Bitcoin::Test => Err(NativeFailure::NotSimulated(method)),
        }
    }

    /// Adds a header whose parent is in the store. `None` if the header breaks a rule.
    fn add_header(&mut self, new: &NewHeader) -> Result<Option<()>, NativeFailure> {
        let head = self.btc_head()?;
        if head.header == new.0 {
            return Ok(Some(()));
        }
        let Some(parent) = self.btc_block(&new.previous()) else { return Ok(None) };
        let limit = target(MAX_BITS).unwrap_or_default();
        let stated = target(bits(&new.0)).filter(|target| !target.is_zero() && *target <= limit);
        let Some(target) = stated.filter(|target| hash_number(&double_sha256(&new.0)) <= *target) else {
            return Ok(None);
        };
        if bits(&parent.header) != bits(&new.0) {
            return Ok(None);
        }
        let block = new.stored(parent.work.saturating_add(work(target)), parent.height.saturating_add(1));
        if parent == head {
            self.put(&block);
            self.set_head(&block);
            return Ok(Some(()));
        }
        let best = block.work > head.work;
        // If the header is already stored, this writes the same bytes again.
        self.put(&block);
        if best {
            self.index_branch(parent, head);
            self.set_head(&block);
        }
        Ok(Some(()))
    }

    /// Indexes a branch that has become the best one, down to its common ancestor with the old one.
    fn index_branch(&mut self, mut new: StoredHeader, mut old: StoredHeader) {
        while new != old {
            if new.height >= old.height {
                self.index(&new);
                let Some(below) = self.below(&new) else { return };
                new = below;
            } else {
                let Some(below) = self.below(&old) else { return };
                old = below;
            }
        }
    }
}

/// `receiveHeader`: 0, or an error code: -1 if the last header came less than [`INTERVAL`] ago, -2 if the header is too far below the best
/// one, -3 if the store does not have its parent, -4 if the store has the header, -20 if it has a wrong length, -99 if it breaks a rule.
pub(in super::super) fn receive_one(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let Ok(header) = args.first().map_or(&[][..], Arg::bytes).try_into() else { return code(-20) };
    bridge.check_network("receiveHeader")?;
    let new = NewHeader(header);
    let head = bridge.btc_head()?;
    if bridge.btc_block(&new.hash()).is_some() {
        return code(-4);
    }
    let now = bridge.call.block.timestamp;
    let last = number(&bridge.named(LAST));
    if last.is_some_and(|last| (now as i64).saturating_sub(last as i64) < INTERVAL) {
        return code(-1);
    }
    let Some(parent) = bridge.btc_block(&new.previous()) else { return code(-3) };
    if head.height.saturating_sub(parent.height).saturating_sub(1) > MAX_DEPTH {
        return code(-2);
    }
    if bridge.add_header(&new)?.is_none() {
        return code(-99);
    }
    if now > 0 {
        bridge.save_named(LAST, number_cell(now));
    }
    code(0)
}

/// `receiveHeaders`: open to all callers between RSKIP-124 and RSKIP-200, otherwise reserved for federators.
/// Headers that break a rule are skipped.
pub(in super::super) fn receive_all(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let public = bridge.has(Rule::Rskip124) && !bridge.has(Rule::Rskip200);
    if !public && !bridge.is_federator() {
        return Err(NativeFailure::Failed);
    }
    let headers = args.first().map_or(&[][..], Arg::list);
    let headers: Result<alloc::vec::Vec<[u8; HEADER]>, _> =
        headers.iter().map(|header| (*header).try_into()).collect();
    let headers = headers.map_err(|_| NativeFailure::Failed)?;
    bridge.check_network("receiveHeaders")?;
    bridge.btc_head()?;
    for header in headers {
        bridge.add_header(&NewHeader(header))?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_work_of_known_compact_bits() {
        assert_eq!(work(target(MAX_BITS).unwrap()), U256::from(2));
        assert_eq!(work(target(0x1d00_ffff).unwrap()), U256::from(0x1_0001_0001u64));
        assert_eq!(target(0x2080_0000), None, "negative");
        assert_eq!(target(0x0300_0001), Some(U256::from(1)));
        assert_eq!(target(0x0100_0000), None);
    }
}
