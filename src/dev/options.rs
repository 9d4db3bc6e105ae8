//! The options of a development chain as users write them, the same for the command line and the browser package.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{borrow::ToOwned, format};

use alloy_primitives::U256;

use super::config::{DevAccounts, DevConfig, Mining};
use super::mnemonic::Mnemonic;
use crate::consensus::{Fork, Genesis, GenesisError, Network};
use crate::exec::GenesisBlock;

/// The oldest rules that a development chain supports: the first with the Unitrie.
const OLDEST: Fork = Fork::Wasabi100;

/// The largest number of accounts derived from the mnemonic at the start, each of which takes time and an entry in block 0.
pub const MAX_ACCOUNTS: u32 = 10_000;

/// The largest chain id: `v` of a signature is one byte, which is twice the chain id plus 35 or 36 (EIP-155).
pub const MAX_CHAIN_ID: u64 = 109;

/// An option that is not valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum DevOptionError {
    #[error("the mnemonic's keys are out of range, use other words")]
    Mnemonic,
    /// More accounts than [`MAX_ACCOUNTS`].
    #[error("{0} accounts are more than {MAX_ACCOUNTS}")]
    Accounts(u32),
    /// The text is not an amount of RBTC.
    #[error("{0:?} is not a number of RBTC")]
    Balance(String),
    /// The text is not a time between blocks.
    #[error("{0:?}: give seconds, 0 for a block per transaction, or manual")]
    BlockTime(String),
    /// An unknown network upgrade, or one from before the Unitrie.
    #[error("{name:?} is not one of {known}")]
    Hardfork { name: String, known: String },
    /// A chain id that signatures of transactions cannot hold, or one beside a given genesis, which has its own.
    #[error(
        "give a number from 1 to {MAX_CHAIN_ID}, and no genesis: that of the reference node has chain id 33"
    )]
    ChainId,
    /// The genesis allocation cannot be read.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
}

/// Options of a development chain.
#[derive(Debug, Clone, Default)]
pub struct DevOptions<'a> {
    /// The accounts that are funded in block 0. With [`Self::genesis`] they are not funded: `regtest` has the reference node's accounts
    /// instead, and beside a genesis allocation the chain still signs with the keys of these.
    pub accounts: DevAccounts,
    /// The last network upgrade that is active; all upgrades if not given.
    pub hardfork: Option<&'a str>,
    /// `regtest` for the genesis, accounts and gas limit of the reference node's regtest, or a genesis allocation in
    /// the reference node's JSON format. If not given, regtest's allocation with the funded accounts added.
    pub genesis: Option<&'a str>,
    /// The timestamp of block 0 in seconds since 1970, by default 0. With [`Self::genesis`] it is not used.
    pub genesis_time: Option<u64>,
    /// The chain id, from 1 to [`MAX_CHAIN_ID`], by default 33. The Bridge's constants follow it: with 30 and 31 they are those
    /// of the main and the test network. Not with [`Self::genesis`].
    pub chain_id: Option<u64>,
    /// When blocks are mined.
    pub mining: Option<Mining>,
}

impl DevOptions<'_> {
    /// The configuration that these options describe.
    ///
    /// # Errors
    /// The option that is not valid.
    pub fn config(&self) -> Result<DevConfig, DevOptionError> {
        let accounts = &self.accounts;
        if accounts.count > MAX_ACCOUNTS {
            return Err(DevOptionError::Accounts(accounts.count));
        }
        if Mnemonic::new(&accounts.mnemonic).is_none() {
            return Err(DevOptionError::Mnemonic);
        }
        let mut network = self.hardfork.map_or_else(|| Ok(Network::regtest()), rules_until)?;
        if let Some(id) = self.chain_id {
            if !(1..=MAX_CHAIN_ID).contains(&id) || self.genesis.is_some() {
                return Err(DevOptionError::ChainId);
            }
            network.chain_id = id;
        }
        let mut config = match self.genesis {
            None => DevConfig::on_at(network, accounts, self.genesis_time.unwrap_or(0)),
            Some("regtest") => DevConfig::reference_on(network),
            Some(json) => on_allocation(network, json, accounts)?,
        };
        config.mining = self.mining.unwrap_or(config.mining);
        Ok(config)
    }
}

