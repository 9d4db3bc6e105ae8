//! The limits of one key at one front end: leases, questions to the store that many messages share, and decisions without
//! the store.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rootlight_limits::unix_time::unix_time;
use rootlight_server::keys::{Exceeded, LimitStatus};
use tokio::sync::oneshot;

use super::fallback::{self, Fallback};
use super::limit_query::{LimitQuery, LimitReply, Verdict};
use super::limits::{Demand, KeyLimits, SECOND};
use super::metrics::Decision;

/// Most messages of a key that wait for an answer of the store.
const MAX_WAITING: usize = 1_024;
/// Most messages of one question.
const MAX_ASKED: usize = 256;
/// How long a lease may be used.
const LEASE_TIME: Duration = Duration::from_secs(1);
/// Longest time for which a refusal of the store is repeated without asking it.
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// Messages that must fit into a lease, for it to be asked for: an unused lease is lost.
const LEASE_MESSAGES: f64 = 2.0;
/// A lease covers the use of so many seconds.
const LEASE_USE: f64 = 0.5;

pub(super) type TakeResult = Result<Option<LimitStatus>, Exceeded>;

/// The immediate outcome for a message.
pub(super) enum MeterStep {
    Done(TakeResult, Decision),
    /// The store is asked. If `start` is set, the caller has to start the asking.
    Wait {
        receiver: oneshot::Receiver<(TakeResult, Decision)>,
        start: bool,
    },
}

struct WaitingMessage {
    demand: Demand,
    sender: oneshot::Sender<(TakeResult, Decision)>,
}

/// The rest that may be taken without asking.
#[derive(Default)]
struct Lease {
    nanos: u64,
    requests: u64,
    until: Option<Instant>,
}

/// A refusal of the store, which holds for every message that asks for as much.
struct Refused {
    demand: Demand,
    verdict: Verdict,
    until: Instant,
}

/// The store's last answer.
#[derive(Clone, Copy)]
struct StoreCounters {
    at: Instant,
    used: u64,
    count: u64,
    unix: u64,
}

/// How much of a key passes at this front end, smoothed, per second.
#[derive(Default)]
struct UseRate {
    since: Option<Instant>,
    messages: f64,
    nanos: f64,
    requests: f64,
    /// Messages, nanoseconds and requests since the store was asked last.
    since_question: (u32, u64, u64),
}

/// A question to the store, with those who wait for the answer.
pub(super) struct OpenQuery {
    pub(super) question: LimitQuery,
    at: Instant,
    waiting: Vec<WaitingMessage>,
}

