//! A model of front ends on stopped clocks: their decisions and the store's script are the real ones, and a random order says
//! what happens next, how late, and what is lost. No answer is made on an earlier block than one that was sent before the
//! message came, whoever asks.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::{B256, U256};
use fastrand::Rng;
use futures::StreamExt as _;
use rootlight::types::BlockRef;
use rootlight_cluster::store::{FromRedisValue as _, HotStore, Script, Value};

use crate::head_agreement::{EntryRule, HeadDisplay, HeadsReply, LIFETIME, Participant, assures};
use crate::servers::{Servers, cluster};

const KEY: &str = "heads:1";
const FRONT_ENDS: usize = 3;
const CALLERS: usize = 6;
/// Models that run at a time.
const AT_A_TIME: usize = 16;
/// Last blocks of a report.
const BLOCKS: u64 = 16;

fn block(number: u64) -> BlockRef {
    BlockRef { number, hash: B256::from(U256::from(number)) }
}

/// The block that a front end has verified, and the block that its messages see, each as a height.
struct ModelHeights {
    verified: Cell<u64>,
    pinned: Cell<Option<u64>>,
}

impl HeadDisplay for ModelHeights {
    type Chain = u64;

    fn head_of(chain: &u64) -> BlockRef {
        block(*chain)
    }

    fn up_to(&self, hash: &B256) -> Option<u64> {
        let number = U256::from_be_bytes(hash.0);
        (number <= U256::from(self.verified.get())).then(|| number.to::<u64>())
    }

    fn is_canonical(&self, block: &BlockRef) -> bool {
        block.number <= self.verified.get()
    }

    fn newest_visible(&self) -> Option<BlockRef> {
        Some(block(self.pinned.get().unwrap_or(self.verified.get())))
    }

    fn show(&self, chain: &u64) {
        self.pinned.set(Some(*chain));
    }

    fn show_newest(&self) {
        self.pinned.set(None);
    }
}

struct HeadReport {
    from: usize,
    number: u64,
    arguments: Vec<String>,
    sent: Instant,
}

struct FrontEnd {
    name: String,
    display: ModelHeights,
    part: Participant<u64>,
    entry: EntryRule,
    /// How long its clock stood still while the others' went on.
    slept: Duration,
    /// Until which step it neither reports nor takes an answer.
    busy: u64,
    /// The number of the report that it waits for.
    awaits: Option<u64>,
    answer: Option<(HeadsReply, Instant)>,
}

/// What the store has lost, until all front ends have reported or stopped answering.
struct Loss {
    /// The last round whose block was shown.
    shown: u64,
    /// The last one of which the store knows by what is left and by reports.
    known: u64,
}

/// A message of a caller at a front end, step by step.
#[derive(Clone, Copy)]
enum CallerMessage {
    Came { at: usize, floor: u64 },
    Looked { at: usize, floor: u64, shown: Option<u64> },
    Assured { at: usize, floor: u64 },
    Entered { at: usize, floor: u64 },
    Answered { at: usize, floor: u64, block: u64 },
}

/// The kinds of faults of a run.
#[derive(Clone, Copy)]
struct Faults {
    name: &'static str,
    /// Front ends are busy for any time, also for longer than a report counts.
    pauses: bool,
    /// Their clocks stand still meanwhile, as those of machines that sleep.
    sleep: bool,
    /// The store is emptied, or loses its last changes.
    store: bool,
}

const CLOCKS: Faults = Faults { name: "clocks", pauses: true, sleep: true, store: false };
const STORE: Faults = Faults { name: "store", pauses: false, sleep: false, store: true };
const PAUSES: Faults = Faults { name: "pauses", pauses: true, sleep: false, store: true };

struct Model {
    store: Arc<HotStore>,
    script: Script,
    _servers: Arc<Servers>,
    random: Rng,
    faults: Faults,
    start: Instant,
    /// Time since the start.
    time: Duration,
    tip: u64,
    front_ends: Vec<FrontEnd>,
    reports: Vec<HeadReport>,
    sent: u64,
    steps: u64,
    callers: Vec<Option<CallerMessage>>,
    /// The latest block of an answer that was sent.
    seen: u64,
    /// The same, also if that block was forgotten.
    latest: u64,
    answers: u64,
    /// States of the store before the last reports.
    before: Vec<BTreeMap<String, String>>,
    /// At which step the store loses changes, soon after another block is shown.
    loses_at: Option<u64>,
    last_shown: u64,
    /// The run of the store's server.
    server: u64,
    loss: Option<Loss>,
    /// How often a block was forgotten.
    forgotten: u32,
    seed: u64,
    trace: VecDeque<String>,
}