/// A chain whose block 0 has the allocation of a genesis file.
fn on_allocation(
    mut network: Network,
    json: &str,
    accounts: &DevAccounts,
) -> Result<DevConfig, DevOptionError> {
    let genesis = GenesisBlock::from_json(json, &network)?;
    network.genesis_hash = genesis.header.hash();
    Ok(DevConfig::from_genesis(network, genesis, accounts.keys()))
}

impl Mining {
    /// Parses a block time: seconds between blocks, `0` for a block per transaction, or `manual`.
    ///
    /// # Errors
    /// The text is none of these.
    pub fn from_block_time(text: &str) -> Result<Self, DevOptionError> {
        match text {
            "0" => Ok(Self::Instant),
            "manual" => Ok(Self::Manual),
            text => match text.parse() {
                Ok(seconds) => Ok(Self::Interval(seconds)),
                Err(_) => Err(DevOptionError::BlockTime(text.to_owned())),
            },
        }
    }
}

/// Parses an amount of RBTC with up to 18 decimals. Returns wei.
///
/// # Errors
/// The text is not such a number.
pub fn rbtc(text: &str) -> Result<U256, DevOptionError> {
    let error = || DevOptionError::Balance(text.to_owned());
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 18 || !digits(whole) || !digits(decimals) {
        return Err(error());
    }
    format!("{whole}{decimals:0<18}").parse().map_err(|_| error())
}

