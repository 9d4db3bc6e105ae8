//! Methods that the clients of anvil, hardhat and ganache call on a development chain.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use rootlight::dev::{DevAccounts, DevConfig, DumpedAccount, Mining};
use rootlight::types::{Bytes, U256};
use serde_json::{Value, json};

use crate::dev_rpc::{ALICE, BOB, NOBODY, dev, transfer};
use crate::support::dev::DevClient;

/// Returns storage cell 1.
const READS_CELL: &str = "0x60015460005260206000f3";

fn unpacked(dump: &Value) -> Value {
    let bytes = hex::decode(&dump.as_str().unwrap()[2..]).unwrap();
    let mut text = String::new();
    GzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn packed(state: &str) -> Value {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(state.as_bytes()).unwrap();
    json!(format!("0x{}", hex::encode(encoder.finish().unwrap())))
}

fn head(dev: &mut DevClient) -> Value {
    dev.get("eth_getBlockByNumber", json!(["latest", false]))["hash"].clone()
}

/// The clients of anvil demand null where hardhat answers true.
#[test]
fn the_names_of_anvil_and_hardhat_have_the_answers_of_their_tools() {
    let mut dev = dev(Mining::Manual);
    let both = [
        ("setBalance", json!([NOBODY, "0x1"])),
        ("setNonce", json!([NOBODY, "0x1"])),
        ("setCode", json!([NOBODY, "0x00"])),
        ("impersonateAccount", json!([NOBODY])),
        ("stopImpersonatingAccount", json!([NOBODY])),
        ("setCoinbase", json!([NOBODY])),
        ("setMinGasPrice", json!(["0x0"])),
    ];
    for (name, params) in both {
        dev.get("anvil_impersonateAccount", json!([NOBODY]));
        assert_eq!(dev.get(&format!("anvil_{name}"), params.clone()), Value::Null, "{name}");
        dev.get("anvil_impersonateAccount", json!([NOBODY]));
        assert_eq!(dev.get(&format!("hardhat_{name}"), params), json!(true), "{name}");
    }
    for name in ["evm_setAccountBalance", "evm_setAccountNonce"] {
        assert_eq!(dev.get(name, json!([NOBODY, "0x7"])), json!(true));
    }
    assert_eq!(dev.number("eth_getBalance", json!([NOBODY])), 7);
    assert_eq!(dev.number("eth_getTransactionCount", json!([NOBODY])), 7);
    assert_eq!(dev.get("evm_setAutomine", json!([false])), json!(true));
    assert_eq!(dev.get("anvil_setAutomine", json!([false])), Value::Null);
    assert_eq!(dev.get("evm_setTime", json!([dev.now + 9])), json!(9));
    // viem's reset without options.
    dev.get("evm_mine", json!([]));
    assert_eq!(dev.get("anvil_reset", json!([{"forking": {"blockNumber": null}}])), Value::Null);
    assert_eq!(dev.number("eth_blockNumber", json!([])), 0);
    let (code, text) = dev.refused("hardhat_setNextBlockBaseFeePerGas", json!(["0x1"]));
    assert!(code == -32601 && text.contains("hardhat_setMinGasPrice"), "{text}");
}

/// viem leaves the gas of a transaction of the node's accounts to the node.
#[test]
fn a_transaction_without_gas_gets_what_it_uses() {
    // Returns 600 bytes of code, which cost 120,000 gas.
    const CREATION: &str = "0x6102586000f3";
    const REVERTS: &str = "0x60006000fd";
    let mut dev = dev(Mining::Instant);
    dev.get("anvil_setCode", json!([NOBODY, REVERTS]));
    let gas = |dev: &mut DevClient, message: Value| {
        let hash = dev.get("eth_sendTransaction", json!([message]));
        let transaction = dev.get("eth_getTransactionByHash", json!([hash]));
        let receipt = dev.get("eth_getTransactionReceipt", json!([hash]));
        (transaction["gas"].as_str().unwrap().to_owned(), receipt["status"].clone())
    };
    let used = dev.get("eth_estimateGas", json!([{"from": ALICE, "data": CREATION}]));
    let created = gas(&mut dev, json!({"from": ALICE, "data": CREATION, "gas": null}));
    assert_eq!((json!(created.0), created.1), (used, json!("0x1")));
    // The reference node's default stands where it is enough, and where no gas would be.
    let paid = gas(&mut dev, json!({"from": ALICE, "to": BOB, "value": "0x1"}));
    assert_eq!(paid, ("0x15f90".into(), json!("0x1")));
    let failed = gas(&mut dev, json!({"from": ALICE, "to": NOBODY}));
    assert_eq!(failed, ("0x15f90".into(), json!("0x0")));
    let given = gas(&mut dev, json!({"from": ALICE, "to": BOB, "gas": "0x7530"}));
    assert_eq!(given.0, "0x7530");
}

#[test]
fn the_log_of_blocks_is_turned_off_and_on() {
    let mut dev = dev(Mining::Manual);
    for (enabled, events) in [(false, 0), (true, 1)] {
        dev.get("anvil_setLoggingEnabled", json!([enabled]));
        dev.get("evm_mine", json!([]));
        assert_eq!(dev.chain().take_events().len(), events);
    }
}

#[test]
fn transactions_without_a_key_are_sent_for_any_account() {
    let mut dev = dev(Mining::Instant);
    dev.get("anvil_setBalance", json!([NOBODY, "0xde0b6b3a7640000"]));
    let hash = dev.get("eth_sendUnsignedTransaction", json!([{"from": NOBODY, "to": BOB, "value": "0x9"}]));
    assert_eq!(dev.get("eth_getTransactionReceipt", json!([hash]))["from"], json!(NOBODY));
    dev.refused("eth_sendTransaction", json!([{"from": NOBODY, "to": BOB, "value": "0x9"}]));
}

#[test]
fn a_transaction_is_answered_with_its_receipt() {
    let mut dev = dev(Mining::Instant);
    let receipt = dev.get("eth_sendTransactionSync", transfer(1));
    let hash = receipt["transactionHash"].clone();
    assert_eq!(receipt, dev.get("eth_getTransactionReceipt", json!([hash])));
    let raw = dev.get("eth_signTransaction", json!([{"from": BOB, "to": ALICE, "gas": "0x5208"}]));
    assert_eq!(dev.get("eth_sendRawTransactionSync", json!([raw, 2_000]))["from"], json!(BOB));
    // A transaction that waits stays in the pool; the error's data is its hash.
    let gap = json!([{"from": BOB, "to": ALICE, "nonce": "0x5"}]);
    for (mining, params, code) in [(true, gap, 5), (false, transfer(2), 4)] {
        dev.get("evm_setAutomine", json!([mining]));
        let error = dev.ask("eth_sendTransactionSync", params)["error"].clone();
        assert_eq!(error["code"], json!(code), "{error}");
        let waiting = dev.get("eth_getTransactionByHash", json!([error["data"]]));
        assert_eq!(waiting["blockHash"], Value::Null);
    }
}

#[test]
fn mined_blocks_are_given_with_their_transactions() {
    let mut dev = dev(Mining::Manual);
    let hash = dev.get("eth_sendTransaction", transfer(1));
    let blocks = dev.get("evm_mine_detailed", json!([{"blocks": 2}]));
    let numbers: Vec<&Value> = blocks.as_array().unwrap().iter().map(|block| &block["number"]).collect();
    assert_eq!(numbers, ["0x1", "0x2"]);
    assert_eq!(blocks[0]["transactions"][0]["hash"], hash);
    assert_eq!(blocks[1]["hash"], head(&mut dev));
}

#[test]
fn mined_blocks_that_an_answer_cannot_hold_are_not_mined() {
    let mut dev = dev(Mining::Manual);
    let (code, text) = dev.refused("evm_mine_detailed", json!([{"blocks": 2_001}]));
    assert_eq!((code, text.as_str()), (-32005, "2001 blocks at once, at most 2000: ask for fewer"));
    assert_eq!(dev.get("evm_mine_detailed", json!([{"blocks": 2_000}])).as_array().unwrap().len(), 2_000);
    // Transactions with 200,000 digits each.
    let data = format!("0x{}", "00".repeat(100_000));
    for _ in 0..60 {
        dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "data": data, "gas": "0xf4240"}]));
    }
    let (height, before) = (dev.number("eth_blockNumber", json!([])), dev.get("txpool_status", json!([])));
    let (code, text) = dev.refused("evm_mine_detailed", json!([{"blocks": 60}]));
    assert!(text.contains("Response size limit"), "{code} {text}");
    assert_eq!(dev.number("eth_blockNumber", json!([])), height);
    assert_eq!(dev.get("txpool_status", json!([])), before);
}

