//! The limits of one key at one front end. A message is admitted from a lease (a part of the limits that the hot store has given to
//! this front end for a moment), by a question to the store that many messages share, or without the store.
//!
//! [`ClusterMeter`] asks nothing itself: `quotas.rs` sends its questions.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rootlight_limits::unix_time::unix_time;
use rootlight_server::keys::{Exceeded, LimitStatus};
use tokio::sync::oneshot;

use super::fallback::{self, Fallback};
use super::limit_query::{LimitQuery, LimitReply, MessageVerdict, Verdict};
use super::limits::{Demand, KeyLimits, SECOND};
use super::metrics::Decision;

/// Most messages of a key that wait for an answer of the store; further ones are decided without the store.
const MAX_WAITING: usize = 1_024;
/// Most messages in one question.
const MAX_MESSAGES: usize = 256;
/// How long a lease may be used, from when it was asked for.
const LEASE_TIME: Duration = Duration::from_secs(1);
/// Longest time for which a refusal of the store is repeated without asking it.
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// Least number of messages that a lease must admit at the present use for it to be asked for: an unused lease is lost.
const LEASE_MESSAGES: f64 = 2.0;
/// The seconds for which a wanted lease covers the present use.
const LEASE_SECONDS: f64 = 0.5;

/// The decision about a message: what is left of the limits (`None` without limits), or the refusal.
pub(super) type TakeResult = Result<Option<LimitStatus>, Exceeded>;

/// The immediate outcome for a message.
pub(super) enum MeterStep {
    /// The decision, and what it was based on.
    Done(TakeResult, Decision),
    /// The store is asked. If `start` is set, no task asks the store for this key yet, and the caller has to start one.
    Wait { receiver: oneshot::Receiver<(TakeResult, Decision)>, start: bool },
}

/// A message that waits for the store.
struct WaitingMessage {
    demand: Demand,
    sender: oneshot::Sender<(TakeResult, Decision)>,
}

/// The rest of a lease: what messages may take without asking the store.
#[derive(Default)]
struct QuotaLease {
    /// Nanoseconds of the rate.
    nanos: u64,
    /// Requests of the day.
    requests: u64,
    /// When the lease ends; `None` if there is none.
    until: Option<Instant>,
}

/// A refusal of the store, which is repeated for every message that demands at least as much.
struct Refused {
    demand: Demand,
    verdict: Verdict,
    /// Until when it is repeated.
    until: Instant,
}

/// The counters of the store after its last answer.
#[derive(Clone, Copy)]
struct StoreCounters {
    /// When the answer came.
    at: Instant,
    /// Nanoseconds until the whole burst is available.
    used: u64,
    /// Requests of the day.
    count: u64,
    /// The store's clock, in seconds since 1970.
    unix: u64,
}

/// How much of a key's limits messages at this front end use.
#[derive(Default)]
struct UseRate {
    /// When the store was asked last.
    last_question: Option<Instant>,
    /// Messages, nanoseconds of the rate and requests, each per second and smoothed.
    messages: f64,
    nanos: f64,
    requests: f64,
    /// The same since the store was asked last, as sums.
    since_question: (u32, u64, u64),
}

/// A question to the store, with the messages that wait for the answer.
pub(super) struct OpenQuery {
    pub(super) question: LimitQuery,
    asked_at: Instant,
    waiting: Vec<WaitingMessage>,
}

/// The limits of one key.
pub(super) struct ClusterMeter {
    limits: KeyLimits,
    lease: QuotaLease,
    /// The last refusal of the store.
    refused: Option<Refused>,
    counters: Option<StoreCounters>,
    use_rate: UseRate,
    fallback: Fallback,
    waiting: VecDeque<WaitingMessage>,
    /// Whether a task asks the store about the waiting messages.
    asking: bool,
    /// The zero of the clock of `fallback`.
    start: Instant,
}

