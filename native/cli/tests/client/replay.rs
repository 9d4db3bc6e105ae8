//! Tests of recordings as upstreams.

use crate::common;

use std::io::Write;
use std::path::Path;

use rootlight::light::UpstreamRequest;
use rootlight::types::keccak256;
use rootlight_upstream::replay::{Replay, ReplayError};
use rootlight_upstream::{self as upstream, OpenError, Upstream, UpstreamError};
use serde_json::{Value, json};

fn write(folder: &Path, name: &str, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join(name), text).unwrap();
}

fn exchange(method: &str, params: Value, result: Value) -> Value {
    json!({"request": {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, "response": {"jsonrpc": "2.0", "id": 1, "result": result}})
}

/// The result of a request that a recording answers.
pub(crate) fn ask(replay: &Replay, method: &str, params: Value) -> Result<Value, UpstreamError> {
    let params = params.as_array().unwrap().clone();
    replay.answer(method, &params).map(|raw| serde_json::from_str(raw.get()).unwrap())
}

fn block(number: u64, mark: u8) -> Value {
    let word = |byte: u8| format!("0x{}", format!("{byte:02x}").repeat(32));
    json!({"number": format!("{number:#x}"), "hash": word(mark), "stateRoot": word(mark + 1), "transactions": []})
}

#[test]
fn a_response_is_found_by_method_and_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        exchange("m", json!(["0xAB", {"b": 1, "a": [true]}]), json!("first")),
        exchange("m", json!(["0xab", {"a": [true], "b": 1}]), json!("second")),
        exchange("rsk_getRaw", json!(["0x1"]), json!("raw")),
        json!({"something": "else"}),
    ];
    write(folder.path(), "a.jsonl", &lines);
    let replay = Replay::open(folder.path().join("a.jsonl")).unwrap();
    assert_eq!(ask(&replay, "m", json!(["0xab", {"a": [true], "b": 1}])), Ok(json!("first")));
    assert_eq!(ask(&replay, "ext_getRaw", json!(["0x1"])), Ok(json!("raw")));
    for (method, params) in [("m", json!(["0xab"])), ("M", json!([])), ("ext_getRaw", json!(["0x2"]))] {
        let error = ask(&replay, method, params).unwrap_err();
        assert!(matches!(&error, UpstreamError::NotRecorded(text) if text.starts_with(method)), "{error}");
    }
}

#[test]
fn a_block_with_hashes_is_derived_from_one_with_whole_transactions() {
    let folder = tempfile::tempdir().unwrap();
    let mut whole = block(5, 0x11);
    whole["transactions"] = json!([{"hash": "0xaa", "nonce": "0x1"}, {"hash": "0xbb", "nonce": "0x2"}]);
    write(folder.path(), "a.jsonl", &[exchange("eth_getBlockByNumber", json!(["0x5", true]), whole.clone())]);
    let replay = Replay::open(folder.path()).unwrap();
    let mut hashes = whole.clone();
    hashes["transactions"] = json!(["0xaa", "0xbb"]);
    for (method, selector) in
        [("eth_getBlockByNumber", json!("0x5")), ("eth_getBlockByHash", whole["hash"].clone())]
    {
        assert_eq!(ask(&replay, method, json!([selector, false])), Ok(hashes.clone()));
        assert_eq!(ask(&replay, method, json!([selector, true])), Ok(whole.clone()));
    }
}

#[test]
fn results_replace_recorded_nulls_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    let failed = json!({"request": {"id": 1, "method": "once", "params": ["x"]}, "response": {"id": 1, "error": {"code": -1, "message": "no"}}});
    write(
        folder.path(),
        "a.jsonl",
        &[
            exchange("eth_gasPrice", json!([]), json!("0x1")),
            exchange("eth_getTransactionReceipt", json!(["0x1"]), Value::Null),
            exchange("eth_getTransactionByHash", json!(["0x1"]), json!({"blockHash": null})),
            failed.clone(),
        ],
    );
    write(
        folder.path(),
        "b.jsonl",
        &[
            exchange("eth_gasPrice", json!([]), json!("0x2")),
            exchange("eth_getTransactionReceipt", json!(["0x1"]), json!({})),
            exchange("eth_getTransactionByHash", json!(["0x1"]), json!({"blockHash": "0x1"})),
            exchange("once", json!(["x"]), json!(7)),
            exchange("eth_getTransactionReceipt", json!(["0x1"]), Value::Null),
            failed,
        ],
    );
    let replay = Replay::open(folder.path()).unwrap();
    assert_eq!(ask(&replay, "eth_gasPrice", json!([])), Ok(json!("0x2")));
    assert_eq!(ask(&replay, "eth_getTransactionReceipt", json!(["0x1"])), Ok(json!({})));
    assert_eq!(ask(&replay, "eth_getTransactionByHash", json!(["0x1"])), Ok(json!({"blockHash": "0x1"})));
    assert_eq!(ask(&replay, "once", json!(["x"])), Ok(json!(7)));
}

