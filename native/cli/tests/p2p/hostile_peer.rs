//! Peers that are honest, and peers that are not: a server over the recorded chain, and how it departs from it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::{B256, Bytes, U256};
use fastrand::Rng;
use rootlight::trie::NodeSource;
use rootlight::types::rlp::{put_list, put_str};
use rootlight::types::{BlockRef, SealedHeader, SignedUint};
use rootlight_node::peer_server::{PeerChain, PeerHead, ServedBlock, respond};
use rootlight_p2p::message::{Chunk, Items, Message, Parent, Push, Response, Status};
use rootlight_p2p::network::PeerNetwork;
use rootlight_p2p::rlpx::{HandshakeSecrets, NodeKey, RANDOM_BYTES};
use rootlight_p2p::session::{Event, Session, SessionConfig};
use rootlight_upstream::p2p::PeerAddress;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::chain::RecordedChain;

/// How a peer departs from honesty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerTrick {
    Honest,
    /// Accepts connections and says nothing.
    Deaf,
    /// Says that it is in another network.
    OtherNetwork,
    /// Says that it has another block 0.
    OtherGenesis,
    /// Proves another key than the address names.
    OtherKey,
    /// Sends bytes that are no frames once it is connected.
    Garbage,
    /// Ends the connection after some responses.
    Leaves(u64),
    /// Responds to nothing.
    Silent,
    /// Responds to some requests, in percent.
    Lossy(u64),
    NoChunks,
    /// As [`Self::NoChunks`], and sends long messages unasked, each in two parts.
    HalvedPushes,
    /// Gives no runs of whole blocks.
    NoRuns,
    /// Changes one byte of some responses, in percent.
    Flips(u64),
    /// Cuts responses off.
    Cuts,
    /// Gives the responses of other requests.
    Stale,
    /// Sends blocks and announcements unasked with each response.
    Pushes,
    /// Announces a head that does not exist.
    Boastful,
    /// Has nothing newer than this block.
    Behind(u64),
    /// Gives the block before the one that is asked for.
    OtherBlock,
    /// Leaves out the last transaction of blocks.
    FewerTransactions,
    /// Leaves out uncles.
    NoUncles,
    /// Says that each block is harder than it is.
    Harder,
    /// Shows the Bitcoin fields of the block before.
    CopiedWork,
    OlderState,
    /// Gives chunks without any node.
    EmptyChunks,
    /// Changes one byte of some nodes of the state, in percent.
    FlipsNodes(u64),
    /// Gives some nodes' values to others, in percent.
    MixesNodes(u64),
}

/// Tricks other than honesty.
pub(crate) fn trick(random: &mut Rng) -> PeerTrick {
    match random.u64(..25) {
        0 => PeerTrick::Deaf,
        1 => PeerTrick::OtherNetwork,
        2 => PeerTrick::OtherGenesis,
        3 => PeerTrick::OtherKey,
        4 => PeerTrick::Garbage,
        5 => PeerTrick::Leaves(random.u64(..12)),
        6 => PeerTrick::Silent,
        7 => PeerTrick::Lossy(random.u64(..100)),
        8 => PeerTrick::NoChunks,
        9 => PeerTrick::NoRuns,
        10 | 11 => PeerTrick::Flips(1 + random.u64(..100)),
        12 => PeerTrick::Cuts,
        13 => PeerTrick::Stale,
        14 => PeerTrick::Pushes,
        15 => PeerTrick::Boastful,
        16 => PeerTrick::Behind(random.u64(..400)),
        17 => PeerTrick::OtherBlock,
        18 => PeerTrick::FewerTransactions,
        19 => PeerTrick::NoUncles,
        20 => PeerTrick::Harder,
        21 => PeerTrick::CopiedWork,
        22 => PeerTrick::OlderState,
        23 => PeerTrick::EmptyChunks,
        _ if random.u64(..100) < 50 => PeerTrick::FlipsNodes(1 + random.u64(..100)),
        _ => PeerTrick::MixesNodes(1 + random.u64(..100)),
    }
}

