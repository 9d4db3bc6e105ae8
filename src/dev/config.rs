//! The configuration of a development chain ([`DevConfig`]): [`super::DevOptions`] makes it from the options of users, and
//! [`super::DevChain::new`] begins the chain.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256, address, uint};

use super::key::PrivateKey;
use super::miner_settings::MinerSettings;
use super::mnemonic::{DEFAULT_MNEMONIC, Mnemonic};
use crate::consensus::Network;
use crate::consensus::genesis::{Allocation, Genesis};
use crate::exec::{CallPolicy, GenesisBlock};
use crate::local::ForkBase;
use crate::state::{Account, World};
use crate::trie::Trie;

/// The default recipient of fees: the reference node's regtest miner.
pub const DEFAULT_COINBASE: Address = address!("ec4ddeb4380ad69b3e509baad9f158cdf4e4681d");
/// The default number of accounts derived from the mnemonic.
pub const DEFAULT_ACCOUNTS: u32 = 10;
/// The default balance of these accounts in wei: 10,000 RBTC, as anvil and hardhat give 10,000 ether.
pub const DEFAULT_BALANCE: U256 = uint!(10_000_000_000_000_000_000_000_U256);
/// The default number of blocks below the head whose states are kept, which bounds the memory of a chain that mines for long.
pub const DEFAULT_HISTORY: u64 = 10_000;
/// The default gas limit of blocks, which is that of the genesis block.
pub const DEFAULT_GAS_LIMIT: u64 = 10_000_000;
/// By how many nonces the transactions of an account may be ahead of its nonce in the state: a test suite may send this many at once,
/// and one account cannot fill the pool.
const ACCOUNT_SLOTS: u64 = 1_024;
/// The same limit in the reference node.
const REFERENCE_ACCOUNT_SLOTS: u64 = 16;
/// The gas limit that blocks of the reference node's regtest miner approach under every rule set (`targetgaslimit`).
const REFERENCE_GAS_LIMIT: u64 = 7_500_000;
/// The seed words of the reference node's regtest accounts.
const COWS: [&str; 10] = ["cow", "cow1", "cow2", "cow3", "cow4", "cow5", "cow6", "cow7", "cow8", "cow9"];

/// When blocks are mined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mining {
    /// A block for each transaction, at once.
    Instant,
    /// A block each time this number of seconds has passed on the host's clock.
    Interval(u64),
    /// On request only.
    Manual,
}

/// The configuration of a development chain.
#[derive(Debug, Clone)]
pub struct DevConfig {
    /// The network, whose genesis hash is that of [`Self::genesis`].
    pub network: Arc<Network>,
    /// Block 0, or the block of another network on which the chain begins, with the state there.
    pub genesis: GenesisBlock,
    /// The chain of another network on which this one begins, if it does.
    pub fork: Option<ForkStart>,
    /// The private keys with which the chain signs, in the order of `eth_accounts`.
    pub keys: Vec<PrivateKey>,
    /// When blocks are mined.
    pub mining: Mining,
    /// The number of blocks below the head whose states are kept; `None` keeps all.
    pub history: Option<u64>,
    /// The header fields that the miner chooses.
    pub miner_settings: MinerSettings,
    /// By how many nonces an account may be ahead, in the pool, of its nonce in the state.
    pub account_slots: u64,
    /// Whether, with instant mining, sending a transaction that reverts gives an error, as in the reference node,
    /// instead of the transaction's hash.
    pub report_reverts: bool,
    /// The limits and defaults of calls.
    pub policy: CallPolicy,
    /// Client name and version, as `web3_clientVersion` reports them.
    pub version: String,
}

/// The block of another network on which a development chain begins.
#[derive(Debug, Clone)]
pub struct ForkStart {
    /// The block, its state, and the blocks below it.
    pub fork: Arc<dyn ForkBase>,
    /// Accounts with their balances in wei, which replace those of the block's state.
    pub funded: Vec<(Address, U256)>,
}

impl ForkStart {
    /// The state after the block, with the balances of the funded accounts in it.
    pub(super) fn state(&self) -> Trie {
        let mut world = World::new(Trie::above(self.fork.clone()));
        for (address, balance) in &self.funded {
            let account = world.account(address).unwrap_or_default();
            // A debt, which is a negative balance of old blocks, is replaced too.
            let funded = Account { balance: *balance, debt: U256::ZERO, ..account };
            world.set_account(address, funded);
        }
        world.commit()
    }
}

/// The funded accounts of a development chain.
#[derive(Debug, Clone)]
pub struct DevAccounts {
    /// The mnemonic from which they derive.
    pub mnemonic: String,
    /// The number of accounts.
    pub count: u32,
    /// The balance of each account in wei.
    pub balance: U256,
}

impl Default for DevAccounts {
    fn default() -> Self {
        Self { mnemonic: DEFAULT_MNEMONIC.into(), count: DEFAULT_ACCOUNTS, balance: DEFAULT_BALANCE }
    }
}

