//! `rootlight index` with a real PostgreSQL server: a recorded chain, two processes, a killed process.

use crate::common;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::run;
use rootlight::consensus::Network;
use rootlight::engine::LogFilter;
use rootlight_index::testkit::{PostgresServer, client_config, postgres};
use rootlight_index::{Database, IndexReader, Proof, ReaderOptions};
use rootlight_upstream::Upstream;
use rootlight_upstream::replay::Replay;
use serde_json::{Value, json};

/// The last block of the recording.
const HEAD: u64 = 676;

struct IndexProgram {
    _server: Arc<PostgresServer>,
    recording: String,
    url: String,
    database: Database,
}

impl IndexProgram {
    /// A new database; `None` without PostgreSQL or the recording.
    async fn new() -> Option<Self> {
        let recording = format!("replay:{}", common::shared("vectors/chain")?.display());
        let server = postgres()?;
        let url = server.database().await;
        let database = Database::parse(&url, client_config()).unwrap();
        Some(Self { _server: server, recording, url, database })
    }

    /// The arguments that load the recording.
    fn arguments(&self) -> [&str; 14] {
        let network = ["index", "--network", "regtest", "--checkpoint", "none", "--from", &self.recording];
        let [a, b, c, d, e, f, g] = network;
        [
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            "--index",
            &self.url,
            "--partition-blocks",
            "200",
            "--jobs",
            "2",
            "--min-work=0",
        ]
    }

