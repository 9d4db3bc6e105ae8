//! Chains that somebody mines for a client that sees no other: what the header rules, the floor of work and the uncles'
//! commitment make of them.

use std::sync::Arc;

use serde_json::{json, value::RawValue, Value};

use super::{Client, Step};
use crate::{
    consensus::{
        difficulty,
        testing::{child, easy_network, header, mine, Bitcoin},
        Checkpoint, Network, Rule,
    },
    light::{
        encode_headers, Answer, CallFailure, Identity, Now, SyncOptions, SyncStep, Unproven, UpstreamCall,
    },
    types::{uncles_hash, Header, SealedHeader, U256},
};

const START: u64 = 5_000;

/// The difficulty that the checkpoint promises.
const PROMISED: u64 = 800;

/// How the upstream answers when asked for headers in binary.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    Exact,
    /// All headers, however few are asked for.
    Generous,
    /// Those above the ones asked for.
    Shifted,
    /// Three at most.
    Short,
    /// None below the checkpoint.
    Forgetful,
}

/// A chain as its only upstream shows it, in binary, each block with its uncles.
struct Mined {
    network: Network,
    blocks: Vec<(SealedHeader, Vec<SealedHeader>)>,
    asked: Vec<UpstreamCall>,
    habit: Habit,
    /// Headers come without uncles, which may be had one by one: from this client, with an error where there is none
    /// instead of `null`.
    bare: bool,
    family: Option<(Client, bool)>,
}

impl Mined {
    fn new() -> Self {
        Self::under(&[])
    }

    fn under(rules: &[(Rule, u64)]) -> Self {
        Self::from(START, easy_network(&[], &[&[(Rule::Rskip110, u64::MAX)], rules].concat()))
    }

    fn from(number: u64, network: Network) -> Self {
        let base = mine(Header { difficulty: PROMISED.into(), ..header(&network, number) });
        let (blocks, asked, habit) = (vec![(base, Vec::new())], Vec::new(), Habit::Exact);
        Self { network, blocks, asked, habit, bare: false, family: None }
    }

    /// The next block by all rules, changed.
    fn next(&self, change: impl FnOnce(&mut Header)) -> SealedHeader {
        let parent = &self.blocks.last().unwrap().0;
        let mut header = child(&self.network, parent);
        change(&mut header);
        header.difficulty = difficulty::expected(&header, parent, &self.network).into();
        mine(header)
    }

    /// Adds blocks with so many seconds between them.
    fn grow(&mut self, blocks: usize, seconds: u64) {
        for _ in 0..blocks {
            let next = self.next(|header| header.timestamp = header.timestamp - 14 + seconds);
            self.blocks.push((next, Vec::new()));
        }
    }

    fn head(&self) -> &SealedHeader {
        &self.blocks.last().unwrap().0
    }

    fn answer(&mut self, call: &UpstreamCall) -> Answer {
        self.asked.push(call.clone());
        let params: Vec<Value> = serde_json::from_str(&call.params).unwrap();
        let number = |index: usize| {
            let text = params[index].as_str().unwrap().trim_start_matches("0x");
            u64::from_str_radix(text, 16).unwrap()
        };
        let text = match call.method {
            "eth_blockNumber" => format!("\"{:#x}\"", self.head().number),
            "rootlight_getHeaders" => {
                let (first, count) = (number(0), number(1));
                let range = match self.habit {
                    Habit::Exact => first..first + count,
                    Habit::Generous => 0..u64::MAX,
                    Habit::Shifted => first + 1..first + 1 + count,
                    Habit::Short => first..first + count.min(3),
                    Habit::Forgetful => first.max(START)..first + count,
                };
                let wanted = self.blocks.iter().filter(|(header, _)| range.contains(&header.number));
                let uncles = |all: &'_ [SealedHeader]| if self.bare { 0 } else { all.len() };
                let wanted = wanted.map(|(header, all)| (header.header(), &all[..uncles(all)]));
                format!("\"{}\"", encode_headers(wanted))
            }
            method if method.starts_with("eth_getUncleByBlock") && self.family.is_some() => {
                let (family, errors) = self.family.as_mut().unwrap();
                let uncle = &ask(family, method, json!(params))["result"];
                if uncle.is_null() && *errors {
                    return Err(CallFailure::Rpc { code: -32000, message: "no such uncle".into() });
                }
                uncle.to_string()
            }
            _ => return Err(CallFailure::Rpc { code: -32601, message: "method not found".into() }),
        };
        Ok(RawValue::from_string(text).unwrap())
    }

