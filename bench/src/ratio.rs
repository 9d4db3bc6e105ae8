//! Ratios of two workloads within one run: absolute times say little on a shared machine.

use core::fmt;
use core::hint::black_box;

/// Times per run that a ratio is taken; the median counts.
const ROUNDS: usize = 5;

/// How many times longer the full work takes than its bare hashes.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    /// Of each round, in ascending order.
    pub rounds: [f64; ROUNDS],
}

impl Ratio {
    /// Runs both in turn, `passes` times in each of five rounds; a round's ratio is the median of its pairs'.
    ///
    /// `clock` gives any unit of time, of a resolution well below one run.
    pub fn measure<A, B>(
        clock: &dyn Fn() -> f64,
        passes: usize,
        mut bare: impl FnMut() -> A,
        mut full: impl FnMut() -> B,
    ) -> Self {
        Self::of_pairs(passes, || {
            let bare = time(clock, &mut bare);
            time(clock, &mut full) / bare
        })
    }

    /// As [`Self::measure`], of work that comes in parts small enough for the nearest caches. Both go through a part once
    /// before the clock looks at it: how fast the machine's memory is, and who else uses it, is no part of the ratio. Only
    /// the sum over all parts is looked at, so the clock may be coarser than one of them.
    pub fn measure_parts<A, B>(
        clock: &dyn Fn() -> f64,
        passes: usize,
        parts: usize,
        bare: impl Fn(usize) -> A,
        full: impl Fn(usize) -> B,
    ) -> Self {
        Self::of_pairs(passes, || {
            let (mut bare_time, mut full_time) = (0.0, 0.0);
            for part in 0..parts {
                black_box((bare(part), full(part)));
                bare_time += time(clock, &mut || bare(part));
                full_time += time(clock, &mut || full(part));
            }
            full_time / bare_time
        })
    }

    fn of_pairs(passes: usize, mut pair: impl FnMut() -> f64) -> Self {
        let mut rounds = [0.0; ROUNDS];
        for round in &mut rounds {
            let mut pairs: Vec<f64> = (0..passes).map(|_| pair()).collect();
            *round = median(&mut pairs);
        }
        rounds.sort_by(f64::total_cmp);
        Self { rounds }
    }

    /// The median of the rounds.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.rounds[ROUNDS / 2]
    }

    /// One line with the limit it is held against.
    pub fn report(&self, what: &str, limit: f64) -> String {
        let verdict = if self.median() <= limit { "ok" } else { "MISSED" };
        format!("{what}: {self}, at most {limit}: {verdict}")
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.3} (five rounds: {:.3} to {:.3})",
            self.median(),
            self.rounds[0],
            self.rounds[ROUNDS - 1]
        )
    }
}

fn time<T>(clock: &dyn Fn() -> f64, run: &mut impl FnMut() -> T) -> f64 {
    let start = clock();
    let left = black_box(run());
    let elapsed = clock() - start;
    // What is kept of a run, such as a chain, is not part of it.
    drop(left);
    elapsed
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Processor time of this thread in seconds: other work on the machine does not count.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn seconds() -> f64 {
    cpu_time::ThreadTime::now().as_duration().as_secs_f64()
}

/// Whether only the ratios are wanted, not criterion's statistics (`--ratios`).
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn only_ratios() -> bool {
    std::env::args().any(|arg| arg == "--ratios")
}
