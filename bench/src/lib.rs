//! Shared set-up of the benches.

use std::hint::black_box;
use std::time::Instant;

/// How many times longer `full` takes than `bare`: each is timed in turn within one run, five times, and
/// the median of the five ratios comes back. `rounds` calls make one timing.
pub fn ratio<A, B>(rounds: u32, mut bare: impl FnMut() -> A, mut full: impl FnMut() -> B) -> f64 {
    let mut ratios: Vec<f64> = (0..5)
        .map(|_| {
            let (bare, full) = (seconds(rounds, &mut bare), seconds(rounds, &mut full));
            full / bare
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[2]
}

fn seconds<T>(rounds: u32, run: &mut impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..rounds {
        black_box(run());
    }
    start.elapsed().as_secs_f64()
}