    /// First number and count of each window that was asked for in binary.
    fn windows(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let asked = self.asked.iter().filter(|call| call.method == "rootlight_getHeaders");
        asked.map(|call| {
            let params: [String; 2] = serde_json::from_str(&call.params).unwrap();
            let [first, count] = params.map(|text| u64::from_str_radix(&text[2..], 16).unwrap());
            (first, count)
        })
    }

    /// A client that trusts the first block and asks nobody else.
    fn start(&self) -> Client {
        let base = &self.blocks.iter().find(|(header, _)| header.number == START).unwrap().0;
        let checkpoint =
            Checkpoint { number: START, hash: base.hash(), total_difficulty: Some(U256::from(1_000)) };
        // Trust is for what has no proof; it lifts no other refusal.
        let unproven = Unproven::Trust;
        let identity = Identity { upstreams: vec!["miner".into()], unproven, ..Identity::default() };
        let network = Arc::new(self.network.clone());
        Client::with_upstreams(network, checkpoint, identity, SyncOptions::default())
    }

    /// The same, synchronized at the time of the latest block.
    fn client(&mut self) -> Client {
        let mut client = self.start();
        self.follow(&mut client);
        client
    }

    /// Answers until nothing is asked any more.
    fn follow(&mut self, client: &mut Client) {
        let latest = self.blocks.iter().map(|(header, _)| header.timestamp).max();
        let now = Now { unix: latest.unwrap(), millis: 0 };
        for _ in 0..1_000 {
            let SyncStep::Fetch(calls) = client.sync_next(0, now) else { return };
            let answers = calls.iter().map(|call| self.answer(call)).collect();
            client.sync_feed(0, answers, now);
        }
        panic!("synchronization does not end");
    }
}

fn ask(client: &mut Client, method: &str, params: Value) -> Value {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut session = client.open(message.as_bytes());
    match client.step(&mut session, &|| false) {
        Step::Done(reply) => serde_json::from_str(&reply.unwrap().body).unwrap(),
        Step::Fetch(questions) => panic!("{questions:?}"),
    }
}

/// Everything verifies, and still no answer is given: there is too little work in some hours.
fn shows_too_little(mined: &mut Mined, most: u64) {
    let mut client = mined.client();
    assert!(client.sync().is_synced());
    assert_eq!(client.sync().chain().unwrap().head().hash(), mined.head().hash());
    let transaction = json!([format!("0x{}", "77".repeat(32))]);
    for (method, params) in [
        ("eth_blockNumber", json!([])),
        ("eth_getBlockByNumber", json!(["latest", false])),
        ("eth_getTransactionByHash", transaction),
    ] {
        let error = &ask(&mut client, method, params)["error"];
        assert_eq!(error["code"], -32002, "{error}");
        let words = error["message"].as_str().unwrap();
        assert!(words.contains("% of the work") && words.contains("ask other upstreams"), "{words}");
    }
    let low = ask(&mut client, "rootlight_syncStatus", json!([]))["result"]["lowWork"].clone();
    assert!(low["percent"].as_u64().is_some_and(|percent| percent <= most), "{low}");
}

#[test]
fn honest_work_is_enough() {
    let mut mined = Mined::new();
    mined.grow(300, 30);
    let mut client = mined.client();
    let head = format!("{:#x}", mined.head().number);
    assert_eq!(ask(&mut client, "eth_blockNumber", json!([]))["result"], head);
    assert_eq!(ask(&mut client, "rootlight_syncStatus", json!([]))["result"]["lowWork"], Value::Null);
    // Whoever has nothing below the checkpoint is asked once.
    let below = mined.windows().filter(|(first, _)| *first < START).count();
    assert_eq!(below, 1);
}

/// Servers give 256 headers at most; no more are asked for, above the checkpoint or below.
#[test]
fn windows_are_no_larger_than_servers_give() {
    let mut mined = Mined::from(START - 449, easy_network(&[], &[(Rule::Rskip110, u64::MAX)]));
    mined.grow(1_000, 14);
    let mut client = mined.start();
    client.set_batch(1_000);
    mined.follow(&mut client);
    assert_eq!(client.sync().chain().unwrap().head().hash(), mined.head().hash());
    assert_eq!(client.sync().chain().unwrap().view().lowest(), START - 449);
    assert_eq!(mined.windows().map(|(_, count)| count).max(), Some(256));
}

