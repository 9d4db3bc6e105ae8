//! `eth_config` (EIP-7910): the rules of the chain now and after the next fork.
//!
//! Rootstock's forks activate at heights, and have neither blobs nor a fork id: the members of the EIP for these are null, and
//! the members `activationBlock` and `forks` are added.

use alloc::{collections::BTreeMap, vec::Vec};

use alloy_primitives::Address;
use serde::Serialize;

use super::{
    method::{HandlerResult, Method, verified},
    params::Params,
};
use crate::{
    consensus::{Network, Rule},
    engine::{View, newest_answerable_height},
    evm::precompiles::Precompile,
    types::json::Quantity,
};

pub(super) const METHODS: &[Method] = &[Method::read(
    "eth_config",
    &[],
    "{current, next, last}",
    "The rules at the head, after the next fork and after the last known one (EIP-7910): activation height, forks, and \
     native contracts.",
    config,
)
.costs(5)];

/// Native contracts without state of their own, by their names in EIP-7910, or by a name in its style if it has none.
const PRECOMPILES: [(&str, Precompile); 14] = [
    ("BLAKE2F", Precompile::Blake2F),
    ("BLOCK_HEADER", Precompile::BlockHeader),
    ("BN254_ADD", Precompile::BnAdd),
    ("BN254_MUL", Precompile::BnMul),
    ("BN254_PAIRING", Precompile::BnPairing),
    ("ECREC", Precompile::EcRecover),
    ("ENVIRONMENT", Precompile::Environment),
    ("HD_WALLET_UTILS", Precompile::HdWalletUtils),
    ("ID", Precompile::Identity),
    ("MODEXP", Precompile::ModExp),
    ("RIPEMD160", Precompile::Ripemd160),
    ("SECP256K1_ADD", Precompile::Secp256k1Add),
    ("SECP256K1_MUL", Precompile::Secp256k1Mul),
    ("SHA256", Precompile::Sha256),
];

/// Native contracts that keep state: the Bridge to Bitcoin, and REMASC, which pays miners.
const SYSTEM: [(&str, Precompile); 2] = [("BRIDGE", Precompile::Bridge), ("REMASC", Precompile::Remasc)];

/// The result of `eth_config`.
#[derive(Serialize)]
struct Configurations {
    /// The rules at the head.
    current: Configuration,
    /// The rules after the next fork; `None` if no fork is planned.
    next: Option<Configuration>,
    /// The rules after the last planned fork; `None` if no fork is planned.
    last: Option<Configuration>,
}

/// The rules from a height on. Members of the type `()` are always null.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    activation_block: u64,
    activation_time: (),
    blob_schedule: (),
    chain_id: Quantity,
    fork_id: (),
    /// The hard forks that activate at this height, by their names in the reference node's configuration.
    forks: Vec<&'static str>,
    precompiles: BTreeMap<&'static str, Address>,
    system_contracts: BTreeMap<&'static str, Address>,
}

impl Configuration {
    /// The rules from a height on.
    fn at(network: &Network, height: u64) -> Self {
        let rules = network.rules(height);
        let active = |table: &[(&'static str, Precompile)]| {
            let addresses = table.iter().map(|(name, contract)| (*name, contract.address()));
            addresses.filter(|(_, address)| Precompile::at(address, rules).is_some()).collect()
        };
        let mut forks: Vec<&str> = Vec::new();
        for rule in Rule::ALL.iter().filter(|rule| network.activation(**rule) == Some(height)) {
            let name = rule.fork().map(|fork| fork.name());
            forks.extend(name.filter(|name| !forks.contains(name)));
        }
        Self {
            activation_block: height,
            activation_time: (),
            blob_schedule: (),
            chain_id: network.chain_id.into(),
            fork_id: (),
            forks,
            precompiles: active(&PRECOMPILES),
            system_contracts: active(&SYSTEM),
        }
    }
}

fn config(view: &dyn View, _: Params<'_>) -> HandlerResult {
    let newest = view.header_by_number(newest_answerable_height(view)?)?;
    let (network, head) = (view.policy().network, newest.map_or(0, |header| header.number));
    let heights = || Rule::ALL.iter().filter_map(|rule| network.activation(*rule));
    // Before the first fork, the rules are those of block 0.
    let current = heights().filter(|height| *height <= head).max().unwrap_or(0);
    let next = heights().filter(|height| *height > head).min();
    let last = next.and_then(|_| heights().max());
    let rules_at = |height| Configuration::at(network, height);
    verified(&Configurations {
        current: rules_at(current),
        next: next.map(rules_at),
        last: last.map(rules_at),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, to_value};

    use super::*;

    fn at(height: u64) -> Value {
        to_value(Configuration::at(&Network::mainnet(), height)).unwrap()
    }

    #[test]
    fn native_contracts_and_forks_are_those_of_the_height() {
        let iris = at(3_614_800);
        assert_eq!((iris["forks"].clone(), iris["chainId"].clone()), (json!(["iris300"]), json!("0x1e")));
        assert_eq!(iris["precompiles"]["ECREC"], "0x0000000000000000000000000000000000000001");
        assert_eq!(iris["systemContracts"]["BRIDGE"], "0x0000000000000000000000000000000001000006");
        let environment = |config: &Value| config["precompiles"].get("ENVIRONMENT").is_some();
        let known = Network::mainnet().activation(Rule::Rskip203).unwrap();
        assert!(environment(&at(known)) && !environment(&at(known - 1)));
        assert_eq!(at(0)["precompiles"].as_object().unwrap().len(), 5);
    }

    /// Every native contract is in one of the two tables, under its own address.
    #[test]
    fn no_native_contract_is_left_out() {
        let all = Rule::ALL.iter().copied().collect();
        let listed: Vec<Address> = PRECOMPILES.iter().chain(&SYSTEM).map(|(_, one)| one.address()).collect();
        let low = |low: u32| Address::left_padding_from(&low.to_be_bytes());
        let known = (0..0x100_u32).chain(0x0100_0000..0x0100_0100).map(low);
        let known: Vec<Address> = known.filter(|address| Precompile::at(address, all).is_some()).collect();
        assert_eq!(known.len(), listed.len());
        assert!(known.iter().all(|address| listed.contains(address)));
    }
}
