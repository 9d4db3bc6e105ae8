//! The chain as a client was notified of it, to find notifications that are lost or repeated.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::chain::{BlockSummary, ServiceChain, number};
use crate::conditions::Conditions;
use crate::tally::{Bad, Tally};

/// Longest wait for events, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Blocks that are remembered although all events about them have arrived.
const KEPT: u64 = 24;

/// What one client knows.
pub(crate) struct View {
    name: &'static str,
    chain: Arc<ServiceChain>,
    tally: Arc<Tally>,
    conditions: Arc<Conditions>,
    /// Whether it is told again what a lost write of the store reported: by filters, and never by subscriptions.
    may_repeat: bool,
    known: Mutex<ViewState>,
}

#[derive(Default)]
struct ViewState {
    heads: VecDeque<Arc<BlockSummary>>,
    /// Heads that the client has fetched, and may be told once more.
    fetched: HashSet<String>,
    /// Logs by block and place, and whether the client was told of them.
    logs: HashMap<(String, u64), bool>,
    /// The first block whose events are not checked yet.
    unchecked: u64,
}

impl View {
    pub(crate) fn new(
        name: &'static str,
        chain: &Arc<ServiceChain>,
        tally: &Arc<Tally>,
        conditions: &Arc<Conditions>,
        may_repeat: bool,
    ) -> Arc<Self> {
        let (chain, tally, conditions) = (chain.clone(), tally.clone(), conditions.clone());
        Arc::new(Self { name, chain, tally, conditions, may_repeat, known: Mutex::default() })
    }

    fn bad(&self, bad: Bad, count: u64, text: &str) {
        let name = self.name;
        if bad == Bad::Duplicated && self.may_repeat && self.conditions.store_is_unsure() {
            (0..count).for_each(|_| self.tally.repeated());
        } else {
            self.tally.bad(bad, count, &format!("{name}: {text}"));
        }
    }

    /// Whether the client has this head.
    pub(crate) fn has(&self, hash: &str) -> bool {
        self.known.lock().unwrap().heads.iter().any(|head| head.hash == hash)
    }