impl Model {
    /// Records a step. The last steps are printed if the property does not hold.
    fn note(&mut self, what: impl FnOnce(&Self) -> String) {
        let line = format!("{} {:?} {}", self.steps, self.time, what(self));
        self.trace.push_back(line);
        if self.trace.len() > 400 {
            self.trace.pop_front();
        }
    }

    async fn new(faults: Faults, seed: u64) -> Option<Self> {
        let servers = cluster()?;
        let mut config = servers.config(&format!("agreement-{}-{seed}", faults.name));
        config.limits.command = Duration::from_secs(60);
        let store = HotStore::connect(&config).await.unwrap();
        // The clock and the server are the model's.
        let text = include_str!("../../../cluster/src/serve/heads.lua")
            .replace("redis.call('TIME')", "{ARGV[12], ARGV[13]}")
            .replace("redis.pcall('INFO', 'server')", "'run_id:' .. ARGV[14]");
        let script = Script::new(&text);
        let front_end = |number: usize| FrontEnd {
            name: format!("f{number}"),
            display: ModelHeights { verified: Cell::new(1), pinned: Cell::new(None) },
            part: Participant::default(),
            entry: EntryRule::Waiting,
            slept: Duration::ZERO,
            busy: 0,
            awaits: None,
            answer: None,
        };
        Some(Self {
            store,
            script,
            _servers: servers,
            random: Rng::with_seed(seed),
            faults,
            start: Instant::now(),
            time: Duration::from_secs(1),
            tip: 1,
            front_ends: (0..FRONT_ENDS).map(front_end).collect(),
            reports: Vec::new(),
            sent: 0,
            steps: 0,
            callers: vec![None; CALLERS],
            seen: 0,
            latest: 0,
            answers: 0,
            before: Vec::new(),
            loses_at: None,
            last_shown: 0,
            server: 0,
            loss: None,
            forgotten: 0,
            seed,
            trace: VecDeque::new(),
        })
    }

    /// The clock of a front end.
    fn own_time(&self, front_end: usize) -> Instant {
        self.start + self.time - self.front_ends[front_end].slept
    }

    fn is_busy(&self, front_end: usize) -> bool {
        self.steps < self.front_ends[front_end].busy
    }

    fn report(&mut self, from: usize) {
        if self.front_ends[from].awaits.is_some() || self.is_busy(from) {
            return;
        }
        let sent = self.own_time(from);
        self.sent += 1;
        let front_end = &mut self.front_ends[from];
        let newest = front_end.display.verified.get();
        let blocks: Vec<BlockRef> = (1..=newest).rev().take(BLOCKS as usize).map(block).collect();
        let work = B256::from(U256::from(newest));
        let arguments = front_end.part.report(&front_end.display, &front_end.name, &blocks, work).to_vec();
        front_end.awaits = Some(self.sent);
        self.reports.push(HeadReport { from, number: self.sent, arguments, sent });
    }

    /// The store executes a report, whether a front end still waits for it or not.
    async fn execute(&mut self, at: usize) {
        let HeadReport { from, number, mut arguments, sent } = self.reports.swap_remove(at);
        self.before.push(self.store.command("HGETALL", KEY, &[]).await.unwrap());
        let surplus = self.before.len().saturating_sub(12);
        self.before.drain(..surplus);
        self.hear(&arguments);
        let clock = [self.time.as_secs().to_string(), self.time.subsec_micros().to_string()];
        arguments.extend(clock.into_iter().chain([self.server.to_string()]));
        let arguments: Vec<Vec<u8>> = arguments.into_iter().map(String::into_bytes).collect();
        let reply: Vec<Value> = self.store.script(&self.script, KEY, &arguments).await.unwrap();
        let text = |at: usize| String::from_redis_value(reply[at].clone()).unwrap();
        let whole = |at: usize| u64::from_redis_value(reply[at].clone()).unwrap();
        let reply = HeadsReply {
            role: text(0),
            round: whole(1),
            next: text(2),
            shown: text(3),
            shown_round: whole(4),
        };
        if self.faults.store && reply.shown_round > self.last_shown && self.random.u64(..8) == 0 {
            self.loses_at = Some(self.steps + self.random.u64(..60));
        }
        self.last_shown = reply.shown_round;
        self.forget(&reply);
        self.note(|_| {
            format!(
                "f{from} reported {:?}: {reply:?}",
                arguments
                    .iter()
                    .map(|a| String::from_utf8_lossy(&a[..a.len().min(70)]).into_owned())
                    .collect::<Vec<_>>()
            )
        });
        let front_end = &mut self.front_ends[from];
        if front_end.awaits == Some(number) {
            front_end.answer = Some((reply, sent));
        }
    }

    /// A report tells the store of what it has lost.
    fn hear(&mut self, arguments: &[String]) {
        let Some(loss) = &mut self.loss else { return };
        for round in [&arguments[5], &arguments[9]] {
            loss.known = loss.known.max(round.parse().unwrap());
        }
    }

