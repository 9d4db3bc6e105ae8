//! `rootlight doctor`: every step on a chain of this machine, and what is said where nobody answers.

use crate::common;

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, UdpSocket};

use common::{client, run};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::peers::dev;

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
    let mut banner = BufReader::new(program.0.stdout.take().unwrap()).lines();
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

    // What was recorded is all that these steps need; peers are not asked for the chain id.
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

#[test]
fn without_a_node_that_answers_each_step_says_what_to_do() {
    // A host that is there and says nothing, and a port that nobody listens at.
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
