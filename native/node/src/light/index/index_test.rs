//! Requests for logs and transactions below the start, with an index beside the client.

use std::fmt;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use rootlight::engine::MAX_LOG_BYTES;
use rootlight::light::ClientConfig;
use rootlight::rpc::mined_chain::{Mined, START};
use rootlight::rpc::{Client, Session, SessionStep};
use rootlight::types::Address;
use rootlight_limits::budget::Reservation;

use super::*;

/// Blocks above the start.
const BLOCKS: u64 = 200;
/// The last block that is final.
const FINAL: u64 = START + BLOCKS - 120;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Question {
    Logs(LogQuestion),
    Traces(TraceQuestion),
    Block(BlockQuestion),
    Transaction(TransactionPart, B256),
}

enum Reply {
    Logs(LogReply),
    Traces(TraceReply),
    Part(Option<Box<RawValue>>),
    Nothing(&'static str),
}

type Responder = Box<dyn Fn(&Question) -> Reply + Send + Sync>;

/// An index that answers as the test says, and the questions that it was asked.
struct FakeIndex {
    asked: Mutex<Vec<Question>>,
    responder: Mutex<Responder>,
}

impl fmt::Debug for FakeIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeIndex")
    }
}

impl FakeIndex {
    fn reply<T: Send + 'static>(
        &self,
        question: Question,
        of: fn(Reply) -> Option<T>,
    ) -> BoxFuture<'static, IndexAnswer<T>> {
        let reply = (self.responder.lock().unwrap())(&question);
        self.asked.lock().unwrap().push(question);
        let answer = match reply {
            Reply::Nothing(reason) => Err(reason.into()),
            reply => Ok((of(reply).expect("a reply to this question"), Reservation::default())),
        };
        Box::pin(std::future::ready(answer))
    }
}

fn part_of(reply: Reply) -> Option<Option<Box<RawValue>>> {
    if let Reply::Part(part) = reply { Some(part) } else { None }
}

impl BlockIndex for FakeIndex {
    fn logs(&self, question: LogQuestion) -> BoxFuture<'_, IndexAnswer<LogReply>> {
        let of = |reply| if let Reply::Logs(logs) = reply { Some(logs) } else { None };
        self.reply(Question::Logs(question), of)
    }

    fn traces(&self, question: TraceQuestion) -> BoxFuture<'_, IndexAnswer<TraceReply>> {
        let of = |reply| if let Reply::Traces(traces) = reply { Some(traces) } else { None };
        self.reply(Question::Traces(question), of)
    }

    fn block_part(&self, question: BlockQuestion) -> BoxFuture<'_, IndexAnswer<Option<Box<RawValue>>>> {
        self.reply(Question::Block(question), part_of)
    }

    fn transaction_part(
        &self,
        part: TransactionPart,
        transaction: B256,
    ) -> BoxFuture<'_, IndexAnswer<Option<Box<RawValue>>>> {
        self.reply(Question::Transaction(part, transaction), part_of)
    }
}

/// A chain with an index beside the client, or without.
struct Indexed {
    mined: Mined,
    client: Client,
    index: Arc<FakeIndex>,
}

impl Indexed {
    fn new(index: bool) -> Self {
        let mut mined = Mined::new();
        mined.grow(BLOCKS as usize, 14);
        let config = ClientConfig { upstreams: vec!["miner".into()], ..ClientConfig::default() };
        let mut client = mined.start_as(config);
        let responder: Responder = Box::new(|_| panic!("the index was asked"));
        let fake = Arc::new(FakeIndex { asked: Mutex::default(), responder: Mutex::new(responder) });
        if index {
            let shared: Arc<dyn BlockIndex> = fake.clone();
            client = client.with_auxiliary_source(Arc::new(HostIndex(Arc::downgrade(&shared))));
        }
        mined.follow(&mut client);
        Self { mined, client, index: fake }
    }

    fn answers(&mut self, session: &mut Session) -> Value {
        loop {
            match self.client.step(session, &|| false) {
                SessionStep::Done(answer) => {
                    return serde_json::from_str(&answer.into_text().unwrap()).unwrap();
                }
                SessionStep::Fetch(mut round) => {
                    for (number, question) in round.questions.drain(..) {
                        let HostAnswer { answer, .. } = question.answer().now_or_never().unwrap();
                        session.take_answer(number, answer);
                    }
                    let answers = round.answered(|part| {
                        part.requests.iter().map(|request| self.mined.answer(request)).collect()
                    });
                    self.client.feed(session, answers);
                }
            }
        }
    }

    fn ask(
        &mut self,
        method: &str,
        params: Value,
        index: impl Fn(&Question) -> Reply + Send + Sync + 'static,
    ) -> Value {
        *self.index.responder.lock().unwrap() = Box::new(index);
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let mut session = self.client.open(message.as_bytes(), self.mined.now());
        self.answers(&mut session)
    }

