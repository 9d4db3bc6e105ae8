//! Speed of loading and of questions, as ratios of one run. It takes minutes, so it runs only when it is asked for:
//!
//!     cargo test --release -p rootlight-index --test speed -- --ignored --nocapture

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::StreamExt as _;
use rootlight::consensus::Network;
use rootlight::engine::LogFilter;
use rootlight::types::{Address, B256, Bytes, Log, keccak256};
use rootlight_index::testkit::{LogsByTransaction, Maker, PostgresServer, client_config, own_processor_time};
use rootlight_index::{Database, IndexReader, ReaderOptions, Setup, Writer};

/// Logs of a block.
const LOGS: u64 = 10;
/// Blocks for each contract, so that indexes of all sizes have as many logs of one. The first contract writes a fifth of all.
const BLOCKS_PER_CONTRACT: u64 = 50;
/// Partitions, in indexes of all sizes.
const PARTITIONS: u64 = 10;
/// Blocks of a batch.
const BATCH: u64 = 512;

fn word(kind: u8, number: u64) -> B256 {
    let mut bytes = [kind; 9];
    bytes[1..].copy_from_slice(&number.to_be_bytes());
    keccak256(bytes)
}

fn contract(number: u64) -> Address {
    Address::from_slice(&word(1, number)[..20])
}

fn contracts(blocks: u64) -> u64 {
    (blocks / BLOCKS_PER_CONTRACT).max(2)
}

fn account(number: u64) -> B256 {
    word(2, number)
}

/// Transfers and other events: a fifth of one token, the rest spread over many contracts.
fn content(random: &mut Rng, blocks: u64) -> LogsByTransaction {
    // Accounts that occur in topics: as many as blocks.
    let accounts = blocks;
    let log = |random: &mut Rng| {
        let token = if random.u8(..5) == 0 { 0 } else { random.u64(1..contracts(blocks)) };
        let event = word(3, random.u64(..3) * random.u64(..20));
        let topics = vec![event, account(random.u64(..accounts)), account(random.u64(..accounts))];
        Log { address: contract(token), topics, data: Bytes::from(vec![token as u8; 64]) }
    };
    (0..2).map(|_| (0..LOGS / 2).map(|_| log(random)).collect()).collect()
}

async fn copy_out(database: &Database, condition: &str) -> (Duration, u64) {
    let client = database.connect().await.unwrap();
    let columns = "block_number, log_index, transaction_index, transaction_hash, address, topic0, topic1, topic2, topic3, data";
    let sql = format!(
        "COPY (SELECT {columns} FROM rootlight.logs WHERE {condition} ORDER BY block_number, log_index) TO STDOUT BINARY"
    );
    let started = Instant::now();
    let rows = client.copy_out(&sql).await.unwrap();
    let bytes = rows.fold(0_u64, |sum, part| async move { sum + part.unwrap().len() as u64 }).await;
    (started.elapsed(), bytes)
}

async fn time_of(reader: &IndexReader, filter: &LogFilter, from: u64, to: u64) -> (Duration, u64) {
    let started = Instant::now();
    let (mut logs, mut count) = (reader.logs(filter, from, to), 0);
    while let Some(part) = logs.next().await {
        count += part.unwrap().len() as u64;
    }
    (started.elapsed(), count)
}

/// Processor times of the server and of this process, which do not depend on how busy the machine is.
struct Processor<'a> {
    server: &'a PostgresServer,
    before: (Duration, Duration),
}

impl<'a> Processor<'a> {
    fn new(server: &'a PostgresServer) -> Self {
        Self { server, before: (server.processor_time(), own_processor_time()) }
    }

