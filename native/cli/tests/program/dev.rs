//! The program as a development chain: banner, mining, storage, time limits.

use crate::common;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::{Program, client, rootlight, run, shared};
use serde_json::{Value, json};

/// Starts a server at a free port.
pub(super) fn start(arguments: &[&str]) -> Program {
    Program::start(rootlight(arguments).args(["--http-port", "0"]).stderr(Stdio::null()))
}

async fn send(dev: &Program, to: &str) -> Value {
    let from = dev.call("eth_accounts", json!([])).await.unwrap()[0].clone();
    let transaction = json!([{ "from": from, "to": to, "value": "0x5", "gas": "0x5208", "gasPrice": "0x1" }]);
    dev.call("eth_sendTransaction", transaction).await.unwrap()
}

async fn height(dev: &Program) -> Value {
    dev.call("eth_blockNumber", json!([])).await.unwrap()
}

const TO: &str = "0x00000000000000000000000000000000000000aa";

#[tokio::test]
async fn without_a_command_a_chain_with_funded_accounts_runs() {
    let dev = start(&[]);
    assert!(dev.banner.contains("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"), "{}", dev.banner);
    assert!(dev.banner.contains(dev.url()) && dev.banner.contains("Chain id 33"), "{}", dev.banner);
    assert_eq!(dev.call("eth_chainId", json!([])).await.unwrap(), "0x21");
    let hash = send(&dev, TO).await;
    let receipt = dev.call("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert_eq!((&receipt["status"], &receipt["blockNumber"]), (&json!("0x1"), &json!("0x1")));
    assert_eq!(dev.call("eth_getBalance", json!([TO, "latest"])).await.unwrap(), "0x5");
    let health = client().get(format!("{}/health", dev.url())).send().await.unwrap();
    assert_eq!(health.text().await.unwrap(), r#"{"ready":true,"blockNumber":1}"#);
}

#[tokio::test]
async fn genesis_regtest_is_the_reference_nodes_and_silent_prints_no_banner() {
    let dev = start(&["dev", "--genesis", "regtest", "--silent"]);
    assert_eq!(dev.banner, "");
    let block = dev.call("eth_getBlockByNumber", json!(["0x0", false])).await.unwrap();
    assert_eq!(block["hash"], rootlight::consensus::Network::regtest().genesis_hash.to_string());
}

#[tokio::test]
async fn block_0_has_the_time_of_the_start_or_the_given_one() {
    let seconds = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let started = seconds();
    let block =
        |dev: Program| async move { dev.call("eth_getBlockByNumber", json!(["0x0", false])).await.unwrap() };
    let present = block(start(&["dev"])).await;
    let time = u64::from_str_radix(&present["timestamp"].as_str().unwrap()[2..], 16).unwrap();
    assert!((started..=seconds()).contains(&time), "{time}");
    let given = ["dev", "--genesis-time", "1800000000"];
    let fixed = block(start(&given)).await;
    assert_eq!(fixed["timestamp"], format!("{:#x}", 1_800_000_000));
    assert_eq!(block(start(&given)).await["hash"], fixed["hash"]);
}

#[tokio::test]
async fn flags_decide_how_reverts_and_older_releases_are_answered() {
    let from = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
    let creation = json!([{ "from": from, "data": "0x60006000fd", "gas": "0x186a0" }]);
    let revert = json!([{ "to": TO }, "latest", { TO: { "code": "0x60006000fd" } }]);
    let poor = json!([{ "from": TO, "to": TO, "value": "0x1" }]);

    let dev = start(&["dev", "--revert-code", "3"]);
    let hash = dev.call("eth_sendTransaction", creation.clone()).await.unwrap();
    let receipt = dev.call("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert_eq!(receipt["status"], "0x0");
    assert_eq!(dev.call("eth_call", revert.clone()).await.unwrap_err()["code"], 3);
    assert_eq!(dev.call("eth_estimateGas", poor.clone()).await.unwrap_err()["code"], -32000);

    let dev = start(&["dev", "--reject-failing", "--compat", "6.4.0"]);
    let refused = dev.call("eth_sendTransaction", creation).await.unwrap_err();
    assert_eq!(refused["code"], -32015);
    let refused = dev.call("eth_call", revert).await.unwrap_err();
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (&json!(-32602), &json!("State override is not allowed"))
    );
    assert_eq!(dev.call("eth_estimateGas", poor).await.unwrap(), "0x5208");
}

#[tokio::test]
async fn the_name_of_the_client_can_be_chosen() {
    let dev = start(&["dev", "--client-version", "HardhatNetwork/2"]);
    assert_eq!(dev.call("web3_clientVersion", json!([])).await.unwrap(), "HardhatNetwork/2");
    let dev = start(&["dev"]);
    let own = dev.call("web3_clientVersion", json!([])).await.unwrap();
    assert_eq!(own, concat!("anvil/Rootlight/", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn the_banner_shows_the_accounts_of_the_reference_nodes_genesis() {
    let dev = start(&["dev", "--genesis", "regtest", "--hardfork", "lovell700"]);
    let accounts = dev.call("eth_accounts", json!([])).await.unwrap();
    for account in accounts.as_array().unwrap() {
        assert!(dev.banner.contains(account.as_str().unwrap()), "{account}: {}", dev.banner);
        let balance = dev.call("eth_getBalance", json!([account, "latest"])).await.unwrap();
        assert_eq!(balance, "0xc9f2c9cd04674edea40000000", "10^12 RBTC");
    }
    assert!(dev.banner.contains("1000000000000 RBTC each, keys are keccak-256"), "{}", dev.banner);
    assert!(!dev.banner.contains("m/44'"), "{}", dev.banner);
    assert!(dev.banner.contains("0x34c690850bc250af"), "{}", dev.banner);
    for limit in [9_990_235, 9_980_479, 9_970_733] {
        dev.call("evm_mine", json!([])).await.unwrap();
        let block = dev.call("eth_getBlockByNumber", json!(["latest", false])).await.unwrap();
        assert_eq!(block["gasLimit"], format!("{limit:#x}"), "moves to 7,500,000 like the reference node's");
    }
}

#[tokio::test]
async fn blocks_are_mined_by_the_clock_or_on_request() {
    let dev = start(&["dev", "--block-time", "1"]);
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if height(&dev).await != "0x0" {
            break;
        }
    }
    assert_ne!(height(&dev).await, "0x0");

    let dev = start(&["dev", "--block-time", "manual"]);
    let hash = send(&dev, TO).await;
    assert_eq!(height(&dev).await, "0x0");
    dev.call("evm_mine", json!([])).await.unwrap();
    let receipt = dev.call("eth_getTransactionReceipt", json!([hash])).await.unwrap();
    assert_eq!(receipt["blockNumber"], "0x1");
}

/// The process is killed after it answered a transaction. The transaction's block must be stored.
#[tokio::test]
async fn a_killed_chain_opens_at_its_last_block() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("chain");
    let arguments = ["dev", "--data-dir", data.to_str().unwrap()];
    let mut hashes = Vec::new();
    for round in 1..=3 {
        let dev = start(&arguments);
        for earlier in &hashes {
            assert!(dev.call("eth_getTransactionReceipt", json!([earlier])).await.unwrap().is_object());
        }
        hashes.push(send(&dev, TO).await);
        assert_eq!(height(&dev).await, format!("{round:#x}"));
        // Dropping it sends SIGKILL.
    }
    // The time of block 0 is stored, and not that of this start.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let dev = start(&arguments);
    assert_eq!(dev.call("eth_getBalance", json!([TO, "latest"])).await.unwrap(), "0xf");
    assert_eq!(dev.call("eth_getBalance", json!([TO, "0x1"])).await.unwrap(), "0x5");
    other_genesis(&data);
}

fn other_genesis(data: &Path) {
    let other = ["dev", "--genesis", "regtest", "--data-dir", data.to_str().unwrap()];
    let output = run(&other);
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stderr.is_empty());
}

/// An endless loop stops at the gas cap or the time limit; other requests are answered meanwhile.
#[tokio::test]
async fn endless_calls_do_not_block_other_requests() {
    let dev = start(&["dev", "--call-gas-cap", "9000000000000000000"]);
    // JUMPDEST, PUSH1 0, JUMP
    let call = json!([{ "to": TO, "gas": "0x7000000000000000" }, "latest", { TO: { "code": "0x5b600056" } }]);
    let endless: Vec<_> = (0..4).map(|_| dev.call("eth_call", call.clone())).collect();
    let others = async {
        for _ in 0..20 {
            assert_eq!(height(&dev).await, "0x0");
        }
    };
    let (ended, ()) = tokio::join!(futures::future::join_all(endless), others);
    for error in ended {
        let error = error.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains("timeout"), "{error}");
    }
}

/// The chain's blocks are mined on a Bitcoin chain, which the program serves.
#[tokio::test]
async fn a_bitcoin_chain_is_made_and_served_beside_the_chain() {
    let dev = start(&["dev", "--bitcoin-chain=3", "--block-time", "manual"]);
    let line = dev.banner.lines().find_map(|line| line.strip_prefix("Bitcoin    ")).unwrap();
    let urls: Vec<&str> = line.split([' ', ',']).filter(|word| word.contains("://")).collect();
    assert_eq!(urls.len(), 3, "{line}");
    dev.call("evm_mine", json!([{ "blocks": 7 }])).await.unwrap();
    for (params, height) in [
        (json!([]), "0x3"),
        (json!(["0x4", { "tag": "foreign", "parent": "0x1" }]), "0x5"),
        (json!([2, { "parent": 5 }]), "0x7"),
    ] {
        let tip = dev.call("rootlight_mineBitcoin", params).await.unwrap();
        assert_eq!(tip["height"], height);
        for url in &urls {
            let source = rootlight_upstream::bitcoin::BitcoinSource::open(url).unwrap();
            let newest = source.tip().await.unwrap();
            assert_eq!(json!(format!("{newest:#x}")), height, "{url}");
            let header = source.headers(newest, 1).await.unwrap()[0];
            let hash = rootlight::consensus::bitcoin::BitcoinHeader::from(&header).hash();
            assert_eq!(tip["hash"], format!("{:x}", rootlight::consensus::bitcoin::reversed(&hash)));
        }
    }
    for params in [
        json!([0]),
        json!([2_017]),
        json!([1, { "tag": "other" }]),
        json!([1, { "parent": 3 }]),
        json!([1, { "parent": -1 }]),
        json!([{}, {}]),
    ] {
        let error = dev.call("rootlight_mineBitcoin", params.clone()).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{params}: {error}");
    }
    let without = start(&["dev"]);
    assert!(!without.banner.contains("Bitcoin"), "{}", without.banner);
    let error = without.call("rootlight_mineBitcoin", json!([])).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("--bitcoin-chain"), "{error}");
}

