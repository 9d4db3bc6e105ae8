//! The JSON tests of the reference node (its VMTests and StateTests), read from a copy of its test resources
//! in the folder `RSKJ_JSON`; skipped if it is not set. They use Frontier's prices, so gas and balances are
//! not compared, as in the reference node's own runner.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rootlight::consensus::Network;
use rootlight::dev::PrivateKey;
use rootlight::evm::intrinsic_gas;
use rootlight::evm::precompiles::Precompile;
use rootlight::exec::{
    Ancestry, BlockContext, BlockEnvironment, HaltReason, IndexedTransaction, TransactionList,
};
use rootlight::state::{Account, World, storage_words};
use rootlight::trie::Trie;
use rootlight::types::{
    Address, B256, Bytes, Header, Log, RawUint, SealedHeader, Transaction, U256, keccak256,
};
use serde_json::Value;

const DEPTH: &str = "the depth limit is 400 (RSKIP-150)";
const PRICES: &str = "it stores gas amounts: no 63/64 rule, other prices of calls and data";
const NONCE: &str = "contracts created by contracts start with nonce 1 (RSKIP-125)";
const BOUNDS: &str = "a gas limit of more than 63 bits is refused";
const ANCIENT: &str = "rules of Ethereum's first fork";
const FORM: &str = "its form does not fit one transaction";
const MEMORY: &str = "more memory than 2^30 bytes is out of gas";

/// Prefixes of the names of cases that differ, with the rule that causes it. The reference node excludes all
/// of these as well, individually or by file.
const KNOWN: [(&str, &str); 39] = [
    ("stBoundsTest/", BOUNDS),
    ("stCallCreateCallCodeTest/Call1024", DEPTH),
    ("stCallCreateCallCodeTest/CallRecursiveBomb", DEPTH),
    ("stCallCreateCallCodeTest/Callcode1024", DEPTH),
    ("stCallCreateCallCodeTest/createInitFail", ANCIENT),
    ("stChangedTests/Call1024", DEPTH),
    ("stChangedTests/Callcode1024", DEPTH),
    ("stDelegatecallTest/Call1024", DEPTH),
    ("stDelegatecallTest/CallRecursiveBomb", DEPTH),
    ("stDelegatecallTest/Delegatecall1024", DEPTH),
    ("stEIPSpecificTest/CallAskMoreGas", PRICES),
    ("stEIPSpecificTest/CreateAndGasInsideCreate", NONCE),
    ("stEIPSpecificTest/NewGasPriceForCodes", PRICES),
    ("stEIPSpecificTest/SuicideToNotExisting", "an empty balance does not make its heir exist"),
    ("stEIPsingleCodeGasPrices/RawCallCodeGas", PRICES),
    ("stEIPsingleCodeGasPrices/RawCallGas", PRICES),
    ("stEIPsingleCodeGasPrices/RawCallMemory", PRICES),
    ("stEIPsingleCodeGasPrices/RawCreateFail", PRICES),
    ("stEIPsingleCodeGasPrices/RawCreateGas", NONCE),
    ("stEIPsingleCodeGasPrices/RawDelegateCall", PRICES),
    ("stInitCodeTest/CallRecursiveContract", PRICES),
    ("stMemExpandingEIPCalls/CallAskMoreGas", PRICES),
    ("stMemExpandingEIPCalls/CreateAndGasInsideCreate", NONCE),
    ("stMemExpandingEIPCalls/NewGasPriceForCodes", PRICES),
    ("stMemoryStressTest/mload32bitBound", MEMORY),
    ("stQuadraticComplexityTest/Call1MB1024Calldepth", DEPTH),
    ("stQuadraticComplexityTest/Create1000", NONCE),
    ("stRecursiveCreate/", NONCE),
    ("stSystemOperationsTest/ABAcalls", PRICES),
    ("stSystemOperationsTest/CallRecursiveBomb", DEPTH),
    ("stTransactionTest/StoreGasOnCreate", NONCE),
    ("stTransitionTest/createNameRegistrator", ANCIENT),
    ("stTransitionTest/delegatecallBefore", ANCIENT),
    ("stWalletTest/dayLimitConstructionPartial", PRICES),
    ("stWalletTest/multiOwnedConstructionNotEnoughGasPartial", PRICES),
    ("stWalletTest/walletConstructionPartial", PRICES),
    ("vmEnvironmentalInfoTest/balance0", FORM),
    ("vmSystemOperationsTest/ABAcalls", "calls are only written down there"),
    ("vmtests/boolean", FORM),
];