    /// All front ends have reported after a loss, or stopped answering. If none of those that reported knew of the last
    /// block, it is forgotten, and what was seen of it counts no more.
    fn forget(&mut self, reply: &HeadsReply) {
        let Some(loss) = self.loss.take_if(|_| reply.role != "fresh") else { return };
        if loss.known < loss.shown {
            assert!(self.faults.pauses, "front ends that report knew of the last block, seed {}", self.seed);
            self.note(|_| "forgotten".to_owned());
            self.forgotten += 1;
            self.seen = 0;
            self.callers.fill(None);
        }
    }

    fn apply_reply(&mut self, number: usize) {
        if self.is_busy(number) {
            return;
        }
        let front_end = &mut self.front_ends[number];
        let Some((reply, sent)) = front_end.answer.take() else { return };
        front_end.awaits = None;
        let step = front_end.part.apply_reply(&reply, sent, &front_end.display);
        front_end.entry = step.entry.unwrap_or(front_end.entry);
        let (covers, visible) = (front_end.part.covers(), front_end.display.newest_visible().unwrap().number);
        self.note(|_| format!("f{number} obeys {step:?}, covers {covers}, shows {visible}"));
        if step.again {
            self.report(number);
        }
    }

    async fn shown(&self) -> Option<u64> {
        self.store.command("HGET", KEY, &[b"at".to_vec()]).await.unwrap()
    }

    /// Takes a caller's message one step further.
    async fn ask(&mut self, caller: usize) {
        let next = match self.callers[caller] {
            None => Some(CallerMessage::Came { at: self.random.usize(..FRONT_ENDS), floor: self.seen }),
            Some(CallerMessage::Came { at, floor }) => {
                Some(CallerMessage::Looked { at, floor, shown: self.shown().await })
            }
            Some(CallerMessage::Looked { at, floor, shown }) => {
                let covers = self.front_ends[at].part.covers();
                Some(match assures(shown, covers) {
                    true => CallerMessage::Assured { at, floor },
                    false => CallerMessage::Came { at, floor },
                })
            }
            Some(CallerMessage::Assured { at, floor }) => match self.front_ends[at].entry {
                EntryRule::Until(end) if self.own_time(at) < end => {
                    Some(CallerMessage::Entered { at, floor })
                }
                EntryRule::Behind => None,
                _ => Some(CallerMessage::Assured { at, floor }),
            },
            Some(CallerMessage::Entered { at, floor }) => {
                let block = self.front_ends[at].display.newest_visible().unwrap().number;
                Some(CallerMessage::Answered { at, floor, block })
            }
            Some(CallerMessage::Answered { at, floor, block }) => {
                let seed = self.seed;
                if block < floor {
                    self.trace.iter().for_each(|line| println!("{line}"));
                }
                assert!(block >= floor, "block {floor}, then {block} at front end {at}, seed {seed}");
                self.seen = self.seen.max(block);
                self.latest = self.latest.max(block);
                self.answers += 1;
                None
            }
        };
        if let Some(CallerMessage::Answered { at, floor, block }) = next {
            self.note(|_| format!("f{at} answers {block}, floor {floor}"));
        }
        self.callers[caller] = next;
    }

    async fn lose(&mut self) {
        let shown = self.loss.as_ref().map_or(self.last_shown, |loss| loss.shown.max(self.last_shown));
        let _: u64 = self.store.command("DEL", KEY, &[]).await.unwrap();
        let choice = self.random.usize(..self.before.len() + 1);
        let fields = self.before.drain(..).nth(choice).unwrap_or_default();
        self.before.clear();
        self.note(|_| format!("lost: {fields:?}"));
        self.server += 1;
        let round = |field: &str| fields.get(field).map_or(0, |value| value.parse().unwrap());
        let is_next = fields.get("next").is_some_and(|next| !next.is_empty());
        self.loss = Some(Loss { shown, known: round("at").max(if is_next { round("round") } else { 0 }) });
        if fields.is_empty() {
            return;
        }
        let fields: Vec<Vec<u8>> = fields
            .iter()
            .flat_map(|(field, value)| [field, value])
            .map(|text| text.clone().into_bytes())
            .collect();
        let _: u64 = self.store.command("HSET", KEY, &fields).await.unwrap();
    }

    fn pass(&mut self, millis: u64) {
        self.time += Duration::from_millis(millis);
        let stand_still = self.faults.sleep;
        for number in 0..FRONT_ENDS {
            if stand_still && self.is_busy(number) {
                self.front_ends[number].slept += Duration::from_millis(millis);
            }
        }
    }