/// The newest block of a balance is the newest one that enough Bitcoin blocks stand behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_balance_is_proven_after_the_newest_block_that_the_flags_allow() {
    let dev = start(&["dev", "--genesis", "regtest", "--bitcoin-chain=2", "--block-time", "manual"]);
    dev.call("hardhat_mine", json!(["0x258", "0x1"])).await.unwrap();
    let account = dev.call("eth_accounts", json!([])).await.unwrap()[0].as_str().unwrap().to_owned();
    let bitcoin = format!("rootlight+{}", dev.url());
    let balance = ["balance", &account, "--network", "regtest", "--checkpoint", "none", "--max-age", "0"];
    let sources = ["--upstream", dev.url(), "--bitcoin", &bitcoin, "--json"];
    // Of the Bitcoin blocks with another one on top the newest two name 598 and 596.
    for (flags, number) in [
        (&["--min-bitcoin", "2"][..], 596),
        (&["--min-bitcoin", "0"], 600),
        (&["--min-bitcoin", "1", "--min-depth", "12"], 588),
        (&["--min-bitcoin", "2", "--block", "590"], 590),
    ] {
        let output = run(&[&balance[..], &sources, flags].concat());
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {output_text}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["block"]["number"], number, "{flags:?}: {answer}");
        assert_eq!((&answer["depth"], &answer["bitcoin"]["verdict"]), (&json!(600 - number), &json!("held")));
    }
    let refused = run(&[&balance[..], &sources, &["--min-bitcoin", "2", "--block", "597"]].concat());
    let output_text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{output_text}");
    assert!(output_text.contains("ask for block 596 or an older one"), "{output_text}");
}

