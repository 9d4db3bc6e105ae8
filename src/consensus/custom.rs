//! Networks read from a file.
//!
//! The file is a JSON object. All fields but `name` are optional; missing ones are taken from `base`:
//!
//! ```json
//! {
//!   "name": "my-chain",
//!   "base": "regtest",
//!   "chainId": 33,
//!   "params": { "durationLimit": 10, "minimumDifficulty": "0x1", "futureBound": 0 },
//!   "hardforks": { "vetiver900": -1 },
//!   "rules": { "rskip351": 100 },
//!   "genesisHash": "0x8ea7...",
//!   "genesis": { "alloc": {}, "difficulty": "0x0000000001" },
//!   "knownUntil": 1000000,
//!   "workStart": { "difficulty": "0x2386f26fc10000", "from": 100, "headers": 5760 }
//! }
//! ```
//! - `base` is the name of a built-in network, `regtest` by default.
//! - `hardforks` and `rules` use the configuration names of the reference node. Values are heights; -1 means
//!   never. A rule in `rules` has the height given there. Any other rule has the height of its hard fork if
//!   `hardforks` gives it, otherwise the height it has in the base network.
//! - `genesis` is an allocation file of the reference node. The hash of block 0 is computed from it; if
//!   `genesisHash` is given as well, it must be equal.
//! - On a network with base `regtest`, block 0 has the reference node's own allocation and the native
//!   contracts of the network's rules, unless `genesis` or `genesisHash` is given.
//! - `workStart` gives the conditions of a start by work alone ([`WorkStart`]). Its `from` is the newest hard
//!   fork by default; its `headers` are 8,000 at most.
//! - A network with the chain id and block 0 of its base is mined by the base's Bitcoin network. Of any other network, the Bitcoin
//!   network is not known.
//! - Numbers are JSON integers, or decimal or `0x` strings.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use super::genesis::{Genesis, GenesisError};
use super::network::{NEVER, Network, NetworkSpec, Params, WORK_START_HEADERS, WorkStart};
use super::rule::{Fork, Rule};
use crate::types::{Address, B256, U256};

/// Most headers of a start by work. A client keeps 8,192 headers (`KEPT_HEADERS`); the rest is for blocks that arrive while a proposal
/// is judged.
const MAX_WORK_START_HEADERS: u64 = 8_000;

/// Why a file does not describe a network.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum NetworkFileError {
    /// The text is not JSON of the expected form.
    #[error("network file: {0}")]
    Json(#[from] serde_json::Error),
    #[error("network file: {field}: unknown name {name}")]
    UnknownName { field: &'static str, name: String },
    /// A value is not a number, or is too large.
    #[error("network file: {field}: {value} is not a number in range")]
    Number { field: String, value: String },
    /// The start by work would compare more headers than a client keeps.
    #[error("network file: workStart.headers: {0}; at most {MAX_WORK_START_HEADERS} are allowed")]
    WorkStartHeaders(u64),
    /// The `genesis` object is invalid.
    #[error("network file: {0}")]
    Genesis(#[from] GenesisError),
    #[error("network file: genesisHash {stated}, the genesis given has {computed}")]
    GenesisHash { stated: B256, computed: B256 },
}

/// The fields of a network file, which the head of this file describes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NetworkFile<'a> {
    name: String,
    #[serde(borrow, default)]
    base: Option<Cow<'a, str>>,
    #[serde(default)]
    chain_id: Option<u64>,
    #[serde(borrow, default)]
    params: BTreeMap<Cow<'a, str>, &'a RawValue>,
    #[serde(borrow, default)]
    hardforks: BTreeMap<Cow<'a, str>, i64>,
    #[serde(borrow, default)]
    rules: BTreeMap<Cow<'a, str>, i64>,
    #[serde(borrow, default)]
    genesis_hash: Option<Cow<'a, str>>,
    #[serde(default)]
    genesis: Option<Box<RawValue>>,
    #[serde(default)]
    known_until: Option<u64>,
    #[serde(borrow, default)]
    work_start: Option<WorkFile<'a>>,
}

/// The field `workStart` of a network file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WorkFile<'a> {
    #[serde(borrow)]
    difficulty: &'a RawValue,
    #[serde(default)]
    from: Option<u64>,
    #[serde(default)]
    headers: Option<u64>,
}

