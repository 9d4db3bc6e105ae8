//! A client that learns Bitcoin's chain from upstreams that are Rootlights.

use alloc::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;

use super::{HeaderSync, SyncOptions, SyncStep, phase::Phase};
use crate::{
    consensus::{
        Checkpoint, Network,
        bitcoin::{
            BitcoinChain, BitcoinHeader, BitcoinNetwork, CoinbaseBytes, CoinbaseProof, CoinbaseProofBuf,
            HEADER_LEN,
            coinbase_proof_test::{block, coinbase, tag},
            testing::{mine_on, mine_with_root},
        },
    },
    light::{
        Now, RequestFailure, UpstreamRequest, UpstreamResponse,
        bitcoin::{
            BitcoinFollower, decode_coinbases, encode_bitcoin_headers, encode_coinbase_proofs,
            encode_coinbases,
        },
    },
    types::B256,
};

pub(super) const START: u32 = 1_700_000_000;
pub(super) const NOW: u64 = 2_000_000_000;

/// A client with as many upstreams, which follows Bitcoin's chain by them.
pub(super) struct Client {
    pub(super) sync: HeaderSync,
    pub(super) millis: u64,
}

impl Client {
    pub(super) fn new(upstreams: usize) -> Self {
        let network = Network::regtest();
        let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
        let options = SyncOptions::default();
        let mut sync = HeaderSync::with_upstreams(Arc::new(network), checkpoint, upstreams, options);
        sync.follow_bitcoin_of_upstreams(Now::default());
        Self { sync, millis: 0 }
    }

    /// Asks an upstream for Bitcoin's chain until it is asked for something else; returns the requests.
    pub(super) fn ask(
        &mut self,
        upstream: usize,
        mut answer: impl FnMut(&UpstreamRequest) -> UpstreamResponse,
    ) -> Vec<String> {
        let mut asked = Vec::new();
        // The Rootstock chain is not what is tested.
        self.sync.peers[upstream].phase = Phase::Idle(u64::MAX);
        loop {
            let now = Now { unix: NOW, millis: self.millis };
            let SyncStep::Fetch(requests) = self.sync.next(upstream, now) else { return asked };
            let Some(name) = requests[0].method.strip_prefix("rootlight_getBitcoin") else {
                return asked;
            };
            let request = &requests[0];
            asked.push(format!("{name}{}", request.params));
            let again = self.sync.next(upstream, now);
            assert!(matches!(again, SyncStep::Fetch(again) if again == requests), "until it is answered");
            self.sync.feed(upstream, vec![answer(request)], now);
            assert!(asked.len() < 50, "{asked:?}");
        }
    }

    pub(super) fn tip(&self) -> u32 {
        self.sync.bitcoin().unwrap().chain().tip().height
    }
}

/// A Rootlight with Bitcoin's chain.
pub(super) struct Server(pub(super) BitcoinFollower);

/// A Bitcoin block with a tag in its coinbase, and the branch of that.
type Block = ([u8; HEADER_LEN], Vec<u8>, Vec<u8>);

/// Mines blocks above a height, whose coinbases state their heights.
fn mine_stated(below: u32, mut previous: B256, mut time: u32, blocks: u32) -> Vec<Block> {
    let next = |height: u32| {
        let stated = [&[3], &height.to_le_bytes()[..3]].concat();
        let bytes = coinbase(&stated, &[&[9; 90], &tag(&[height as u8; 32])], false);
        let (header, branch) = block(&bytes, 5);
        // No two branches have the same blocks.
        time += 690 + blocks;
        let root = BitcoinHeader::from(&header).merkle_root();
        let header = mine_with_root(previous, root, time, BitcoinNetwork::REGTEST.limit);
        previous = BitcoinHeader::from(&header).hash();
        (header, bytes, branch)
    };
    (below + 1..=below + blocks).map(next).collect()
}

/// Headers above a height, and the newest 80 blocks, whose coinbases state their heights.
fn mine_above(below: u32, blocks: usize) -> (Vec<[u8; HEADER_LEN]>, Vec<Block>) {
    let BitcoinNetwork { checkpoint, limit, .. } = BitcoinNetwork::REGTEST;
    let mut headers = mine_on(checkpoint.hash, 0, START, 600, limit, blocks - 80);
    let newest = BitcoinHeader::from(headers.last().unwrap());
    let stated = mine_stated(below + blocks as u32 - 80, newest.hash(), newest.time(), 80);
    headers.extend(stated.iter().map(|(header, ..)| *header));
    (headers, stated)
}

