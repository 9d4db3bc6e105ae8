//! The promise loops: following the chain at each upstream, and answering one request.

use std::cell::{Cell, RefCell};

use js_sys::{Array, Function, Uint8Array};
use rootlight::light::{
    Answer, CallFailure, Identity, Outbox, Progress, Question, Restoring, SyncOptions, SyncStep, UpstreamCall,
};
use rootlight::rpc::{Client, Step};
use wasm_bindgen::JsValue;

use crate::config::{Config, Start};
use crate::host::{Budget, Deadline, Share, Upstream, moment, sleep};

/// Longest sleep of a loop in milliseconds, so that what other upstreams made possible is noticed.
const LONGEST_SLEEP: f64 = 1_000.0;

/// Pause between two looks at whether the head is reached, in milliseconds.
const LOOK: f64 = 10.0;

/// Bytes of answers that all questions under way hold together: receipts of 2,000 full blocks are some 100 MB, and a
/// page on a telephone has a few hundred.
const ANSWER_BYTES: usize = 128 << 20;

/// Bytes of answers that one round of synchronization with one upstream holds: as many as its four exchanges may bring
/// under the transports' own limit. 200 headers as block objects are some 5 MB.
const FOLLOWING_BYTES: usize = 128 << 20;

/// What a question gets that takes more than is left of [`ANSWER_BYTES`]; the code is the reference node's for limits.
const TOO_MUCH: &str = r#"{"error":{"code":-32005,"message":"the questions under way take answers of more than 128 MiB: ask for less, or for less at a time"}}"#;

/// A light client and its upstreams. No part of the client is held while waiting.
#[derive(Debug)]
pub(crate) struct Driver {
    client: Client,
    restoring: RefCell<Option<Restoring>>,
    upstreams: Vec<Upstream>,
    /// What answers to questions of callers may take.
    budget: Budget,
    /// Whether a request since the last `take_changed` may have caused events for subscribers.
    changed: Cell<bool>,
    /// Takes what is to be kept.
    keep: Function,
    /// Is told how far the first synchronization is.
    progress: Option<Function>,
}

impl Driver {
    /// A client that has not asked anything yet.
    pub(crate) fn new(
        config: &Config,
        upstreams: Vec<Upstream>,
        keep: Function,
        progress: Option<Function>,
    ) -> Self {
        let version = concat!("Rootlight/", env!("CARGO_PKG_VERSION"), "/wasm/Rust/light");
        let identity = Identity {
            version: version.into(),
            upstreams: config.names(upstreams.len()),
            min_depth: config.min_depth,
            max_age: config.max_age,
            unproven: config.unproven,
            ..Identity::default()
        };
        let options = SyncOptions {
            poll: config.poll_millis,
            batch: config.batch.saturating_mul(4),
            work_floor: config.min_work,
            ..SyncOptions::default()
        };
        let network = config.network.clone();
        let client = match config.start {
            Start::At(checkpoint) => Client::with_upstreams(network, checkpoint, identity, options),
            Start::Work(work) => Client::by_work(network, work, identity, options),
        };
        let budget = Budget::new(ANSWER_BYTES);
        Self {
            client,
            restoring: RefCell::default(),
            upstreams,
            budget,
            changed: Cell::default(),
            keep,
            progress,
        }
    }

    /// Begins taking back so many kept pages.
    pub(crate) fn restoring(&self, pages: u32) {
        *self.restoring.borrow_mut() = Some(self.client.sync().restoring(pages.into()));
    }

    /// The kept page that is wanted next.
    pub(crate) fn wanted_page(&self) -> Option<u32> {
        let page = match &*self.restoring.borrow() {
            Some(restoring) => restoring.page(),
            None => self.client.sync().wanted_page(),
        };
        page.and_then(|page| page.try_into().ok())
    }

    /// Takes back the wanted page; whether it holds.
    pub(crate) fn restore(&self, page: &[u8]) -> bool {
        let mut restoring = self.restoring.borrow_mut();
        let Some(restoring) = restoring.as_mut() else { return false };
        self.client.restore_page(restoring, page).is_ok()
    }

    /// No more pages come. Where those that came do not hold, the client starts from the checkpoint.
    pub(crate) fn restored(&self) {
        if let Some(restoring) = self.restoring.take() {
            let _ = self.client.restored(restoring);
        }
    }

    /// Proves some more of what was taken back; whether there is more. What does not hold is forgotten.
    pub(crate) fn prove(&self, page: Option<Vec<u8>>) -> bool {
        let mut page = page;
        self.client.prove_kept(&mut |_| Ok(page.take())).unwrap_or(false)
    }

    /// Hands out pages from this one on again.
    pub(crate) fn keep_again(&self, page: u32) {
        self.client.keep_again(page.into());
    }

