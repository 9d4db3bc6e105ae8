//! A peer that answers at its largest, for tests and for the program of abuses.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::{B256, Bytes, U256};
use rootlight::consensus::{Network, root_format};
use rootlight::trie::ordered_root;
use rootlight::types::header::HeaderForm;
use rootlight::types::rlp::list_of;
use rootlight::types::{BlockRef, Header, Transaction};
use rootlight_limits::Limits;
use rootlight_p2p::message::{
    Body, Chunk, Items, Message, Parent, Push, Request, Response, SnapBlocks, Status, list_payload,
    string_payload,
};
use rootlight_p2p::network::PeerNetwork;
use rootlight_p2p::rlpx::{HandshakeSecrets, NodeKey, RANDOM_BYTES};
use rootlight_p2p::session::{Event, Session, SessionConfig};
use rootlight_upstream::p2p::{Identity, PeerAddress, PeerUpstream, StateNodes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Nearly the longest message that a session sends.
pub const LONG: usize = 7_500_000;

/// Nearly the longest run of headers that is read.
pub const LONG_HEADERS: usize = 4_000_000;

pub fn genesis() -> B256 {
    Network::mainnet().genesis_hash
}

pub fn header(number: u64, transactions_root: B256, gas_limit: u64, coinbase_tx: usize) -> Header {
    Header {
        parent_hash: B256::repeat_byte(1),
        coinbase: Some(Default::default()),
        state_root: B256::repeat_byte(2),
        transactions_root,
        receipts_root: B256::repeat_byte(4),
        difficulty: U256::from(7).into(),
        gas_limit: gas_limit.into(),
        timestamp: 1_600_000_000,
        bitcoin_header: Bytes::from(vec![1; 80]),
        coinbase_tx: Bytes::from(vec![7; coinbase_tx]),
        ..Header::empty(Network::mainnet().header_shape(number), number)
    }
}

/// So many transactions with data of this length, in RLP.
pub fn transactions(count: usize, data: usize) -> Vec<Vec<u8>> {
    let of = |number: usize| {
        let mut transaction = Transaction::remasc(number as u64 + 1);
        transaction.data = Bytes::from(vec![1; data]);
        transaction.encode()
    };
    (0..count).map(of).collect()
}

pub fn root(transactions: &[Vec<u8>]) -> B256 {
    ordered_root(transactions, root_format(&Network::mainnet(), 100))
}

/// What the peer gives for blocks: one of the headers, and the body for all of them.
#[derive(Clone)]
pub struct BlockResponses {
    pub headers: Vec<Header>,
    pub body: Vec<Vec<u8>>,
}

/// The payload of a response: blocks with `given` as their contents, everything else at its largest.
pub fn respond(id: u64, request: Request, given: &BlockResponses) -> Option<Vec<u8>> {
    let encode = |response: Response<'_>| Some(Message::Response { id, response }.encode());
    match request {
        Request::BlockHash { .. } => {
            encode(Response::BlockHash(given.headers.first()?.clone().seal().hash()))
        }
        Request::Headers { count: 1, hash } => {
            let asked = given.headers.iter().find(|header| (*header).clone().seal().hash() == hash);
            let payload = asked.or(given.headers.first())?.encode(HeaderForm::Full);
            encode(Response::Headers(Items::lists(&payload, 1, "headers").ok()?))
        }
        Request::Headers { count, .. } => {
            let count = usize::try_from(count).ok()?;
            let one = header(100, B256::ZERO, 1, LONG_HEADERS / count).encode(HeaderForm::Full);
            let payload = list_payload(vec![one; count]);
            encode(Response::Headers(Items::lists(&payload, count, "headers").ok()?))
        }
        Request::Body(_) => {
            let payload = list_payload(&given.body);
            let transactions = Items::lists(&payload, usize::MAX, "transactions").ok()?;
            encode(Response::Body(Body { transactions, uncles: Items::default(), extension: None }))
        }
        Request::Skeleton { start } => {
            let all = (0..21).map(|step| BlockRef { number: start + 192 * step, hash: B256::repeat_byte(9) });
            encode(Response::Skeleton(all.collect()))
        }
        Request::Chunk(asked) => {
            let bytes = vec![7u8; 2 << 20];
            let (block, from, to) = (asked.block, asked.from, asked.from + 51_200);
            encode(Response::Chunk(Chunk { bytes: &bytes, block, from, to, complete: false }))
        }
        Request::SnapBlocks { .. } => {
            let one = header(100, B256::ZERO, 1, LONG / 400).encode(HeaderForm::Full);
            let blocks = string_payload(vec![list_of([one.as_slice(), &[0xc0_u8][..], &[0xc0_u8][..]]); 400]);
            let difficulties = string_payload(vec![[1_u8]; 400]);
            let blocks = Items::strings(&blocks, 401, "blocks").ok()?;
            let difficulties = Items::strings(&difficulties, 401, "difficulties").ok()?;
            encode(Response::SnapBlocks(SnapBlocks { blocks, difficulties }))
        }
        _ => None,
    }
}

/// A peer that serves one connection.
pub struct FakePeer {
    pub address: PeerAddress,
    pub answered: Arc<AtomicUsize>,
}

impl FakePeer {
    pub fn start(best: u64, given: BlockResponses) -> Self {
        Self::start_with(best, given, false)
    }

    /// A peer that sends no message of more than a megabyte to its end.
    pub fn start_unfinished(best: u64, given: BlockResponses) -> Self {
        Self::start_with(best, given, true)
    }

    fn start_with(best: u64, given: BlockResponses, unfinished: bool) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let key = NodeKey::from_bytes(&[3; 32]).unwrap();
        let address = PeerAddress { id: *key.id(), host: "127.0.0.1".into(), port };
        let answered = Arc::<AtomicUsize>::default();
        let count = answered.clone();
        let serve = async move {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(speak(stream, key.clone(), best, given.clone(), unfinished, count.clone()));
            }
        };
        // The peer's work is none of the runtime that is watched.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        std::thread::spawn(move || runtime.block_on(serve));
        Self { address, answered }
    }

    pub fn upstream(&self, limits: &Arc<Limits>) -> PeerUpstream {
        let network = Arc::new(Network::mainnet());
        let identity = Arc::new(Identity::open(&network, genesis(), None).unwrap().within(limits.clone()));
        PeerUpstream::new(identity, self.address.clone(), network, Arc::new(StateNodes::default()))
    }
}