/// Headers taken in before those below the checkpoint were there are compared when they come: fork detection data
/// commit to them.
#[test]
fn fork_detection_data_are_compared_as_soon_as_they_can_be() {
    let mut mined = Mined::from(START - 449, easy_network(&[], &[]));
    mined.grow(449, 14);
    for _ in 0..5 {
        let parent = mined.head().clone();
        let mut header = child(&mined.network, &parent);
        header.difficulty = difficulty::expected(&header, &parent, &mined.network).into();
        // Seven bytes of earlier Bitcoin headers, no uncles, the number.
        let mut data = [9; 12];
        data[7..].copy_from_slice(&[&[0], &(header.number as u32).to_be_bytes()[..]].concat());
        mined.blocks.push((Bitcoin::for_header(data).mine(header), Vec::new()));
    }
    mined.habit = Habit::Forgetful;
    let mut client = mined.client();
    assert_eq!(client.sync().chain().unwrap().head().number, START + 5, "nothing to compare with");
    mined.habit = Habit::Exact;
    client.sync_poll();
    mined.follow(&mut client);
    assert_eq!(client.sync().chain().unwrap().head().number, START);
    let state = client.sync().upstreams().remove(0);
    let evidence = state.record.evidence.back().unwrap();
    assert!(evidence.lie && evidence.rule.contains("commitment"), "{state:?}");
}

/// A header that claims less difficulty than its parent's demands.
#[test]
fn a_header_of_low_difficulty_is_refused() {
    let mut mined = Mined::new();
    mined.grow(20, 30);
    let honest = mined.head().hash();
    let easy = child(&mined.network, mined.head());
    let easy = mine(Header { difficulty: (PROMISED / 2).into(), ..easy });
    mined.blocks.push((easy, Vec::new()));
    let client = mined.client();
    assert_eq!(client.sync().chain().unwrap().head().hash(), honest);
    let state = client.sync().upstreams().remove(0);
    let evidence = state.record.evidence.back().unwrap();
    assert!(evidence.lie && evidence.rule.contains("difficulty") && state.resting.is_some(), "{state:?}");
}

/// Difficulty falls by the rules where blocks are slow; whoever mines alone gets nowhere by that.
#[test]
fn a_chain_whose_difficulty_was_let_fall() {
    let mut mined = Mined::new();
    mined.grow(300, 100);
    assert!(mined.head().difficulty.value() <= U256::from(PROMISED - 290), "{:?}", mined.head().difficulty);
    shows_too_little(&mut mined, 30);
}

#[test]
fn an_old_chain_with_one_fresh_block() {
    let mut mined = Mined::new();
    mined.grow(300, 30);
    mined.grow(1, 7_200);
    shows_too_little(&mut mined, 0);
}

#[test]
fn surplus_work_that_was_saved_up() {
    let mut mined = Mined::new();
    mined.grow(250, 14);
    mined.grow(60, 130);
    shows_too_little(&mut mined, 49);
}

/// Times that go two hours ahead and back do not stretch the work.
#[test]
fn times_that_go_to_and_fro() {
    let mut mined = Mined::new();
    mined.grow(260, 30);
    let time = mined.head().timestamp;
    for step in 0..30_u64 {
        let next =
            mined.next(|header| header.timestamp = time + if step % 2 == 0 { 7_200 } else { 1 + step });
        mined.blocks.push((next, Vec::new()));
    }
    shows_too_little(&mut mined, 49);
}

/// A chain, and a header that its next block may name as an uncle.
fn family() -> (Mined, SealedHeader) {
    let mut mined = Mined::new();
    mined.grow(10, 14);
    let uncle = {
        let parent = mined.blocks[9].0.clone();
        let mut uncle = Header { gas_used: 1, ..child(&mined.network, &parent) };
        uncle.difficulty = difficulty::expected(&uncle, &parent, &mined.network).into();
        mine(uncle)
    };
    (mined, uncle)
}

