//! Limits of a development chain's answers and lists: logs, traces, overrides, snapshots.

use rootlight::dev::{MAX_SNAPSHOTS, Mining};
use rootlight::engine::{FilterChanges, FilterSpec, Filters, LogFilter, RangeStop, range_logs};
use rootlight::types::B256;
use serde_json::json;

use crate::dev_rpc::{ALICE, NOBODY, dev};
use crate::support::dev::DevClient;

/// Parsed overrides take many times the memory of their text.
#[test]
fn state_overrides_are_limited_in_size() {
    let mut dev = dev(Mining::Manual);
    let call = |bytes: usize| {
        let code = format!("0x{}", "00".repeat(bytes));
        json!([{"to": NOBODY}, "latest", {(NOBODY): {"code": code}}])
    };
    assert_eq!(dev.get("eth_call", call(500_000)), json!("0x"));
    for method in ["eth_call", "eth_estimateGas"] {
        let (code, text) = dev.refused(method, call(600_000));
        assert_eq!((code, text.contains("1048576 bytes")), (-32602, true), "{method}: {text}");
    }
}

#[test]
fn lists_of_the_pool_are_limited_in_size() {
    let mut dev = dev(Mining::Manual);
    let other = dev.get("eth_accounts", json!([]))[1].clone();
    let data = format!("0x{}", "00".repeat(120_000));
    for (sender, nonce) in (0..50).map(|nonce| (json!(ALICE), nonce)).chain([(other.clone(), 0)]) {
        let nonce = format!("{nonce:#x}");
        dev.get(
            "eth_sendTransaction",
            json!([{"from": sender, "to": NOBODY, "gas": "0x80000", "nonce": nonce, "data": data}]),
        );
    }
    for (method, params) in [
        ("txpool_content", json!([])),
        ("txpool_contentFrom", json!([ALICE])),
        ("eth_pendingTransactions", json!([])),
    ] {
        assert_eq!(dev.refused(method, params).0, -32011, "{method}");
    }
    let lists = dev.get("txpool_contentFrom", json!([other]));
    assert_eq!(lists["pending"]["0"]["input"], data);
    assert_eq!(dev.get("txpool_status", json!([])), json!({"pending": 51, "queued": 0}));
}

#[test]
fn the_number_of_snapshots_is_limited() {
    let mut dev = dev(Mining::Manual);
    for _ in 0..MAX_SNAPSHOTS {
        dev.get("evm_snapshot", json!([]));
    }
    let (code, text) = dev.refused("evm_snapshot", json!([]));
    assert_eq!((code, text.contains("10000 snapshots")), (-32005, true), "{text}");
    assert_eq!(dev.get("evm_revert", json!(["0x5"])), json!(true));
    assert_eq!(dev.number("evm_snapshot", json!([])), 6);
}

/// A chain whose blocks from the second on have a log with this many bytes of data each.
fn with_logs(bytes: u32, blocks: u64) -> DevClient {
    let mut dev = dev(Mining::Instant);
    // PUSH3 length, PUSH1 0, LOG0.
    dev.get("anvil_setCode", json!([NOBODY, format!("0x62{bytes:06x}6000a0")]));
    for _ in 0..blocks {
        dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": NOBODY, "gas": "0x5b8d80"}]));
    }
    dev
}

/// An answer has at most 10 MiB; logs beyond that are not even collected.
#[test]
fn logs_of_a_range_are_limited_in_size() {
    let mut dev = with_logs(400_000, 14);
    let snapshot = dev.client.snapshot();
    let view = snapshot.view(0, &|| false);
    let logs = |to| range_logs(&*view, 0, to, &LogFilter::default()).map(|logs| logs.len());
    assert_eq!(logs(13), Ok(13));
    assert_eq!(logs(14), Err(RangeStop::TooLong { fits: Some((0, 13)) }));
    let all = |to: &str| json!([{"fromBlock": "0x0", "toBlock": to}]);
    assert_eq!(dev.get("eth_getLogs", all("0xd")).as_array().unwrap().len(), 13);
    let (code, text) = dev.refused("eth_getLogs", all("0xe"));
    assert_eq!((code, text.contains("size limit of 10485760")), (-32011, true), "{text}");
    let filter = dev.get("eth_newFilter", all("0xe"));
    assert!(dev.refused("eth_getFilterLogs", json!([filter])).1.contains("size limit"));
}

