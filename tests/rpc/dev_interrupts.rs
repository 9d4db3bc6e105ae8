//! Time limits of a development chain: dropped transactions, messages and imports that end early.

use std::sync::Arc;

use rootlight::dev::{MAX_BLOCKS_AT_ONCE, Mining};
use rootlight::exec::{Interrupts, Watchdog};
use rootlight::local::ImportError;
use serde_json::json;

use crate::dev_rpc::{ALICE, BOB, CAROL, NOBODY, dev, transfer};
use crate::fixture::block_of;
use crate::support::dev::DevClient;

/// A watchdog that allows a number of blocks, and interrupts every run of code if `due`.
struct Impatient {
    blocks: std::sync::atomic::AtomicU64,
    due: bool,
    stopping: bool,
}

impl Watchdog for Impatient {
    fn next_block(&self) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        self.blocks.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn is_due(&self) -> bool {
        self.due
    }

    fn is_stopping(&self) -> bool {
        self.stopping
    }
}

fn interrupt(dev: &mut DevClient, blocks: u64, due: bool, stopping: bool) {
    let watchdog = Impatient { blocks: blocks.into(), due, stopping };
    dev.client.node().interrupt_by(Interrupts::by(Arc::new(watchdog)));
}

#[test]
fn a_transaction_above_the_time_limit_is_dropped() {
    let mut dev = dev(Mining::Instant);
    // JUMPDEST, PUSH1 0, JUMP.
    dev.get("anvil_setCode", json!([NOBODY, "0x5b600056"]));
    interrupt(&mut dev, u64::MAX, true, false);
    let endless = json!([{"from": ALICE, "to": NOBODY, "gas": "0x5b8d80"}]);
    let (code, text) = dev.refused("eth_sendTransaction", endless);
    assert_eq!(code, -32011, "{text}");
    assert!(text.contains("time limit"), "{text}");
    assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 0, "queued": 0}));
    // The block was mined without it, and the next one takes other transactions.
    assert_eq!(dev.number("eth_blockNumber", json!([])), 1);
    interrupt(&mut dev, u64::MAX, false, false);
    dev.get("eth_sendTransaction", transfer(1));
    assert_eq!(dev.number("eth_blockNumber", json!([])), 2);
    // A transaction after the dropped one stays in the pool.
    dev.get("evm_setAutomine", json!([false]));
    dev.get(
        "eth_sendTransaction",
        json!([{"from": ALICE, "to": NOBODY, "gas": "0x5b8d80", "gasPrice": "0x9"}]),
    );
    dev.get("eth_sendTransaction", json!([{"from": BOB, "to": CAROL, "gasPrice": "0x8"}]));
    interrupt(&mut dev, u64::MAX, true, false);
    dev.get("evm_mine", json!([]));
    assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 1, "queued": 0}));
}

/// The list of events is full because the host does not take them; the error about the transaction does not depend on
/// it.
#[test]
fn a_transaction_above_the_time_limit_is_reported_after_many_blocks() {
    let mut dev = dev(Mining::Instant);
    dev.get("anvil_setCode", json!([NOBODY, "0x5b600056"]));
    dev.get("hardhat_mine", json!([format!("{MAX_BLOCKS_AT_ONCE:#x}")]));
    interrupt(&mut dev, u64::MAX, true, false);
    let endless = json!([{"from": ALICE, "to": NOBODY, "gas": "0x5b8d80"}]);
    let (code, text) = dev.refused("eth_sendTransaction", endless);
    assert_eq!((code, text.contains("time limit")), (-32011, true), "{text}");
}

#[test]
fn mining_stops_at_the_time_limit_and_during_shutdown() {
    let mut dev = dev(Mining::Manual);
    interrupt(&mut dev, 5, false, false);
    let (code, text) = dev.refused("hardhat_mine", json!(["0x9"]));
    assert_eq!((code, text.contains("after 5 blocks")), (-32005, true), "{text}");
    assert_eq!(dev.number("eth_blockNumber", json!([])), 0);
    interrupt(&mut dev, 5, true, true);
    let (_, text) = dev.refused("evm_mine", json!([]));
    assert!(text.contains("shutting down"), "{text}");
    assert_eq!(dev.number("eth_blockNumber", json!([])), 0);
}

#[test]
fn an_interrupted_import_changes_nothing() {
    let (mut ours, mut theirs) = (dev(Mining::Manual), dev(Mining::Manual));
    let endless = json!([{"from": ALICE, "data": "0x5b600056", "gas": "0x5b8d80"}]);
    theirs.get("eth_sendTransaction", endless);
    theirs.get("evm_mine", json!([]));
    let block = block_of(&mut theirs, 1);
    interrupt(&mut ours, u64::MAX, true, false);
    assert!(matches!(ours.chain().import(block.clone(), None), Err(ImportError::Execution { .. })));
    assert_eq!(ours.number("eth_blockNumber", json!([])), 0);
    interrupt(&mut ours, u64::MAX, false, false);
    ours.chain().import(block, None).unwrap();
    assert_eq!(ours.number("eth_blockNumber", json!([])), 1);
}
