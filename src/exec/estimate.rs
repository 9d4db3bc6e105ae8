//! `eth_estimateGas`: the least gas limit with which a message succeeds.

use alloc::borrow::Cow;

use alloy_primitives::{Address, Bytes, U256};

use super::call::{call_watched, CallContext, CallMessage};
use super::limits::RunLimits;
use super::result::{CallOutcome, CallStop};
use crate::evm::{intrinsic_gas, FrameClose, FrameStart, HaltReason, Inspector};
use crate::state::{OverriddenState, StateError, StateOverride, StateReader};

/// What an estimate ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// The message succeeds with this limit, and fails with one less: a transaction on the same
    /// state needs no more. Programs that look at the gas they have left may succeed with less
    /// still, or fail with more.
    Gas(u64),
    /// The sender has less than the value.
    InsufficientFunds,
    /// It reverts, however much gas it gets.
    Revert {
        /// Revert data.
        output: Bytes,
    },
    /// It fails with all the gas it may have.
    Halt {
        /// Why.
        reason: HaltReason,
        /// That gas: the block's gas limit, what was given, or what the sender can pay.
        cap: u64,
    },
}

/// Finds the least gas limit with which the message succeeds on this state and in this block.
///
/// `message.gas` bounds the search, and so do the block's gas limit, `limits.gas_cap` and what the
/// sender can pay for at the message's gas price. As for a transaction, that price is taken from the
/// sender's balance before the run.
pub fn estimate(
    context: &CallContext<'_>,
    message: &CallMessage,
    overrides: &StateOverride,
    limits: &RunLimits<'_>,
) -> Result<Estimate, CallStop> {
    let block = u64::try_from(context.block.gas_limit).unwrap_or(u64::MAX);
    let mut cap = message.gas.unwrap_or(u64::MAX).min(block).min(limits.gas_cap);
    let mut purse = None;
    if let Some(from) = message.from {
        let balance = balance(context, overrides, from)?;
        let Some(left) = balance.checked_sub(message.value) else { return Ok(Estimate::InsufficientFunds) };
        if let Some(affordable) = left.checked_div(message.gas_price) {
            cap = cap.min(u64::try_from(affordable).unwrap_or(u64::MAX));
            purse = Some((from, balance));
        }
    }
    let search = Search { context, message, overrides, limits, purse };
    search.run(cap)
}

fn balance(context: &CallContext<'_>, overrides: &StateOverride, address: Address) -> Result<U256, CallStop> {
    let state = OverriddenState::new(context.state, overrides);
    match state.account(&address) {
        Ok(account) => Ok(account.map_or(U256::ZERO, |account| account.balance)),
        Err(StateError::Missing(key)) => Err(CallStop::Lacking([key].into())),
        Err(StateError::Corrupt { key, fault }) => Err(CallStop::Corrupt { key, fault }),
    }
}

struct Search<'a, 'l> {
    context: &'a CallContext<'a>,
    message: &'a CallMessage,
    overrides: &'a StateOverride,
    limits: &'a RunLimits<'l>,
    /// Who pays for gas, and their balance.
    purse: Option<(Address, U256)>,
}

impl Search<'_, '_> {
    fn run(&self, cap: u64) -> Result<Estimate, CallStop> {
        let mut spent = Spent::default();
        let outcome = self.attempt(cap, Some(&mut spent))?;
        let used = match outcome {
            CallOutcome::Success { gas_used, .. } => match spent.gas {
                // Refunds come after everything is paid.
                Some(gas) => gas.saturating_add(self.intrinsic()),
                None => gas_used,
            },
            CallOutcome::Revert { output, .. } => return Ok(Estimate::Revert { output }),
            CallOutcome::Halt { reason, .. } => return Ok(Estimate::Halt { reason, cap }),
        };
        // What the run spent is enough, unless a call was given less than it asked for and noticed.
        let used = used.min(cap);
        if self.succeeds(used)? {
            return Ok(Estimate::Gas(used));
        }
        self.narrow(used, cap)
    }

    /// The least limit above `fails` that succeeds; `works` is known to.
    fn narrow(&self, mut fails: u64, mut works: u64) -> Result<Estimate, CallStop> {
        // Little is missing as a rule: strides of growing length first, then halves.
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

    fn succeeds(&self, gas: u64) -> Result<bool, CallStop> {
        Ok(matches!(self.attempt(gas, None)?, CallOutcome::Success { .. }))
    }

    fn attempt(&self, gas: u64, spent: Option<&mut Spent>) -> Result<CallOutcome, CallStop> {
        let message = CallMessage { gas: Some(gas), ..self.message.clone() };
        let inspector = spent.map(|spent| spent as &mut dyn Inspector);
        let mut overrides = Cow::Borrowed(self.overrides);
        if let Some((from, balance)) = self.purse {
            let fee = message.gas_price.saturating_mul(U256::from(gas));
            let left = Some(balance.saturating_sub(fee));
            overrides.to_mut().accounts.entry(from).or_default().balance = left;
        }
        let result = call_watched(self.context, &message, &overrides, self.limits, inspector)?;
        Ok(result.into_outcome())
    }

    fn intrinsic(&self) -> u64 {
        intrinsic_gas(&self.message.data, self.message.to.is_none(), self.context.rules)
    }
}

/// Gas of the outermost frame, refunds not taken off.
#[derive(Default)]
struct Spent {
    depth: usize,
    gas: Option<u64>,
}

impl Inspector for Spent {
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
