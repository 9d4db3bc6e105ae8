//! The report of a run: a file, and a table on standard output.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::clients::Admitted;
use crate::memory::MemoryUsage;
use crate::tally::FaultCounts;

/// Seconds after which the clients must have used up their limits.
const MINUTE: u64 = 60;

/// How a key was used.
#[derive(Debug, Serialize)]
pub(crate) struct KeyUse {
    pub(crate) key: String,
    /// Messages that were admitted and answered.
    pub(crate) answered: u64,
    /// Messages without an answer.
    pub(crate) unknown: u64,
    /// Messages of the last seconds of killed front ends.
    pub(crate) unwritten: u64,
    /// Requests in the database.
    pub(crate) counted: u64,
}

impl KeyUse {
    /// Whether the database has what was admitted, apart from what killed front ends lost.
    fn is_right(&self) -> bool {
        self.counted <= self.answered + self.unknown && self.counted + self.unwritten >= self.answered
    }
}

/// What a run found.
#[derive(Debug, Serialize)]
pub(crate) struct ServiceReport {
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    pub(crate) blocks: u64,
    pub(crate) transactions: u64,
    pub(crate) left_out: Vec<String>,
    pub(crate) by_fault: BTreeMap<&'static str, FaultCounts>,
    pub(crate) quotas: Vec<Admitted>,
    pub(crate) usage: Vec<KeyUse>,
    pub(crate) memory: Vec<MemoryUsage>,
    pub(crate) index_is_right: bool,
    pub(crate) examples: Vec<String>,
}

impl ServiceReport {
    /// The differences from the documented behaviour.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, counts) in &self.by_fault {
            let FaultCounts { wrong, lost, duplicated, unclear, .. } = counts;
            if wrong + lost + duplicated + unclear > 0 {
                let text =
                    format!("{wrong} wrong, {lost} lost, {duplicated} duplicated, {unclear} unclear errors");
                faults.push(format!("{name}: {text}"));
            }
        }
        for quota in &self.quotas {
            // On a busy machine the clients of a short run may send less than is admitted.
            let unused = quota.admitted == 0 || quota.refused == 0 && self.seconds >= MINUTE;
            if quota.excess > 0.0 || quota.excess_in_failures > 0.0 || unused {
                faults.push(format!("quota: {quota:?}"));
            }
        }
        faults
            .extend(self.usage.iter().filter(|used| !used.is_right()).map(|used| format!("usage: {used:?}")));
        let grows = |usage: &&MemoryUsage| usage.flat == Some(false) && usage.processes == 1;
        faults.extend(self.memory.iter().filter(grows).map(|usage| format!("memory: {usage:?}")));
        if !self.index_is_right {
            faults.push("the index differs from the chain".into());
        }
        faults.extend(self.left_out.iter().map(|text| format!("left out: {text}")));
        faults
    }

    pub(crate) fn write(&self, path: &Path) {
        let text = serde_json::to_string_pretty(self).unwrap();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(path, text).unwrap();
        println!("report: {}", path.display());
    }

    pub(crate) fn print(&self) {
        println!(
            "seed {}: {} s, {} blocks, {} transactions of clients",
            self.seed, self.seconds, self.blocks, self.transactions
        );
        println!(
            "{:<24}{:>7}{:>7}{:>9}{:>9}{:>7}{:>6}{:>5}{:>5}{:>6}{:>6}{:>9}{:>9}  errors",
            "fault",
            "strikes",
            "s",
            "requests",
            "answers",
            "events",
            "wrong",
            "lost",
            "dupl",
            "again",
            "back",
            "silence",
            "wait for"
        );
        for (name, counts) in &self.by_fault {
            let errors: Vec<String> =
                counts.errors.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
            println!(
                "{name:<24}{:>7}{:>7.0}{:>9}{:>9}{:>7}{:>6}{:>5}{:>5}{:>6}{:>6}{:>6} ms{:>6} ms {}  {}",
                counts.strikes,
                counts.seconds,
                counts.requests,
                counts.answers,
                counts.events,
                counts.wrong,
                counts.lost,
                counts.duplicated,
                counts.repeated,
                counts.stepped_back,
                counts.longest_silence_ms,
                counts.longest_wait_ms,
                counts.longest_wait_for,
                errors.join(", ")
            );
        }
        for quota in &self.quotas {
            println!(
                "key with {}/s, burst {}: {} admitted, {} refused, at most {:.1} above burst and rate (leases {}), \
                 {} failures of the store",
                quota.per_second,
                quota.burst,
                quota.admitted,
                quota.refused,
                quota.most_above,
                quota.leases,
                quota.failures
            );
        }
        for used in &self.usage {
            println!("usage: {used:?}");
        }
        for (number, usage) in self.memory.iter().enumerate() {
            println!("front end {number}: {usage:?}");
        }
        self.left_out.iter().for_each(|text| println!("left out: {text}"));
    }
}
