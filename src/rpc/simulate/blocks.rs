//! The run of a simulation: runs the calls of each block as transactions, and makes the headers of the blocks.

use alloc::vec::Vec;
use core::cmp::Ordering;

use alloy_primitives::{Address, B256, Bloom, U256};

use super::{
    ancestors::{SimulatedBlock, SimulatedCall, SimulatedHashes},
    input::{BlockInput, CallInput, SimulationInput},
    plan::BlockPlan,
    transfers::TransferLogs,
};
use crate::{
    consensus::{Network, Rule, receipts_root, root_format, transactions_root},
    engine::BlockHeader,
    exec::{
        BlockEnvironment, CallContext, CallStop, IndexedTransaction, Inspector, MAX_INIT_CODE, Simulation,
    },
    rpc::{error::RpcError, limits::MAX_RESPONSE, shared_gas::SharedGas, simulation_error::SimulationError},
    types::{Header, REMASC_ADDRESS, RawUint, Receipt, SealedHeader, SignedUint, Transaction},
};

/// A simulation that is running.
pub(super) struct Run<'r, 'a> {
    pub(super) network: &'r Network,
    /// The block of the chain below the first simulated block.
    pub(super) base: &'r BlockHeader,
    pub(super) input: &'r SimulationInput,
    /// The context of the first block.
    pub(super) context: &'r CallContext<'r>,
    pub(super) simulation: &'r mut Simulation<'a>,
    pub(super) gas: SharedGas,
    /// Bytes of output and logs that the calls may still add to the answer.
    pub(super) bytes_left: usize,
}

impl Run<'_, '_> {
    /// Runs all blocks. The outer error is a run that stopped, such as for missing state; the inner one is a rule that the
    /// simulation breaks, or an answer that is too long.
    pub(super) fn all(
        mut self,
        plans: &[BlockPlan],
    ) -> Result<Result<Vec<SimulatedBlock>, RpcError>, CallStop> {
        let mut blocks: Vec<SimulatedBlock> = Vec::new();
        for plan in plans {
            let calls = match self.block(plan, &blocks)? {
                Ok(calls) => calls,
                Err(error) => return Ok(Err(error)),
            };
            let parent = blocks.last().map_or(self.base.hash(), |block| block.header.hash());
            let header = self.header(&plan.environment, parent, &calls);
            blocks.push(SimulatedBlock { header, calls });
        }
        Ok(Ok(blocks))
    }

    /// Runs the calls of a block; the errors are those of [`Self::all`].
    fn block(
        &mut self,
        plan: &BlockPlan,
        blocks: &[SimulatedBlock],
    ) -> Result<Result<Vec<SimulatedCall>, RpcError>, CallStop> {
        let mut done = Vec::new();
        let Some(block) = plan.input.and_then(|index| self.input.blocks.get(index)) else {
            return Ok(Ok(done));
        };
        let BlockInput { state, calls, .. } = block;
        let hashes = SimulatedHashes { below: self.context.hashes, blocks };
        let context = CallContext {
            hashes: &hashes,
            block: &plan.environment,
            rules: self.network.rules(plan.environment.number),
            ..*self.context
        };
        self.simulation.begin_block();
        self.simulation.override_state(&context, state)?;
        let (mut gas_used, mut fees) = (0, U256::ZERO);
        for call in calls {
            let (sender, transaction) = match self.transaction(&context, call, gas_used) {
                Ok(checked) => checked,
                // The simulation has read missing state as zero, so that the error may be wrong. The result is discarded anyway,
                // and the other calls find more missing state.
                Err(_) if self.simulation.is_incomplete() => continue,
                Err(error) => return Ok(Err(error.into())),
            };
            let call = self.call(&context, done.len(), sender, transaction)?;
            gas_used = gas_used.saturating_add(call.run.gas_used);
            fees = fees.saturating_add(call.run.fee);
            self.gas.spend(call.run.gas_used);
            match self.bytes_left.checked_sub(answer_bytes(&call)) {
                Some(bytes_left) => self.bytes_left = bytes_left,
                None => return Ok(Err(RpcError::ResponseSize(MAX_RESPONSE))),
            }
            done.push(call);
        }
        // All fees of a block go to REMASC, the contract that pays miners later.
        if !fees.is_zero() {
            self.simulation.credit(REMASC_ADDRESS, fees);
        }
        Ok(Ok(done))
    }

