//! Random scenarios: chains that are mined for them, upstreams that lie about them, forged stores, and requests of
//! every kind. A failure prints the seed; `ROOTLIGHT_SEED` runs only that seed, `ROOTLIGHT_SCENARIOS` sets the number
//! of scenarios, from `ROOTLIGHT_FIRST` on.

mod bitcoin;
mod blame_test;
mod chain;
mod draw;
mod oracle;
mod play;
mod store;
mod upstream;

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use fastrand::Rng;
use serde_json::json;

use self::{
    chain::ScenarioBlock,
    draw::{Drawn, ScenarioKind, ScenarioUpstreams},
    oracle::{ClientKnowledge, Probe, Verdict},
    play::Play,
    store::Hand,
    upstream::SimulatedUpstream,
};
use crate::consensus::{bitcoin::double_sha256, pow::meets_target};
use crate::light::{ClientConfig, UnprovenPolicy};
use crate::types::Header;

/// Scenarios of an ordinary test run.
const SCENARIOS: u64 = 1_000;

/// Simulated time for synchronization, in milliseconds.
const LIMIT: u64 = 180_000;

/// Simulated time for fetching all uncles, in milliseconds.
const SETTLE: u64 = 30_000;

/// Simulated time for which an upstream that has shown nothing keeps the gate closed, in milliseconds.
const AWAITED: u64 = 2_900;

/// Simulated time for one request, in milliseconds: the time that a host allows for a message.
const QUESTION_LIMIT: u64 = 60_000;

/// Results of all scenarios.
#[derive(Default)]
struct ScenarioTally {
    /// Answers given as proven, and answers marked as unproven.
    proven: u64,
    marked: u64,
    /// Requests that an honest upstream can answer, those answered correctly and in time, and the time of the
    /// slowest.
    asked: u64,
    right: u64,
    slowest: u64,
}

/// A running scenario.
struct ScenarioRun<'a> {
    seed: u64,
    play: Play,
    random: Rng,
    drawn: Drawn,
    config: ClientConfig,
    /// Whether the gate must refuse every request.
    closed: bool,
    honest: bool,
    tally: &'a mut ScenarioTally,
}