/// Prints the result. Every case that differs must be listed in [`KNOWN`].
fn report(what: &str, equal: usize, different: &[(String, Vec<String>)]) {
    println!("{what}: {equal} equal, {} differ by a known rule", different.len());
    let known = |name: &str| KNOWN.iter().any(|(start, _)| name.starts_with(start));
    let unknown: Vec<_> = different.iter().filter(|(name, _)| !known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("RSKJ_JSON").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: RSKJ_JSON names no folder");
    }
    folder
}

/// Parses hex with 0x, otherwise decimal, otherwise hex; empty text is zero.
fn number(value: &Value) -> U256 {
    let text = value.as_str().unwrap_or_default();
    match text.strip_prefix("0x") {
        Some("") => U256::ZERO,
        Some(digits) => U256::from_str_radix(digits, 16).unwrap(),
        None if text.is_empty() => U256::ZERO,
        None => U256::from_str_radix(text, 10).or_else(|_| U256::from_str_radix(text, 16)).unwrap(),
    }
}

fn small(value: &Value) -> u64 {
    u64::try_from(number(value)).unwrap_or(i64::MAX as u64)
}

fn data(value: &Value) -> Bytes {
    let text = value.as_str().unwrap_or_default().trim_start_matches("0x");
    let even = if text.len() % 2 == 1 { format!("0{text}") } else { text.into() };
    hex::decode(even).unwrap().into()
}

fn address(text: &str) -> Address {
    Address::left_padding_from(&hex::decode(text.trim_start_matches("0x")).unwrap())
}

fn cases(folder: &Path) -> Vec<(String, Value)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    let mut out = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let Ok(Value::Object(all)) = serde_json::from_str(&text) else { continue };
        out.extend(all.into_iter().map(|(case, value)| (format!("{name}/{case}"), value)));
    }
    out
}

/// The accounts in a `pre` or `post` object.
fn accounts(part: &Value) -> BTreeMap<Address, &Value> {
    let all = part.as_object().into_iter().flatten();
    all.map(|(text, account)| (address(text), account)).collect()
}

fn words(account: &Value) -> BTreeMap<U256, U256> {
    let all = account["storage"].as_object().into_iter().flatten();
    let pair = |(slot, word): (&String, &Value)| (number(&Value::String(slot.clone())), number(word));
    all.map(pair).filter(|(_, word)| !word.is_zero()).collect()
}

fn world(pre: &Value) -> World {
    let mut world = World::new(Trie::new());
    for (address, account) in accounts(pre) {
        let (nonce, balance) = (small(&account["nonce"]), number(&account["balance"]));
        world.set_account(&address, Account { nonce, balance, ..Account::default() });
        let code = data(&account["code"]);
        if !code.is_empty() || !words(account).is_empty() {
            world.set_marker(&address);
            world.set_code(&address, code);
        }
        for (slot, word) in words(account) {
            world.set_word(&address, &slot, word);
        }
    }
    World::new(world.commit())
}

/// The block hashes of these tests are keccak-256 of the height in decimal.
struct DecimalHashes;

impl Ancestry for DecimalHashes {
    fn header(&self, _: u64) -> Option<SealedHeader> {
        None
    }

    fn uncles(&self, _: u64) -> Option<Vec<Header>> {
        None
    }

    fn hash(&self, number: u64) -> Option<B256> {
        Some(keccak256(number.to_string()))
    }
}

fn environment(env: &Value) -> BlockEnvironment {
    BlockEnvironment {
        number: small(&env["currentNumber"]),
        timestamp: small(&env["currentTimestamp"]),
        coinbase: address(env["currentCoinbase"].as_str().unwrap()),
        difficulty: number(&env["currentDifficulty"]),
        gas_limit: number(&env["currentGasLimit"]),
        minimum_gas_price: U256::ZERO,
    }
}

