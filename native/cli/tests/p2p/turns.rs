//! Whose turn it is: peers at a server of this project, and callers of a light client that lives on peers.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, U256};
use rootlight::dev::Mining;
use rootlight_limits::caller_id::CallerId;
use rootlight_node::local::LocalOptions;
use rootlight_node::peer_server::{LocalChain, PeerChain as _};
use rootlight_p2p::message::{Message, Request};
use rootlight_p2p::rlpx::{HandshakeSecrets, NodeKey, RANDOM_BYTES};
use rootlight_p2p::session::{CloseReason, Event, Session, SessionConfig};
use rootlight_server::service::{Caller, Service};
use rootlight_upstream::p2p::PeerAddress;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use crate::chain::{RecordedChain, serve};
use crate::common::{ask, ask_as, dev_chain};
use crate::dev::{TestPeer, follows};
use crate::hostile_peer::{HostilePeer as BentPeer, PeerTrick, transactions};
use crate::recorded::light;

/// Longest wait of a well-behaved client beside others: much more than it needs, and less than one silence of a peer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same where several peers have to be left one after another, on a machine that does much else.
const LEAVING: Duration = Duration::from_secs(60);

/// Sends requests for so many headers up to the head.
async fn request(peer: &mut TestPeer, hash: B256, count: u64, ids: std::ops::Range<u64>) {
    for id in ids {
        let request = Request::Headers { hash, count };
        // The server's own limit of what it reads is larger.
        let _ = peer.session.send_message(&Message::Request { id, request }.encode(), id * 100);
    }
    let output = peer.session.take_output();
    let _ = timeout(PATIENCE, peer.stream.write_all(&output)).await;
}

async fn response(peer: &mut TestPeer, id: u64) {
    loop {
        match peer.event().await {
            Event::Message(payload) => {
                if matches!(Message::decode(&payload), Ok(Message::Response { id: found, .. }) if found == id)
                {
                    return;
                }
            }
            Event::Closed(reason) => panic!("{reason}"),
            Event::Ready(_) => {}
        }
    }
}

/// A peer asks for more than it reads, and another one for more than a minute allows. Neither keeps a third one waiting.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_whose_answers_are_unsent_keeps_no_other_waiting() {
    let Some(chain) = RecordedChain::read(400) else { return };
    let (genesis, head) = (chain.hash_at(0).unwrap(), chain.hash_at(400).unwrap());
    let (_server, address) = serve(chain).await;
    let mut silent = TestPeer::dial(&address, genesis).await;
    request(&mut silent, head, 192, 0..250).await;
    let mut greedy = TestPeer::dial(&address, genesis).await;
    let reading = tokio::spawn(async move {
        for round in 0..5 {
            request(&mut greedy, head, 1, round * 250..(round + 1) * 250).await;
            if timeout(PATIENCE, response(&mut greedy, round * 250 + 249)).await.is_err() {
                return round;
            }
        }
        5
    });
    let mut other = TestPeer::dial(&address, genesis).await;
    let mut id = 0;
    while !reading.is_finished() || id < 5 {
        request(&mut other, head, 1, id..id + 1).await;
        timeout(PATIENCE, response(&mut other, id)).await.expect("a response in time");
        id += 1;
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(reading.await.unwrap(), 3, "the limit of a minute holds responses back");
}

/// A caller at an address of its own.
fn caller(last: u8) -> Arc<Caller> {
    Arc::new(CallerId::new(std::net::IpAddr::from([192, 0, 2, last])).caller(None))
}

