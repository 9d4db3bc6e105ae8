//! What the store holds of keys: their records, and the revision of the last change.

use std::sync::LazyLock;
use std::time::Duration;

use futures::future::join;

use super::rows::Versioned;
use crate::cluster::store::{HotStore, Script, StoreError};
use crate::keys::Record;

/// The channel on which changes are announced. A message is the id of the key.
pub(super) const CHANNEL: &str = "keys";

/// The revision of the last change that the store knows.
const REVISION: &str = "keys:revision";

/// How long the store keeps a record that nobody reads from the database.
const LIFETIME: Duration = Duration::from_secs(600);

/// Keeps the record with the higher revision.
static PUT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local old = redis.call('GET', KEYS[1])
if old then
  local at = string.find(old, ' ', 1, true)
  local revision = at and tonumber(string.sub(old, 1, at - 1))
  if revision and revision > tonumber(ARGV[1]) then return 0 end
end
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
return 1",
    )
});

/// Keeps the higher number.
static RAISE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local old = tonumber(redis.call('GET', KEYS[1]) or '-1')
if old and old >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1",
    )
});

fn name(id: &str) -> String {
    format!("key:{id}")
}

/// The key of the counters of an API key.
pub(super) fn counters(id: &str) -> String {
    format!("quota:{id}")
}

/// The record of a key in the store. One that cannot be read, or is of another key, counts as absent.
pub(super) async fn get(store: &HotStore, id: &str) -> Result<Option<Versioned>, StoreError> {
    let Some(bytes) = store.get(&name(id)).await? else { return Ok(None) };
    Ok(parse(&bytes).filter(|found| found.record.id == id))
}

fn parse(bytes: &[u8]) -> Option<Versioned> {
    let at = bytes.iter().position(|byte| *byte == b' ')?;
    let revision = std::str::from_utf8(bytes.get(..at)?).ok()?.parse().ok()?;
    let record: Record = serde_json::from_slice(bytes.get(at.saturating_add(1)..)?).ok()?;
    Some(Versioned { record, revision })
}

/// Puts a record into the store, unless a newer one is there.
pub(super) async fn put(store: &HotStore, found: &Versioned) -> Result<(), StoreError> {
    let text = serde_json::to_vec(&found.record).map_err(|error| StoreError::Answer(error.to_string()))?;
    let revision = found.revision.to_string().into_bytes();
    let lifetime = LIFETIME.as_millis().to_string().into_bytes();
    store.script::<i64>(&PUT, &name(&found.record.id), &[revision, text, lifetime]).await.map(drop)
}

/// Removes a record that cannot be right.
pub(super) async fn remove(store: &HotStore, id: &str) -> Result<(), StoreError> {
    store.remove(&name(id)).await.map(drop)
}

/// The revision of the last change that the store knows; `None` if it knows none.
pub(super) async fn revision(store: &HotStore) -> Result<Option<i64>, StoreError> {
    let bytes = store.get(REVISION).await?;
    Ok(bytes.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.parse().ok()))
}

/// Tells the store that there is such a revision.
pub(super) async fn raise(store: &HotStore, revision: i64) -> Result<(), StoreError> {
    let revision = revision.to_string().into_bytes();
    store.script::<i64>(&RAISE, REVISION, &[revision]).await.map(drop)
}

/// Tells the store and all front ends of a change. All is tried, whatever of it fails.
pub(super) async fn announce(
    store: &HotStore,
    changed: &Versioned,
    new_rate: bool,
) -> Result<(), StoreError> {
    let id = &changed.record.id;
    let limits = async {
        // The time that a limit holds depends on its numbers. The count of the day stays.
        let fields = [b"s".to_vec(), b"n".to_vec()];
        if new_rate { store.command::<i64>("HDEL", &counters(id), &fields).await.map(drop) } else { Ok(()) }
    };
    let (put, limits) = join(put(store, changed), limits).await;
    let raised = raise(store, changed.revision).await;
    let published = store.publish(CHANNEL, id.as_bytes()).await;
    put.and(limits).and(raised).and(published)
}