fn transaction(json: &Value) -> Transaction {
    let to = json["to"].as_str().filter(|to| !to.is_empty());
    Transaction {
        nonce: RawUint::from(number(&json["nonce"])),
        gas_price: RawUint::from(number(&json["gasPrice"])),
        gas_limit: RawUint::from(number(&json["gasLimit"])),
        to: to.map(address),
        value: number(&json["value"]),
        data: data(&json["data"]),
        v: 0,
        r: U256::ZERO,
        s: U256::ZERO,
    }
}

/// The differences after a state test.
fn state_test(case: &Value) -> Vec<String> {
    let network = Network::regtest();
    let environment = environment(&case["env"]);
    let context = BlockContext::new(&network, environment.clone(), &DecimalHashes);
    let gas_limit = small(&case["env"]["currentGasLimit"]);
    let mut list = TransactionList::new(world(&case["pre"]), gas_limit);
    let json = &case["transaction"];
    let key = PrivateKey::new(&B256::left_padding_from(&data(&json["secretKey"]))).unwrap();
    let transaction = transaction(json);
    let item = IndexedTransaction { index: 0, transaction: &transaction, sender: key.address() };
    let end = list.execute(&context, item, None);
    let mut faults = Vec::new();
    // A refused transaction does not change the state.
    if let Ok(end) = &end {
        // In these tests the miner is paid before contracts are deleted.
        if !list.destroyed.contains(&environment.coinbase) {
            list.world.credit(&environment.coinbase, end.fee);
        }
        let native = transaction.to.is_some_and(|to| Precompile::at(&to, context.rules).is_some());
        let compared = !(transaction.to.is_none() || native || end.failure.is_some());
        let out = case["out"].as_str().unwrap_or_default();
        if compared && !out.starts_with('#') && end.output != data(&case["out"]) {
            faults.push(format!("out {}", end.output));
        }
        faults.extend(compare_logs(&case["logs"], &end.receipt.logs));
    }
    faults.extend(compare(&list.world.commit(), &case["post"]));
    faults
}

fn compare_logs(recorded: &Value, found: &[Log]) -> Vec<String> {
    let recorded = recorded.as_array().map(Vec::as_slice).unwrap_or_default();
    if recorded.len() != found.len() {
        return vec![format!("{} logs, found {}", recorded.len(), found.len())];
    }
    let same = |(recorded, found): (&Value, &Log)| {
        let topics = recorded["topics"].as_array().unwrap().iter().map(data);
        address(recorded["address"].as_str().unwrap()) == found.address
            && data(&recorded["data"]) == found.data
            && topics.eq(found.topics.iter().map(|topic| Bytes::copy_from_slice(topic.as_slice())))
    };
    let different = recorded.iter().zip(found).filter(|pair| !same(*pair));
    different.map(|(recorded, found)| format!("log {recorded}, found {found:?}")).collect()
}

fn compare(state: &Trie, post: &Value) -> Vec<String> {
    let rules = Network::regtest().rules(0);
    let mut faults = Vec::new();
    let mut found = BTreeSet::new();
    state.for_each(&mut |key, _| {
        if key.len() == 31 {
            found.insert(Address::from_slice(&key[11..]));
        }
    });
    let expected = accounts(post);
    for address in found.iter().filter(|address| !expected.contains_key(*address)) {
        if Precompile::at(address, rules).is_none() {
            faults.push(format!("{address} exists"));
        }
    }
    let mut world = World::new(state.clone());
    for (address, account) in expected {
        let Some(held) = world.account(&address) else {
            if Precompile::at(&address, rules).is_none() {
                faults.push(format!("{address} does not exist"));
            }
            continue;
        };
        if held.nonce != small(&account["nonce"]) {
            faults.push(format!("{address}: nonce {}", held.nonce));
        }
        if world.code_of(&address) != data(&account["code"]) {
            faults.push(format!("{address}: code"));
        }
        if storage_words(state, &address) != words(account) {
            faults.push(format!("{address}: storage {:?}", storage_words(state, &address)));
        }
    }
    faults
}

