//! Abuses of a server for peers by peers, and of a light client that lives on one peer by its callers.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rootlight::consensus::Network;
use rootlight::dev::{DevAccounts, DevOptions, Mining};
use rootlight::engine::DevNode;
use rootlight::trie::NodeSource;
use rootlight::types::{B256, SealedHeader, U256};
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_node::peer_server::{LocalChain, PeerChain, PeerHead, PeerServer, ServedBlock};
use rootlight_p2p::message::{Message, Request};
use rootlight_p2p::rlpx::{HandshakeSecrets, NodeId, NodeKey, RANDOM_BYTES};
use rootlight_p2p::session::{Event, Session, SessionConfig};
use rootlight_server::service::Service as _;
use rootlight_upstream::p2p::Identity;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::attack::{Attack, Doing, UPSTREAM, Words, words};
use crate::http::{call, from_elsewhere, post, together};
use crate::watch::CHAIN_ID;

/// How long an attack lasts.
const LONG: Duration = Duration::from_secs(15);

/// Longest wait of a well-behaved peer or caller: less than a question that a peer leaves unanswered takes.
const PATIENCE: Duration = Duration::from_secs(5);

/// The secret of the attacked server's node key.
const SECRET: [u8; 32] = [0x5e; 32];

/// The port of the attacked server for peers, and its folder.
static SERVED: OnceLock<(u16, tempfile::TempDir)> = OnceLock::new();

/// The chain of the light client's only peer, and the server for it.
static NODE: Mutex<Option<(Arc<LocalService>, PeerServer)>> = Mutex::new(None);

/// Blocks that the peer has before the attack.
const BLOCKS: usize = 300;

/// The peer gives the states of so many of its newest blocks.
const STATES: u64 = 16;

pub(crate) fn all() -> Vec<(&'static str, Attack)> {
    let of_server = |attack: fn(SocketAddr) -> Doing<Words>| Attack {
        server: || Box::pin(serving()),
        prepare: |address| Box::pin(grow(address)),
        ..Attack::of_development(attack)
    };
    let of_client = |attack: fn(SocketAddr) -> Doing<Words>| Attack {
        server: || Box::pin(client()),
        prepare: |address| Box::pin(synced(address)),
        question: CHAIN_ID,
        priority: &UPSTREAM,
        ..Attack::of_development(attack)
    };
    vec![
        ("peers-unread", of_server(|_| Box::pin(unread()))),
        ("peers-handshakes", of_server(|_| Box::pin(handshakes()))),
        ("callers-states", of_client(|address| Box::pin(states(address)))),
        ("callers-hashes", of_client(|address| Box::pin(hashes(address)))),
    ]
}

/// The arguments of a development chain that serves peers under a known key.
async fn serving() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let (port, folder) = (free.expect("a port").port(), tempfile::tempdir().expect("a folder"));
    let key = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(folder.path().join("node.key"));
    key.and_then(|mut key| key.write_all("5e".repeat(32).as_bytes())).expect("a node key");
    let arguments = format!("dev --genesis regtest --p2p-port {port} --data-dir {}", folder.path().display());
    drop(SERVED.set((port, folder)));
    arguments
}

/// Lets the chain have some blocks.
async fn grow(address: SocketAddr) {
    let mine = call(1, "anvil_mine", json!([format!("{BLOCKS:#x}")]));
    post(address, &mine.to_string()).await;
}

struct AttackingPeer {
    stream: TcpStream,
    session: Session,
    began: Instant,
}

impl AttackingPeer {
    /// Connects from an address of this machine, and sends the first packet of the handshake.
    async fn connect(from: &str) -> Option<Self> {
        let (port, _) = SERVED.get()?;
        let socket = TcpSocket::new_v4().ok()?;
        socket.bind(format!("{from}:0").parse().ok()?).ok()?;
        let stream = socket.connect(([127, 0, 0, 1], *port).into()).await.ok()?;
        let id: NodeId = *NodeKey::from_bytes(&SECRET).ok()?.id();
        let config = SessionConfig::new("abuse", 7771, Network::regtest().genesis_hash, U256::from(1));
        let secrets = HandshakeSecrets::from_random(&[9; RANDOM_BYTES]);
        let session = Session::dial(&NodeKey::from_bytes(&[7; 32]).ok()?, &id, &secrets, config, 0).ok()?;
        Some(Self { stream, session, began: Instant::now() })
    }