#[test]
fn wrong_options_are_usage_errors() {
    for arguments in [
        &["dev", "--block-time", "soon"][..],
        &["dev", "--balance", "much"],
        &["dev", "--hardfork", "london"],
        &["dev", "--genesis", "/nowhere.json"],
        &["dev", "--genesis", "regtest", "--genesis-time", "5"],
        &["dev", "--bitcoin-chain=0"],
        &["dev", "--bitcoin-chain", "--data-dir", "chain"],
        &["dev", "--bitcoin-chain", "--merge-mining"],
        &["dev", "--compat", "newest"],
        &["dev", "--revert-code", "4"],
        &["follow", "--upstream", "http://127.0.0.1:1", "--network", "mainnet"],
        &["follow", "--upstream", "http://127.0.0.1:1", "--network", "testnet"],
        &["follow"],
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
}

/// A follower of a recording serves methods that need execution.
#[tokio::test]
async fn a_follower_serves_proofs_and_witnesses() {
    let Some(folder) = shared("vectors/chain") else { return };
    let upstream = format!("replay:{}", folder.display());
    let dev = start(&["follow", "--upstream", &upstream]);
    for _ in 0..600 {
        if dev.call("eth_syncing", json!([])).await.unwrap() == false && height(&dev).await == "0x2a4" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(height(&dev).await, "0x2a4");
    let bridge = "0x0000000000000000000000000000000001000006";
    let proof = dev.call("eth_getProof", json!([bridge, ["0x0"], "0x80"])).await.unwrap();
    assert!(!proof["accountProof"].as_array().unwrap().is_empty());
    let call = json!({ "to": bridge, "data": "0x2bd1bd75" });
    let witness = dev.call("rootlight_getWitness", json!([call, "latest"])).await.unwrap();
    assert!(witness["stateRoot"].is_string());
    let block = dev.call("eth_getBlockByNumber", json!(["0x19", false])).await.unwrap();
    let witness = dev.call("rootlight_getBlockWitness", json!([block["hash"]])).await.unwrap();
    assert_eq!(witness["blockNumber"], "0x18");
    assert!(witness["nodes"].as_array().unwrap().len() > 3, "{witness}");
    assert_eq!(dev.call("evm_mine", json!([])).await.unwrap_err()["code"], -32601);
}

/// Runs a light client of development chains with the default start.
pub(super) fn light_of(upstreams: &[&str]) -> Program {
    let upstreams: Vec<&str> = upstreams.iter().flat_map(|url| ["--upstream", url]).collect();
    start(&[&["light", "--network", "regtest"], &upstreams[..]].concat())
}

#[tokio::test]
async fn a_light_client_starts_at_the_block_0_that_its_upstream_shows() {
    // The newest block is years old.
    let dev = start(&["dev", "--genesis-time", "1700000000", "--silent"]);
    let light = light_of(&[dev.url()]);
    let status = light.call("rootlight_syncStatus", json!([])).await.unwrap();
    assert_eq!((&status["synced"], &status["start"]), (&json!(true), &json!("upstream")), "{status}");
    let proof = light.call("rootlight_verification", json!(["0x0"])).await.unwrap();
    assert_eq!((&proof["origin"], &proof["start"]), (&json!("upstream"), &json!("upstream")), "{proof}");
    let account = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
    for (method, params) in [
        ("eth_getBalance", json!([account, "latest"])),
        ("eth_getBlockByNumber", json!(["0x0", false])),
        ("rootlight_checkpoint", json!([])),
    ] {
        let (own, proven) = (dev.call(method, params.clone()).await, light.call(method, params).await);
        assert!(own.as_ref().is_ok_and(|own| !own.is_null()), "{method}: {own:?}");
        assert_eq!(own, proven, "{method}");
    }
    let balance = run(&["balance", account, "--network", "regtest", "--upstream", dev.url(), "--silent"]);
    let output_text = String::from_utf8_lossy(&balance.stdout).into_owned();
    assert!(balance.status.success() && output_text.contains("10000"), "{output_text}");
    // A block that the user names is a checkpoint.
    let first = dev.call("rootlight_checkpoint", json!([])).await.unwrap();
    let named = format!("0:{}", first["hash"].as_str().unwrap());
    let light = ["light", "--network", "regtest", "--upstream", dev.url(), "--checkpoint", &named];
    let status = start(&light).call("rootlight_syncStatus", json!([])).await.unwrap();
    assert_eq!(status["start"], "checkpoint");
}

#[test]
fn upstreams_of_different_development_chains_are_refused_by_name() {
    let chains = ["5", "6"].map(|time| start(&["dev", "--genesis-time", time]));
    let [one, other] = [chains[0].url(), chains[1].url()];
    for command in [&["light"][..], &["balance", TO]] {
        let sources = ["--network", "regtest", "--upstream", one, "--upstream", other];
        let output = run(&[command, &sources].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("different chains"), "{said}");
        assert!(said.contains(one) && said.contains(other), "{said}");
    }
}

#[tokio::test]
async fn a_light_client_waits_for_a_development_chain_and_does_without_an_upstream_that_is_not_there() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let url = format!("http://{address}");
    let light = std::thread::spawn(move || light_of(&[&url]));
    // The first question fails for certain.
    drop(silent.accept().unwrap());
    drop(silent);
    let dev = ["dev", "--ws-port", &address.port().to_string()];
    let dev = start(&dev);
    let light = light.join().unwrap();
    assert_eq!(height(&light).await, height(&dev).await);
    let other = light_of(&[dev.url(), "http://127.0.0.1:9"]);
    assert_eq!(height(&other).await, height(&dev).await);
}

#[tokio::test]
async fn a_fork_begins_on_the_head_of_a_node_and_says_what_is_proven() {
    let node = start(&["dev"]);
    for _ in 0..3 {
        send(&node, TO).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let fork = ["dev", "--fork", node.url(), "--data-dir", folder];
    let dev = start(&[&fork[..], &["--chain-id", "99"]].concat());
    assert!(dev.banner.contains("Fork of regtest at block 3 0x"), "{}", dev.banner);
    assert!(dev.banner.contains("Its state is proven") && dev.banner.contains("REMASC"), "{}", dev.banner);
    assert_eq!(dev.call("eth_chainId", json!([])).await.unwrap(), "0x63");
    assert_eq!(dev.call("eth_getBalance", json!([TO, "latest"])).await.unwrap(), "0xf");
    send(&dev, TO).await;
    assert_eq!(dev.call("eth_getBalance", json!([TO, "latest"])).await.unwrap(), "0x14");
    let version = dev.call("web3_clientVersion", json!([])).await.unwrap();
    assert!(version.as_str().unwrap().ends_with("+fork"), "{version}");
    drop(dev);
    let dev = start(&[&fork[..], &["--unproven", "trust", "--fork-block", "2"]].concat());
    assert!(dev.banner.contains("at block 2 ") && dev.banner.contains("UNPROVEN"), "{}", dev.banner);
    let version = dev.call("web3_clientVersion", json!([])).await.unwrap();
    assert!(version.as_str().unwrap().ends_with("+unproven-fork"), "{version}");
    assert_eq!(dev.call("eth_getBalance", json!([TO, "latest"])).await.unwrap(), "0xa");
}

#[tokio::test]
async fn a_new_chain_has_the_chain_id_that_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let dev = start(&["dev", "--chain-id", "99", "--data-dir", folder]);
    assert!(dev.banner.contains("Chain id 99 "), "{}", dev.banner);
    assert_eq!(dev.call("eth_chainId", json!([])).await.unwrap(), "0x63");
    assert_eq!(dev.call("net_version", json!([])).await.unwrap(), "99");
    // The accounts sign transactions for this id, and CHAINID reads the same one.
    send(&dev, TO).await;
    let code = json!({TO: {"code": "0x4660005260206000f3"}});
    let id = dev.call("eth_call", json!([{"to": TO}, "latest", code])).await.unwrap();
    assert_eq!(id, format!("0x{:064x}", 99));
    drop(dev);
    // The stored chain is not one of another id.
    let refused = run(&["dev", "--data-dir", folder, "--http-port", "0"]);
    assert!(!refused.status.success());
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("--data-dir"), "{text}");
    for flags in [
        &["--genesis", "regtest", "--chain-id", "99"][..],
        &["--chain-id", "110"],
        &["--chain-id", "30", "--bitcoin-chain"],
    ] {
        let refused = run(&[&["dev", "--http-port", "0"], flags].concat());
        assert_eq!(refused.status.code(), Some(2), "{flags:?}");
    }
}