impl WorkFile<'_> {
    fn read(&self, network: &Network) -> Result<WorkStart, NetworkFileError> {
        let headers = self.headers.unwrap_or(WORK_START_HEADERS);
        if headers > MAX_WORK_START_HEADERS {
            return Err(NetworkFileError::WorkStartHeaders(headers));
        }
        Ok(WorkStart {
            difficulty: number("workStart.difficulty", self.difficulty.get())?,
            from: self.from.unwrap_or_else(|| network.newest_fork()),
            headers,
        })
    }
}

impl Network {
    /// Reads a network file. The module documentation describes the format.
    pub fn from_json(text: &str) -> Result<Self, NetworkFileError> {
        Ok(Self::from_json_with_genesis(text)?.0)
    }

    /// As [`Self::from_json`], but also returns the genesis if the file contains one.
    pub fn from_json_with_genesis(text: &str) -> Result<(Self, Option<Genesis>), NetworkFileError> {
        let file: NetworkFile<'_> = serde_json::from_str(text)?;
        let base_name = file.base.as_deref().unwrap_or("regtest");
        let base = Self::by_name(base_name)
            .ok_or_else(|| NetworkFileError::UnknownName { field: "base", name: base_name.into() })?;
        let mut params = base.params;
        for (name, value) in &file.params {
            set_param(&mut params, name, value.get())?;
        }
        let heights = heights(&file, &base)?;
        let stated = file.genesis_hash.as_deref().map(hash).transpose()?;
        let mut network = Self::new(&NetworkSpec {
            name: &file.name,
            chain_id: file.chain_id.unwrap_or(base.chain_id),
            genesis_hash: stated.unwrap_or(base.genesis_hash),
            params,
            known_until: file.known_until.or(base.known_until),
            forks: &[],
            overrides: &heights,
        });
        network.work_start = match &file.work_start {
            Some(own) => Some(own.read(&network)?),
            None => base.work_start,
        };
        if stated.is_none() && base_name == "regtest" {
            network.genesis_hash = Genesis::regtest().header(&network).hash();
        }
        let genesis = file.genesis.map(|text| Genesis::from_json(text.get())).transpose()?;
        if let Some(genesis) = &genesis {
            let computed = genesis.header(&network).hash();
            if let Some(stated) = stated.filter(|stated| *stated != computed) {
                return Err(NetworkFileError::GenesisHash { stated, computed });
            }
            network.genesis_hash = computed;
        }
        // A block 0 that was computed for other rules of a regtest base is not another chain: regtest's Bitcoin network mines it too.
        let own_block = (stated.is_some() || genesis.is_some()) && network.genesis_hash != base.genesis_hash;
        network.bitcoin = base.bitcoin.filter(|_| network.chain_id == base.chain_id && !own_block);
        Ok((network, genesis))
    }
}

fn hash(text: &str) -> Result<B256, NetworkFileError> {
    text.parse().map_err(|_| NetworkFileError::Number { field: "genesisHash".into(), value: text.into() })
}

/// The activation height of every rule: that of the file, else of its hard fork in the file, else of the base network.
fn heights(file: &NetworkFile<'_>, base: &Network) -> Result<Vec<(Rule, u64)>, NetworkFileError> {
    let mut forks = BTreeMap::new();
    for (name, height) in &file.hardforks {
        let unknown = || NetworkFileError::UnknownName { field: "hardforks", name: name.as_ref().into() };
        forks.insert(Fork::from_name(name).ok_or_else(unknown)?, height_of(*height));
    }
    let mut own = BTreeMap::new();
    for (name, height) in &file.rules {
        let unknown = || NetworkFileError::UnknownName { field: "rules", name: name.as_ref().into() };
        own.insert(Rule::from_name(name).ok_or_else(unknown)?, height_of(*height));
    }
    let height = |rule: &Rule| {
        let by_fork = rule.fork().and_then(|fork| forks.get(&fork));
        let base = base.activation(*rule).unwrap_or(NEVER);
        (*rule, own.get(rule).or(by_fork).copied().unwrap_or(base))
    };
    Ok(Rule::ALL.iter().map(height).collect())
}

