//! The context of a block that is executed or built: rules, fields and ancestors, shared by all its transactions.

use alloc::vec::Vec;

use alloy_primitives::{B256, U256};

use super::call::BlockEnvironment;
use crate::consensus::{Network, RuleSet};
use crate::evm::{RunContext, RunEnvironment};
use crate::types::{Address, Header, SealedHeader};

/// The ancestors of a block on its own branch.
pub trait Ancestry {
    /// The ancestor at a height below the block.
    fn header(&self, number: u64) -> Option<SealedHeader>;

    /// The uncles of an ancestor, in the order of its list.
    fn uncles(&self, number: u64) -> Option<Vec<Header>>;

    /// Total difficulty of the chain, uncles included, up to an ancestor. Only the method `getCumulativeWork` of the native contract
    /// BlockHeader uses it.
    fn total_difficulty(&self, _number: u64) -> Option<U256> {
        None
    }

    /// The hash of an ancestor.
    fn hash(&self, number: u64) -> Option<B256> {
        self.header(number).map(|header| header.hash())
    }

    /// The oldest ancestor whose fees REMASC distributes. It is block 1, except on a development chain that begins at a block
    /// of another network, of which not all ancestors are known.
    fn first_rewarded_block(&self) -> u64 {
        1
    }
}

/// The effect of a call to a method of a native contract that this version does not implement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnsimulated {
    /// The execution ends with [`BlockError::NotSimulated`](super::BlockError::NotSimulated). For callers that return what an observer
    /// sees, such as traces: no header commits to it, so a wrong result would not be noticed.
    #[default]
    Refuse,
    /// The call fails, and [`ExecutedBlock::unsimulated`](super::ExecutedBlock::unsimulated) names the method. For callers that compare
    /// the result with a header, or make the block themselves.
    Fail,
}

/// The block being executed.
pub struct BlockContext<'a> {
    /// Network of the block.
    pub network: &'a Network,
    /// Rules at the height of the block.
    pub rules: RuleSet,
    /// Fields of the block that instructions can read.
    pub environment: BlockEnvironment,
    /// Ancestors of the block.
    pub ancestry: &'a dyn Ancestry,
    /// Called every few thousand instructions; `true` aborts the block.
    pub interrupt: &'a dyn Fn() -> bool,
    /// The effect of a call to a method that is not implemented.
    pub unsimulated: OnUnsimulated,
    /// Recovers the senders of the block's transactions with the host's threads, if the caller does not give the senders.
    pub recovery: Option<&'a dyn super::Recovery>,
}

impl<'a> BlockContext<'a> {
    /// Creates the context of a block that is never interrupted, and that is refused if it calls a method that is not
    /// implemented.
    pub fn new(network: &'a Network, environment: BlockEnvironment, ancestry: &'a dyn Ancestry) -> Self {
        let rules = network.rules(environment.number);
        Self {
            network,
            rules,
            environment,
            ancestry,
            interrupt: &|| false,
            unsimulated: OnUnsimulated::Refuse,
            recovery: None,
        }
    }

    /// The same context with other ancestors.
    pub(super) fn with_ancestry<'b>(&'b self, ancestry: &'b dyn Ancestry) -> BlockContext<'b> {
        BlockContext { environment: self.environment.clone(), ancestry, ..*self }
    }

    /// The fields of the block for the machine.
    pub(super) fn run_environment(&self, origin: Address) -> RunEnvironment {
        RunEnvironment {
            chain_id: self.network.chain_id,
            number: self.environment.number,
            timestamp: self.environment.timestamp,
            coinbase: self.environment.coinbase,
            difficulty: self.environment.difficulty,
            origin,
        }
    }

    /// The context of a run at this gas price in wei.
    pub(super) fn run_context<'r>(&'r self, gas_price: U256) -> RunContext<'r> {
        let mut run = RunContext::new(self.rules, self.interrupt);
        run.gas_limit = self.environment.gas_limit;
        run.minimum_gas_price = self.environment.minimum_gas_price;
        run.gas_price = gas_price;
        run.fail_unsimulated = self.unsimulated == OnUnsimulated::Fail;
        run
    }
}
