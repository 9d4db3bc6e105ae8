//! Prices, gas limits and nonces of a development chain: what it takes is mined.

use crate::support::dev::DevClient;
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::types::U256;
use serde_json::{Value, json};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const CAROL: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";

fn dev(mining: Mining) -> DevClient {
    DevClient::new(DevConfig { mining, ..DevConfig::new(&DevAccounts::default()) })
}

fn priced(price: u64) -> Value {
    json!([{"from": ALICE, "to": BOB, "value": "0x1", "gasPrice": format!("{price:#x}")}])
}

fn mined(dev: &mut DevClient, transaction: Value) -> Value {
    let hash = dev.get("eth_sendTransaction", transaction.clone());
    let receipt = dev.get("eth_getTransactionReceipt", json!([hash]));
    assert_eq!(receipt["status"], json!("0x1"), "{transaction}");
    receipt
}

fn minimum(dev: &mut DevClient) -> u64 {
    let head = dev.get("eth_getBlockByNumber", json!(["latest", false]));
    crate::support::u64_of(head["minimumGasPrice"].as_str().unwrap())
}

#[test]
fn transactions_at_the_minimum_that_was_set_are_mined_at_once() {
    for (method, price) in
        [("anvil_setMinGasPrice", 60_000_000), ("hardhat_setMinGasPrice", 51), ("anvil_setMinGasPrice", 50)]
    {
        let mut dev = dev(Mining::Instant);
        dev.get(method, json!([format!("{price:#x}")]));
        for blocks in [0, 5] {
            dev.get("hardhat_mine", json!([format!("{blocks:#x}")]));
            for _ in 0..12 {
                let height = dev.number("eth_blockNumber", json!([]));
                mined(&mut dev, priced(price));
                let offered = dev.number("eth_gasPrice", json!([]));
                assert_eq!(offered, price * 11 / 10);
                mined(&mut dev, priced(offered));
                mined(&mut dev, json!([{"from": ALICE, "to": BOB}]));
                assert_eq!(dev.number("eth_blockNumber", json!([])), height + 3, "{method} {price}");
            }
        }
        assert_eq!(dev.refused("eth_sendTransaction", priced(price - 1)).0, -32010);
    }
}

/// From above zero the header's minimum moves, by one or by a hundredth in each block.
#[test]
fn the_minimum_of_blocks_approaches_the_one_that_was_set() {
    let mut dev = dev(Mining::Instant);
    dev.get("anvil_setMinGasPrice", json!(["0x32"]));
    dev.get("hardhat_mine", json!(["0x31"]));
    assert_eq!(minimum(&mut dev), 49);
    mined(&mut dev, priced(50));
    assert_eq!(minimum(&mut dev), 50);
    // A minimum that is much higher takes prices at it only when the blocks are near.
    dev.get("anvil_setMinGasPrice", json!(["0x3938700"]));
    mined(&mut dev, priced(60_000_000));
    assert!(minimum(&mut dev) * 100 >= 60_000_000);
    let height = dev.number("eth_blockNumber", json!([]));
    assert!((900..1_100).contains(&height), "{height}");
    mined(&mut dev, priced(60_000_000));
    assert_eq!(dev.number("eth_blockNumber", json!([])), height + 1);
    // And a lower one as well.
    dev.get("anvil_setMinGasPrice", json!(["0x0"]));
    let offered = dev.number("eth_gasPrice", json!([]));
    mined(&mut dev, priced(offered));
    mined(&mut dev, priced(0));
    assert_eq!(minimum(&mut dev), 0);
    assert_eq!(dev.number("eth_gasPrice", json!([])), 0);
}

#[test]
fn a_transaction_that_later_blocks_can_hold_waits_for_them() {
    let mut dev = dev(Mining::Manual);
    dev.get("anvil_setMinGasPrice", json!(["0x5"]));
    dev.get("hardhat_mine", json!(["0x5"]));
    dev.get("anvil_setMinGasPrice", json!(["0x2"]));
    let hash = dev.get("eth_sendTransaction", priced(2));
    dev.get("hardhat_mine", json!(["0x2"]));
    assert_eq!(dev.get("eth_getTransactionReceipt", json!([hash])), Value::Null);
    assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 1, "queued": 0}));
    dev.get("evm_mine", json!([]));
    assert_eq!(dev.get("eth_getTransactionReceipt", json!([hash]))["blockNumber"], json!("0x8"));
    // A transaction that no later block can hold is dropped.
    dev.get("anvil_setMinGasPrice", json!(["0x2"]));
    dev.get("eth_sendTransaction", priced(2));
    dev.get("anvil_setMinGasPrice", json!(["0xa"]));
    dev.get("evm_mine", json!([]));
    assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 0, "queued": 0}));
}