/// A count of uncles is only what a miner says: work counts for uncles that are shown and proven.
#[test]
fn inflated_uncle_counts_add_nothing() {
    let (mut mined, uncle) = family();
    let none = mined.next(|header| header.uncle_count = 9);
    mined.blocks.push((none, Vec::new()));
    let list = [uncle.header().clone()];
    let one = mined.next(|header| (header.uncle_count, header.uncles_hash) = (9, uncles_hash(&list)));
    mined.blocks.push((one, vec![uncle.clone()]));
    let mut client = mined.client();
    let work: U256 = mined.blocks[1..].iter().map(|(header, _)| header.difficulty.value()).sum();
    let chain = client.sync().chain().unwrap();
    let expected = U256::from(1_000) + work + uncle.difficulty.value();
    assert_eq!(chain.total_difficulty(&mined.head().hash()), Some(expected));
    for (number, proven) in [(START + 11, "0x0"), (START + 12, "0x1")] {
        let count = ask(&mut client, "eth_getUncleCountByBlockNumber", json!([format!("{number:#x}")]));
        assert_eq!(count["result"], proven, "{count}");
    }
    // Without the list, no more is asked for than a block can have.
    let absurd =
        mined.next(|header| (header.uncle_count, header.uncles_hash) = (1_000_000, uncles_hash(&list)));
    mined.blocks.push((absurd, Vec::new()));
    mined.asked.clear();
    let client = mined.client();
    assert_eq!(
        client.sync().chain().unwrap().head().hash(),
        mined.head().hash(),
        "{:?}",
        client.sync().upstreams()
    );
    let questions = mined.asked.iter().filter(|call| call.method.contains("Uncle")).count();
    assert!((1..=30).contains(&questions), "{questions}");
    assert_eq!(client.sync().chain().unwrap().total_difficulty(&mined.head().hash()), None);
}

/// An answer with more headers than were asked for is read no further; without another form there is no chain.
#[test]
fn more_headers_than_were_asked_for() {
    let mut mined = Mined::new();
    mined.grow(5, 30);
    mined.habit = Habit::Generous;
    let client = mined.client();
    assert!(client.sync().chain().is_none() && !client.sync().is_synced());
    assert_eq!(client.sync().upstreams()[0].can.headers, Some(false));
    assert!(
        mined.asked.iter().any(|call| call.method == "eth_getBlockByNumber"),
        "asked for in another form"
    );
}

/// `false` at a fresh head only: not before the end, nor with a higher block announced, nor when no block has come for
/// five minutes.
#[test]
fn whether_the_head_is_current() {
    let mut mined = Mined::new();
    mined.grow(6, 30);
    let time = mined.head().timestamp;
    let mut client = mined.start();
    client.set_batch(2);
    let syncing = |client: &mut Client| ask(client, "eth_syncing", json!([]))["result"].clone();
    let mut steps = 0;
    let now = Now { unix: time, millis: 0 };
    while let SyncStep::Fetch(calls) = client.sync_next(0, now) {
        assert!(syncing(&mut client).is_object(), "{steps}");
        assert_eq!(ask(&mut client, "rootlight_syncStatus", json!([]))["result"]["synced"], false);
        let error = ask(&mut client, "eth_blockNumber", json!([]))["error"].clone();
        assert!(error["message"].as_str().unwrap().contains("still synchronizing"), "{error}");
        let answers = calls.iter().map(|call| mined.answer(call)).collect();
        client.sync_feed(0, answers, now);
        steps += 1;
    }
    assert!(steps > 4 && client.sync().is_synced());
    for (unix, fresh) in [(time, true), (time + 300, true), (time + 301, false), (time, true)] {
        client.sync_next(0, Now { unix, millis: 1 });
        let told = syncing(&mut client);
        assert_eq!(told == false, fresh, "{told}");
        let stale = ask(&mut client, "rootlight_syncStatus", json!([]))["result"]["stale"].clone();
        assert_eq!(stale.is_null(), fresh, "{stale}");
    }
    // Where no rule bounds times, blocks have no age.
    let mut network = easy_network(&[], &[(Rule::Rskip110, u64::MAX)]);
    network.params.future_bound = 0;
    let mut untimed = Mined::from(START, network);
    let mut timeless = untimed.client();
    timeless.sync_next(0, Now { unix: time + 10_000, millis: 1 });
    assert_eq!(syncing(&mut timeless), false);
    client.sync_poll();
    let SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("due") };
    assert_eq!(calls[0].method, "eth_blockNumber");
    let higher = RawValue::from_string(format!("\"{:#x}\"", mined.head().number + 4)).unwrap();
    client.sync_feed(0, vec![Ok(higher)], now);
    let told = syncing(&mut client);
    assert_eq!((&told["currentBlock"], &told["highestBlock"]), (&json!("0x138e"), &json!("0x1392")));
}

