//! Counts of failures by fault. A tally keeps numbers and a few examples, however long a run is.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// Examples of each run that are kept.
const EXAMPLES: usize = 40;

/// The name of the time without a fault.
pub(crate) const CALM: &str = "none";

/// What happened during one kind of fault, until the service was healthy again.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FaultCounts {
    pub(crate) strikes: u64,
    pub(crate) seconds: f64,
    pub(crate) requests: u64,
    pub(crate) answers: u64,
    /// Errors that clients saw, also of requests that were answered by another front end afterwards.
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) wrong: u64,
    pub(crate) lost: u64,
    pub(crate) duplicated: u64,
    /// Events that were reported again after an answer of a front end or a write of the store was lost, as documented.
    pub(crate) repeated: u64,
    /// Steps back of the head by a block while the store was away, as documented.
    pub(crate) stepped_back: u64,
    pub(crate) events: u64,
    pub(crate) unclear: u64,
    pub(crate) longest_silence_ms: u64,
    pub(crate) longest_wait_ms: u64,
    pub(crate) longest_wait_for: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bad {
    /// An answer that the chain contradicts.
    Wrong,
    /// An event that was not told.
    Lost,
    /// An event that was told twice.
    Duplicated,
    /// An error that says nothing useful.
    Unclear,
}

struct TallyState {
    by_fault: BTreeMap<&'static str, FaultCounts>,
    fault: &'static str,
    since: Instant,
    last_answer: Instant,
    examples: Vec<String>,
}

/// The counts of a run.
pub(crate) struct Tally(Mutex<TallyState>);

impl Tally {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(TallyState {
            by_fault: BTreeMap::new(),
            fault: CALM,
            since: now,
            last_answer: now,
            examples: Vec::new(),
        }))
    }

    fn inner(&self) -> MutexGuard<'_, TallyState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut FaultCounts)) {
        let mut inner = self.inner();
        let fault = inner.fault;
        change(inner.by_fault.entry(fault).or_default());
    }

    /// From now on everything is counted for this fault.
    pub(crate) fn begin(&self, fault: &'static str) {
        let mut inner = self.inner();
        let (before, seconds) = (inner.fault, inner.since.elapsed().as_secs_f64());
        inner.by_fault.entry(before).or_default().seconds += seconds;
        (inner.fault, inner.since) = (fault, Instant::now());
        inner.by_fault.entry(fault).or_default().strikes += u64::from(fault != CALM);
    }

    pub(crate) fn request(&self) {
        self.change(|counts| counts.requests += 1);
    }

    pub(crate) fn answer(&self) {
        let mut inner = self.inner();
        let silence = millis(inner.last_answer.elapsed());
        inner.last_answer = Instant::now();
        let fault = inner.fault;
        let counts = inner.by_fault.entry(fault).or_default();
        counts.answers += 1;
        counts.longest_silence_ms = counts.longest_silence_ms.max(silence);
    }

    /// Notes how long a client waited for an answer, with all front ends that it asked for it.
    pub(crate) fn waited(&self, method: &str, time: Duration) {
        self.change(|counts| {
            if millis(time) > counts.longest_wait_ms {
                (counts.longest_wait_ms, counts.longest_wait_for) = (millis(time), method.to_owned());
            }
        });
    }

    pub(crate) fn error(&self, kind: String) {
        self.change(|counts| *counts.errors.entry(kind).or_default() += 1);
    }

    pub(crate) fn event(&self) {
        self.change(|counts| counts.events += 1);
    }

    pub(crate) fn repeated(&self) {
        self.change(|counts| counts.repeated += 1);
    }

    pub(crate) fn stepped_back(&self) {
        self.change(|counts| counts.stepped_back += 1);
    }

    /// Counts something bad, and keeps it as an example.
    pub(crate) fn bad(&self, bad: Bad, count: u64, example: &str) {
        let mut inner = self.inner();
        let fault = inner.fault;
        let counts = inner.by_fault.entry(fault).or_default();
        match bad {
            Bad::Wrong => counts.wrong += count,
            Bad::Lost => counts.lost += count,
            Bad::Duplicated => counts.duplicated += count,
            Bad::Unclear => counts.unclear += count,
        }
        let line = format!("{bad:?} during \"{fault}\": {example:.600}");
        eprintln!("{line}");
        if inner.examples.len() < EXAMPLES {
            inner.examples.push(line);
        }
    }

    pub(crate) fn end(&self) -> (BTreeMap<&'static str, FaultCounts>, Vec<String>) {
        self.begin(CALM);
        let mut inner = self.inner();
        (std::mem::take(&mut inner.by_fault), std::mem::take(&mut inner.examples))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
