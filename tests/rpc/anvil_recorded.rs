//! Methods of Ethereum's nodes that the reference node does not have: `tests/vectors/anvil.json` has the answers of anvil to the
//! same requests, after the same transactions to the same contracts.

use std::collections::BTreeSet;

use crate::support::dev::DevClient;
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use serde_json::{Map, Value, json};

/// Values that depend on gas, on fees or on the hashes of blocks: only their JSON types are compared.
const OF_CHAIN: [&str; 19] = [
    "blockHash",
    "cost",
    "cumulativeGasUsed",
    "difficulty",
    "extraData",
    "gas",
    "gasLimit",
    "gasUsed",
    "hash",
    "miner",
    "mixHash",
    "parentHash",
    "receiptsRoot",
    "size",
    "stateRoot",
    "timestamp",
    "totalDifficulty",
    "transactionsRoot",
    "used",
];

/// Members that blocks and transactions of Rootstock do not have.
const OF_ETHEREUM: [&str; 5] =
    ["baseFeePerGas", "blobGasPrice", "blockTimestamp", "withdrawals", "withdrawalsRoot"];

/// Members that only blocks of Rootstock have.
const OF_ROOTSTOCK: [&str; 9] = [
    "baseEvent",
    "bitcoinMergedMiningCoinbaseTransaction",
    "bitcoinMergedMiningHeader",
    "bitcoinMergedMiningMerkleProof",
    "cumulativeDifficulty",
    "hashForMergedMining",
    "minimumGasPrice",
    "paidFees",
    "rskPteEdges",
];

/// Differences that are meant: the start of a method's name, a part of the place, and why.
const MEANT: &[(&str, &str, &str)] = &[
    ("trace_", "/result: null", "the reference node shows no result of a call that reverts"),
    (
        "trace_replay",
        "0x0000000000000000000000000000000000000000: none",
        "anvil pays fees to its miner, at address 0",
    ),
    ("trace_replay", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266/balance", "less the fees"),
    ("trace_replay", "0000007777/", "a new account is marked by a plus, as in OpenEthereum"),
    ("trace_replay", "00000000e2d5/", "an account that ends is marked by a minus"),
    ("trace_replay", "/sub/code", "the initialisation code of a creation, as in OpenEthereum"),
    (
        "trace_replay",
        "/ex/",
        "null where an instruction writes nothing, as in OpenEthereum; anvil shows memory that is older, and no storage",
    ),
    ("trace_replay", "/op: none", "anvil adds the names of instructions"),
    ("trace_replay", "7 items", "REMASC's run has no trace of steps"),
    ("eth_simulateV1", "umber: ", "anvil counts the base block again"),
    ("eth_simulateV1", "/logsBloom", "without the logs of transfers, as in geth"),
    ("eth_simulateV1", "/size: only ours", "as in other blocks"),
    ("eth_simulateV1", "/totalDifficulty: only ours", "as in other blocks"),
    ("eth_simulateV1", "/transactions/", "hashes of transactions with other fields"),
    ("eth_simulateV1", "/transactionHash", "as above"),
    ("eth_simulateV1", "/error", "the codes of execution-apis, with the data"),
    ("eth_simulateV1", "/maxUsedGas", "of execution-apis"),
    ("debug_", "/index: ", "a number, as in the reference node"),
    ("debug_", "/gas: none", "a destruction uses no gas and has no input, as in the reference node"),
    ("debug_", "/gasUsed: none", "as above"),
    ("debug_", "/input: none", "as above"),
    ("debug_", "0x0000000000000000000000000000000000000000: none", "anvil's miner"),
    ("debug_", "/codeHash: only ours", "as in newer releases of geth"),
    (
        "debug_",
        "f05358e6880ed2b8af3407cc296e2d994a6d7be3",
        "a new account is only in the state after the call",
    ),
    ("debug_", "0000007777: none", "as above"),
    ("debug_", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266/balance", "less the fees"),
    ("eth_getAccount", "/storageRoot", "of the Unitrie"),
    ("eth_fillTransaction", "/raw", "the bytes that are signed (EIP-155)"),
    ("eth_fillTransaction", "/tx/v", "as above"),
    ("eth_fillTransaction", "/chainId", "the reference node shows none"),
    ("eth_getTransactionBySenderAndNonce", "/chainId", "as above"),
    ("eth_config", "/current/", "Rootstock's upgrades are by height, and it has contracts of its own"),
    ("ots_getInternalOperations", "0 items", "anvil lists the transfer of the transaction itself"),
    ("ots_getBlock", "/logsBloom: null", "left out, as in Erigon"),
    ("ots_getBlock", "/logs: null", "as above"),
    ("ots_getBlock", "/transactionCount", "with REMASC's"),
    ("ots_getBlock", "/totalFees", "of Rootstock's gas"),
    ("ots_getBlock", "/timestamp: none", "anvil adds times to receipts"),
    ("ots_", "/chainId", "the reference node shows none"),
];

/// The transaction of REMASC, the last one of each block.
const REMASC: &str = "0x0000000000000000000000000000000001000008";

/// Collects the places at which an answer is not like anvil's.
fn compare(ours: &Value, theirs: &Value, place: &str, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => compare_members(ours, theirs, place, found),
        (Value::Array(ours), Value::Array(theirs)) => {
            let last = ours.last().filter(|last| last.to_string().contains(REMASC));
            if ours.len() != theirs.len() + usize::from(last.is_some()) {
                found.push(format!("{place}: {} items, not {}", ours.len(), theirs.len()));
            }
            for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                compare(ours, theirs, &format!("{place}/{index}"), found);
            }
        }
        (Value::String(ours), Value::String(theirs)) if ours.eq_ignore_ascii_case(theirs) => {}
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => found.push(format!("{place}: {ours}, not {theirs}")),
    }
}

