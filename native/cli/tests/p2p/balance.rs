//! `rootlight balance` on chains of this machine: from peers alone, from a JSON-RPC node alone, and where there is no answer.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::dev::Mining;
use rootlight::rpc::{Message, Reply, RpcError};
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_node::peer_server::LocalChain;
use rootlight_server::service::{Caller, ReservedReply, Service};
use serde_json::{Value, json};

use crate::chain::serve;
use crate::common::{ProgramWatch, ask, config, dev_chain, run, start_service};

/// Blocks of the chain.
const BLOCKS: u64 = 32;

/// A development chain, the flags that start at its block 0, and an account with a balance.
struct BalanceChain {
    node: Arc<LocalService>,
    account: String,
    start: Vec<String>,
}

async fn chain() -> BalanceChain {
    let node = dev_chain(Mining::Manual, LocalOptions::default());
    ask(&*node, "hardhat_mine", json!([format!("{BLOCKS:#x}")])).await;
    let genesis = ask(&*node, "eth_getBlockByNumber", json!(["0x0", false])).await["result"]["hash"].clone();
    let account = ask(&*node, "eth_accounts", json!([])).await["result"][0].clone();
    let checkpoint = format!("0:{}", genesis.as_str().unwrap());
    let start = ["--network", "regtest", "--max-age", "0", "--checkpoint", &checkpoint].map(str::to_owned);
    BalanceChain { node, account: account.as_str().unwrap().to_owned(), start: start.into() }
}

impl BalanceChain {
    /// Runs the command with further flags, beside the servers of this test.
    async fn balance(&self, more: &[&str]) -> Output {
        let mut arguments = vec!["balance".to_owned(), self.account.clone()];
        arguments.extend(self.start.iter().cloned());
        arguments.extend(more.iter().map(|text| (*text).to_owned()));
        balance(arguments).await
    }

    async fn block(&self, number: u64) -> Value {
        let block = json!([format!("{number:#x}"), false]);
        ask(&*self.node, "eth_getBlockByNumber", block).await["result"].clone()
    }
}

