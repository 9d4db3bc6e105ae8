//! Every kind of response of a peer at its largest.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alloy_primitives::{B256, keccak256};
use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::light::UpstreamRequest;
use rootlight::rpc::{Message as Request, Reply};
use rootlight::types::BlockRef;
use rootlight::types::rlp::put_str;
use rootlight_limits::Limits;
use rootlight_p2p::message::{Message, Push, Status};
use rootlight_p2p::network::PeerNetwork;
use rootlight_p2p::rlpx::{HandshakeSecrets, NodeKey, RANDOM_BYTES};
use rootlight_p2p::session::{Session, SessionConfig};
use rootlight_server::service::{Caller, ReservedReply, Service};
use rootlight_upstream::p2p::PeerAddress;
use rootlight_upstream::{HttpConfig, HttpUpstream, Upstream as _, UpstreamError, UpstreamResult};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::common::{config, start_service};
use crate::peer::{BlockResponses, FakePeer, LONG, genesis, header, root, transactions};
use crate::watch::{BudgetWatch, OF_ONE};
use crate::within;

/// Number of blocks that are asked for at the same time.
const BLOCKS: u64 = 40;

fn by_hash(number: u64) -> UpstreamRequest {
    UpstreamRequest::new("eth_getBlockByHash", json!([keccak256(number.to_be_bytes()), true]).to_string())
}

/// Asks a peer that gives this, and returns the errors. Memory and the runtime are watched.
async fn asked(
    what: &str,
    best: u64,
    given: BlockResponses,
    requests: Vec<UpstreamRequest>,
) -> Vec<UpstreamError> {
    let _alone = super::UPSTREAMS.lock().await;
    let (peer, limits) = (FakePeer::start(best, given), Limits::new());
    let upstream = peer.upstream(&limits);
    let watch = BudgetWatch::start(&limits);
    let (results, reserved) = upstream.request_reserved(requests).await;
    assert!(peer.answered.load(Ordering::SeqCst) > 0, "{what}: the peer was asked");
    drop(reserved);
    let errors: Vec<UpstreamError> = results.into_iter().filter_map(Result::err).collect();
    println!("{what}: {:?}", errors.first());
    watch.check(what, 0);
    assert!(watch.most() > 0 || what == "other headers", "{what}: no room was taken");
    drop(upstream);
    freed(what, &limits).await;
    errors
}

