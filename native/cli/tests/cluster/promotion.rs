//! A database that lacks the last changes of keys, as a replica does that became the primary.

use rootlight_cluster::keys::ClusterKeys;
use rootlight_server::keys::{KeyChange, KeyLookup as _};

use crate::servers::{Servers, wait_until};
use crate::setup::Service;

fn named(name: &str) -> KeyChange {
    KeyChange { name: Some(name.to_owned()), ..KeyChange::default() }
}

/// Revisions that the database lacked, and the state that it went back to.
async fn lose(service: &Service, revision: i64, name: &str) {
    let client = service.database.connect().await.unwrap();
    let sql = format!(
        "BEGIN; UPDATE service.state SET revision = {revision}; \
         UPDATE service.keys SET revision = {revision}, name = '{name}' WHERE revision > {revision}; COMMIT"
    );
    client.batch_execute(&sql).await.unwrap();
}

async fn revoked_everywhere(service: &Service, id: &str) {
    for access in &service.front_ends {
        let revoked = || async { access.find(id).await.unwrap().unwrap().revoked.is_some() };
        wait_until("the revocation", revoked).await;
    }
}

async fn known_everywhere(service: &Service, id: &str, name: &str) {
    for access in &service.front_ends {
        let known = || async { access.find(id).await.unwrap().unwrap().name == name };
        wait_until(&format!("the name {name:?}"), known).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_lost_changes_is_followed_and_later_revocations_are_learnt_of() {
    let Some(servers) = Servers::single(&[]) else { return };
    let Some(service) = Service::start(&servers, "lost", 2).await else { return };
    // The command does not announce anything: it knows no store.
    let silent = ClusterKeys::open(service.database.clone(), None).await.unwrap();
    let (changed, leaked) = (service.key(&named("before")).await, service.key(&KeyChange::default()).await);
    known_everywhere(&service, &leaked.id, "").await;
    // A revision that the time does not reach: the clock of the new primary is behind that of the old one.
    let far = 9_000_000_000_000;
    lose(&service, far, "before").await;
    for change in 0..4 {
        silent.limit(&changed.id, &named(&format!("change {change}"))).await.unwrap();
    }
    known_everywhere(&service, &changed.id, "change 3").await;

    lose(&service, far, "before").await;
    silent.revoke(&leaked.id).await.unwrap();
    revoked_everywhere(&service, &leaked.id).await;
    // The change that was lost is not shown any more.
    known_everywhere(&service, &changed.id, "before").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_after_a_loss_have_revisions_that_no_front_end_knows() {
    let Some(servers) = Servers::single(&[]) else { return };
    let Some(service) = Service::start(&servers, "again", 1).await else { return };
    let (changed, leaked) = (service.key(&named("before")).await, service.key(&KeyChange::default()).await);
    for change in 0..4 {
        service.admin.limit(&changed.id, &named(&format!("change {change}"))).await.unwrap();
    }
    let known = service.number("SELECT revision FROM service.state").await;
    // Front ends do not see the database before it has as many changes as they know.
    lose(&service, 0, "before").await;
    service.admin.revoke(&leaked.id).await.unwrap();
    let revision = "SELECT revision FROM service.keys WHERE revoked IS NOT NULL";
    assert!(service.number(revision).await > known);
}
