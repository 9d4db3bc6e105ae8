//! Recorded messages decode, and encode to the same bytes.

use rootlight_p2p::message::{BlockParts, Message, Push, Request, Response};
use serde_json::Value;

use crate::gzipped::{hex_field, lines};

const SESSIONS: [&str; 7] =
    ["answer", "chunks", "main", "push", "push_hello_only", "relay_announced", "relay_hello_only"];

/// All payloads of code 0x18 with their lines.
fn payloads() -> Vec<(Value, Vec<u8>)> {
    let files = SESSIONS.iter().filter_map(|name| lines(&format!("sessions/{name}.jsonl.gz")));
    let lines = files.flatten().filter(|line| line["code"] == 0x18 && line["payload"].is_string());
    lines.map(|line| (line.clone(), hex_field(&line, "payload"))).collect()
}

#[test]
fn every_recorded_message_encodes_to_its_own_bytes() {
    let mut kinds = std::collections::BTreeMap::new();
    for (line, payload) in payloads() {
        let message = Message::decode(&payload).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(u64::from(message.kind()), line["type"].as_u64().unwrap(), "{line}");
        assert_eq!(message.encode(), payload, "{line}");
        *kinds.entry(message.kind()).or_insert(0usize) += 1;
    }
    if crate::vectors::folder().is_some() {
        // All but type 17, which no recorded node sends.
        let all: Vec<u8> = (1..=3).chain(6..=16).chain([18]).chain(20..=25).collect();
        assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), all);
        assert!(kinds.values().sum::<usize>() > 200, "{kinds:?}");
    }
}

/// Fields as the recording's own decoder read them.
#[test]
fn recorded_fields_are_read() {
    for (line, payload) in payloads() {
        let fields = &line["fields"];
        let number = |name: &str| fields[name].as_u64().unwrap_or_else(|| panic!("{name}: {line}"));
        let text = |name: &str| fields[name].as_str().unwrap_or_else(|| panic!("{name}: {line}")).to_owned();
        let length = |name: &str| match &fields[name] {
            Value::Array(items) => items.len(),
            _ => number(name) as usize,
        };
        let message = Message::decode(&payload).unwrap();
        if let Message::Request { id, .. } | Message::Response { id, .. } = &message {
            assert_eq!(*id, number("id"));
        }
        match message {
            Message::Push(Push::Status(status)) => {
                assert_eq!(status.best.number, number("number"));
                assert_eq!(hex::encode(status.best.hash), text("hash"));
                let parent = status.parent.unwrap();
                assert_eq!(hex::encode(parent.hash), text("parent"));
                assert_eq!(parent.total_difficulty.to_string(), number("td").to_string());
            }
            Message::Request { request: Request::Headers { hash, count }, .. } => {
                assert_eq!((hex::encode(hash), count), (text("hash"), number("count")));
            }
            Message::Request { request: Request::Chunk(asked), .. } => {
                assert_eq!((asked.block, asked.from), (number("block"), number("from")));
            }
            Message::Response { response: Response::Headers(headers), .. } => {
                assert_eq!(headers.iter().count(), length("headers"));
            }
            Message::Response { response: Response::Body(body), .. } => {
                assert_eq!(body.transactions.iter().count(), length("txs"));
                assert_eq!(body.uncles.iter().count(), length("uncles"));
                assert_eq!(body.extension.is_some(), length("ext") == 1);
                if let Some(extension) = body.extension {
                    let fields = extension.read_fields().unwrap();
                    assert!(fields.base_event.is_some() && fields.edges.is_some());
                }
            }
            Message::Response { response: Response::Chunk(chunk), .. } => {
                assert_eq!(chunk.bytes.len() as u64, number("chunkBytes"));
                assert_eq!((chunk.from, chunk.to), (number("from"), number("to")));
                assert_eq!(u64::from(chunk.complete), number("complete"));
            }
            Message::Response { response: Response::SnapStatus(status), .. } => {
                assert_eq!(status.trie_size, number("trieSize"));
                let totals: Vec<_> = status.blocks.iter().map(|(_, total)| total.to_string()).collect();
                let ends = [&totals[0], &totals[totals.len() - 1]].map(|total| total.parse::<u64>().unwrap());
                assert_eq!(serde_json::json!(ends), fields["tds"]);
            }
            Message::Response { response: Response::Block(block), .. } => {
                assert_eq!(block.len() as u64, number("bytes"));
                assert!(!BlockParts::split(block).unwrap().header.is_empty());
            }
            _ => {}
        }
    }
}

/// Whatever decodes after one byte was changed, cut or added encodes to those bytes.
#[test]
fn changed_messages_are_refused_or_encode_to_their_own_bytes() {
    let mut refused = 0usize;
    let mut all = payloads();
    all.retain(|(_, payload)| payload.len() < 2000);
    for (_, payload) in &all {
        for at in 0..payload.len().min(80) {
            for change in [1u8, 0x40, 0x80, 0xff] {
                let mut changed = payload.clone();
                changed[at] ^= change;
                match Message::decode(&changed) {
                    Ok(message) => assert_eq!(message.encode(), changed),
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(Message::decode(&payload[..payload.len() - 1]).is_err());
        assert!(Message::decode(&[&payload[..], &[0x80]].concat()).is_err());
    }
    assert!(all.is_empty() || refused > 1000, "{refused}");
}
