//! `eth_estimateGas`: finds the lowest gas limit with which a message succeeds.

use alloc::{borrow::Cow, collections::BTreeSet};

use alloy_primitives::{Address, Bytes, U256};

use super::call::{CallContext, CallMessage, call};
use super::limits::RunLimits;
use super::result::CallOutcome;
use super::stop::CallStop;
use crate::evm::{FrameClose, FrameStart, HaltReason, Inspector, intrinsic_gas};
use crate::state::{OverriddenState, StateError, StateOverride, StateReader};

/// The result of an estimate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// The message succeeds with this limit, and fails with one less. A transaction on the same state needs
    /// no more. Code that reads the gas left may also succeed with less, or fail with more.
    Gas(u64),
    /// The sender's balance is less than the value.
    InsufficientFunds,
    /// The message reverts with the highest possible gas limit.
    Revert {
        /// Revert data.
        output: Bytes,
    },
    /// The message halts with the highest possible gas limit.
    Halt {
        /// Reason of the failure.
        reason: HaltReason,
        /// The highest possible limit: the block's gas limit, the message's own limit, or what the sender can
        /// pay.
        cap: u64,
    },
}

/// Finds the lowest gas limit with which the message succeeds on this state and in this block.
///
/// The limit is at most `message.gas`, the block's gas limit, `limits.gas_cap` and what the sender can pay at
/// the message's gas price. As in a transaction, the gas is paid from the sender's balance before the run. A message without a
/// sender may have any value and any price.
pub fn estimate(
    context: &CallContext<'_>,
    message: &CallMessage,
    overrides: &StateOverride,
    limits: &RunLimits<'_>,
) -> Result<Estimate, CallStop> {
    let block = u64::try_from(context.block.gas_limit).unwrap_or(u64::MAX);
    let mut cap = message.gas.unwrap_or(u64::MAX).min(block).min(limits.gas_cap);
    let mut payer = None;
    if let Some(from) = message.from.filter(|_| limits.checks_funds) {
        let balance = balance(context, overrides, from)?;
        let Some(left) = balance.checked_sub(message.value) else { return Ok(Estimate::InsufficientFunds) };
        // At a price of zero nothing is paid and any gas is affordable.
        if let Some(affordable) = left.checked_div(message.gas_price) {
            cap = cap.min(u64::try_from(affordable).unwrap_or(u64::MAX));
            payer = Some((from, balance));
        }
    }
    let search = GasSearch { context, message, overrides, limits, payer };
    search.run(cap)
}

/// The balance of an account in wei, overrides included.
fn balance(context: &CallContext<'_>, overrides: &StateOverride, address: Address) -> Result<U256, CallStop> {
    let state = OverriddenState::new(context.state, overrides);
    match state.account(&address) {
        Ok(account) => Ok(account.map_or(U256::ZERO, |account| account.balance)),
        Err(StateError::Missing(key)) => {
            let mut keys = BTreeSet::new();
            keys.insert(key);
            Err(CallStop::Missing(keys))
        }
        Err(StateError::Corrupt { key, fault }) => Err(CallStop::Corrupt { key, fault }),
    }
}

/// The search for the lowest gas limit with which a message succeeds.
struct GasSearch<'a, 'l> {
    context: &'a CallContext<'a>,
    message: &'a CallMessage,
    overrides: &'a StateOverride,
    limits: &'a RunLimits<'l>,
    /// The account that pays for gas, and its balance.
    payer: Option<(Address, U256)>,
}

impl GasSearch<'_, '_> {
    /// Searches the lowest limit up to `cap`.
    fn run(&self, cap: u64) -> Result<Estimate, CallStop> {
        let mut spent = GasMeter::default();
        let outcome = self.run_with(cap, Some(&mut spent))?;
        let used = match outcome {
            CallOutcome::Success { gas_used, .. } => match spent.gas {
                // Refunds are credited after all gas has been paid.
                Some(gas) => gas.saturating_add(self.intrinsic()),
                None => gas_used,
            },
            CallOutcome::Revert { output, .. } => return Ok(Estimate::Revert { output }),
            CallOutcome::Halt { reason, .. } => return Ok(Estimate::Halt { reason, cap }),
        };
        // The gas spent is sufficient, unless a call then gets less gas than it requests, and the code depends on that.
        let used = used.min(cap);
        if self.succeeds(used)? {
            return Ok(Estimate::Gas(used));
        }
        self.narrow(used, cap)
    }

    /// Searches the lowest limit that succeeds, between `fails`, which fails, and `works`, which succeeds.
    fn narrow(&self, mut fails: u64, mut works: u64) -> Result<Estimate, CallStop> {
        // Usually only a little gas is missing, for instance a call's stipend of 2,300, so steps that double come first, and then
        // bisection.
        let mut stride = (fails / 64).max(2_300);
        loop {
            let probe = fails.saturating_add(stride);
            if probe >= works {
                break;
            }
            if self.succeeds(probe)? {
                works = probe;
                break;
            }
            (fails, stride) = (probe, stride.saturating_mul(2));
        }
        while works.saturating_sub(fails) > 1 {
            let middle = fails.midpoint(works);
            if self.succeeds(middle)? {
                works = middle;
            } else {
                fails = middle;
            }
        }
        Ok(Estimate::Gas(works))
    }

    /// Whether the message succeeds with this gas limit.
    fn succeeds(&self, gas: u64) -> Result<bool, CallStop> {
        Ok(matches!(self.run_with(gas, None)?, CallOutcome::Success { .. }))
    }

    /// Runs the message with this gas limit. `spent` measures the gas of the outermost frame.
    fn run_with(&self, gas: u64, spent: Option<&mut GasMeter>) -> Result<CallOutcome, CallStop> {
        let message = CallMessage { gas: Some(gas), ..self.message.clone() };
        let inspector = spent.map(|spent| spent as &mut dyn Inspector);
        let mut overrides = Cow::Borrowed(self.overrides);
        if let Some((from, balance)) = self.payer {
            let fee = message.gas_price.saturating_mul(U256::from(gas));
            let left = Some(balance.saturating_sub(fee));
            overrides.to_mut().accounts.entry(from).or_default().balance = left;
        }
        let result = call(self.context, &message, &overrides, self.limits, inspector)?;
        Ok(result.into_outcome())
    }

    /// The intrinsic gas of the message.
    fn intrinsic(&self) -> u64 {
        intrinsic_gas(&self.message.data, self.message.to.is_none(), self.context.rules)
    }
}

/// Gas spent by the outermost frame, before refunds.
#[derive(Default)]
struct GasMeter {
    /// Number of open frames.
    depth: usize,
    /// `None` until the outermost frame has ended.
    gas: Option<u64>,
}

impl Inspector for GasMeter {
    fn frame(&mut self, _: FrameStart) {
        self.depth = self.depth.saturating_add(1);
    }

    fn frame_end(&mut self, close: FrameClose) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            self.gas = Some(close.gas_used);
        }
    }
}
