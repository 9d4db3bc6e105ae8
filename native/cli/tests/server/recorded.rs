//! Recorded exchanges with the reference node over HTTP and WebSocket, repeated here. Where this server's answer is
//! another one, `recorded_differences.jsonl` has it, with the row of docs/differences.md that says why.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use common::{RunningServer, config, dev_chain, shared, start_service};
use futures::{SinkExt, StreamExt};
use rootlight::dev::Mining;
use rootlight_node::local::LocalOptions;
use rootlight_server::{Origins, ServerConfig, ServerLimits};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// How long an answer may take where the recording has none.
const SILENCE: Duration = Duration::from_secs(1);
/// How long an answer may take where the recording has one.
const PATIENCE: Duration = Duration::from_secs(10);
const CHAIN_ID: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
/// Request ids of the messages that show that a WebSocket still answers.
const AFTER: u64 = 777;

/// What a client sees of an answer: the HTTP status (of a WebSocket: the code with which it was closed, or 0), the value
/// of `access-control-allow-origin`, and the body.
type SeenAnswer = (u64, Value, Value);

async fn dev(origins: Origins) -> RunningServer {
    // The limit of batches of the node that was recorded.
    let limits = ServerLimits { batch: 50, ..ServerLimits::default() };
    let config = ServerConfig { origins, limits, ..config() };
    start_service(config, dev_chain(Mining::Manual, LocalOptions::default())).await
}

/// A line of a recording, and its members as they stand there: large numbers lose digits in a [`Value`].
type RecordingLine = (Value, BTreeMap<String, Box<RawValue>>);