fn compare_members(
    ours: &Map<String, Value>,
    theirs: &Map<String, Value>,
    place: &str,
    found: &mut Vec<String>,
) {
    for (name, theirs) in theirs.iter().filter(|(name, _)| !OF_ETHEREUM.contains(&name.as_str())) {
        let place = format!("{place}/{name}");
        match ours.get(name) {
            None => found.push(format!("{place}: none")),
            Some(ours) if OF_CHAIN.contains(&name.as_str()) => {
                if std::mem::discriminant(ours) != std::mem::discriminant(theirs) {
                    found.push(format!("{place}: {ours}, not like {theirs}"));
                }
            }
            Some(ours) => compare(ours, theirs, &place, found),
        }
    }
    let more =
        ours.keys().filter(|name| !theirs.contains_key(*name) && !OF_ROOTSTOCK.contains(&name.as_str()));
    found.extend(more.map(|name| format!("{place}/{name}: only ours")));
}

/// A development chain with the contracts of the recording and a block of these transactions.
pub(crate) fn chain(transactions: &Value) -> DevClient {
    let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
    let mut dev = DevClient::new(config);
    for request in anvil()["setup"].as_array().unwrap() {
        dev.get(request["method"].as_str().unwrap(), request["params"].clone());
    }
    for transaction in transactions.as_array().unwrap() {
        dev.get("eth_sendTransaction", json!([transaction]));
    }
    dev.get("evm_mine", json!([]));
    dev
}

fn anvil() -> Value {
    serde_json::from_str(include_str!("../vectors/anvil.json")).unwrap()
}

/// Asks the requests of a recording; fails on a difference that is not meant, and on one that is no longer there.
pub(crate) fn assert_alike(dev: &mut DevClient, recording: &Value, meant_differences: &[(&str, &str, &str)]) {
    let (mut meant, mut wrong) = (BTreeSet::new(), Vec::new());
    for request in recording["requests"].as_array().unwrap() {
        let (method, params) = (request["method"].as_str().unwrap(), &request["params"]);
        let mut found = Vec::new();
        compare(&dev.get(method, params.clone()), &request["result"], "", &mut found);
        for difference in found {
            let known = meant_differences
                .iter()
                .position(|(of, place, _)| method.starts_with(of) && difference.contains(place));
            match known {
                Some(index) => drop(meant.insert(index)),
                None => wrong.push(format!("{method} {params}: {difference}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let stale: Vec<_> = (0..meant_differences.len())
        .filter(|index| !meant.contains(index))
        .map(|index| meant_differences[index])
        .collect();
    assert!(stale.is_empty(), "no longer different: {stale:?}");
}

#[test]
fn answers_have_the_shape_of_those_of_anvil() {
    let recording = anvil();
    assert_alike(&mut chain(&recording["transactions"]), &recording, MEANT);
}
