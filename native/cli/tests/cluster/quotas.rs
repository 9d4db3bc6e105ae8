//! Tests of limits that front ends share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rootlight_cluster::keys::{ClusterAccess, Decision};
use rootlight_cluster::store::Script;
use rootlight_server::keys::{Charge, Gcra, KeyChange, KeyRecord, LimitPeriod, Quotas as _, Rate};

use crate::servers::{Servers, cluster, wait_until};
use crate::setup::{Service, charge};

/// The script, whose first line takes the time from its last two arguments.
fn script_with_time() -> Script {
    let text = include_str!("../../../cluster/src/keys/take.lua");
    // A script that begins anew has the same time.
    let timed = "local now = {KEYS[2] or table.remove(ARGV), KEYS[3] or table.remove(ARGV)}
KEYS[2], KEYS[3] = now[1], now[2]";
    let replaced = text.replace("local now = redis.call('TIME')", timed);
    assert_ne!(replaced, text);
    Script::new(&replaced)
}

/// A step of a random sequence: a pause in microseconds, the weight and the number of requests of a message.
type Steps = Vec<(u64, u64, u64)>;

#[tokio::test(flavor = "multi_thread")]
async fn the_script_admits_what_the_limits_of_one_process_admit() {
    let Some(servers) = Servers::single(&[]) else { return };
    let store = servers.connect("model").await;
    let script = script_with_time();
    let strategy = (
        1_u32..2_000,
        1_u32..100,
        proptest::option::of(1_i64..300),
        prop::collection::vec((0_u64..300_000, 0_u64..150, 1_u64..20), 1..60),
    );
    let runtime = tokio::runtime::Handle::current();
    let test = move || {
        let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
        let number = std::cell::Cell::new(0_u32);
        let outcome = TestRunner::new(config).run(
            &strategy,
            |(per_second, burst, per_day, steps): (_, _, _, Steps)| {
                number.set(number.get() + 1);
                let rate = Rate::new(per_second, burst);
                let (mut model, mut today) = (Gcra::default(), 0);
                let mut micros = 1_800_000_000_999_000_u64;
                for (pause, weight, requests) in steps {
                    micros += pause;
                    // The model's clock begins near the first step, so that its numbers do not overflow.
                    let nanos = (micros - 1_800_000_000_000_000) * 1_000;
                    let fits = per_day.is_none_or(|most| today + requests as i64 <= most);
                    let expected = match (fits, fits.then(|| model.take(rate, weight, nanos))) {
                        (false, _) => -1,
                        (_, Some(Err(wait))) => wait as i64,
                        _ => 0,
                    };
                    if expected == 0 {
                        today += requests as i64;
                    }
                    let arguments = [
                        rate.size() as i64,
                        0,
                        per_day.unwrap_or(-1),
                        0,
                        0,
                        rate.cost(weight) as i64,
                        requests as i64,
                        (micros % 1_000_000) as i64,
                        (micros / 1_000_000) as i64,
                    ];
                    let arguments = arguments.map(|number| number.to_string().into_bytes());
                    let key = format!("case{}", number.get());
                    let answer: Vec<i64> =
                        runtime.block_on(store.script(&script, &key, &arguments)).expect("the store answers");
                    let left = model.left(rate, nanos);
                    prop_assert_eq!(answer[3], expected);
                    prop_assert_eq!(answer[4], left.full_in as i64);
                    prop_assert_eq!(rate.left(answer[4] as u64), left.requests);
                }
                Ok(())
            },
        );
        outcome.unwrap();
    };
    tokio::task::spawn_blocking(test).await.unwrap();
}