impl DevAccounts {
    /// The keys of these accounts. Empty if the account key of the mnemonic is out of range ([`Mnemonic::new`]).
    pub fn keys(&self) -> Vec<PrivateKey> {
        let mnemonic = Mnemonic::new(&self.mnemonic);
        mnemonic.iter().flat_map(|mnemonic| (0..self.count).filter_map(|index| mnemonic.key(index))).collect()
    }
}

/// The keys of the reference node's regtest accounts, "cow" to "cow9".
#[must_use]
pub fn cow_keys() -> Vec<PrivateKey> {
    COWS.iter().filter_map(|seed| PrivateKey::from_seed(seed)).collect()
}

impl DevConfig {
    /// A chain with regtest's rules. Block 0 funds the mnemonic's accounts and the reference node's "cow" accounts.
    #[must_use]
    pub fn new(accounts: &DevAccounts) -> Self {
        Self::on(Network::regtest(), accounts)
    }

    /// As [`Self::new`], with the rules of another network.
    #[must_use]
    pub fn on(network: Network, accounts: &DevAccounts) -> Self {
        Self::on_at(network, accounts, 0)
    }

    /// As [`Self::on`]; block 0 has this timestamp in seconds since 1970, by default 0.
    #[must_use]
    pub fn on_at(mut network: Network, accounts: &DevAccounts, genesis_time: u64) -> Self {
        let mut keys = accounts.keys();
        let genesis = Genesis::regtest().with_timestamp(genesis_time).with_chain_id(network.chain_id);
        let funded = keys.iter().map(|key| Allocation {
            address: key.address(),
            balance: accounts.balance,
            ..Allocation::default()
        });
        let funded: Vec<Allocation> = funded.collect();
        let mut alloc = genesis.alloc.clone();
        // The balance that the options give replaces one of regtest's own allocation.
        alloc.retain(|existing| !funded.iter().any(|new| new.address == existing.address));
        alloc.extend(funded);
        keys.extend(cow_keys());
        let genesis = GenesisBlock::new(&genesis.with_alloc(alloc), &network);
        network.genesis_hash = genesis.header.hash();
        Self::from_genesis(network, genesis, keys)
    }

    /// The reference node's regtest chain: the same genesis block, accounts, gas limit and limits of the pool.
    #[must_use]
    pub fn reference() -> Self {
        Self { account_slots: REFERENCE_ACCOUNT_SLOTS, ..Self::reference_on(Network::regtest()) }
    }

    /// As [`Self::reference`], with the rules of another network, and without the reference node's limit on the nonces that an account
    /// may be ahead. The state of block 0, and with it the block hash, depends on the native contracts that are active under these
    /// rules.
    #[must_use]
    pub fn reference_on(mut network: Network) -> Self {
        let genesis = GenesisBlock::new(&Genesis::regtest(), &network);
        network.genesis_hash = genesis.header.hash();
        let mut config = Self::from_genesis(network, genesis, cow_keys());
        config.miner_settings.gas_limit = REFERENCE_GAS_LIMIT;
        config.report_reverts = true;
        config
    }

    /// A chain that begins after a block of another network, by that network's rules. The balances of `accounts` replace those that
    /// these accounts have in the state of the block.
    #[must_use]
    pub fn above(network: Network, fork: Arc<dyn ForkBase>, accounts: &DevAccounts) -> Self {
        let keys = accounts.keys();
        let funded = keys.iter().map(|key| (key.address(), accounts.balance)).collect();
        let start = ForkStart { fork, funded };
        let genesis = GenesisBlock { header: start.fork.block().sealed().clone(), state: start.state() };
        Self { fork: Some(start), ..Self::from_genesis(network.mined_here(), genesis, keys) }
    }

    /// A chain with the given genesis block, whose hash must be the network's genesis hash.
    #[must_use]
    pub fn from_genesis(network: Network, genesis: GenesisBlock, keys: Vec<PrivateKey>) -> Self {
        let gas_limit = u64::try_from(genesis.header.gas_limit.value()).unwrap_or(DEFAULT_GAS_LIMIT);
        let miner_settings = MinerSettings {
            coinbase: DEFAULT_COINBASE,
            extra_data: Bytes::from_static(b"rootlight"),
            gas_limit,
            minimum_gas_price: genesis.header.minimum_gas_price.value(),
            uncles: true,
        };
        Self {
            network: Arc::new(network),
            genesis,
            fork: None,
            keys,
            mining: Mining::Instant,
            history: Some(DEFAULT_HISTORY),
            miner_settings,
            account_slots: ACCOUNT_SLOTS,
            report_reverts: false,
            policy: CallPolicy::default(),
            // Helpers of hardhat use anvil's methods if the name of the client begins with `anvil`.
            version: concat!("anvil/Rootlight/", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}