/// The network of a trusted block is kept with it, too.
#[tokio::test]
async fn a_second_run_on_a_block_with_its_hash_needs_no_node() {
    let node = start(&["dev"]);
    for _ in 0..3 {
        send(&node, TO).await;
    }
    let block = node.call("eth_getBlockByNumber", json!(["0x3", false])).await.unwrap();
    let at = format!("3:{}", block["hash"].as_str().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let url = node.url().to_owned();
    let flags = ["dev", "--fork", &url, "--fork-block", &at, "--data-dir", folder];
    let hash = json!([block["transactions"][0]]);
    let run = async || {
        let dev = start(&flags);
        send(&dev, TO).await;
        let balance = dev.call("eth_getBalance", json!([TO, "latest"])).await.unwrap();
        (balance, dev.call("eth_getTransactionReceipt", hash.clone()).await.unwrap())
    };
    let first = run().await;
    assert_eq!((&first.0, first.1["blockNumber"].clone()), (&json!("0x14"), json!("0x3")));
    drop(node);
    assert_eq!(run().await, first);
}

#[test]
fn a_fork_that_cannot_begin_says_why() {
    let node = start(&["dev"]);
    let failed = |flags: &[&str], code: i32, reason: &str| {
        let output = run(&[&["dev", "--data-dir", "none", "--http-port", "0", "--fork"], flags].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(reason), "{said}");
    };
    failed(&[node.url(), "--fork-block", "9"], 1, "has no block 9");
    failed(&[node.url(), "--unproven", "quorum:2"], 2, "needs 2 upstreams (1 given)");
    failed(&[node.url(), "--genesis", "regtest"], 2, "--genesis");
    let peer = format!("{}@127.0.0.1:9", "7".repeat(128));
    failed(&[&peer], 2, "the network that the peers are of");
    failed(&["7@127.0.0.1:9", "--fork", "regtest"], 2, "the id of a peer has 128");
    failed(&["http://127.0.0.1:9"], 1, "no program listens there");
}