    /// Whether it has none yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.lock().unwrap().heads.is_empty()
    }

    /// The first block whose events are not checked yet; `None` if the client has no heads yet.
    pub(crate) fn unchecked(&self) -> Option<u64> {
        let known = self.known.lock().unwrap();
        (!known.heads.is_empty()).then_some(known.unchecked)
    }

    /// The client has fetched these heads, oldest first, after one that it knows, and the logs from there on.
    pub(crate) fn fetched(&self, heads: &[String], logs: &[Value]) {
        let known = &mut *self.known.lock().unwrap();
        known.fetched.clear();
        for hash in heads {
            let Some(record) = self.chain.block(hash) else {
                self.bad(Bad::Wrong, 1, &format!("fetched block {hash} is unknown"));
                continue;
            };
            if known.heads.is_empty() {
                known.unchecked = record.number;
            }
            known.join(record);
            known.fetched.insert(hash.clone());
        }
        // The logs of blocks that have left the chain are not reported as removed to who was told of them elsewhere.
        let canonical: HashSet<&str> = known.heads.iter().map(|head| head.hash.as_str()).collect();
        known.logs.retain(|(hash, _), _| canonical.contains(hash.as_str()));
        known.logs.values_mut().for_each(|is_reported| *is_reported = false);
        for log in logs {
            if let Some(log_id) = self.log_id(log) {
                known.logs.insert(log_id, false);
            }
        }
    }

    /// The block and the place of a log, if it is right.
    fn log_id(&self, log: &Value) -> Option<(String, u64)> {
        let (hash, index) = (log["blockHash"].as_str().unwrap_or_default(), number(&log["logIndex"]));
        let record = self.chain.block(hash);
        let is_right = record.is_some_and(|record| {
            record.logs.iter().any(|(at, data)| *at == index && log["data"] == data.as_str())
        });
        if !is_right {
            self.bad(Bad::Wrong, 1, &format!("log {log}"));
        }
        is_right.then(|| (hash.to_owned(), index))
    }

    /// The client is told of a new head.
    pub(crate) fn tell_head(&self, hash: &str) {
        self.tally.event();
        let Some(record) = self.chain.block(hash) else {
            return self.bad(Bad::Wrong, 1, &format!("head {hash} is unknown"));
        };
        let known = &mut *self.known.lock().unwrap();
        if known.heads.iter().any(|head| head.hash == hash) {
            if !known.fetched.remove(hash) {
                self.bad(Bad::Duplicated, 1, &format!("head {} {hash}", record.number));
            }
            return;
        }
        if known.heads.is_empty() {
            known.unchecked = record.number;
        } else if !known.heads.iter().any(|head| head.hash == record.parent) {
            let last = known.heads.back().map(|head| (head.number, head.hash.clone()));
            let text = format!("head {} {hash} after {last:?}", record.number);
            self.bad(Bad::Lost, 1, &text);
        }
        known.join(record);
    }

    /// The client is told of a log.
    pub(crate) fn tell_log(&self, log: &Value) {
        self.tally.event();
        let Some(log_id) = self.log_id(log) else { return };
        let known = &mut *self.known.lock().unwrap();
        if log["removed"] == true {
            if known.logs.remove(&log_id).is_none() {
                self.bad(Bad::Duplicated, 1, &format!("removed log {log}"));
            }
        } else if known.logs.insert(log_id, true) == Some(true) {
            self.bad(Bad::Duplicated, 1, &format!("log {log}"));
        }
    }

    /// The logs of the blocks up to this one that were not reported to the client yet.
    fn missing(&self, last: u64) -> Vec<String> {
        let known = self.known.lock().unwrap();
        let mut missing = Vec::new();
        let mut canonical = HashSet::new();
        for at in known.unchecked..=last {
            let Some(record) = self.chain.canonical(at) else { continue };
            if !known.heads.iter().any(|head| head.hash == record.hash) {
                missing.push(format!("head {at} {}", record.hash));
            }
            for (index, _) in &record.logs {
                if !known.logs.contains_key(&(record.hash.clone(), *index)) {
                    missing.push(format!("log {index} of block {at}"));
                }
            }
            canonical.insert(record.hash.clone());
        }
        for ((hash, index), is_reported) in &known.logs {
            let record = self.chain.block(hash);
            let at = record.map_or(0, |record| record.number);
            if *is_reported && (known.unchecked..=last).contains(&at) && !canonical.contains(hash) {
                missing.push(format!("removal of log {index} of block {at} {hash}"));
            }
        }
        missing
    }

    /// Waits until the client has been told of all blocks up to this one; what does not arrive is lost.
    pub(crate) async fn settle(&self, last: u64) {
        let started = Instant::now();
        let mut missing = self.missing(last);
        while !missing.is_empty() && started.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(50)).await;
            missing = self.missing(last);
        }
        if !missing.is_empty() {
            let count = missing.len() as u64;
            missing.truncate(4);
            self.bad(Bad::Lost, count, &missing.join(", "));
        }
        let known = &mut *self.known.lock().unwrap();
        known.unchecked = known.unchecked.max(last + 1);
        let lowest = last.saturating_sub(KEPT);
        while known.heads.front().is_some_and(|head| head.number < lowest) {
            known.heads.pop_front();
        }
        known
            .logs
            .retain(|(hash, _), _| self.chain.block(hash).is_some_and(|record| record.number >= lowest));
    }
}

