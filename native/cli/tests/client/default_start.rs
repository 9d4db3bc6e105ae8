//! The program `rootlight light` without `--checkpoint`: a start by window that is stored below the user's folder for caches.
//! And `rootlight doctor`, which tries this start and that at the built-in checkpoint.

use crate::common::{Program, RunningServer, config, rootlight, run, start_service};
use crate::window::{ChainUpstream, FIRST, LENGTH, NETWORK};

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::BoxFuture;
use rootlight::rpc::{Message, Reply, RpcError};
use rootlight_node::light::WINDOW_FILE;
use rootlight_server::service::{Caller, ReservedReply, Service};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// Headers of a start that nothing dates.
const UNDATED: u64 = 5_760 + 449;

/// Serves a chain's headers by JSON-RPC.
struct ChainServer(Arc<ChainUpstream>);

impl Service for ChainServer {
    fn answer_message<'a>(&'a self, _: &'a Arc<Caller>, message: Message) -> BoxFuture<'a, ReservedReply> {
        let answer = |method: &str, params: &[Box<RawValue>]| {
            let text = self.0.answer(method, to_raw_value(params).unwrap().get());
            text.map(|text| RawValue::from_string(text).unwrap()).ok_or(RpcError::MethodNotFound)
        };
        let answers = message.entries().iter().map(|entry| match &entry.call {
            Ok(call) => answer(&call.method, &call.params),
            Err(_) => Err(RpcError::MethodNotFound),
        });
        let answers = answers.collect();
        Box::pin(async move { ReservedReply::of(Reply::to(message, answers)) })
    }
}

/// A chain, its server, the file of its network, and a user's folder for caches.
struct StartFixture {
    node: Arc<ChainUpstream>,
    server: RunningServer,
    home: tempfile::TempDir,
}

impl StartFixture {
    async fn new() -> Self {
        let node = ChainUpstream::behind(40);
        let server = start_service(config(), Arc::new(ChainServer(node.clone()))).await;
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("network.json"), NETWORK).unwrap();
        Self { node, server, home }
    }

    /// Starts the program, and waits until it serves.
    async fn light(&self, more: &[&str]) -> LightProgram {
        let upstream = self.server.url("/");
        let mut command = rootlight(&["light", "--http-port", "0", "--upstream", &upstream, "--network"]);
        command.arg(self.home.path().join("network.json")).args(more).env("XDG_CACHE_HOME", self.caches());
        command.stderr(Stdio::piped());
        tokio::task::spawn_blocking(move || LightProgram(Program::start(&mut command))).await.unwrap()
    }

    fn caches(&self) -> std::path::PathBuf {
        self.home.path().join("caches")
    }

    fn file(&self) -> std::path::PathBuf {
        self.caches().join("rootlight").join("cheap").join(WINDOW_FILE)
    }
}

struct LightProgram(Program);