    /// Connects and speaks the handshake.
    async fn dial(from: &str) -> Option<Self> {
        let mut peer = Self::connect(from).await?;
        while !matches!(peer.event().await?, Event::Ready(_)) {}
        Some(peer)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn event(&mut self) -> Option<Event> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let event = self.session.next_event(self.now());
            self.stream.write_all(&self.session.take_output()).await.ok()?;
            match event {
                Some(Event::Closed(_)) => return None,
                None => {}
                event => return event,
            }
            let count = self.stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
            self.session.receive(&buffer[..count], self.now());
        }
    }

    /// Sends requests; `false` if they do not leave.
    async fn ask(&mut self, requests: impl IntoIterator<Item = (u64, Request)>) -> bool {
        for (id, request) in requests {
            let _ = self.session.send_message(&Message::Request { id, request }.encode(), self.now());
        }
        let output = self.session.take_output();
        matches!(timeout(PATIENCE, self.stream.write_all(&output)).await, Ok(Ok(())))
    }

    /// Asks for a hash, and returns whether the response comes in time.
    async fn is_answered(&mut self, id: u64) -> bool {
        let answered = async {
            self.ask([(id, Request::BlockHash { height: 1 })]).await;
            while let Some(event) = self.event().await {
                if let Event::Message(payload) = event
                    && matches!(Message::decode(&payload), Ok(Message::Response { id: found, .. }) if found == id)
                {
                    return true;
                }
            }
            false
        };
        timeout(PATIENCE, answered).await.unwrap_or(false)
    }
}

