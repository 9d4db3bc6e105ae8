//! Random scenarios of a client that follows Bitcoin's chain: false Rootstock branches with dates of every kind, false
//! Bitcoin chains, uncles, deep reorganisations of Bitcoin, coinbases of all miners, and clients that start again with
//! what they stored. The environment variables are those of the other scenarios.

mod draw;
mod heights;
mod mine;
mod restart;
mod truth;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
    time::Instant,
};

use fastrand::Rng;
use serde_json::{Value, json};

use self::{
    draw::{Drawn, Grown},
    mine::{Block, START, network, shared},
    truth::{Classes, Dated, Known, Seen},
};
use crate::{
    consensus::{
        Checkpoint,
        bitcoin::{BitcoinChain, HEADER_LEN, Tag},
    },
    light::{BitcoinDates, ClientConfig, HeaderSync, Now, SyncOptions, bitcoin::BitcoinFollower},
    rpc::{
        Client,
        mined_chain::{Mined, ask},
        work_start_test::{Behavior, run},
    },
    types::B256,
};

/// Scenarios of an ordinary test run.
const SCENARIOS: u64 = 100;

/// Headers below the newest shared one at which a client with a trusted block starts.
const BELOW: usize = 150;

/// The share of the promised work, in percent, that an undated chain must show. Ordinary headers show 40 %, those after an
/// exit of half the merged miners 20 %.
const FLOOR: u64 = 25;

/// Age in seconds from which on Bitcoin's newest block is too old.
const OLD: u64 = 3 * 3_600;

/// Bitcoin's chain as an earlier run stored it.
fn stored() -> &'static BitcoinChain {
    static STORED: OnceLock<BitcoinChain> = OnceLock::new();
    STORED.get_or_init(|| {
        let mut chain = BitcoinChain::new(network().bitcoin.unwrap());
        for block in &shared().bitcoin {
            chain.insert(&block.header, u64::from(shared().time)).unwrap();
        }
        chain
    })
}

/// Results of all scenarios.
#[derive(Default)]
struct Tally {
    /// Starts by window: from the honest branch, from a false one that the rules allow, and none.
    honest: u64,
    false_ones: u64,
    none: u64,
    /// How often each verdict was given.
    verdicts: BTreeMap<String, u64>,
    /// Clients that started again with what they stored.
    restarted: u64,
    /// Evidence that was compared, and the sum of it.
    compared: u64,
    above: u64,
}

struct Scenario<'a> {
    seed: u64,
    drawn: Drawn,
    random: Rng,
    client: Client,
    known: Known,
    tags: HashMap<B256, Option<Tag>>,
    /// Clock in seconds, and milliseconds since the start.
    unix: u64,
    millis: u64,
    /// Bitcoin blocks of the scenario so far.
    grown: usize,
    /// Whether the client has seen a deep reorganisation of Bitcoin, and the tip at its last look.
    deep: bool,
    looked_at: B256,
    /// Whether the client has started again with what it stored.
    restarted: bool,
    tally: &'a mut Tally,
}

fn client(drawn: &Drawn) -> Client {
    let config =
        ClientConfig { upstreams: vec!["upstream".into(); drawn.upstreams.len()], ..ClientConfig::default() };
    let network = network().clone();
    if drawn.window {
        let work = network.start_by_work().unwrap();
        let options = SyncOptions { work_floor: FLOOR, ..SyncOptions::default() };
        let sync = HeaderSync::by_window(network, work, config.upstreams.len(), options);
        return Client::following(sync, config);
    }
    let headers = &shared().rootstock.headers;
    let trusted = &headers[headers.len() - 1 - BELOW];
    let checkpoint = Checkpoint { number: trusted.number, hash: trusted.hash(), total_difficulty: None };
    // The network promises more work than the chain shows.
    let options = SyncOptions { work_floor: 0, ..SyncOptions::default() };
    Client::with_upstreams(network, checkpoint, config, options)
}

impl<'a> Scenario<'a> {
    fn new(seed: u64, tally: &'a mut Tally) -> Self {
        let mut random = Rng::with_seed(seed);
        let drawn = draw::draw(&mut random);
        let client = client(&drawn);
        let mut sync = client.sync_mut();
        sync.follow_bitcoin(BitcoinFollower::resume(stored().clone()));
        sync.judge_windows_by(Arc::new(BitcoinDates::since(Now::default())));
        drop(sync);
        let tags = drawn.bitcoin.iter().map(|block| (block.hash, block.tag)).collect();
        let known = Known::base(&shared().bitcoin);
        let looked_at = known.tip();
        Self {
            seed,
            drawn,
            random,
            client,
            known,
            looked_at,
            tags,
            unix: 0,
            millis: 0,
            grown: 0,
            deep: false,
            restarted: false,
            tally,
        }
    }