/// The error proposes a range that works: up to the last block within the limit, but at least 2,000 blocks, which have no
/// limit on the number of logs.
#[test]
fn too_many_logs_of_a_long_range_are_refused_with_a_range_that_works() {
    let mut dev = dev(Mining::Instant);
    // PUSH2 1,000, JUMPDEST, PUSH1 0, PUSH1 0, LOG0, PUSH1 1, SWAP1, SUB, DUP1, PUSH1 3, JUMPI.
    dev.get("anvil_setCode", json!([NOBODY, "0x6103e85b60006000a06001900380600357"]));
    let write = json!([{"from": ALICE, "to": NOBODY, "gas": "0x5b8d80"}]);
    let logs = |dev: &mut DevClient, from: u64, to: u64| {
        let range =
            json!([{"fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}"), "address": NOBODY}]);
        dev.ask("eth_getLogs", range)
    };
    let write = |dev: &mut DevClient, empty: &str| {
        for _ in 0..6 {
            dev.get("eth_sendTransaction", write.clone());
        }
        dev.get("hardhat_mine", json!([empty]));
    };
    // 6,000 logs in blocks 1 to 6, and as many in blocks 2,007 to 2,012.
    write(&mut dev, "0x7d0");
    write(&mut dev, "0x1");
    let refused = |dev: &mut DevClient, (from, to): (u64, u64), proposed: u64, count: usize| {
        let answer = logs(dev, from, to);
        let text = format!(
            "Filter returned more than 10000 logs. Try with this block range [{from:#x}, {proposed:#x}]."
        );
        assert_eq!(answer["error"], json!({"code": -32012, "message": text}));
        assert_eq!(logs(dev, from, proposed)["result"].as_array().map(Vec::len), Some(count));
    };
    refused(&mut dev, (0, 5_000), 2_010, 10_000);
    // 12,000 logs in fewer than 2,000 blocks.
    write(&mut dev, "0x7d0");
    refused(&mut dev, (2_007, 5_000), 4_006, 12_000);
}

/// A subscriber cannot ask for fewer blocks, so that logs that are too long for one poll are reported in several.
#[test]
fn a_subscription_gets_many_logs_in_several_polls() {
    let mut dev = with_logs(400_000, 0);
    let (mut filters, mut reported) = (Filters::new(B256::ZERO), Vec::new());
    // Leaves out the logs of REMASC.
    let filter = LogFilter { addresses: vec![NOBODY.parse().unwrap()], topics: Vec::new() };
    let spec = FilterSpec::Logs { filter, from: 0, to: None };
    let id = {
        let snapshot = dev.client.snapshot();
        let made = filters.subscribe(spec, &*snapshot.view(0, &|| false), 0).unwrap();
        made.unwrap()
    };
    for _ in 0..20 {
        dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": NOBODY, "gas": "0x5b8d80"}]));
    }
    let snapshot = dev.client.snapshot();
    for _ in 0..5 {
        match filters.poll(id, &*snapshot.view(0, &|| false), 0).unwrap().unwrap() {
            FilterChanges::Logs(logs) => {
                reported.push(logs.iter().map(|(log, _)| log.block.number).collect::<Vec<_>>())
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        reported,
        [(1..=6).collect::<Vec<_>>(), (7..=12).collect(), (13..=18).collect(), vec![19, 20], vec![]]
    );
}

/// Traces are collected up to the size limit of an answer, not to a multiple of it.
#[test]
fn a_trace_above_the_size_limit_of_answers_is_not_collected() {
    let traced = |dev: &mut DevClient, steps: usize| {
        // PUSH1 1, PUSH2 0x7fe0, MSTORE: 32 KiB of memory. Then PUSH1 1, POP.
        let code = format!("0x6001617fe052{}", "600150".repeat(steps / 2));
        dev.get("anvil_setCode", json!([NOBODY, code]));
        let sent = json!([{"from": ALICE, "to": NOBODY, "gas": "0x5b8d80"}]);
        json!([dev.get("eth_sendTransaction", sent)])
    };
    let mut dev = dev(Mining::Instant);
    let short = traced(&mut dev, 140);
    let trace = dev.get("debug_traceTransaction", short);
    assert!(trace.to_string().len() > 9 << 20, "{}", trace.to_string().len());
    // About 16 MiB.
    let long = traced(&mut dev, 230);
    let (code, text) = dev.refused("debug_traceTransaction", long);
    assert_eq!((code, text.contains("trace is larger")), (-32005, true), "{text}");
}
