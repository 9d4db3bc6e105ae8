//! Logs of value transfers, for `traceTransfers`.

use alloc::{vec, vec::Vec};

use alloy_primitives::{Address, B256, Log as RawLog, U256, address, b256};

use crate::{
    exec::{FrameClose, FrameKind, FrameStart, Inspector, SimulatedRun},
    types::{Log, Transaction},
};

/// The address from which transfers are logged, as in execution-apis (ERC-7528).
const NATIVE_ASSET: Address = address!("eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee");

/// Keccak-256 of `Transfer(address,address,uint256)`.
const TRANSFER: B256 = b256!("ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

/// Collects the logs of a transaction, and one for each transfer of value, in order.
#[derive(Default)]
pub(super) struct TransferLogs {
    open: Vec<OpenFrame>,
    /// Whether the machine has reported the outermost frame.
    reported: bool,
    logs: Vec<Log>,
}

/// A frame whose logs are dropped if it fails.
struct OpenFrame {
    native: bool,
    /// The sender, the receiver if it is known, and the value.
    transfer: Option<(Address, Option<Address>, U256)>,
    logs: Vec<Log>,
}

fn transfer(from: Address, to: Address, value: U256) -> Log {
    let topics = vec![TRANSFER, from.into_word(), to.into_word()];
    Log { address: NATIVE_ASSET, topics, data: value.to_be_bytes_vec().into() }
}

impl TransferLogs {
    /// The logs of a transaction that has run. One without a frame is a call of a native contract, or a creation without
    /// code.
    pub(super) fn finish(
        self,
        run: &SimulatedRun,
        sender: Address,
        transaction: &Transaction,
        created: Address,
    ) -> Vec<Log> {
        if self.reported {
            return self.logs;
        }
        let value = transaction.value;
        let receiver = transaction.to.unwrap_or(created);
        let moved = (run.transferred && !value.is_zero()).then(|| transfer(sender, receiver, value));
        moved.into_iter().chain(self.logs).chain(run.logs.iter().cloned()).collect()
    }

    fn push(&mut self, log: Log) {
        match self.open.last_mut() {
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
        self.reported = true;
        let moves = matches!(start.kind, FrameKind::Call | FrameKind::Create | FrameKind::Create2);
        let transfer = (moves && !start.value.is_zero()).then_some((start.from, start.to, start.value));
        self.open.push(OpenFrame { native: start.native, transfer, logs: Vec::new() });
    }

    fn frame_end(&mut self, close: FrameClose) {
        let Some(frame) = self.open.pop() else { return };
        if close.failure.is_none() {
            if let Some((from, to, value)) = frame.transfer
                && let Some(to) = to.or(close.created)
            {
                self.push(transfer(from, to, value));
            }
        } else if !frame.native {
            return;
        }
        // The logs of a native contract stay if it fails.
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
