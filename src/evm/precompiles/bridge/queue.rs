//! The peg-out queue: requests for bitcoins that wait, the block of the next batch, and fee estimates. A batch is one Bitcoin transaction
//! that pays all waiting requests (RSKIP-271). Coins are the unspent Bitcoin outputs of a federation.

use alloc::vec::Vec;

use alloy_primitives::U256;

use super::super::abi::{Arg, bytes_result, int_result};
use super::NativeFailure;
use super::federation::{Federation, P2WSH_ERP, big_endian, number, number_cell};
use super::session::{Bridge, BridgeResult};
use crate::consensus::Rule;
use crate::types::rlp::{self, RlpReader};

/// Wei in a satoshi.
pub(super) const WEI_PER_SATOSHI: u64 = 10_000_000_000;

/// The whole satoshi in an amount of wei; the low 64 bits of the number.
pub(super) fn satoshi(wei: &U256) -> u64 {
    let whole = wei.checked_div(U256::from(WEI_PER_SATOSHI)).unwrap_or_default();
    whole.as_limbs().first().copied().unwrap_or(0)
}

/// A waiting peg-out request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PegoutRequest {
    /// Hash160 of the destination.
    pub(super) to: [u8; 20],
    /// Amount in satoshi.
    pub(super) amount: u64,
    /// Hash of the Rootstock transaction with the request (RSKIP-146).
    pub(super) transaction: Option<[u8; 32]>,
}

/// The storage cell of the Bridge with the release requests that have no transaction hash, as before RSKIP-146.
const PLAIN: &str = "releaseRequestQueue";
/// The storage cell of the Bridge with the release requests that have a transaction hash (RSKIP-146).
const HASHED: &str = "releaseRequestQueueWithTxHash";

impl Bridge<'_> {
    /// Reads the queue, and writes it back, including empty lists: the reference node writes each list that a call has read.
    pub(super) fn queue(&mut self) -> Result<Vec<PegoutRequest>, NativeFailure> {
        let mut queue = Vec::new();
        read(&self.named(PLAIN), false, &mut queue).ok_or(NativeFailure::Failed)?;
        if self.has(Rule::Rskip146) {
            read(&self.named(HASHED), true, &mut queue).ok_or(NativeFailure::Failed)?;
        }
        self.save_queue(&queue);
        Ok(queue)
    }

    /// Writes the queue. Requests with and without a transaction hash have separate cells.
    pub(super) fn save_queue(&mut self, queue: &[PegoutRequest]) {
        self.save_named(PLAIN, encode(queue, false));
        if self.has(Rule::Rskip146) {
            self.save_named(HASHED, encode(queue, true));
        }
    }

    /// The number of the block from which the next batch can be made (RSKIP-271). Also writes the number back, as the reference node does.
    pub(super) fn next_pegout(&mut self) -> u64 {
        let next = number(&self.named("nextPegoutHeight")).unwrap_or(0);
        self.save_named("nextPegoutHeight", number_cell(next));
        next
    }

    /// Whether the active federation has coins. Also writes the cell with them back, as the reference node does.
    pub(super) fn has_coins(&mut self) -> bool {
        let name = self.coins_cell();
        let cell = self.named(name);
        let empty = matches!(cell.as_ref(), [] | [0xc0]);
        self.save_named(name, if empty { alloc::vec![0xc0] } else { cell.to_vec() });
        !empty
    }

    /// Name of the cell with the coins of the active federation.
    fn coins_cell(&mut self) -> &'static str {
        let (constants, rules, height) = (self.constants, self.call.rules, self.call.block.number);
        if let Some(new) = Federation::stored("newFederation", &mut |slot| self.read(slot)) {
            let has_old = !self.named("oldFederation").is_empty();
            if has_old && !new.is_active(constants, rules, height) {
                return "oldFederationBtcUTXOs";
            }
        }
        self.new_coins_cell()
    }

    /// Name of the cell with the coins of the newest federation.
    fn new_coins_cell(&self) -> &'static str {
        use super::constants::Bitcoin;
        match (self.constants.bitcoin, self.has(Rule::Rskip284), self.has(Rule::Rskip293)) {
            (Bitcoin::Test, true, false) => "newFederationBtcUTXOsForTestnet",
            (Bitcoin::Test, true, true) => "newFedBtcUTXOsForTestnetPostHop",
            _ => "newFederationBtcUTXOs",
        }
    }

    /// Fee in satoshi of a peg-out transaction with this number of inputs and outputs.
    pub(super) fn pegout_fee(&mut self, inputs: u64, outputs: u64) -> Result<u64, NativeFailure> {
        let federation = self.active_federation();
        let script = federation.redeem_script(self.constants, self.call.rules);
        let signatures = federation.required() as u64;
        let size = if self.has(Rule::Rskip271) {
            transaction_size(federation.format == P2WSH_ERP, script.len() as u64, signatures, inputs, outputs)
        } else {
            old_transaction_size(script.len() as u64, signatures, inputs, outputs)
        };
        Ok(self.fee_per_kb().saturating_mul(size) / 1_000)
    }
}

/// Appends the requests of a cell to the queue; `hashed` says that the cell has transaction hashes. `None` if the cell does not decode.
fn read(cell: &[u8], hashed: bool, queue: &mut Vec<PegoutRequest>) -> Option<()> {
    if cell.is_empty() {
        return Some(());
    }
    let mut items = RlpReader::list(cell, "queue").ok()?;
    while !items.is_empty() {
        let to = items.next_str("destination").ok()?.try_into().ok()?;
        let amount = big_endian(items.next_str("amount").ok()?);
        let transaction = match hashed {
            true => Some(items.next_str("transaction").ok()?.try_into().ok()?),
            false => None,
        };
        queue.push(PegoutRequest { to, amount, transaction });
    }
    Some(())
}

