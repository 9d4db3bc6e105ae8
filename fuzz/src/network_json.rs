//! Network and genesis files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use alloy_primitives::{Address, Bytes, U256};
use rootlight::consensus::{Fork, Genesis, Network, Rule};
use rootlight::exec::GenesisBlock;
use rootlight::state::World;
use rootlight::types::{Header, HeaderForm};

use crate::input::{Input, change};
use crate::limit::with_limit;

/// Most accounts and slots of a genesis file made of choices.
const MAX_ACCOUNTS: usize = 12;
const MAX_SLOTS: usize = 6;
/// Parameters of a network file.
const PARAMS: [&str; 12] = [
    "durationLimit",
    "minimumDifficulty",
    "fallbackMaxDifficulty",
    "difficultyDivisor",
    "futureBound",
    "btcTimeBound",
    "remascMaturity",
    "remascSpan",
    "labsAddress",
    "peginConfirmations",
    "pegoutConfirmations",
    "minSequentialGasLimit",
];

/// First byte: what the text is, or what it is made of.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => text(input.rest()).into_iter().for_each(check_network),
        1 => text(input.rest()).into_iter().for_each(|text| drop(check_genesis(text, &Network::regtest()))),
        2 => check_made_network(&mut input),
        _ => check_made_genesis(&mut input),
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok()
}

/// A network's rules hold together at every height that means something to it.
fn check_network(text: &str) {
    // A network holds its rules, a genesis its state, whatever the text.
    let read = with_limit(text.len() + (1 << 12), || Network::from_json_with_genesis(text));
    let (network, genesis) = match read {
        Ok(read) => read,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    if let Some(genesis) = &genesis {
        assert_eq!(genesis.header(&network).hash(), network.genesis_hash);
    }
    for rule in Rule::ALL {
        let start = network.activation(*rule);
        assert!(
            start.is_none_or(|start| network.active(*rule, start) && network.active(*rule, u64::MAX - 1))
        );
        assert!(start.is_none_or(|start| start == 0 || !network.active(*rule, start - 1)));
        assert!(start.is_some() || !network.active(*rule, u64::MAX - 1));
        for height in
            start.into_iter().flat_map(|start| [start.saturating_sub(1), start, start.saturating_add(1)])
        {
            assert!(network.header_shape(height).base_items() >= 16);
        }
    }
}

/// A file in the format's own words, with any names and heights.
fn check_made_network(input: &mut Input<'_>) {
    let mut text = String::from("{\"name\":\"made\"");
    let bases = ["mainnet", "testnet", "regtest"];
    let _ = write!(text, ",\"base\":\"{}\"", bases[input.below(3)]);
    let number = |input: &mut Input<'_>| match input.byte() % 5 {
        0 => "0".to_owned(),
        1 => u64::from_le_bytes(input.array()).to_string(),
        2 => format!("\"0x{}\"", hex::encode(input.take(33))),
        3 => "-1".to_owned(),
        _ => format!("\"{}\"", input.byte()),
    };
    let mut section = |name: &str, names: &[&str], input: &mut Input<'_>| {
        let mut members = BTreeMap::new();
        for _ in 0..input.below(6) {
            members.insert(names[input.below(names.len())], number(input));
        }
        let members: Vec<String> =
            members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let _ = write!(text, ",\"{name}\":{{{}}}", members.join(","));
    };
    let forks: Vec<&str> = Fork::ALL.iter().map(|fork| fork.name()).collect();
    let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    section("params", &PARAMS, input);
    section("hardforks", &forks, input);
    section("rules", &rules, input);
    if input.byte() % 2 == 0 {
        let genesis = made(input).0;
        let _ = write!(text, ",\"genesis\":{genesis}");
    }
    text.push('}');
    check_network(&text);
}

fn check_genesis(text: &str, network: &Network) -> Option<Genesis> {
    let genesis = match with_limit(text.len(), || Genesis::from_json(text)) {
        Ok(genesis) => genesis,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    let header = with_limit(text.len() + (1 << 12), || genesis.header(network));
    let shape = |number| network.header_shape(number);
    // Mining fields that are all empty are written as none.
    if header.has_mining_fields() {
        let rlp = header.encode(HeaderForm::Full);
        assert_eq!(Header::decode(&rlp, &shape).as_ref(), Ok(header.header()));
    }
    if genesis.state_root.is_none() {
        assert_eq!(GenesisBlock::new(&genesis, network).state.root(), header.state_root);
    }
    Some(genesis)
}

/// An account of a genesis file.
#[derive(Default)]
struct GenesisAccount {
    balance: U256,
    nonce: u64,
    code: Vec<u8>,
    slots: BTreeMap<U256, u8>,
}

/// A genesis file and what stands in it.
fn made(input: &mut Input<'_>) -> (String, BTreeMap<Address, GenesisAccount>) {
    let mut accounts: BTreeMap<Address, GenesisAccount> = BTreeMap::new();
    for _ in 0..input.below(MAX_ACCOUNTS) {
        // Not a native contract.
        let address = Address::repeat_byte(input.byte() | 0x20);
        let balance = U256::from_be_bytes::<32>(input.array()) >> 1;
        let mut account = GenesisAccount { balance, nonce: u64::from(input.byte()), ..GenesisAccount::default() };
        let len = input.below(100);
        account.code = input.take(len).to_vec();
        for _ in 0..input.below(MAX_SLOTS) {
            let slot = U256::from_be_bytes::<32>(input.array());
            account.slots.insert(slot, input.byte() | 1);
        }
        accounts.insert(address, account);
    }
    let account = |(address, account): (&Address, &GenesisAccount)| {
        let slot = |(slot, value): (&U256, &u8)| format!("\"{slot:#x}\":\"{value:02x}\"");
        let data: Vec<String> = account.slots.iter().map(slot).collect();
        let code = hex::encode(&account.code);
        format!(
            r#""{address:x}":{{"balance":"{}","nonce":"{}","contract":{{"code":"{code}","data":{{{}}}}}}}"#,
            account.balance,
            account.nonce,
            data.join(",")
        )
    };
    let alloc: Vec<String> = accounts.iter().map(account).collect();
    let text = format!(
        r#"{{"alloc":{{{}}},"timestamp":"0x00","extraData":"0x","gasLimit":"0x989680","difficulty":"0x01",
        "coinbase":"0x3333333333333333333333333333333333333333","minimumGasPrice":"0x00"}}"#,
        alloc.join(",")
    );
    (text, accounts)
}

/// The state is what the file says; a changed file is read or refused.
fn check_made_genesis(input: &mut Input<'_>) {
    let (text, accounts) = made(input);
    let network = Network::regtest();
    let genesis = check_genesis(&text, &network).expect("a genesis file");
    let mut world = World::new(GenesisBlock::new(&genesis, &network).state);
    for (address, account) in &accounts {
        let found = world.account(address).expect("allocated");
        assert_eq!((found.balance, found.nonce), (account.balance, account.nonce));
        assert_eq!(world.code_of(address), Bytes::from(account.code.clone()));
        for (slot, value) in &account.slots {
            assert_eq!(world.word(address, slot), U256::from(*value));
        }
    }
    let mut bytes = text.into_bytes();
    while !input.is_empty() {
        change(&mut bytes, input);
    }
    if let Ok(text) = String::from_utf8(bytes) {
        check_genesis(&text, &network);
        check_network(&format!(r#"{{"name":"n","genesis":{text}}}"#));
    }
}
