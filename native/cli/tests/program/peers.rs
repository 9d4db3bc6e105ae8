//! The program among nodes of a peer-to-peer network: a development chain that is found, a light client that finds it,
//! the list of nodes, a crawl.

use crate::common;

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use common::{Program, ProgramWatch, rootlight, run};
use serde_json::{Value, json};

fn start(arguments: &[&str]) -> Program {
    Program::spawn(rootlight(arguments).args(["--http-port", "0"]).stderr(Stdio::piped()))
}

/// Starts a development chain that peers find; returns it with its id and its address.
pub(super) fn dev() -> (Program, String, String) {
    dev_with(&[])
}

/// As [`dev`], with further flags.
pub(super) fn dev_with(more: &[&str]) -> (Program, String, String) {
    let mut program = start(&[&["dev", "--genesis", "regtest", "--p2p-port", "0"], more].concat());
    let _watch = ProgramWatch::of(&program.child);
    let mut log = BufReader::new(program.child.stderr.take().unwrap()).lines();
    let place = log.find_map(|line| {
        line.unwrap().split_once("peers find this chain at ").map(|(_, place)| place.to_owned())
    });
    let place = place.expect("the chain is served to peers");
    let (id, address) = place.split_once('@').unwrap();
    (program, id.to_owned(), address.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_without_upstreams_finds_a_chain_and_lists_its_node() {
    let (_dev, id, address) = dev();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let light = ["light", "--network", "regtest", "--checkpoint", "none", "--max-age", "0"];
    let mut light = start(&[&light[..], &["--bootnode", &address, "--data-dir", data]].concat());
    let _watch = ProgramWatch::of(&light.child);
    light.ready();
    // The watch ends a program that hangs.
    while light.ask("eth_blockNumber", json!([])).await["result"] != "0x0" {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let upstreams = light.ask("rootlight_upstreams", json!([])).await;
    let named = |upstream: &&Value| upstream["name"] == format!("{id}@{address}");
    assert_eq!(upstreams["result"].as_array().unwrap().iter().filter(named).count(), 1, "{upstreams}");
    light.stop("TERM");

    let listed = run(&["peers", "--network", "regtest", "--data-dir", data, "--json"]);
    let node: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&node["id"], &node["address"], &node["snap"]), (&json!(id), &json!(address), &json!(true)));
    assert!(node["client"].as_str().unwrap().starts_with("rootlight/"), "{node}");
    assert_eq!(node["caught"], Value::Null);
    let text = run(&["peers", "--network", "regtest", "--data-dir", data]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.starts_with(&format!("{id}@{address}\n")) && text.contains("state chunks, seen "), "{text}");
}

/// State, headers and transactions come from peers, with proofs; receipts do not.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_reads_a_chain_of_peers_alone() {
    const TO: &str = "0x00000000000000000000000000000000000000aa";
    let (mut node, id, address) = dev();
    node.ready();
    let accounts = node.call("eth_accounts", json!([])).await.unwrap();
    let transfer =
        json!([{ "from": accounts[0], "to": TO, "value": "0x5", "gas": "0x5208", "gasPrice": "0x1" }]);
    for _ in 0..3 {
        node.call("eth_sendTransaction", transfer.clone()).await.unwrap();
    }
    let there = node.call("eth_getBlockByNumber", json!(["0x3", true])).await.unwrap();

    let peer = format!("{id}@{address}");
    let fork = super::dev::start(&["dev", "--fork", "regtest", "--fork", &peer, "--data-dir", "none"]);
    assert!(fork.banner.contains("Fork of regtest at block 3 0x"), "{}", fork.banner);
    assert!(fork.banner.contains("Its state is proven"), "{}", fork.banner);
    assert_eq!(fork.call("eth_getBalance", json!([TO, "latest"])).await.unwrap(), "0xf");
    let here = fork.call("eth_getBlockByNumber", json!(["0x3", true])).await.unwrap();
    assert_eq!((&here["hash"], &here["transactions"]), (&there["hash"], &there["transactions"]));
    fork.call("anvil_impersonateAccount", json!([accounts[0]])).await.unwrap();
    fork.call("eth_sendTransaction", transfer).await.unwrap();
    assert_eq!(fork.call("eth_getBalance", json!([TO, "latest"])).await.unwrap(), "0x14");
    let error = fork.call("eth_getBlockReceipts", json!(["0x3"])).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("receipts"), "{error}");
}

/// A start by window keeps the nodes that it finds among the user's caches. The next one needs no boot host.
#[test]
#[cfg(all(unix, not(target_os = "macos")))]
fn nodes_are_kept_among_the_users_caches() {
    let (_dev, id, address) = dev();
    let folder = tempfile::tempdir().unwrap();
    let network = folder.path().join("network.json");
    // A start by window needs rules under which work proves something.
    let rules = r#"{ "name": "regtest", "base": "regtest", "rules": { "rskip97": 0 },
        "params": { "minimumDifficulty": 4, "futureBound": 4000 },
        "workStart": { "difficulty": 4, "from": 0, "headers": 60 } }"#;
    std::fs::write(&network, rules).unwrap();
    let kept = folder.path().join("rootlight/regtest/nodes.json");
    for boot in [&["--bootnode", &address][..], &[]] {
        let mut command =
            rootlight(&["light", "--http-port", "0", "--checkpoint", "window", "--max-age", "0"]);
        command.arg("--network").arg(&network).args(boot).env("XDG_CACHE_HOME", folder.path());
        let mut light = Program::spawn(command.stderr(Stdio::piped()));
        let _watch = ProgramWatch::of(&light.child);
        // The chain is too short to start from, so the node is left again.
        let mut log = BufReader::new(light.child.stderr.take().unwrap()).lines();
        let connected = format!("connected to {id}@{address}");
        assert!(log.any(|line| line.unwrap().contains(&connected)), "{boot:?}");
        light.stop("TERM");
        assert!(std::fs::read_to_string(&kept).unwrap().contains(&id));
    }
}

#[test]
fn a_crawl_prints_what_nodes_offer() {
    let (_dev, id, address) = dev();
    // Long enough for any machine, and ended when the node was printed.
    let crawl = ["crawl", "--network", "regtest", "--bootnode", &address, "--for", "600", "--json"];
    let mut crawl = Program::spawn(rootlight(&crawl).stderr(Stdio::null()));
    let _watch = ProgramWatch::of(&crawl.child);
    let mut line = String::new();
    BufReader::new(crawl.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let node: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&node["id"], &node["address"]), (&json!(id), &json!(address)));
    assert_eq!(node["capabilities"], json!(["rsk/62", "snap/1"]));
    assert!(node["client"].as_str().unwrap().starts_with("rootlight/"), "{node}");
}

/// Where no node can be asked, the program says what to do instead.
#[test]
fn networks_without_boot_hosts_name_the_flags_that_help() {
    for (arguments, words) in [
        (&["light", "--network", "regtest"][..], "--bootnode HOST:PORT"),
        (&["light", "--network", "regtest", "--discovery", "--upstream", "http://a"], "--bootnode HOST:PORT"),
        (&["light", "--network", "devnet"], "--upstream URL"),
        (&["crawl", "--network", "regtest"], "--bootnode HOST:PORT"),
        (&["crawl", "--network", "devnet"], "no known peer-to-peer network"),
        (&["light", "--network", "regtest", "--bootnode", "nowhere"], "HOST:PORT"),
        (&["peers"], "--data-dir"),
    ] {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
    let empty = tempfile::tempdir().unwrap();
    let output = run(&["peers", "--data-dir", empty.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
}