impl ScenarioRun<'_> {
    fn fail(&self, words: &str) -> ! {
        let upstreams = self.play.upstreams.iter().map(|upstream| {
            let SimulatedUpstream { tricks, forger, latency, binary, chain, .. } = upstream;
            format!("{tricks:?} forger {forger} {latency} ms {binary:?} on {:?}", chain.last().unwrap())
        });
        let upstreams: Vec<String> = upstreams.collect();
        let Drawn { setting, hand, main, attack, .. } = &self.drawn;
        panic!(
            "seed {}: {setting:?} {hand:?} depth {} age {} {:?} chain {main} attack {attack:?}\n{upstreams:#?}\n{words}",
            self.seed, self.config.min_depth, self.config.max_age, self.config.unproven
        );
    }

    /// Whether an upstream mined the client's head by chance, when it changed a digit of a Bitcoin header: the rest of the RSK
    /// header is that of a block that was mined, and at these difficulties one Bitcoin header of eight has the work. Such a
    /// head is right, and the tables know nothing of it, so that the scenario ends.
    fn has_lucky_head(&self) -> bool {
        let sync = self.play.client.sync();
        let Some(chain) = sync.chain() else { return false };
        let head: &Header = chain.head();
        let of_mined = |block: &Arc<ScenarioBlock>| {
            let bitcoin_header = block.header.bitcoin_header.clone();
            block.shows_work && Header { bitcoin_header, ..head.clone() } == *block.header
        };
        let chains = &self.play.data.chains;
        chains.get(&chain.head().hash()).is_none()
            && chains.all().any(of_mined)
            && meets_target(&double_sha256(&head.bitcoin_header), head.difficulty.value())
    }

    /// Checks that the client's head is a block that was mined and, with an honest upstream, the head of that
    /// upstream.
    fn check_head(&self) {
        let Some(head) = self.play.head() else { return };
        if !self.closed && self.play.data.chains.get(&head).is_none_or(|block| !block.shows_work) {
            self.fail(&format!("the head {head} was not mined"));
        }
        if self.honest && !self.closed && head != self.drawn.main {
            self.fail(&format!("the head {head} is not the one with the most work"));
        }
    }

    fn ask(&mut self, probe: Probe) {
        let chains = &self.play.data.chains;
        let Some(head) = self
            .play
            .head()
            .filter(|head| chains.get(head).is_some())
            .or(self.closed.then_some(self.drawn.main))
        else {
            // Without a chain, nothing may be answered.
            let (method, params) = probe.call();
            let answer = self.play.send(method, &params);
            if answer.get("result").is_some() {
                self.fail(&format!("{method} {params}: {answer} without a chain"));
            }
            return;
        };
        let branch = chains.branch(head);
        let (method, params) = probe.call();
        let began = self.play.now;
        let answer = self.play.send(method, &params);
        let took = self.play.now - began;
        let seen = ClientKnowledge {
            data: &self.play.data,
            branch,
            closed: self.closed,
            min_depth: self.config.min_depth,
            honest: self.honest,
            credulous: self.config.unproven != UnprovenPolicy::Refuse,
        };
        let verdict = seen.judge(&probe, &answer);
        if let Verdict::Wrong(words) = verdict {
            self.fail(&format!("{method} {params}: {answer}\n{words}"));
        }
        self.tally.marked += u64::from(answer.get("level").is_some());
        self.tally.proven += u64::from(answer.get("result").is_some() && answer.get("level").is_none());
        if self.honest && seen.is_answerable(&probe) {
            let in_time = took <= QUESTION_LIMIT;
            self.tally.asked += 1;
            self.tally.right += u64::from(verdict == Verdict::Right && in_time);
            self.tally.slowest = self.tally.slowest.max(took);
            if verdict != Verdict::Right || !in_time {
                self.fail(&format!("{method} {params} after {took} ms: {verdict:?} {answer}"));
            }
        }
    }

    fn ask_some(&mut self, count: u64) {
        for _ in 0..count {
            let probe = draw::probe(&mut self.random, &self.play.data, &self.drawn);
            self.ask(probe);
        }
    }

    /// Extends the honest chain, perhaps by replacing its last blocks. Upstreams on that chain follow.
    fn grow(&mut self) {
        let filter = self.play.send("eth_newBlockFilter", &json!([]));
        let before = self.play.data.chains.branch(self.drawn.main);
        let back = if self.random.u64(..100) < 30 { self.random.usize(..3) } else { 0 };
        let chains = &mut self.play.data.chains;
        let position = before.len().saturating_sub(1 + back).max(1).min(before.len() - 1);
        let (old, mut tip) = (self.drawn.main, before[position]);
        while tip == old || chains.work(tip) <= chains.work(old) {
            tip = draw::block(&mut self.random, chains, tip);
        }
        let after = chains.branch(tip);
        let time = chains.all().map(|block| block.header.timestamp).max().unwrap();
        self.drawn.main = tip;
        for upstream in &mut self.play.upstreams {
            if upstream.chain == before {
                upstream.chain = after.clone();
            }
        }
        self.play.epoch = self.play.epoch.max(time);
        self.play.run(LIMIT / 4);
        if self.has_lucky_head() {
            return;
        }
        self.check_head();
        let depth = self.config.min_depth as usize;
        let known = self.honest && back == 0 && before.len() > depth;
        if known {
            let changes = self.play.send("eth_getFilterChanges", &json!([filter["result"]]));
            let expected = &after[before.len() - depth..after.len() - depth];
            if changes["result"] != json!(expected) {
                self.fail(&format!("filter {filter} reports {changes} instead of {expected:?}"));
            }
        }
    }

    /// Checks the rest of a forged store when no upstream serves another chain.
    fn begin_again(&mut self, pages: &[Vec<u8>]) {
        if self.play.prove(pages) {
            self.fail("a store without work was proven");
        }
        self.closed = true;
        self.play.run(SETTLE);
        self.ask_some(3);
    }

    fn check_blame(&self) {
        if let Some(words) = self.play.blame(self.drawn.main) {
            self.fail(&format!("an honest upstream is blamed: {words}"));
        }
    }
}