/// A negative height means never.
fn height_of(height: i64) -> u64 {
    u64::try_from(height).unwrap_or(NEVER)
}

/// Sets the parameter with a configuration name. A parameter that the rules of a later height replace is set for all heights.
fn set_param(params: &mut Params, name: &str, text: &str) -> Result<(), NetworkFileError> {
    let value = number(name, text)?;
    let out_of_range = || NetworkFileError::Number { field: name.into(), value: text.into() };
    let small = || u64::try_from(value).map_err(|_| out_of_range());
    let positive = || small().and_then(|n| if n == 0 { Err(out_of_range()) } else { Ok(n) });
    match name {
        "durationLimit" => params.duration_limit = i32::try_from(value).map_err(|_| out_of_range())?,
        "minimumDifficulty" => {
            params.minimum_difficulty = value;
            params.minimum_difficulty_rskip290 = value;
        }
        "fallbackMaxDifficulty" => params.fallback_max_difficulty = value,
        "difficultyDivisor" => {
            params.difficulty_divisor = positive()?;
            params.difficulty_divisor_rskip156 = params.difficulty_divisor;
        }
        "futureBound" => params.future_bound = small()?,
        "btcTimeBound" => {
            params.btc_time_bound = small()?;
            params.btc_time_bound_rskip297 = params.btc_time_bound;
        }
        "remascMaturity" => params.remasc_maturity = small()?,
        "remascSpan" => params.remasc_span = positive()?,
        "labsAddress" if value.bit_len() > 160 => return Err(out_of_range()),
        "labsAddress" => params.labs = [Address::from_word(value.into()); 2],
        "peginConfirmations" => params.pegin_confirmations = small()?,
        "pegoutConfirmations" => params.pegout_confirmations = small()?,
        "minSequentialGasLimit" => params.min_sequential_gas_limit = small()?,
        _ => return Err(NetworkFileError::UnknownName { field: "params", name: name.into() }),
    }
    Ok(())
}

