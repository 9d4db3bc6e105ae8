//! The run of a transaction, mined or simulated: its outermost frame, and its result besides the state. `transaction.rs` and
//! `simulation.rs` use it.

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes};

use crate::evm::precompiles::Precompile;
use crate::evm::{DirectCallResult, DirectOutcome, FirstFrame, FrameEnd, HaltReason, Inspector};
use crate::types::{Log, Transaction};

/// The result of a run besides the state.
pub(super) struct RunEnd {
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on an exceptional halt.
    pub(super) failure: Option<Option<HaltReason>>,
    /// Return data, revert data, or the code of the new contract.
    pub(super) output: Bytes,
    pub(super) logs: Vec<Log>,
    /// Gas used before refunds.
    pub(super) spent: u64,
    /// Gas used after refunds, as the receipt states it.
    pub(super) gas_used: u64,
    /// Gas that is paid for. If a native contract that was called directly failed, all gas is paid for, which the receipt does not
    /// show.
    pub(super) gas_paid: u64,
    /// Whether the value was transferred.
    pub(super) transferred: bool,
}

impl RunEnd {
    /// A success without output and logs.
    pub(super) fn plain(gas_used: u64) -> Self {
        Self {
            failure: None,
            output: Bytes::new(),
            logs: Vec::new(),
            spent: gas_used,
            gas_used,
            gas_paid: gas_used,
            transferred: true,
        }
    }

    /// The result of code that ran with this gas limit.
    pub(super) fn of_code(end: FrameEnd, limit: u64) -> Self {
        let spent = limit.saturating_sub(end.gas_left);
        let gas_used = spent.saturating_sub(end.refund.min(spent / 2));
        Self {
            failure: end.failure,
            output: end.output,
            logs: end.logs.into_iter().map(receipt_log).collect(),
            spent,
            gas_used,
            gas_paid: gas_used,
            transferred: end.failure.is_none(),
        }
    }

    /// The result of a direct call of a native contract, for which `gas` of the gas limit was left. If the contract fails, the
    /// transaction counts as a success, costs its whole gas limit, and the value is not transferred.
    pub(super) fn of_native(end: DirectCallResult, limit: u64, gas: u64) -> Self {
        let gas_used = limit.saturating_sub(gas.saturating_sub(end.price));
        let logs = end.logs.into_iter().map(receipt_log).collect();
        match end.outcome {
            DirectOutcome::Done(output) => Self { output, logs, ..Self::plain(gas_used) },
            DirectOutcome::Failed => {
                Self { logs, gas_paid: limit, transferred: false, ..Self::plain(gas_used) }
            }
            DirectOutcome::TooExpensive => Self {
                failure: Some(Some(HaltReason::OutOfGas)),
                logs,
                transferred: false,
                ..Self::plain(limit)
            },
        }
    }
}

/// The outermost frame of a transaction, with this gas after the intrinsic gas.
pub(super) fn first_frame(transaction: &Transaction, sender: Address, gas: u64) -> FirstFrame {
    FirstFrame {
        from: Some(sender),
        to: transaction.to,
        value: transaction.value,
        data: transaction.data.clone(),
        gas,
    }
}

/// Reports the payments of a native contract that was called directly.
pub(super) fn report_payments(
    native: Precompile,
    end: &DirectCallResult,
    inspector: Option<&mut dyn Inspector>,
) {
    let Some(inspector) = inspector else { return };
    end.payments.iter().for_each(|(to, value)| inspector.payment(native.address(), *to, *value));
}

/// A log of a run in the form of receipts.
pub(super) fn receipt_log(log: alloy_primitives::Log) -> Log {
    let (topics, data) = log.data.split();
    Log { address: log.address, topics, data }
}
