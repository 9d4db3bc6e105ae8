//! Verification and synchronization of headers against their hashes.

use criterion::{Criterion, criterion_group};
use rootlight_bench::bitcoin::{self, BitcoinRun};
use rootlight_bench::headers::{HeaderRun, LIMIT};
use rootlight_bench::ratio::{Ratio, only_ratios, seconds};
use rootlight_bench::recordings::mainnet_headers;
use rootlight_bench::sync::{self, HeaderReplay};

fn headers(c: &mut Criterion) {
    let Some(run) = mainnet_headers().map(HeaderRun::new) else { return };
    let mut group = c.benchmark_group("main network headers");
    group.throughput(criterion::Throughput::Elements(run.len() as u64));
    group.bench_function("bare hashes", |b| b.iter(|| run.hash()));
    group.bench_function("full verification", |b| b.iter(|| run.verify()));
}

criterion_group!(benches, headers);

fn main() {
    if !only_ratios() {
        benches();
    }
    let [plain, packed] = BitcoinRun::new().ratios(&seconds, 40);
    println!("{}", plain.report("insertion of Bitcoin headers to their hashes", bitcoin::LIMIT));
    println!("{}", packed.report("insertion of packed Bitcoin headers to their hashes", bitcoin::LIMIT));
    let Some(headers) = mainnet_headers() else { return };
    let (replay, run) = (HeaderReplay::new(&headers), HeaderRun::new(headers));
    println!("{}", run.ratio(&seconds, 40).report("header verification to its hashes", LIMIT));
    println!("natively: {:.0} headers verified in a second", run.rate(&seconds, 60, 1.0));
    let ratio = Ratio::measure(&seconds, 40, || run.verify(), || replay.sync());
    println!("{}", ratio.report("synchronization to verification of the same headers", sync::LIMIT));
}