impl Server {
    /// A server with as many blocks above block 0. The newest coinbases are there if a client needs one to begin.
    pub(super) fn new(blocks: usize) -> Self {
        let BitcoinNetwork { checkpoint, limit, .. } = BitcoinNetwork::REGTEST;
        if blocks < 4_032 {
            return Self::of(&mine_on(checkpoint.hash, 0, START, 600, limit, blocks));
        }
        let (headers, stated) = mine_above(0, blocks);
        let mut server = Self::of(&headers);
        server.show(&stated);
        server
    }

    /// A server that says that true blocks are that much higher.
    fn higher(blocks: usize, by: u32) -> Self {
        let (headers, stated) = mine_above(0, blocks);
        let chain = BitcoinChain::begin(BitcoinNetwork::REGTEST, 1 + by, &headers, NOW).unwrap();
        let mut server = Self(BitcoinFollower::resume(chain));
        server.show(&stated);
        server
    }

    /// Keeps the coinbases of the newest blocks.
    fn show(&mut self, newest: &[Block]) {
        let lowest = self.0.chain().tip().height + 1 - newest.len() as u32;
        for (height, (_, bytes, branch)) in (lowest..).zip(newest) {
            let proof = CoinbaseProof { coinbase: CoinbaseBytes::Whole(bytes), branch };
            self.0.insert_coinbase_to_serve(height, &proof).unwrap();
        }
    }

    pub(super) fn of(headers: &[[u8; HEADER_LEN]]) -> Self {
        let mut follower = BitcoinFollower::new(BitcoinNetwork::REGTEST);
        follower.insert(headers, NOW).unwrap();
        Self(follower)
    }

    /// Mines blocks with a tag in their coinbases on a block.
    pub(super) fn mine(&mut self, parent: u32, blocks: u32) {
        let parent = self.0.chain().at(parent).unwrap();
        let mined = mine_stated(parent.height, parent.hash, parent.time, blocks);
        let headers: Vec<_> = mined.iter().map(|(header, ..)| *header).collect();
        self.0.insert(&headers, NOW).unwrap();
        self.show(&mined);
    }

    pub(super) fn answer(&self, request: &UpstreamRequest) -> UpstreamResponse {
        let [from, count]: [String; 2] = serde_json::from_str(&request.params).unwrap();
        let number = |text: &str| u32::from_str_radix(&text[2..], 16).unwrap();
        let (from, count) = (number(&from), number(&count));
        respond(match request.method {
            "rootlight_getBitcoinHeaders" => encode_bitcoin_headers(self.0.chain(), from, count),
            _ => encode_coinbases(&self.0, from, count),
        })
    }
}

fn respond(text: String) -> UpstreamResponse {
    Ok(RawValue::from_string(json!(text).to_string()).unwrap())
}

pub(super) const fn minutes(count: u64) -> u64 {
    count * 60_000
}