#[test]
fn the_newest_blocks_are_taken_back() {
    let mut dev = dev(Mining::Instant);
    dev.get("eth_sendTransaction", transfer(1));
    dev.get("anvil_setBalance", json!([NOBODY, "0x5"]));
    let first = head(&mut dev);
    let filter = dev.get("eth_newBlockFilter", json!([]));
    let sent = dev.get("eth_sendTransaction", transfer(2));
    dev.get("anvil_setBalance", json!([NOBODY, "0x6"]));
    let second = head(&mut dev);
    assert_eq!(dev.get("anvil_rollback", json!([])), Value::Null);
    assert_eq!(head(&mut dev), first);
    assert_eq!(dev.number("eth_getBalance", json!([NOBODY])), 5, "the changes of that time stay");
    assert_eq!(dev.number("eth_getTransactionCount", json!([ALICE])), 1);
    assert_eq!(dev.get("eth_getTransactionReceipt", json!([sent])), Value::Null);
    assert_eq!(dev.get("eth_getBlockByHash", json!([second, false])), Value::Null);
    let again = dev.get("eth_sendTransaction", transfer(2));
    assert_eq!(dev.get("eth_getTransactionReceipt", json!([again]))["blockNumber"], json!("0x2"));
    assert!(dev.get("eth_getFilterChanges", json!([filter])).as_array().unwrap().contains(&head(&mut dev)));
    let (code, text) = dev.refused("anvil_rollback", json!([3]));
    assert!(code == -32602 && text.starts_with("3 blocks cannot be removed above block 2"), "{text}");
    dev.get("anvil_rollback", json!([2]));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 0);
}

