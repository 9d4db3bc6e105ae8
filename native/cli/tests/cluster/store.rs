//! Tests of the connection to the store.

use std::time::{Duration, Instant};

use rootlight_cluster::store::{Announcement, HotStore, HotStoreError, Script, StoreConfig, StoreLayout};

use crate::servers::{Servers, cluster, wait_until};

const HOUR: Duration = Duration::from_secs(3_600);

/// Longest time that a command may take in tests on a busy machine; a hang takes for ever.
const NO_HANG: Duration = Duration::from_secs(20);

async fn use_it(store: &HotStore) {
    let script = Script::new("redis.call('SET', KEYS[1], ARGV[1]) return {redis.call('GET', KEYS[1]), 7}");
    for number in 0..50 {
        let (key, value) = (format!("key{number}"), format!("value{number}"));
        store.set(&key, value.as_bytes(), HOUR).await.unwrap();
        assert_eq!(store.get(&key).await.unwrap().unwrap(), value.as_bytes());
        let read: (String, u32) = store.script(&script, &key, &[b"new".to_vec()]).await.unwrap();
        assert_eq!(read, ("new".to_owned(), 7));
        let length: u64 = store.command("STRLEN", &key, &[]).await.unwrap();
        assert_eq!(length, 3);
        assert!(store.remove(&key).await.unwrap() && !store.remove(&key).await.unwrap());
        assert_eq!(store.get(&key).await.unwrap(), None);
    }
    let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(store.time().await.unwrap().abs_diff(unix) < Duration::from_secs(60));
    assert!(store.is_up() && store.metrics().is_up());
}