/// Parses a JSON integer, or a decimal or `0x` string.
fn number(field: &str, text: &str) -> Result<U256, NetworkFileError> {
    let bare = text.trim().trim_matches('"');
    let digits = bare.strip_prefix("0x").or_else(|| bare.strip_prefix("0X"));
    let parsed = match digits {
        Some(hex) if !hex.is_empty() => U256::from_str_radix(hex, 16).ok(),
        None if !bare.is_empty() => U256::from_str_radix(bare, 10).ok(),
        _ => None,
    };
    parsed.ok_or_else(|| NetworkFileError::Number { field: field.into(), value: text.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn missing_fields_are_taken_from_the_base() {
        let network = Network::from_json(r#"{"name":"regtest"}"#).unwrap();
        assert_eq!(network, Network::regtest());
        let network = Network::from_json(r#"{"name":"mainnet","base":"mainnet"}"#).unwrap();
        assert_eq!(network, Network::mainnet());
    }

    #[test]
    fn a_start_by_work_needs_no_more_headers_than_a_client_keeps() {
        let read = |headers: u64| {
            let start = format!(r#"{{"difficulty":"1","headers":{headers}}}"#);
            Network::from_json(&format!(r#"{{"name":"own","workStart":{start}}}"#))
        };
        assert_eq!(read(8_000).unwrap().work_start.unwrap().headers, 8_000);
        let error = read(8_001).unwrap_err().to_string();
        assert_eq!(error, "network file: workStart.headers: 8001; at most 8000 are allowed");
        const { assert!(MAX_WORK_START_HEADERS < crate::consensus::chain::KEPT_HEADERS) };
    }

    #[test]
    fn older_rules_change_block_0_of_regtest() {
        // Block 0 hashes of the reference node with these heights.
        let cases = [
            ("{}", "8ea789fabef0dd4946ed53f001e7b6f8a8d0c22a612a6099fc7f93c990af68fe"),
            (r#"{"rskip516":-1}"#, "34c690850bc250af70fed1451eb398d8aee158acba5149ced64cdf0fc72603a2"),
            (r#"{"rskip516":25}"#, "34c690850bc250af70fed1451eb398d8aee158acba5149ced64cdf0fc72603a2"),
            (
                r#"{"rskip516":-1,"rskip203":-1}"#,
                "f75066863a1e84a90cac5f8de8ab3a284a2540953117cae38ab50497a13b4f0c",
            ),
            (r#"{"rskip126":-1}"#, "f41fd25953cb66a01fb43471b58b0cfe2c6ec57d67ebb3284b9b75d50b04238d"),
        ];
        for (rules, hash) in cases {
            let network = Network::from_json(&alloc::format!(r#"{{"name":"x","rules":{rules}}}"#)).unwrap();
            assert_eq!(alloy_primitives::hex::encode(network.genesis_hash), hash, "{rules}");
        }
        let stated = r#"{"name":"x","rules":{"rskip516":-1},"genesisHash":"0x0101010101010101010101010101010101010101010101010101010101010101"}"#;
        assert_eq!(Network::from_json(stated).unwrap().genesis_hash, B256::repeat_byte(1));
    }

    #[test]
    fn heights_params_and_identity_can_be_changed() {
        let text = r#"{
            "name": "mine", "base": "testnet", "chainId": 77, "knownUntil": 5,
            "genesisHash": "0x0101010101010101010101010101010101010101010101010101010101010101",
            "params": {"durationLimit": 20, "minimumDifficulty": "0x10", "futureBound": "30", "difficultyDivisor": 3},
            "hardforks": {"reed810": 7, "orchid": -1},
            "rules": {"rskip144": 9, "rskip92": 0}
        }"#;
        let network = Network::from_json(text).unwrap();
        assert_eq!((network.name.as_str(), network.chain_id, network.known_until), ("mine", 77, Some(5)));
        assert_eq!(network.genesis_hash, B256::repeat_byte(1));
        assert_eq!((network.params.duration_limit, network.params.future_bound), (20, 30));
        assert_eq!(network.params.minimum_difficulty_rskip290, U256::from(16));
        assert_eq!(network.params.difficulty_divisor_rskip156, 3);
        assert_eq!(network.activation(Rule::Rskip351), Some(7));
        assert_eq!(network.activation(Rule::Rskip144), Some(9));
        assert_eq!(network.activation(Rule::Rskip98), None);
        assert_eq!(network.activation(Rule::Rskip92), Some(0));
        // An override of the base network stays in force if the file does not mention the rule.
        assert_eq!(network.activation(Rule::Rskip290), Some(2_581_800));
        assert!(network.needs_update_for(6) && !network.needs_update_for(5));
    }

    #[test]
    fn errors_name_the_wrong_field() {
        let fault = |text: &str| Network::from_json(text).unwrap_err().to_string();
        assert!(fault("{}").contains("name"));
        assert!(fault(r#"{"name":"x","base":"y"}"#).contains("base: unknown name y"));
        assert!(fault(r#"{"name":"x","rules":{"rskip1":0}}"#).contains("rules: unknown name rskip1"));
        assert!(fault(r#"{"name":"x","hardforks":{"z":0}}"#).contains("hardforks: unknown name z"));
        assert!(fault(r#"{"name":"x","params":{"z":0}}"#).contains("params: unknown name z"));
        assert!(fault(r#"{"name":"x","params":{"difficultyDivisor":0}}"#).contains("difficultyDivisor"));
        assert!(fault(r#"{"name":"x","params":{"futureBound":"0x"}}"#).contains("futureBound"));
        assert!(fault(r#"{"name":"x","params":{"durationLimit":2147483648}}"#).contains("durationLimit"));
        assert!(fault(r#"{"name":"x","surprise":1}"#).contains("surprise"));
        let long = format!("0x1{}", "0".repeat(40));
        let labs = fault(&format!(r#"{{"name":"x","params":{{"labsAddress":"{long}"}}}}"#));
        assert_eq!(labs, format!(r#"network file: labsAddress: "{long}" is not a number in range"#));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in ".{0,200}") {
            let _ = Network::from_json(&text);
        }
    }
}
