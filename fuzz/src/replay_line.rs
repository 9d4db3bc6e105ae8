//! Recordings: lines of any bytes as files that answer questions.

use std::io::Write as _;

use alloy_primitives::{B256, keccak256};
use flate2::{Compression, write::GzEncoder};
use rootlight_upstream::UpstreamResult;
use rootlight_upstream::replay::Replay;
use serde_json::Value;

use crate::limit::with_at_most;

/// What reading compressed lines takes at once, and the index.
const BASE: usize = 4 << 20;
/// Parameters as values, for each byte of a line.
const PER_BYTE: usize = 256;
/// A method and its parameters.
type RecordedCall = (String, Vec<Value>);

/// Most questions asked again.
const QUESTIONS: usize = 8;

/// The lines of a recording.
pub fn check(data: &[u8]) {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(data).expect("memory");
    let packed = gzip.finish().expect("memory");
    let allowed = BASE + data.len() * PER_BYTE;
    let Ok(replay) = with_at_most(allowed, || Replay::from_gzip("fuzz", &packed)) else { return };
    let lines: Vec<Value> =
        data.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let mut recorded = Vec::new();
    for line in &lines {
        collect(line, &mut recorded);
        check_node(&replay, line);
    }
    for (call, _) in recorded.iter().take(QUESTIONS) {
        let answer = with_at_most(allowed, || replay.answer(&call.0, &call.1));
        check_answer(&replay, call, &answer, &recorded);
    }
    let unknown = "eth_unheardOf";
    let answer = replay.answer(unknown, &[Value::from("0x1")]);
    assert!(answer.is_err() || recorded.iter().any(|(call, _)| call.0 == unknown));
}

/// A node is given under its own hash only.
fn check_node(replay: &Replay, line: &Value) {
    let hash: Option<B256> = line["hash"].as_str().and_then(|text| text.parse().ok());
    if let Some(node) = hash.as_ref().and_then(|hash| replay.node(hash)) {
        assert_eq!(Some(keccak256(node)), hash);
    }
}

/// The calls of a line with their results, by a general parser.
fn collect(line: &Value, recorded: &mut Vec<(RecordedCall, Option<Value>)>) {
    let members = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    for request in members(&line["request"]) {
        let Some(method) = request["method"].as_str() else { continue };
        let params = request["params"].as_array().cloned().unwrap_or_default();
        for response in members(&line["response"]) {
            recorded.push(((method.to_owned(), params.clone()), response.get("result").cloned()));
        }
    }
}

/// A call that was recorded under another spelling counts too: hexadecimal letters of both cases, `ext_` for `rsk_`.
fn check_answer(replay: &Replay, call: &RecordedCall, answer: &UpstreamResult, recorded: &[(RecordedCall, Option<Value>)]) {
    let Ok(answer) = answer else { return };
    let answer: Value = serde_json::from_str(answer.get()).expect("JSON");
    if replay.head().is_some() || call.0.starts_with("eth_getProof") {
        // The head and state proofs are put together from several lines.
        return;
    }
    assert!(recorded.iter().any(|(_, result)| result.as_ref() == Some(&answer)), "{call:?}: {answer}");
}