#[test]
fn recorded_errors_and_nulls_are_returned() {
    let folder = tempfile::tempdir().unwrap();
    let failed = json!({"request": {"method": "f", "params": []}, "response": {"error": {"code": -32015, "message": "revert", "data": "0x08"}}});
    write(folder.path(), "a.jsonl", &[failed, exchange("n", json!([1]), Value::Null)]);
    let replay = Replay::open(folder.path()).unwrap();
    let error = UpstreamError::Rpc { code: -32015, message: "revert".into(), data: Some(json!("0x08")) };
    assert_eq!(ask(&replay, "f", json!([])), Err(error));
    assert_eq!(ask(&replay, "n", json!([1])), Ok(Value::Null));
}

#[test]
fn recorded_batches_are_matched_by_id() {
    let folder = tempfile::tempdir().unwrap();
    let line = json!({
        "request": [{"id": 1, "method": "a", "params": []}, {"id": "2", "method": "b"}, {"id": 3, "method": "c", "params": []}],
        "response": [{"id": "2", "result": "B"}, {"id": 1, "result": "A"}]
    });
    write(folder.path(), "a.jsonl", &[line]);
    let replay = Replay::open(folder.path()).unwrap();
    assert_eq!(ask(&replay, "a", json!([])), Ok(json!("A")));
    assert_eq!(ask(&replay, "b", json!([])), Ok(json!("B")));
    assert!(matches!(ask(&replay, "c", json!([])), Err(UpstreamError::NotRecorded(_))));
}

#[test]
fn the_head_is_the_highest_block_and_calls_by_hash_use_its_number() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "a.jsonl",
        &[
            exchange("eth_blockNumber", json!([]), json!("0x0")),
            exchange("eth_getBlockByNumber", json!(["latest", true]), block(0, 0x10)),
            exchange("eth_getBlockByNumber", json!(["0x1", true]), block(1, 0x20)),
            exchange("eth_getBlockByNumber", json!(["0x0", true]), block(0, 0x10)),
            exchange("rsk_getRawBlockHeaderByNumber", json!(["0x1"]), json!("0xf9")),
            exchange("eth_getBlockByHash", json!([format!("0x{}", "33".repeat(32)), true]), block(1, 0x33)),
        ],
    );
    let replay = Replay::open(folder.path()).unwrap();
    assert_eq!(replay.head(), Some(1));
    assert_eq!(ask(&replay, "eth_blockNumber", json!([])), Ok(json!("0x1")));
    assert_eq!(ask(&replay, "eth_getBlockByNumber", json!(["latest", true])), Ok(block(1, 0x20)));
    let hash = format!("0x{}", "20".repeat(32));
    assert_eq!(ask(&replay, "eth_getBlockByHash", json!([hash, true])), Ok(block(1, 0x20)));
    assert_eq!(ask(&replay, "ext_getRawBlockHeaderByHash", json!([hash])), Ok(json!("0xf9")));
    let side = format!("0x{}", "33".repeat(32));
    assert!(
        ask(&replay, "rsk_getRawBlockHeaderByHash", json!([side])).is_err(),
        "a side block is not looked up by number"
    );
}

#[test]
fn results_of_compressed_files_are_returned_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{\"request\":{\"method\":\"m\",\"params\":[]},\"response\":{\"result\": {\"x\" : 1.50,  \"x\":2}}}\n";
    let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    file.write_all(text.as_bytes()).unwrap();
    std::fs::write(folder.path().join("a.jsonl.gz"), file.finish().unwrap()).unwrap();
    let replay = Replay::open(folder.path()).unwrap();
    let answer = replay.answer("m", &[]).unwrap();
    assert_eq!(answer.get(), "{\"x\" : 1.50,  \"x\":2}");
}

