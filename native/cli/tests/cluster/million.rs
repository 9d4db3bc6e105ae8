//! A million keys: what one front end remembers of them, and what look-ups, limits, lists and revocations cost.
//!
//! `cargo test -p rootlight-cli --test cluster a_million_keys -- --ignored --nocapture`; `ROOTLIGHT_KEYS` sets another
//! number. docs/benchmarks.md has figures.

use std::future::Future;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::StreamExt as _;
use rootlight_cluster::keys::{ClusterAccess, Decision, LookupOutcome, MAX_PAGE};
use rootlight_server::keys::{KeyChange, KeyLookup as _, KeyText, Quotas as _};

use crate::servers::{Servers, wait_until};
use crate::setup::{Service, charge};

/// Requests that wait at the same time.
const AT_ONCE: usize = 64;
/// Memory that a front end may use for keys, in MiB (`MEMORY` of native/cluster/src/keys/access.rs).
const MEMORY: u64 = 64;
/// Odd, so that different numbers have different ids.
const SPREAD: u64 = 0x9e_3779_b97f;

/// The id of the key with a number, as [`FILL`] makes it.
fn id(number: u64) -> String {
    let bits = number.wrapping_mul(SPREAD) & 0xff_ffff_ffff;
    (0..8).map(|at| b"abcdefghijklmnopqrstuvwxyz234567"[(bits >> (5 * at)) as usize & 31] as char).collect()
}

/// Copies of the one key, with ids, names and secrets of their own, and usage of today.
const FILL: &str = "
INSERT INTO service.keys (id, name, hash, created, rules)
    SELECT (SELECT string_agg(substr('abcdefghijklmnopqrstuvwxyz234567',
                (((n * 679535556991) & 1099511627775) >> (5 * at))::bit(5)::int + 1, 1), '' ORDER BY at)
            FROM generate_series(0, 7) at),
        'customer ' || n, sha256(sha256(n::text::bytea)), k.created, k.rules
    FROM generate_series(1, $COUNT) n, (SELECT created, rules FROM service.keys) k;
INSERT INTO service.usage SELECT number, 1000 + number % 1000, 1500, 3 FROM service.keys;
INSERT INTO service.usage_days SELECT extract(epoch FROM now())::int / 86400, number, 10, 15, 0 FROM service.keys;
INSERT INTO service.usage_classes SELECT number, class, 500 FROM service.keys, (VALUES ('eth'), ('net')) c (class);
VACUUM ANALYZE service.keys, service.usage, service.usage_days, service.usage_classes";

