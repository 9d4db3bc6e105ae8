//! A light client that fetches consecutive main network headers from an upstream in the same thread, from the
//! checkpoint to a proven head.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use rootlight::consensus::{Checkpoint, Network};
use rootlight::light::{
    ClientConfig, Now, RequestFailure, SyncOptions, SyncStep, UpstreamRequest, UpstreamResponse,
    encode_headers,
};
use rootlight::rpc::Client;
use rootlight::types::Header;
use serde_json::value::RawValue;

/// Largest allowed time of synchronization, as a multiple of the time to verify the same headers.
pub const LIMIT: f64 = 1.5;

/// Simulated duration of a request, in milliseconds.
const LATENCY: u64 = 30;

/// Headers, and the responses that were built from them.
pub struct HeaderReplay {
    network: Arc<Network>,
    headers: Vec<Header>,
    responses: RefCell<BTreeMap<String, Box<RawValue>>>,
}

impl HeaderReplay {
    /// Reads headers in ascending order; the first is the checkpoint.
    #[must_use]
    pub fn new(rlps: &[Vec<u8>]) -> Self {
        let network = Network::mainnet();
        let shape = |number| network.header_shape(number);
        let decode = |rlp: &Vec<u8>| Header::decode(rlp, &shape).expect("a recorded header");
        let headers = rlps.iter().map(decode).collect();
        Self { headers, network: Arc::new(network), responses: RefCell::default() }
    }

    /// Synchronizes. Headers below the checkpoint are not requested, because the recording has none.
    pub fn sync(&self) -> Client {
        let (first, last) = (&self.headers[0], &self.headers[self.headers.len() - 1]);
        let checkpoint = Checkpoint { number: first.number, hash: first.hash(), total_difficulty: None };
        let config = ClientConfig { upstreams: vec!["replay".into()], ..ClientConfig::default() };
        let options = SyncOptions { backfill: 0, ..SyncOptions::default() };
        let client = Client::with_upstreams(self.network.clone(), checkpoint, config, options);
        let mut millis = 0;
        while !client.sync().is_synced() {
            let now = Now { unix: last.timestamp, millis };
            match client.sync_next(0, now) {
                SyncStep::Wait(pause) => millis += pause.max(1),
                SyncStep::Fetch(requests) => {
                    millis += LATENCY;
                    let responses = requests.iter().map(|request| self.respond(request)).collect();
                    client.sync_feed(0, responses, Now { unix: last.timestamp, millis });
                }
            }
            assert!(millis < 600_000, "{:?}", client.sync().fault());
        }
        assert_eq!(client.sync().chain().expect("a chain").head().number, last.number);
        client
    }

    /// Responses are built once, so only the first round spends time on them.
    fn respond(&self, request: &UpstreamRequest) -> UpstreamResponse {
        let key = format!("{} {}", request.method, request.params);
        if let Some(response) = self.responses.borrow().get(&key) {
            return Ok(response.clone());
        }
        let text = match request.method {
            "eth_blockNumber" => format!("\"{:#x}\"", self.headers[self.headers.len() - 1].number),
            "rootlight_getHeaders" => self.headers_in(&request.params),
            _ => return Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() }),
        };
        let response = RawValue::from_string(text).expect("JSON");
        self.responses.borrow_mut().insert(key, response.clone());
        Ok(response)
    }

    fn headers_in(&self, params: &str) -> String {
        let params: [String; 2] = serde_json::from_str(params).expect("two quantities");
        let [from, count] = params.map(|text| u64::from_str_radix(&text[2..], 16).expect("a quantity"));
        let wanted = self.headers.iter().filter(|header| (from..from + count).contains(&header.number));
        let no_uncles: &[rootlight::types::SealedHeader] = &[];
        format!("\"{}\"", encode_headers(wanted.map(|header| (header, Some(no_uncles)))))
    }
}