    /// Runs a transaction, and collects its logs.
    fn call(
        &mut self,
        context: &CallContext<'_>,
        index: usize,
        sender: Address,
        transaction: Transaction,
    ) -> Result<SimulatedCall, CallStop> {
        let nonce = self.simulation.account(sender).nonce;
        let mut transfers = self.input.trace_transfers.then(TransferLogs::default);
        let inspector = transfers.as_mut().map(|transfers| -> &mut dyn Inspector { transfers });
        let item = IndexedTransaction { index, transaction: &transaction, sender };
        let run = self.simulation.run(context, item, inspector)?;
        // `created` is the address that a creation would get from the nonce before the run.
        let logs = match transfers {
            Some(transfers) => transfers.finish(&run, sender, &transaction, sender.create(nonce)),
            None => run.logs.clone(),
        };
        Ok(SimulatedCall { transaction, sender, run, logs })
    }

    /// Checks a call and makes it a transaction. Its gas limit is by default the gas that is left in the block.
    fn transaction(
        &mut self,
        context: &CallContext<'_>,
        call: &CallInput,
        used: u64,
    ) -> Result<(Address, Transaction), SimulationError> {
        let CallInput { message, nonce } = call;
        // A call without a sender is from the zero address.
        let from = message.from.unwrap_or_default();
        if self.input.validation {
            self.validate(context, call, from)?;
        }
        let size = message.data.len();
        if message.to.is_none() && size > MAX_INIT_CODE && context.rules.has(Rule::Rskip438) {
            return Err(SimulationError::InitCode { size, limit: MAX_INIT_CODE });
        }
        let limit = u64::try_from(context.block.gas_limit).unwrap_or(u64::MAX);
        let left = limit.saturating_sub(used);
        let gas = message.gas.unwrap_or(left);
        if gas > left {
            return Err(SimulationError::BlockGas { used, limit, gas });
        }
        let transaction = self.gas.transaction(self.simulation, context, message, *nonce, Some(gas))?;
        Ok((from, transaction))
    }

    /// Checks the nonce and the gas price, as a block does.
    fn validate(
        &mut self,
        context: &CallContext<'_>,
        call: &CallInput,
        from: Address,
    ) -> Result<(), SimulationError> {
        let expected = self.simulation.account(from).nonce;
        let given = call.nonce.unwrap_or(expected);
        match given.cmp(&expected) {
            Ordering::Less => return Err(SimulationError::NonceTooLow { from, given, expected }),
            Ordering::Greater => return Err(SimulationError::NonceTooHigh { from, given, expected }),
            Ordering::Equal => {}
        }
        let (price, minimum) = (call.message.gas_price, context.block.minimum_gas_price);
        if price < minimum {
            return Err(SimulationError::GasPrice { from, price, minimum });
        }
        Ok(())
    }

    /// The header of a simulated block. Its state root stays zero, because a root would need the whole state.
    fn header(&self, block: &BlockEnvironment, parent: B256, calls: &[SimulatedCall]) -> SealedHeader {
        let format = root_format(self.network, block.number);
        let transactions: Vec<Transaction> = calls.iter().map(|call| call.transaction.clone()).collect();
        let (mut receipts, mut gas_used, mut logs_bloom) = (Vec::<Receipt>::new(), 0, Bloom::ZERO);
        for call in calls {
            let receipt = call.run.receipt(gas_used);
            gas_used = receipt.cumulative_gas_used;
            logs_bloom |= receipt.logs_bloom;
            receipts.push(receipt);
        }
        Header {
            parent_hash: parent,
            coinbase: Some(block.coinbase),
            transactions_root: transactions_root(&transactions, format),
            receipts_root: receipts_root(&receipts, format),
            logs_bloom,
            difficulty: SignedUint::new(block.difficulty),
            gas_limit: RawUint::minimal(block.gas_limit),
            gas_used,
            timestamp: block.timestamp,
            paid_fees: calls.iter().fold(U256::ZERO, |sum, call| sum.saturating_add(call.run.fee)),
            minimum_gas_price: SignedUint::new(block.minimum_gas_price),
            ..Header::empty(self.network.header_shape(block.number), block.number)
        }
        .seal()
    }
}

/// Bytes of a call's output and of the data of its logs.
fn answer_bytes(call: &SimulatedCall) -> usize {
    let logs = call.logs.iter().map(|log| log.data.len());
    logs.fold(call.run.output.len(), usize::saturating_add)
}
