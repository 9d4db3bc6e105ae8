//! The clock of a development chain: how far it moves, whatever time the newest block has.

use crate::support::dev::DevClient;
use crate::support::u64_of;
use rootlight::consensus::mining::BitcoinWork;
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::types::{B256, U256};
use serde_json::{Value, json};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";

fn dev(mining: Mining) -> DevClient {
    DevClient::new(DevConfig { mining, ..DevConfig::new(&DevAccounts::default()) })
}

fn time(dev: &mut DevClient, block: Value) -> u64 {
    u64_of(dev.get("eth_getBlockByNumber", json!([block, false]))["timestamp"].as_str().unwrap())
}

fn latest(dev: &mut DevClient) -> u64 {
    time(dev, json!("latest"))
}

/// Moves the time and mines: the new block and the pending one before it are at least that much later.
fn increased(dev: &mut DevClient, seconds: u64) -> u64 {
    let before = latest(dev);
    dev.get("evm_increaseTime", json!([seconds]));
    let pending = time(dev, json!("pending"));
    dev.get("evm_mine", json!([]));
    let after = latest(dev);
    assert!(pending >= before + seconds && after >= before + seconds, "{before}: {pending}, {after}");
    after - before
}

/// The name of a way, and its calls.
type Way = (&'static str, fn(&mut DevClient));

/// Each row brings the newest block ahead of the clock, or stops the clock, in another way.
#[test]
fn time_increases_from_a_block_that_is_ahead_of_the_clock() {
    let ways: [Way; 8] = [
        ("quick blocks", |dev| {
            for _ in 0..150 {
                dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": ALICE}]));
            }
        }),
        ("many blocks", |dev| drop(dev.get("hardhat_mine", json!(["0x3e8"])))),
        ("spaced blocks", |dev| drop(dev.get("anvil_mine", json!(["0x5", "0x15180"])))),
        ("a timestamp", |dev| {
            let next = dev.now + 86_400;
            dev.get("evm_mine", json!([{"timestamp": next, "blocks": 3}]));
        }),
        ("a clock that is set back", |dev| {
            dev.get("evm_mine", json!([]));
            let past = dev.now - 1_000_000;
            dev.get("evm_setTime", json!([past]));
        }),
        ("a fixed interval", |dev| drop(dev.get("anvil_setBlockTimestampInterval", json!([7])))),
        ("a timestamp that waits", |dev| {
            let next = latest(dev) + 5;
            dev.get("evm_setNextBlockTimestamp", json!([next]));
        }),
        ("a host whose clock is set back", |dev| {
            dev.get("evm_mine", json!([]));
            dev.now -= 1_000_000;
        }),
    ];
    for (way, bring) in ways {
        let mut dev = dev(Mining::Instant);
        dev.get("evm_mine", json!([]));
        bring(&mut dev);
        for seconds in [61, 0, 1, 86_400] {
            let by = increased(&mut dev, seconds);
            assert!(by <= seconds + 10, "{way}: {by} for {seconds}");
        }
        // Without a block between them, increases add up.
        let before = latest(&mut dev);
        dev.get("evm_increaseTime", json!([100]));
        dev.get("evm_increaseTime", json!([50]));
        dev.get("evm_mine", json!([]));
        assert!((150..160).contains(&(latest(&mut dev) - before)), "{way}");
    }
}

#[test]
fn time_increases_from_a_genesis_in_the_future() {
    let mut config = DevConfig::new(&DevAccounts::default());
    let network = (*config.network).clone();
    config = DevConfig::on_at(network, &DevAccounts::default(), 1_900_000_000);
    let mut dev = DevClient::new(config);
    assert!(dev.now < latest(&mut dev));
    assert_eq!(increased(&mut dev, 61), 61);
}

#[test]
fn time_increases_with_blocks_by_the_clock() {
    let mut dev = dev(Mining::Interval(10));
    dev.get("hardhat_mine", json!(["0x3e8"]));
    let before = latest(&mut dev);
    dev.get("evm_increaseTime", json!([3_600]));
    let due = dev.now + 10;
    assert!(dev.chain().tick(due).unwrap());
    assert!((3_600..3_620).contains(&(latest(&mut dev) - before)));
}

/// Work of a miner from before the time was moved would make a block with the old time.
#[test]
fn time_increases_with_external_miners() {
    let mut dev = dev(Mining::Manual);
    dev.get("hardhat_mine", json!(["0x64"]));
    let before = latest(&mut dev);
    let solved = |work: &Value| {
        let hash: B256 = work["blockHashForMergedMining"].as_str().unwrap().parse().unwrap();
        let work = BitcoinWork::new(&hash, 1_800_000_000).solved(U256::from(1), 1_000).unwrap();
        json!([hex::encode([&work.header[..], &[1], &work.coinbase].concat())])
    };
    let old = dev.get("mnr_getWork", json!([]));
    dev.get("evm_increaseTime", json!([3_600]));
    assert_eq!(dev.refused("mnr_submitBitcoinBlock", solved(&old)).0, -33000);
    let new = dev.get("mnr_getWork", json!([]));
    dev.get("mnr_submitBitcoinBlock", solved(&new));
    assert_eq!(latest(&mut dev) - before, 3_600);
    // The header's other fields are of the present settings too.
    dev.get("mnr_getWork", json!([]));
    dev.get("anvil_setCoinbase", json!([ALICE]));
    let new = dev.get("mnr_getWork", json!([]));
    dev.get("mnr_submitBitcoinBlock", solved(&new));
    assert_eq!(dev.get("eth_getBlockByNumber", json!(["latest", false]))["miner"], json!(ALICE));
}

#[test]
fn the_interval_of_anvil_is_before_each_block_and_that_of_hardhat_between_blocks() {
    for (method, first) in [("anvil_mine", 86_400), ("hardhat_mine", 1)] {
        let mut dev = dev(Mining::Manual);
        dev.get("evm_mine", json!([]));
        let mut times = vec![latest(&mut dev)];
        for (blocks, interval) in [(1, 86_400), (1, 86_400), (5, 600), (3, 0)] {
            dev.get(method, json!([format!("{blocks:#x}"), format!("{interval:#x}")]));
            let height = dev.number("eth_blockNumber", json!([]));
            for number in height - blocks + 1..=height {
                times.push(time(&mut dev, json!(format!("{number:#x}"))));
            }
        }
        let steps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let third = if method == "anvil_mine" { 600 } else { 1 };
        assert_eq!(steps, [first, first, third, 600, 600, 600, 600, 1, 1, 1], "{method}");
        // The clock continues from the newest block.
        dev.now += 30;
        dev.get("evm_mine", json!([]));
        let step = latest(&mut dev) - times.last().unwrap();
        assert!((25..=30).contains(&step), "{method}: {step}");
    }
}

#[test]
fn an_interval_keeps_a_timestamp_that_was_set_for_the_next_block() {
    for method in ["anvil_mine", "hardhat_mine"] {
        let mut dev = dev(Mining::Manual);
        dev.get("anvil_setBlockTimestampInterval", json!([5]));
        let next = dev.now + 1_000;
        dev.get("evm_setNextBlockTimestamp", json!([next]));
        dev.get(method, json!(["0x3", "0x3c"]));
        let times: Vec<u64> = (1..=3).map(|number| time(&mut dev, json!(format!("{number:#x}")))).collect();
        assert_eq!(times, [next, next + 60, next + 120], "{method}");
        dev.get("evm_mine", json!([]));
        assert_eq!(latest(&mut dev), next + 125, "{method}: the fixed interval applies again");
        dev.get(method, json!(["0x2", "0x0"]));
        assert_eq!(latest(&mut dev), next + 135, "{method}: no interval is asked for");
    }
}

#[test]
fn a_revert_and_a_reset_return_to_earlier_settings() {
    let mut dev = dev(Mining::Instant);
    dev.get("evm_increaseTime", json!([1_000]));
    dev.get("anvil_setMinGasPrice", json!(["0x32"]));
    let id = dev.get("evm_snapshot", json!([]));
    dev.get("evm_increaseTime", json!([1_000_000]));
    dev.get("anvil_setMinGasPrice", json!(["0x0"]));
    dev.get("anvil_setCoinbase", json!([ALICE]));
    dev.get("evm_revert", json!([id]));
    dev.get("evm_mine", json!([]));
    assert_eq!(latest(&mut dev), dev.now + 1_000);
    assert_eq!(dev.number("eth_gasPrice", json!([])), 55);
    assert_ne!(dev.get("eth_coinbase", json!([])), json!(ALICE));
    dev.get("evm_reset", json!([]));
    assert_eq!(dev.number("eth_gasPrice", json!([])), 0);
    dev.get("evm_mine", json!([]));
    assert_eq!(latest(&mut dev), dev.now);
}

/// No block can have the time 0, which hardhat takes for none.
#[test]
fn mining_at_time_0_mines_a_block_by_the_clock() {
    let mut dev = dev(Mining::Manual);
    for (number, params) in (1..).zip([json!([0]), json!(["0x0"]), json!([{"timestamp": 0}]), json!([])]) {
        dev.get("evm_mine", params);
        assert_eq!(dev.number("eth_blockNumber", json!([])), number);
        assert!(latest(&mut dev) >= dev.now);
    }
    dev.get("evm_mine", json!([{"blocks": 0}]));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 4);
    assert!(dev.refused("evm_mine", json!([1])).1.contains("lower than or equal to"));
}

