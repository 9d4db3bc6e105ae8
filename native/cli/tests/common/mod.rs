//! Set-up shared by the tests.
#![allow(dead_code, unused_imports, unreachable_pub)]

mod calls;
mod program;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::engine::DevNode;
use rootlight::rpc::{Message, Reply};
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_server::service::{Caller, ReservedReply, Service};
use rootlight_server::{AdmissionRules, Control, Operations, Origins, Server, ServerConfig, ServerLimits};
use serde_json::Value;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::oneshot;

pub use self::calls::{answered, answers, ask, ask_as, outcome, read_message, recording};
pub use self::program::{Program, rootlight};

/// How long a test waits for a program.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kills a program that has not ended after [`PATIENCE`], so that the test fails instead of waiting forever.
pub struct ProgramWatch(mpsc::Sender<()>);

impl ProgramWatch {
    pub fn of(child: &Child) -> Self {
        let (ended, end) = mpsc::channel();
        let id = child.id().to_string();
        std::thread::spawn(move || {
            if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").arg(id).status();
            }
        });
        Self(ended)
    }
}

/// Runs the program with these arguments; returns its output and exit status.
pub fn run(arguments: &[&str]) -> Output {
    run_with(arguments, "")
}

/// As [`run`], with this text as the program's input.
pub fn run_with(arguments: &[&str], input: &str) -> Output {
    let mut child = rootlight(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _watch = ProgramWatch::of(&child);
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A call of so many bytes.
pub fn call_of(bytes: usize) -> String {
    let frame = r#"{"id":1,"method":"m","params":[""]}"#;
    format!(r#"{{"id":1,"method":"m","params":["{}"]}}"#, "x".repeat(bytes - frame.len()))
}

/// A response with a result of so many bytes.
pub const fn response_of(bytes: usize) -> usize {
    r#"{"jsonrpc":"2.0","id":1,"result":}"#.len() + bytes
}

/// A service whose answers depend on the message in ways that tests can observe.
pub struct Echo;

impl Service for Echo {
    fn answer_message<'a>(&'a self, _: &'a Arc<Caller>, message: Message) -> BoxFuture<'a, ReservedReply> {
        Box::pin(async move {
            let calls = |method| message.calls().any(|call| call.method == method);
            if calls("slow") {
                tokio::time::sleep(Duration::from_millis(600)).await;
            }
            let result = match calls("large") {
                true => json!("x".repeat(4 << 20)),
                false => json!(message.bytes()),
            };
            let outcomes = message.entries().iter().map(|_| Ok(to_raw_value(&result).unwrap())).collect();
            ReservedReply::of(Reply::to(message, outcomes))
        })
    }
}

/// A running server, which stops when dropped.
pub struct RunningServer {
    pub address: SocketAddr,
    pub second: Option<SocketAddr>,
    pub control: Control,
    pub limits: Arc<rootlight_limits::Limits>,
    pub stop: Option<oneshot::Sender<()>>,
    pub task: tokio::task::JoinHandle<()>,
}

impl RunningServer {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn ws(&self, path: &str) -> String {
        format!("ws://{}{path}", self.address)
    }
}

pub fn config() -> ServerConfig {
    ServerConfig {
        host: "127.0.0.1".into(),
        http_port: 0,
        ws_port: None,
        origins: Origins::Unnamed,
        hosts: Vec::new(),
        limits: ServerLimits::default(),
        admission: AdmissionRules::default(),
        operations: Operations::default(),
    }
}

/// A development chain in memory with the default accounts.
pub fn dev_chain(mining: Mining, options: LocalOptions) -> Arc<LocalService> {
    let entropy = Entropy::from_system().unwrap();
    let chain = DevConfig { mining, ..DevConfig::new(&DevAccounts::default()) };
    let node = DevNode::new(chain, host_input(&entropy)).unwrap();
    Arc::new(LocalService::new(Box::new(node), options, entropy, None))
}

pub async fn start(config: ServerConfig) -> RunningServer {
    start_service(config, Arc::new(Echo)).await
}

pub async fn start_service(config: ServerConfig, service: Arc<dyn Service>) -> RunningServer {
    let server = Server::bind(config, service).await.unwrap();
    let (address, second, control) = (server.address(), server.second_address(), server.control());
    let limits = server.counts().limits.clone();
    assert_eq!(server.ready_line(), format!("listening http://{address} ws://{address}"));
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(server.run(async move {
        let _ = stopped.await;
    }));
    RunningServer { address, second, control, limits, stop: Some(stop), task }
}

/// Returns a path in the folder with shared recordings. Prints a notice and returns `None` if it does not
/// exist.
pub fn shared(part: &str) -> Option<PathBuf> {
    let root = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join(part);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {} is not here", path.display());
    None
}

pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Checks that a dashboard of docs/grafana asks for metrics only that are in the text of `GET /metrics`, or are named here.
pub fn check_dashboard(name: &str, text: &str, without_samples: &[&str]) {
    let file = format!("{}/../../docs/grafana/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut expressions = Vec::new();
    collect(&dashboard, &mut expressions);
    let mut used = 0;
    for expression in &expressions {
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in words.filter(|word| word.starts_with("rootlight_") || word.starts_with("process_")) {
            used += 1;
            let exists = text.lines().any(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ') || rest.starts_with('{'))
            });
            assert!(exists || without_samples.contains(&name), "{name} of {expression:?} is not in\n{text}");
        }
    }
    assert!(expressions.len() > 15 && used > 15, "the dashboard has {} queries", expressions.len());
}

/// The queries of all panels.
fn collect(value: &Value, expressions: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str() {
                    Some(text) if name == "expr" => expressions.push(text.to_owned()),
                    _ => collect(member, expressions),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, expressions)),
        _ => {}
    }
}