/// The cell with those requests that have a transaction hash, or with those that have none.
fn encode(queue: &[PegoutRequest], hashed: bool) -> Vec<u8> {
    let mut items = Vec::new();
    for request in queue.iter().filter(|request| request.transaction.is_some() == hashed) {
        rlp::put_str(&mut items, &request.to);
        rlp::put_u64(&mut items, request.amount);
        if let Some(transaction) = &request.transaction {
            rlp::put_str(&mut items, transaction);
        }
    }
    let mut out = Vec::new();
    rlp::put_list(&mut out, &items);
    out
}

/// Virtual size in bytes of a peg-out transaction that pays to script addresses, as the reference node estimates it. With a witness the
/// size is a quarter of the weight.
fn transaction_size(segwit: bool, script: u64, signatures: u64, inputs: u64, outputs: u64) -> u64 {
    // The length of Bitcoin's encoding of a number.
    let count = |n: u64| if n < 253 { 1u64 } else { 3 };
    // A signature counts as 72 bytes.
    let signing = signatures.saturating_mul(72).saturating_mul(inputs);
    // Version, lock time and the count of inputs (9 bytes), the count of outputs; per output an amount of 8 bytes, a length and a
    // script of 23 bytes.
    let fixed = count(outputs).saturating_add(9).saturating_add(outputs.saturating_mul(32));
    if segwit {
        // The spent output of each input has 36 bytes: a transaction hash and an index.
        let base = fixed.saturating_add(inputs.saturating_mul(36));
        let total = base.saturating_add(signing).saturating_add(inputs.saturating_mul(script));
        return total.saturating_add(base.saturating_mul(3)) / 4;
    }
    // The spent output and the sequence number have 40 bytes.
    let input = count(script).saturating_add(40).saturating_add(script);
    fixed.saturating_add(inputs.saturating_mul(input)).saturating_add(signing)
}

/// The size in bytes of a peg-out transaction as the reference node estimates it before RSKIP-271.
fn old_transaction_size(script: u64, signatures: u64, inputs: u64, outputs: u64) -> u64 {
    let input = signatures.saturating_mul(72).saturating_add(script).saturating_add(41);
    inputs.saturating_mul(input).saturating_add(outputs.saturating_mul(35)).saturating_add(4)
}

/// `getStateForDebugging`: the RLP list of the best Bitcoin height, the coins, all peg-outs in progress (each cell as a string), and the
/// block of the next batch.
pub(super) fn debugging_state(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    let height = bridge.btc_head()?.height;
    let hashed = bridge.has(Rule::Rskip146);
    let cells = [
        bridge.new_coins_cell(),
        "rskTxsWaitingFS",
        if hashed { HASHED } else { PLAIN },
        if hashed { "releaseTransactionSetWithTxHash" } else { "releaseTransactionSet" },
    ];
    let mut items = Vec::new();
    rlp::put_u64(&mut items, height.unsigned_abs());
    for name in cells {
        let cell = bridge.named(name);
        rlp::put_str(&mut items, if cell.is_empty() { &[0xc0] } else { &cell });
    }
    let next = bridge.next_pegout();
    rlp::put_str(&mut items, &number_cell(next));
    let mut out = Vec::new();
    rlp::put_list(&mut out, &items);
    Ok(Some(bytes_result(&out)))
}

/// `getNextPegoutCreationBlockNumber`
pub(super) fn next_height(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(int_result(bridge.next_pegout() as i64)))
}

/// `getQueuedPegoutsCount`
pub(super) fn count(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    Ok(Some(int_result(bridge.queue()?.len() as i64)))
}

/// `getEstimatedFeesForNextPegOutEvent`: the fee in satoshi of the next batch with one more request. The reference node builds that
/// transaction (RSKIP-305). Without coins, the reference node estimates the fee from the number of inputs and outputs, as before RSKIP-305.
pub(super) fn next_fees(bridge: &mut Bridge<'_>, _: &[Arg<'_>]) -> BridgeResult {
    let waiting = bridge.queue()?.len() as u64;
    if waiting == 0 && !bridge.has(Rule::Rskip385) {
        return Ok(Some(int_result(0)));
    }
    if bridge.has(Rule::Rskip305) && bridge.has_coins() {
        return Err(NativeFailure::NotSimulated("getEstimatedFeesForNextPegOutEvent with coins"));
    }
    // Two inputs; outputs for the waiting requests, one more request, and the change.
    Ok(Some(int_result(bridge.pegout_fee(2, waiting.saturating_add(2))? as i64)))
}

/// `getEstimatedFeesForPegOutAmount`: the fee of a peg-out of this amount in wei. Fails below the minimum, and if there are no coins.
pub(super) fn amount_fees(bridge: &mut Bridge<'_>, args: &[Arg<'_>]) -> BridgeResult {
    let wei = args.first().map_or(U256::ZERO, Arg::word);
    // The reference node reads the number as signed and cuts the satoshi to 64 bits.
    let too_small = super::super::abi::is_negative(&wei)
        || (satoshi(&wei) as i64) < bridge.constants.minimum_pegout as i64;
    if too_small {
        return Err(NativeFailure::Failed);
    }
    bridge.queue()?;
    match bridge.has_coins() {
        true => Err(NativeFailure::NotSimulated("getEstimatedFeesForPegOutAmount with coins")),
        false => Err(NativeFailure::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_peg_out_transactions_on_regtest() {
        assert_eq!(transaction_size(true, 252, 2, 2, 2), 344);
        assert_eq!(transaction_size(true, 252, 2, 2, 3), 376);
    }
}