impl ViewState {
    /// Adds a head after its parent; heads after the parent have left the chain.
    fn join(&mut self, record: Arc<BlockSummary>) {
        let parent = self.heads.iter().position(|head| head.hash == record.parent);
        let keep = match parent {
            Some(parent) => parent + 1,
            None => self.heads.iter().take_while(|head| head.number < record.number).count(),
        };
        for gone in self.heads.drain(keep..) {
            self.fetched.remove(&gone.hash);
            // Of a log that was only fetched, no removal is told.
            self.logs.retain(|(hash, _), is_reported| *is_reported || *hash != gone.hash);
        }
        self.heads.push_back(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts of what was lost, told twice and wrong.
    fn found(tally: &Tally) -> (u64, u64, u64) {
        let (counts, _) = tally.end();
        counts.values().fold((0, 0, 0), |(lost, twice, wrong), counts| {
            (lost + counts.lost, twice + counts.duplicated, wrong + counts.wrong)
        })
    }

    fn view(chain: &Arc<ServiceChain>) -> (Arc<View>, Arc<Tally>) {
        let tally = Arc::new(Tally::new());
        (View::new("test", chain, &tally, &Arc::default(), false), tally)
    }

    async fn tell(view: &View, record: &BlockSummary) {
        view.tell_head(&record.hash);
        for log in logs(&view.chain, &record.hash).await {
            view.tell_log(&log);
        }
    }

    async fn logs(chain: &ServiceChain, hash: &str) -> Vec<Value> {
        let filter = serde_json::json!([{"blockHash": hash, "address": chain.contract}]);
        chain.ask("eth_getLogs", filter).await.as_array().unwrap().clone()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn missing_duplicate_and_wrong_events_are_detected() {
        let chain = ServiceChain::start().await;
        let at = |number: u64| chain.canonical(number).unwrap();
        let (view, tally) = view(&chain);
        for number in 3..6 {
            tell(&view, &at(number)).await;
        }
        view.settle(5).await;
        assert_eq!(found(&tally), (0, 0, 0));
        tell(&view, &at(7)).await;
        assert_eq!(found(&tally), (1, 0, 0), "block 6 is missing");
        tell(&view, &at(7)).await;
        assert_eq!(found(&tally), (0, 1 + at(7).logs.len() as u64, 0));
        view.tell_head("0x00");
        let mut log = logs(&chain, &at(8).hash).await.remove(0);
        log["data"] = "0x00".into();
        view.tell_log(&log);
        assert_eq!(found(&tally), (0, 0, 2));
    }

    /// The filter of blocks has told of two blocks, and the filter of logs is gone before it tells of the logs of these
    /// blocks.
    #[tokio::test(flavor = "multi_thread")]
    async fn logs_that_were_lost_with_their_filter_are_fetched_for_every_unchecked_block() {
        let chain = ServiceChain::start().await;
        let at = |number: u64| chain.canonical(number).unwrap();
        let (view, tally) = view(&chain);
        assert_eq!(view.unchecked(), None);
        tell(&view, &at(3)).await;
        view.settle(3).await;
        for number in [4, 5] {
            view.tell_head(&at(number).hash);
        }
        let mut fetched = Vec::new();
        for number in view.unchecked().unwrap()..=5 {
            fetched.extend(logs(&chain, &at(number).hash).await);
        }
        assert!(!view.missing(5).is_empty());
        view.fetched(&[], &fetched);
        view.settle(5).await;
        assert_eq!(found(&tally), (0, 0, 0));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_reorganisation_takes_logs_back() {
        let chain = ServiceChain::start().await;
        let (view, tally) = view(&chain);
        let first = chain.head();
        tell(&view, &first).await;
        let reorganised = tokio::spawn({
            let chain = chain.clone();
            async move { chain.reorganise(Duration::from_millis(500)).await }
        });
        while chain.head().number == first.number {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let gone = chain.head();
        let removed = logs(&chain, &gone.hash).await;
        tell(&view, &gone).await;
        reorganised.await.unwrap();
        let last = chain.head().number;
        for number in first.number + 1..=last {
            tell(&view, &chain.canonical(number).unwrap()).await;
        }
        assert_eq!(view.missing(last).len(), removed.len(), "the removal of the logs");
        for mut log in removed {
            log["removed"] = true.into();
            view.tell_log(&log);
        }
        view.settle(last).await;
        assert_eq!(found(&tally), (0, 0, 0));
    }
}
