//! Abuses a server over loopback and prints what it costs: the peak of its resident memory, and how long a well-behaved
//! client waits meanwhile. Each abuse gets a process of its own and is bounded.
//!
//! `cargo xtask abuse`, or `cargo run --release -p rootlight-native --example abuse -- BINARY [ABUSE..]`

#[path = "abuse/attacks.rs"]
mod attacks;
#[path = "abuse/target.rs"]
mod target;
#[path = "abuse/upstream.rs"]
mod upstream;

use std::time::Duration;

use target::{Observed, Target};

/// Most resident memory in any abuse, MiB.
const MEMORY: u64 = 256;

/// By how much the p99 of a well-behaved client may exceed its idle value; below the floor nothing is measured but the
/// scheduler of the operating system.
const SLOWER: u32 = 5;
const FLOOR: Duration = Duration::from_millis(10);

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(binary) = arguments.next() else {
        eprintln!("usage: abuse BINARY [ABUSE..]");
        std::process::exit(2);
    };
    let wanted: Vec<String> = arguments.collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    println!(
        "{:<28} {:>9} {:>10} {:>10} {:>10}  what happened",
        "abuse", "peak MiB", "idle p99", "p99", "longest"
    );
    let mut bad = 0;
    for (name, attack) in attacks::ALL {
        if !is_wanted(name) {
            continue;
        }
        let target = Target::development(&binary).await;
        let idle = target.observe(Duration::from_secs(2)).await;
        let watching = target.watch();
        let words = attack(&target).await;
        let seen = watching.end().await;
        bad += u32::from(!row(name, target.peak(), &idle, &seen, &words));
    }
    for (name, padding) in upstream::ALL {
        if is_wanted(name) {
            let (target, words) = upstream::attack(&binary, padding).await;
            let peak = target.peak();
            println!("{name:<28} {peak:>9} {:>10} {:>10} {:>10}  {words}", "-", "-", "-");
            bad += u32::from(peak > MEMORY);
        }
    }
    if bad > 0 {
        println!(
            "{bad} beyond {MEMORY} MiB, or {SLOWER} times the idle p99 (at least {FLOOR:?}), or refused"
        );
        std::process::exit(1);
    }
}

/// Prints a row; `false` where a bound does not hold.
fn row(name: &str, peak: u64, idle: &Observed, seen: &Observed, words: &attacks::Words) -> bool {
    let slow = seen.p99() > FLOOR.max(idle.p99() * SLOWER);
    println!(
        "{name:<28} {peak:>9} {:>10.1?} {:>10.1?} {:>10.1?}  {}{}",
        idle.p99(),
        seen.p99(),
        seen.longest(),
        words.text,
        if seen.failed > 0 { format!(", {} questions failed", seen.failed) } else { String::new() },
    );
    peak <= MEMORY && !slow && words.good && seen.failed == 0
}
