//! The program as a light client: ready line, HTTP, WebSocket, health, stop.

use crate::common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Program, ProgramWatch, client, rootlight, run};
use futures::{SinkExt, StreamExt};
use reqwest::header::{CONTENT_TYPE, ORIGIN};
use rootlight::consensus::Network;
use rootlight::types::Header;
use rootlight::types::json::RpcBlock;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

/// Starts a server at a free port.
fn start(arguments: &[&str]) -> Program {
    let server = Program::start(rootlight(arguments).args(["--http-port", "0"]).stderr(Stdio::piped()));
    let addresses = server.listening.split_once(' ').unwrap();
    assert!(addresses.0.starts_with("http://127.0.0.1:") && addresses.1.replace("ws", "http") == addresses.0);
    assert_eq!(server.banner, "");
    server
}

/// Starts a light client of one upstream.
pub(crate) fn light(network: &str, upstream: &str, checkpoint: &str, more: &[&str]) -> Program {
    let from = ["light", "--network", network, "--upstream", upstream, "--checkpoint", checkpoint];
    start(&[&from, more].concat())
}

/// Arguments of a light client of blocks 0 to 75 of a development network.
fn recorded() -> [&'static str; 7] {
    const UPSTREAM: &str = concat!("replay:", env!("CARGO_MANIFEST_DIR"), "/../recordings/regtest.jsonl.gz");
    ["light", "--network", "regtest", "--checkpoint", "none", "--upstream", UPSTREAM]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_served_through_the_light_client() {
    let server = start(&recorded());
    assert_eq!(server.ask("eth_blockNumber", json!([])).await["result"], "0x4b");
    assert_eq!(server.ask("eth_chainId", json!([])).await["result"], "0x21");
    assert!(
        server.ask("web3_clientVersion", json!([])).await["result"]
            .as_str()
            .unwrap()
            .starts_with("Rootlight/")
    );
    let cow = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";
    let balance = server.ask("eth_getBalance", json!([cow, "0x0"])).await;
    assert_eq!(balance["result"], "0xc9f2c9cd04674edea40000000");
    let block = server.ask("eth_getBlockByNumber", json!(["0x3", false])).await["result"].clone();
    assert_eq!(block["transactions"].as_array().unwrap().len(), 6);
    let receipt = server.ask("eth_getTransactionReceipt", json!([block["transactions"][0]])).await;
    assert_eq!(receipt["result"]["blockHash"], block["hash"]);
    let proof = server.ask("eth_getProof", json!([cow, ["0x0"], "latest"])).await;
    assert!(!proof["result"]["accountProof"].as_array().unwrap().is_empty(), "{proof}");
    let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}, {"jsonrpc": "2.0", "method": "eth_chainId"}]);
    let batch = server.send_from(None, &batch).await;
    assert_eq!(batch, json!([{"jsonrpc": "2.0", "id": 1, "result": "0x21"}]));
    assert_eq!(server.ask("no_such", json!([])).await["error"]["code"], -32601);

    let health = client().get(format!("{}/health", server.url())).send().await.unwrap();
    assert_eq!(health.status(), 200);
    let health: Value = serde_json::from_str(&health.text().await.unwrap()).unwrap();
    assert_eq!(health, json!({"ready": true, "blockNumber": 75}));

    let mut socket = tokio_tungstenite::connect_async(server.url().replace("http", "ws")).await.unwrap().0;
    socket
        .send(Message::text(r#"{"jsonrpc":"2.0","id":"a","method":"eth_blockNumber","params":[]}"#))
        .await
        .unwrap();
    let answer = socket.next().await.unwrap().unwrap();
    assert_eq!(answer.to_text().unwrap(), r#"{"jsonrpc":"2.0","id":"a","result":"0x4b"}"#);

    let (code, out, err) = server.stop("TERM");
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(err.contains("verified head 75") && err.contains("stopping"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_the_program_and_silent_prints_nothing_more() {
    let server = start(&["--silent"]);
    assert_eq!(server.ask("net_version", json!([])).await["result"], "33");
    assert_eq!(server.stop("INT"), (Some(0), String::new(), String::new()));
}

/// A client that still waits for an upstream ends at a signal as one that serves.
#[test]
fn a_signal_ends_a_start_in_order() {
    for command in [
        &["light", "--upstream", "http://127.0.0.1:1", "--http-port", "0"][..],
        #[cfg(feature = "cluster")]
        &["serve", "--backend", "http://127.0.0.1:1", "--http-port", "0"],
        #[cfg(feature = "cluster")]
        &["index", "--from", "http://127.0.0.1:1", "--index", "postgres://127.0.0.1:1/x"],
    ] {
        let arguments = [command, &["--network", "regtest"]].concat();
        let mut program = Program::spawn(rootlight(&arguments).stderr(Stdio::piped()));
        let _watch = ProgramWatch::of(&program.child);
        let mut log = BufReader::new(program.child.stderr.take().unwrap()).lines();
        assert!(log.any(|line| line.unwrap().contains("asking again until one does")), "{command:?}");
        assert_eq!(program.stop("TERM").0, Some(0), "{command:?}");
    }
}

/// Every development chain has a block 0 of its own, and no front end needs it named.
#[cfg(feature = "cluster")]
#[tokio::test(flavor = "multi_thread")]
async fn a_front_end_starts_at_the_block_0_that_its_backends_show() {
    let dev = super::dev::start(&["dev", "--silent"]);
    dev.call("evm_mine", json!([])).await.unwrap();
    let server = start(&["serve", "--network", "regtest", "--backend", dev.url()]);
    assert_eq!(server.ask("eth_blockNumber", json!([])).await["result"], "0x1");
    let status = server.ask("rootlight_syncStatus", json!([])).await;
    assert_eq!(status["result"]["start"], "upstream", "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_are_json_on_request() {
    let server = start(&[&recorded()[..], &["--json-log"]].concat());
    let (_, _, err) = server.stop("TERM");
    assert!(err.lines().count() > 2);
    for line in err.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(value["level"].is_string() && value["message"].is_string(), "{line}");
    }
}

fn recorded_chain() -> Option<PathBuf> {
    common::shared("vectors/chain")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_followed_from_genesis_to_its_head() {
    let Some(path) = recorded_chain() else { return };
    let upstream = format!("replay:{}", path.display());
    let checkpoint = "0:0x8ea789fabef0dd4946ed53f001e7b6f8a8d0c22a612a6099fc7f93c990af68fe";
    let server = light("regtest", &upstream, checkpoint, &[]);
    assert_eq!(server.ask("eth_blockNumber", json!([])).await["result"], "0x2a4");
    let block = server.ask("eth_getBlockByNumber", json!(["latest", true])).await["result"].clone();
    assert_eq!(block["number"], "0x2a4");
    let refused =
        server.ask("eth_getBalance", json!(["0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826", "latest"])).await;
    assert_eq!(refused["error"]["code"], -32002, "the last states are not recorded: {refused}");
}

/// Writes a recording of the 1,200 main network headers, in the form in which a node returns uncles, so that
/// their own uncles are not known.
fn real_headers(folder: &Path) -> Option<Vec<(u64, String)>> {
    let path = common::shared("realdata/headers/mainnet_4479841_iris_run1200.json")?;
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let network = Network::mainnet();
    let (mut lines, mut known) = (String::new(), Vec::new());
    for entry in file["headers"].as_array().unwrap() {
        let rlp = alloy_primitives::hex::decode(entry["rlp"].as_str().unwrap()).unwrap();
        let header = Header::decode(&rlp, &|number| network.header_shape(number)).unwrap().seal();
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": [format!("{:#x}", header.number), false]});
        let reported =
            json!({"jsonrpc": "2.0", "id": 1, "result": RpcBlock::uncle(&header, None, None, None)});
        lines.push_str(&format!("{}\n", json!({"request": ask, "response": reported})));
        known.push((header.number, entry["hash"].as_str().unwrap().to_owned()));
    }
    std::fs::write(folder.join("headers.jsonl"), lines).unwrap();
    Some(known)
}

/// Verifies headers alone on the main network: from the first of 1,200 headers, which is the checkpoint, to
/// the last.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_headers_of_the_main_network_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let Some(known) = real_headers(folder.path()) else { return };
    let checkpoint = format!("{}:{}", known[0].0, known[0].1);
    let upstream = format!("replay:{}", folder.path().display());
    let began = Instant::now();
    let server = light("mainnet", &upstream, &checkpoint, &["--max-age", "0"]);
    let head = server.ask("eth_blockNumber", json!([])).await["result"].clone();
    println!("{} headers in {:?}", known.len() - 1, began.elapsed());
    let last = known[known.len() - 1].0;
    assert_eq!((head, known.len()), (json!(format!("{last:#x}")), 1_200));
    for (place, (number, hash)) in known.iter().enumerate() {
        let proof =
            server.ask("rootlight_verification", json!([format!("{number:#x}")])).await["result"].clone();
        let origin = if place == 0 { "checkpoint" } else { "mined" };
        let depth = format!("{:#x}", last - number);
        let reported = [&proof["blockHash"], &proof["level"], &proof["origin"], &proof["depth"]];
        assert_eq!(reported, [hash.as_str(), "verified", origin, &depth], "block {number}");
    }
}

/// The upstream's chain ended years ago by the system clock.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_head_is_neither_served_nor_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let Some(known) = real_headers(folder.path()) else { return };
    let checkpoint = format!("{}:{}", known[0].0, known[0].1);
    let upstream = format!("replay:{}", folder.path().display());
    let server = light("mainnet", &upstream, &checkpoint, &[]);
    for (method, params) in
        [("eth_blockNumber", json!([])), ("eth_getBlockByHash", json!([known[5].1, false]))]
    {
        let error = server.ask(method, params).await["error"].clone();
        assert!(error["code"] == -32002 && error["message"].to_string().contains("--max-age"), "{error}");
    }
    let health = client().get(format!("{}/health", server.url())).send().await.unwrap();
    assert_eq!(health.status(), 503);
    let health: Value = serde_json::from_str(&health.text().await.unwrap()).unwrap();
    assert_eq!((&health["ready"], &health["blockNumber"]), (&json!(false), &json!(known[1_199].0)));
    assert!(health["reason"].to_string().contains("--max-age"), "{health}");
}

/// A network file describes a chain with header version 0, the form of today's main network.
#[tokio::test(flavor = "multi_thread")]
async fn a_network_file_sets_the_rules_and_a_wrong_one_is_a_usage_error() {
    let Some(path) = common::shared("vectors/chain_v0") else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("network.json");
    let rules = json!({"rskip351": -1, "rskip144": -1, "rskip535": -1});
    std::fs::write(&file, json!({"name": "older", "base": "regtest", "rules": rules}).to_string()).unwrap();
    let upstream = format!("replay:{}", path.display());
    let server = start(&["light", "--network", file.to_str().unwrap(), "--upstream", &upstream]);
    assert_eq!(server.ask("eth_blockNumber", json!([])).await["result"], "0x208");
    let block = server.ask("eth_getBlockByNumber", json!(["0x100", true])).await;
    assert_eq!(block["result"]["number"], "0x100", "{block}");
    std::fs::write(&file, "{\"name\": 5}").unwrap();
    let bad = run(&["light", "--network", file.to_str().unwrap(), "--upstream", &upstream]);
    assert_eq!(bad.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_without_the_checkpoint_is_never_served() {
    let Some(path) = recorded_chain() else { return };
    let upstream = format!("replay:{}", path.display());
    let checkpoint = format!("0:0x{}", "12".repeat(32));
    let server = light("regtest", &upstream, &checkpoint, &[]);
    assert!(server.ask("eth_blockNumber", json!([])).await["error"].is_object());
    let health = client().get(format!("{}/health", server.url())).send().await.unwrap();
    assert_eq!(health.status(), 503);
    let (_, _, err) = server.stop("TERM");
    assert!(err.contains("stopped at block 0"), "{err}");
}

#[test]
fn wrong_options_are_usage_errors() {
    for arguments in [
        &["light", "--upstream", "http://a", "--unproven", "quorum:2"][..],
        &["light", "--upstream", "http://a", "--unproven", "quorum:0"],
        &["light", "--upstream", "http://a", "--unproven", "maybe"],
        &["light", "--upstream", "ftp://a"],
        &["light", "--upstream", "http://a", "--checkpoint", "1"],
        &["light", "--upstream", "http://a", "--network", "moon"],
        &["light", "--upstream", "http://a", "--http-port", "70000"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

#[test]
fn a_port_in_use_is_a_failure() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let started = Instant::now();
    let output = run(&["--http-port", &port]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("cannot listen on 127.0.0.1:{port}")));
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn methods_prints_the_table_as_text_and_json() {
    let output = run(&["methods", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"eth_getProof") && names.is_sorted());
    let raw = rows.iter().find(|row| row["name"] == "ext_getRawBlockHeaderByNumber").unwrap();
    assert_eq!(raw["aliases"], json!(["rsk_getRawBlockHeaderByNumber"]));
    let text = run(&["methods"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("eth_getBalance("));
}

/// Texts of upstreams may name machines and accounts of the operator.
#[tokio::test(flavor = "multi_thread")]
async fn the_words_of_upstreams_are_for_the_log_of_a_server_for_others() {
    const WORDS: &str = "db-7.corp.internal:5432, project 0123456789abcdef";
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("http://{}/", listener.local_addr().unwrap());
    let refuse = || async {
        let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": WORDS}});
        ([(CONTENT_TYPE, "application/json")], error.to_string())
    };
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(refuse)).await });
    let light = ["light", "--network", "regtest", "--checkpoint", "none", "--upstream", &upstream];
    let front_end = ["serve", "--network", "regtest", "--checkpoint", "none", "--backend", &upstream];
    let hosted = [&light[..], &["--profile", "hosted"]].concat();
    for (arguments, is_shown) in [(&light[..], true), (&hosted, false), (&front_end, false)] {
        let server = start(arguments);
        let mut reported = Vec::new();
        // The first attempts have failed.
        while !reported.iter().any(|text: &String| text.contains("-32000")) {
            tokio::time::sleep(Duration::from_millis(50)).await;
            reported = vec![
                client().get(format!("{}/health", server.url())).send().await.unwrap().text().await.unwrap(),
                server.ask("rootlight_syncStatus", json!([])).await.to_string(),
                server.ask("eth_blockNumber", json!([])).await.to_string(),
            ];
        }
        assert_eq!(reported.iter().any(|text| text.contains("corp.internal")), is_shown, "{reported:?}");
        for method in ["rootlight_syncStatus", "eth_blockNumber", "eth_gasPrice"] {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": []});
            let page = server.send_from(Some("https://dapp.example"), &message).await.to_string();
            assert!(page.contains("-32000") && !page.contains("corp.internal"), "{method}: {page}");
        }
        let probe = client().get(format!("{}/health", server.url())).header(ORIGIN, "https://dapp.example");
        let page = probe.send().await.unwrap().text().await.unwrap();
        assert!(page.contains(r#""ready":false"#) && !page.contains("corp.internal"), "{page}");
        let (_, _, log) = server.stop("TERM");
        assert!(is_shown || log.contains("db-7.corp.internal"), "{log}");
    }
}