    /// Processor times for each of so many things since then, in microseconds.
    fn each(&self, count: u64) -> String {
        let (server, own) =
            (self.server.processor_time() - self.before.0, own_processor_time() - self.before.1);
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
        format!("processor time each: server {:.1} us, client {:.1} us", micros(server), micros(own))
    }
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

async fn load(writer: &Writer, network: &Network, blocks: u64) -> (Duration, Duration) {
    let (maker, mut random) = (Maker::new(network.clone(), 0), Rng::with_seed(1));
    let ranges = writer.prepare(blocks - 1).await.unwrap();
    let (mut copied, mut indexed) = (Duration::ZERO, Duration::ZERO);
    let mut parent = B256::ZERO;
    for range in ranges.iter().filter(|range| range.first < blocks) {
        let end = range.end.min(blocks);
        let mut next = range.first;
        while next < end {
            let last = (next + BATCH).min(end) - 1;
            let batch = maker.chain(next, last, parent, |_| content(&mut random, blocks));
            parent = batch.last().unwrap().block.header().hash();
            let started = Instant::now();
            writer.append(&batch).await.unwrap();
            copied += started.elapsed();
            next = last + 1;
        }
        let started = Instant::now();
        writer.make_searchable(range.first).await.unwrap();
        indexed += started.elapsed();
        println!("loaded up to block {end}");
    }
    (copied, indexed)
}

async fn sparse(
    server: &PostgresServer,
    reader: &IndexReader,
    name: &str,
    blocks: u64,
    filter: impl Fn(u64) -> LogFilter,
) {
    let mut random = Rng::with_seed(77);
    let (mut times, mut logs) = (Vec::new(), 0);
    let filters: Vec<LogFilter> = (0..200).map(|_| filter(random.u64(..))).collect();
    let mut processor = Processor::new(server);
    for pass in 0..2 {
        if pass == 1 {
            processor = Processor::new(server);
        }
        for filter in &filters {
            let (time, count) = time_of(reader, filter, 0, blocks - 1).await;
            if pass == 1 {
                times.push(time);
                logs += count;
            }
        }
    }
    println!(
        "sparse over {blocks} blocks, {name}: p50 {:?}, p90 {:?}, {} logs on average; {}",
        percentile(&mut times, 50),
        percentile(&mut times, 90),
        logs / 200,
        processor.each(200)
    );
    assert!(logs > 0, "{name} finds nothing");
}

/// Blocks by hash, as a light client asks for them.
async fn look_ups(server: &PostgresServer, reader: &IndexReader, blocks: u64) {
    let mut random = Rng::with_seed(78);
    let mut hashes = Vec::new();
    for _ in 0..300 {
        let block = reader.block(random.u64(..blocks)).await.unwrap().unwrap();
        hashes.push(block.header.hash());
    }
    let (processor, mut times) = (Processor::new(server), Vec::new());
    for hash in &hashes {
        let started = Instant::now();
        assert!(reader.block_with_hash(hash).await.unwrap().is_some());
        times.push(started.elapsed());
    }
    println!("a block by its hash: p50 {:?}; {}", percentile(&mut times, 50), processor.each(300));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn loading_and_questions() {
    let settings = ["fsync=on", "shared_buffers=4GB", "max_wal_size=4GB", "work_mem=32MB"];
    let Some(server) = PostgresServer::start(&settings) else { return };
    let blocks: u64 =
        std::env::var("ROOTLIGHT_INDEX_BLOCKS").map_or(1_000_000, |blocks| blocks.parse().unwrap());
    let (database, network) =
        (Database::parse(&server.database().await, client_config()).unwrap(), Network::regtest());
    let setup = Setup {
        partition_blocks: Some(blocks.div_ceil(PARTITIONS)),
        first_block: None,
        wait: false,
        connections: 4,
        name: "speed".into(),
    };
    let writer = Writer::open(&database, &network, &setup).await.unwrap();
    let processor = Processor::new(&server);
    let (copied, indexed) = load(&writer, &network, blocks).await;
    println!("loading, with making the blocks, for each log: {}", processor.each(blocks * LOGS));
    let rate = |time: Duration| (blocks * LOGS) as f64 / time.as_secs_f64();
    println!(
        "load: {:.0} logs per second by COPY, {:.0} with the secondary indexes",
        rate(copied),
        rate(copied + indexed)
    );

    let reader = IndexReader::open(&database, Arc::new(network), &ReaderOptions::default()).await.unwrap();
    let topics = |at: usize, topic| {
        let mut topics = vec![Vec::new(); at];
        topics.push(vec![topic]);
        topics
    };
    sparse(&server, &reader, "one account as topic", blocks, |n| LogFilter {
        addresses: Vec::new(),
        topics: topics(2, account(n % blocks)),
    })
    .await;
    sparse(&server, &reader, "the token and one account", blocks, |n| LogFilter {
        addresses: vec![contract(0)],
        topics: topics(1, account(n % blocks)),
    })
    .await;
    sparse(&server, &reader, "one contract of many", blocks, |n| LogFilter {
        addresses: vec![contract(1 + n % (contracts(blocks) - 1))],
        topics: Vec::new(),
    })
    .await;

    look_ups(&server, &reader, blocks).await;

    let (from, to) = (blocks / 4, blocks / 4 + blocks / 10);
    let token = LogFilter { addresses: vec![contract(0)], topics: Vec::new() };
    let address = contract(0).to_string().replace("0x", "\\x");
    for (name, filter, condition) in [
        ("all logs", LogFilter::default(), String::new()),
        ("the token's logs", token, format!(" AND address = '{address}'")),
    ] {
        let range = format!("block_number BETWEEN {from} AND {to}{condition}");
        let (mut ours, mut theirs, mut count) = (Duration::MAX, Duration::MAX, 0);
        let mut spent = String::new();
        for _ in 0..3 {
            theirs = theirs.min(copy_out(&database, &range).await.0);
            let processor = Processor::new(&server);
            let (time, logs) = time_of(&reader, &filter, from, to).await;
            spent = processor.each(logs);
            (ours, count) = (ours.min(time), logs);
        }
        println!(
            "dense, {name} of {} blocks: {:.0} logs per second, {:.2} times the time of COPY OUT of the same rows; {spent}",
            to - from + 1,
            count as f64 / ours.as_secs_f64(),
            ours.as_secs_f64() / theirs.as_secs_f64()
        );
    }
}