/// Lets a caller ask many questions at a time until the tasks are dropped.
fn flood(
    service: &Arc<impl Service>,
    from: &Arc<Caller>,
    question: fn(u64) -> (&'static str, Value),
) -> tokio::task::JoinSet<()> {
    let mut asking = tokio::task::JoinSet::new();
    for first in 0..100_u64 {
        let (service, from) = (service.clone(), from.clone());
        asking.spawn(async move {
            for round in 0.. {
                let (method, params) = question(first + 100 * round);
                ask_as(&*service, &from, method, params).await;
                // A question that is refused at once is not asked again at once.
                sleep(Duration::from_millis(20)).await;
            }
        });
    }
    asking
}

/// A hash of no block.
fn made_up(number: u64) -> (&'static str, Value) {
    ("eth_getBlockByHash", json!([B256::left_padding_from(&(number + 1).to_be_bytes()), true]))
}

/// The state of a block that the peer does not have.
fn old_state(number: u64) -> (&'static str, Value) {
    let account = format!("0x{:040x}", 0x1000 + number);
    ("eth_getBalance", json!([account, format!("{:#x}", 100 + number % 200)]))
}

/// The demerits that the light client counts against its peers.
async fn demerits(light: &dyn Service) -> Vec<Value> {
    let all = ask(light, "rootlight_upstreams", json!([])).await;
    all["result"].as_array().unwrap().iter().map(|upstream| upstream["demerits"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_makes_up_states_keeps_no_other_waiting() {
    let Some(chain) = RecordedChain::read(400) else { return };
    let genesis = chain.hash_at(0).unwrap();
    let peer = BentPeer::start(chain, PeerTrick::Honest, 1).await;
    let light = Arc::new(light(std::slice::from_ref(&peer.address), genesis).await);
    assert!(light.is_synced(), "{:?}", light.health());
    for question in [old_state, made_up] {
        let (_flood, other) = (flood(&light, &caller(1), question), caller(2));
        sleep(Duration::from_secs(1)).await;
        for number in 0..10_u64 {
            // A different part of the state each time.
            let account = B256::repeat_byte(17 * u8::try_from(number).unwrap());
            let params = json!([format!("0x{}", &account.to_string()[26..]), "0x190"]);
            let asked = ask_as(&*light, &other, "eth_getBalance", params);
            let answer = timeout(PATIENCE, asked).await.expect("an answer in time");
            assert!(answer["result"].is_string(), "{answer}");
        }
    }
    assert_eq!(demerits(&*light).await, [json!(0)], "the peer is not to blame");
}

/// A peer that gives no state and sends much unasked. Its silence is its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_peer_does_not_hide_its_silence_behind_long_messages() {
    let Some(chain) = RecordedChain::read(400) else { return };
    let genesis = chain.hash_at(0).unwrap();
    let peer = BentPeer::start(chain, PeerTrick::HalvedPushes, 1).await;
    let light = light(std::slice::from_ref(&peer.address), genesis).await;
    assert!(light.is_synced(), "{:?}", light.health());
    let caller = caller(1);
    let params = json!([format!("0x{:040x}", 19), "0x190"]);
    let asked = ask_as(&light, &caller, "eth_getBalance", params);
    let answer = timeout(LEAVING, asked).await.expect("an answer in time");
    let text = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("did not respond"), "{answer}");
    let demerits = demerits(&light).await;
    assert!(demerits[0].as_u64() > Some(0), "{demerits:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_do_not_hold_up_synchronization() {
    let node = dev_chain(Mining::Manual, LocalOptions::default());
    let (_server, address) = serve(Arc::new(LocalChain::new(node.clone()))).await;
    let genesis = ask(&*node, "eth_getBlockByNumber", json!(["0x0", false])).await;
    let genesis = genesis["result"]["hash"].as_str().unwrap().parse().unwrap();
    ask(&*node, "evm_mine", json!([])).await;
    let light = Arc::new(light(&[address], genesis).await);
    assert!(light.is_synced(), "{:?}", light.health());
    let _floods: Vec<_> = (1..=4).map(|last| flood(&light, &caller(last), made_up)).collect();
    sleep(Duration::from_secs(1)).await;
    for _ in 0..5 {
        ask(&*node, "evm_mine", json!([])).await;
        let head = ask(&*node, "eth_blockNumber", json!([])).await["result"].clone();
        timeout(PATIENCE, follows(&*light, &head)).await.expect("a new block is seen in time");
    }
    assert_eq!(demerits(&*light).await, [json!(0)], "the peer is not to blame");
}

/// Connects from one of this machine's own addresses.
async fn connect(from: &str, address: &PeerAddress) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(format!("{from}:0").parse().unwrap())?;
    socket.connect(format!("{}:{}", address.host, address.port).parse().unwrap()).await
}

/// A handshake that goes on a byte at a time ends by the clock.
#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_of_a_byte_at_a_time_ends_in_time() {
    let Some(chain) = RecordedChain::read(400) else { return };
    let (_server, address) = serve(chain.clone()).await;
    let mut silent = connect("127.0.0.2", &address).await.unwrap();
    let mut stream = connect("127.0.0.1", &address).await.unwrap();
    let (key, secrets) =
        (NodeKey::from_bytes(&[8; 32]).unwrap(), HandshakeSecrets::from_random(&[9; RANDOM_BYTES]));
    let config = SessionConfig::new("slow", 7771, chain.hash_at(0).unwrap(), U256::from(1));
    let mut session = Session::dial(&key, &address.id, &secrets, config, 0).unwrap();
    let (first, started) = (session.take_output(), Instant::now());
    let mut buffer = [0; 1];
    for byte in first {
        let write = stream.write_all(&[byte]).await;
        if write.is_err() || timeout(Duration::from_millis(400), stream.read(&mut buffer)).await.is_ok() {
            break;
        }
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let ended =
        timeout(Duration::from_secs(20).saturating_sub(started.elapsed()), silent.read(&mut buffer)).await;
    assert!(ended.is_ok(), "so does one without a word");
}

/// Four addresses hold all places and say nothing. A fifth one is served.
#[tokio::test(flavor = "multi_thread")]
async fn idle_peers_of_four_addresses_do_not_keep_a_newcomer_out() {
    let Some(chain) = RecordedChain::read(400) else { return };
    let (genesis, head) = (chain.hash_at(0).unwrap(), chain.hash_at(400).unwrap());
    let (_server, address) = serve(chain).await;
    let mut reserved = Vec::new();
    for last in 2..6 {
        for _ in 0..8 {
            let stream = connect(&format!("127.0.0.{last}"), &address).await.unwrap();
            reserved.push(TestPeer::shake_hands(stream, &address, genesis).await.expect("a place"));
        }
    }
    for last in 6..9 {
        let stream = connect(&format!("127.0.0.{last}"), &address).await.unwrap();
        let newcomer = timeout(PATIENCE, TestPeer::shake_hands(stream, &address, genesis)).await;
        let mut newcomer = newcomer.expect("a handshake in time").expect("a place");
        request(&mut newcomer, head, 1, 1..2).await;
        timeout(PATIENCE, response(&mut newcomer, 1)).await.expect("a response in time");
        reserved.push(newcomer);
    }
}

/// Connections without a word from more addresses than there are places. A peer that shakes hands is served.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_do_not_shake_hands_do_not_keep_a_newcomer_out() {
    let Some(chain) = RecordedChain::read(400) else { return };
    let (genesis, head) = (chain.hash_at(0).unwrap(), chain.hash_at(400).unwrap());
    let (_server, address) = serve(chain).await;
    let mut reserved = Vec::new();
    for last in 10..60 {
        for _ in 0..4 {
            reserved.push(connect(&format!("127.0.0.{last}"), &address).await.unwrap());
        }
    }
    let stream = connect("127.0.0.2", &address).await.unwrap();
    let newcomer = timeout(PATIENCE, TestPeer::shake_hands(stream, &address, genesis)).await;
    let mut newcomer = newcomer.expect("a handshake in time").expect("a place");
    request(&mut newcomer, head, 1, 1..2).await;
    timeout(PATIENCE, response(&mut newcomer, 1)).await.expect("a response in time");
}

/// Ten addresses send long messages and not the last bytes of them. A long message of another one is read.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_peers_do_not_finish_keep_no_other_peer_waiting() {
    unfinished((10..20).collect(), LEAVING).await;
}