#[test]
fn damaged_lines_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = b"{\"request\":\n\xff\xfe\n[]\nnull\n{\"request\":5,\"response\":6}\n{\"request\":[1,[]],\"response\":[]}\n".to_vec();
    text.extend(exchange("m", json!([]), json!(1)).to_string().as_bytes());
    std::fs::write(folder.path().join("a.jsonl"), text).unwrap();
    let replay = Replay::open(folder.path()).unwrap();
    assert_eq!((replay.len(), ask(&replay, "m", json!([]))), (1, Ok(json!(1))));
}

#[test]
fn paths_without_a_recording_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Replay::open(folder.path()), Err(ReplayError::Empty(_))));
    assert!(matches!(Replay::open(folder.path().join("none")), Err(ReplayError::Read { .. })));
    std::fs::write(folder.path().join("a.jsonl.gz"), b"not gzip").unwrap();
    assert!(matches!(Replay::open(folder.path()), Err(ReplayError::NotGzip { .. })));
    assert!(matches!(upstream::open("ftp://x"), Err(OpenError::Scheme(_))));
    for text in ["replay:/nowhere/at/all", "REPLAY:/nowhere/at/all"] {
        assert!(matches!(upstream::open(text), Err(OpenError::Replay(_))), "{text}");
    }
}

#[test]
fn errors_about_schemes_repeat_nothing_of_the_argument() {
    for (text, fault) in [
        ("svn+ssh://host", "this one has another scheme"),
        ("0123456789abcdef://host", "this one has another scheme"),
        ("0123456789abcdef", "this one has no scheme: put http:// or https:// before it"),
    ] {
        let Err(error) = upstream::open(text) else { panic!("{text}") };
        let error = error.to_string();
        assert!(error.ends_with(fault) && !error.contains("0123456789abcdef"), "{error}");
    }
}

#[tokio::test]
async fn requests_with_damaged_parameters_are_not_reported_as_malformed_responses() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.jsonl", &[exchange("m", json!([]), json!(1))]);
    let replay = Replay::open(folder.path()).unwrap();
    let answers = replay.request(vec![UpstreamRequest::new("m", "{".to_owned())]).await;
    assert!(matches!(&answers[0], Err(UpstreamError::Rpc { code: -32602, .. })), "{answers:?}");
}

#[test]
fn derived_results_replace_recorded_nulls_and_errors() {
    let folder = tempfile::tempdir().unwrap();
    let hash = format!("0x{}", "20".repeat(32));
    // The only node of the empty state trie is the byte 0x80.
    let node = "0x80";
    let mut empty = block(2, 0x30);
    empty["stateRoot"] = json!(keccak256([0x80]));
    let refused = |method: &str, params: Value| {
        json!({"request": {"id": 1, "method": method, "params": params},
            "response": {"id": 1, "error": {"code": -32601, "message": "no such method"}}})
    };
    let absent = json!([format!("0x{}", "11".repeat(20)), [], "0x2"]);
    let unknown = json!([format!("0x{}", "11".repeat(20)), [], "0x7"]);
    let lines = [
        exchange("eth_getBlockByHash", json!([hash, true]), Value::Null),
        exchange("eth_getBlockByNumber", json!(["0x1", true]), block(1, 0x20)),
        exchange("eth_getBlockByNumber", json!(["0x2", true]), empty),
        refused("eth_getProof", absent.clone()),
        refused("eth_getProof", unknown.clone()),
        json!({"node": node}),
    ];
    write(folder.path(), "a.jsonl", &lines);
    let replay = Replay::open(folder.path()).unwrap();
    assert_eq!(ask(&replay, "eth_getBlockByHash", json!([hash, true])), Ok(block(1, 0x20)));
    let proof = ask(&replay, "eth_getProof", absent).unwrap();
    assert_eq!(proof["balance"], json!("0x0"));
    let error = ask(&replay, "eth_getProof", unknown).unwrap_err();
    assert!(matches!(error, UpstreamError::Rpc { code: -32601, .. }), "no result can be derived: {error}");
}