    fn fail(&self, words: &str) -> ! {
        let Drawn { forged, first, schedule, sources, upstreams, window, .. } = &self.drawn;
        let sources: Vec<String> = sources
            .iter()
            .map(|source| {
                format!("{:?} withholds {} coinbases {} %", source.name, source.withholds, source.coinbases)
            })
            .collect();
        panic!(
            "seed {}: {:?} upstreams {upstreams:?} window {window} blocks {first} of {} sources {sources:#?}\n{words}",
            self.seed,
            forged.as_ref().map(|(forgery, _)| forgery),
            schedule.len() - 1
        );
    }

    fn now(&self) -> Now {
        Now { unix: self.unix, millis: self.millis }
    }

    /// The branches that the upstreams show, with their newest headers.
    fn branches(&self) -> Vec<(&Grown, u64)> {
        let forged = self.drawn.forged.as_ref().map(|(_, forged)| forged);
        let serves = |is_false: &bool| if *is_false { forged.unwrap() } else { &self.drawn.honest };
        let shown = self.drawn.upstreams.iter().map(serves);
        let head = |grown: &Grown| {
            let known = grown.mined.iter().rev().find(|mined| mined.on <= self.grown);
            known.map_or(shared().rootstock.head(), |mined| mined.header.number)
        };
        shown.map(|grown| (grown, head(grown))).collect()
    }

    /// Lets sources and upstreams show what there is after `grown` Bitcoin blocks.
    fn advance(&mut self, grown: usize, millis: u64) {
        self.grown = grown;
        self.unix = u64::from(self.drawn.schedule[grown]) + 600;
        self.show_bitcoin();
        let mut mined: Vec<Mined> = self
            .branches()
            .into_iter()
            .map(|(grown, head)| {
                let mut mined = Mined::from(START, (**network()).clone());
                let headers = grown.branch.headers.iter().take((head - START + 1) as usize);
                let uncle = |number| grown.branch.uncles.get(number).cloned();
                let with_uncles =
                    headers.map(|header| (header.clone(), uncle(&header.number).into_iter().collect()));
                mined.blocks = with_uncles.collect();
                mined
            })
            .collect();
        let mut ways: Vec<Behavior<'_>> = mined.iter_mut().map(Behavior::Answers).collect();
        run(&mut self.client, &mut ways, self.unix, self.millis, self.millis + millis);
        self.millis += millis;
        self.unix += millis / 1_000;
        self.look();
    }

    /// Each source shows headers in any order, and coinbases of those that the client then has.
    fn show_bitcoin(&mut self) {
        let sources = std::mem::take(&mut self.drawn.sources);
        for source in sources.iter().filter(|source| source.answers) {
            let top = shared().bitcoin.len() + self.grown;
            let shown = top - source.withholds.min(self.grown);
            let honest: Vec<_> =
                self.drawn.bitcoin[shared().bitcoin.len()..shown].iter().map(|block| block.header).collect();
            let first = self.random.bool();
            for turn in [first, !first] {
                if turn {
                    self.show_headers(&honest, true);
                    continue;
                }
                source.branches.iter().for_each(|branch| self.show_headers(&branch.headers, branch.valid));
            }
            self.show_coinbases(source);
        }
        self.drawn.sources = sources;
    }

    fn show_headers(&mut self, headers: &[[u8; HEADER_LEN]], valid: bool) {
        let unix = self.unix;
        self.feed(|follower| follower.insert(headers, unix).map(|_| ()));
        if valid {
            headers.iter().for_each(|header| self.known.add(header));
            self.look();
        }
    }

    /// Notes what the client sees of Bitcoin, unless it follows no chain yet. In a new run it looks from where the last
    /// one ended.
    fn look(&mut self) {
        if self.client.sync().is_synced() {
            self.deep |= self.known.removed(self.looked_at) >= 6;
            self.looked_at = self.known.tip();
        }
    }

    fn feed<E>(&mut self, update: impl FnOnce(&mut BitcoinFollower) -> Result<(), E>) {
        let now = self.now();
        self.client.bitcoin_feed(
            |follower| {
                // A source that is refused is asked again later.
                let _ = update(follower);
            },
            now,
        );
    }

