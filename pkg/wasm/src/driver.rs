//! The promise loops: following the chain at each upstream, and answering one request.

use std::cell::RefCell;

use js_sys::{Array, Function, Uint8Array};
use rootlight::light::{Answer, CallFailure, Identity, Question, SyncOptions, SyncStep, UpstreamCall};
use rootlight::rpc::{Client, Reply, Step};
use wasm_bindgen::{JsCast as _, JsValue};

use crate::config::Config;
use crate::host::{moment, sleep, Deadline, Upstream};

/// Longest sleep of a loop in seconds, so that what other upstreams made possible is noticed.
const LONGEST_SLEEP: f64 = 1.0;

/// Pause between two looks at whether the head is reached, in seconds.
const LOOK: f64 = 0.01;

/// A light client and its upstreams. No borrow of the client is held while waiting.
#[derive(Debug)]
pub(crate) struct Driver {
    client: RefCell<Client>,
    upstreams: Vec<Upstream>,
    /// Takes what is to be kept.
    keep: Option<Function>,
}

impl Driver {
    /// A client that has not asked anything yet.
    pub(crate) fn new(config: &Config, upstreams: Vec<Upstream>, keep: Option<Function>) -> Self {
        let version = concat!("Rootlight/", env!("CARGO_PKG_VERSION"), "/wasm/Rust/light");
        let names = (0..upstreams.len()).map(|index| format!("upstream {index}")).collect();
        let identity = Identity { version: version.into(), upstreams: names, ..Identity::default() };
        let options = SyncOptions {
            poll: (config.poll_seconds * 1_000.0) as u64,
            batch: config.batch.saturating_mul(4),
            ..SyncOptions::default()
        };
        let client = Client::with_upstreams(config.network.clone(), config.checkpoint, identity, options);
        Self { client: RefCell::new(client), upstreams, keep }
    }

    /// Takes back what was kept. Where it does not hold, the client starts from the checkpoint and writes all anew.
    pub(crate) fn restore(&self, kept: &Array) {
        let mut read = |index: u64| {
            let page = kept.get(index as u32).dyn_into::<Uint8Array>();
            Ok(page.ok().map(|page| page.to_vec()))
        };
        let _ = self.client.borrow_mut().restore(&mut read);
    }

    /// Hands out what is new and verified.
    fn save(&self) {
        let Some(keep) = &self.keep else { return };
        let pages = self.client.borrow_mut().export();
        let Some(first) = pages.first() else { return };
        let list: Array = pages.iter().map(|page| Uint8Array::from(&page.bytes[..])).collect();
        // A store that fails is no reason to stop.
        let _ = keep.call2(&JsValue::NULL, &(first.index as f64).into(), &list);
    }

    /// How many upstreams there are.
    pub(crate) fn upstreams(&self) -> usize {
        self.upstreams.len()
    }

    /// Follows one upstream until `closed` says so.
    pub(crate) async fn follow(&self, index: usize, closed: impl Fn() -> bool) {
        let Some(upstream) = self.upstreams.get(index) else { return };
        while !closed() {
            let step = self.client.borrow_mut().sync_next(index, moment());
            match step {
                SyncStep::Fetch(calls) => {
                    let answers = upstream.ask(&calls).await;
                    self.client.borrow_mut().sync_feed(index, answers, moment());
                    self.save();
                }
                SyncStep::Wait(millis) => sleep((millis as f64 / 1_000.0).clamp(LOOK, LONGEST_SLEEP)).await,
            }
        }
    }

    /// Waits until the head is verified; the reason when no upstream leads there.
    pub(crate) async fn reach_head(&self) -> Result<(), String> {
        loop {
            if self.client.borrow().sync().is_synced() {
                return Ok(());
            }
            if let Some(fault) = self.client.borrow().sync().fault() {
                return Err(fault.to_string());
            }
            sleep(LOOK).await;
        }
    }

    /// Asks each question the upstream it names; answers in the questions' order.
    async fn ask(&self, questions: Vec<Question>) -> Vec<Answer> {
        let nobody = || Err(CallFailure::Transport("no such upstream".into()));
        let mut answers: Vec<Answer> = questions.iter().map(|_| nobody()).collect();
        for (index, upstream) in self.upstreams.iter().enumerate() {
            let mine = questions.iter().enumerate().filter(|(_, question)| question.upstream == index);
            let (places, calls): (Vec<usize>, Vec<UpstreamCall>) =
                mine.map(|(place, question)| (place, question.call.clone())).unzip();
            if calls.is_empty() {
                continue;
            }
            for (place, answer) in places.into_iter().zip(upstream.ask(&calls).await) {
                answers[place] = answer;
            }
        }
        answers
    }

    /// Answers one message.
    pub(crate) async fn answer(&self, message: &[u8]) -> Option<Reply> {
        let mut session = self.client.borrow().open(message);
        loop {
            let deadline = Deadline::start();
            let step = self.client.borrow_mut().step(&mut session, &|| deadline.is_over());
            match step {
                Step::Fetch(questions) => {
                    let answers = self.ask(questions).await;
                    self.client.borrow().feed(&mut session, answers);
                }
                Step::Done(reply) => {
                    self.client.borrow_mut().close(session);
                    return reply;
                }
            }
        }
    }
}