    /// Hands out what is new and verified. A start by work keeps nothing: it hands out an empty list where the chain has
    /// `changed`.
    fn save(&self, changed: bool) {
        let pages = self.client.export();
        let first = pages.first().map_or(0, |page| page.index);
        let told = changed && self.client.sync().is_by_work();
        if pages.is_empty() && !told {
            return;
        }
        let list: Array = pages.iter().map(|page| Uint8Array::from(&page.bytes[..])).collect();
        // A store that fails is no reason to stop.
        let _ = self.keep.call2(&JsValue::NULL, &(first as f64).into(), &list);
    }

    /// Tells how far the first synchronization is: start, head, target, headers per second, seconds left if known.
    fn report(&self) {
        let Some(told) = &self.progress else { return };
        let sync = self.client.sync();
        if sync.is_synced() {
            return;
        }
        let Progress { start, head, target, rate, left } = sync.progress();
        let figures = [Some(start), Some(head), Some(target), Some(rate), left];
        let figures: Array = figures
            .iter()
            .map(|figure| figure.map_or(JsValue::NULL, |figure| (figure as f64).into()))
            .collect();
        drop(sync);
        // Whoever throws here has not been asked anything.
        let _ = told.apply(&JsValue::NULL, &figures);
    }

    /// An upstream says that there is something new.
    pub(crate) fn hint(&self, index: usize) {
        self.client.sync_hint(index);
    }

    /// Whether a request since the last call of this method may have caused events for subscribers.
    pub(crate) fn take_changed(&self) -> bool {
        self.changed.take()
    }

    /// How many upstreams there are.
    pub(crate) fn upstreams(&self) -> usize {
        self.upstreams.len()
    }

    /// Follows one upstream until `closed` says so.
    pub(crate) async fn follow(&self, index: usize, closed: impl Fn() -> bool) {
        let Some(upstream) = self.upstreams.get(index) else { return };
        let mut outbox = Outbox::default();
        let budget = Budget::new(FOLLOWING_BYTES);
        while !closed() {
            let share = budget.share();
            let questions = self.client.sent_questions(&mut outbox, moment());
            let again = outbox.reminders(upstream.ask(&questions, true, &share).await);
            upstream.ask(&again, true, &share).await;
            let step = self.client.sync_next(index, moment());
            match step {
                SyncStep::Fetch(calls) => {
                    let answers = upstream.ask(&calls, true, &share).await;
                    let changed = self.client.sync_feed(index, answers, moment());
                    self.save(changed);
                    self.report();
                }
                SyncStep::Wait(millis) => sleep((millis as f64).min(LONGEST_SLEEP)).await,
            }
        }
    }

    /// Waits until the head is verified; the reason when no upstream leads there.
    pub(crate) async fn reach_head(&self) -> Result<(), String> {
        loop {
            if self.client.sync().is_synced() {
                return Ok(());
            }
            if let Some(fault) = self.client.sync().fault() {
                return Err(fault.to_string());
            }
            sleep(LOOK).await;
        }
    }

    /// Asks each question the upstream it names; answers in the questions' order.
    async fn ask(&self, questions: Vec<Question>, share: &Share<'_>) -> Vec<Answer> {
        let nobody = || Err(CallFailure::Transport("no such upstream".into()));
        let mut answers: Vec<Answer> = questions.iter().map(|_| nobody()).collect();
        let mine =
            |index| questions.iter().enumerate().filter(move |(_, question)| question.upstream == index);
        let parts: Vec<(Vec<usize>, Vec<UpstreamCall>)> = (0..self.upstreams.len())
            .map(|index| mine(index).map(|(place, question)| (place, question.call.clone())).unzip())
            .collect();
        // All are asked before the first answer is awaited.
        let all = self.upstreams.iter().zip(&parts);
        let asked: Vec<_> = all.map(|(upstream, (_, calls))| upstream.ask(calls, false, share)).collect();
        for (asked, (places, _)) in asked.into_iter().zip(&parts) {
            for (place, answer) in places.iter().zip(asked.await) {
                answers[*place] = answer;
            }
        }
        answers
    }

    /// Answers one message.
    pub(crate) async fn answer(&self, message: &[u8]) -> Option<String> {
        let mut session = self.client.open(message, moment());
        let share = self.budget.share();
        loop {
            let deadline = Deadline::start();
            let step = self.client.step(&mut session, &|| deadline.is_over());
            match step {
                Step::Fetch(questions) => {
                    let answers = self.ask(questions, &share).await;
                    // Nobody is to blame: the session ends without a word about its upstreams.
                    if share.is_exceeded() {
                        return Some(TOO_MUCH.into());
                    }
                    self.client.feed(&mut session, answers);
                }
                Step::Done(reply) => {
                    self.changed.set(self.client.close(session) || self.changed.get());
                    return reply.map(|reply| reply.body);
                }
            }
        }
    }
}