async fn speak(
    mut stream: TcpStream,
    key: NodeKey,
    best: u64,
    given: BlockResponses,
    unfinished: bool,
    answered: Arc<AtomicUsize>,
) -> Option<()> {
    let network = PeerNetwork::of(&Network::mainnet()).unwrap();
    let config = SessionConfig::new("peer", network.id, genesis(), network.genesis_difficulty());
    let config = SessionConfig { serves_snap: true, ..config };
    let secrets = HandshakeSecrets::from_random(&[9; RANDOM_BYTES]);
    let mut session = Session::accept(&key, secrets, config, 0).unwrap();
    let mut buffer = vec![0; 1 << 16];
    loop {
        while let Some(event) = session.next_event(0) {
            let payload = match event {
                Event::Closed(_) => return None,
                Event::Ready(_) => {
                    let best = BlockRef { number: best, hash: B256::repeat_byte(5) };
                    let parent = Some(Parent { hash: B256::ZERO, total_difficulty: U256::from(1) });
                    Some(Message::Push(Push::Status(Status { best, parent })).encode())
                }
                Event::Message(payload) => match Message::decode(&payload) {
                    Ok(Message::Request { id, request }) => {
                        answered.fetch_add(1, Ordering::SeqCst);
                        respond(id, request, &given)
                    }
                    _ => None,
                },
            };
            if let Some(payload) = payload {
                session.send_message(&payload, 0).ok()?;
                let mut output = session.take_output();
                if unfinished && output.len() > 1 << 20 {
                    output.truncate(output.len() - 16);
                    stream.write_all(&output).await.ok()?;
                    // Until the other side has had enough.
                    while stream.read(&mut buffer).await.ok()? > 0 {}
                    return None;
                }
                stream.write_all(&output).await.ok()?;
            }
        }
        let output = session.take_output();
        stream.write_all(&output).await.ok()?;
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        session.receive(&buffer[..count], 0);
    }
}