/// The rules of regtest up to and including a network upgrade.
fn rules_until(name: &str) -> Result<Network, DevOptionError> {
    let forks = || Fork::ALL.iter().skip_while(|fork| **fork != OLDEST);
    if !forks().any(|fork| fork.name() == name) {
        let known: Vec<&str> = forks().map(|fork| fork.name()).collect();
        return Err(DevOptionError::Hardfork { name: name.to_owned(), known: known.join(", ") });
    }
    let later = forks().skip_while(|fork| fork.name() != name).skip(1);
    let later: Vec<Fork> = later.copied().collect();
    let mut network = Network::regtest().without(&later);
    network.genesis_hash = Genesis::regtest().header(&network).hash();
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::Rule;

    #[test]
    fn balances_are_parsed_as_decimal_numbers() {
        assert_eq!(rbtc("1").unwrap(), U256::from(10).pow(U256::from(18)));
        assert_eq!(rbtc("0.5").unwrap(), U256::from(5) * U256::from(10).pow(U256::from(17)));
        assert_eq!(rbtc("0.000000000000000001").unwrap(), U256::from(1));
        for wrong in ["", ".5", "1e3", "-1", "1.0000000000000000001", "x"] {
            assert!(rbtc(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn upgrades_after_the_named_one_are_not_active() {
        let network = rules_until("iris300").unwrap();
        assert!(network.active(Rule::Rskip153, 1) && !network.active(Rule::Rskip398, 1));
        assert!(rules_until("vetiver900").unwrap().active(Rule::Rskip544, 1));
        assert!(rules_until("orchid").is_err() && rules_until("london").is_err());
    }

    #[test]
    fn a_network_file_without_the_later_upgrades_is_the_same_network() {
        for name in ["wasabi100", "iris300", "lovell700", "vetiver900"] {
            let later = Fork::ALL.iter().skip_while(|fork| fork.name() != name).skip(1);
            let later: Vec<String> = later.map(|fork| format!("\"{}\":-1", fork.name())).collect();
            let file = format!(r#"{{"name":"regtest","hardforks":{{{}}}}}"#, later.join(","));
            assert_eq!(rules_until(name).unwrap(), Network::from_json(&file).unwrap(), "{name}");
        }
    }

    /// Block hashes of the reference node's block 0 in recorded chains.
    #[test]
    fn the_references_genesis_has_the_native_contracts_of_its_rules() {
        let eras = [
            ("wasabi100", "f81e265becb438e4511f5029c4ad086543ffb993a3f14bd70588f1e3cc24f5c3"),
            ("papyrus200", "bb1fc1ec0f5a6a0afebc8c031fde848e6b5338edbc563341d878f894e670e3c8"),
            ("iris300", "f75066863a1e84a90cac5f8de8ab3a284a2540953117cae38ab50497a13b4f0c"),
            ("hop401", "f75066863a1e84a90cac5f8de8ab3a284a2540953117cae38ab50497a13b4f0c"),
            ("fingerroot500", "f75066863a1e84a90cac5f8de8ab3a284a2540953117cae38ab50497a13b4f0c"),
            ("arrowhead600", "34c690850bc250af70fed1451eb398d8aee158acba5149ced64cdf0fc72603a2"),
            ("lovell700", "34c690850bc250af70fed1451eb398d8aee158acba5149ced64cdf0fc72603a2"),
            ("reed800", "8ea789fabef0dd4946ed53f001e7b6f8a8d0c22a612a6099fc7f93c990af68fe"),
            ("vetiver900", "8ea789fabef0dd4946ed53f001e7b6f8a8d0c22a612a6099fc7f93c990af68fe"),
        ];
        for (hardfork, hash) in eras {
            let options =
                DevOptions { hardfork: Some(hardfork), genesis: Some("regtest"), ..DevOptions::default() };
            let config = options.config().unwrap();
            assert_eq!(alloy_primitives::hex::encode(config.genesis.header.hash()), hash, "{hardfork}");
            assert_eq!(config.network.genesis_hash, config.genesis.header.hash(), "{hardfork}");
            assert_eq!(config.genesis.header.state_root, config.genesis.state.root(), "{hardfork}");
            assert_eq!(config.miner_settings.gas_limit, 7_500_000, "{hardfork}");
            assert_eq!(config.keys.len(), 10, "{hardfork}: the accounts that hold the balances");
        }
    }

    #[test]
    fn block_0_has_the_given_time_unless_the_genesis_is_given() {
        let at = |genesis_time, genesis| {
            let config = DevOptions { genesis_time, genesis, ..DevOptions::default() }.config().unwrap();
            assert_eq!(config.network.genesis_hash, config.genesis.header.hash());
            config.genesis.header.timestamp
        };
        assert_eq!((at(Some(1_800_000_000), None), at(None, None)), (1_800_000_000, 0));
        assert_eq!(at(Some(1_800_000_000), Some("regtest")), 0, "exactly the reference node's");
    }

    #[test]
    fn chains_of_different_ids_have_different_blocks_0() {
        let of = |chain_id, genesis| DevOptions { chain_id, genesis, ..DevOptions::default() }.config();
        let usual = of(None, None).unwrap();
        assert_eq!(of(Some(33), None).unwrap().network, usual.network);
        let mut seen = vec![usual.network.genesis_hash];
        for id in [1, 30, 31, MAX_CHAIN_ID] {
            let network = of(Some(id), None).unwrap().network;
            assert_eq!(network.chain_id, id);
            assert!(!seen.contains(&network.genesis_hash), "{id}");
            seen.push(network.genesis_hash);
        }
        for (id, genesis) in [(0, None), (MAX_CHAIN_ID + 1, None), (44, Some("regtest"))] {
            assert!(matches!(of(Some(id), genesis), Err(DevOptionError::ChainId)), "{id}");
        }
    }

    #[test]
    fn options_that_are_not_valid_give_errors() {
        let words = |mnemonic: &str| DevAccounts { mnemonic: mnemonic.into(), ..DevAccounts::default() };
        let many = DevAccounts { count: MAX_ACCOUNTS + 1, ..DevAccounts::default() };
        let options = DevOptions { accounts: many, ..DevOptions::default() };
        assert!(matches!(options.config(), Err(DevOptionError::Accounts(_))));
        let options = DevOptions { genesis: Some("{"), ..DevOptions::default() };
        assert!(matches!(options.config(), Err(DevOptionError::Genesis(_))));
        let options =
            DevOptions { accounts: words("test"), genesis: Some("regtest"), ..DevOptions::default() };
        assert_eq!(options.config().unwrap().genesis.header.hash(), Network::regtest().genesis_hash);
        assert!(matches!(Mining::from_block_time("soon"), Err(DevOptionError::BlockTime(_))));
        assert_eq!(Mining::from_block_time("7").unwrap(), Mining::Interval(7));
    }
}
