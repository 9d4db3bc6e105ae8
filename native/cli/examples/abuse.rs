//! Abuses a server over loopback, and measures the peak of its resident memory and the waiting times of
//! well-behaved clients. Every abuse runs against a new server process, is bounded, and checks that it had
//! its effect.
//!
//! `cargo xtask abuse`, or `cargo run --release -p rootlight-cli --example abuse -- BINARY [ABUSE..]`
//!
//! Attackers run in a process of their own with the lowest priority, because attackers on other machines would
//! not take processor time from the server or from the well-behaved clients, and these clients have a real-time priority
//! where the system permits it. A control shows how long clients wait for the operating system's scheduler alone, while
//! other threads compute beside the server.

#[path = "abuse/attack.rs"]
mod attack;
#[path = "abuse/chain.rs"]
mod chain;
#[path = "abuse/connections.rs"]
mod connections;
#[path = "abuse/http.rs"]
mod http;
#[path = "abuse/memory.rs"]
mod memory;
#[path = "../tests/budgets/peer.rs"]
mod peer;
#[path = "abuse/peers.rs"]
mod peers;
#[path = "abuse/refusals.rs"]
mod refusals;
#[path = "abuse/runs.rs"]
mod runs;
#[path = "abuse/sources.rs"]
mod sources;
#[path = "abuse/target.rs"]
mod target;
#[path = "abuse/upstream.rs"]
mod upstream;
#[path = "abuse/watch.rs"]
mod watch;

use std::process::ExitCode;
use std::time::Duration;

use attack::{Attacker, CONTROL, Words};
use target::TargetServer;
use watch::{Observed, Watching};

/// Most resident memory during any abuse, in MiB.
const MEMORY: u64 = 256;

/// Largest ratio of a well-behaved client's p99 under abuse to its idle p99. Below the floor, or below the p99 of
/// the control if that is longer, the operating system's scheduler is measured.
const SLOWER: u32 = 5;
const FLOOR: Duration = Duration::from_millis(5);

/// Longest p99 of a client at the attackers' own address. The server cannot tell it from the attackers, so it
/// takes turns with their connections.
const NEIGHBOUR: Duration = Duration::from_secs(5);

/// Time for which the idle server is observed.
const IDLE: Duration = Duration::from_secs(4);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            eprintln!("usage: abuse BINARY [ABUSE..]");
            ExitCode::from(2)
        }
        ["--attack", name] => attack::run(name),
        [binary, wanted @ ..] => measure(binary, wanted),
    }
}

fn measure(binary: &str, wanted: &[&str]) -> ExitCode {
    if let Some(unknown) = wanted.iter().find(|name| attack::find(name).is_none()) {
        let names: Vec<&str> = attack::all().map(|(name, _)| name).collect();
        eprintln!("no abuse is named {unknown}; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    println!(
        "{:<20} {:>8} | {:>9} {:>9} {:>6} | {:>9} {:>9} {:>6} | {:>9} | what happened",
        "abuse", "peak MiB", "idle p99", "p99", "ratio", "idle call", "call p99", "ratio", "neighbour"
    );
    let mut bad = Vec::new();
    let mut floor = FLOOR;
    let is_wanted = |name: &str| wanted.is_empty() || wanted.contains(&name) || name == CONTROL;
    for (name, _) in attack::all().filter(|(name, _)| is_wanted(name)) {
        let outcome = one(binary, name, floor);
        if name == CONTROL {
            floor = floor.max(outcome.p99);
        } else if !outcome.is_good {
            bad.push(name);
        }
    }
    if bad.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!(
        "failed (more than {MEMORY} MiB, slower than {SLOWER} times the idle p99 and {floor:.1?}, or without effect): {}",
        bad.join(", ")
    );
    ExitCode::FAILURE
}

struct AttackResult {
    /// Whether all limits hold.
    is_good: bool,
    /// The longer p99 of the two requests of the client at another address.
    p99: Duration,
}

/// Runs one abuse against a new server.
fn one(binary: &str, name: &str, floor: Duration) -> AttackResult {
    let mut attacker = Attacker::start(name);
    let target = TargetServer::start(binary, &attacker.server);
    attacker.prepare(target.address);
    // The memory used by the preparation is not part of the abuse, so the kernel's peak value is reset.
    target.reset_peak();
    let clients = [
        ("127.0.0.1", watch::CHAIN_ID),
        ("127.0.0.1", &attacker.question),
        ("127.0.0.2", &attacker.question),
    ];
    let watch = || clients.map(|(from, question)| Watching::start(from, target.address, question));
    let watching = watch();
    std::thread::sleep(IDLE);
    let idle = watching.map(Watching::end);
    let watching = watch();
    let words = attacker.attack();
    let seen = watching.map(Watching::end);
    let p99 = seen[..2].iter().map(Observed::p99).max().unwrap_or_default();
    let slow = idle[..2].iter().zip(&seen).any(|(idle, seen)| seen.p99() > floor.max(idle.p99() * SLOWER));
    AttackResult { is_good: row(name, target.peak(), &idle, &seen, &words) && !slow, p99 }
}

/// Prints a row of the table; returns `false` if a limit other than that of the waiting times does not hold.
fn row(name: &str, peak: u64, idle: &[Observed; 3], seen: &[Observed; 3], words: &Words) -> bool {
    let pairs: Vec<(&Observed, &Observed)> = idle.iter().zip(seen).collect();
    let neighbour = seen[2].p99();
    let failed: u32 = pairs[..2].iter().map(|(idle, seen)| idle.failed + seen.failed).sum();
    print!("{name:<20} {peak:>8} |");
    for (idle, seen) in &pairs[..2] {
        let (before, under) = (idle.p99(), seen.p99());
        let ratio = under.as_secs_f64() / before.as_secs_f64().max(1e-6);
        print!(" {before:>9.1?} {under:>9.1?} {ratio:>6.1} |");
    }
    print!(" {neighbour:>9.1?} |");
    let longest = pairs[..2].iter().map(|(_, seen)| seen.longest()).max().unwrap_or_default();
    let count = seen[0].count();
    let bad = if words.good { "" } else { "NO EFFECT, OR REFUSED TO OTHERS: " };
    let failures = if failed > 0 { format!(", {failed} requests failed") } else { String::new() };
    let usual = if seen[0].is_raised { "" } else { ", clients at the usual priority" };
    println!(" {bad}{} (longest {longest:.1?} of {count}{failures}{usual})", words.text);
    peak <= MEMORY && neighbour <= NEIGHBOUR && words.good && failed == 0
}