/// Where anybody can afford the work, the level says so.
#[test]
fn testnet_work_is_called_that() {
    for (rules, level) in [(&[][..], "verified"), (&[(Rule::Rskip97, u64::MAX)], "verified (testnet work)")] {
        let mut mined = Mined::under(rules);
        mined.grow(3, 30);
        let mut client = mined.client();
        assert_eq!(ask(&mut client, "rootlight_verification", json!([]))["result"]["level"], level);
    }
}

/// Headers of other heights are not those asked for; what a short answer lacks is asked for in another form.
#[test]
fn binary_answers_that_are_shifted_or_short() {
    for (habit, reached) in [(Habit::Shifted, None), (Habit::Short, Some(START + 3))] {
        let mut mined = Mined::new();
        mined.grow(10, 30);
        mined.habit = habit;
        let client = mined.client();
        assert_eq!(client.sync().chain().map(|chain| chain.head().number), reached);
        let state = client.sync().upstreams().remove(0);
        assert!(state.record.lies == 0 && state.can.headers == Some(true), "{state:?}");
        let form = format!(r#"["{:#x}",false]"#, reached.map_or(START, |number| number + 1));
        assert!(mined.asked.iter().any(|call| call.method == "eth_getBlockByNumber" && call.params == form));
    }
}

/// No rule ties a header's count of uncles to its list: at last all places are asked for. Nobody is blamed for having
/// none to give.
#[test]
fn uncles_that_the_header_does_not_count() {
    for (served, errors) in [(true, false), (true, true), (false, true)] {
        let (mut mined, uncle) = family();
        let list = [uncle.header().clone()];
        let one = mined.next(|header| header.uncles_hash = uncles_hash(&list));
        mined.blocks.push((one, vec![uncle]));
        let head = mined.head().hash();
        let total = |client: &Client| client.sync().chain().unwrap().total_difficulty(&head);
        let whole = mined.client();
        let expected = total(&whole);
        assert!(expected.is_some());
        (mined.bare, mined.family) = (true, served.then_some((whole, errors)));
        let client = mined.client();
        assert_eq!(total(&client), expected.filter(|_| served), "{served} {errors}");
        let state = client.sync().upstreams().remove(0);
        assert!(state.record.lies == 0 && state.resting.is_none(), "{state:?}");
        assert!(client.sync().is_settled());
        let mut client = client;
        let told = ask(&mut client, "rootlight_verification", json!([]))["result"]["unclesProven"].clone();
        assert_eq!(told, served);
    }
}

/// False uncles in a binary answer are a lie, named; an uncle that counts twice is not counted, and noted.
#[test]
fn uncles_that_are_false_or_used_before() {
    let (mut mined, uncle) = family();
    let list = [uncle.header().clone()];
    let one = mined.next(|header| (header.uncle_count, header.uncles_hash) = (1, uncles_hash(&list)));
    let other = mined.blocks[3].0.clone();
    mined.blocks.push((one, vec![other]));
    let client = mined.client();
    let record = client.sync().upstreams().remove(0).record;
    let told =
        record.evidence.iter().any(|evidence| evidence.lie && evidence.rule.contains("uncles of block 5011"));
    assert!(record.lies == 1 && told, "{record:?}");
    assert_eq!(client.sync().chain().unwrap().total_difficulty(&mined.head().hash()), None);

    mined.blocks.last_mut().unwrap().1 = vec![uncle.clone()];
    let again = mined.next(|header| (header.uncle_count, header.uncles_hash) = (1, uncles_hash(&list)));
    mined.blocks.push((again, vec![uncle]));
    let client = mined.client();
    let chain = client.sync().chain().unwrap();
    assert!(chain.total_difficulty(&mined.blocks[11].0.hash()).is_some());
    assert_eq!(chain.total_difficulty(&mined.head().hash()), None);
    let record = client.sync().upstreams().remove(0).record;
    let noted = record.evidence.back().unwrap();
    assert!(noted.rule.contains("already an uncle") && !noted.lie && record.demerits >= 8, "{record:?}");
}
