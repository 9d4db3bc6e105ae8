//! The resident memory of the front ends over a run.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::programs::Program;

/// A run of at least this length has to keep its memory flat. Its small caches are full before the second quarter. After that
/// the headers in memory still grow, by about 2 kB a block, until there are 8,192 of them.
const LONG: Duration = Duration::from_secs(3_000);
/// Growth from the second to the last quarter of a run that counts as flat, in percent.
const GROWTH: u64 = 125;

struct MemorySample {
    at: Duration,
    process: u32,
    kib: u64,
}

pub(crate) struct MemorySamples {
    started: Instant,
    front_ends: Vec<Vec<MemorySample>>,
}

impl Default for MemorySamples {
    fn default() -> Self {
        Self { started: Instant::now(), front_ends: Vec::new() }
    }
}

/// Memory of one front end in KiB.
#[derive(Debug, Serialize)]
pub(crate) struct MemoryUsage {
    /// Processes that were this front end.
    pub(crate) processes: usize,
    pub(crate) start_kib: u64,
    /// The peaks of the quarters of the run.
    pub(crate) quarters_kib: [u64; 4],
    pub(crate) end_kib: u64,
    /// Whether the last quarter's peak is at most 1.25 times that of the second one; `None` for a short run.
    pub(crate) flat: Option<bool>,
}

impl MemorySamples {
    pub(crate) fn sample(&mut self, front_ends: &[Program]) {
        let at = self.started.elapsed();
        self.front_ends.resize_with(front_ends.len(), Vec::new);
        for (samples, program) in self.front_ends.iter_mut().zip(front_ends) {
            let kib = program.memory();
            if kib > 0 {
                samples.push(MemorySample { at, process: program.id(), kib });
            }
        }
    }

    /// The memory that each process has used.
    pub(crate) fn usage(&self) -> Vec<MemoryUsage> {
        let whole = self.started.elapsed();
        self.front_ends.iter().map(|samples| usage(samples, whole)).collect()
    }
}

fn usage(samples: &[MemorySample], whole: Duration) -> MemoryUsage {
    let mut quarters_kib = [0; 4];
    for sample in samples {
        let quarter = (sample.at.as_secs_f64() / whole.as_secs_f64() * 4.0) as usize;
        let peak = &mut quarters_kib[quarter.min(3)];
        *peak = sample.kib.max(*peak);
    }
    let changes = samples.windows(2).filter(|pair| pair[0].process != pair[1].process).count();
    let [_, second, _, last] = quarters_kib;
    MemoryUsage {
        processes: changes + 1,
        start_kib: samples.first().map_or(0, |sample| sample.kib),
        quarters_kib,
        end_kib: samples.last().map_or(0, |sample| sample.kib),
        flat: (whole >= LONG).then_some(last * 100 <= second * GROWTH),
    }
}
