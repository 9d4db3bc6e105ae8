//! The option `traceTransfers` of `eth_simulateV1`: value transfers are shown as logs like those of an ERC-20 token.

use alloc::{vec, vec::Vec};

use alloy_primitives::{Address, B256, Log as RawLog, U256, address, b256};

use crate::{
    exec::{FrameClose, FrameKind, FrameStart, Inspector, SimulatedRun},
    types::{Log, Transaction},
};

/// The address from which transfers are logged, as in execution-apis (ERC-7528).
const NATIVE_ASSET: Address = address!("eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");

/// First topic of a transfer's log: Keccak-256 of `Transfer(address,address,uint256)`.
const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

/// Collects the logs of a transaction, and one for each transfer of value, in order.
#[derive(Default)]
pub(super) struct TransferLogs {
    /// The calls and creations that have not ended, outermost first.
    open_frames: Vec<OpenFrame>,
    /// Whether the inspector has seen the outermost frame.
    has_frame: bool,
    /// The logs of ended frames.
    logs: Vec<Log>,
}

/// A call or creation that has not ended. Its logs are dropped if it fails, unless it is a call of a native contract.
struct OpenFrame {
    /// Whether a native contract is called.
    native: bool,
    /// The sender, the receiver if it is known, and the value.
    transfer: Option<(Address, Option<Address>, U256)>,
    logs: Vec<Log>,
}

/// The log of a transfer.
fn transfer(from: Address, to: Address, value: U256) -> Log {
    let topics = vec![TRANSFER, from.into_word(), to.into_word()];
    Log { address: NATIVE_ASSET, topics, data: value.to_be_bytes_vec().into() }
}

impl TransferLogs {
    /// The logs of a transaction that has run. `created` is the address of the contract if it is a creation. A transaction
    /// without a frame is a call of a native contract or a creation without code, which no inspector sees.
    pub(super) fn finish(
        self,
        run: &SimulatedRun,
        sender: Address,
        transaction: &Transaction,
        created: Address,
    ) -> Vec<Log> {
        if self.has_frame {
            return self.logs;
        }
        let value = transaction.value;
        let receiver = transaction.to.unwrap_or(created);
        let outer = (run.transferred && !value.is_zero()).then(|| transfer(sender, receiver, value));
        outer.into_iter().chain(self.logs).chain(run.logs.iter().cloned()).collect()
    }

    /// Adds a log to the innermost frame.
    fn push(&mut self, log: Log) {
        match self.open_frames.last_mut() {
            Some(frame) => frame.logs.push(log),
            None => self.logs.push(log),
        }
    }
}

impl Inspector for TransferLogs {
    fn wants_steps(&self) -> bool {
        // Logs are reported with steps.
        true
    }

    fn frame(&mut self, start: FrameStart) {
        self.has_frame = true;
        // DELEGATECALL and CALLCODE move no value to another account, STATICCALL none at all.
        let moves = matches!(start.kind, FrameKind::Call | FrameKind::Create | FrameKind::Create2);
        let transfer = (moves && !start.value.is_zero()).then_some((start.from, start.to, start.value));
        self.open_frames.push(OpenFrame { native: start.native, transfer, logs: Vec::new() });
    }

    fn frame_end(&mut self, close: FrameClose) {
        let Some(frame) = self.open_frames.pop() else { return };
        if close.failure.is_none() {
            if let Some((from, to, value)) = frame.transfer
                && let Some(to) = to.or(close.created)
            {
                self.push(transfer(from, to, value));
            }
        } else if !frame.native {
            return;
        }
        // The logs of a native contract stay even if its call fails.
        frame.logs.into_iter().for_each(|log| self.push(log));
    }

    fn self_destruct(&mut self, contract: Address, beneficiary: Address, balance: U256) {
        if !balance.is_zero() && contract != beneficiary {
            self.push(transfer(contract, beneficiary, balance));
        }
    }

    fn payment(&mut self, from: Address, to: Address, value: U256) {
        self.push(transfer(from, to, value));
    }

    fn log(&mut self, log: &RawLog) {
        let topics = log.data.topics().to_vec();
        self.push(Log { address: log.address, topics, data: log.data.data.clone() });
    }
}
