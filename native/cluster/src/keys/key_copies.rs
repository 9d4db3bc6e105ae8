//! Copies of keys in the store: their records, and the revision of the last change.
//!
//! A record is a copy of what PostgreSQL has, with the revision of all keys at which it was right. It is sealed, so that
//! whoever can write to the store cannot make one. An older copy can be put back: it is of an older revision then, and it
//! counts for no longer than the store would have kept it.

use std::sync::LazyLock;
use std::time::Duration;

use futures::future::join;
use rootlight_limits::unix_time::unix_time;
use rootlight_server::keys::KeyRecord;

use super::rows::VersionedKey;
use crate::Seal;
use crate::store::{HotStore, HotStoreError, Script};

/// The channel on which changes are announced. A message is the id of the key.
pub(super) const CHANNEL: &str = "keys";

/// The revision of the last change that the store knows.
const REVISION: &str = "keys:revision";

/// How long the store keeps a record that no front end reads from the database.
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

/// Keeps the higher number. A revision beyond 2^53 is none: revisions are times in milliseconds, or follow on each other.
static RAISE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local text = redis.call('GET', KEYS[1])
local old = text and string.find(text, '^%d+$') and tonumber(text)
if old and old < 2 ^ 53 and old >= tonumber(ARGV[1]) then return 0 end
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyCopy {
    pub(super) key: VersionedKey,
    /// The revision of all keys at which the copy was right.
    pub(super) right_at: i64,
}

/// The copy of a key in the store. One that no front end has put there counts as absent, and is removed.
pub(super) async fn get(store: &HotStore, seal: &Seal, id: &str) -> Result<Option<KeyCopy>, HotStoreError> {
    let name = name(id);
    let Some(bytes) = store.get(&name).await? else { return Ok(None) };
    let copied = parse(seal, &name, &bytes).filter(|copied| copied.key.record.id == id);
    if copied.is_none() {
        store.remove(&name).await?;
    }
    Ok(copied)
}

fn parse(seal: &Seal, name: &str, bytes: &[u8]) -> Option<KeyCopy> {
    let (revision, sealed) = number(bytes)?;
    // The number before it is for the script only.
    let (sealed_revision, rest) = number(seal.unseal(name, sealed)?)?;
    let (right_at, rest) = number(rest)?;
    let (put_at, record) = number(rest)?;
    let is_kept = unix_time().abs_diff(u64::try_from(put_at).ok()?) <= LIFETIME.as_secs();
    let record: KeyRecord = serde_json::from_slice(record).ok()?;
    let key = VersionedKey { record, revision };
    (sealed_revision == revision && is_kept).then_some(KeyCopy { key, right_at })
}

/// A number, and what is behind the space after it.
fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let at = bytes.iter().position(|byte| *byte == b' ')?;
    let (number, rest) = bytes.split_at_checked(at)?;
    Some((std::str::from_utf8(number).ok()?.parse().ok()?, rest.split_first()?.1))
}

/// Puts a copy of a key into the store, unless a newer one is there.
pub(super) async fn put(
    store: &HotStore,
    seal: &Seal,
    found: &VersionedKey,
    right_at: i64,
) -> Result<(), HotStoreError> {
    let record =
        serde_json::to_vec(&found.record).map_err(|error| HotStoreError::Answer(error.to_string()))?;
    let name = name(&found.record.id);
    let text = [format!("{} {right_at} {} ", found.revision, unix_time()).into_bytes(), record].concat();
    let revision = found.revision.to_string().into_bytes();
    let lifetime = LIFETIME.as_millis().to_string().into_bytes();
    store.script::<i64>(&PUT, &name, &[revision, seal.seal(&name, &text), lifetime]).await.map(drop)
}

/// Removes a record that cannot be right.
pub(super) async fn remove(store: &HotStore, id: &str) -> Result<(), HotStoreError> {
    store.remove(&name(id)).await.map(drop)
}

/// The revision of the last change that the store knows; `None` if it knows none.
pub(super) async fn revision(store: &HotStore) -> Result<Option<i64>, HotStoreError> {
    let bytes = store.get(REVISION).await?;
    Ok(bytes.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.parse().ok()))
}

/// Tells the store that there is such a revision.
pub(super) async fn raise(store: &HotStore, revision: i64) -> Result<(), HotStoreError> {
    let revision = revision.to_string().into_bytes();
    store.script::<i64>(&RAISE, REVISION, &[revision]).await.map(drop)
}

/// Tells the store and all front ends of a change. All is tried, whatever of it fails.
pub(super) async fn announce(
    store: &HotStore,
    seal: &Seal,
    changed: &VersionedKey,
    new_rate: bool,
) -> Result<(), HotStoreError> {
    let id = &changed.record.id;
    let limits = async {
        // The time that a limit holds depends on its numbers. The count of the day stays.
        let fields = [b"s".to_vec(), b"n".to_vec()];
        if new_rate { store.command::<i64>("HDEL", &counters(id), &fields).await.map(drop) } else { Ok(()) }
    };
    let (put, limits) = join(put(store, seal, changed, changed.revision), limits).await;
    let raised = raise(store, changed.revision).await;
    let published = store.publish(CHANNEL, id.as_bytes()).await;
    put.and(limits).and(raised).and(published)
}
