//! Abuses of a light client by its upstreams.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::attack::{Attack, UPSTREAM, Words, words};
use crate::chain::{BLOCKS, ChainServer};
use crate::http::{self, call, together};
use crate::watch;

/// Bytes of padding in each response, slightly less than the client's limit.
const PADDING: usize = 11 << 20;

/// How long clients send requests while the upstreams pad their responses.
const LONG: Duration = Duration::from_secs(15);

/// How an upstream changes its responses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Invents blocks of no chain, with lists of invalid transactions.
    Blocks,
    /// Invents many more responses than there were calls.
    Members,
    /// Returns the responses of an honest chain unchanged.
    Honest,
    /// Returns the responses of an honest chain with an additional long member in each object.
    Longer,
    /// Returns the responses of an honest chain with many empty nodes in proofs.
    Nodes,
    /// Does what [`Self::Longer`] does for calls without proofs, which several upstreams answer.
    Unproven,
}

/// Whether the attack has begun. Before, upstreams without a chain return errors, and the others are honest.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Number and bytes of padded responses.
static PADDED: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The honest chain, which lives as long as this process.
static CHAIN: Mutex<Option<Arc<ChainServer>>> = Mutex::new(None);

/// Ends the honest chain's server.
pub(crate) fn end() {
    if let Some(chain) = CHAIN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        chain.end();
    }
}

macro_rules! attack {
    ($way:ident, $log_bytes:expr, $question:expr, $attack:expr) => {
        Attack {
            server: || Box::pin(server(Way::$way, $log_bytes)),
            question: $question,
            priority: &UPSTREAM,
            ..Attack::of_development($attack)
        }
    };
}

/// A request for state that the client has proven once and keeps.
const BALANCE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x00000000000000000000000000000000000000aa","latest"]}"#;

pub(crate) fn all() -> Vec<(&'static str, Attack)> {
    vec![
        ("upstream-blocks", attack!(Blocks, 0, watch::CHAIN_ID, |a| Box::pin(ask(a, no_chain, 8)))),
        ("upstream-members", attack!(Members, 0, watch::CHAIN_ID, |a| Box::pin(ask(a, no_chain, 8)))),
        ("upstream-logs", attack!(Honest, 100_000, BALANCE, |a| Box::pin(ask(a, all_logs, 2)))),
        ("upstream-bodies", attack!(Longer, 32, BALANCE, |a| Box::pin(ask(a, all_logs, 2)))),
        ("upstream-nodes", attack!(Nodes, 32, BALANCE, |a| Box::pin(ask(a, balance, 8)))),
        ("upstream-unproven", attack!(Unproven, 32, BALANCE, |a| Box::pin(ask(a, balance, 8)))),
    ]
}

/// Starts three upstreams; returns the arguments of a light client that uses them.
async fn server(way: Way, log_bytes: usize) -> String {
    let of_chain = !matches!(way, Way::Blocks | Way::Members);
    if of_chain {
        let chain = Arc::new(ChainServer::start(log_bytes).await);
        *CHAIN.lock().unwrap_or_else(PoisonError::into_inner) = Some(chain);
    }
    let mut arguments = match (way, of_chain) {
        (_, false) => "light --network mainnet".to_owned(),
        (Way::Unproven, _) => "light --network regtest --checkpoint none --unproven quorum:2".to_owned(),
        _ => "light --network regtest --checkpoint none".to_owned(),
    };
    for host in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
        let listener = TcpListener::bind(format!("{host}:0")).await.expect("a port");
        let address: SocketAddr = listener.local_addr().expect("its address");
        arguments.push_str(&format!(" --upstream http://{address}/"));
        tokio::spawn(serve(listener, way));
    }
    arguments
}

/// Requests to a client that has no chain yet.
fn no_chain(id: usize) -> Value {
    let hash = format!("0x{id:064x}");
    match id % 2 {
        0 => call(id, "eth_getBlockByHash", json!([hash, true])),
        _ => call(id, "eth_getTransactionByHash", json!([hash])),
    }
}

/// A request for the logs of all blocks.
fn all_logs(id: usize) -> Value {
    call(id, "eth_getLogs", json!([{"fromBlock": "0x2", "toBlock": format!("{:#x}", BLOCKS + 1)}]))
}

/// A request for the balance of a different account each time.
fn balance(id: usize) -> Value {
    call(id, "eth_getBalance", json!([format!("0x{:040x}", id + 0xa_0000), "latest"]))
}

