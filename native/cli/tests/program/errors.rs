//! Each cause for which an upstream is of no use, provoked on loopback, and what callers read of it.

#[path = "../../../../tests/support/errors.rs"]
mod documented;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::thread;

use documented::is_documented;
use serde_json::{Value, json};

use crate::common::Program;

/// The secret in each address of these tests.
const SECRET: &str = "0123456789abcdef";

/// Response of a node to a request.
type Responds = fn(&Value) -> (&'static str, String);

/// Starts a node on loopback that responds in this way; returns its address.
fn node(responds: Responds) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || serve(stream, responds));
        }
    });
    address
}

fn serve(mut stream: TcpStream, responds: Responds) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let (status, body) = responds(&serde_json::from_slice(&body).unwrap());
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
    let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
}

/// A node of mainnet that has no blocks.
fn of_mainnet(body: &Value) -> (&'static str, String) {
    let one = |request: &Value| match request["method"].as_str() {
        Some("eth_chainId") => json!({"jsonrpc": "2.0", "id": request["id"], "result": "0x1e"}),
        _ => json!({"jsonrpc": "2.0", "id": request["id"], "result": null}),
    };
    let reply = body.as_array().map_or_else(|| one(body), |all| all.iter().map(one).collect());
    ("200 OK", reply.to_string())
}

/// Starts a light client of testnet with this upstream.
fn light(upstream: &str, more: &[&str]) -> Program {
    let checkpoint = format!("1:0x{}", "11".repeat(32));
    let upstream = format!("{upstream}/{SECRET}");
    super::light::light("testnet", &upstream, &checkpoint, more)
}

/// The error of a request to the program, as a page of this origin if one is given.
fn error_of(program: &Program, origin: Option<&str>) -> String {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []});
    let asked = async { program.send_from(origin, &message).await };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(asked)["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn each_cause_is_told_with_the_upstream_and_what_to_do() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let causes: [(&str, String); 9] = [
        ("no program listens", format!("http://{closed}")),
        ("no such host", "http://no-such-host.invalid".into()),
        ("no key, or a wrong one", node(|_| ("401 Unauthorized", String::new()))),
        ("refused", node(|_| ("403 Forbidden", String::new()))),
        ("wrong path", node(|_| ("404 Not Found", String::new()))),
        ("broken node", node(|_| ("500 Internal Server Error", String::new()))),
        ("busy node", node(|_| ("503 Service Unavailable\r\nretry-after: 1", String::new()))),
        ("no node", node(|_| ("200 OK", "<html>".into()))),
        ("other network", node(of_mainnet)),
    ];
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (cause, upstream) in &causes {
            let wrong = &wrong;
            scope.spawn(move || {
                let error = error_of(&light(upstream, &[]), None);
                if !is_documented(cause, upstream, &error) || error.contains(SECRET) {
                    wrong.lock().unwrap().push(format!("{cause}: {error}"));
                }
            });
        }
    });
    assert_eq!(wrong.into_inner().unwrap(), [""; 0]);
}

/// A place of the peer-to-peer network is one upstream, and many places may be vacant.
#[test]
fn a_cause_that_all_upstreams_share_is_told_once() {
    let refusing = || node(|_| ("403 Forbidden", String::new()));
    let [one, two] = [refusing(), refusing()];
    let program = light(&one, &["--upstream", &two]);
    let expected = format!("synchronization stopped: {one}, {two}: ");
    // Until both have failed, the client synchronizes.
    let error = std::iter::repeat_with(|| error_of(&program, None)).find(|error| error.contains("stopped"));
    let error = error.unwrap();
    assert!(error.contains(&expected) && error.matches("HTTP status 403").count() == 1, "{error}");
    assert!(is_documented("refused", &two, &error), "{error}");
}

/// The address of an upstream is one of the operator's network.
#[test]
fn pages_of_other_origins_and_callers_of_a_service_do_not_read_which_upstream_it_is() {
    let upstream = node(of_mainnet);
    let own = light(&upstream, &[]);
    let hosted = light(&upstream, &["--profile", "hosted"]);
    for error in [error_of(&own, Some("https://page.example")), error_of(&hosted, None)] {
        assert!(
            error.contains("synchronization stopped: upstream 1: ") && !error.contains("127.0.0.1"),
            "{error}"
        );
    }
}