    /// One thing happens.
    async fn step(&mut self) {
        self.steps += 1;
        if self.loses_at == Some(self.steps) {
            self.lose().await;
        }
        let front_end = self.random.usize(..FRONT_ENDS);
        match self.random.u64(..1_000) {
            0..150 => {
                let millis = self.random.u64(..15);
                self.pass(millis);
            }
            150..153 if self.faults.pauses => {
                let millis = self.random.u64(..2 * LIFETIME.as_millis() as u64);
                self.pass(millis);
            }
            153..158 if self.faults.pauses => {
                self.front_ends[front_end].busy = self.steps + self.random.u64(..600);
                self.note(|model| format!("f{front_end} busy until {}", model.front_ends[front_end].busy));
            }
            158..170 => self.tip += 1,
            170..250 => {
                let verified = &self.front_ends[front_end].display.verified;
                verified.set(self.tip.min(verified.get() + 1));
            }
            250..350 => self.report(front_end),
            350..460 if !self.reports.is_empty() => {
                let at = self.random.usize(..self.reports.len());
                self.execute(at).await;
            }
            460..560 => self.apply_reply(front_end),
            // The front end gives the report up. The store may still execute it, at any time.
            560..564 => (self.front_ends[front_end].awaits, self.front_ends[front_end].answer) = (None, None),
            564..566 if !self.reports.is_empty() => {
                let at = self.random.usize(..self.reports.len());
                let lost = self.reports.swap_remove(at);
                let sender = &mut self.front_ends[lost.from];
                if sender.awaits == Some(lost.number) {
                    sender.awaits = None;
                }
            }
            566 if self.faults.store && self.random.u64(..3) == 0 => self.lose().await,
            _ => {
                let caller = self.random.usize(..CALLERS);
                self.ask(caller).await;
            }
        }
    }

    /// Without further faults all front ends show the newest block.
    async fn settles(&mut self) {
        self.front_ends.iter_mut().for_each(|front_end| front_end.busy = 0);
        for _ in 0..2_000 {
            self.pass(20);
            for number in 0..FRONT_ENDS {
                self.front_ends[number].display.verified.set(self.tip);
                self.report(number);
                while let Some(at) = self.reports.iter().position(|report| report.from == number) {
                    self.execute(at).await;
                }
                self.apply_reply(number);
            }
            let shows = |front_end: &FrontEnd| {
                let open = matches!(front_end.entry, EntryRule::Until(_));
                open && front_end.display.newest_visible().is_some_and(|head| head.number == self.tip)
            };
            if self.front_ends.iter().all(shows) {
                return;
            }
        }
        panic!("the front ends do not agree any more, seed {}", self.seed);
    }
}

/// Runs the model with these seeds, several at a time.
async fn run(faults: Faults, seeds: std::ops::Range<u64>, steps: u32) {
    let one = async |seed| {
        let mut model = Model::new(faults, seed).await?;
        for _ in 0..steps {
            model.step().await;
        }
        model.settles().await;
        Some((model.latest, model.answers, model.forgotten))
    };
    let runs: Vec<_> = futures::stream::iter(seeds).map(one).buffer_unordered(AT_A_TIME).collect().await;
    let runs: Vec<_> = runs.into_iter().flatten().collect();
    let answers: u64 = runs.iter().map(|run| run.1).sum();
    let forgotten: u32 = runs.iter().map(|run| run.2).sum();
    println!("{} runs, {answers} answers, {forgotten} blocks forgotten", runs.len());
    // Where the store loses changes all the time, messages wait all the time.
    let advanced = runs.iter().filter(|run| run.0 > 3).count();
    assert!(
        answers > 40 * runs.len() as u64 && advanced * 2 > runs.len(),
        "{answers} answers, {advanced} runs"
    );
}

/// The seeds and the steps of a schedule; more of both with `ROOTLIGHT_AGREEMENT_SEEDS`.
fn length(first: u64) -> (std::ops::Range<u64>, u32) {
    let seeds = std::env::var("ROOTLIGHT_AGREEMENT_SEEDS").ok().map(|text| text.parse().unwrap());
    (first..first + seeds.unwrap_or(12), if seeds.is_some() { 10_000 } else { 8_000 })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_never_goes_back_whatever_clocks_leases_and_late_reports_do() {
    let (seeds, steps) = length(1);
    run(CLOCKS, seeds, steps).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_never_goes_back_when_the_store_is_emptied_or_loses_its_last_changes() {
    let (seeds, steps) = length(101);
    run(STORE, seeds, steps).await;
}

/// A block is forgotten only if no front end that knows of it reports within the time for which a report counts.
#[tokio::test(flavor = "multi_thread")]
async fn the_head_never_goes_back_when_the_store_loses_changes_while_front_ends_are_busy() {
    let (seeds, steps) = length(330);
    run(PAUSES, seeds, steps).await;
}