    fn show_coinbases(&mut self, source: &draw::Source) {
        let wanted = self.client.sync().bitcoin().unwrap().missing_coinbases();
        let lowest = self.drawn.bitcoin[0].height;
        for height in wanted {
            let Some(block) = self.drawn.bitcoin.get((height - lowest) as usize).cloned() else { continue };
            if self.random.u64(..100) >= source.coinbases {
                continue;
            }
            let wrong = self.random.u64(..100) < source.wrong;
            if wrong {
                let other =
                    self.random.choice(&self.drawn.bitcoin[shared().bitcoin.len() - 9..]).unwrap().clone();
                let other = if other.height == height { self.drawn.bitcoin[3].clone() } else { other };
                self.feed(|follower| proven(follower, height, &other));
                continue;
            }
            self.feed(|follower| proven(follower, height, &block));
            let chain = self.known.heaviest();
            let is_there = chain.heights.contains_key(&block.hash);
            drop(chain);
            if is_there {
                self.known.show_coinbase(&block);
            }
        }
    }

    /// Checks that the client holds the heaviest chain of valid headers, and none that breaks a rule.
    fn check_bitcoin(&self) {
        let sync = self.client.sync();
        let chain = sync.bitcoin().unwrap().chain();
        let tip = chain.tip();
        if tip.hash != self.known.tip() {
            self.fail(&format!("Bitcoin's tip is {tip:?}"));
        }
        for source in &self.drawn.sources {
            for branch in source.branches.iter().filter(|branch| !branch.valid) {
                let hash = crate::consensus::bitcoin::double_sha256(&branch.headers[0]);
                if chain.height_of(&hash).is_some() {
                    self.fail("a false header is in the chain");
                }
            }
        }
    }

    /// Which branch the client's head is of, if it has one.
    fn followed(&self) -> Option<(&Grown, u64)> {
        let sync = self.client.sync();
        let head = sync.chain().filter(|_| sync.is_synced())?.head().hash();
        let all = [Some(&self.drawn.honest), self.drawn.forged.as_ref().map(|(_, forged)| forged)];
        let found = all.into_iter().flatten().find_map(|grown| {
            let mut headers = grown.branch.headers.iter().rev();
            headers.find(|header| header.hash() == head).map(|header| (grown, header.number))
        });
        Some(found.unwrap_or_else(|| self.fail("the head is of no branch")))
    }

    /// Checks that the client started by a window that is allowed, at the first look.
    fn check_start(&mut self) {
        let bitcoin = self.known.heaviest();
        let window = |(grown, head): &(&Grown, u64)| {
            let base = head - mine::WINDOW / 4;
            let lowest = START.max(base.saturating_sub(449));
            Seen { branch: &grown.branch, head: *head, base, lowest }.dated(&bitcoin, self.unix, 36)
        };
        let shown = self.branches();
        let verdicts: Vec<Dated> = shown.iter().map(window).collect();
        let followed = self.followed();
        let is_false = followed.is_some_and(|(grown, _)| !std::ptr::eq(grown, &self.drawn.honest));
        let of = |is_false: bool| {
            let place = self.drawn.upstreams.iter().position(|other| *other == is_false);
            place.map(|place| verdicts[place])
        };
        if verdicts.contains(&Dated::Unknown) {
            return;
        }
        let (honest, forged) = (of(false), of(true));
        let heavier = self.forged_is_heavier();
        match (followed.is_some(), is_false, honest, forged) {
            (false, _, Some(Dated::Enough(_)), _) => {
                let fault = self.client.sync().fault().map(ToString::to_string);
                self.fail(&format!("the honest window is not followed: {fault:?} {verdicts:?}"));
            }
            (true, false, Some(Dated::Low | Dated::Lags | Dated::Deep), _) => {
                self.fail("an honest window below the bounds is followed");
            }
            (true, true, None, Some(forged)) if !matches!(forged, Dated::Enough(_)) => {
                self.fail(&format!("a false window is followed: {forged:?}"));
            }
            (true, true, Some(Dated::Enough(own)), Some(forged)) if !heavier => match forged {
                Dated::Enough(other) if other >= own => {}
                _ => self.fail(&format!("a false window beats the honest one: {own} {forged:?}")),
            },
            _ => {}
        }
        let tally = match (followed.is_some(), is_false) {
            (false, _) => &mut self.tally.none,
            (true, false) => &mut self.tally.honest,
            (true, true) => &mut self.tally.false_ones,
        };
        *tally += 1;
    }

    /// Whether the false branch has as much work as the honest one, which decides once one of them is followed.
    fn forged_is_heavier(&self) -> bool {
        let count = |grown: &Grown| grown.mined.iter().filter(|mined| mined.on <= self.grown).count();
        self.drawn.forged.as_ref().is_some_and(|(_, forged)| count(forged) >= count(&self.drawn.honest))
    }