#[tokio::test(flavor = "multi_thread")]
async fn values_scripts_and_the_time_work_on_one_server_and_on_a_cluster() {
    let (Some(single), Some(cluster)) = (Servers::single(&[]), cluster()) else { return };
    let stores = [single.connect("one").await, cluster.connect("many").await];
    for store in &stores {
        use_it(store).await;
    }
    let mut config = cluster.config("said");
    config.layout = StoreLayout::Cluster;
    use_it(&HotStore::connect(&config).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn announcements_reach_all_front_ends_and_gaps_are_reported() {
    let Some(servers) = cluster() else { return };
    let stores = [servers.connect("news").await, servers.connect("news").await];
    let other = servers.connect("other").await;
    let mut receivers: Vec<_> =
        stores.iter().chain([&other]).map(|store| store.subscribe("keys").unwrap()).collect();
    for receiver in &mut receivers {
        assert_eq!(receiver.recv().await.unwrap(), Announcement::Gap, "first the connection is made");
    }
    stores[0].publish("keys", b"first").await.unwrap();
    other.publish("keys", b"of another service").await.unwrap();
    let expected = [&b"first"[..], b"first", b"of another service"];
    for (receiver, text) in receivers.iter_mut().zip(expected) {
        assert_eq!(receiver.recv().await.unwrap(), Announcement::Message(text.into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_stalls_is_not_waited_for_and_one_that_restarts_is_used_again() {
    let Some(servers) = Servers::single(&[]) else { return };
    let store = servers.connect("stall").await;
    let mut news = store.subscribe("news").unwrap();
    assert_eq!(news.recv().await.unwrap(), Announcement::Gap);
    store.set("a", b"1", HOUR).await.unwrap();
    servers.signal(0, "STOP");
    let started = Instant::now();
    let mut down = 0;
    for _ in 0..2_000 {
        match store.get("a").await {
            Err(HotStoreError::Down) => down += 1,
            Err(HotStoreError::Slow | HotStoreError::Failed(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(started.elapsed() < NO_HANG, "each would take the whole time limit");
    assert!(down > 1_900 && !store.is_up(), "{down} of 2000 were not sent");
    servers.signal(0, "CONT");
    wait_until("the store answers", || async { store.get("a").await.is_ok_and(|value| value.is_some()) })
        .await;
    wait_until("the store counts as up", || async { store.metrics().is_up() }).await;

    servers.kill(0);
    wait_until("the end is noticed", || async { matches!(store.get("a").await, Err(HotStoreError::Down)) })
        .await;
    servers.run(0);
    wait_until("the store answers", || async { store.get("a").await.is_ok_and(|value| value.is_none()) })
        .await;
    // Scripts are gone with the server, and so is the subscription.
    let script = Script::new("return redis.call('INCR', KEYS[1])");
    assert_eq!(store.script::<u32>(&script, "n", &[]).await.unwrap(), 1);
    wait_until("announcements arrive again", || {
        let is_announced = std::iter::from_fn(|| news.try_recv().ok()).any(|news| news != Announcement::Gap);
        let store = &store;
        async move { is_announced || store.publish("news", b"again").await.is_err() }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_beyond_the_limit_fail_at_once() {
    let Some(servers) = Servers::single(&[]) else { return };
    let mut config = servers.config("cap");
    config.limits.waiting = 8;
    config.limits.command = Duration::from_secs(5);
    let store = HotStore::connect(&config).await.unwrap();
    servers.signal(0, "STOP");
    let asked = futures::future::join_all((0..100).map(|_| store.get("a")));
    let resume = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        servers.signal(0, "CONT");
    };
    let (answers, ()) = tokio::join!(asked, resume);
    let busy = answers.iter().filter(|answer| matches!(answer, Err(HotStoreError::Busy(8)))).count();
    assert_eq!(busy, 92);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_says_so_and_stays_up() {
    let Some(servers) = Servers::single(&["maxmemory=1", "maxmemory-policy=noeviction"]) else { return };
    let store = servers.connect("full").await;
    for _ in 0..10 {
        assert!(matches!(store.set("a", b"1", HOUR).await, Err(HotStoreError::Full)));
        let script = Script::new("return redis.call('SET', KEYS[1], 1)");
        assert!(matches!(store.script::<String>(&script, "a", &[]).await, Err(HotStoreError::Full)));
        assert_eq!(store.get("a").await.unwrap(), None);
    }
    assert!(store.is_up());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_the_other_master_is_asked() {
    let Some(servers) = Servers::cluster(&[]) else { return };
    let store = servers.connect("over").await;
    store.set("a", b"1", HOUR).await.unwrap();
    let master = servers.server_of("over:a");
    servers.kill(master);
    let started = Instant::now();
    wait_until("a replica takes over", || async {
        let asked = Instant::now();
        let answer = store.get("a").await;
        assert!(asked.elapsed() < NO_HANG);
        answer.is_ok()
    })
    .await;
    println!("failed over after {:?}", started.elapsed());
    // A master that only stalls is replaced too.
    servers.run(master);
    let master = servers.server_of("over:a");
    wait_until("the old master follows", || async { servers.masters().len() == 3 }).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    servers.signal(master, "STOP");
    let started = Instant::now();
    wait_until("a replica takes over", || async {
        let _ = store.get("a").await;
        started.elapsed() > Duration::from_millis(800) && store.set("a", b"2", HOUR).await.is_ok()
    })
    .await;
    println!("failed over a stalled one after {:?}", started.elapsed());
    servers.signal(master, "CONT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_not_there_is_an_error_at_the_start() {
    let config = StoreConfig::parse(&["redis://127.0.0.1:1"], "none").unwrap();
    assert!(matches!(HotStore::connect(&config).await, Err(HotStoreError::Unreachable(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_others_can_do_without_leaves_half_of_the_memory() {
    let Some(servers) = Servers::single(&[]) else { return };
    let store = servers.connect("spare").await;
    let minute = Duration::from_secs(60);
    assert!(store.set_unless_full("one", b"value", minute).await.unwrap());
    assert_eq!(store.get("one").await.unwrap(), Some(b"value".to_vec()));
    let info = servers.ask(0, "INFO memory");
    let used = info.lines().find_map(|line| line.trim().strip_prefix("used_memory:")).unwrap();
    let used: u64 = used.parse().unwrap();
    assert_eq!(servers.ask(0, &format!("CONFIG SET maxmemory {}", used * 5 / 3)), "OK");
    assert!(!store.set_unless_full("two", b"value", minute).await.unwrap());
    assert_eq!(store.get("two").await.unwrap(), None);
    store.set("three", b"value", minute).await.unwrap();
    assert_eq!(servers.ask(0, &format!("CONFIG SET maxmemory {}", used * 3)), "OK");
    assert!(store.set_unless_full("two", b"value", minute).await.unwrap());
}