#[test]
fn a_recorded_latest_block_below_the_head_is_not_served_as_the_head() {
    let folder = tempfile::tempdir().unwrap();
    let latest = json!(["latest", false]);
    write(
        folder.path(),
        "a.jsonl",
        &[
            exchange("eth_getBlockByNumber", latest.clone(), block(1, 0x20)),
            exchange("eth_getBlockByNumber", json!(["0x2", true]), block(2, 0x30)),
        ],
    );
    let old = Replay::open(folder.path()).unwrap();
    assert_eq!(ask(&old, "eth_blockNumber", json!([])), Ok(json!("0x2")));
    let answer = ask(&old, "eth_getBlockByNumber", latest.clone());
    assert!(matches!(answer, Err(UpstreamError::NotRecorded(_))), "{answer:?}");
    write(folder.path(), "b.jsonl", &[exchange("eth_getBlockByNumber", latest.clone(), block(2, 0x30))]);
    let same = Replay::open(folder.path()).unwrap();
    assert_eq!(ask(&same, "eth_getBlockByNumber", latest), Ok(block(2, 0x30)));
}

#[test]
fn eth_block_number_with_parameters_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "a.jsonl",
        &[exchange("eth_getBlockByNumber", json!(["0x2", true]), block(2, 0x30))],
    );
    let replay = Replay::open(folder.path()).unwrap();
    assert!(ask(&replay, "eth_blockNumber", json!([5])).is_err());
}

/// The recording has block 1 before a reorganization with full transactions, and after it with hashes.
#[test]
fn a_block_of_another_branch_is_not_served_for_a_hash() {
    let folder = tempfile::tempdir().unwrap();
    let transaction = |mark: &str| json!({"hash": format!("0x{}", "01".repeat(32)), "blockHash": format!("0x{}", mark.repeat(32))});
    write(
        folder.path(),
        "a.jsonl",
        &[
            exchange("eth_getBlockByNumber", json!(["0x1", true]), block(1, 0x20)),
            exchange("rsk_getRawBlockHeaderByNumber", json!(["0x1"]), json!("0xf9")),
            exchange("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", "0x0"]), transaction("20")),
            exchange("eth_getTransactionByBlockNumberAndIndex", json!(["0x1", "0x1"]), transaction("40")),
            exchange("eth_getBlockByNumber", json!(["0x1", false]), block(1, 0x40)),
        ],
    );
    let replay = Replay::open(folder.path()).unwrap();
    let hash = format!("0x{}", "40".repeat(32));
    assert_eq!(ask(&replay, "eth_getBlockByHash", json!([hash, false])), Ok(block(1, 0x40)));
    let method = "eth_getTransactionByBlockHashAndIndex";
    assert_eq!(ask(&replay, method, json!([hash, "0x1"])), Ok(transaction("40")));
    for (method, params) in [
        ("eth_getBlockByHash", json!([hash, true])),
        (method, json!([hash, "0x0"])),
        ("rsk_getRawBlockHeaderByHash", json!([hash])),
    ] {
        let answer = ask(&replay, method, params);
        assert!(matches!(answer, Err(UpstreamError::NotRecorded(_))), "{method}: {answer:?}");
    }
}

#[test]
fn all_blocks_uncles_and_receipts_of_the_recorded_chain_are_found() {
    let Some(path) = common::shared("vectors/chain") else { return };
    let replay = Replay::open(path).unwrap();
    assert_eq!(replay.head(), Some(676));
    for number in 0..=676_u64 {
        let tag = format!("{number:#x}");
        let block = ask(&replay, "eth_getBlockByNumber", json!([tag, true])).unwrap();
        assert_eq!(block["number"], json!(tag));
        let hash = block["hash"].clone();
        assert_eq!(ask(&replay, "eth_getBlockByHash", json!([hash, true])), Ok(block.clone()));
        assert!(ask(&replay, "rsk_getRawBlockHeaderByHash", json!([hash])).unwrap().is_string());
        for (uncle, index) in block["uncles"].as_array().unwrap().iter().zip(0_u64..) {
            let index = format!("{index:#x}");
            let by_number = ask(&replay, "eth_getUncleByBlockNumberAndIndex", json!([tag, index])).unwrap();
            assert_eq!(by_number["hash"], *uncle);
        }
        for transaction in block["transactions"].as_array().unwrap() {
            let receipt = ask(&replay, "eth_getTransactionReceipt", json!([transaction["hash"]])).unwrap();
            assert_eq!(receipt["blockHash"], hash);
        }
    }
}