/// The limits of one key.
pub(super) struct ClusterMeter {
    limits: KeyLimits,
    lease: Lease,
    refused: Option<Refused>,
    known: Option<StoreCounters>,
    pace: UseRate,
    fallback: Fallback,
    waiting: VecDeque<WaitingMessage>,
    /// Whether a task asks the store about the waiting messages.
    asking: bool,
    start: Instant,
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl ClusterMeter {
    pub(super) fn new(limits: KeyLimits) -> Self {
        Self {
            limits,
            lease: Lease::default(),
            refused: None,
            known: None,
            pace: UseRate::default(),
            fallback: Fallback::default(),
            waiting: VecDeque::new(),
            asking: false,
            start: Instant::now(),
        }
    }

    /// Takes a message, or makes it wait for the store.
    pub(super) fn step(&mut self, limits: KeyLimits, demand: Demand, front_ends: u32) -> MeterStep {
        if limits != self.limits {
            (self.limits, self.lease, self.refused, self.known) = (limits, Lease::default(), None, None);
        }
        let now = Instant::now();
        if let Some(status) = self.take_lease(&demand, now) {
            return MeterStep::Done(Ok(status), Decision::Lease);
        }
        if let Some(refusal) = self.known_refusal(&demand, now) {
            return MeterStep::Done(Err(refusal), Decision::Refusal);
        }
        if self.waiting.len() >= MAX_WAITING {
            return MeterStep::Done(self.without_store(&demand, front_ends), Decision::Fallback);
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.push_back(WaitingMessage { demand, sender });
        let start = !std::mem::replace(&mut self.asking, true);
        MeterStep::Wait { receiver, start }
    }

    fn take_lease(&mut self, demand: &Demand, now: Instant) -> Option<Option<LimitStatus>> {
        let Lease { nanos, requests, until } = &mut self.lease;
        if until.is_none_or(|until| until <= now) {
            return None;
        }
        let left = if self.limits.rate.is_some() { nanos.checked_sub(demand.cost)? } else { 0 };
        let more = if self.limits.per_day.is_some() { requests.checked_sub(demand.requests)? } else { 0 };
        (*nanos, *requests) = (left, more);
        self.pace.add(demand);
        let known = self.known?;
        // The rest of the lease can still be taken.
        let used = known.used_at(now).saturating_sub(left);
        Some(self.limits.status(used, known.count.saturating_sub(more), known.unix))
    }

    fn known_refusal(&mut self, demand: &Demand, now: Instant) -> Option<Exceeded> {
        let refused = self.refused.as_ref().filter(|refused| refused.until > now)?;
        let known = self.known?;
        let used = known.used_at(now);
        match refused.verdict {
            Verdict::Wait(_) if demand.cost >= refused.demand.cost => {
                let size = self.limits.rate?.size();
                let wait = used.saturating_add(demand.cost.min(size)).saturating_sub(size);
                (wait > 0).then(|| self.limits.too_fast(wait, used))
            }
            Verdict::Day if demand.requests >= refused.demand.requests => {
                Some(self.limits.too_many(known.count, known.unix))
            }
            _ => None,
        }
    }

    fn without_store(&mut self, demand: &Demand, front_ends: u32) -> TakeResult {
        let unix = unix_time();
        let known = self.known.map_or(0, |known| if known.is_today(unix) { known.count } else { 0 });
        let at = fallback::FallbackTime { front_ends, nanos: nanos(self.start.elapsed()), unix, known };
        let taken = self.fallback.take(&self.limits, demand, at);
        if taken.is_ok() {
            self.pace.add(demand);
        }
        taken
    }

    /// The next question; `None` if no message waits. Then another task may start to ask.
    pub(super) fn question(&mut self) -> Option<OpenQuery> {
        if self.waiting.is_empty() {
            self.asking = false;
            return None;
        }
        let count = self.waiting.len().min(MAX_ASKED);
        let waiting: Vec<WaitingMessage> = self.waiting.drain(..count).collect();
        let demands = waiting.iter().map(|waiting| waiting.demand).collect();
        let at = Instant::now();
        let lease = self.pace.lease(at);
        let unreported = if self.limits.per_day.is_some() { self.fallback.tell(unix_time()) } else { 0 };
        let question = LimitQuery { limits: self.limits, demands, lease, unreported };
        Some(OpenQuery { question, at, waiting })
    }

    /// Answers the messages of a question.
    pub(super) fn answer(&mut self, asked: OpenQuery, reply: &LimitReply) {
        let OpenQuery { question, at, waiting } = asked;
        // The limits may have changed meanwhile.
        let current = question.limits == self.limits;
        for (waiting, one) in waiting.into_iter().zip(&reply.verdicts) {
            let known =
                StoreCounters { at: Instant::now(), used: one.used, count: one.count, unix: reply.unix };
            let limits = &question.limits;
            let taken = match one.verdict {
                Verdict::Admitted => {
                    self.pace.add(&waiting.demand);
                    Ok(limits.status(one.used, one.count, reply.unix))
                }
                Verdict::Wait(wait) => Err(limits.too_fast(wait, one.used)),
                Verdict::Day => Err(limits.too_many(one.count, reply.unix)),
            };
            if current {
                self.known = Some(known);
                self.note_refusal(&waiting.demand, one.verdict);
            }
            let _ = waiting.sender.send((taken, Decision::Store));
        }
        if !current {
            return;
        }
        let (nanos, requests) = reply.lease;
        if let Some(known) = &mut self.known {
            known.used = known.used.saturating_add(nanos);
            known.count = known.count.saturating_add(requests);
        }
        if nanos > 0 || requests > 0 {
            // The rest of the former lease is lost.
            self.lease = Lease { nanos, requests, until: at.checked_add(LEASE_TIME) };
        }
    }

    fn note_refusal(&mut self, demand: &Demand, verdict: Verdict) {
        let time = match verdict {
            Verdict::Admitted => return,
            Verdict::Wait(wait) => Duration::from_nanos(wait).min(REFUSAL_TIME),
            Verdict::Day => REFUSAL_TIME,
        };
        let until = Instant::now().checked_add(time);
        self.refused = until.map(|until| Refused { demand: *demand, verdict, until });
    }

    /// Decides without the store about the messages of a question and all others that wait.
    pub(super) fn give_up(&mut self, asked: OpenQuery, front_ends: u32) {
        self.fallback.report_failed(asked.question.unreported);
        let others: Vec<WaitingMessage> = self.waiting.drain(..).collect();
        for WaitingMessage { demand, sender } in asked.waiting.into_iter().chain(others) {
            let taken = self.without_store(&demand, front_ends);
            let _ = sender.send((taken, Decision::Fallback));
        }
    }
}

impl StoreCounters {
    fn used_at(&self, now: Instant) -> u64 {
        self.used.saturating_sub(nanos(now.saturating_duration_since(self.at)))
    }

    fn is_today(&self, unix: u64) -> bool {
        self.unix / rootlight_limits::unix_time::DAY == unix / rootlight_limits::unix_time::DAY
    }
}

impl UseRate {
    fn add(&mut self, demand: &Demand) {
        let (messages, nanos, requests) = &mut self.since_question;
        *messages = messages.saturating_add(1);
        *nanos = nanos.saturating_add(demand.cost);
        *requests = requests.saturating_add(demand.requests);
    }

    /// The lease that would be used up soon, in nanoseconds of the rate and in requests.
    fn lease(&mut self, now: Instant) -> (u64, u64) {
        let (messages, spent, requests) = std::mem::take(&mut self.since_question);
        let passed = self.since.map_or(1.0, |since| now.saturating_duration_since(since).as_secs_f64());
        self.since = Some(now);
        let passed = passed.max(0.001);
        let share = passed.min(1.0);
        let mix = |old: &mut f64, new: f64| *old += (new / passed - *old) * share;
        mix(&mut self.messages, messages.into());
        mix(&mut self.nanos, spent as f64);
        mix(&mut self.requests, requests as f64);
        if self.messages * LEASE_USE < LEASE_MESSAGES {
            return (0, 0);
        }
        // A conversion saturates.
        ((self.nanos * LEASE_USE).min(SECOND as f64) as u64, (self.requests * LEASE_USE).ceil() as u64)
    }
}