/// As after a failover to a server whose clock is behind, or when it is set.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_neither_locks_a_key_out_nor_gives_its_burst_again() {
    let Some(servers) = Servers::single(&[]) else { return };
    let store = servers.connect("back").await;
    let script = script_with_time();
    let rate = Rate::new(10, 10);
    // A message of one request, at a second and a microsecond; what it must wait, and what is used then, in seconds/1000.
    let take = async |seconds: u64, micros: u64| {
        let arguments = [rate.size(), 0, 0, 0, 0, rate.cost(1), 1, micros, seconds];
        let mut arguments = arguments.map(|number| number.to_string().into_bytes());
        arguments[2] = b"-1".to_vec();
        let answer: Vec<i64> = store.script(&script, "key", &arguments).await.unwrap();
        (answer[3] / 1_000_000, answer[4] / 1_000_000)
    };
    let start = 1_800_000_000;
    for message in 1..=10 {
        assert_eq!(take(start, 400_123).await, (0, 100 * message));
    }
    assert_eq!(take(start, 400_123).await, (100, 1_000));
    // An hour back: no time has passed, and from here on it passes as always.
    let back = start - 3_600;
    assert_eq!(take(back, 900_000).await, (100, 1_000));
    assert_eq!(take(back + 1, 0).await, (0, 1_000));
    assert_eq!(take(back + 1, 500_000).await, (0, 600));
    // A few steps back in a row.
    assert_eq!(take(back + 1, 100_000).await, (0, 700));
    assert_eq!(take(back, 0).await, (0, 800));
    assert_eq!(take(back + 10, 0).await, (0, 100));
}

/// What the script admits of messages of one request, with ten of a day.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_ahead_blocks_a_quota_until_the_end_of_the_day_at_most() {
    let Some(servers) = Servers::single(&[]) else { return };
    let store = servers.connect("ahead").await;
    let script = script_with_time();
    let admitted = async |key: &str, day: u64| {
        let mut count = 0;
        for second in 0..20 {
            let arguments = [0, 0, 10, 0, 0, 0, 1, 0, day * 86_400 + second];
            let arguments = arguments.map(|number: u64| number.to_string().into_bytes());
            let answer: Vec<i64> = store.script(&script, key, &arguments).await.unwrap();
            count += u32::from(answer[3] == 0);
        }
        count
    };
    let today = 20_000;
    for ahead in [1, 2, 365, 1_000_000] {
        let key = format!("ahead{ahead}");
        assert_eq!(admitted(&key, today + ahead).await, 10);
        // No second quota for the same day.
        assert_eq!(admitted(&key, today).await, 0, "{ahead} days");
        let healed = if ahead == 1 { today + 2 } else { today + 1 };
        assert_eq!(admitted(&key, healed).await, 10, "{ahead} days");
        let left = store.command::<i64>("PTTL", &key, &[]).await.unwrap();
        assert!(left < 3 * 86_400_000, "{left} ms");
    }
    // A value that an attacker has written into the store.
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    for (number, fields) in [
        ["d", "9000000000000000", "c", "10"],
        ["d", "nan", "c", "inf"],
        ["d", "-1", "c", "x"],
        ["d", "20000", "c", "-1000000"],
        ["d", "1e300", "c", "1e300"],
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("forged{number}");
        store.command::<u64>("HSET", &key, &texts(&fields)).await.unwrap();
        assert!(admitted(&key, today).await <= 10, "{fields:?}");
        assert_eq!(admitted(&key, today + 1).await, 10, "{fields:?}");
    }
    store.set("text", b"x", Duration::from_secs(60)).await.unwrap();
    assert_eq!(admitted("text", today).await, 10);
}