/// Resident memory of a process, in MiB.
fn resident(process: &str, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Does something for each number, some at the same time; returns the microseconds for each.
async fn each<F: Future<Output = ()>>(numbers: impl Iterator<Item = u64>, work: impl Fn(u64) -> F) -> f64 {
    let (started, mut count) = (Instant::now(), 0_u64);
    let mut running = futures::stream::iter(numbers.map(work)).buffer_unordered(AT_ONCE);
    while running.next().await.is_some() {
        count += 1;
    }
    started.elapsed().as_secs_f64() * 1e6 / count as f64
}

async fn find(access: &ClusterAccess, number: u64) {
    let found = access.find(&id(number)).await.expect("the database answers").expect("it exists");
    assert_eq!(found.id, id(number));
}

/// Look-ups by outcome since the last call.
struct Levels([u64; 3]);

impl Levels {
    fn now(access: &ClusterAccess) -> [u64; 3] {
        [LookupOutcome::Memory, LookupOutcome::Store, LookupOutcome::Database]
            .map(|outcome| access.metrics().lookups(outcome))
    }

    fn since(&mut self, access: &ClusterAccess) -> [u64; 3] {
        let now = Self::now(access);
        let before = std::mem::replace(&mut self.0, now);
        [0, 1, 2].map(|at| now[at] - before[at])
    }
}

async fn median<F: Future<Output = ()>>(mut work: impl FnMut() -> F) -> f64 {
    let mut times = Vec::new();
    for _ in 0..21 {
        let started = Instant::now();
        work().await;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times[10]
}

async fn prepare(service: &Service, count: u64) {
    let change = KeyChange {
        per_second: Some(50),
        per_day: Some(25_000),
        methods: Some("eth_*,net_*".into()),
        ..KeyChange::default()
    };
    service.admin.create(&change).await.unwrap();
    let client = service.database.connect().await.unwrap();
    let started = Instant::now();
    for statement in FILL.replace("$COUNT", &count.to_string()).split(';') {
        client.batch_execute(statement).await.unwrap();
    }
    println!("{count} keys were made in {:?}", started.elapsed());
    // The secret is as a client would send it.
    let secret = client.query_one("SELECT sha256('7'::bytea)", &[]).await.unwrap();
    let secret = data_encoding::BASE64URL_NOPAD.encode(secret.get::<_, &[u8]>(0));
    let text = KeyText::parse(&format!("{}.{secret}", id(7))).unwrap();
    let record = service.front_ends[0].find(&id(7)).await.unwrap().unwrap();
    assert!(text.has(Some(&record.hash)));
}

/// The time of a look-up by where it ends, and the memory after more look-ups than there are keys.
async fn look_up(service: &Service, servers: &Servers, count: u64) {
    let [access, other] = [&service.front_ends[0], &service.front_ends[1]];
    let (mut random, mut levels) = (Rng::with_seed(7), Levels(Levels::now(access)));
    let before = resident("self", "VmRSS:");
    let part = count / 10;
    let in_database = each(1..=part, |number| find(access, number)).await;
    assert!(levels.since(access)[2] >= part - 1);
    let hot: Vec<u64> = (0..1_000).map(|_| part - random.u64(..part / 10)).collect();
    let often = |times: usize| hot.iter().copied().cycle().take(times);
    // Keys that are not remembered any more are asked for again.
    each(often(1_000), |number| find(access, number)).await;
    let in_memory = each(often(200_000), |number| find(access, number)).await;
    each((1..=count).map(|_| random.u64(1..=count)), |number| find(access, number)).await;
    levels.since(access);
    let mixed = each((0..part).map(|_| random.u64(1..=count)), |number| find(access, number)).await;
    let [memory, store, database] = levels.since(access);
    let grown = resident("self", "VmRSS:").saturating_sub(before);
    let (total, used) = ((memory + store + database) as f64, servers.ask(0, "INFO memory"));
    let share = |of: u64| 100.0 * of as f64 / total;
    println!(
        "at random over all keys: {mixed:.1} µs; {:.1} % in memory ({:.0} keys), {:.1} % store, {:.1} % database; memory grew by \
         {grown} MiB, with {} of the store",
        share(memory),
        share(memory) / 100.0 * count as f64,
        share(store),
        share(database),
        used.lines().find(|line| line.starts_with("used_memory_human")).unwrap_or_default()
    );
    // Besides keys there are ids that were asked for and buffers of answers.
    assert!(grown <= MEMORY * 3 / 2, "{grown} MiB for keys that may take {MEMORY}");
    let mut of_other = Levels(Levels::now(other));
    let in_store = each(1..=part / 2, |number| find(other, number)).await;
    let [_, from_store, _] = of_other.since(other);
    println!(
        "look-ups, {AT_ONCE} at a time: {in_memory:.2} µs in memory, {in_store:.1} µs in the store ({:.0} times; {} of {}), \
         {in_database:.1} µs in the database ({:.0} times)",
        in_store / in_memory,
        from_store,
        part / 2,
        in_database / in_memory
    );
}

/// Limits of keys that are used once each, against those of one key.
async fn limits(service: &Service, count: u64) {
    let access = &service.front_ends[0];
    let one = charge(1);
    let take = |number: u64| {
        let one = &one;
        async move {
            let record = access.find(&id(number)).await.unwrap().unwrap();
            assert!(access.take(&record, one).await.unwrap().is_some());
        }
    };
    let calls = access.metrics().store_calls();
    let mut random = Rng::with_seed(11);
    let before = resident("self", "VmRSS:");
    let spread = each((0..count / 5).map(|_| random.u64(1..=count)), take).await;
    let asked = access.metrics().store_calls() - calls;
    let grown = resident("self", "VmRSS:").saturating_sub(before);
    println!(
        "limits of keys at random: {spread:.1} µs with the look-up, {:.2} questions to the store for each; memory grew by {grown} \
         MiB; {} without the store",
        asked as f64 / (count / 5) as f64,
        access.metrics().decisions(Decision::Fallback)
    );
    access.flush().await.unwrap();
}

/// Pages of lists and searches do not depend on the number of keys.
async fn lists(service: &Service, count: u64) {
    let admin = &service.admin;
    let middle = id(count / 2);
    let page = |after: Option<String>| async move {
        let page = admin.list(after.as_deref(), 25).await.unwrap();
        assert_eq!(page.keys.len(), 25);
    };
    let (first, later) = (median(|| page(None)).await, median(|| page(Some(middle.clone()))).await);
    let long = median(|| async { drop(admin.list(Some(&middle), MAX_PAGE).await.unwrap()) }).await;
    let search = |text: &'static str| async move {
        let found = admin.search(text, None, 25).await.unwrap();
        assert_eq!(found.keys.len(), 25, "{text}");
        // The page after it begins where it ended.
        let next = admin.search(text, found.next.as_deref(), 25).await.unwrap();
        assert_ne!(next.keys[0].id, found.keys[0].id);
    };
    let broad = median(|| search("customer")).await;
    let narrow = median(|| search("CUSTOMER 77")).await;
    let ids = median(|| search("ab")).await;
    let none =
        median(|| async { assert!(admin.search("zzz", None, 25).await.unwrap().keys.len() <= 25) }).await;
    let (usage, report) = (
        median(|| async { drop(admin.service_usage(30).await.unwrap()) }).await,
        median(|| async { drop(admin.report().await.unwrap()) }).await,
    );
    println!(
        "pages of 25 keys: first {first:.2} ms, in the middle {later:.2} ms; 1,000 keys {long:.1} ms; two pages of a search: all \
         names {broad:.2} ms, some {narrow:.2} ms, ids {ids:.2} ms; one that finds few {none:.2} ms; usage of the service \
         {usage:.2} ms, state of the database {report:.2} ms"
    );
}

/// The whole list of the command, page by page.
async fn command(address: &str, count: u64) {
    let mut list = Command::new(env!("CARGO_BIN_EXE_rootlight"));
    list.args(["keys", "list", "--index", address]).stdout(Stdio::piped());
    let started = Instant::now();
    let mut child = list.spawn().unwrap();
    let (process, done) = (child.id().to_string(), Arc::new(AtomicBool::new(false)));
    let output = child.stdout.take().unwrap();
    let watched = done.clone();
    let peak = std::thread::spawn(move || {
        let mut peak = 0;
        while !watched.load(Ordering::Relaxed) {
            peak = peak.max(resident(&process, "VmHWM:"));
            std::thread::sleep(Duration::from_millis(20));
        }
        peak
    });
    let lines = tokio::task::spawn_blocking(move || {
        std::io::BufRead::lines(std::io::BufReader::new(output)).count() as u64
    });
    let lines = lines.await.unwrap();
    assert!(child.wait().unwrap().success());
    done.store(true, Ordering::Relaxed);
    let peak = peak.join().unwrap();
    // A key has three lines.
    assert_eq!(lines, 3 * (count + 1));
    println!("rootlight keys list: all keys in {:?}, at most {peak} MiB", started.elapsed());
    assert!(peak < 200, "{peak} MiB: the list is not read as a whole");
}

/// Revocations while keys are looked up at random.
async fn revocations(service: &Service, count: u64) {
    let done = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = service
        .front_ends
        .iter()
        .enumerate()
        .map(|(seed, access)| {
            let (access, done) = (access.clone(), done.clone());
            tokio::spawn(async move {
                let mut random = Rng::with_seed(seed as u64 + 100);
                let mut asked = 0;
                while !done.load(Ordering::Relaxed) {
                    let numbers: Vec<u64> = (0..256).map(|_| random.u64(1..=count)).collect();
                    each(numbers.into_iter(), |number| find(&access, number)).await;
                    asked += 256;
                }
                asked
            })
        })
        .collect();
    let (mut random, mut times) = (Rng::with_seed(23), Vec::new());
    for _ in 0..20 {
        let id = id(random.u64(1..=count));
        for access in &service.front_ends {
            assert!(access.find(&id).await.unwrap().unwrap().revoked.is_none());
        }
        service.admin.revoke(&id).await.unwrap();
        let started = Instant::now();
        for access in &service.front_ends {
            wait_until("a revocation", || async {
                access.find(&id).await.unwrap().unwrap().revoked.is_some()
            })
            .await;
        }
        times.push(started.elapsed());
    }
    done.store(true, Ordering::Relaxed);
    let mut asked = 0;
    for load in load {
        asked += load.await.unwrap();
    }
    times.sort();
    println!(
        "revocations seen by all, with {asked} look-ups meanwhile: p50 {:?}, longest {:?}",
        times[10], times[19]
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes a million keys, which takes minutes"]
async fn a_million_keys() {
    let count = std::env::var("ROOTLIGHT_KEYS").map_or(1_000_000, |text| text.parse().unwrap());
    let servers = Servers::single(&[]).expect("a store");
    let postgres = rootlight_index::testkit::postgres().expect("PostgreSQL");
    let address = postgres.database().await;
    let service = Service::at(postgres, &address, &servers, "million", 2).await;
    prepare(&service, count).await;
    lists(&service, count).await;
    look_up(&service, &servers, count).await;
    limits(&service, count).await;
    revocations(&service, count).await;
    command(&address, count).await;
}
