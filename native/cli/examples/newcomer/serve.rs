//! Servers of the chain: JSON-RPC nodes and peers.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::{Address, B256, U256};
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use flate2::Compression;
use flate2::write::GzEncoder;
use rootlight::light::encode_headers;
use rootlight::trie::NodeSource;
use rootlight::types::json::{BlockParts, RpcBlock, RpcTransactions};
use rootlight::types::{BlockRef, SealedHeader};
use rootlight_limits::caller_id::CallerId;
use rootlight_node::peer_server::{PeerChain, PeerHead, PeerServer, ServedBlock};
use rootlight_upstream::p2p::Identity;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::chain::{HOUR, NewcomerChain, network};

/// The kinds of JSON-RPC nodes, by the methods that they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// Headers in binary form, and proofs.
    Rootlight,
    /// Headers as JSON.
    Stock,
    /// Proofs alone.
    Proofs,
}

/// The chain as servers show it: its head moves.
pub(crate) struct ServedChain {
    pub(crate) chain: NewcomerChain,
    head: AtomicU64,
}

impl ServedChain {
    /// Shows the chain up to now.
    pub(crate) fn new(chain: NewcomerChain) -> Arc<Self> {
        let head = AtomicU64::new(chain.newest() - HOUR);
        Arc::new(Self { chain, head })
    }

    /// Shows an hour more.
    pub(crate) fn advance(&self) {
        self.head.store(self.chain.newest(), Ordering::SeqCst);
    }

    pub(crate) fn newest(&self) -> u64 {
        self.head.load(Ordering::SeqCst)
    }

    fn header_at(&self, number: u64) -> Option<&SealedHeader> {
        self.chain.at(number).filter(|header| header.number <= self.newest())
    }

    /// The block of a parameter: a number, or the newest one.
    fn named(&self, block: &Value) -> Option<&SealedHeader> {
        let text = block.as_str().or_else(|| block["blockNumber"].as_str());
        if let Some(hash) = block["blockHash"].as_str().or(text).and_then(|text| text.parse::<B256>().ok()) {
            return self.chain.by_hash(&hash).filter(|header| header.number <= self.newest());
        }
        let number = text.and_then(|text| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok());
        self.header_at(number.unwrap_or_else(|| self.newest()))
    }

    fn answer(&self, kind: NodeKind, call: &Value) -> Value {
        let params = &call["params"];
        let result = match (call["method"].as_str().unwrap_or_default(), kind) {
            ("eth_blockNumber", _) => Some(json!(format!("{:#x}", self.newest()))),
            ("eth_chainId", _) => Some(json!("0x21")),
            ("net_version", _) => Some(json!("33")),
            ("rootlight_getHeaders", NodeKind::Rootlight) => Some(self.binary(params)),
            ("eth_getBlockByNumber" | "eth_getBlockByHash", NodeKind::Stock) => {
                Some(self.named(&params[0]).map_or(Value::Null, block_json))
            }
            ("eth_getProof", NodeKind::Rootlight | NodeKind::Proofs) => {
                self.named(&params[2]).and_then(|_| {
                    let address: Address = params[0].as_str()?.parse().ok()?;
                    Some(json!({ "accountProof": self.chain.proof(&address), "storageProof": [] }))
                })
            }
            _ => None,
        };
        match result {
            Some(result) => json!({ "jsonrpc": "2.0", "id": call["id"], "result": result }),
            None => {
                let error = json!({ "code": -32601, "message": "method not found" });
                json!({ "jsonrpc": "2.0", "id": call["id"], "error": error })
            }
        }
    }

    fn binary(&self, params: &Value) -> Value {
        let number = |index: usize| {
            let text = params[index].as_str().unwrap_or_default();
            u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0)
        };
        let found: Vec<_> =
            (number(0)..number(0) + number(1)).map_while(|number| self.header_at(number)).collect();
        json!(encode_headers(found.iter().map(|header| (header.header(), Some(&[][..])))))
    }
}

fn block_json(header: &SealedHeader) -> Value {
    let transactions = RpcTransactions::Hashes(Vec::new());
    json!(RpcBlock::new(
        header,
        BlockParts { transactions, uncles: Some(&[]), total_difficulty: None, size: None }
    ))
}

/// Answers a message. As the reference node does, it compresses an answer of any length.
async fn respond(
    State((chain, kind)): State<(Arc<ServedChain>, NodeKind)>,
    headers: HeaderMap,
    message: String,
) -> Response {
    let message: Value = serde_json::from_str(&message).unwrap_or_default();
    let answer = match message.as_array() {
        Some(calls) => calls.iter().map(|call| chain.answer(kind, call)).collect(),
        None => chain.answer(kind, &message),
    };
    let answer = answer.to_string();
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepted.contains("gzip") {
        return answer.into_response();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(answer.as_bytes()).expect("memory");
    ([(CONTENT_ENCODING, "gzip")], encoder.finish().expect("memory")).into_response()
}

/// Starts a JSON-RPC node.
pub(crate) async fn serve_json(chain: Arc<ServedChain>, kind: NodeKind) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    let router = Router::new().route("/", post(respond)).with_state((chain, kind));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Starts a peer; returns the peer's identity and address.
pub(crate) async fn serve_peer(chain: Arc<ServedChain>) -> (PeerServer, String, SocketAddr) {
    let network = network();
    let identity = Arc::new(Identity::open(&network, network.genesis_hash, None).expect("a key"));
    let id = identity.id().to_string();
    let server =
        PeerServer::bind(identity, chain, "127.0.0.1:0".parse().expect("an address")).await.expect("a port");
    let address = server.address();
    (server, id, address)
}

impl PeerChain for ServedChain {
    fn head(&self) -> Option<PeerHead> {
        let head = self.header_at(self.newest())?;
        let block = BlockRef { number: head.number, hash: head.hash() };
        Some(PeerHead { block, parent: head.parent_hash, total_difficulty: U256::from(1) })
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        self.header_at(number).map(SealedHeader::hash)
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        self.chain.by_hash(&hash).cloned()
    }

    fn block(&self, hash: B256) -> Option<ServedBlock> {
        let header = self.chain.by_hash(&hash)?.clone();
        Some(ServedBlock { header, transactions: Vec::new(), uncles: Vec::new() })
    }

    /// Without it, peers get no runs of blocks.
    fn total_difficulty(&self, hash: B256) -> Option<U256> {
        self.chain.by_hash(&hash).map(|header| U256::from(header.number))
    }

    fn with_state(&self, number: u64, read: &mut dyn FnMut(B256, &dyn NodeSource)) {
        let root = self.chain.state.root();
        if self.header_at(number).is_some_and(|header| header.state_root == root) {
            read(root, &self.chain.state.nodes());
        }
    }

    fn submit(&self, _: CallerId, _: Vec<Vec<u8>>) {}

    fn pending(&self, _: &mut u64) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}