    fn logs(
        &mut self,
        from: u64,
        to: u64,
        index: impl Fn(&Question) -> Reply + Send + Sync + 'static,
    ) -> Value {
        // The mined blocks have empty blooms, which prove that no block has a log of this contract.
        let address = Address::repeat_byte(9);
        let range =
            json!({ "fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}"), "address": address });
        self.ask("eth_getLogs", json!([range]), index)
    }

    /// The only question.
    fn question(&self) -> Question {
        let asked = self.index.asked.lock().unwrap();
        let [question] = &**asked else { panic!("{asked:?}") };
        question.clone()
    }

    fn log_question(&self) -> LogQuestion {
        let Question::Logs(question) = self.question() else { panic!("{:?}", self.question()) };
        question
    }
}

/// A reply of this many logs, which are numbers here.
fn found(count: usize) -> Reply {
    let logs = serde_json::value::to_raw_value(&(0..count).collect::<Vec<_>>()).unwrap();
    Reply::Logs(LogReply::All { count, logs })
}

fn part(text: Option<&str>) -> Reply {
    Reply::Part(text.map(|text| RawValue::from_string(text.into()).unwrap()))
}

#[test]
fn logs_below_the_start_come_from_the_index_and_are_unproven() {
    let mut indexed = Indexed::new(true);
    let answer = indexed.logs(10, 4_000, |_| found(2));
    assert_eq!((&answer["result"], &answer["level"]), (&json!([0, 1]), &json!("unproven")));
    let asked = indexed.log_question();
    assert_eq!((asked.from, asked.to, asked.most), (10, 4_000, Some(MAX_LOGS)));
}

#[test]
fn a_range_across_the_start_is_one_unproven_answer() {
    let mut indexed = Indexed::new(true);
    let topic = B256::repeat_byte(5);
    let filter = json!({ "fromBlock": "0x64", "topics": [null, [topic]] });
    let answer = indexed.ask("eth_getLogs", json!([filter]), |_| found(3));
    assert_eq!((&answer["result"], &answer["level"]), (&json!([0, 1, 2]), &json!("unproven")));
    let asked = indexed.log_question();
    // The newest blocks may be replaced, so they are proven here, and none is asked for twice.
    assert_eq!((asked.from, asked.to, asked.topics), (100, FINAL, vec![vec![], vec![topic]]));
}

#[test]
fn blocks_that_are_proven_here_are_not_asked_of_the_index() {
    let mut indexed = Indexed::new(true);
    let answer = indexed.logs(START, START + BLOCKS, |_| panic!("the index was asked"));
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 1, "result": [] }));
    for (from, to) in [(START + BLOCKS + 5, u64::MAX), (9, 8)] {
        let answer = indexed.logs(from, to, |_| panic!("the index was asked"));
        assert!(answer["level"].is_null(), "{answer}");
    }
}

#[test]
fn without_an_index_older_logs_are_refused() {
    let answer = Indexed::new(false).logs(4_000, 4_010, |_| panic!("there is no index"));
    assert!(answer["error"]["message"].as_str().unwrap().contains("older than"), "{answer}");
}

/// The limits of the answer hold for both parts together.
#[test]
fn older_and_newer_logs_are_limited_together() {
    let mut indexed = Indexed::new(true);
    let error = |answer: &Value| answer["error"]["message"].as_str().unwrap().to_owned();
    let answer = indexed.logs(10, START, |_| Reply::Logs(LogReply::TooMany { at: 3_000 }));
    assert!(error(&answer).contains("more than 10000 logs") && error(&answer).contains("0xbb7"), "{answer}");
    assert!(answer["level"].is_null());
    let answer = indexed.logs(10, START, |_| Reply::Logs(LogReply::TooLong { at: 10 }));
    assert!(error(&answer).contains(&format!("{MAX_LOG_BYTES}")), "{answer}");
    let all = indexed.logs(10, START + BLOCKS, |_| found(MAX_LOGS));
    assert_eq!(all["result"].as_array().map(Vec::len), Some(MAX_LOGS));
}

#[test]
fn a_silent_index_is_named_as_the_cause() {
    let mut indexed = Indexed::new(true);
    let answer = indexed.logs(10, 20, |_| Reply::Nothing("it is down"));
    assert_eq!(answer["error"]["code"], json!(-32002));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("the index gives no answer: it is down"), "{message}");
    // No upstream is to blame.
    let record = indexed.client.sync().upstreams()[0].record.clone();
    assert_eq!((record.demerits, record.evidence.len()), (0, 0));
}