#[test]
fn times_without_room_for_later_blocks_are_refused_and_the_chain_goes_on() {
    let mut dev = dev(Mining::Manual);
    for (method, params) in [
        ("evm_increaseTime", json!(["0xffffffffffffffff"])),
        ("evm_increaseTime", json!([i64::MAX])),
        ("evm_setNextBlockTimestamp", json!(["0xffffffffffffffff"])),
        ("evm_setTime", json!(["0xffffffffffffffff"])),
        ("evm_mine", json!(["0xffffffffffffffff"])),
        ("evm_mine", json!([{"timestamp": "0xffffffffffffffff"}])),
        ("anvil_mine", json!(["0x1", "0xffffffffffffffff"])),
    ] {
        let (_, text) = dev.refused(method, params);
        assert!(text.contains("later than this chain can have"), "{method}: {text}");
        dev.get("evm_mine", json!([]));
        assert!(latest(&mut dev) < dev.now + 100, "{method}");
    }
    dev.get("anvil_setBlockTimestampInterval", json!(["0xffffffffffffffff"]));
    assert!(dev.refused("evm_mine", json!([])).1.contains("remove a fixed interval"));
    dev.get("anvil_removeBlockTimestampInterval", json!([]));
    dev.get("evm_setTime", json!([1_u64 << 62]));
    for _ in 0..3 {
        let before = latest(&mut dev);
        dev.get("evm_mine", json!([]));
        assert!(latest(&mut dev) > before);
    }
}

#[test]
fn the_gas_price_of_the_largest_minimum_is_that_minimum() {
    let mut dev = dev(Mining::Manual);
    let largest = format!("0x{}", "f".repeat(64));
    dev.get("anvil_setMinGasPrice", json!([largest]));
    assert_eq!(dev.get("eth_gasPrice", json!([])), json!(largest));
    dev.get("evm_mine", json!([]));
    dev.get("anvil_setMinGasPrice", json!(["0x3b9aca07"]));
    assert_eq!(dev.get("eth_gasPrice", json!([])), json!("0x4190ab07"));
}