/// Lets this many clients send requests for a while.
async fn ask(address: SocketAddr, question: fn(usize) -> Value, clients: usize) -> Words {
    BEGUN.store(true, Ordering::SeqCst);
    let started = Instant::now();
    let answered = together(clients, move |client| async move {
        let (mut results, mut errors) = (0, Vec::new());
        for turn in 0.. {
            if started.elapsed() > LONG {
                break;
            }
            let answer = http::post(address, &question(turn * clients + client).to_string()).await;
            match answer.split_once("\"error\":") {
                Some((_, error)) => errors.push(error.chars().take(150).collect::<String>()),
                None => results += u32::from(answer.contains("\"result\"")),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        (results, errors)
    });
    let answered = answered.await;
    let results: u32 = answered.iter().map(|(results, _)| results).sum();
    let errors: Vec<&String> = answered.iter().flat_map(|(_, errors)| errors).collect();
    let (padded, bytes) = (PADDED.load(Ordering::SeqCst), BYTES.load(Ordering::SeqCst));
    let error = errors.first().map(|error| format!(", such as {error}")).unwrap_or_default();
    let text = format!(
        "{padded} answers of upstreams, {} MiB; {results} results, {} errors{error}",
        bytes >> 20,
        errors.len()
    );
    words(bytes > 32 << 20 && results as usize + errors.len() > 0, text)
}

async fn serve(listener: TcpListener, way: Way) {
    let router = Router::new().route("/", post(move |question: String| respond(question, way)));
    let _ = axum::serve(listener, router).await;
}

async fn respond(question: String, way: Way) -> String {
    let body = answer(&serde_json::from_str(&question).unwrap_or_default(), way).await;
    if BEGUN.load(Ordering::SeqCst) {
        PADDED.fetch_add(1, Ordering::SeqCst);
        BYTES.fetch_add(body.len(), Ordering::SeqCst);
    }
    body
}

async fn answer(question: &Value, way: Way) -> String {
    let begun = BEGUN.load(Ordering::SeqCst);
    match way {
        Way::Blocks | Way::Members if begun => of_no_chain(question, way),
        Way::Blocks | Way::Members => {
            json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32000, "message": "later"}})
                .to_string()
        }
        _ => {
            let chain = CHAIN.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let answer = chain.expect("a chain").ask(question).await;
            if begun && way != Way::Honest {
                padded(question, &serde_json::from_str(&answer).unwrap_or_default(), way)
            } else {
                answer
            }
        }
    }
}

fn calls(question: &Value) -> Vec<&Value> {
    question.as_array().map_or_else(|| vec![question], |calls| calls.iter().collect())
}

/// Invents blocks of a far higher chain.
fn of_no_chain(question: &Value, way: Way) -> String {
    let calls = calls(question);
    let share = PADDING / calls.len().max(1);
    let one = |call: &&Value| {
        let result = match (call["method"].as_str(), way) {
            (Some("eth_blockNumber"), _) => "\"0x900000\"".to_owned(),
            (Some("net_version" | "eth_chainId"), _) => "\"0x1e\"".to_owned(),
            (_, Way::Blocks) => {
                format!("{{\"number\":\"0x900000\",\"transactions\":[{}0]}}", "0,".repeat(share / 2))
            }
            _ => "null".to_owned(),
        };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}", call["id"])
    };
    let answers: Vec<String> = calls.iter().map(one).collect();
    match way {
        Way::Members => format!("[{}{}]", answers.join(","), ",0".repeat(PADDING / 2)),
        _ if question.is_array() => format!("[{}]", answers.join(",")),
        _ => answers.concat(),
    }
}

/// Adds padding to the results of an honest response.
fn padded(question: &Value, answer: &Value, way: Way) -> String {
    let calls = calls(question);
    let share = PADDING / calls.len().max(1);
    let pad = |answer: &Value| {
        let text = answer.to_string();
        let call = calls.iter().find(|call| call["id"] == answer["id"]);
        let method = call.and_then(|call| call["method"].as_str()).unwrap_or_default();
        match (way, method) {
            (Way::Longer, _) if answer["result"].is_object() => text.replacen(
                "\"result\":{",
                &format!("\"result\":{{\"padding\":[{}0],", "0,".repeat(share / 2)),
                1,
            ),
            (Way::Nodes, "eth_getProof") => text.replacen(
                "\"accountProof\":[",
                &format!("\"accountProof\":[{}", "\"\",".repeat(share / 3)),
                1,
            ),
            (Way::Unproven, method) if method.contains("Proof") || method.contains("Witness") => {
                let error = json!({"code": -32601, "message": "method not found"});
                json!({"jsonrpc": "2.0", "id": answer["id"], "error": error}).to_string()
            }
            (Way::Unproven, "eth_getBalance") => {
                let members: Vec<String> = (0..PADDING / 10).map(|name| format!("\"{name:x}\":0")).collect();
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{{}}}}}",
                    answer["id"],
                    members.join(",")
                )
            }
            _ => text,
        }
    };
    match answer.as_array() {
        Some(answers) => format!("[{}]", answers.iter().map(pad).collect::<Vec<_>>().join(",")),
        None => pad(answer),
    }
}