#[test]
fn state_tests() {
    let Some(folder) = folder() else { return };
    let (mut equal, mut different) = (0, Vec::new());
    for (name, case) in cases(&folder.join("StateTests")) {
        if case.get("pre").is_none() {
            continue;
        }
        match state_test(&case) {
            faults if faults.is_empty() => equal += 1,
            faults => different.push((name, faults)),
        }
    }
    report("state tests", equal, &different);
}

/// The differences after a VM test. Its single frame is executed as a transaction of its caller, with `extra`
/// gas.
fn vm_test(case: &Value, extra: u64) -> Vec<String> {
    let network = Network::regtest();
    let context = BlockContext::new(&network, environment(&case["env"]), &DecimalHashes);
    let exec = &case["exec"];
    let (to, sender) =
        (address(exec["address"].as_str().unwrap()), address(exec["caller"].as_str().unwrap()));
    let mut before = world(&case["pre"]);
    before.create(&to);
    before.set_marker(&to);
    before.set_code(&to, data(&exec["code"]));
    let value = number(&exec["value"]);
    // The value transfer of the transaction must lead to the balance stated in the test.
    let held = before.account(&to).unwrap_or_default();
    before.set_account(&to, Account { balance: held.balance.saturating_sub(value), ..held });
    let nonce = before.account(&sender).map_or(0, |account| account.nonce);
    let owned = before.account(&sender).map_or(U256::ZERO, |account| account.balance);
    let share = if value == U256::MAX { U256::MAX } else { U256::MAX >> 56 };
    before.credit(&sender, share.saturating_sub(owned));
    let gas = small(&exec["gas"]).min(1 << 60) + extra;
    let transaction = Transaction {
        nonce: RawUint::from(nonce),
        gas_price: RawUint::from(if value == U256::MAX { U256::ZERO } else { number(&exec["gasPrice"]) }),
        gas_limit: RawUint::from(gas + intrinsic_gas(&data(&exec["data"]), false, context.rules)),
        to: Some(to),
        value,
        data: data(&exec["data"]),
        v: 0,
        r: U256::ZERO,
        s: U256::ZERO,
    };
    let mut list = TransactionList::new(before, i64::MAX as u64);
    let end =
        list.execute(&context, IndexedTransaction { index: 0, transaction: &transaction, sender }, None);
    let end = match end {
        Ok(end) => end,
        Err(error) => return vec![error.to_string()],
    };
    let Some(post) = case.get("post") else {
        let failed = end.failure.is_some();
        return if failed { Vec::new() } else { vec!["it must fail".into()] };
    };
    if end.failure == Some(Some(HaltReason::OutOfGas)) && extra == 0 {
        // Frontier's prices were lower, so more gas is needed.
        return vm_test(case, 1_000_000);
    }
    if end.failure.is_some() {
        return vec![format!("it fails: {:?}", end.failure)];
    }
    let mut faults = compare_logs(&case["logs"], &end.receipt.logs);
    if end.output != data(&case["out"]) {
        faults.push(format!("out {}", end.output));
    }
    let state = list.world.commit();
    for (address, account) in accounts(post) {
        if storage_words(&state, &address) != words(account) {
            faults.push(format!("{address}: storage {:?}", storage_words(&state, &address)));
        }
    }
    faults
}

#[test]
fn vm_tests() {
    let Some(folder) = folder() else { return };
    let folder = folder.join("VMTests");
    let (mut equal, mut skipped, mut different) = (0, 0, Vec::new());
    for (name, case) in cases(&folder).into_iter().chain(cases(&folder.join("RandomTests"))) {
        // Tests with calls only list the calls without executing them, and seven cases measure speed.
        let calls = case["callcreates"].as_array().is_some_and(|calls| !calls.is_empty());
        if calls || name.contains("Performance") || case.get("exec").is_none() {
            skipped += 1;
            continue;
        }
        match vm_test(&case, 0) {
            faults if faults.is_empty() => equal += 1,
            faults => different.push((name, faults)),
        }
    }
    println!("VM tests: {skipped} skipped: calls that are only written down, speed");
    report("VM tests", equal, &different);
}