/// Peers of three addresses ask for runs of blocks, chunks and headers, and read nothing. Another peer asks for hashes.
async fn unread() -> Words {
    let until = Instant::now() + LONG;
    let flooding = together(24, move |index| async move {
        let (mut sent, from) = (0, format!("127.0.0.{}", 10 + index % 3));
        while Instant::now() < until {
            let Some(mut peer) = AttackingPeer::dial(&from).await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let all = (0..200_u64).map(|id| match id % 3 {
                0 => (id, Request::SnapBlocks { before: BLOCKS as u64 }),
                1 => (id, Request::Skeleton { start: 1 }),
                _ => (id, Request::BlockHash { height: 1 }),
            });
            sent += u32::from(peer.ask(all).await);
            tokio::time::sleep(Duration::from_secs(4)).await;
        }
        sent
    });
    let watching = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (mut asked, mut answered) = (0, 0);
        let mut peer = AttackingPeer::dial("127.0.0.20").await;
        while let Some(peer) = peer.as_mut().filter(|_| Instant::now() < until) {
            asked += 1;
            answered += u64::from(peer.is_answered(asked).await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        (asked, answered)
    };
    let (sent, (asked, answered)) = tokio::join!(flooding, watching);
    let sent: u32 = sent.into_iter().sum();
    let text = format!("200 requests {sent} times, {answered} of {asked} of another peer answered in time");
    words(sent > 20 && asked > 0 && answered == asked, text)
}

/// Four addresses hold all places, with handshakes of a byte at a time and with silence. Others connect.
async fn handshakes() -> Words {
    let until = Instant::now() + LONG;
    let holding = together(40, move |index| async move {
        let from = format!("127.0.0.{}", 10 + index % 4);
        let mut reserved = 0;
        while Instant::now() < until {
            if index % 2 == 0 {
                let peer = AttackingPeer::dial(&from).await;
                reserved += u32::from(peer.is_some());
                tokio::time::sleep(Duration::from_secs(3)).await;
                continue;
            }
            let Some(mut peer) = AttackingPeer::connect(&from).await else { continue };
            reserved += 1;
            for byte in peer.session.take_output() {
                if Instant::now() > until || peer.stream.write_all(&[byte]).await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        }
        reserved
    });
    let watching = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (mut tried, mut served) = (0, 0);
        while Instant::now() < until {
            tried += 1;
            let peer = timeout(PATIENCE, AttackingPeer::dial(&format!("127.0.0.{}", 20 + tried % 50))).await;
            if let Ok(Some(mut peer)) = peer {
                served += u32::from(peer.is_answered(1).await);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        (tried, served)
    };
    let (reserved, (tried, served)) = tokio::join!(holding, watching);
    let reserved: u32 = reserved.into_iter().sum();
    words(
        reserved >= 32 && tried > 0 && served == tried,
        format!("{reserved} places taken by four addresses, {served} of {tried} newcomers served"),
    )
}

/// A chain that gives only its newest states.
struct Newest(LocalChain);

impl PeerChain for Newest {
    fn head(&self) -> Option<PeerHead> {
        self.0.head()
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        self.0.hash_at(number)
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        self.0.header(hash)
    }

    fn block(&self, hash: B256) -> Option<ServedBlock> {
        self.0.block(hash)
    }

    fn total_difficulty(&self, hash: B256) -> Option<U256> {
        self.0.total_difficulty(hash)
    }

    fn with_state(&self, number: u64, read: &mut dyn FnMut(B256, &dyn NodeSource)) {
        if self.head().is_some_and(|head| number.saturating_add(STATES) > head.block.number) {
            self.0.with_state(number, read);
        }
    }

    fn submit(&self, peer: rootlight_limits::caller_id::CallerId, transactions: Vec<Vec<u8>>) {
        self.0.submit(peer, transactions);
    }

    fn pending(&self, next: &mut u64) -> Vec<Vec<u8>> {
        self.0.pending(next)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }
}

/// Starts a peer; returns the arguments of a light client that has no other source.
async fn client() -> String {
    let (accounts, entropy) = (DevAccounts::default(), Entropy::from_system().expect("randomness"));
    let options = DevOptions {
        accounts,
        hardfork: None,
        genesis: Some("regtest"),
        genesis_time: None,
        chain_id: None,
        mining: Some(Mining::Manual),
    };
    let node = DevNode::new(options.config().expect("a chain"), host_input(&entropy)).expect("a chain");
    let node = Arc::new(LocalService::new(Box::new(node), LocalOptions::default(), entropy, None));
    mine(&node, BLOCKS).await;
    let chain = Arc::new(Newest(LocalChain::new(node.clone())));
    let network = Network::regtest();
    let identity = Identity::open(&network, network.genesis_hash, None).expect("a key");
    let id = *identity.id();
    let bound = PeerServer::bind(Arc::new(identity), chain, ([127, 0, 0, 1], 0).into()).await;
    let server = bound.expect("a port");
    let port = server.address().port();
    *NODE.lock().unwrap_or_else(PoisonError::into_inner) = Some((node, server));
    format!("light --network regtest --checkpoint none --max-age 0 --peer {id}@127.0.0.1:{port}")
}

async fn mine(node: &LocalService, blocks: usize) {
    let message = call(1, "anvil_mine", json!([format!("{blocks:#x}")])).to_string();
    drop(node.answer(message.into_bytes()).await);
}

/// The number of the newest block that the light client has verified, as another address than the attackers' sees it.
async fn head(address: SocketAddr) -> usize {
    let answer = from_elsewhere(address, &call(1, "eth_blockNumber", json!([])).to_string()).await;
    let body: Value =
        serde_json::from_str(answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)).unwrap_or_default();
    let digits = body["result"].as_str().and_then(|text| text.strip_prefix("0x"));
    digits.and_then(|digits| usize::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// Waits until the light client has the chain.
async fn synced(address: SocketAddr) {
    while head(address).await < BLOCKS {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// One address asks for states that the peer does not have; another one asks for those that it has.
async fn states(address: SocketAddr) -> Words {
    let until = Instant::now() + LONG;
    let flooding = flood(address, until, |id| {
        let block = format!("{:#x}", 1 + id % (BLOCKS - 64));
        call(id, "eth_getBalance", json!([format!("0x{:040x}", 0xb_0000 + id), block]))
    });
    let watching = async {
        let (mut asked, mut answered, mut longest) = (0, 0, Duration::ZERO);
        while Instant::now() < until {
            asked += 1;
            let account = format!("0x{:02x}{:038x}", asked % 256, asked);
            let question = call(1, "eth_getBalance", json!([account, format!("{BLOCKS:#x}")])).to_string();
            let started = Instant::now();
            answered += u32::from(from_elsewhere(address, &question).await.contains("\"result\""));
            longest = longest.max(started.elapsed());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        (asked, answered, longest)
    };
    let (refused, (asked, answered, longest)) = tokio::join!(flooding, watching);
    let text = format!(
        "{refused} made-up states refused, {answered} of {asked} others answered, after {longest:.1?}"
    );
    words(refused > 10 && asked == answered && longest < PATIENCE, text)
}

/// Callers ask for blocks of made-up hashes while the peer mines.
async fn hashes(address: SocketAddr) -> Words {
    let until = Instant::now() + LONG;
    let flooding = flood(address, until, |id| {
        call(id, "eth_getBlockByHash", json!([format!("0x{:064x}", 0xb_0000 + id), true]))
    });
    let watching = async {
        let node = NODE.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(node, _)| node.clone());
        let (node, mut mined, mut longest) = (node.expect("the peer"), 0, Duration::ZERO);
        while Instant::now() < until {
            mine(&node, 1).await;
            mined += 1;
            let started = Instant::now();
            while head(address).await < BLOCKS + mined && started.elapsed() < LONG {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            longest = longest.max(started.elapsed());
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        (mined, longest)
    };
    let (refused, (mined, longest)) = tokio::join!(flooding, watching);
    let text =
        format!("{refused} made-up hashes refused, {mined} blocks seen, the last one after {longest:.1?}");
    words(refused > 10 && mined > 5 && longest < PATIENCE, text)
}

/// Forty clients at the attackers' address ask; returns how many questions were refused.
async fn flood(address: SocketAddr, until: Instant, question: fn(usize) -> Value) -> usize {
    let refused = together(40, move |client| async move {
        let mut refused = 0;
        for turn in 0.. {
            if Instant::now() > until {
                break;
            }
            let answer = post(address, &question(turn * 40 + client).to_string()).await;
            refused += usize::from(answer.contains("\"error\"") || answer.contains("\"result\":null"));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        refused
    });
    refused.await.into_iter().sum()
}
