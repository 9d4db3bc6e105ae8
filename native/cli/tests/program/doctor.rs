//! `rootlight doctor`: every step on a chain of this machine, and the report where no node answers.

use crate::common;

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};

use common::{client, run};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::peers::{dev, dev_with};

/// Longer than any machine takes; every run here ends by itself.
const LONG: &str = "600";

const SUBJECTS: [&str; 10] =
    ["dns", "discovery", "handshake", "headers", "head", "state", "chainId", "headers", "head", "state"];

fn subjects(report: &Value, outcome: &str) -> Vec<String> {
    let steps = report["steps"].as_array().unwrap().iter();
    let steps = steps.filter(|step| step["outcome"] == outcome);
    steps.map(|step| step["subject"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_works_on_a_chain_that_is_served_and_the_report_replays() {
    let (mut program, id, address) = dev();
    let mut banner = BufReader::new(program.child.stdout.take().unwrap()).lines();
    let url = banner.find_map(|line| {
        line.unwrap().split(' ').find(|word| word.starts_with("http://")).map(str::to_owned)
    });
    let url = url.unwrap();
    for _ in 0..3 {
        let mine = json!({ "jsonrpc": "2.0", "id": 1, "method": "evm_mine", "params": [] }).to_string();
        let sent = client().post(&url).header(CONTENT_TYPE, "application/json").body(mine).send().await;
        assert!(sent.unwrap().text().await.unwrap().contains("result"));
    }

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let doctor = ["doctor", "--network", "regtest", "--for", LONG];
    let sources = ["--bootnode", &address, "--upstream", &url, "--report", file.to_str().unwrap()];
    let output = run(&[&doctor[..], &sources].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("FAILED") && !text.contains("skipped"), "{text}");
    assert!(text.contains("1 of 1 boot hosts answered"), "{text}");
    assert!(text.contains("3 headers above block 0 verified"), "{text}");

    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(subjects(&report, "ok"), SUBJECTS, "{report:#}");
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["nodes"][0]["place"], format!("{id}@{address}"));
    assert_eq!(report["nodes"][0]["capabilities"], json!(["rsk/62", "snap/1"]));
    let proven = report["provenBy"].as_array().unwrap();
    assert_eq!((proven.len(), &proven[0]), (2, &json!("peers")), "{report:#}");
    drop(program);

    // The recorded calls are all that these steps need; peers are not asked for the chain id.
    let recordings = report["recordings"].as_array().unwrap();
    assert_eq!(recordings.len(), 2, "{report:#}");
    for (recording, first) in recordings.iter().zip([7, 6]) {
        let replay = format!("replay:{}", recording.as_str().unwrap());
        let output = run(&[&doctor[..], &["--upstream", &replay, "--json"]].concat());
        let again: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((output.status.code(), &again["provenBy"]), (Some(0), &json!([replay])), "{again:#}");
        assert_eq!(subjects(&again, "ok"), SUBJECTS[first..], "{again:#}");
        assert_eq!(subjects(&again, "failed"), [""; 0]);
        let heads = [&report, &again].map(|report| {
            let steps = report["steps"].as_array().unwrap();
            steps.iter().find(|step| step["subject"] == "head" && step["outcome"] == "ok").unwrap()["details"]
                ["hash"]
                .clone()
        });
        assert_eq!(heads[0], heads[1]);
    }
}

/// Every development chain has a block 0 of its own.
#[tokio::test(flavor = "multi_thread")]
async fn the_chain_of_an_upstream_is_read_from_the_block_0_that_it_shows() {
    let dev = super::dev::start(&["dev", "--silent"]);
    dev.call("evm_mine", json!([])).await.unwrap();
    let output = run(&["doctor", "--network", "regtest", "--upstream", dev.url(), "--for", LONG]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 headers above block 0 verified") && !text.contains("FAILED"), "{text}");
}

/// The steps about a chain and about Bitcoin that were tried, with their outcomes, in an order that does not depend on time.
fn verdicts(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let steps = report["steps"].as_array().unwrap().iter();
    let steps = steps.map(|step| (text(&step["subject"]), text(&step["outcome"])));
    let elsewhere = ["dns", "discovery", "handshake", "chainId"];
    let mut verdicts: Vec<_> = steps
        .filter(|(subject, outcome)| outcome != "skipped" && !elsewhere.contains(&subject.as_str()))
        .collect();
    verdicts.sort();
    verdicts
}

/// The details of the steps about a subject.
fn details<'a>(report: &'a Value, subject: &str) -> Vec<&'a Value> {
    let steps = report["steps"].as_array().unwrap().iter();
    steps.filter(|step| step["subject"] == subject).map(|step| &step["details"]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_of_bitcoin_tags_and_single_nodes_are_tried_and_the_report_replays_to_the_same_verdicts() {
    let (mut program, id, address) = dev_with(&["--bitcoin-chain=2"]);
    let (mut url, mut bitcoin) = (String::new(), Vec::new());
    for line in BufReader::new(program.child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        let words = line.split([' ', ',']).filter(|word| word.contains("://")).map(str::to_owned);
        if line.starts_with("Bitcoin ") {
            bitcoin = words.collect();
        } else if line.starts_with("listening ") {
            url = words.into_iter().next().unwrap();
            break;
        }
    }
    let mine = json!({ "jsonrpc": "2.0", "id": 1, "method": "hardhat_mine", "params": ["0x258", "0x1"] });
    let sent =
        client().post(&url).header(CONTENT_TYPE, "application/json").body(mine.to_string()).send().await;
    assert!(sent.unwrap().text().await.unwrap().contains("result"));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let (file, peer) = (file.to_str().unwrap(), format!("{id}@{address}"));
    let closed = format!("tcp://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let doctor = ["doctor", "--network", "regtest", "--for", LONG];
    let sources = ["--peer", &peer, "--upstream", &url, "--report", file];
    let bitcoin = ["--bitcoin", &bitcoin[0], "--bitcoin", &bitcoin[1], "--bitcoin", &closed];
    let output = run(&[&doctor[..], &sources, &bitcoin].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let found = verdicts(&report);
    let count = |subject: &str, outcome: &str| {
        found.iter().filter(|one| **one == (subject.to_owned(), outcome.to_owned())).count()
    };
    for (subject, times) in
        [("headers", 2), ("head", 2), ("state", 2), ("tags", 2), ("stateServer", 1), ("bitcoinSource", 2)]
    {
        assert_eq!(count(subject, "ok"), times, "{subject}: {text}");
    }
    assert_eq!((found.len(), count("bitcoinSource", "failed")), (12, 1), "{text}");
    // The broken source is named, with what to do.
    assert!(text.contains(&format!("FAILED  {closed}, bitcoin source: ")), "{text}");
    assert!(text.contains("name other sources with --bitcoin URL"), "{text}");
    assert!(text.contains("78 of 78 coinbases proven") && text.contains("it offers no coinbases"), "{text}");
    assert!(
        text.contains("held: the newest 72 Bitcoin blocks name this chain 72 times (72 own, 0 kin)"),
        "{text}"
    );
    drop(program);

    let output = run(&[&doctor[..], &["--replay", file, "--json"]].concat());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let again: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"));
    assert_eq!((output.status.code(), verdicts(&again)), (Some(0), found), "{again:#}");
    for subject in ["head", "bitcoinSource"] {
        let [first, second] = [&report, &again].map(|report| details(report, subject));
        for details in first {
            let same = |other: &&&Value| {
                ["hash", "tip", "coinbases"].iter().all(|name| other[*name] == details[*name])
            };
            assert!(second.iter().any(|other| same(&other)), "{subject}: {details} is not in {second:?}");
        }
    }

    let other = run(&["doctor", "--network", "testnet", "--replay", file]);
    let error = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(2), "{error}");
    assert!(error.contains("it is of network regtest"), "{error}");
}

#[test]
fn without_a_node_that_answers_each_step_says_what_to_do() {
    // A host that accepts connections and says nothing, and a port at which no program listens.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let boot = silent.local_addr().unwrap().to_string();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (peer, url) = (format!("{}@{closed}", "ab".repeat(64)), format!("http://{closed}"));
    let sources = ["--bootnode", &boot, "--peer", &peer, "--upstream", &url];
    let output = run(&[&["doctor", "--network", "regtest", "--for", "3"], &sources[..]].concat());
    let (text, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{text}{error}");
    for words in [
        "ok      peers, dns: 1 of 1 boot hosts",
        "FAILED  peers, discovery: 0 of 1 boot hosts answered",
        "a firewall may block it",
        "FAILED  peers, handshake: 0 of 1 nodes",
        "skipped peers, state: no node shook hands",
        "chain id: upstream not reachable",
        "look at the URL",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(error.contains("the first step that failed: peers, discovery"), "{error}");
}

#[test]
fn an_upstream_of_another_chain_is_named() {
    const RECORDING: &str = concat!("replay:", env!("CARGO_MANIFEST_DIR"), "/../recordings/regtest.jsonl.gz");
    let output =
        run(&["doctor", "--network", "devnet", "--upstream", RECORDING, "--json", "--checkpoint", "none"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), subjects(&report, "failed")), (Some(1), vec!["chainId".to_owned()]));
    let seen = report["steps"][0]["seen"].as_str().unwrap();
    assert!(seen.contains("0x21") && seen.contains("0x"), "{seen}");
}

#[test]
fn without_anybody_to_ask_the_flags_that_help_are_named() {
    for (arguments, words) in [
        (&["--network", "regtest"][..], "--bootnode HOST:PORT"),
        (&["--network", "devnet"], "--upstream URL"),
        (&["--network", "regtest", "--bootnode", "nowhere"], "HOST:PORT"),
        (&["--network", "regtest", "--checkpoint", "work", "--upstream", "http://a"], "checkpoint"),
    ] {
        let output = run(&[&["doctor"], arguments].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
}