    /// Checks what the client says of its chain and of some blocks.
    fn check_answers(&mut self) {
        let Some((grown, head)) = self.followed() else { return };
        let (base, lowest) = {
            let sync = self.client.sync();
            (sync.checkpoint().number, sync.chain().unwrap().view().lowest())
        };
        let bitcoin = self.known.heaviest();
        // The client was asked some seconds before.
        if (OLD..OLD + 10).contains(&self.unix.saturating_sub(u64::from(bitcoin.time))) {
            return;
        }
        let seen = Seen { branch: &grown.branch, head, base, lowest };
        let (classes, verdict) = seen.verdict(&bitcoin, &self.tags, self.unix);
        let verdict = if self.deep && verdict == "held" { "weak" } else { verdict };
        let dated = seen.dated(&bitcoin, self.unix, 36);
        if self.restarted && !matches!(dated, Dated::Enough(_) | Dated::Unknown) {
            self.fail(&format!("a window of an earlier run is followed: {dated:?}"));
        }
        let numbers: Vec<u64> = {
            let random = &mut Rng::with_seed(self.seed);
            let newest = head.saturating_sub(12);
            vec![head, random.u64(newest..=head), random.u64(base + 1..=head), random.u64(base + 1..=head)]
        };
        let above: Vec<_> = numbers.iter().map(|number| seen.above(&bitcoin, *number)).collect();
        let (tip, judged) = (bitcoin.tip, bitcoin.judged);
        let status = ask(&mut self.client, "rootlight_syncStatus", json!([]))["result"]["bitcoin"].clone();
        let reported = told_classes(&status["tags"]);
        if status["verdict"] != verdict || reported != classes || status["tip"]["height"] != tip {
            self.fail(&format!("expected {verdict} {classes:?} at {judged} of {tip}, {dated:?}: {status:#}"));
        }
        *self.tally.verdicts.entry(verdict.into()).or_default() += 1;
        for (number, above) in numbers.iter().zip(above) {
            self.check_block(*number, dated, &above);
        }
    }

    /// Checks what the client says of a block with Bitcoin blocks of these heights above it.
    fn check_block(&mut self, number: u64, dated: Dated, above: &alloc::collections::BTreeSet<u32>) {
        let answer = ask(&mut self.client, "rootlight_verification", json!([format!("{number:#x}")]));
        let refused = answer.get("error").is_some();
        if self.drawn.window && dated == Dated::Low && !refused {
            self.fail(&format!("{number} is answered though dated work is low: {answer}"));
        }
        if self.drawn.window && matches!(dated, Dated::Enough(_)) && refused {
            self.fail(&format!("{number} is refused though dated work is enough: {answer}"));
        }
        let said = &answer["result"]["bitcoin"];
        if refused {
            return;
        }
        let newest = above.last().copied();
        if said["blocksAbove"] != above.len() || said["newestHeight"] != json!(newest) {
            self.fail(&format!("block {number} has {above:?} above it: {said:#}"));
        }
        self.tally.compared += 1;
        self.tally.above += above.len() as u64;
    }
}

fn told_classes(tags: &Value) -> Classes {
    let of = |name: &str| tags[name].as_u64().unwrap_or(99) as u32;
    Classes {
        own: of("own"),
        kin: of("kin"),
        foreign: of("foreign"),
        ahead: of("ahead"),
        none: of("none"),
        withheld: of("withheld"),
    }
}

fn proven(
    follower: &mut BitcoinFollower,
    height: u32,
    block: &Block,
) -> Result<(), crate::consensus::bitcoin::CoinbaseProofError> {
    follower.insert_coinbase_to_serve(height, &block.coinbase_proof())
}

fn scenario(seed: u64, tally: &mut Tally) {
    let mut scenario = Scenario::new(seed, tally);
    let (first, all) = (scenario.drawn.first, scenario.drawn.schedule.len() - 1);
    scenario.advance(first, 13_000);
    scenario.check_bitcoin();
    if scenario.drawn.window {
        scenario.check_start();
    }
    scenario.check_answers();
    scenario.millis = 200_000;
    if scenario.drawn.window && scenario.random.bool() {
        scenario.restart();
    }
    scenario.advance(all, 7_000);
    scenario.check_bitcoin();
    scenario.check_answers();
    if seed.is_multiple_of(4)
        && let Err(words) = heights::check(seed, &scenario.drawn.bitcoin, scenario.unix)
    {
        scenario.fail(&words);
    }
}