/// The recorded chain as a peer shows it.
struct Bent {
    inner: Arc<RecordedChain>,
    trick: PeerTrick,
    random: Mutex<Rng>,
}

/// Nodes of a state, some of them changed.
struct BentNodes<'a> {
    nodes: &'a dyn NodeSource,
    root: B256,
    bent: &'a Bent,
}

impl NodeSource for BentNodes<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        let node = self.nodes.node(hash)?;
        let mut random = self.bent.random.lock().unwrap();
        match self.bent.trick {
            PeerTrick::FlipsNodes(percent) if random.u64(..100) < percent => {
                let mut bytes = node.to_vec();
                flip(&mut bytes, 0, &mut random);
                Some(bytes.into())
            }
            PeerTrick::MixesNodes(percent) if random.u64(..100) < percent => self.nodes.node(&self.root),
            _ => Some(node),
        }
    }
}

fn flip(bytes: &mut [u8], from: usize, random: &mut Rng) {
    let place = random.usize(from..=bytes.len().max(from));
    if let Some(byte) = bytes.get_mut(place) {
        *byte ^= 1 << random.u64(..8);
    }
}

impl Bent {
    fn bend(&self, header: SealedHeader) -> SealedHeader {
        let mut inner = header.header().clone();
        match self.trick {
            PeerTrick::Harder => inner.difficulty = SignedUint::new(inner.difficulty.value() + U256::from(1)),
            PeerTrick::CopiedWork => {
                let Some(parent) = self.inner.header(inner.parent_hash) else { return header };
                inner.bitcoin_header = parent.bitcoin_header.clone();
                inner.merkle_proof = parent.merkle_proof.clone();
                inner.coinbase_tx = parent.coinbase_tx.clone();
            }
            _ => return header,
        }
        inner.seal()
    }

    fn other(&self, hash: B256) -> B256 {
        let parent = || self.inner.header(hash).map(|header| header.parent_hash);
        match self.trick {
            PeerTrick::OtherBlock => parent().filter(|parent| !parent.is_zero()).unwrap_or(hash),
            _ => hash,
        }
    }
}

impl PeerChain for Bent {
    fn head(&self) -> Option<PeerHead> {
        let mut head = self.inner.head()?;
        match self.trick {
            PeerTrick::Boastful => {
                head.block = BlockRef { number: head.block.number + 1_000, hash: B256::repeat_byte(7) };
                head.total_difficulty += U256::from(u64::MAX);
            }
            PeerTrick::Behind(number) => {
                let hash = self.inner.hash_at(number)?;
                head.block = BlockRef { number, hash };
                head.parent = self.inner.header(hash)?.parent_hash;
                head.total_difficulty = self.inner.total_difficulty(hash)?;
            }
            _ => {}
        }
        Some(head)
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        match self.trick {
            PeerTrick::Behind(last) if number > last => None,
            _ => self.inner.hash_at(number),
        }
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        self.inner.header(self.other(hash)).map(|header| self.bend(header))
    }

    fn block(&self, hash: B256) -> Option<ServedBlock> {
        let mut block = self.inner.block(self.other(hash))?;
        match self.trick {
            PeerTrick::FewerTransactions => drop(block.transactions.pop()),
            PeerTrick::NoUncles => block.uncles.clear(),
            _ => block.header = self.bend(block.header),
        }
        Some(block)
    }

    fn total_difficulty(&self, hash: B256) -> Option<U256> {
        self.inner.total_difficulty(hash)
    }

    fn with_state(&self, number: u64, read: &mut dyn FnMut(B256, &dyn NodeSource)) {
        let number = if self.trick == PeerTrick::OlderState { 60 } else { number };
        self.inner.with_state(number, &mut |root, nodes| read(root, &BentNodes { nodes, root, bent: self }));
    }