#[test]
fn headers_and_coinbases_are_learnt_from_an_upstream() {
    let (mut server, mut client) = (Server::new(100), Client::new(1));
    server.mine(100, 80);
    let asked = client.ask(0, |request| server.answer(request));
    assert_eq!(
        asked,
        [r#"Headers["0x0","0x0"]"#, r#"Headers["0x1","0x7e0"]"#, r#"Tags["0x67","0x4e"]"#],
        "the height, the headers, and the coinbases of the newest 78 blocks"
    );
    let follower = client.sync.bitcoin().unwrap();
    assert_eq!(follower.chain().tip(), server.0.chain().tip());
    assert_eq!((follower.chain().start().height, follower.coinbases().len()), (0, 78));
    // The source is not asked again at once; later it is asked for new blocks.
    assert_eq!(client.ask(0, |request| server.answer(request)).len(), 0);
    client.millis = minutes(1);
    assert_eq!(client.ask(0, |request| server.answer(request)), [r#"Headers["0xb5","0x7e0"]"#]);
    server.mine(180, 2);
    client.millis = minutes(2);
    let asked = client.ask(0, |request| server.answer(request));
    assert_eq!(asked, [r#"Headers["0xb5","0x7e0"]"#, r#"Tags["0xb5","0x2"]"#]);
    assert_eq!((client.tip(), client.sync.bitcoin().unwrap().missing_coinbases().len()), (182, 0));
    // A branch that leaves five blocks below the tip.
    server.mine(177, 6);
    client.millis = minutes(3);
    let asked = client.ask(0, |request| server.answer(request));
    assert_eq!(asked.len(), 4, "what does not link is begun anew: {asked:?}");
    assert_eq!(client.sync.bitcoin().unwrap().chain().tip(), server.0.chain().tip());
    assert_eq!(client.sync.bitcoin().unwrap().missing_coinbases().len(), 0);
}

#[test]
fn a_client_begins_two_changes_of_the_target_below_the_tip() {
    let cases = [
        (2_015, 0, 1),
        (2_016, 0, 2),
        (4_031, 0, 2),
        (4_032, 2_016, 2),
        (6_047, 2_016, 2),
        (6_048, 4_032, 2),
    ];
    for (blocks, start, pages) in cases {
        let (server, mut client) = (Server::new(blocks), Client::new(1));
        let asked = client.ask(0, |request| server.answer(request));
        let headers = asked.iter().filter(|asked| asked.starts_with("Headers")).count();
        // A page that is full is followed by another.
        assert_eq!(headers, 1 + pages, "{blocks}: {asked:?}");
        let chain = client.sync.bitcoin().unwrap().chain();
        assert_eq!((chain.tip(), chain.start().height), (server.0.chain().tip(), start), "{blocks}");
    }
}

#[test]
fn the_heavier_of_two_chains_is_followed() {
    let (mut one, mut other, mut client) = (Server::new(100), Server::new(100), Client::new(2));
    one.mine(90, 20);
    other.mine(90, 15);
    for millis in 0..3 {
        client.millis = minutes(millis);
        client.ask(0, |request| one.answer(request));
        assert_eq!(client.sync.bitcoin().unwrap().chain().tip(), one.0.chain().tip());
        client.ask(1, |request| other.answer(request));
        // The other one is followed once it is heavier.
        let heavier = if millis < 2 { &one } else { &other };
        assert_eq!(client.sync.bitcoin().unwrap().chain().tip(), heavier.0.chain().tip(), "{millis}");
        if millis == 1 {
            other.mine(105, 9);
        }
    }
    assert!(client.sync.upstreams().iter().all(|state| state.record.lies == 0));
}

/// Two upstreams that are asked at once show the same new blocks.
#[test]
fn headers_that_another_upstream_has_shown_are_skipped() {
    let (mut server, mut client) = (Server::new(100), Client::new(2));
    for upstream in [0, 1] {
        client.ask(upstream, |request| server.answer(request));
    }
    server.mine(100, 2);
    client.millis = minutes(1);
    let now = Now { unix: NOW, millis: client.millis };
    let both = [0, 1].map(|upstream| client.sync.next(upstream, now));
    for (upstream, step) in both.into_iter().enumerate() {
        let SyncStep::Fetch(asked) = step else { unreachable!() };
        client.sync.feed(upstream, vec![server.answer(&asked[0])], now);
    }
    assert_eq!(client.tip(), 102);
    for upstream in [0, 1] {
        let asked = client.ask(upstream, |request| server.answer(request));
        assert!(
            asked.iter().all(|asked| asked.starts_with("Tags")),
            "no header is asked for again: {asked:?}"
        );
    }
}

#[test]
fn an_upstream_that_repeats_headers_is_left_alone() {
    let (server, mut client) = (Server::new(2_100), Client::new(1));
    client.ask(0, |request| server.answer(request));
    client.millis = minutes(1);
    let known = || respond(encode_bitcoin_headers(server.0.chain(), 1, 2_016));
    let asked = client.ask(0, |request| match request.method {
        "rootlight_getBitcoinHeaders" => known(),
        _ => server.answer(request),
    });
    assert_eq!(asked, [r#"Headers["0x835","0x7e0"]"#], "a page without new headers is the last one");
    assert_eq!(client.tip(), 2_100);
}

/// Coinbases are missing until another upstream shows them.
#[test]
fn an_upstream_without_coinbases_is_asked_for_them_once_a_tip() {
    let (mut server, mut client) = (Server::new(100), Client::new(1));
    let asked = |client: &mut Client, server: &Server| {
        let asked = client.ask(0, |request| server.answer(request));
        client.millis += minutes(1);
        asked.iter().filter(|asked| asked.starts_with("Tags")).count()
    };
    assert_eq!(asked(&mut client, &server), 1);
    assert_eq!(asked(&mut client, &server), 0);
    server.mine(100, 1);
    assert_eq!(asked(&mut client, &server), 1);
    assert!(!client.sync.bitcoin().unwrap().missing_coinbases().is_empty());
}

/// A server's heights are its own statement: blocks far above the client's tip are not more work for that.
#[test]
fn a_chain_at_heights_far_above_needs_more_work_too() {
    let (honest, mut client) = (Server::new(4_100), Client::new(2));
    client.ask(0, |request| honest.answer(request));
    for blocks in [2_016, 2_017] {
        let below = 100 * 2_016;
        let (headers, stated) = mine_above(below, blocks);
        let far = BitcoinChain::begin(BitcoinNetwork::REGTEST, below + 1, &headers, NOW).unwrap();
        let mut far = Server(BitcoinFollower::resume(far));
        far.show(&stated);
        client.millis += minutes(1);
        let asked = client.ask(1, |request| far.answer(request));
        assert!(asked.len() > 2, "{asked:?}");
        // The client counts its own newest period.
        let followed = if blocks == 2_016 { &honest } else { &far };
        assert_eq!(client.tip(), followed.0.chain().tip().height);
    }
}

/// The coinbases of a server's answer, changed.
fn with_coinbases(
    server: &Server,
    request: &UpstreamRequest,
    change: impl Fn(u32, CoinbaseProofBuf) -> Option<CoinbaseProofBuf>,
) -> UpstreamResponse {
    let answer = server.answer(request)?;
    if request.method != "rootlight_getBitcoinTags" {
        return Ok(answer);
    }
    let [from, count]: [String; 2] = serde_json::from_str(&request.params).unwrap();
    let number = |text: &str| u32::from_str_radix(&text[2..], 16).unwrap();
    let text: String = serde_json::from_str(answer.get()).unwrap();
    let shown = decode_coinbases(&text, number(&count) as usize).unwrap();
    let changed: Vec<_> =
        (number(&from)..).zip(shown).map(|(height, proof)| change(height, proof?)).collect();
    respond(encode_coinbase_proofs(changed.iter().map(Option::as_ref)))
}

/// An upstream that is asked first shows Bitcoin's true headers, and says that they are higher. If these heights were followed,
/// honest upstreams would be asked for headers above them, and would have none.
#[test]
fn true_headers_at_false_heights_are_not_followed() {
    let honest = Server::new(4_100);
    let withheld = |_, _| None;
    let cut = |_, proof: CoinbaseProofBuf| Some(proof.as_proof().shortened(7));
    let as_they_are = |_, proof| Some(proof);
    let forged = |height: u32, proof: CoinbaseProofBuf| {
        let mut coinbase = proof.coinbase;
        coinbase.get_mut(43..46)?.copy_from_slice(&height.to_le_bytes()[..3]);
        Some(CoinbaseProofBuf { coinbase, ..proof })
    };
    type Change = fn(u32, CoinbaseProofBuf) -> Option<CoinbaseProofBuf>;
    let cases: [(Change, u32); 4] = [(withheld, 0), (cut, 0), (as_they_are, 1), (forged, 1)];
    for (case, (change, lies)) in cases.into_iter().enumerate() {
        for by in [2_016, 10 * 2_016] {
            let (liar, mut client) = (Server::higher(4_100, by), Client::new(2));
            let asked = client.ask(0, |request| with_coinbases(&liar, request, change));
            let lied = client.sync.upstreams()[0].record.lies;
            assert_eq!((client.tip(), lied), (0, lies), "case {case}: {asked:?}");
            client.ask(1, |request| honest.answer(request));
            let follower = client.sync.bitcoin().unwrap();
            assert_eq!(follower.chain().tip(), honest.0.chain().tip(), "case {case}");
            assert!(follower.missing_coinbases().is_empty(), "case {case}");
            assert_eq!(client.sync.upstreams()[1].record.lies, 0, "case {case}");
        }
    }
}

#[test]
fn upstreams_without_bitcoins_chain_are_asked_much_later() {
    let error = || Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() });
    let refused = || Err(RequestFailure::Rpc { code: -32000, message: "the method is not available".into() });
    let null = || Ok(RawValue::from_string("null".into()).unwrap());
    let number = || Ok(RawValue::from_string("5".into()).unwrap());
    for none in [error, refused, null, number] as [fn() -> UpstreamResponse; 4] {
        let mut client = Client::new(2);
        assert_eq!(client.ask(0, |_| none()).len(), 1);
        client.millis = minutes(9);
        assert_eq!(client.ask(0, |_| none()).len(), 0);
        let mut server = Server::new(10);
        client.ask(1, |request| server.answer(request));
        assert_eq!(client.tip(), 10, "another one is asked");
        // The other one is silent, and this one follows Bitcoin's chain by now.
        server.mine(10, 1);
        client.millis = minutes(10);
        client.ask(0, |request| server.answer(request));
        assert_eq!((client.tip(), client.sync.upstreams()[0].record.lies), (11, 0));
    }
}

/// No upstream had Bitcoin's chain when the client started: nothing dated its start, and answers had no mark.
#[test]
fn bitcoins_chain_is_followed_once_an_upstream_has_it() {
    let (server, mut client) = (Server::new(10), Client::new(2));
    for minute in [0, 10, 20] {
        client.millis = minutes(minute);
        for upstream in [0, 1] {
            assert_eq!(client.ask(upstream, |_| unknown()).len(), 1, "{minute}");
        }
        assert!(client.sync.bitcoin().is_none());
    }
    // A user comes back to the page.
    client.sync.poll();
    client.ask(1, |request| server.answer(request));
    assert_eq!(client.tip(), 10);
    assert_eq!(client.ask(0, |_| unknown()).len(), 1);
    assert_eq!(client.tip(), 10, "one that has none changes nothing");
    client.millis = minutes(21);
    assert_eq!(client.ask(1, |request| server.answer(request)), [r#"Headers["0xb","0x7e0"]"#]);
}

#[test]
fn a_silent_upstream_is_asked_later() {
    let (server, mut client) = (Server::new(10), Client::new(1));
    let silence = || Err(RequestFailure::Transport("gone".into()));
    assert_eq!(client.ask(0, |_| silence()).len(), 1);
    assert_eq!(client.ask(0, |_| silence()).len(), 0);
    client.millis = minutes(1);
    client.ask(0, |request| server.answer(request));
    assert_eq!(client.tip(), 10);
}

/// A client that starts by window: 40 headers, 10 if their work is dated.
fn by_window(upstreams: usize) -> HeaderSync {
    let network = r#"{
        "name": "own", "params": { "futureBound": 60 }, "rules": { "rskip97": 0 },
        "workStart": { "difficulty": 4, "from": 0, "headers": 40 }
    }"#;
    let network = Network::from_json(network).unwrap();
    let work = network.start_by_work().unwrap();
    let mut sync = HeaderSync::by_window(Arc::new(network), work, upstreams, SyncOptions::default());
    sync.follow_bitcoin_of_upstreams(Now::default());
    sync
}

/// The next requests to an upstream.
fn requests(sync: &mut HeaderSync, upstream: usize, millis: u64) -> Vec<String> {
    match sync.next(upstream, Now { unix: NOW, millis }) {
        SyncStep::Fetch(requests) => {
            requests.iter().map(|request| format!("{}{}", request.method, request.params)).collect()
        }
        SyncStep::Wait(_) => Vec::new(),
    }
}

/// Whether an upstream has Bitcoin's chain.
const HAS_BITCOIN: &str = r#"rootlight_getBitcoinHeaders["0x0","0x0"]"#;
const HEIGHT: &str = "eth_blockNumber[]";

pub(super) fn unknown() -> UpstreamResponse {
    Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() })
}

#[test]
fn without_bitcoins_chain_a_start_is_undated_at_once() {
    let mut sync = by_window(2);
    let height = || respond("0x64".into());
    let from = |number: u32| format!(r#"rootlight_getHeaders["{number:#x}","0x1"]"#);
    let now = Now::default();
    assert_eq!(requests(&mut sync, 0, 0), [HEIGHT, HAS_BITCOIN]);
    sync.feed(0, vec![height(), unknown()], now);
    // The other upstream may still have it.
    assert_eq!(requests(&mut sync, 0, 0), [from(90)]);
    assert_eq!(requests(&mut sync, 1, 0), [HEIGHT, HAS_BITCOIN]);
    assert!(sync.bitcoin().is_some());
    sync.feed(1, vec![height(), unknown()], now);
    assert!(sync.bitcoin().is_none());
    assert_eq!(requests(&mut sync, 1, 0), [from(60)], "its height is known");
    assert_eq!(requests(&mut sync, 0, 0), [HEIGHT]);
    sync.feed(0, vec![height()], now);
    assert_eq!(requests(&mut sync, 0, 0), [from(60)]);
}

#[test]
fn bitcoins_chain_is_asked_for_beside_other_requests() {
    let (server, mut client) = (Server::new(10), Client::new(1));
    let base = "rootlight_getHeaders[\"0x0\",\"0x1\"]";
    assert_eq!(requests(&mut client.sync, 0, 0), [base, HAS_BITCOIN]);
    assert_eq!(requests(&mut client.sync, 0, 0), [base, HAS_BITCOIN], "until both are answered");
    let now = Now { unix: NOW, millis: 0 };
    let SyncStep::Fetch(asked) = client.sync.next(0, now) else { unreachable!() };
    client.sync.feed(0, vec![unknown(), server.answer(&asked[1])], now);
    // The next requests about Bitcoin's chain go out together with those about the other chain.
    let asked = requests(&mut client.sync, 0, 0);
    assert_eq!(
        (asked.len(), asked[1].as_str()),
        (2, r#"rootlight_getBitcoinHeaders["0x1","0x7e0"]"#),
        "{asked:?}"
    );
}

#[test]
fn an_upstream_that_is_left_alone_is_not_asked_for_bitcoins_chain() {
    let mut client = Client::new(1);
    let pause = || Err(RequestFailure::Busy { seconds: Some(120) });
    let asked = requests(&mut client.sync, 0, 0);
    assert_eq!(asked.len(), 2);
    client.sync.feed(0, vec![pause(), pause()], Now { unix: NOW, millis: 0 });
    for millis in [0, minutes(1), minutes(2) - 1] {
        assert_eq!(requests(&mut client.sync, 0, millis), [""; 0], "{millis}");
    }
    assert_eq!(requests(&mut client.sync, 0, minutes(2)), asked);
}

#[test]
fn liars_are_noted_and_not_asked_again() {
    let honest = Server::new(2_100);
    let lies: [fn(&Server, &UpstreamRequest, usize) -> UpstreamResponse; 4] = [
        |_, _, _| respond("nonsense".into()),
        // A tip whose headers it does not have: a chain that nothing links to the built-in block has at least a period.
        |server, request, step| match step {
            0 | 1 => Server::new(6_100).answer(request),
            _ => server.answer(request),
        },
        // Headers that are cut off, and a changed Merkle root, after the heights and the hash of the block below.
        |server, request, step| changed(server.answer(request), step, |text| text[..400].to_owned()),
        |server, request, step| {
            changed(server.answer(request), step, |text| {
                format!("{}{}", &text[..60], text[60..].replacen("AAAA", "AAAB", 1))
            })
        },
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let (mut client, mut step) = (Client::new(2), 0);
        client.ask(0, |request| {
            step += 1;
            lie(&honest, request, step - 1)
        });
        let lied = client.sync.upstreams()[0].record.lies;
        assert_eq!((client.tip(), lied), (0, 1), "lie {number}");
        client.millis = minutes(9);
        assert_eq!(client.ask(0, |request| honest.answer(request)).len(), 0);
        client.ask(1, |request| honest.answer(request));
        assert_eq!(client.tip(), 2_100);
    }
}

/// The second response of a server, changed.
fn changed(honest: UpstreamResponse, step: usize, change: fn(&str) -> String) -> UpstreamResponse {
    let text: String = serde_json::from_str(honest?.get()).unwrap();
    respond(if step == 1 { change(&text) } else { text })
}