/// Sends messages over all front ends as fast as they are answered; returns the weight that was admitted.
async fn flood(front_ends: &[Arc<ClusterAccess>], record: &KeyRecord, time: Duration) -> u64 {
    let end = Instant::now() + time;
    let message = charge(1);
    let one = |access: Arc<ClusterAccess>| {
        let message = &message;
        async move {
            let mut admitted = 0;
            while Instant::now() < end {
                let asked = Instant::now();
                let taken = join_all((0..8).map(|_| access.take(record, message))).await;
                assert!(asked.elapsed() < Duration::from_secs(20), "no message hangs");
                admitted += taken.iter().filter(|taken| taken.is_ok()).count() as u64;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            admitted
        }
    };
    join_all(front_ends.iter().cloned().map(one)).await.iter().sum()
}

/// The requests that leases of a tenth of a second may add, over all front ends.
fn leases(rps: u64, front_ends: u64) -> u64 {
    front_ends * rps.div_ceil(10)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_front_ends_together_admit_the_limit() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "sum", 3).await else { return };
    let record = service.key(&KeyChange { per_second: Some(200), ..KeyChange::default() }).await;
    let started = Instant::now();
    let admitted = flood(&service.front_ends, &record, Duration::from_secs(2)).await;
    let passed = started.elapsed().as_secs_f64();
    let most = 400 + (200.0 * passed).ceil() as u64 + leases(200, 3);
    println!("{admitted} admitted in {passed} s, at most {most}");
    assert!(admitted <= most, "{admitted} > {most}");
    assert!(admitted >= 400 + 200, "{admitted}: the limit is not used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_far_below_its_limit_asks_the_store_rarely() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "leases", 1).await else { return };
    let change = KeyChange { per_second: Some(10_000), per_day: Some(10_000_000), ..KeyChange::default() };
    let record = service.key(&change).await;
    let access = &service.front_ends[0];
    for _ in 0..2_000 {
        let status = access.take(&record, &charge(1)).await.unwrap().unwrap();
        assert!(status.limit == 20_000 && status.remaining > 10_000);
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    let calls = access.metrics().store_calls();
    println!("{calls} questions for 2000 messages");
    assert!(calls < 400, "{calls} questions for 2000 messages");
    assert_eq!(access.metrics().decisions(Decision::Fallback), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_messages_at_once_share_questions_and_refusals_cost_none() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "burst", 1).await else { return };
    let record =
        service.key(&KeyChange { per_second: Some(1), burst: Some(300), ..KeyChange::default() }).await;
    let access = &service.front_ends[0];
    let one = charge(1);
    let taken = join_all((0..1_000).map(|_| access.take(&record, &one))).await;
    let admitted = taken.iter().filter(|taken| taken.is_ok()).count();
    assert!((300..=302).contains(&admitted), "{admitted}");
    let calls = access.metrics().store_calls();
    assert!(calls <= 10, "{calls} questions");
    let refused = access.take(&record, &charge(300)).await.unwrap_err();
    assert_eq!((refused.window, refused.status.limit), (LimitPeriod::Second, 300));
    assert!((298..=300).contains(&refused.retry_after), "{}", refused.retry_after);
    // As much as that was refused a moment ago.
    for _ in 0..100 {
        assert!(access.take(&record, &charge(300)).await.is_err());
    }
    assert!(access.metrics().store_calls() <= calls + 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_is_shared_and_a_heavy_message_needs_the_whole_burst() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "day", 3).await else { return };
    let record = service.key(&KeyChange { per_day: Some(100), ..KeyChange::default() }).await;
    let mut admitted = 0;
    for turn in 0..150 {
        admitted += u64::from(service.front_ends[turn % 3].take(&record, &charge(1)).await.is_ok());
    }
    // A lease that was not used is lost; each is at most a sixty-fourth of the day.
    assert!((97..=100).contains(&admitted), "{admitted}");
    let refused = service.front_ends[0].take(&record, &charge(5)).await.unwrap_err();
    assert_eq!((refused.window, refused.status.limit), (LimitPeriod::Day, 100));

    let record =
        service.key(&KeyChange { per_second: Some(100), burst: Some(10), ..KeyChange::default() }).await;
    let heavy = Charge { requests: 1, weight: 50, classes: vec![("eth", 1)] };
    assert!(service.front_ends[0].take(&record, &heavy).await.is_ok());
    let refused = service.front_ends[1].take(&record, &heavy).await.unwrap_err();
    assert_eq!(refused.status.remaining, 0);
    tokio::time::sleep(Duration::from_millis(550)).await;
    assert!(service.front_ends[2].take(&record, &heavy).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_store_front_ends_admit_less_and_then_share_again() {
    let Some(servers) = Servers::single(&[]) else { return };
    let Some(service) = Service::start(&servers, "away", 3).await else { return };
    let change = KeyChange { per_second: Some(100), burst: Some(60), ..KeyChange::default() };
    let record = service.key(&change).await;
    for access in &service.front_ends {
        assert!(access.take(&record, &charge(1)).await.is_ok());
        wait_until("all are counted", || async { access.metrics().front_ends() == 3 }).await;
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    for (signal, again) in [("STOP", "CONT"), ("KILL", "")] {
        if again.is_empty() {
            servers.kill(0)
        } else {
            servers.signal(0, signal)
        }
        let started = Instant::now();
        let admitted = flood(&service.front_ends, &record, Duration::from_secs(2)).await;
        let passed = started.elapsed().as_secs_f64();
        // Half of the burst and of the rate, and what was leased before.
        let most = 30 + (50.0 * passed).ceil() as u64 + leases(100, 3);
        println!("{signal}: {admitted} admitted in {passed} s, at most {most}");
        assert!(admitted <= most && admitted > 50, "{admitted}, at most {most}");
        if again.is_empty() {
            servers.run(0)
        } else {
            servers.signal(0, again)
        }
        for access in &service.front_ends {
            let before = access.metrics().decisions(Decision::Store);
            wait_until("the store is asked again", || async {
                let _ = access.take(&record, &charge(1)).await;
                access.metrics().decisions(Decision::Store) > before
            })
            .await;
        }
    }
    // A store without memory for a new key is no reason to admit everything either.
    servers.ask(0, "FLUSHALL");
    servers.ask(0, "CONFIG SET maxmemory 1");
    let admitted = flood(&service.front_ends, &record, Duration::from_secs(1)).await;
    assert!(admitted <= 30 + 60 + leases(100, 3), "{admitted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_and_a_flush_start_the_counters_anew_and_nothing_hangs() {
    let Some(servers) = Servers::cluster(&[]) else { return };
    let Some(service) = Service::start(&servers, "faults", 3).await else { return };
    let record =
        service.key(&KeyChange { per_second: Some(100), burst: Some(100), ..KeyChange::default() }).await;
    let master = servers.server_of(&format!("faults:quota:{}", record.id));
    let started = Instant::now();
    let faults = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        servers.masters().into_iter().for_each(|index| drop(servers.ask(index, "FLUSHALL")));
        tokio::time::sleep(Duration::from_millis(300)).await;
        servers.kill(master);
    };
    let (admitted, ()) = tokio::join!(flood(&service.front_ends, &record, Duration::from_secs(4)), faults);
    let passed = started.elapsed().as_secs_f64();
    // The burst at the start, after the flush, and after the failover; half of it without the store.
    let most = 3 * 100 + 50 + (100.0 * passed).ceil() as u64 + 2 * leases(100, 3);
    println!("{admitted} admitted in {passed} s, at most {most}");
    assert!(admitted <= most && admitted > 200, "{admitted}, at most {most}");
    let access = &service.front_ends[0];
    let before = access.metrics().decisions(Decision::Store);
    wait_until("the new master decides", || async {
        let _ = access.take(&record, &charge(1)).await;
        access.metrics().decisions(Decision::Store) > before
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_front_end_entries_in_the_store_take_no_share() {
    let Some(servers) = cluster() else { return };
    let store = servers.connect("ghosts").await;
    let ghosts = ["9000000000", "a", "9000000001", "b", "inf", "c"].map(|text| text.as_bytes().to_vec());
    assert_eq!(store.command::<u64>("ZADD", "front-ends", &ghosts).await.unwrap(), 3);
    let Some(service) = Service::start(&servers, "ghosts", 1).await else { return };
    let metrics = service.front_ends[0].metrics();
    wait_until("the count of front ends", || async { metrics.front_ends() == 1 }).await;
}
