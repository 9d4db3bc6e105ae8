//! What a development chain starts from.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{address, uint, Address, Bytes, U256};

use super::key::PrivateKey;
use super::mnemonic::{Mnemonic, DEFAULT_MNEMONIC};
use super::pool::PoolRules;
use super::recipe::Recipe;
use crate::consensus::genesis::{Allocation, Genesis};
use crate::consensus::Network;
use crate::exec::{CallPolicy, GenesisBlock};

/// Who gets the fees by default: the reference's regtest miner.
pub const DEFAULT_COINBASE: Address = address!("ec4ddeb4380ad69b3e509baad9f158cdf4e4681d");
/// Accounts of the mnemonic by default.
pub const DEFAULT_ACCOUNTS: u32 = 10;
/// Their balance by default: 10,000 RBTC in wei, as anvil and hardhat have it in ether.
pub const DEFAULT_BALANCE: U256 = uint!(10_000_000_000_000_000_000_000_U256);
/// Blocks below the head whose states are kept by default.
pub const DEFAULT_HISTORY: u64 = 10_000;
/// The gas limit of blocks by default, that of the genesis.
pub const DEFAULT_GAS_LIMIT: u64 = 10_000_000;
/// The gas limit that the reference's regtest miner moves to under every rule set (`targetgaslimit`).
const REFERENCE_GAS_LIMIT: u64 = 7_500_000;
/// The seed words of the reference's regtest accounts.
const COWS: [&str; 10] = ["cow", "cow1", "cow2", "cow3", "cow4", "cow5", "cow6", "cow7", "cow8", "cow9"];

/// When blocks are mined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mining {
    /// One for each transaction, at once.
    Instant,
    /// One every so many seconds, when the host's clock says so.
    Interval(u64),
    /// Only when asked to.
    Manual,
}

/// Everything a development chain starts from.
#[derive(Debug, Clone)]
pub struct DevConfig {
    /// The network; its genesis is [`Self::genesis`].
    pub network: Arc<Network>,
    /// Block 0.
    pub genesis: GenesisBlock,
    /// Keys that are held, in the order of `eth_accounts`.
    pub keys: Vec<PrivateKey>,
    /// When blocks are mined.
    pub mining: Mining,
    /// Blocks below the head whose states are kept; all without a limit.
    pub history: Option<u64>,
    /// What the miner decides.
    pub recipe: Recipe,
    /// Numbers of the pool.
    pub pool: PoolRules,
    /// Whether a transaction that reverts while mining is instant is reported as an error, as the reference does,
    /// instead of by its hash.
    pub report_reverts: bool,
    /// What the host decides about calls.
    pub policy: CallPolicy,
    /// Name and version, five parts separated by `/`.
    pub version: String,
}

/// Accounts that a development chain starts with.
#[derive(Debug, Clone)]
pub struct DevAccounts {
    /// The phrase they are derived from.
    pub mnemonic: String,
    /// How many.
    pub count: u32,
    /// Balance of each in wei.
    pub balance: U256,
}

impl Default for DevAccounts {
    fn default() -> Self {
        Self { mnemonic: DEFAULT_MNEMONIC.into(), count: DEFAULT_ACCOUNTS, balance: DEFAULT_BALANCE }
    }
}

impl DevAccounts {
    /// The keys; none of a phrase whose keys are out of range.
    #[must_use]
    pub fn keys(&self) -> Vec<PrivateKey> {
        let mnemonic = Mnemonic::new(&self.mnemonic);
        mnemonic.iter().flat_map(|mnemonic| (0..self.count).filter_map(|index| mnemonic.key(index))).collect()
    }
}

/// The reference's regtest keys, "cow" to "cow9".
#[must_use]
pub fn cow_keys() -> Vec<PrivateKey> {
    COWS.iter().filter_map(|seed| PrivateKey::from_seed(seed)).collect()
}

impl DevConfig {
    /// Regtest's rules; the mnemonic's accounts are funded, and the reference's "cow" accounts beside them.
    #[must_use]
    pub fn new(accounts: &DevAccounts) -> Self {
        Self::on(Network::regtest(), accounts)
    }

    /// As [`Self::new`], under the rules of another network.
    #[must_use]
    pub fn on(mut network: Network, accounts: &DevAccounts) -> Self {
        let mut keys = accounts.keys();
        let genesis = Genesis::regtest();
        let funded = keys.iter().map(|key| Allocation {
            address: key.address(),
            balance: accounts.balance,
            ..Allocation::default()
        });
        let funded: Vec<Allocation> = funded.collect();
        let mut alloc = genesis.alloc.clone();
        alloc.retain(|known| !funded.iter().any(|new| new.address == known.address));
        alloc.extend(funded);
        keys.extend(cow_keys());
        let genesis = GenesisBlock::new(&genesis.with_alloc(alloc), &network);
        network.genesis_hash = genesis.header.hash();
        Self::from_genesis(network, genesis, keys)
    }

    /// The reference's own regtest chain: its genesis byte for byte, its accounts, its gas limit.
    #[must_use]
    pub fn reference() -> Self {
        Self::reference_on(Network::regtest())
    }

    /// As [`Self::reference`], under the rules of another network: the state of block 0, and so its
    /// hash, depends on the native contracts that these rules bring.
    #[must_use]
    pub fn reference_on(mut network: Network) -> Self {
        let genesis = GenesisBlock::new(&Genesis::regtest(), &network);
        network.genesis_hash = genesis.header.hash();
        let mut config = Self::from_genesis(network, genesis, cow_keys());
        config.recipe.gas_limit = REFERENCE_GAS_LIMIT;
        config
    }

    /// A chain on a genesis of one's own; the network's genesis hash must be that of the block.
    #[must_use]
    pub fn from_genesis(network: Network, genesis: GenesisBlock, keys: Vec<PrivateKey>) -> Self {
        let gas_limit = u64::try_from(genesis.header.gas_limit.value()).unwrap_or(DEFAULT_GAS_LIMIT);
        let recipe = Recipe {
            coinbase: DEFAULT_COINBASE,
            extra_data: Bytes::from_static(b"rootlight"),
            gas_limit,
            minimum_gas_price: genesis.header.minimum_gas_price.value(),
            uncles: true,
        };
        Self {
            network: Arc::new(network),
            genesis,
            keys,
            mining: Mining::Instant,
            history: Some(DEFAULT_HISTORY),
            recipe,
            pool: PoolRules::default(),
            report_reverts: true,
            policy: CallPolicy::default(),
            version: "Rootlight/0.1.0/any/Rust/dev".into(),
        }
    }
}