/// Waits until nothing is held any more: bytes of a message that was coming in go with the connection.
pub(crate) async fn freed(what: &str, limits: &Limits) {
    for _ in 0..1_200 {
        if limits.upstreams().taken() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: {} bytes are held for ever", limits.upstreams().taken());
}

fn says(errors: &[UpstreamError], words: &str) -> bool {
    errors.iter().all(|error| error.to_string().contains(words))
}

/// Sends eight requests to a peer that gives this, and sends them again until a response arrives in time. Checks that each
/// response that arrives in time fails with these words. On a loaded machine all eight long responses may arrive too late.
async fn says_in_time(
    what: &str,
    best: u64,
    given: &BlockResponses,
    requests: &[UpstreamRequest],
    words: &str,
) {
    let said = |error: &UpstreamError| error.to_string().contains(words);
    let late =
        |error: &UpstreamError| matches!(error, UpstreamError::Silent(_) | UpstreamError::BudgetUsedUp);
    for _ in 0..20 {
        let errors = asked(what, best, given.clone(), requests.to_vec()).await;
        assert!(errors.len() == 8 && errors.iter().all(|error| said(error) || late(error)), "{errors:?}");
        if errors.iter().any(said) {
            return;
        }
    }
    panic!("{what}: no response arrives in time");
}

/// The headers have the hashes that they are asked for by, so the peer chooses everything in them.
fn block(
    gas_limit: u64,
    transactions_root: B256,
    body: Vec<Vec<u8>>,
) -> (BlockResponses, Vec<UpstreamRequest>) {
    let header = header(100, transactions_root, gas_limit, 40);
    let hash = header.clone().seal().hash();
    let request = || UpstreamRequest::new("eth_getBlockByHash", json!([hash, true]).to_string());
    (BlockResponses { headers: vec![header], body }, (0..BLOCKS).map(|_| request()).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_with_more_transactions_than_the_gas_limit_allows_are_not_decoded() {
    let body = transactions(16_000, 1);
    let (given, requests) = block(6_800_000, root(&body), body);
    let errors = asked("many transactions", 200, given, requests).await;
    assert!(errors.len() as u64 == BLOCKS && says(&errors, "gas limit"), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_need_more_memory_than_a_source_may_take_are_neither_hashed_nor_decoded() {
    let body = transactions(40_000, 1);
    for root in [root(&body), B256::repeat_byte(3)] {
        let (given, requests) = block(u64::MAX, root, body.clone());
        let errors = asked("a false gas limit", 200, given, requests).await;
        assert!(errors.len() as u64 == BLOCKS && says(&errors, "longer than a block"), "{errors:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_with_another_root_are_evidence_and_are_not_converted() {
    let (given, requests) = block(6_800_000, B256::repeat_byte(3), transactions(300, 5_000));
    let errors = asked("another root", 200, given, requests).await;
    let is_lie = |error: &&UpstreamError| matches!(error, UpstreamError::False(_));
    let lies: Vec<_> = errors.iter().filter(is_lie).cloned().collect();
    // A body takes its room before it is hashed.
    let others = errors.iter().filter(|error| **error == UpstreamError::BudgetUsedUp).count();
    assert_eq!((lies.len() + others) as u64, BLOCKS, "{errors:?}");
    assert!(!lies.is_empty() && says(&lies, "a list of transactions"), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_with_the_right_root_are_converted_within_the_budget() {
    let body = transactions(300, 5_000);
    let (given, requests) = block(6_800_000, root(&body), body);
    let errors = asked("whole blocks", 200, given, requests).await;
    assert!((errors.len() as u64) < BLOCKS, "{errors:?}");
    assert!(errors.iter().all(|error| *error == UpstreamError::BudgetUsedUp), "{errors:?}");
}

/// A request that holds room does not wait for more, so some blocks of each round are answered, and none waits for the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_blocks_of_a_batch_that_does_not_fit_at_once_are_given_in_turn() {
    let _alone = super::UPSTREAMS.lock().await;
    let body = transactions(300, 5_000);
    let (given, requests) = block(6_800_000, root(&body), body);
    let (peer, limits) = (FakePeer::start(200, given), Limits::new());
    let upstream = peer.upstream(&limits);
    let (mut left, mut rounds) = (14, 0);
    while left > 0 {
        let (results, reserved) = upstream.request_reserved(requests[..left].to_vec()).await;
        let given = results.iter().filter(|result| result.is_ok()).count();
        assert!(given > 0, "round {rounds}: {:?}", results.first());
        assert!(limits.upstreams().taken() <= OF_ONE);
        drop(reserved);
        left -= given;
        rounds += 1;
    }
    assert!(rounds > 1, "the batch is longer than the room for it");
    drop(upstream);
    freed("whole blocks", &limits).await;
}

pub(crate) struct Long;

impl Service for Long {
    fn answer_message<'a>(&'a self, _: &'a Arc<Caller>, message: Request) -> BoxFuture<'a, ReservedReply> {
        let result = to_raw_value(&"7".repeat(6 << 20)).unwrap();
        Box::pin(std::future::ready(ReservedReply::of(Reply::to(message, vec![Ok(result)]))))
    }
}

/// Waits until this much of the budget is taken.
pub(crate) async fn taken(limits: &Limits, bytes: usize) {
    for _ in 0..6_000 {
        if limits.upstreams().taken() >= bytes {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} bytes are taken", limits.upstreams().taken());
}

/// Every machine can be a peer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_peers_do_not_finish_keep_neither_upstreams_nor_other_peers_waiting() {
    // On a loaded machine the questions to all six peers may end by their deadlines, before another question wants their room.
    for _ in 0..10 {
        if unfinished_messages_end_for_room().await {
            return;
        }
    }
    panic!("no question ended for room");
}

/// Asks another upstream and an honest peer while six peers do not finish their messages, and checks that both are answered.
/// Returns whether a question to one of the six ended because others needed its memory.
async fn unfinished_messages_end_for_room() -> bool {
    let _alone = super::UPSTREAMS.lock().await;
    let (server, limits) = (start_service(config(), Arc::new(Long)).await, Limits::new());
    let chosen = HttpUpstream::new(&server.url("/"), within(&limits)).unwrap();
    let (given, requests) = block(u64::MAX, B256::ZERO, transactions(1_400, 5_000));
    let (tell, mut ended_runs) = tokio::sync::mpsc::unbounded_channel();
    let mut asking = Vec::new();
    for _ in 0..6 {
        let (peer, request) = (FakePeer::start_unfinished(200, given.clone()), requests[0].clone());
        let (tell, limits) = (tell.clone(), limits.clone());
        asking.push(tokio::spawn(async move {
            let upstream = peer.upstream(&limits);
            let _ = tell.send(upstream.request(vec![request]).await.remove(0));
            // A light client stays connected.
            std::future::pending::<()>().await;
        }));
    }
    // Two of their messages and not a third fit in what peers may take.
    taken(&limits, 24 << 20).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (results, reserved) =
        chosen.request_reserved(vec![UpstreamRequest::new("eth_call", "[]".into())]).await;
    let length = results[0].as_ref().map(|text| text.get().len());
    assert!(length.as_ref().is_ok_and(|length| *length > 5 << 20), "{length:?}");
    drop(reserved);
    let body = transactions(400, 5_000);
    let (given, requests) = block(6_800_000, root(&body), body);
    let honest = FakePeer::start(200, given);
    let upstream = honest.upstream(&limits);
    let mut results = Vec::new();
    // The client leaves the greedy peers while other requests wait for bytes of the budget.
    for _ in 0..240 {
        results = upstream.request(vec![requests[0].clone()]).await;
        if results[0].is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(results[0].is_ok(), "{:?}", results[0]);
    // An honest peer may be as slow as the ones that were left.
    let mut for_room = false;
    for _ in 0..asking.len() {
        let ended: UpstreamResult = ended_runs.recv().await.unwrap();
        // A loaded machine may end a question before the room is wanted.
        let is_fair = matches!(ended, Err(UpstreamError::BudgetUsedUp | UpstreamError::Silent(_)));
        assert!(is_fair, "{ended:?}");
        for_room |= matches!(ended, Err(UpstreamError::BudgetUsedUp));
        if for_room {
            break;
        }
    }
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    drop((asking, upstream, results));
    freed("unfinished messages", &limits).await;
    for_room
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_response_at_its_largest_is_within_the_budget() {
    let header = header(100, B256::ZERO, 1, 40);
    let hash = header.clone().seal().hash();
    let given = BlockResponses { headers: vec![header], body: Vec::new() };
    let of = |method, params: serde_json::Value| {
        (0..8).map(|_| UpstreamRequest::new(method, params.to_string())).collect::<Vec<_>>()
    };
    let proof = json!(["0x00000000000000000000000000000000000000aa", ["0x0"], hash]);
    says_in_time("state chunks", 200, &given, &of("eth_getProof", proof), "chunk").await;
    let runs = of("rootlight_getHeaders", json!(["0x7a1200", "0x100"]));
    let long = "longer than the rules allow";
    says_in_time("runs of blocks", 9_000_000, &given, &runs, long).await;
    let headers = of("rootlight_getHeaders", json!(["0xc0", "0x2"]));
    says_in_time("headers", 200, &given, &headers, long).await;
    let stretches = of("rootlight_getHeaders", json!(["0x1", "0x100"]));
    let errors = asked("stretches", 9_000_000, given.clone(), stretches).await;
    assert_eq!(errors.len(), 8, "{errors:?}");
    let other: Vec<_> = (0..8).map(by_hash).collect();
    says_in_time("other headers", 200, &given, &other, "asked for").await;
}

/// Asks another upstream until there is room for its long response.
pub(crate) async fn another_upstream_is_read(limits: &Arc<Limits>) {
    let server = start_service(config(), Arc::new(Long)).await;
    let honest = HttpUpstream::new(&server.url("/"), within(limits)).unwrap();
    let mut result = Err(UpstreamError::BudgetUsedUp);
    for _ in 0..240 {
        result = honest.request(vec![UpstreamRequest::new("eth_call", "[]".into())]).await.remove(0);
        if result.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(result.is_ok(), "{result:?}");
}

/// An HTTP server that sends all but the last byte of a long response.
async fn unfinished_upstream(limits: &Arc<Limits>) -> HttpUpstream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = vec![0; 1 << 16];
                let _ = stream.read(&mut buffer).await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", 10 << 20);
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&vec![b' '; (10 << 20) - 1]).await;
                while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
            });
        }
    });
    HttpUpstream::new(&url, HttpConfig { timeout: Duration::from_secs(600), ..within(limits) }).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_that_upstreams_do_not_finish_keep_no_other_upstream_waiting() {
    let _alone = super::UPSTREAMS.lock().await;
    let (limits, call) = (Limits::new(), || vec![UpstreamRequest::new("eth_call", "[]".into())]);
    let mut asking = Vec::new();
    for _ in 0..3 {
        let upstream = unfinished_upstream(&limits).await;
        asking.push(tokio::spawn(async move { upstream.request_reserved(call()).await }));
    }
    // The messages of these upstreams leave too little of the budget for the response of another upstream.
    taken(&limits, 58 << 20).await;
    another_upstream_is_read(&limits).await;
    asking.iter().for_each(tokio::task::JoinHandle::abort);
    drop(asking);
    freed("unfinished responses", &limits).await;
}

/// No block was asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pushes_at_their_largest_are_dropped_within_the_budget_and_longer_ones_end_the_connection() {
    let _alone = super::UPSTREAMS.lock().await;
    let pushed = |length: usize| {
        let mut block = Vec::new();
        put_str(&mut block, &vec![7; length]);
        Message::Push(Push::Block(&block)).encode()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let key = NodeKey::from_bytes(&[3; 32]).unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = PeerAddress { id: *key.id(), host: "127.0.0.1".into(), port };
    let (peer, limits) = (FakePeer { address, answered: Arc::default() }, Limits::new());
    let upstream = peer.upstream(&limits);
    let watch = BudgetWatch::start(&limits);
    let (mut stream, _) = listener.accept().await.unwrap();
    let network = PeerNetwork::of(&Network::mainnet()).unwrap();
    let config = SessionConfig::new("peer", network.id, genesis(), network.genesis_difficulty());
    let secrets = HandshakeSecrets::from_random(&[9; RANDOM_BYTES]);
    let mut session = Session::accept(&key, secrets, config, 0).unwrap();
    let mut buffer = vec![0; 1 << 16];
    while !session.is_ready() {
        let count = stream.read(&mut buffer).await.unwrap();
        session.receive(&buffer[..count], 0);
        while session.next_event(0).is_some() {}
        stream.write_all(&session.take_output()).await.unwrap();
    }
    for _ in 0..8 {
        session.send_message(&pushed(2_000_000), 0).unwrap();
        stream.write_all(&session.take_output()).await.unwrap();
    }
    let best = BlockRef { number: 77, hash: B256::ZERO };
    session.send_message(&Message::Push(Push::Status(Status { best, parent: None })).encode(), 0).unwrap();
    stream.write_all(&session.take_output()).await.unwrap();
    let head = upstream.request(vec![UpstreamRequest::new("eth_blockNumber", "[]".into())]).await.remove(0);
    assert_eq!(head.unwrap().get(), "\"0x4d\"", "the connection goes on");
    assert!(watch.most() > 0);
    watch.check("pushes", 0);
    session.send_message(&pushed(LONG), 0).unwrap();
    let _ = stream.write_all(&session.take_output()).await;
    let ended = async { while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {} };
    tokio::time::timeout(super::PATIENCE, ended).await.expect("the connection ends");
}