/// One address does so over all its connections, and stays: another one has room of its own at once.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_does_not_finish_its_messages_takes_its_own_room_only() {
    unfinished(vec![10; 8], 3 * PATIENCE).await;
}

async fn unfinished(addresses: Vec<u8>, limit: Duration) {
    let Some(chain) = RecordedChain::read(400) else { return };
    let (genesis, head) = (chain.hash_at(0).unwrap(), chain.hash_at(400).unwrap());
    let (_server, address) = serve(chain.clone()).await;
    let long = transactions(2_000_000);
    let mut reserved = Vec::new();
    for last in addresses {
        let stream = connect(&format!("127.0.0.{last}"), &address).await.unwrap();
        let mut peer = TestPeer::shake_hands(stream, &address, genesis).await.expect("a place");
        peer.session.send_message(&long, 0).unwrap();
        let output = peer.session.take_output();
        reserved.push(tokio::spawn(async move {
            // The server reads this when it has room.
            let _ = peer.stream.write_all(&output[..output.len() - 16]).await;
            // These peers do not leave by themselves while the other one waits.
            sleep(10 * LEAVING).await;
        }));
    }
    let stream = connect("127.0.0.2", &address).await.unwrap();
    let mut honest = TestPeer::shake_hands(stream, &address, genesis).await.expect("a place");
    honest.session.send_message(&long, 0).unwrap();
    let output = honest.session.take_output();
    timeout(limit, honest.stream.write_all(&output)).await.expect("read in time").unwrap();
    request(&mut honest, head, 1, 1..2).await;
    timeout(limit, response(&mut honest, 1)).await.expect("a response in time");
    assert_eq!(chain.submitted.lock().unwrap().len(), 1, "the message was read");
    reserved.iter().for_each(tokio::task::JoinHandle::abort);
}

impl TestPeer {
    /// Speaks the handshake over this connection.
    async fn shake_hands(
        stream: TcpStream,
        address: &PeerAddress,
        genesis: B256,
    ) -> Result<Self, CloseReason> {
        let key = NodeKey::from_bytes(&[7; 32]).unwrap();
        let config = SessionConfig::new("test", 7771, genesis, U256::from(1));
        let secrets = HandshakeSecrets::from_random(&[9; RANDOM_BYTES]);
        let session = Session::dial(&key, &address.id, &secrets, config, 0).unwrap();
        let mut peer = Self { stream, session };
        loop {
            match peer.event().await {
                Event::Ready(_) => return Ok(peer),
                Event::Closed(reason) => return Err(reason),
                Event::Message(_) => {}
            }
        }
    }
}
