//! Tests of keys, their changes and their usage on many front ends.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use futures::future::join_all;
use rootlight_cluster::keys::{ClusterAccess, ClusterKeyError, ClusterKeys, LookupOutcome};
use rootlight_index::testkit::PostgresServer;
use rootlight_server::keys::{
    FilterOwners as _, KeyChange, KeyError, KeyLookup as _, KeyRecord, KeyRules, Quotas as _, Topic,
    Unavailable,
};

use crate::servers::{Servers, cluster, wait_until};
use crate::setup::{Service, charge, database};

async fn is_revoked(access: &ClusterAccess, id: &str) -> bool {
    access.find(id).await.unwrap().unwrap().revoked.is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_the_same_everywhere_and_a_revocation_reaches_all_front_ends() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "same", 3).await else { return };
    let record = service.key(&KeyChange { name: Some("shop".into()), ..KeyChange::default() }).await;
    let other = service.key(&KeyChange::default()).await;
    let mut changes: Vec<_> =
        service.front_ends.iter().map(|access| access.access().notifier.listen(Topic::Keys)).collect();
    for access in &service.front_ends {
        let found = access.find(&record.id).await.unwrap().unwrap();
        assert_eq!((&found, access.owner(&found)), (&record, record.number));
        assert_ne!(access.owner(&other), record.number);
    }
    service.admin.revoke(&record.id).await.unwrap();
    let revoked = Instant::now();
    for (access, changes) in service.front_ends.iter().zip(&mut changes) {
        changes.changed().await.unwrap();
        wait_until("the revocation", || is_revoked(access, &record.id)).await;
    }
    println!("revoked everywhere after {:?}", revoked.elapsed());
    assert!(!is_revoked(&service.front_ends[0], &other.id).await);
    // The second time it changes nothing, and a limit cannot be changed any more.
    service.admin.revoke(&record.id).await.unwrap();
    let refused = service.admin.limit(&record.id, &KeyChange::default()).await.unwrap_err();
    assert!(matches!(refused, ClusterKeyError::Key(KeyError::Revoked(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_learnt_of_without_an_announcement_and_with_the_store_alone() {
    let Some(servers) = cluster() else { return };
    let Some(postgres) = PostgresServer::start(&[]).map(Arc::new) else { return };
    let Some(service) = Service::with(postgres.clone(), &servers, "silent", 2).await else { return };
    let record = service.key(&KeyChange::default()).await;
    assert!(!is_revoked(&service.front_ends[1], &record.id).await);
    // Without the store, the command tells the database only.
    let silent = ClusterKeys::open(service.database.clone(), None).await.unwrap();
    silent.limit(&record.id, &KeyChange { name: Some("new".into()), ..KeyChange::default() }).await.unwrap();
    for access in &service.front_ends {
        wait_until("the change", || async { access.find(&record.id).await.unwrap().unwrap().name == "new" })
            .await;
    }
    // A copy of the store is replaced by whoever learns of a change.
    postgres.end("QUIT");
    let fresh = service.front_ends[0].find(&record.id).await.unwrap().unwrap();
    assert_eq!(fresh.name, "new");
    // Without the database, a key that neither the front end nor the store knows cannot be looked up.
    assert_eq!(service.front_ends[0].find("aaaaaaaa").await, Err(Unavailable));
    postgres.run();
    wait_until("the database answers", || async { service.front_ends[0].find("aaaaaaaa").await == Ok(None) })
        .await;
}

/// Polls are counted instead of seconds, which depend on the machine: there are two of them in a second.
#[tokio::test(flavor = "multi_thread")]
async fn an_unannounced_revocation_takes_effect_after_two_polls() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "polls", 3).await else { return };
    let silent = ClusterKeys::open(service.database.clone(), None).await.unwrap();
    for _ in 0..5 {
        let record = service.key(&KeyChange::default()).await;
        for access in &service.front_ends {
            assert!(!is_revoked(access, &record.id).await);
        }
        silent.revoke(&record.id).await.unwrap();
        let revoked = Instant::now();
        let polls = |access: &ClusterAccess| access.metrics().polls();
        let before: Vec<u64> = service.front_ends.iter().map(|access| polls(access)).collect();
        for (access, before) in service.front_ends.iter().zip(before) {
            // The first one may have begun before the revocation.
            wait_until("two polls", || async { polls(access) >= before + 2 }).await;
            assert!(is_revoked(access, &record.id).await);
        }
        println!("revoked everywhere after two polls, {:?}", revoked.elapsed());
    }
}

/// Values that an attacker with access to the store puts there count for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_no_front_end_has_put_into_the_store_counts_for_nothing() {
    let Some(servers) = Servers::single(&[]) else { return };
    let Some(service) = Service::start(&servers, "forged", 1).await else { return };
    let record = service.key(&KeyChange { per_second: Some(1), ..KeyChange::default() }).await;
    let store = servers.connect("forged").await;
    let name = format!("key:{}", record.id);
    wait_until("the copy", || async { store.get(&name).await.unwrap().is_some() }).await;
    let copy = store.get(&name).await.unwrap().unwrap();
    let operator = KeyRecord {
        id: "dddddddd".into(),
        number: u32::MAX,
        hash: B256::repeat_byte(3),
        rules: KeyRules { operator: true, ..KeyRules::default() },
        ..KeyRecord::clone(&record)
    };
    let raised =
        KeyRecord { id: record.id.clone(), hash: record.hash, number: record.number, ..operator.clone() };
    let json = |record: &KeyRecord| serde_json::to_vec(record).unwrap();
    let forged = |head: &[u8], record: &KeyRecord| [head, &json(record)].concat();
    for (id, value) in [
        // The copy of another key, as it is and with a revision that none reaches.
        ("aaaaaaaa", copy.clone()),
        ("aaaaaaab", [b"9000000000000000 ".as_slice(), copy.strip_prefix(b"0 ").unwrap()].concat()),
        // Values without a code, in the form of now and of an earlier version, and with a code of nothing.
        ("bbbbbbbb", b"7 {}".to_vec()),
        ("dddddddd", forged(b"0 ", &operator)),
        ("dddddddd", forged(&[b"0 ".as_slice(), &[0; 32], b"0 0 4000000000 "].concat(), &operator)),
        ("dddddddd", Vec::new()),
    ] {
        store.set(&format!("key:{id}"), &value, Duration::from_secs(60)).await.unwrap();
        let fresh = ClusterAccess::open(&service.database, store.clone()).await.unwrap();
        assert_eq!(fresh.find(id).await, Ok(None), "{id}");
        assert_eq!(store.get(&format!("key:{id}")).await.unwrap(), None, "it is removed");
    }
    for head in [b"0 ".as_slice(), &copy[..34], &copy[..copy.len() - json(&record).len()]] {
        store.set(&name, &forged(head, &raised), Duration::from_secs(60)).await.unwrap();
        let fresh = ClusterAccess::open(&service.database, store.clone()).await.unwrap();
        assert_eq!(fresh.find(&record.id).await, Ok(Some(record.clone())));
        assert_eq!(fresh.metrics().lookups(LookupOutcome::Store), 0);
        wait_until("the copy is back", || async {
            let found = store.get(&name).await.unwrap();
            found.is_some_and(|found| found.ends_with(&json(&record)))
        })
        .await;
    }
    let fresh = ClusterAccess::open(&service.database, store.clone()).await.unwrap();
    assert_eq!(fresh.find(&record.id).await, Ok(Some(record.clone())));
    assert_eq!(fresh.metrics().lookups(LookupOutcome::Store), 1, "the copy is right again");
}

/// As after a failover that lost the change, or if an attacker puts an old value back.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_of_the_store_is_compared_before_it_is_used() {
    let Some(servers) = Servers::single(&[]) else { return };
    let Some(postgres) = PostgresServer::start(&[]).map(Arc::new) else { return };
    let Some(service) = Service::with(postgres.clone(), &servers, "stale", 1).await else { return };
    let change = KeyChange { operator: Some(true), ..KeyChange::default() };
    let (record, other) = (service.key(&change).await, service.key(&KeyChange::default()).await);
    let store = servers.connect("stale").await;
    let name = format!("key:{}", record.id);
    wait_until("the copy", || async { store.get(&name).await.unwrap().is_some() }).await;
    let copy = store.get(&name).await.unwrap().unwrap();
    service.admin.revoke(&record.id).await.unwrap();
    wait_until("the revocation", || is_revoked(&service.front_ends[0], &record.id)).await;
    // The front end that has learnt of it may put the right copy there once more.
    let mut compared = false;
    for _ in 0..20 {
        store.set(&name, &copy, Duration::from_secs(60)).await.unwrap();
        let late = ClusterAccess::open(&service.database, store.clone()).await.unwrap();
        assert!(is_revoked(&late, &record.id).await, "the first answer is right");
        compared = late.metrics().lookups(LookupOutcome::Database) == 1;
        if compared {
            break;
        }
    }
    assert!(compared, "the older copy was not compared");
    // The older copy is removed or replaced in the background, so whoever asks next may have to put the right one there.
    let is_right = || async {
        let next = ClusterAccess::open(&service.database, store.clone()).await.unwrap();
        assert!(is_revoked(&next, &record.id).await, "every answer is right");
        next.metrics().lookups(LookupOutcome::Store) == 1
    };
    wait_until("the copy is right again", is_right).await;
    // While the database cannot be asked, an older copy is all that there is: it gives no operator's rights.
    let last = ClusterAccess::open(&service.database, store.clone()).await.unwrap();
    postgres.end("QUIT");
    store.set(&name, &copy, Duration::from_secs(60)).await.unwrap();
    let found = last.find(&record.id).await.unwrap().unwrap();
    assert!(!found.rules.operator && found.hash == record.hash);
    assert!(last.find(&other.id).await.unwrap().is_some(), "keys of the store are found");
    postgres.run();
    wait_until("the database answers", || async {
        last.find(&record.id).await.is_ok_and(|found| found.is_some_and(|key| key.revoked.is_some()))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_row_makes_no_other_key_unknown() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "damaged", 1).await else { return };
    let (bad, good) = (service.key(&KeyChange::default()).await, service.key(&KeyChange::default()).await);
    let client = service.database.connect().await.unwrap();
    let damage = format!(
        "UPDATE service.state SET revision = revision + 1; UPDATE service.keys SET rules = '\"x\"', \
         revision = (SELECT revision FROM service.state) WHERE id = '{}'",
        bad.id
    );
    client.batch_execute(&damage).await.unwrap();
    let silent = ClusterKeys::open(service.database.clone(), None).await.unwrap();
    silent.revoke(&good.id).await.unwrap();
    wait_until("the change after it", || is_revoked(&service.front_ends[0], &good.id)).await;
    assert_eq!(service.front_ends[0].find(&bad.id).await, Ok(None));
    let late = ClusterAccess::open(&service.database, servers.connect("damaged-late").await).await.unwrap();
    let (found, lost) = tokio::join!(late.find(&good.id), late.find(&bad.id));
    assert!(found.unwrap().unwrap().revoked.is_some() && lost == Ok(None));
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_that_do_not_exist_cost_few_statements() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "unknown", 1).await else { return };
    let access = &service.front_ends[0];
    let calls = "SELECT coalesce(sum(xact_commit), 0)::bigint FROM pg_stat_database WHERE datname = current_database()";
    for _ in 0..50 {
        assert_eq!(access.find("aaaaaaaa").await, Ok(None));
    }
    assert_eq!(access.metrics().lookups(LookupOutcome::Absent), 1, "it is remembered");
    assert_eq!(access.metrics().lookups(LookupOutcome::Memory), 49);
    let (before, started) = (service.number(calls).await, Instant::now());
    let ids: Vec<String> = (0..2_000_u32)
        .map(|number| {
            let digit =
                |place: u32| char::from(b'a' + u8::try_from(number / 16_u32.pow(place) % 16).unwrap());
            (0..8).map(|place| if place < 3 { digit(place) } else { 'x' }).collect()
        })
        .collect();
    let found = join_all(ids.iter().chain(&ids).map(|id| access.find(id))).await;
    assert!(found.iter().all(|found| *found == Ok(None)));
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let statements = service.number(calls).await - before;
    println!("{statements} transactions for 4000 requests with 2000 unknown ids");
    // Front ends and the server ask regularly, too.
    let regular = 20 * i64::try_from(started.elapsed().as_secs()).unwrap();
    assert!(statements < 60 + regular, "{statements}, of them at most {regular} regular ones");
    // Beyond the limit of 4,096 that wait, requests are refused at once. Some are answered while the others are sent.
    let many: Vec<String> = (0..12_000_u32).map(|number| format!("y{number:07}")).collect();
    let found = join_all(many.iter().map(|id| access.find(id))).await;
    let refused = found.iter().filter(|found| **found == Err(Unavailable)).count();
    assert!((4_000..12_000).contains(&refused), "{refused}");
}