impl LightProgram {
    /// Waits for the head, which is answered as that of a window.
    async fn head(&self) -> u64 {
        loop {
            let answer = self.0.ask("eth_blockNumber", json!([])).await;
            if let Some(number) = answer["result"].as_str() {
                assert_eq!(answer["start"], "window", "{answer}");
                return u64::from_str_radix(&number[2..], 16).unwrap();
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    fn stop(self) -> String {
        let (code, _, log) = self.0.stop("TERM");
        assert_eq!(code, Some(0), "{log}");
        log
    }
}

/// Whether a path and the folders below it have any file.
fn has_files(path: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(path) else { return false };
    entries.map(Result::unwrap).any(|entry| entry.path().is_file() || has_files(&entry.path()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_is_a_window_that_is_stored_for_the_next_run_and_read_by_a_second_program() {
    let fixture = StartFixture::new().await;
    let first = fixture.light(&["--bitcoin", "off"]).await;
    assert_eq!(first.head().await, FIRST + LENGTH - 41);
    let asked = fixture.node.take().0;
    assert!((UNDATED..7_500).contains(&asked), "{asked} headers");
    first.stop();

    // The program may have ended before the last headers were written.
    let mut program = fixture.light(&["--bitcoin", "off"]).await;
    loop {
        program.head().await;
        if fixture.node.take().0 < 600 {
            break;
        }
        program.stop();
        program = fixture.light(&["--bitcoin", "off"]).await;
    }
    assert!(fixture.file().exists());

    fixture.node.head.store(LENGTH as usize - 1, Ordering::SeqCst);
    let before = std::fs::read(fixture.file()).unwrap().len();
    let second = fixture.light(&["--bitcoin", "off"]).await;
    assert_eq!(second.head().await, FIRST + LENGTH - 1);
    // Both programs have asked for what is new.
    let (asked, lowest, _) = fixture.node.take();
    assert!(asked < 1_200 && lowest > FIRST + LENGTH - 700, "{asked} headers from {lowest}");
    let log = second.stop();
    assert!(log.contains("not stored in this run"), "{log}");
    assert!(std::fs::read(fixture.file()).unwrap().len() >= before, "the first program's file is as it was");
    let log = program.stop();
    assert!(!log.contains("not stored in this run") && !log.contains("unusable"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_stored_if_the_user_says_so() {
    let fixture = StartFixture::new().await;
    let program = fixture.light(&["--bitcoin", "off", "--data-dir", "none"]).await;
    assert_eq!(program.head().await, FIRST + LENGTH - 41);
    program.stop();
    assert!(!has_files(&fixture.caches()));
}

/// Sources that answer nothing hold a start up for some seconds, and no longer.
#[tokio::test(flavor = "multi_thread")]
async fn without_any_source_of_bitcoin_that_answers_an_undated_window_starts() {
    let fixture = StartFixture::new().await;
    let program = fixture.light(&["--bitcoin", "tcp://127.0.0.1:1", "--bitcoin", "http://127.0.0.1:1"]).await;
    assert_eq!(program.head().await, FIRST + LENGTH - 41);
    assert!(fixture.node.take().0 >= UNDATED);
    let status = program.0.ask("rootlight_syncStatus", json!([])).await;
    assert_eq!(status["result"]["bitcoin"]["verdict"], "unavailable", "{status}");
}

/// Runs the doctor; returns the outcomes of its steps about headers and the head, with the kind of start.
async fn doctor(fixture: &StartFixture, more: &[&str]) -> Vec<(Value, Value)> {
    let network = fixture.home.path().join("network.json");
    let mut arguments = vec!["doctor".to_owned(), "--json".to_owned(), "--for".to_owned(), "600".to_owned()];
    arguments.extend(["--network".to_owned(), network.to_str().unwrap().to_owned()]);
    arguments.extend(more.iter().map(|text| (*text).to_owned()));
    let run = move || run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let steps = report["steps"].as_array().unwrap().iter();
    let steps = steps.filter(|step| step["subject"] == "headers" || step["subject"] == "head");
    steps.map(|step| (step["details"]["start"]["kind"].clone(), step["outcome"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_tries_both_starts_and_replays_them_by_the_clock_of_the_report() {
    let fixture = StartFixture::new().await;
    let (url, file) = (fixture.server.url("/"), fixture.home.path().join("report.json"));
    let file = file.to_str().unwrap();
    let tried = doctor(&fixture, &["--upstream", &url, "--bitcoin", "off", "--report", file]).await;
    let of = |kind: &str, outcome: &str| (json!(kind), json!(outcome));
    let head = |outcome: &str| (Value::Null, json!(outcome));
    // No chain leads from block 0 to these headers.
    let expected = vec![of("window", "ok"), head("ok"), of("checkpoint", "failed")];
    assert_eq!(tried, expected);
    assert_eq!(doctor(&fixture, &["--replay", file]).await, expected);

    // To a clock of two hours before, the headers come from the future.
    let mut report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    report["started"] = json!(report["started"].as_u64().unwrap() - 7_200);
    std::fs::write(file, report.to_string()).unwrap();
    let early = doctor(&fixture, &["--replay", file]).await;
    assert!(!early.contains(&head("ok")), "{early:?}");
}
