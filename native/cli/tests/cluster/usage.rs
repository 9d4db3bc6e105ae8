//! The usage of many keys, on a database that takes long over many rows.

use rootlight_cluster::keys::ClusterAccess;
use rootlight_server::keys::{KeyChange, KeyRecord, Quotas as _};

use crate::servers::cluster;
use crate::setup::{Service, charge};

/// Keys that are used.
const KEYS: u32 = 20_000;

/// Keeps a statement with many rows until its front end gives it up, and refuses the third one with few.
const SLOW: &str = "CREATE SEQUENCE statements; \
    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF (SELECT count(*) FROM added) > 5000 THEN PERFORM pg_sleep(60); END IF; \
        IF nextval('statements') = 3 THEN RAISE 'the disk is full'; END IF; \
        RETURN NULL; END $$; \
    CREATE TRIGGER slow AFTER INSERT ON service.usage REFERENCING NEW TABLE AS added \
        FOR EACH STATEMENT EXECUTE FUNCTION slow()";

async fn use_all(access: &ClusterAccess, key: &KeyRecord) {
    let mut key = key.clone();
    for number in 1..=KEYS {
        key.number = number;
        access.take(&key, &charge(2)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_book_is_written_in_parts_each_of_them_once() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "book", 1).await else { return };
    let (access, key) = (&service.front_ends[0], service.key(&KeyChange::default()).await);
    service.database.connect().await.unwrap().batch_execute(SLOW).await.unwrap();
    use_all(access, &key).await;
    // The front end itself writes every few seconds, too; whoever is first meets the error.
    let mut failed = 0;
    while access.flush().await.is_err() {
        failed += 1;
        assert!(failed < 3, "the flush makes no progress");
        let written = service.number("SELECT count(*) FROM service.usage").await;
        assert!((1..i64::from(KEYS)).contains(&written), "{written} keys before the error");
        use_all(access, &key).await;
    }
    access.flush().await.unwrap();
    let turns = 1 + i64::from(failed);
    assert_eq!(service.number("SELECT count(*) FROM service.usage").await, i64::from(KEYS));
    let sums = "SELECT count(*) FROM service.usage WHERE requests =";
    assert_eq!(service.number(&format!("{sums} {}", 2 * turns)).await, i64::from(KEYS));
    let all = turns * 2 * i64::from(KEYS);
    assert_eq!(service.number("SELECT sum(requests)::bigint FROM service.usage_days").await, all);
    assert_eq!(service.number("SELECT sum(requests)::bigint FROM service.usage_totals").await, all);
    assert_eq!(service.number("SELECT requests FROM service.usage_class_totals").await, all);
}

/// Values that PostgreSQL refuses, whoever brought them there.
#[tokio::test(flavor = "multi_thread")]
async fn usage_that_the_database_refuses_stops_no_other() {
    let Some(servers) = cluster() else { return };
    let Some(service) = Service::start(&servers, "refused", 1).await else { return };
    let (access, key) = (&service.front_ends[0], service.key(&KeyChange::default()).await);
    let client = service.database.connect().await.unwrap();
    let full = "INSERT INTO service.usage (number, requests) VALUES (7, 9223372036854775807); \
        ALTER TABLE service.usage_days ADD CHECK (number <> 1500)";
    client.batch_execute(full).await.unwrap();
    let mut used = KeyRecord::clone(&key);
    for number in [u32::MAX, 1 << 31, u32::MAX - 1].into_iter().chain(1..=3_000) {
        used.number = number;
        access.take(&used, &charge(2)).await.unwrap();
    }
    // The front end itself writes, too.
    crate::servers::wait_until("the flush", || async { access.flush().await.is_ok() }).await;
    access.flush().await.unwrap();
    let sums = "SELECT count(*) FROM service.usage WHERE requests = 2 AND number > 0";
    assert_eq!(service.number(sums).await, 3_000 - 2, "all but two keys");
    assert_eq!(service.number("SELECT requests FROM service.usage WHERE number = 0").await, 6);
    let all = 2 * (3_000 - 2) + 6;
    assert_eq!(service.number("SELECT sum(requests)::bigint FROM service.usage_totals").await, all);
    // Later requests are counted.
    used.number = 9;
    access.take(&used, &charge(5)).await.unwrap();
    access.flush().await.unwrap();
    assert_eq!(service.number("SELECT requests FROM service.usage WHERE number = 9").await, 7);
}
