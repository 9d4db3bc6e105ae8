//! `cargo xtask`: the tasks that build, test and measure this repository.
//!
//! The tasks call cargo, rustup, npm and apt-get, so a machine with rustup, Node.js and Debian's package tools needs
//! nothing else. `cargo xtask help` lists them.

mod api;
mod cargo;
mod clients;
mod dependencies;
mod draw;
mod engines;
mod features;
mod fuzz;
mod instructions;
mod links;
mod measure;
mod packages;
mod page;
mod projects;
mod release;
mod shell;
mod spec;
mod steps;
mod suite;
mod tools;
mod units;
mod wasm;

use std::process::ExitCode;

/// The text of `cargo xtask help`.
const HELP: &str = "\
cargo xtask <task>

  test [--quick|--full] [-v] [PART..]
                               install what is missing, then run every check; --quick runs those that every commit
                               passes; --full adds longer forms of tests that draw their input, and tests
                               with web3.js, cast and hardhat (parts: cargo xtask test --list); -v runs one step at a
                               time and shows the output of each command
  instructions [--write]       count the instructions of hot paths and compare them with bench/instructions.txt
  setup [-v]                   only install what is missing
  wasm [-v]                    build the browser package into pkg/dist and check its size
  build [-v]                   build the package's modules, the page and the program that serves it, target/release/rootlight
  docs                         draw the pictures of the documentation from their text (docs/diagrams)
  fuzz --minutes N [TARGET..]  run fuzz targets, all of them without a name
  abuse [NAME..]               abuse the server over loopback: peak memory, and what others wait meanwhile
                               (ABUSED=PROGRAM for another one than the one built here)
  soak [MINUTES]               mixed load on a development chain with API keys over loopback: errors, lost events,
                               memory (15 minutes by default)
  checkpoint --url A --url B [--bitcoin URL..] [--write]
                               propose checkpoints of Rootstock's and Bitcoin's chain that all sources confirm (--network,
                               --number, --depth); --write puts them into src/consensus
  spec [--check]               say whether the specification's page or tests/specification.json has changed; without
                               --check, note that the two were compared
  api [--write]                compare the public API of the published crates with api/*.txt, or write these lists
  release [TARGET..]           static Linux programs, the npm package and checksums in target/release-artifacts
  bench [-- ARGS]              print the ratios of docs/benchmarks.md; with ARGS, criterion's statistics
  bench peers                  proven calls beside Lodestar's prover and Patronum
  bench calls [FOLDER..]       eth_call through the package in Node.js, beside @ethereumjs/evm and other builds of the package
  bench modules                the package's modules beside Helios, smoldot and Colibri: bytes, compilation
  bench page                   gaps of a page's thread while a client works, and its first proven answer
  bench engines                main network headers natively, in Node.js and in Chromium
  bench nodes                  the development chain beside anvil and the reference node
  bench rpc [WORKLOAD..]       the processor time of requests, beside anvil and HTTP alone
  bench traces [PART..]        traces and log queries by processor time, beside anvil and geth
  bench fork                   exchanges of a fork with its upstream, beside anvil's fork
  bench keys                   the processor time of requests with API keys of a service, beside the same without
  bench cold [HEADERS [FLAGS]] a cold start of the light client over 440,000 headers: time, bytes, memory
  bench cold page [HEADERS]    the same in headless Chromium, from the checkpoint and by work alone
  bench newcomer [ACCOUNTS]    from an empty folder to the first proven balance, and a restart after an hour
  bench light                  the light client: headers, warm starts, round trips of calls
";

fn main() -> ExitCode {
    // Cargo runs this program in place of rustc while it builds modules.
    if std::env::var_os(wasm::STANDS_IN).is_some() {
        return wasm::rustc(std::env::args_os().skip(1));
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // Arguments after `--` are those of another program.
    if args.iter().take_while(|arg| **arg != "--").any(|arg| matches!(*arg, "--help" | "-h")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match args.split_first() {
        Some((&"test", rest)) => suite::test(rest),
        Some((&"setup", rest)) => suite::setup(rest),
        Some((&"wasm", rest)) => suite::wasm(rest),
        Some((&"build", rest)) => suite::build(rest),
        Some((&"docs", [])) => draw::run(),
        Some((&"spec", rest)) => spec::run(rest),
        Some((&"api", rest)) => api::run(rest),
        Some((&"release", rest)) => release::run(rest),
        Some((&"abuse", rest)) => measure::abuse(rest),
        Some((&"soak", rest)) => measure::soak(rest),
        Some((&"checkpoint", rest)) => measure::checkpoint(rest),
        Some((&"bench", rest)) => measure::bench(rest),
        Some((&"instructions", rest)) => instructions::run(rest),
        Some((&"fuzz", rest)) => fuzz::run(rest),
        Some((&"help", _)) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}