/// The lines of a recording; `None` if the recordings are absent.
fn recording(name: &str) -> Option<Vec<RecordingLine>> {
    let text = std::fs::read_to_string(shared(&format!("vectors/chain/{name}"))?).unwrap();
    // The answer to a batch in a batch, a thousand times, cannot be read here.
    let lines = text.lines().filter(|line| !line.contains(r#""label": "deep nesting","#));
    let read = |line| (serde_json::from_str(line).unwrap(), serde_json::from_str(line).unwrap());
    Some(lines.map(read).collect())
}

/// Rules by which recorded answers are compared: an error has all members, with the id null if the request's is unknown;
/// the number of the newest block is 0 here; random ids are all the same.
fn normalised(mut answer: Value) -> Value {
    match &mut answer {
        Value::Array(answers) => return answers.drain(..).map(normalised).collect(),
        Value::Object(members) if members.contains_key("error") => {
            members.entry("jsonrpc").or_insert(json!("2.0"));
            let id = members.entry("id").or_insert(Value::Null);
            if id == "null" {
                *id = Value::Null;
            }
        }
        Value::Object(members) => {
            let random = |text: &str| text.len() > 20 && text.starts_with("0x");
            match members.get_mut("result") {
                Some(result) if result == "0x287" => *result = json!("0x0"),
                Some(result) if result.as_str().is_some_and(random) => *result = json!("random"),
                _ => {}
            }
        }
        _ => {}
    }
    answer
}

/// Compares what was seen with what was recorded, or with what is listed as a difference.
struct Comparison {
    recording: &'static str,
    listed: BTreeMap<String, Value>,
    wrong: Vec<String>,
}

impl Comparison {
    fn of(recording: &'static str) -> Self {
        let lines = include_str!("recorded_differences.jsonl").lines();
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let listed = lines.filter(|line| line["recording"] == recording);
        let listed = listed.map(|line| (line["label"].as_str().unwrap().to_owned(), line)).collect();
        Self { recording, listed, wrong: Vec::new() }
    }

    fn compare(&mut self, label: &str, recorded: SeenAnswer, seen: SeenAnswer) {
        let recorded = (recorded.0, recorded.1, normalised(recorded.2));
        let seen = (seen.0, seen.1, normalised(seen.2));
        let same = recorded == seen;
        let expected = match self.listed.remove(label) {
            Some(line) if !same => {
                (line["status"].as_u64().unwrap(), line["origin"].clone(), line["answer"].clone())
            }
            Some(_) => return self.wrong.push(format!("{label}: listed as a difference, but equal")),
            None => recorded.clone(),
        };
        if seen != expected {
            let line = json!({
                "recording": self.recording, "label": label, "row": "?",
                "status": seen.0, "origin": seen.1, "answer": seen.2,
            });
            self.wrong.push(format!("recorded {recorded:?}, expected {expected:?}, seen\n{line}"));
        }
    }

    fn finish(self) {
        let unused: Vec<_> = self.listed.keys().collect();
        assert!(self.wrong.is_empty(), "{}:\n{}", self.recording, self.wrong.join("\n"));
        assert!(unused.is_empty(), "listed but not recorded: {unused:?}");
    }
}

/// Sends bytes over a connection of its own, and reads until it ends or is silent.
async fn exchange(server: &RunningServer, bytes: &[u8], ends: bool) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // A body that is too large is refused while it is sent.
    let _ = stream.write_all(bytes).await;
    let mut received = Vec::new();
    let wait = if ends { PATIENCE } else { SILENCE };
    if ends {
        let _ = stream.shutdown().await;
    }
    let _ = tokio::time::timeout(wait, stream.read_to_end(&mut received)).await;
    received
}

/// The responses in these bytes, without those of status 100.
fn responses(bytes: &[u8]) -> Vec<SeenAnswer> {
    let mut rest = std::str::from_utf8(bytes).unwrap();
    let mut found = Vec::new();
    while let Some((head, after)) = rest.split_once("\r\n\r\n") {
        let lines = || head.lines().filter_map(|line| line.split_once(": "));
        let header = |name: &str| {
            lines().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        // The answer to HEAD has no body.
        let (body, next) = after.split_at(usize::min(length, after.len()));
        rest = next;
        if status != 100 {
            found.push((status, json!(header("access-control-allow-origin")), parsed(body)));
        }
    }
    found
}

/// A body as JSON; null if it is empty.
fn parsed(body: &str) -> Value {
    if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() }
}

/// The body of a request, of which some recordings have only the length.
fn body((exchange, members): &RecordingLine) -> Option<Vec<u8>> {
    if let Some(text) = exchange["requestText"].as_str() {
        return Some(text.into());
    }
    let request = &exchange["request"];
    let Some(length) = request.get("bytes").and_then(Value::as_u64) else {
        return Some(members["request"].get().into());
    };
    let utf16 = || CHAIN_ID.encode_utf16().flat_map(u16::to_be_bytes);
    match exchange["label"].as_str()? {
        "BOM" => Some([b"\xef\xbb\xbf", CHAIN_ID.as_bytes()].concat()),
        "invalid utf8" => Some(
            CHAIN_ID
                .replace("eth_", "\u{1}")
                .into_bytes()
                .iter()
                .map(|byte| if *byte == 1 { 0xff } else { *byte })
                .collect(),
        ),
        "utf16" => Some([0xfe, 0xff].into_iter().chain(utf16()).collect()),
        _ if length == 0 => Some(Vec::new()),
        _ => {
            let digits = usize::try_from(length).unwrap().saturating_sub(100) & !1;
            let data = format!("0x{}", "00".repeat(digits / 2));
            Some(
                json!({"jsonrpc": "2.0", "id": 1, "method": "web3_sha3", "params": [data]})
                    .to_string()
                    .into(),
            )
        }
    }
}

/// Repeats an exchange over HTTP; returns what was recorded and what is seen.
async fn repeat(server: &RunningServer, line: &RecordingLine) -> Option<(SeenAnswer, SeenAnswer)> {
    let recorded = &line.0;
    let http = &recorded["http"];
    let method = http["method"].as_str()?;
    let body = body(line)?;
    let mut head = format!("{method} {} HTTP/1.1\r\nConnection: close\r\n", http["path"].as_str()?);
    let headers = http["headers"].as_object()?;
    for (name, value) in headers {
        head += &format!("{name}: {}\r\n", value.as_str()?);
    }
    if !headers.contains_key("Host") {
        head += "Host: localhost\r\n";
    }
    if method == "POST" || !body.is_empty() {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    let bytes = [head.as_bytes(), b"\r\n", &body].concat();
    let seen = responses(&exchange(server, &bytes, true).await);
    let headers = recorded["httpHeaders"].as_array()?;
    let origin = headers.iter().find(|header| header[0] == "access-control-allow-origin");
    let origin = origin.map_or(Value::Null, |header| header[1].clone());
    let answer = recorded.get("response").cloned().unwrap_or(Value::Null);
    let status = match recorded["httpStatus"].as_u64()? {
        // docs/differences.md, "HTTP status of errors".
        400 if answer["error"]["code"] == -32602 => 200,
        status => status,
    };
    Some(((status, origin, answer), seen.into_iter().next()?))
}

async fn http(name: &'static str, origins: Origins) {
    let Some(exchanges) = recording(name) else { return };
    let server = dev(origins).await;
    let mut comparison = Comparison::of(name);
    for line in &exchanges {
        let recorded = &line.0;
        let label = recorded["label"].as_str().unwrap();
        if recorded.get("http").is_some() {
            let (expected, seen) = repeat(&server, line).await.unwrap_or_else(|| panic!("{label}"));
            comparison.compare(label, expected, seen);
        } else if let Some(sent) = recorded["sent"].as_str() {
            let got = recorded["got"].as_str().unwrap();
            let ends = got != "<open>";
            let expected = responses(got.trim_end_matches("<EOF>").as_bytes());
            let seen = responses(&exchange(&server, sent.as_bytes(), ends).await);
            // The reference node closes each connection after its answer; this server may answer what follows.
            let mut seen = seen.into_iter();
            for expected in expected {
                comparison.compare(label, expected, seen.next().unwrap_or_default());
            }
        }
    }
    comparison.finish();
}

#[tokio::test]
async fn recorded_http_exchanges_are_answered_as_by_the_reference_node() {
    http("http_transport.jsonl", Origins::Unnamed).await;
}

#[tokio::test]
async fn recorded_requests_of_pages_are_answered_as_by_the_reference_node() {
    http("http_cors_star.jsonl", Origins::Any).await;
}

/// The message of a recorded WebSocket session.
fn message((session, members): &RecordingLine) -> Message {
    match (&session["sentText"], &session["sentBinary"], &session["sentBytes"]) {
        (Value::String(text), _, _) => Message::text(text.clone()),
        (_, Value::String(hex), _) => Message::binary(alloy_primitives::hex::decode(hex).unwrap()),
        (_, _, Value::Number(length)) => {
            let data = "00".repeat(usize::try_from(length.as_u64().unwrap()).unwrap().saturating_sub(68) / 2);
            let call =
                json!({"jsonrpc": "2.0", "id": 1, "method": "web3_sha3", "params": [format!("0x{data}")]});
            Message::text(call.to_string())
        }
        _ => Message::text(members["sent"].get()),
    }
}

/// The next answer, and the code with which the WebSocket was closed, or 0.
async fn next(
    socket: &mut WebSocketStream<MaybeTlsStream<TcpStream>>,
    wait: Duration,
) -> (Option<Value>, u64) {
    loop {
        match tokio::time::timeout(wait, socket.next()).await {
            Err(_) => return (None, 0),
            Ok(Some(Ok(Message::Text(text)))) => return (Some(serde_json::from_str(&text).unwrap()), 0),
            Ok(Some(Ok(Message::Close(frame)))) => {
                return (None, frame.map_or(1005, |frame| u16::from(frame.code).into()));
            }
            Ok(Some(Ok(_))) => {}
            Ok(None | Some(Err(_))) => return (None, 1006),
        }
    }
}

/// Sends a message and a call after it; returns what was answered before the answer to the call.
async fn run_session(server: &RunningServer, line: &RecordingLine) -> SeenAnswer {
    let session = &line.0;
    let path = match session["path"].as_str().unwrap() {
        "" => "/",
        path => path,
    };
    let mut socket = match connect_async(server.ws(path)).await {
        Ok((socket, _)) => socket,
        Err(Error::Http(response)) => return (response.status().as_u16().into(), Value::Null, json!([])),
        Err(error) => panic!("{error}"),
    };
    let _ = socket.send(message(line)).await;
    let (answer, mut code) = next(&mut socket, SILENCE).await;
    if code == 0 {
        let after = json!({"jsonrpc": "2.0", "id": AFTER, "method": "eth_chainId", "params": []});
        let _ = socket.send(Message::text(after.to_string())).await;
        let (last, closed) = next(&mut socket, PATIENCE).await;
        assert!(closed != 0 || last.is_some_and(|answer| answer["id"] == AFTER), "{session}");
        code = closed;
    }
    let answers: Vec<Value> = answer.into_iter().collect();
    (code, Value::Null, answers.into())
}

#[tokio::test]
async fn recorded_websocket_messages_are_answered_as_by_the_reference_node() {
    let Some(sessions) = recording("ws_probe.jsonl") else { return };
    let server = dev(Origins::Unnamed).await;
    let mut comparison = Comparison::of("ws_probe.jsonl");
    for line in &sessions {
        let session = &line.0;
        let code = session["closed"]["code"].as_u64().unwrap_or(0);
        let recorded = (code, Value::Null, session["got"].clone());
        let seen = run_session(&server, line).await;
        comparison.compare(session["label"].as_str().unwrap(), recorded, seen);
    }
    comparison.finish();
}

#[test]
fn every_listed_difference_has_its_row_in_the_documentation() {
    let rows: BTreeSet<&str> = include_str!("../../../../docs/differences.md")
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| ")?.split_once(" | ")?.0))
        .collect();
    for line in include_str!("recorded_differences.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(rows.contains(line["row"].as_str().unwrap()), "{line}");
    }
}
