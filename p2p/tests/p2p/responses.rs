//! Responses that contradict their requests are refused.

use std::collections::BTreeMap;

use alloy_primitives::{B256, U256};
use rootlight::consensus::Network;
use rootlight::types::rlp::RlpReader;
use rootlight::types::{Header, HeaderForm};
use rootlight_p2p::message::{BlockParts, Items, Message, Request, Response, list_payload};

use crate::check::{self, CheckedBlock, PeerHeader};
use crate::gzipped::{bytes, hex_field, lines};

/// The blocks of the recorded chain and its side blocks, by hash, as compressed headers and bytes.
struct CompressedChain {
    network: Network,
    headers: BTreeMap<B256, PeerHeader>,
    blocks: BTreeMap<B256, Vec<u8>>,
    totals: BTreeMap<u64, U256>,
}

impl CompressedChain {
    fn read() -> Option<Self> {
        let network = Network::regtest();
        let (mut headers, mut blocks) = (BTreeMap::new(), BTreeMap::new());
        for file in ["blocks", "side_blocks"] {
            let content = bytes(&format!("chain/{file}.bin.gz"))?;
            let mut reader = RlpReader::new(&content);
            while !reader.is_empty() {
                let block = reader.next_raw("block").unwrap();
                let full = BlockParts::split(block).unwrap().header;
                let header = Header::decode(full, &|number| network.header_shape(number)).unwrap();
                let peer = PeerHeader::decode(&header.encode(HeaderForm::Compressed), &network).unwrap();
                assert_eq!(peer.hash(), header.hash());
                blocks.insert(peer.hash(), block.to_vec());
                headers.insert(peer.hash(), peer);
            }
        }
        let text = String::from_utf8(bytes("chain/roots.txt.gz")?).unwrap();
        let total = |line: &str| {
            let fields: Vec<&str> = line.split(' ').collect();
            (fields[0].parse().unwrap(), fields[3].parse().unwrap())
        };
        let totals = text.lines().map(total).collect();
        Some(Self { network, headers, blocks, totals })
    }

    /// Why the response is refused, if it is.
    fn refusal(&self, request: &[u8], response: &[u8]) -> Option<String> {
        let Message::Request { id, request } = Message::decode(request).unwrap() else { panic!() };
        let response = match Message::decode(response) {
            Ok(Message::Response { id: other, response }) if other == id => response,
            Ok(_) => return Some("another id".to_owned()),
            Err(error) => return Some(error.to_string()),
        };
        if !response.answers(&request) {
            return Some("another type".to_owned());
        }
        self.check(&request, &response).err()
    }

    fn compare_totals(&self, blocks: &[(CheckedBlock, U256)]) {
        for (block, total) in blocks {
            assert_eq!(*total, self.totals[&block.header.header().number]);
        }
    }

    fn check(&self, request: &Request, response: &Response<'_>) -> Result<(), String> {
        let text = |error: check::CheckError| error.to_string();
        match (request, response) {
            (Request::Headers { hash, count }, Response::Headers(list)) => {
                let headers = check::headers(hash, *count, list, &self.network).map_err(text)?;
                for header in headers.iter().filter(|header| header.number() > 0) {
                    header.check_work(&self.network).map_err(|error| error.to_string())?;
                }
            }
            (Request::Block(hash), Response::Block(block)) => {
                check::block(hash, block, &self.network).map_err(text)?;
            }
            (Request::Body(hash), Response::Body(body)) => {
                let checked = check::body(&self.headers[hash], body, &self.network).map_err(text)?;
                let full = BlockParts::split(&self.blocks[hash]).unwrap().header;
                assert_eq!(checked.header.header().encode(HeaderForm::Full), full);
            }
            (Request::Skeleton { start }, Response::Skeleton(blocks)) => {
                check::skeleton(*start, blocks).map_err(text)?;
            }
            (Request::SnapBlocks { before }, Response::SnapBlocks(list)) => {
                let blocks = check::snap_blocks(*before, list, &self.network).map_err(text)?;
                self.compare_totals(&blocks);
            }
            (Request::SnapStatus, Response::SnapStatus(status)) => {
                let blocks = check::snap_status(status, &self.network).map_err(text)?;
                assert_eq!(blocks.len(), 401);
                self.compare_totals(&blocks);
            }
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn hostile_responses_are_refused() {
    let Some(chain) = CompressedChain::read() else { return };
    let (mut accepted, mut refused) = (0, 0);
    for case in lines("hostile/messages.jsonl.gz").unwrap() {
        let refusal = chain.refusal(&hex_field(&case, "request"), &hex_field(&case, "answer"));
        println!("{}: {refusal:?} ({})", case["case"], case["why"]);
        assert_eq!(refusal.is_some(), case["verdict"] == "refuse", "{}: {refusal:?}", case["case"]);
        match refusal {
            Some(_) => refused += 1,
            None => accepted += 1,
        }
    }
    assert_eq!((accepted, refused), (6, 41));
}

#[test]
fn recorded_responses_are_accepted() {
    let Some(chain) = CompressedChain::read() else { return };
    let (mut requests, mut checked) = (BTreeMap::new(), 0);
    for line in lines("sessions/main.jsonl.gz").unwrap().iter().filter(|line| line["code"] == 0x18) {
        let payload = hex_field(line, "payload");
        match Message::decode(&payload).unwrap() {
            Message::Request { id, .. } => drop(requests.insert(id, payload)),
            Message::Response { id, .. } => {
                assert_eq!(chain.refusal(&requests[&id], &payload), None, "{line}");
                checked += 1;
            }
            Message::Push(_) => {}
        }
    }
    assert!(checked > 30, "{checked}");
}

/// Each recorded header is a link of a chain that ends in genesis, with proof of work.
#[test]
fn recorded_headers_have_proof_of_work() {
    let Some(chain) = CompressedChain::read() else { return };
    for header in chain.headers.values().filter(|header| header.number() > 0) {
        header.check_work(&chain.network).unwrap_or_else(|error| panic!("{}: {error}", header.number()));
    }
}

#[test]
fn headers_end_early_only_at_genesis() {
    let Some(chain) = CompressedChain::read() else { return };
    let main = lines("sessions/main.jsonl.gz").unwrap();
    let response = main.iter().find(|line| line["type"] == 10).unwrap();
    let payload = hex_field(response, "payload");
    let Ok(Message::Response { response: Response::Headers(list), .. }) = Message::decode(&payload) else {
        panic!()
    };
    let first = PeerHeader::decode(list.iter().next().unwrap(), &chain.network).unwrap().hash();
    check::headers(&first, 192, &list, &chain.network).unwrap();
    let short = list_payload(list.iter().take(191));
    let short = Items::lists(&short, 192, "headers").unwrap();
    assert!(check::headers(&first, 192, &short, &chain.network).is_err());
    check::headers(&first, 191, &short, &chain.network).unwrap();
}