#[test]
fn the_newest_blocks_are_replaced_by_others_with_their_own_transactions() {
    let mut dev = dev(Mining::Instant);
    let subscription = dev.get("eth_newFilter", json!([{}]));
    let old: Vec<Value> = (1..=3).map(|value| dev.get("eth_sendTransaction", transfer(value))).collect();
    let before = head(&mut dev);
    let waiting = dev.get("eth_sendTransaction", json!([{"from": BOB, "to": ALICE, "nonce": "0x1"}]));
    let raw = dev.get("eth_signTransaction", json!([{"from": BOB, "to": ALICE, "gas": "0x5208"}]));
    let object = json!({"from": ALICE, "to": BOB, "value": "0x8"});
    dev.get("anvil_reorg", json!([2, [[object, 0], [object, "0x1"], [raw, 1]]]));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 3);
    assert_ne!(head(&mut dev), before);
    let counts = ["0x1", "0x2", "0x3"]
        .map(|number| dev.number("eth_getBlockTransactionCountByNumber", json!([number])));
    assert_eq!(counts, [2, 2, 3], "each with REMASC's");
    assert_ne!(dev.get("eth_getTransactionReceipt", json!([old[0]])), Value::Null);
    assert_eq!(dev.get("eth_getTransactionReceipt", json!([old[2]])), Value::Null);
    assert_eq!(dev.get("txpool_status", json!([]))["pending"], json!(1), "the earlier nonce was mined");
    assert_eq!(dev.get("eth_getTransactionByHash", json!([waiting]))["hash"], waiting);
    assert_eq!(dev.get("eth_getFilterChanges", json!([subscription])), json!([]));
    dev.get("evm_mine", json!([]));
    assert_eq!(dev.number("eth_getTransactionCount", json!([BOB])), 2);
    // Blocks without transactions differ too.
    let empty = head(&mut dev);
    dev.get("anvil_reorg", json!([1]));
    assert_ne!(head(&mut dev), empty);
}

/// alloy has no other form.
#[test]
fn the_parameters_of_a_reorganisation_may_have_names() {
    let mut dev = dev(Mining::Instant);
    dev.get("eth_sendTransaction", transfer(1));
    let before = head(&mut dev);
    let pair = json!([{"from": ALICE, "to": BOB, "value": "0x8"}, 0]);
    assert_eq!(dev.get("anvil_reorg", json!({"tx_block_pairs": [pair], "depth": 1})), Value::Null);
    assert_ne!(head(&mut dev), before);
    assert_eq!(dev.number("eth_getBlockTransactionCountByNumber", json!(["0x1"])), 2, "with REMASC's");
    dev.get("anvil_reorg", json!({"depth": "0x1"}));
    assert_eq!(dev.number("eth_getBlockTransactionCountByNumber", json!(["0x1"])), 1);
    for (method, params) in [
        ("anvil_reorg", json!({"tx_block_pairs": []})),
        ("anvil_reorg", json!({"depth": 1, "transactions": []})),
        ("anvil_rollback", json!({"depth": 1})),
        ("eth_getBalance", json!({"address": ALICE})),
    ] {
        assert_eq!(dev.refused(method, params).0, -32602, "{method}");
    }
}