/// No window is followed that the rules of dated work refuse, an honest one is, and nothing is said of Bitcoin's evidence that
/// is not so.
#[test]
fn random_scenarios_with_bitcoin() {
    let seeds = super::seeds(SCENARIOS);
    let (mut tally, began, count) = (Tally::default(), Instant::now(), seeds.end - seeds.start);
    for seed in seeds {
        scenario(seed, &mut tally);
    }
    let Tally { honest, false_ones, none, verdicts, restarted, compared, above } = tally;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{count} scenarios with Bitcoin in {seconds:.1} s: started {honest} honest, {false_ones} false, {none} not; {restarted} started again"
    );
    println!("{verdicts:?}; {above} Bitcoin blocks above {compared} answers");
}

/// The work floor judges a window where dated work does not: a trusted block that leads to the window makes it a chain of that
/// block, and headers that reach back few Bitcoin blocks are not dated.
#[test]
fn a_window_that_dated_work_does_not_judge_has_the_work_floor() {
    let is_plain = |seed: &u64| {
        let Drawn { upstreams, window, sources, .. } = Scenario::new(*seed, &mut Tally::default()).drawn;
        let shows =
            |source: &draw::Source| source.answers && source.branches.is_empty() && source.withholds == 0;
        upstreams == [false] && window && !sources.is_empty() && sources.iter().all(shows)
    };
    let seed = (0..).find(is_plain).unwrap();
    for (is_linked, bitcoin_blocks, has_floor) in
        [(false, None, false), (true, None, true), (false, Some(60), false), (false, Some(30), true)]
    {
        let mut tally = Tally::default();
        let mut scenario = Scenario::new(seed, &mut tally);
        let all = scenario.drawn.schedule.len() - 1;
        scenario.advance(all, 13_000);
        let honest = &mut scenario.drawn.honest;
        if is_linked {
            assert!(scenario.client.sync_mut().confirm_window(&honest.branch.chain.snapshot()));
        }
        let answer = ask(&mut scenario.client, "eth_blockNumber", json!([]));
        assert!(answer["result"].is_string(), "{answer}");
        // From now on the client knows the newest of Bitcoin's blocks alone.
        if let Some(count) = bitcoin_blocks {
            let blocks = scenario.drawn.bitcoin.iter().rev().take(count).rev();
            let headers: Vec<[u8; HEADER_LEN]> = blocks.map(|block| block.header).collect();
            let tip = scenario.drawn.bitcoin.last().unwrap().height;
            let newest = BitcoinChain::of_headers(tip + 1 - count as u32, &headers);
            scenario.client.sync_mut().follow_bitcoin(BitcoinFollower::resume(newest));
        }
        // One header in two hours.
        let time = honest.branch.headers.last().unwrap().timestamp + 7_200;
        let previous = scenario.drawn.bitcoin.last().unwrap().hash;
        let choice = mine::Choice { time, previous, block: None, byte: None, salt: 1 };
        let header = honest.branch.extend(choice, None);
        honest.mined.push(draw::Mined { header, on: all });
        scenario.drawn.schedule[all] = time as u32 - 590;
        scenario.millis = 200_000;
        scenario.advance(all, 7_000);
        assert_eq!(scenario.followed().unwrap().1, scenario.drawn.honest.branch.head());
        let answer = ask(&mut scenario.client, "eth_blockNumber", json!([]));
        let case = (is_linked, bitcoin_blocks);
        assert_eq!(answer["error"].is_object(), has_floor, "{case:?}: {answer}");
    }
}

/// Messages may be shown an earlier head than the newest. What Bitcoin says of the newest chain is not said of a head that
/// has left it.
#[test]
fn nothing_is_said_of_bitcoin_beside_a_head_that_left_the_chain() {
    let mut tally = Tally::default();
    let alone = |scenario: &Scenario<'_>| {
        scenario.drawn.upstreams == [false] && !scenario.drawn.window && scenario.drawn.forged.is_some()
    };
    let seed = (0..).find(|seed| alone(&Scenario::new(*seed, &mut Tally::default()))).unwrap();
    let mut scenario = Scenario::new(seed, &mut tally);
    scenario.advance(scenario.drawn.schedule.len() - 1, 13_000);
    let (_, forged) = scenario.drawn.forged.as_ref().unwrap();
    let removed = forged.branch.chain.snapshot();
    let earlier = shared().rootstock.chain.snapshot();
    for (view, is_told) in [(removed, false), (earlier, true)] {
        scenario.client.show(Some(view));
        let status = ask(&mut scenario.client, "rootlight_syncStatus", json!([]))["result"].clone();
        assert_eq!(status["bitcoin"].is_object(), is_told, "{status}");
    }
}