/// With instant mining the blocks before that one are mined too, whether these are none, one or several.
#[test]
fn a_transaction_that_a_later_block_can_hold_is_mined_at_once() {
    for blocks in 0..4 {
        let mut dev = dev(Mining::Instant);
        dev.get("anvil_setMinGasPrice", json!(["0x5"]));
        dev.get("hardhat_mine", json!(["0x5"]));
        let price = 4 - blocks;
        dev.get("anvil_setMinGasPrice", json!([format!("{price:#x}")]));
        let receipt = mined(&mut dev, priced(price));
        assert_eq!(receipt["blockNumber"], json!(format!("{:#x}", 6 + blocks)));
    }
}

/// A transaction gets at most a third of such a block (RSKIP-144).
#[test]
fn transactions_use_a_gas_limit_that_was_set_at_once() {
    let mut dev = dev(Mining::Instant);
    let large = json!([{"from": ALICE, "to": BOB, "gas": "0xe4e1c0"}]);
    assert_eq!(dev.refused("eth_sendTransaction", large.clone()).0, -32010);
    dev.get("evm_setBlockGasLimit", json!(["0x3938700"]));
    let receipt = mined(&mut dev, large.clone());
    let height = crate::support::u64_of(receipt["blockNumber"].as_str().unwrap());
    assert!((1_400..1_700).contains(&height), "{height}");
    mined(&mut dev, large);
    assert_eq!(dev.number("eth_blockNumber", json!([])), height + 1);
    // Estimates have the same limit: this code uses some 12 million gas.
    let mut dev = self::dev(Mining::Instant);
    let burner = "0x00000000000000000000000000000000000abcde";
    // 50,000 times: hashes 1 KiB.
    dev.get("anvil_setCode", json!([burner, "0x61c3505b6104005f205060019003806003575000"]));
    let call = json!([{"from": ALICE, "to": burner}]);
    let (code, _) = dev.refused("eth_estimateGas", call.clone());
    assert_eq!(code, -32000);
    dev.get("anvil_setBlockGasLimit", json!(["0x3938700"]));
    let gas = dev.get("eth_estimateGas", call);
    assert!(crate::support::u64_of(gas.as_str().unwrap()) > 10_000_000, "{gas}");
    mined(&mut dev, json!([{"from": ALICE, "to": burner, "gas": gas}]));
    // No block soon has this limit.
    dev.get("evm_setBlockGasLimit", json!(["0x1fffffffffffff"]));
    let (code, text) = dev.refused(
        "eth_sendTransaction",
        json!([{"from": ALICE, "to": BOB, "gas": "0xffffffffffff", "gasPrice": "0x0"}]),
    );
    assert_eq!(code, -32010, "{text}");
}

fn raw(dev: &mut DevClient, nonce: u64) -> Value {
    let transaction =
        json!({"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "nonce": format!("{nonce:#x}")});
    dev.get("eth_signTransaction", json!([transaction]))
}

/// The senders of a page or a script do not wait for each other.
#[test]
fn transactions_that_arrive_in_any_order_get_their_hashes_and_are_mined() {
    for order in [(0..600).rev().collect::<Vec<u64>>(), (0..600).map(|n| (n * 7) % 600).collect()] {
        let mut dev = dev(Mining::Instant);
        let all: Vec<Value> = order.iter().map(|nonce| raw(&mut dev, *nonce)).collect();
        let hashes: Vec<Value> =
            all.iter().map(|raw| dev.get("eth_sendRawTransaction", json!([raw]))).collect();
        assert_eq!(dev.number("eth_getTransactionCount", json!([ALICE, "latest"])), 600);
        for hash in hashes {
            assert_eq!(dev.get("eth_getTransactionReceipt", json!([hash]))["status"], json!("0x1"));
        }
        assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 0, "queued": 0}));
    }
}

