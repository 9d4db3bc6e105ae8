//! Tests of sessions.

use super::*;
use crate::{
    consensus::{Checkpoint, Network},
    dev::PrivateKey,
    light::{ClientConfig, HeaderSync, Now, UnprovenPolicy},
    rpc::{envelope::BATCH_LIMIT, message::Dispatcher, window_start_test::started, work_start_test::honest},
    types::Transaction,
};

fn pin() -> PinnedHead {
    let network = Arc::new(Network::regtest());
    let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    let config = ClientConfig { unproven: UnprovenPolicy::Trust, ..ClientConfig::default() };
    PinnedHead::new(&HeaderSync::new(network, checkpoint), Arc::new(config), Now::default())
}

/// A session of the host itself.
fn open(pinned: PinnedHead, message: &str) -> Session {
    let dispatcher = Dispatcher::default();
    let message = Message::read(message.as_bytes(), &dispatcher, BATCH_LIMIT);
    Session::new(Arc::default(), pinned, message, None)
}

/// The answer of a client without upstreams.
fn without_upstreams(message: &str) -> String {
    let mut pinned = pin();
    pinned.roster.clear();
    match open(pinned, message).step(&FactCache::new(), None, &|| false) {
        SessionStep::Done(reply) => reply.into_text().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// A request that sends a transaction.
fn send_request() -> String {
    let unsigned = Transaction { gas_limit: 21_000_u64.into(), ..Transaction::remasc(1) };
    let signed = PrivateKey::from_seed("cow").unwrap().sign_transaction(unsigned, 33).unwrap();
    let raw = alloy_primitives::hex::encode_prefixed(signed.encode());
    alloc::format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["{raw}"]}}"#)
}

#[test]
fn a_transaction_is_refused_when_there_is_no_upstream() {
    let answer = without_upstreams(&send_request());
    assert!(answer.contains("-32002") && answer.contains("no upstream is left"), "{answer}");
}

#[test]
fn a_session_tells_whether_its_message_needs_filters() {
    let needs = |message: &str| open(pin(), message).uses_filters();
    let call = |method: &str, params: &str| {
        alloc::format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{params}]}}"#)
    };
    let (head, poll) = (call("eth_blockNumber", ""), call("eth_getFilterChanges", "\"0x1\""));
    assert!(needs(&poll) && !needs(&head) && !needs("nonsense"));
    assert!(needs(&alloc::format!("[{head},{poll}]")) && !needs(&alloc::format!("[{head}]")));
}

#[test]
fn a_batch_of_more_requests_than_the_limit_is_refused() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
    let answers =
        |count: usize| without_upstreams(&alloc::format!("[{}]", alloc::vec![call; count].join(",")));
    assert_eq!(answers(1_000).matches("\"0x21\"").count(), 1_000);
    let refused = answers(1_001);
    assert!(refused.contains("1000 is the max number") && !refused.contains("0x21"), "{refused}");
}

/// The error of this client itself rests on no upstream.
#[test]
fn an_unproven_answer_that_is_too_long_is_refused_without_a_level() {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}"#;
    let answer = |bytes: usize| {
        let mut session = open(pin(), message);
        let request = session.progress.pending_requests().next().unwrap();
        let refusal = Refusal::NoStateProofs { number: 5 };
        session.polls.push(UpstreamPoll::unproven(0, request, &session.pinned, refusal).unwrap());
        let text = alloc::format!("\"{}\"", "0".repeat(bytes));
        let answer = Ok(serde_json::value::RawValue::from_string(text).unwrap());
        let answers = session.round().answered(|part| alloc::vec![answer.clone(); part.requests.len()]);
        session.feed(answers, &FactCache::new());
        session.progress.reply().into_text().unwrap()
    };
    assert!(answer(10).ends_with(r#""0000000000","level":"unproven"}"#), "{}", answer(10));
    let refused = answer(10 << 20);
    assert!(refused.contains("error") && !refused.contains("level"), "{refused}");
}

#[test]
fn blocks_of_a_message_are_counted_in_bytes() {
    let mut session = open(pin(), "{}");
    session.facts.merge(FactStore { block_bytes: 5, ..FactStore::default() });
    session.facts.merge(FactStore { block_bytes: 7, ..FactStore::default() });
    assert_eq!(session.fact_bytes(), 12);
}

#[test]
fn a_batch_of_notifications_has_no_answer() {
    let message = r#"[{"jsonrpc":"2.0","method":"eth_chainId"},{"jsonrpc":"2.0","method":"eth_chainId"}]"#;
    let SessionStep::Done(reply) = open(pin(), message).step(&FactCache::new(), None, &|| false) else {
        panic!("nothing is fetched")
    };
    assert!(reply.into_text().is_none());
}

/// The responses of a round are kept until all have arrived.
#[test]
fn a_long_batch_of_transactions_is_sent_in_rounds() {
    let message = alloc::format!("[{}]", alloc::vec![send_request(); 1_000].join(","));
    let mut pinned = pin();
    pinned.roster.truncate(1);
    let mut session = open(pinned, &message);
    let (cache, mut rounds) = (FactCache::new(), 0);
    let answer = loop {
        match session.step(&cache, None, &|| false) {
            SessionStep::Fetch(round) => {
                assert!(round.requests() <= MAX_REQUESTS, "{}", round.requests());
                let failed =
                    Err(crate::light::RequestFailure::Rpc { code: -32010, message: "refused".into() });
                session.feed(round.answered(|part| alloc::vec![failed.clone(); part.requests.len()]), &cache);
                rounds += 1;
            }
            SessionStep::Done(answer) => break answer.into_text().unwrap(),
        }
    };
    assert!(rounds >= 1_000 / MAX_REQUESTS, "{rounds}");
    assert_eq!(answer.matches("refused").count(), 1_000);
}

/// Requests that wait for facts are refused once the message has spent its requests to upstreams; the others are answered.
#[test]
fn a_message_has_a_limit_of_requests_to_upstreams() {
    let call = |byte: u8| {
        let hash = alloy_primitives::B256::repeat_byte(byte);
        alloc::format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["{hash}"]}}"#
        )
    };
    let calls: Vec<String> = (1..=200).map(call).collect();
    let message =
        alloc::format!("[{},{}]", r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#, calls.join(","));
    let mut mined = honest();
    let client = started(&mut mined);
    let answer_after = |spent: usize| {
        let mut session = open(client.pin_newest(mined.now()), &message);
        session.requests = spent;
        let (cache, mut sent) = (FactCache::new(), 0);
        loop {
            match session.step(&cache, None, &|| false) {
                SessionStep::Fetch(round) => {
                    sent += round.requests();
                    let failed = Err(crate::light::RequestFailure::Malformed("no response"));
                    session.feed(
                        round.answered(|part| alloc::vec![failed.clone(); part.requests.len()]),
                        &cache,
                    );
                }
                SessionStep::Done(answer) => break (sent, answer.into_text().unwrap()),
            }
        }
    };
    let refused =
        |answer: &str| answer.matches("the message needs more than 32768 requests to upstreams").count();
    let (sent, answer) = answer_after(0);
    assert_eq!((refused(&answer), answer.matches("\"0x63\"").count()), (0, 1), "{sent} {answer}");
    let (limited, answer) = answer_after(MAX_MESSAGE_REQUESTS - 1);
    assert!(limited < sent, "{limited} {sent}");
    assert_eq!((refused(&answer), answer.matches("\"0x63\"").count()), (200, 1), "{limited} {answer}");
}
