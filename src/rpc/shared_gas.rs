//! The gas that the calls of one request share, and the checks of each call before it runs as a transaction. Simulations and
//! traced calls use it.

use alloy_primitives::U256;

use super::simulation_error::SimulationError;
use crate::{
    exec::{CallContext, CallMessage, Simulation, intrinsic_gas},
    types::Transaction,
};

/// The gas that all calls of a request may use together.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedGas {
    /// The gas cap of the request.
    cap: u64,
    /// The gas that no call has used yet.
    left: u64,
}

impl SharedGas {
    /// Gas up to the cap of a request.
    pub(super) fn new(cap: u64) -> Self {
        Self { cap, left: cap }
    }

    /// Subtracts the gas that a call has used.
    pub(super) fn spend(&mut self, used: u64) {
        self.left = self.left.saturating_sub(used);
    }

    /// A call as a transaction without a signature, with at most the gas that is left. Without a nonce, the transaction has the
    /// sender's next one; without gas, the cap of the request.
    ///
    /// # Errors
    /// The gas is below the intrinsic gas; too little gas is left; the sender does not have the value and the fee.
    pub(super) fn transaction(
        self,
        simulation: &mut Simulation<'_>,
        context: &CallContext<'_>,
        message: &CallMessage,
        nonce: Option<u64>,
        gas: Option<u64>,
    ) -> Result<Transaction, SimulationError> {
        let intrinsic = intrinsic_gas(&message.data, message.to.is_none(), context.rules);
        let gas = gas.unwrap_or(self.cap);
        if gas < intrinsic {
            return Err(SimulationError::IntrinsicGas { given: gas, needed: intrinsic });
        }
        if self.left < intrinsic {
            return Err(SimulationError::TotalGas(self.cap));
        }
        let gas = gas.min(self.left);
        // A call without a sender is from the zero address, as in `eth_call`.
        let from = message.from.unwrap_or_default();
        let account = simulation.account(from);
        let fee = message.gas_price.saturating_mul(U256::from(gas));
        let needed = message.value.saturating_add(fee);
        if account.balance < needed {
            return Err(SimulationError::Funds { from, balance: account.balance, needed });
        }
        Ok(message.unsigned(nonce.unwrap_or(account.nonce), gas))
    }
}
