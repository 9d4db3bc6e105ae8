//! Ratios of two workloads within one run, because absolute times mean little on a shared machine.

use core::fmt;
use core::hint::black_box;

/// Number of rounds; the median of their ratios is reported.
const ROUNDS: usize = 5;

/// The time of the full work as a multiple of the time of the bare work.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    /// The ratio of each round, in ascending order.
    pub rounds: [f64; ROUNDS],
}

impl Ratio {
    /// Runs both workloads in turn, `passes` times in each of five rounds. A round's ratio is the median of
    /// its pairs' ratios.
    ///
    /// `clock` may use any unit of time. Its resolution must be well below the time of one run.
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

    /// Does what [`Self::measure`] does for work in parts that fit the caches. Each workload runs a part once
    /// before it is timed, so that the speed of the machine's memory, and its use by others, does not affect
    /// the ratio. Only the sum over all parts counts, so the clock may be coarser than one part.
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
    pub fn median(&self) -> f64 {
        self.rounds[ROUNDS / 2]
    }

    /// Returns one line that compares the median with a limit.
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
    // Dropping the result of a run, such as a chain, is not timed.
    drop(left);
    elapsed
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Returns the processor time of this thread in seconds, which other work on the machine does not affect.
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn seconds() -> f64 {
    cpu_time::ThreadTime::now().as_duration().as_secs_f64()
}

/// Whether the program only prints ratios and not criterion's statistics (`--ratios`).
#[cfg(not(target_arch = "wasm32"))]
#[must_use]
pub fn only_ratios() -> bool {
    std::env::args().any(|arg| arg == "--ratios")
}