    fn submit(&self, _: rootlight_limits::caller_id::CallerId, _: Vec<Vec<u8>>) {}

    fn pending(&self, _: &mut u64) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}

/// A peer at a port of this machine; it ends when the value is dropped.
pub(crate) struct HostilePeer {
    pub(crate) address: PeerAddress,
    pub(crate) trick: PeerTrick,
    serving: JoinHandle<()>,
}

impl Drop for HostilePeer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl HostilePeer {
    pub(crate) async fn start(chain: Arc<RecordedChain>, trick: PeerTrick, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut random = Rng::with_seed(seed);
        let key = key(&mut random);
        let named = if trick == PeerTrick::OtherKey { *self::key(&mut random).id() } else { *key.id() };
        let address = PeerAddress { id: named, host: "127.0.0.1".into(), port };
        let serving = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let seed = random.u64(..);
                let bent = Bent { inner: chain.clone(), trick, random: Mutex::new(Rng::with_seed(seed)) };
                let speaker = Speaker { bent, random: Rng::with_seed(seed ^ 1), last: None, responses: 0 };
                connections.spawn(speaker.run(stream, key.clone()));
            }
        });
        Self { address, trick, serving }
    }
}

/// A message with transactions of so many bytes.
pub(crate) fn transactions(bytes: usize) -> Vec<u8> {
    let mut one = Vec::new();
    put_list(&mut one, &vec![7; bytes]);
    Message::Push(Push::Transactions(Items::lists(&one, 1, "transactions").unwrap())).encode()
}

fn key(random: &mut Rng) -> NodeKey {
    NodeKey::from_bytes(&std::array::from_fn(|_| 1 + random.u8(..200))).unwrap()
}

struct Speaker {
    bent: Bent,
    random: Rng,
    /// The payload of the response before.
    last: Option<Vec<u8>>,
    responses: u64,
}

impl Speaker {
    fn config(&self) -> SessionConfig {
        let network = PeerNetwork::of(&rootlight::consensus::Network::regtest()).unwrap();
        let (id, genesis) = match self.bent.trick {
            PeerTrick::OtherNetwork => (network.id + 1, self.bent.hash_at(0).unwrap()),
            PeerTrick::OtherGenesis => (network.id, B256::repeat_byte(3)),
            _ => (network.id, self.bent.hash_at(0).unwrap()),
        };
        let config = SessionConfig::new("peer", id, genesis, network.genesis_difficulty());
        SessionConfig { serves_snap: true, ..config }
    }