#[test]
fn a_reorganisation_that_fails_changes_nothing() {
    let mut dev = dev(Mining::Instant);
    dev.get("eth_sendTransaction", transfer(1));
    let before = head(&mut dev);
    let late = json!({"from": ALICE, "to": BOB, "nonce": "0x7"});
    for params in [
        json!([1, [[{"from": NOBODY, "to": BOB}, 0]]]),
        json!([1, [[late, 0]]]),
        json!([1, [["0x01", 0]]]),
        json!([1, [[{"from": ALICE, "to": BOB}, 1]]]),
        json!([1, [[{"from": ALICE, "to": BOB}, 0], ["0x", 0]]]),
        json!([2, []]),
        json!([100_000, []]),
    ] {
        dev.refused("anvil_reorg", params.clone());
        assert_eq!(head(&mut dev), before, "{params}");
        assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 0, "queued": 0}));
    }
    dev.get("eth_sendTransaction", transfer(2));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 2, "mining is instant as before");
}

#[test]
fn a_dump_holds_the_accounts_and_another_chain_loads_it() {
    let mut first = dev(Mining::Instant);
    first.get("anvil_setBalance", json!([NOBODY, "0x0"]));
    first.get("anvil_setCode", json!([NOBODY, READS_CELL]));
    first.get("anvil_setStorageAt", json!([NOBODY, "0x1", "0x2a"]));
    first.get("eth_sendTransaction", transfer(7));
    first.get("evm_increaseTime", json!([100_000]));
    first.get("evm_mine", json!([]));
    let dump = first.get("anvil_dumpState", json!([]));
    let state = unpacked(&dump);
    let word = |number: u64| format!("0x{number:064x}");
    let contract = &state["accounts"][NOBODY];
    assert_eq!((&contract["code"], &contract["storage"]), (&json!(READS_CELL), &json!({word(1): word(42)})));
    assert_eq!((&state["version"], &state["best_block_number"]), (&json!(1), &json!(2)));
    assert_eq!(state["accounts"][ALICE]["nonce"], json!(1));

    let empty = DevAccounts { count: 1, balance: U256::from(1), ..DevAccounts::default() };
    let mut second = DevClient::new(DevConfig { mining: Mining::Manual, ..DevConfig::new(&empty) });
    assert_eq!(second.get("hardhat_loadState", json!([dump])), json!(true));
    assert_eq!(second.get("eth_call", json!([{"to": NOBODY}, "latest"])), json!(word(42)));
    assert_eq!(second.number("eth_getTransactionCount", json!([ALICE])), 1);
    for account in [ALICE, BOB] {
        let balance = |dev: &mut DevClient| dev.get("eth_getBalance", json!([account]));
        assert_eq!(balance(&mut second), balance(&mut first));
    }
    second.get("evm_mine", json!([]));
    let time =
        |dev: &mut DevClient| dev.get("eth_getBlockByNumber", json!(["latest", false]))["timestamp"].clone();
    let number = |time: Value| u64::from_str_radix(&time.as_str().unwrap()[2..], 16).unwrap();
    assert!(number(time(&mut second)) >= number(time(&mut first)));
    // The dump of what was loaded has the same accounts, apart from those that blocks change.
    let again = unpacked(&second.get("anvil_dumpState", json!([])));
    for account in [ALICE, BOB, NOBODY] {
        assert_eq!(again["accounts"][account], state["accounts"][account]);
    }
}

/// Native contracts store cells of any length, which may begin with zero bytes. anvil reads cells of 32 bytes only.
#[test]
fn a_dump_keeps_cells_that_are_no_words_as_they_are() {
    let cells = [vec![0], vec![0, 5], vec![5, 0], [vec![0; 31], vec![7]].concat(), vec![0; 40], vec![9; 33]];
    let cells: BTreeMap<U256, Bytes> =
        (0..).map(U256::from).zip(cells.into_iter().map(Bytes::from)).collect();
    let account = DumpedAccount { contract: true, cells: cells.clone(), ..DumpedAccount::default() };
    let mut first = dev(Mining::Manual);
    first.chain().load(&BTreeMap::from([(NOBODY.parse().unwrap(), account)])).unwrap();
    let dump = first.get("anvil_dumpState", json!([]));
    let state = unpacked(&dump);
    let words = state["accounts"][NOBODY]["storage"].as_object().unwrap();
    assert!(
        words
            .iter()
            .flat_map(|(slot, word)| [slot.as_str(), word.as_str().unwrap()])
            .all(|text| text.len() == 66)
    );
    assert_eq!(words[&format!("0x{:064x}", 1)], json!(format!("0x{:064x}", 5)));
    assert_eq!(words.len(), 4);
    let mut second = dev(Mining::Manual);
    second.get("anvil_loadState", json!([dump]));
    for (slot, value) in cells {
        let read = second.get("ext_getStorageBytesAt", json!([NOBODY, format!("{slot:#x}"), "latest"]));
        assert_eq!(read, json!(value.to_string()), "{slot}");
    }
}