async fn balance(arguments: Vec<String>) -> Output {
    let run = move || run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balance_is_proven_by_a_peer_alone_and_printed() {
    let chain = chain().await;
    let (_server, address) = serve(Arc::new(LocalChain::new(chain.node.clone()))).await;
    let output = chain.balance(&["--peer", &address.to_string()]).await;
    let (shown, progress) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{shown}{progress}");
    // Age, time and bytes differ from run to run.
    let shown: Vec<&str> = shown.lines().filter(|line| !line.starts_with("age  ")).collect();
    let (last, lines) = shown.split_last().unwrap();
    let (head, genesis) = (chain.block(BLOCKS).await["hash"].clone(), chain.block(0).await["hash"].clone());
    let id = address.id.to_string();
    let expected = [
        "balance   10000 RBTC".to_owned(),
        "          10000000000000000000000 wei".to_owned(),
        format!("account   {}", chain.account),
        "network   regtest (chain id 33)".to_owned(),
        format!("block     {BLOCKS} {}", head.as_str().unwrap()),
        "level     verified, 0 blocks on top".to_owned(),
        format!("start     block 0 {}, genesis", genesis.as_str().unwrap()),
        format!("proof     from {}..{}@127.0.0.1:{}", &id[..8], &id[124..], address.port),
    ];
    assert_eq!(lines, expected);
    assert!(last.starts_with("took      ") && last.ends_with(" bytes of responses"), "{last}");
    assert!(progress.starts_with("connecting: 0 of 1 sources answer\n"), "{progress}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_balance_is_proven_by_a_json_rpc_node_alone_and_printed_as_json() {
    let chain = chain().await;
    let server = start_service(config(), chain.node.clone()).await;
    let flags = ["--upstream", &server.url(""), "--json", "--silent", "--block", "30"];
    let output = chain.balance(&flags).await;
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let block = chain.block(30).await;
    let timestamp = u64::from_str_radix(&block["timestamp"].as_str().unwrap()[2..], 16).unwrap();
    let variable = |name: &str| shown[name].as_u64().unwrap();
    let expected = json!({
        "network": "regtest",
        "chainId": 33,
        "account": chain.account,
        "rbtc": "10000.000000000000000000",
        "wei": "10000000000000000000000",
        "block": {
            "number": 30, "hash": block["hash"], "timestamp": timestamp,
            "ageSeconds": shown["block"]["ageSeconds"].as_u64().unwrap(),
        },
        "level": "verified",
        "depth": BLOCKS - 30,
        "start": "checkpoint",
        "firstBlock": { "number": 0, "hash": chain.block(0).await["hash"] },
        "attackCost": null,
        "bitcoin": null,
        "provenBy": [format!("http://{}", server.address)],
        "milliseconds": variable("milliseconds"),
        "receivedBytes": variable("receivedBytes"),
    });
    assert_eq!(shown, expected);
    assert!(variable("receivedBytes") > 10_000, "{shown}");

    let output = chain.balance(&["--upstream", &server.url(""), "--block", "1000"]).await;
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{error}");
    assert!(
        error.ends_with("error: the verified chain has no such block; its newest one is 32\n"),
        "{error}"
    );
}

/// A node without state proofs, as public ones are.
struct Stock(Arc<LocalService>);

impl Service for Stock {
    fn answer_message<'a>(
        &'a self,
        caller: &'a Arc<Caller>,
        message: Message,
    ) -> BoxFuture<'a, ReservedReply> {
        let is_proof = |name: &str| name.ends_with("getProof") || name.ends_with("Witness");
        if message.calls().any(|call| is_proof(&call.method)) {
            let refusals = message.entries().iter().map(|_| Err(RpcError::MethodNotFound)).collect();
            return Box::pin(async move { ReservedReply::of(Reply::to(message, refusals)) });
        }
        self.0.answer_message(caller, message)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_source_of_state_one_screen_says_who_said_what_and_what_to_do() {
    let chain = chain().await;
    let server = start_service(config(), Arc::new(Stock(chain.node.clone()))).await;
    let output = chain.balance(&["--upstream", &server.url("/v1/0123456789abcdef")]).await;
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{error}");
    let report = error.split_once("block 32 is the verified head; its state was not proven\n").unwrap().1;
    let lines: Vec<&str> = report.lines().collect();
    assert!(lines[0].starts_with("the latest answer: "), "{error}");
    assert_eq!(lines[1], "tried:");
    assert!(
        lines[2].starts_with(&format!("  http://{}: upstream error -32601: ", server.address)),
        "{error}"
    );
    assert_eq!(lines[3], "what to do:");
    assert!(lines[4].starts_with("  --upstream URL: ") && lines[5].starts_with("  --peer "), "{error}");
    assert_eq!(*lines.last().unwrap(), format!("error: no source proved the balance of {}", chain.account));
    assert!(lines.len() < 20 && !error.contains("0123456789abcdef"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_another_network_is_named() {
    let chain = chain().await;
    let server = start_service(config(), chain.node.clone()).await;
    let url = server.url("");
    let arguments = ["balance", &chain.account, "--network", "testnet", "--upstream", &url];
    let output = balance(arguments.map(str::to_owned).into()).await;
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{error}");
    let named = error.lines().find(|line| line.starts_with(&format!("  http://{}: ", server.address)));
    assert!(named.unwrap().contains("it is of the network with chain id 33, not 31: use "), "{error}");
    assert!(error.ends_with("error: no source gave the chain, so the balance is not proven\n"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_be_reached_ends_the_run_soon_and_its_key_is_not_shown() {
    let chain = chain().await;
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{closed}/v1/0123456789abcdef");
    let output = chain.balance(&["--upstream", &url]).await;
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{error}");
    assert!(
        error.contains(&format!("  http://{closed}: "))
            && error.contains("no program listens there: start the node"),
        "{error}"
    );
    assert!(error.contains("no header above the start, block 0, was verified\n"), "{error}");
    assert!(!error.contains("0123456789abcdef"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_when_its_time_is_over_and_when_it_is_interrupted() {
    let chain = chain().await;
    // This peer accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = format!("{}@{}", "ab".repeat(64), silent.local_addr().unwrap());
    let output = chain.balance(&["--peer", &peer, "--for", "1"]).await;
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{error}");
    let end = format!("error: the balance of {} was not proven within 1 s\n", chain.account);
    assert!(error.contains("what to do:\n") && error.ends_with(&end), "{error}");

    let mut child = Command::new(env!("CARGO_BIN_EXE_rootlight"))
        .args(["balance", &chain.account, "--peer", &peer])
        .args(&chain.start)
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _watch = ProgramWatch::of(&child);
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert_eq!(line, "connecting: 0 of 1 sources answer\n");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("error: interrupted; nothing is proven\n"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn mistakes_are_told_before_anything_is_asked() {
    let account = "0x5aaEB6053f3e94c9b9a09f33669435E7ef1bEAeD";
    let wrong = account.replacen("aaEB", "aaeB", 1);
    for (arguments, words) in [
        (&[][..], "<ADDRESS>"),
        (&["alice.rsk"], "address alice.rsk: an address begins with 0x; names are not looked up"),
        (&["0x12"], "has 40 digits after 0x, this one has 2"),
        (&[&wrong], "neither the checksum of EIP-55 nor that of RSKIP-60"),
        (&[account, "--block", "newest"], "or latest"),
        (&[account, "--network", "regtest"], "--bootnode HOST:PORT"),
        (&[account, "--network", "devnet"], "--upstream URL"),
        (&[account, "--upstream", "ftp://node.example"], "takes an http(s) or ws(s) URL"),
        (&[account, "--network", "testnet", "--checkpoint", "work", "--upstream", "http://a"], "checkpoint"),
    ] {
        let output = run(&[&["balance"], arguments].concat());
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}