    async fn run(mut self, mut stream: TcpStream, key: NodeKey) {
        if self.bent.trick == PeerTrick::Deaf {
            return std::future::pending().await;
        }
        let secrets =
            HandshakeSecrets::from_random(&std::array::from_fn::<_, RANDOM_BYTES, _>(|_| self.random.u8(..)));
        let mut session = Session::accept(&key, secrets, self.config(), 0).unwrap();
        let (mut buffer, began) = (vec![0; 1 << 16], tokio::time::Instant::now());
        loop {
            let now = u64::try_from(began.elapsed().as_millis()).unwrap();
            while let Some(event) = session.next_event(now) {
                let output = match event {
                    Event::Closed(_) => return drop(stream.write_all(&session.take_output()).await),
                    Event::Ready(_) => self.greet(),
                    Event::Message(payload) => match self.said(&payload) {
                        Some(said) => said,
                        None => return,
                    },
                };
                for payload in output {
                    let _ = session.send_message(&payload, now);
                }
            }
            let mut output = session.take_output();
            if self.bent.trick == PeerTrick::Garbage && session.is_ready() {
                output.extend((0..100).map(|_| self.random.u8(..)));
            }
            if !output.is_empty() && stream.write_all(&output).await.is_err() {
                return;
            }
            if self.bent.trick == PeerTrick::HalvedPushes && session.is_ready() {
                let _ = session.send_message(&transactions(100_000), now);
                for half in session.take_output().chunks(50_000) {
                    let _ = stream.write_all(half).await;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            match tokio::time::timeout(Duration::from_secs(1), stream.read(&mut buffer)).await {
                Ok(Ok(count)) if count > 0 => session.receive(&buffer[..count], now),
                Ok(_) => return,
                Err(_) => session.tick(now),
            }
        }
    }

    fn greet(&self) -> Vec<Vec<u8>> {
        let Some(head) = self.bent.head() else { return Vec::new() };
        let parent = Some(Parent { hash: head.parent, total_difficulty: head.total_difficulty });
        vec![Message::Push(Push::Status(Status { best: head.block, parent })).encode()]
    }

    /// The messages that the peer sends in answer to a message; `None` if it ends the connection.
    fn said(&mut self, payload: &[u8]) -> Option<Vec<Vec<u8>>> {
        let Ok(Message::Request { id, request }) = Message::decode(payload) else { return Some(Vec::new()) };
        let kind = request.kind();
        let silent = match self.bent.trick {
            PeerTrick::Silent => true,
            PeerTrick::Lossy(percent) => self.random.u64(..100) < percent,
            PeerTrick::NoChunks | PeerTrick::HalvedPushes => kind == 20,
            PeerTrick::NoRuns => kind == 22 || kind == 24,
            _ => false,
        };
        let response = respond(&self.bent, id, request).filter(|_| !silent);
        let Some(response) = response else { return Some(Vec::new()) };
        self.responses += 1;
        if matches!(self.bent.trick, PeerTrick::Leaves(after) if self.responses > after) {
            return None;
        }
        let mut said = self.pushes();
        said.push(self.spoil(id, response));
        Some(said)
    }

    /// Messages that a peer sends unasked: the newest block, with a number that it does not have, and hashes of no block.
    fn pushes(&mut self) -> Vec<Vec<u8>> {
        if self.bent.trick != PeerTrick::Pushes {
            return Vec::new();
        }
        let hash = B256::repeat_byte(self.random.u8(..));
        let head = self.bent.head().unwrap();
        let status = Status {
            best: BlockRef { number: self.random.u64(..1 << 40), hash },
            parent: Some(Parent { hash, total_difficulty: U256::from(self.random.u64(..)) }),
        };
        let mut block = Vec::new();
        put_str(&mut block, &[7; 300]);
        let hashes = vec![BlockRef { number: head.block.number + self.random.u64(..9), hash }];
        let mut pushes =
            [Push::Status(status), Push::Block(&block)].map(|push| Message::Push(push).encode()).to_vec();
        pushes.push(Message::Push(Push::NewBlockHashes(hashes)).encode());
        pushes
    }

    fn spoil(&mut self, id: u64, response: Vec<u8>) -> Vec<u8> {
        let mut said = response.clone();
        match self.bent.trick {
            PeerTrick::Flips(percent) if self.random.u64(..100) < percent => {
                flip(&mut said, 8, &mut self.random)
            }
            PeerTrick::Cuts => said.truncate(self.random.usize(..said.len())),
            PeerTrick::Stale => {
                if let Some(Ok(Message::Response { response, .. })) =
                    self.last.as_deref().map(Message::decode)
                {
                    said = Message::Response { id, response }.encode();
                }
            }
            PeerTrick::EmptyChunks => {
                if let Ok(Message::Response { response: Response::Chunk(chunk), .. }) =
                    Message::decode(&response)
                {
                    let bytes = &[0xc5, 0xc0, 0xc0, 0x80, 0xc0, 0xc0];
                    said = Message::Response { id, response: Response::Chunk(Chunk { bytes, ..chunk }) }
                        .encode();
                }
            }
            _ => {}
        }
        self.last = Some(response);
        said
    }
}