/// The upstream names a block below the start; without an index that is a refusal.
#[test]
fn a_transaction_below_the_start_comes_from_the_index() {
    let hash = B256::repeat_byte(7);
    for (method, asked) in [
        ("eth_getTransactionByHash", TransactionPart::Transaction),
        ("eth_getTransactionReceipt", TransactionPart::Receipt),
    ] {
        for (reply, index) in [(Some(r#"{"hash":1}"#), true), (None, true), (None, false)] {
            let mut indexed = Indexed::new(index);
            indexed.mined.transaction_block = Some((3_000, B256::repeat_byte(3)));
            let answer = indexed.ask(method, json!([hash]), move |question| {
                assert_eq!(*question, Question::Transaction(asked, hash));
                part(reply)
            });
            match reply {
                None => {
                    let message = answer["error"]["message"].as_str().unwrap();
                    assert!(message.contains("in block 3000, older than"), "{message}");
                }
                _ => assert_eq!(
                    answer,
                    json!({ "jsonrpc": "2.0", "id": 1, "result": { "hash": 1 }, "level": "unproven" })
                ),
            }
        }
    }
}

#[test]
fn older_traces_come_from_the_index_within_the_limits_of_other_traces() {
    let mut indexed = Indexed::new(true);
    let filter = |from: u64, to: u64| json!([{ "fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}"), "after": 3, "count": 7 }]);
    let full = |_: &Question| {
        let traces = RawValue::from_string("[1,2]".into()).unwrap();
        Reply::Traces(TraceReply::Found { count: 7, skipped: 3, last: 50, traces })
    };
    let answer = indexed.ask("trace_filter", filter(10, START + BLOCKS), full);
    assert_eq!((&answer["result"], &answer["level"]), (&json!([1, 2]), &json!("unproven")));
    let Question::Traces(asked) = indexed.question() else { panic!("{:?}", indexed.question()) };
    let head = START + BLOCKS;
    assert_eq!(
        (asked.from, asked.to, asked.must_reach, asked.after, asked.count),
        (10, head, head - 128, 3, 7)
    );

    let answer = indexed.ask("trace_filter", filter(10, 20), |_| Reply::Traces(TraceReply::TooLong));
    assert_eq!(answer["error"]["code"], json!(-32005), "{answer}");
    let refused = indexed.ask("trace_filter", filter(20, 10), |_| panic!("the index was asked"));
    assert_eq!(refused["error"]["code"], json!(-32602), "{refused}");
    let without = Indexed::new(false).ask("trace_filter", filter(10, 20), |_| panic!("there is no index"));
    assert!(without["error"]["message"].as_str().unwrap().contains("older than"), "{without}");
}

/// An uncle that a block does not have is an answer, unlike a block that the index does not have.
#[test]
fn parts_of_older_blocks_come_from_the_index() {
    for (method, params, block, asked) in [
        ("trace_block", json!(["0x10"]), AskedBlock::Number(16), BlockPart::Traces),
        ("trace_block", json!(["earliest"]), AskedBlock::Number(0), BlockPart::Traces),
        ("eth_getUncleCountByBlockNumber", json!(["0x10"]), AskedBlock::Number(16), BlockPart::UncleCount),
        (
            "eth_getUncleByBlockNumberAndIndex",
            json!(["0x10", "0x2"]),
            AskedBlock::Number(16),
            BlockPart::Uncle(2),
        ),
    ] {
        for (reply, result) in [(Some("7"), Some(json!(7))), (Some("null"), Some(Value::Null)), (None, None)]
        {
            let mut indexed = Indexed::new(true);
            let answer = indexed.ask(method, params.clone(), move |question| {
                assert_eq!(*question, Question::Block(BlockQuestion { block, part: asked }));
                part(reply)
            });
            match result {
                Some(result) => {
                    let expected =
                        json!({ "jsonrpc": "2.0", "id": 1, "result": result, "level": "unproven" });
                    assert_eq!(answer, expected, "{method} {reply:?}");
                }
                None => assert!(answer["error"].is_object(), "{method} {reply:?}: {answer}"),
            }
        }
    }
}

fn list(count: usize) -> Box<RawValue> {
    serde_json::value::to_raw_value(&(0..count).collect::<Vec<_>>()).unwrap()
}

fn joined(older: usize, newer: usize, from: u64) -> Result<String, RpcError> {
    let logs = Some(OlderLogs { count: older, from, last: 5_000, to: 5_100 });
    Box::new(OlderPart { list: list(older), logs }).joined(&list(newer)).map(|logs| logs.get().into())
}

#[test]
fn two_lists_of_logs_are_one() {
    for (older, newer, expected) in
        [(2, 3, "[0,1,0,1,2]"), (0, 2, "[0,1]"), (2, 0, "[0,1]"), (0, 0, "[]"), (1, 1, "[0,0]")]
    {
        assert_eq!(joined(older, newer, 1), Ok(expected.into()));
    }
}

#[test]
fn the_number_of_logs_is_limited_over_both_lists() {
    assert!(joined(MAX_LOGS - 1, 1, 1).is_ok());
    let refused = RpcError::TooManyLogs { max: MAX_LOGS, fits: (1, 5_000) };
    assert_eq!(joined(MAX_LOGS, 1, 1), Err(refused));
    assert!(joined(MAX_LOGS, 1, 4_000).is_ok(), "few blocks may have any number of logs");
}