#[test]
fn a_transaction_after_a_gap_waits_and_mines_no_block() {
    let mut dev = dev(Mining::Instant);
    let (second, first) = (raw(&mut dev, 1), raw(&mut dev, 0));
    let waiting = dev.get("eth_sendRawTransaction", json!([second]));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 0);
    assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 0, "queued": 1}));
    // The node gives its own transactions the nonces in order.
    let own = dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": BOB}]));
    let nonce = |dev: &mut DevClient, hash: &Value| {
        dev.get("eth_getTransactionByHash", json!([hash]))["nonce"].clone()
    };
    assert_eq!((nonce(&mut dev, &own), nonce(&mut dev, &waiting)), (json!("0x0"), json!("0x1")));
    assert_eq!(dev.number("eth_getTransactionCount", json!([ALICE, "latest"])), 2);
    assert_eq!(dev.refused("eth_sendRawTransaction", json!([first])).0, -32010, "the nonce is used");
    let far = raw(&mut dev, 2 + 1_024);
    let (code, text) = dev.refused("eth_sendRawTransaction", json!([far]));
    assert_eq!((code, text.as_str()), (-32010, "transaction nonce too high"));
}

/// As the reference node reports it where reverts are errors too.
#[test]
fn a_waiting_transaction_is_an_error_where_reverts_are_reported() {
    let mut dev =
        DevClient::new(DevConfig { report_reverts: true, ..DevConfig::new(&DevAccounts::default()) });
    let second = raw(&mut dev, 1);
    assert_eq!(dev.refused("eth_sendRawTransaction", json!([second])).0, -32009);
}

/// A block holds some 300 transfers of one list.
#[test]
fn instant_mining_ends_when_nothing_in_the_pool_can_be_mined() {
    let mut dev = dev(Mining::Manual);
    for _ in 0..1_000 {
        dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "gas": "0x5208"}]));
    }
    // A transaction whose sender cannot pay for it once the one before is mined.
    let wei = dev.get("eth_getBalance", json!([CAROL]));
    let most: U256 = wei.as_str().unwrap().parse().unwrap();
    dev.get(
        "eth_sendTransaction",
        json!([{"from": CAROL, "to": BOB, "value": format!("{most:#x}"), "gasPrice": "0x0"}]),
    );
    dev.get("anvil_setBalance", json!([CAROL, "0x1"]));
    dev.get("evm_setAutomine", json!([true]));
    assert_eq!(dev.number("eth_getTransactionCount", json!([ALICE, "latest"])), 1_000);
    assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 1, "queued": 0}));
    assert!(dev.number("eth_blockNumber", json!([])) < 10);
}

/// No nonce comes after 2^64 - 1 (EIP-2681): a transaction with it could be mined again and again.
#[test]
fn the_last_nonce_is_never_used() {
    let mut dev = dev(Mining::Instant);
    let set = |nonce: u64| json!([ALICE, format!("{nonce:#x}")]);
    for method in ["anvil_setNonce", "hardhat_setNonce"] {
        let (code, text) = dev.refused(method, set(u64::MAX));
        assert_eq!(code, -32602, "{text}");
    }
    dev.get("anvil_setNonce", set(u64::MAX - 1));
    let transfer = json!([{ "from": ALICE, "to": BOB, "value": "0x1" }]);
    mined(&mut dev, transfer.clone());
    let before = dev.number("eth_blockNumber", json!([]));
    let (_, text) = dev.refused("eth_sendTransaction", transfer);
    assert!(text.contains("nonce too high"), "{text}");
    assert_eq!(dev.number("eth_blockNumber", json!([])), before);
}

/// No account holds 2^256 wei. A call and a transaction that would need it are refused alike, and nothing is lost.
#[test]
fn no_transfer_takes_an_account_beyond_the_largest_balance() {
    let mut dev = dev(Mining::Instant);
    let full = json!(format!("{:#x}", U256::MAX));
    dev.get("anvil_setBalance", json!([BOB, full]));
    let before = dev.get("eth_getBalance", json!([ALICE, "latest"]));
    let transfer = json!([{"from": ALICE, "to": BOB, "value": "0x5", "gas": "0x5208"}]);
    assert_eq!(dev.refused("eth_call", transfer.clone()).0, -32002);
    assert_eq!(dev.refused("eth_sendTransaction", transfer).0, -32009);
    assert_eq!(dev.get("eth_getBalance", json!([ALICE, "latest"])), before);
    assert_eq!(dev.get("eth_getBalance", json!([BOB, "latest"])), full);
    mined(&mut dev, json!([{"from": BOB, "to": BOB, "value": "0x5"}]));
    mined(&mut dev, json!([{"from": BOB, "to": ALICE, "value": "0x5"}]));
    assert_ne!(dev.get("eth_getBalance", json!([BOB, "latest"])), full);
}