/// Nanoseconds of a duration.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl ClusterMeter {
    pub(super) fn new(limits: KeyLimits) -> Self {
        Self {
            limits,
            lease: QuotaLease::default(),
            refused: None,
            counters: None,
            use_rate: UseRate::default(),
            fallback: Fallback::default(),
            waiting: VecDeque::new(),
            asking: false,
            start: Instant::now(),
        }
    }

    /// Decides about a message, or makes it wait for the store. `limits` are the present ones of the key.
    pub(super) fn step(&mut self, limits: KeyLimits, demand: Demand, front_ends: u32) -> MeterStep {
        if limits != self.limits {
            (self.limits, self.lease, self.refused, self.counters) =
                (limits, QuotaLease::default(), None, None);
        }
        let now = Instant::now();
        if let Some(status) = self.take_lease(&demand, now) {
            return MeterStep::Done(Ok(status), Decision::Lease);
        }
        if let Some(refusal) = self.repeated_refusal(&demand, now) {
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

    /// Takes the demand from the lease, and returns the status; `None` if there is no lease or it is too small.
    fn take_lease(&mut self, demand: &Demand, now: Instant) -> Option<Option<LimitStatus>> {
        let QuotaLease { nanos, requests, until } = &mut self.lease;
        if until.is_none_or(|until| until <= now) {
            return None;
        }
        let nanos_left = if self.limits.rate.is_some() { nanos.checked_sub(demand.cost)? } else { 0 };
        let requests_left =
            if self.limits.per_day.is_some() { requests.checked_sub(demand.requests)? } else { 0 };
        (*nanos, *requests) = (nanos_left, requests_left);
        self.use_rate.add(demand);
        // There are counters whenever there is a lease: the same answer of the store sets both.
        let counters = self.counters?;
        // The store counts the whole lease as used; the rest of it is still available.
        let used = counters.used_at(now).saturating_sub(nanos_left);
        Some(self.limits.status(used, counters.count.saturating_sub(requests_left), counters.unix))
    }

    /// Repeats the last refusal of the store, if it holds for this message too.
    fn repeated_refusal(&mut self, demand: &Demand, now: Instant) -> Option<Exceeded> {
        let refused = self.refused.as_ref().filter(|refused| refused.until > now)?;
        let counters = self.counters?;
        let used = counters.used_at(now);
        match refused.verdict {
            Verdict::Wait(_) if demand.cost >= refused.demand.cost => {
                let size = self.limits.rate?.size();
                let wait = used.saturating_add(demand.cost.min(size)).saturating_sub(size);
                (wait > 0).then(|| self.limits.too_fast(wait, used))
            }
            Verdict::Day if demand.requests >= refused.demand.requests => {
                Some(self.limits.too_many(counters.count, counters.unix))
            }
            // A message that demands less than the refused one may fit: the store is asked.
            _ => None,
        }
    }

    /// Decides about a message by this front end's share of the limits.
    fn without_store(&mut self, demand: &Demand, front_ends: u32) -> TakeResult {
        let unix = unix_time();
        let counted =
            self.counters.map_or(0, |counters| if counters.is_today(unix) { counters.count } else { 0 });
        let nanos = nanos(self.start.elapsed());
        let input = fallback::FallbackInput { front_ends, nanos, unix, counted };
        let taken = self.fallback.take(&self.limits, demand, input);
        if taken.is_ok() {
            self.use_rate.add(demand);
        }
        taken
    }

    /// The next question; `None` if no message waits. After `None` the task that asks must end: the next message starts another.
    pub(super) fn next_question(&mut self) -> Option<OpenQuery> {
        if self.waiting.is_empty() {
            self.asking = false;
            return None;
        }
        let count = self.waiting.len().min(MAX_MESSAGES);
        let waiting: Vec<WaitingMessage> = self.waiting.drain(..count).collect();
        let demands = waiting.iter().map(|waiting| waiting.demand).collect();
        let asked_at = Instant::now();
        let lease = self.use_rate.wanted_lease(asked_at);
        let unreported =
            if self.limits.per_day.is_some() { self.fallback.take_unreported(unix_time()) } else { 0 };
        let question = LimitQuery { limits: self.limits, demands, lease, unreported };
        Some(OpenQuery { question, asked_at, waiting })
    }

    /// Answers the messages of a question.
    pub(super) fn answer(&mut self, query: OpenQuery, reply: &LimitReply) {
        let OpenQuery { question, asked_at, waiting } = query;
        // The limits may have changed meanwhile; then the counters and the lease are of no use.
        let is_current = question.limits == self.limits;
        for (message, verdict) in waiting.into_iter().zip(&reply.verdicts) {
            let MessageVerdict { verdict, used, count } = *verdict;
            let counters = StoreCounters { at: Instant::now(), used, count, unix: reply.unix };
            let limits = &question.limits;
            let taken = match verdict {
                Verdict::Admitted => {
                    self.use_rate.add(&message.demand);
                    Ok(limits.status(used, count, reply.unix))
                }
                Verdict::Wait(wait) => Err(limits.too_fast(wait, used)),
                Verdict::Day => Err(limits.too_many(count, reply.unix)),
            };
            if is_current {
                self.counters = Some(counters);
                self.note_refusal(&message.demand, verdict);
            }
            // Sending fails if the request was given up, which needs no handling.
            let _ = message.sender.send((taken, Decision::Store));
        }
        if !is_current {
            return;
        }
        let (nanos, requests) = reply.lease;
        // The verdicts were computed before the lease was taken.
        if let Some(counters) = &mut self.counters {
            counters.used = counters.used.saturating_add(nanos);
            counters.count = counters.count.saturating_add(requests);
        }
        if nanos > 0 || requests > 0 {
            // The rest of the former lease is lost.
            self.lease = QuotaLease { nanos, requests, until: asked_at.checked_add(LEASE_TIME) };
        }
    }

    /// Notes a refusal, so that it can be repeated for a while.
    fn note_refusal(&mut self, demand: &Demand, verdict: Verdict) {
        let time = match verdict {
            Verdict::Admitted => return,
            Verdict::Wait(wait) => Duration::from_nanos(wait).min(REFUSAL_TIME),
            Verdict::Day => REFUSAL_TIME,
        };
        let until = Instant::now().checked_add(time);
        self.refused = until.map(|until| Refused { demand: *demand, verdict, until });
    }

    /// Decides without the store about the messages of a question that the store did not answer, and about all others that wait.
    pub(super) fn give_up(&mut self, query: OpenQuery, front_ends: u32) {
        self.fallback.report_failed(query.question.unreported);
        let others: Vec<WaitingMessage> = self.waiting.drain(..).collect();
        for WaitingMessage { demand, sender } in query.waiting.into_iter().chain(others) {
            let taken = self.without_store(&demand, front_ends);
            let _ = sender.send((taken, Decision::Fallback));
        }
    }
}

impl StoreCounters {
    /// Nanoseconds until the whole burst is available, from `now` on.
    fn used_at(&self, now: Instant) -> u64 {
        self.used.saturating_sub(nanos(now.saturating_duration_since(self.at)))
    }

    /// Whether the counters are of the day of this time, in seconds since 1970.
    fn is_today(&self, unix: u64) -> bool {
        self.unix / rootlight_limits::unix_time::DAY == unix / rootlight_limits::unix_time::DAY
    }
}

impl UseRate {
    /// Adds an admitted message.
    fn add(&mut self, demand: &Demand) {
        let (messages, nanos, requests) = &mut self.since_question;
        *messages = messages.saturating_add(1);
        *nanos = nanos.saturating_add(demand.cost);
        *requests = requests.saturating_add(demand.requests);
    }

    /// The lease that would be used up within [`LEASE_SECONDS`] at the present use: nanoseconds of the rate, and requests. `(0, 0)`
    /// if it would admit too few messages. Called for each question.
    fn wanted_lease(&mut self, now: Instant) -> (u64, u64) {
        let (messages, spent, requests) = std::mem::take(&mut self.since_question);
        // Seconds since the last question; one second before the first.
        let passed = self.last_question.map_or(1.0, |last| now.saturating_duration_since(last).as_secs_f64());
        self.last_question = Some(now);
        // At least a millisecond, so that the division below gives no extreme rates.
        let passed = passed.max(0.001);
        // The weight of the newest use in the smoothed rate: all of it after a second.
        let share = passed.min(1.0);
        let smooth = |old: &mut f64, new: f64| *old += (new / passed - *old) * share;
        smooth(&mut self.messages, messages.into());
        smooth(&mut self.nanos, spent as f64);
        smooth(&mut self.requests, requests as f64);
        if self.messages * LEASE_SECONDS < LEASE_MESSAGES {
            return (0, 0);
        }
        // A lease takes at most a second of the rate, whatever was used; `take.lua` gives less. A conversion from a floating-point number
        // saturates.
        (
            (self.nanos * LEASE_SECONDS).min(SECOND as f64) as u64,
            (self.requests * LEASE_SECONDS).ceil() as u64,
        )
    }
}
