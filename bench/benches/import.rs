//! Blocks full of ERC-20 transfers: executed with sender recovery and all roots, and built.

use criterion::{Criterion, Throughput, criterion_group};
use rootlight_bench::ratio::{Ratio, only_ratios, seconds};
use rootlight_bench::state::ACCOUNTS;
use rootlight_bench::transfers::Transfers;

/// Transfers in a block.
const TRANSFERS: u64 = 250;

fn blocks(c: &mut Criterion) {
    let Some(sample) = Transfers::load(ACCOUNTS, TRANSFERS) else { return };
    let mut group = c.benchmark_group("block of ERC-20 transfers");
    group.throughput(Throughput::Elements(TRANSFERS));
    group.bench_function("import, senders recovered", |b| b.iter(|| sample.import(None)));
    group.bench_function("import, senders known", |b| {
        b.iter(|| sample.import(Some(&sample.built.executed.senders)));
    });
    group.bench_function("build with state root", |b| b.iter(|| sample.build()));
    group.finish();
}

criterion_group!(benches, blocks);

fn main() {
    if !only_ratios() {
        benches();
    }
    let Some(sample) = Transfers::load(ACCOUNTS, TRANSFERS) else { return };
    let ratio = Ratio::measure(&seconds, 10, || sample.recover(), || sample.import(None));
    println!("block of ERC-20 transfers, imported, to recovering its senders: {ratio}");
}