fn scenario(seed: u64, tally: &mut ScenarioTally) {
    let mut random = Rng::with_seed(seed);
    let (mut chains, mut drawn) = draw::draw(&mut random);
    let pages = draw::store(&mut random, &mut chains, &mut drawn);
    let config = draw::config(&mut random, drawn.setting);
    let ScenarioUpstreams { data, upstreams, honest } = draw::cast(&mut random, chains, &drawn);
    let time = data.chains.all().map(|block| block.header.timestamp).max().unwrap();
    let late =
        if drawn.setting == ScenarioKind::Stale { config.max_age + 1 + random.u64(..10_000) } else { 0 };
    let play = Play::new(data, upstreams, config.clone(), time + late);
    let mut run = ScenarioRun { seed, play, random, drawn, config, closed: true, honest, tally };
    if let Some(pages) = &pages {
        let outcome = run.play.restore(pages);
        if run.drawn.hand == Some(Hand::Own) && outcome.is_err() {
            run.fail(&format!("an honest store is refused: {outcome:?}"));
        }
        run.ask_some(1);
    }
    if run.drawn.setting == ScenarioKind::Unsynced {
        run.play.run_without_last(AWAITED);
        run.ask_some(6);
        run.closed = false;
    }
    run.play.sync(LIMIT);
    run.play.run(SETTLE);
    let synced = run.play.client.sync().is_synced();
    let low = run.drawn.setting == ScenarioKind::Low && run.play.head() == Some(run.drawn.main);
    run.closed = !synced || low || run.drawn.setting == ScenarioKind::Stale;
    if run.honest && !synced {
        run.fail("not synchronized");
    }
    if run.has_lucky_head() {
        return;
    }
    run.check_head();
    run.ask_some(7);
    if let Some(pages) = pages.filter(|_| run.drawn.setting == ScenarioKind::Eclipsed) {
        run.begin_again(&pages);
    }
    if matches!(run.drawn.setting, ScenarioKind::Usual | ScenarioKind::Store)
        && synced
        && run.random.u64(..100) < 40
    {
        run.grow();
        if run.has_lucky_head() {
            return;
        }
        run.ask_some(3);
    }
    run.check_head();
    run.check_blame();
}

/// Two slow upstreams announce heights that they do not have and hold the lease in turn. The client counts as synchronized
/// all the same, once an honest upstream has shown all of its headers.
#[test]
fn leases_that_add_no_headers_do_not_delay_synchronization() {
    scenario(25_822, &mut ScenarioTally::default());
}

/// A list of uncles that does not exist is looked for at a slow upstream. The lists of another branch are counted meanwhile, and
/// that branch has more work with them.
#[test]
fn lists_of_uncles_wait_for_no_other_branch() {
    for seed in [357, 1_363] {
        scenario(seed, &mut ScenarioTally::default());
    }
}

/// Such a block's list ends before the count of its header does.
#[test]
fn no_upstream_is_blamed_for_a_header_that_counts_too_many_uncles() {
    scenario(72_348, &mut ScenarioTally::default());
}

/// An upstream changes one digit of the nonce in the head's Bitcoin header, and the header has its work by chance.
#[test]
fn a_head_that_a_changed_digit_mined_is_right() {
    scenario(86_058, &mut ScenarioTally::default());
}

/// The seeds of a run: those that the environment names, or as many as usual.
fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("ROOTLIGHT_FIRST").unwrap_or(0);
    match number("ROOTLIGHT_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number("ROOTLIGHT_SCENARIOS").unwrap_or(usual),
    }
}

/// No value has a level that it does not deserve, no honest upstream is blamed, and with one honest upstream every
/// request that it can answer is answered correctly and in time.
#[test]
fn random_scenarios() {
    let seeds = seeds(SCENARIOS);
    let (mut tally, began, count) = (ScenarioTally::default(), Instant::now(), seeds.end - seeds.start);
    for seed in seeds {
        scenario(seed, &mut tally);
    }
    let ScenarioTally { proven, marked, asked, right, slowest } = tally;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{count} scenarios in {seconds:.1} s: {proven} answers as proven, 0 of them wrong; {marked} marked"
    );
    println!(
        "{right} of {asked} questions answered rightly with an honest upstream among liars ({:.3} %), the slowest after {slowest} ms",
        100.0 * right as f64 / asked.max(1) as f64
    );
    assert!(right * 1_000 >= asked * 999, "{right} of {asked}");
}