    fn start(&self, more: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rootlight"));
        command.args(self.arguments()).args(more).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    async fn reader(&self) -> IndexReader {
        let network = Arc::new(Network::regtest());
        IndexReader::open(&self.database, network, &ReaderOptions::default()).await.unwrap()
    }

    async fn number(&self, sql: &str) -> i64 {
        let client = self.database.connect().await.unwrap();
        client.query_one(sql, &[]).await.map_or(0, |row| row.get(0))
    }
}

/// The recorded block objects and receipts.
struct RecordingServer(Replay);

impl RecordingServer {
    async fn ask(&self, method: &'static str, params: Value) -> Value {
        let call = rootlight::light::UpstreamRequest::new(method, params.to_string());
        serde_json::from_str(self.0.request(vec![call]).await.remove(0).unwrap().get()).unwrap()
    }
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_chain_is_loaded_as_it_was_recorded_and_proven() {
    let Some(index) = IndexProgram::new().await else { return };
    let loaded = run(&[&index.arguments()[..], &["--once"]].concat());
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    let reader = index.reader().await;
    assert_eq!(reader.status().await.unwrap().covered, [(0, HEAD)]);
    assert_eq!(index.number("SELECT count(*) FROM rootlight.blocks WHERE proof = 0").await, 0);

    let recorded =
        RecordingServer(Replay::open(common::shared("vectors/chain").unwrap().to_str().unwrap()).unwrap());
    let logs = reader.logs(&LogFilter::default(), 0, HEAD).all().await.unwrap();
    let mut logs = logs.into_iter();
    for number in 0..=HEAD {
        let expected = recorded.ask("eth_getBlockByNumber", json!([hex(number), true])).await;
        let block = reader.block(number).await.unwrap().unwrap();
        assert_eq!(json!(block.header.hash()), expected["hash"]);
        assert_eq!(block.proof, Proof::Verified);
        let transactions = expected["transactions"].as_array().unwrap();
        assert_eq!(block.transactions.len(), transactions.len());
        for (at, transaction) in transactions.iter().enumerate() {
            assert_eq!(json!(block.senders[at]), transaction["from"], "block {number}");
            let receipt = recorded.ask("eth_getTransactionReceipt", json!([transaction["hash"]])).await;
            assert_eq!(json!(block.transactions[at].hash()), transaction["hash"]);
            assert_eq!(hex(block.receipts[at].gas_used), receipt["gasUsed"]);
            for log in receipt["logs"].as_array().unwrap() {
                let row = logs.next().unwrap().found;
                assert_eq!(json!(row.log.address), log["address"]);
                assert_eq!(json!(row.log.topics), log["topics"]);
                assert_eq!(json!(row.log.data), log["data"]);
                assert_eq!(hex(row.log_index), log["logIndex"]);
                assert_eq!(json!(row.transaction), log["transactionHash"]);
                assert_eq!(json!(row.block.hash), log["blockHash"]);
            }
        }
        // The roots of the header say so too.
        block.check(&Network::regtest()).unwrap();
    }
    assert!(logs.next().is_none());
}

/// The process is killed at many moments of loading; rows are never partial, and in the end complete.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_indexer_leaves_whole_batches_and_the_next_one_goes_on() {
    let Some(index) = IndexProgram::new().await else { return };
    let progress = "SELECT coalesce(sum(next_block - first_block), 0)::bigint FROM rootlight.ranges";
    let mut most = 0;
    for round in 0..60_u64 {
        let mut child = index.start(&["--wait", "--once"]);
        // From the first connection to the middle of loading.
        tokio::time::sleep(Duration::from_millis(200 + 150 * round)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        // The server ends the session of a killed process by itself.
        let started = Instant::now();
        let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rootlight' AND datname = current_database() AND pid <> pg_backend_pid()";
        while index.number(sessions).await > 0 {
            assert!(started.elapsed() < Duration::from_secs(30), "sessions of a killed process stay");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let loaded = index.number(progress).await;
        assert_eq!(index.number("SELECT count(*) FROM rootlight.blocks").await, loaded);
        let sum = "SELECT coalesce(sum(transaction_count), 0)::bigint FROM rootlight.blocks";
        for table in ["transactions", "receipts"] {
            let rows = index.number(&format!("SELECT count(*) FROM rootlight.{table}")).await;
            assert_eq!(rows, index.number(sum).await, "{table}");
        }
        let sum = "SELECT coalesce(sum(log_count), 0)::bigint FROM rootlight.blocks";
        assert_eq!(index.number("SELECT count(*) FROM rootlight.logs").await, index.number(sum).await);
        most = most.max(loaded);
        // A busy machine takes longer for the first batch.
        if most > 600 || (round >= 11 && most > 0) {
            break;
        }
    }
    assert!(most > 0, "no batch was loaded before a process was killed");
    let loaded = run(&[&index.arguments()[..], &["--once", "--wait"]].concat());
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    assert_eq!(index.reader().await.status().await.unwrap().covered, [(0, HEAD)]);
    assert_eq!(index.number("SELECT count(*) FROM rootlight.blocks").await, HEAD as i64 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_indexer_is_refused_and_names_the_first() {
    let Some(index) = IndexProgram::new().await else { return };
    let mut first = index.start(&[]);
    let started = Instant::now();
    while index.number("SELECT count(*) FROM rootlight.ranges").await == 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "the first indexer does not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let second = run(&[&index.arguments()[..], &["--once"]].concat());
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{text}");
    assert!(text.contains("another indexer") && text.contains(&format!("process {}", first.id())), "{text}");
    first.kill().unwrap();
    first.wait().unwrap();
}

/// Every development chain has a block 0 of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_development_chain_is_loaded_from_the_block_0_that_it_shows() {
    let Some(server) = postgres() else { return };
    let url = server.database().await;
    let dev = super::dev::start(&["dev", "--silent"]);
    dev.call("evm_mine", json!([])).await.unwrap();
    let from = ["index", "--network", "regtest", "--from", dev.url(), "--index", &url, "--once"];
    let loaded = run(&from);
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    let client = Database::parse(&url, client_config()).unwrap().connect().await.unwrap();
    let row = client.query_one("SELECT count(*) FROM rootlight.blocks", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 2);
}

#[test]
fn wrong_addresses_are_refused_before_anything_is_opened() {
    let url = "mysql://me:secret@localhost/index";
    let refused = run(&["index", "--network", "regtest", "--from", "replay:nothing", "--index", url]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("--index") && text.contains("postgres://") && !text.contains("secret"), "{text}");
}

/// The certificate is signed by an authority of the test.
#[tokio::test(flavor = "multi_thread")]
async fn connections_by_tls_check_the_certificate_of_the_server() {
    let Some(recording) = common::shared("vectors/chain") else { return };
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/tls"));
    let files = (folder.join("server.pem"), folder.join("server-key.pem"));
    let Some(server) = PostgresServer::start_with_tls(&files.0, &files.1) else { return };
    let url = server.tls_address("postgres");
    let index = |authority: Option<&str>| {
        let from = format!("replay:{}", recording.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_rootlight"));
        command.args(["index", "--network", "regtest", "--checkpoint", "none", "--min-work=0", "--once"]);
        command.args(["--from", &from, "--index", &url]);
        match authority {
            Some(file) => command.env("SSL_CERT_FILE", folder.join(file)),
            None => command.env_remove("SSL_CERT_FILE"),
        };
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let _watch = common::ProgramWatch::of(&child);
        child.wait_with_output().unwrap()
    };
    let refused = index(None);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("certificate"), "{text}");
    let loaded = index(Some("authority.pem"));
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    let plain = Database::parse(&server.address("postgres"), client_config()).unwrap();
    let row = plain.connect().await.unwrap().query_one("SELECT count(*) FROM rootlight.blocks", &[]).await;
    assert_eq!(row.unwrap().get::<_, i64>(0), HEAD as i64 + 1);
}