/// A client sends ids that do not exist while the database accepts statements and does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_the_store_are_found_while_the_database_stalls_under_unknown_ids() {
    let Some(servers) = Servers::single(&[]) else { return };
    let Some(postgres) = PostgresServer::start(&[]).map(Arc::new) else { return };
    let Some(service) = Service::with(postgres, &servers, "flood", 2).await else { return };
    let access = service.front_ends[1].clone();
    let store = servers.connect("flood").await;
    let mut keys = Vec::new();
    for _ in 0..6 {
        keys.push(service.key(&KeyChange::default()).await);
    }
    for key in &keys {
        let name = format!("key:{}", key.id);
        wait_until("the copy", || async { store.get(&name).await.unwrap().is_some() }).await;
    }
    // A query for keys waits for the transaction that changes this table.
    let mut client = service.database.connect().await.unwrap();
    let stall = client.transaction().await.unwrap();
    stall.batch_execute("LOCK TABLE service.keys IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let (mut floods, mut good) = (Vec::new(), Vec::new());
    for (turn, key) in keys.iter().enumerate() {
        // These look-ups wait for the database; three turns have more of them than may wait.
        let (unknown, known) = (access.clone(), access.clone());
        let ids: Vec<String> = (0..2_000_u32).map(|number| format!("{turn}x{number:06}")).collect();
        floods.push(tokio::spawn(async move { join_all(ids.iter().map(|id| unknown.find(id))).await }));
        tokio::task::yield_now().await;
        let id = key.id.clone();
        let mut found = tokio::spawn(async move { known.find(&id).await });
        match tokio::time::timeout(Duration::from_millis(300), &mut found).await {
            Ok(found) => assert_eq!(found.unwrap(), Ok(Some(key.clone()))),
            Err(_) => good.push((found, key)),
        }
    }
    println!("{} keys were not found before the next turn", good.len());
    for (found, key) in good {
        assert_eq!(found.await.unwrap(), Ok(Some(key.clone())));
    }
    for flood in join_all(floods).await {
        assert!(flood.unwrap().iter().all(|found| *found == Err(Unavailable)));
    }
    assert_eq!(access.metrics().lookups(LookupOutcome::Store), 6);
    stall.rollback().await.unwrap();
    wait_until("the database answers", || async { access.find("aaaaaaaa").await == Ok(None) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_written_exactly_once_across_restarts_of_the_database() {
    let Some(servers) = cluster() else { return };
    let Some(postgres) = PostgresServer::start(&[]).map(Arc::new) else { return };
    let Some(service) = Service::with(postgres.clone(), &servers, "usage", 2).await else { return };
    let record =
        service.key(&KeyChange { per_second: Some(10), burst: Some(1), ..KeyChange::default() }).await;
    let free = service.key(&KeyChange::default()).await;
    let mut admitted = 0;
    for turn in 0..300_u64 {
        for access in &service.front_ends {
            access.take(&free, &charge(2)).await.unwrap();
            admitted += u64::from(access.take(&record, &charge(1)).await.is_ok());
        }
        if turn % 30 == 0 {
            // Answers of commits get lost when the server is ended under them.
            let ended = async {
                tokio::time::sleep(Duration::from_millis(turn % 7)).await;
                let postgres = postgres.clone();
                tokio::task::spawn_blocking(move || {
                    postgres.end("QUIT");
                    postgres.run();
                })
                .await
                .unwrap();
            };
            let flushes = join_all(service.front_ends.iter().map(|access| access.flush()));
            let _ = tokio::join!(ended, flushes);
            assert!(service.front_ends[0].find(&free.id).await.unwrap().is_some(), "known keys work");
        }
    }
    for access in &service.front_ends {
        wait_until("the last flush", || async { access.flush().await.is_ok() }).await;
        access.flush().await.unwrap();
    }
    let page = service.admin.list(None, 10).await.unwrap();
    let of = |id: &str| page.keys.iter().find(|key| key.id == id).unwrap().usage.clone();
    let (limited, unlimited) = (of(&record.id), of(&free.id));
    assert_eq!((limited.requests, limited.requests + limited.refused), (admitted, 600));
    assert_eq!((unlimited.requests, unlimited.weight, unlimited.refused), (1_200, 1_200, 0));
    assert_eq!((unlimited.classes["eth"], unlimited.today), (1_200, 1_200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flush_whose_commit_was_not_confirmed_counts_once() {
    let Some(servers) = cluster() else { return };
    let Some(postgres) = PostgresServer::start(&[]).map(Arc::new) else { return };
    let Some(service) = Service::with(postgres.clone(), &servers, "commit", 1).await else { return };
    let (access, key) = (&service.front_ends[0], service.key(&KeyChange::default()).await);
    let taken = AtomicU64::new(0);
    let take = async |requests: u32| {
        access.take(&key, &charge(requests)).await.unwrap();
        taken.fetch_add(requests.into(), Ordering::Relaxed);
    };
    take(3).await;
    let client = service.database.connect().await.unwrap();
    // A commit waits for a standby that does not exist. If its connection is ended then, it was made all the same.
    client.batch_execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    wait_until("the setting", || async {
        take(1).await;
        let flush = access.flush();
        let end = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let query =
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
            client.query_one(query, &[]).await.unwrap().get::<_, i64>(0) > 0
        };
        let (flushed, ended) = tokio::join!(flush, end);
        ended && flushed.is_err()
    })
    .await;
    assert!(service.number("SELECT requests FROM service.usage").await >= 3, "the commit was made");
    client.batch_execute("ALTER SYSTEM RESET synchronous_standby_names").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    take(10).await;
    wait_until("the next flush", || async { access.flush().await.is_ok() }).await;
    let counted = service.admin.list(None, 1).await.unwrap().keys[0].usage.requests;
    let sum = service.number("SELECT sum(requests)::bigint FROM service.usage_days").await;
    assert_eq!(i64::try_from(counted).unwrap(), sum);
    assert_eq!(counted, taken.load(Ordering::Relaxed), "each request counts once");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_refused_after_a_long_outage_of_store_and_database() {
    let Some(servers) = Servers::single(&[]) else { return };
    let Some(postgres) = PostgresServer::start(&[]).map(Arc::new) else { return };
    let Some(service) = Service::with(postgres.clone(), &servers, "grace", 1).await else { return };
    let record = service.key(&KeyChange::default()).await;
    let store = servers.connect("grace").await;
    let short = Duration::from_secs(2);
    let access = ClusterAccess::open_with(&service.database, store, short).await.unwrap();
    assert!(access.find(&record.id).await.unwrap().is_some());
    // The store alone says whether keys have changed.
    postgres.end("QUIT");
    tokio::time::sleep(short + Duration::from_secs(1)).await;
    assert!(access.find(&record.id).await.unwrap().is_some());
    servers.kill(0);
    assert!(access.find(&record.id).await.unwrap().is_some(), "it is served for a while");
    wait_until("the end of grace", || async { access.find(&record.id).await == Err(Unavailable) }).await;
    postgres.run();
    wait_until("the database is asked", || async { access.find(&record.id).await.is_ok() }).await;
    assert!(access.find(&record.id).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_read_in_pages_and_many_keys_are_no_burden() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "list", 1).await else { return };
    let client = service.database.connect().await.unwrap();
    let insert = "INSERT INTO service.keys (id, name, hash, created, rules) \
        SELECT translate(lpad(to_hex(n), 8, '0'), '0189', 'wxyz'), 'key ' || n, sha256(n::text::bytea), 1, '{}' \
        FROM generate_series(1, 20000) n";
    client.batch_execute(insert).await.unwrap();
    let (mut ids, mut after, mut pages) = (BTreeSet::new(), None, 0);
    loop {
        let page = service.admin.list(after.as_deref(), 1_000).await.unwrap();
        ids.extend(page.keys.into_iter().map(|key| key.id));
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((ids.len(), pages), (20_000, 20));
    let unknown = service.admin.list(Some("aaaaaaaa"), 1).await.unwrap_err();
    assert!(matches!(unknown, ClusterKeyError::Key(KeyError::Unknown(_))));
    let access = &service.front_ends[0];
    let started = Instant::now();
    let ids: Vec<String> = ids.into_iter().collect();
    for part in ids.chunks(2_000) {
        let found = join_all(part.iter().map(|id| access.find(id))).await;
        assert!(found.into_iter().all(|found| found.unwrap().is_some()));
    }
    println!("20000 keys found in {:?}", started.elapsed());
}

/// A front end could not write the usage of keys to a replica, and no operator would notice.
#[tokio::test(flavor = "multi_thread")]
async fn a_front_end_does_not_start_on_a_replica() {
    let (Some(servers), Some(primary)) = (cluster(), PostgresServer::start(&[])) else { return };
    let address = primary.database().await;
    let name = address.rsplit('/').next().unwrap().to_owned();
    ClusterAccess::open(&database(&address), servers.connect("primary").await).await.unwrap();
    let replica = tokio::task::spawn_blocking(move || (primary.replica(), primary));
    let (server, _primary) = replica.await.unwrap();
    let store = servers.connect("replica").await;
    let replica = server.address(&name);
    let refused = ClusterAccess::open(&database(&replica), store.clone()).await;
    let error = refused.expect_err("a replica takes no changes");
    assert!(matches!(error, ClusterKeyError::ReadOnly), "{error}");
    assert!(error.to_string().contains("primary"), "{error}");
    // The primary is found among several servers.
    let host = |address: &str| address["postgres://postgres@".len()..].split('/').next().unwrap().to_owned();
    let both = format!("{},{}/{name}?target_session_attrs=read-write", host(&replica), host(&address));
    ClusterAccess::open(&database(&format!("postgres://postgres@{both}")), store).await.unwrap();
}
