//! What every transaction of a block sees.

use alloc::vec::Vec;

use alloy_primitives::{B256, U256};

use super::call::BlockEnvironment;
use crate::consensus::{Network, RuleSet};
use crate::evm::{RunContext, Setting};
use crate::types::{Address, Header, SealedHeader};

/// The ancestors of a block, on its own branch.
pub trait Ancestry {
    /// The ancestor at a height below the block's.
    fn header(&self, number: u64) -> Option<SealedHeader>;

    /// Its uncles, in the order in which it names them.
    fn uncles(&self, number: u64) -> Option<Vec<Header>>;

    /// Total difficulty, uncles included, up to that ancestor; only BlockHeader's
    /// `getCumulativeWork` asks for it.
    fn total_difficulty(&self, _number: u64) -> Option<U256> {
        None
    }

    /// Its hash.
    fn hash(&self, number: u64) -> Option<B256> {
        self.header(number).map(|header| header.hash())
    }
}

/// The block that is executed.
pub struct BlockContext<'a> {
    /// Its network.
    pub network: &'a Network,
    /// Rules at its height.
    pub rules: RuleSet,
    /// What its instructions see of it.
    pub environment: BlockEnvironment,
    /// Its ancestors.
    pub ancestry: &'a dyn Ancestry,
    /// Asked every few thousand instructions; `true` gives the block up.
    pub interrupt: &'a dyn Fn() -> bool,
}

impl<'a> BlockContext<'a> {
    /// The context of a block that nothing interrupts.
    pub fn new(network: &'a Network, environment: BlockEnvironment, ancestry: &'a dyn Ancestry) -> Self {
        let rules = network.rules(environment.number);
        Self { network, rules, environment, ancestry, interrupt: &|| false }
    }

    /// What the machine sees of the block.
    pub(super) fn setting(&self, origin: Address) -> Setting {
        Setting {
            chain_id: self.network.chain_id,
            number: self.environment.number,
            timestamp: self.environment.timestamp,
            coinbase: self.environment.coinbase,
            difficulty: self.environment.difficulty,
            origin,
        }
    }

    pub(super) fn run_context<'r>(&'r self, gas_price: U256) -> RunContext<'r> {
        let mut run = RunContext::new(self.rules, self.interrupt);
        run.gas_limit = self.environment.gas_limit;
        run.minimum_gas_price = self.environment.minimum_gas_price;
        run.gas_price = gas_price;
        run.fail_unsimulated = true;
        run
    }
}