/// Dumps of anvil, of several of its versions, compressed or plain.
#[test]
fn the_form_of_anvil_is_loaded() {
    let accounts = json!({
        NOBODY: {"nonce": 1, "balance": "0x10", "code": READS_CELL, "storage": {"0x1": "0x2a"}},
        BOB: {"nonce": "0x2", "balance": "7", "code": "0x", "storage": {}},
    });
    let state = json!({
        "block": {"number": "0x5", "timestamp": "0x1", "gas_limit": 30_000_000, "basefee": 1},
        "accounts": accounts, "best_block_number": 5, "blocks": [{}], "transactions": [], "historical_states": null,
    });
    let text = state.to_string();
    for dump in [packed(&text), json!(format!("0x{}", hex::encode(&text)))] {
        let mut dev = dev(Mining::Instant);
        dev.get("anvil_loadState", json!([dump]));
        assert_eq!(dev.number("eth_call", json!([{"to": NOBODY}, "latest"])), 42);
        assert_eq!(dev.number("eth_getBalance", json!([BOB])), 7);
        assert_eq!(dev.number("eth_getTransactionCount", json!([BOB])), 2);
        assert_ne!(dev.number("eth_getTransactionCount", json!([NOBODY])), 0);
        assert_eq!(dev.get("eth_blockNumber", json!([])), json!("0x0"));
        assert_ne!(dev.get("eth_getBalance", json!([ALICE])), json!("0x0"), "other accounts stay");
    }
}

#[test]
fn a_dump_that_cannot_be_loaded_changes_nothing() {
    let mut dev = dev(Mining::Instant);
    let root = dev.chain().view().head_state().root();
    let time = dev.chain().clock().now(1_000);
    let native = "0x0000000000000000000000000000000001000006";
    let account = |fields: &str| {
        format!(
            r#"{{"block":{{"timestamp":9000000000}},"accounts":{{"{NOBODY}":{{"nonce":1,"balance":"0x1"}},{fields}}}}}"#
        )
    };
    let long = format!("{:#x}1", U256::MAX);
    for state in [
        String::new(),
        "[]".into(),
        "{}".into(),
        account(&format!(r#""{native}":{{"nonce":0,"balance":"0x0","code":"0x00"}}"#)),
        account(&format!(r#""{BOB}":{{"nonce":0,"balance":"{long}"}}"#)),
        account(&format!(r#""{BOB}":{{"nonce":"{}","balance":"0x0"}}"#, u64::MAX)),
        account(&format!(r#""{BOB}":{{"nonce":0,"balance":"0x0","storage":{{"{long}":"0x1"}}}}"#)),
        account(&format!(r#""{BOB}":{{"nonce":0,"balance":"0x0","code":"0x0g"}}"#)),
        account(r#""0x12":{"nonce":0,"balance":"0x0"}"#),
        r#"{"version":2,"accounts":{}}"#.into(),
        format!(r#"{{"accounts":{{}},"x":"{}"}}"#, " ".repeat(17 << 20)),
    ] {
        dev.refused("anvil_loadState", json!([packed(&state)]));
        assert_eq!(dev.chain().view().head_state().root(), root, "{}", &state[..state.len().min(200)]);
        assert_eq!(dev.chain().clock().now(1_000), time);
    }
    dev.refused("anvil_loadState", json!(["0x1f8b08"]));
}

#[test]
fn anvils_clients_are_told_about_the_node() {
    let mut dev = dev(Mining::Instant);
    dev.get("evm_mine", json!([]));
    let info = dev.get("anvil_nodeInfo", json!([]));
    assert_eq!((&info["currentBlockNumber"], &info["currentBlockHash"]), (&json!("0x1"), &head(&mut dev)));
    assert_eq!(
        (&info["environment"]["chainId"], &info["forkConfig"]["forkBlockNumber"]),
        (&json!(33), &Value::Null)
    );
    assert_eq!(info["hardFork"], "tbd1000");
    let genesis = dev.get("eth_getBlockByNumber", json!(["0x0"]))["timestamp"].clone();
    let time = dev.get("anvil_getGenesisTime", json!([]));
    assert_eq!(genesis, json!(format!("{:#x}", time.as_u64().unwrap())));
    let id = dev.get("evm_snapshot", json!([]));
    assert_eq!(
        dev.get("anvil_metadata", json!([]))["snapshots"][id.as_str().unwrap()],
        json!([1, head(&mut dev)])
    );
}
