//! Copies of keys in the hot store: their records, and the revision of the last change.
//!
//! A copy has the record that PostgreSQL has, and the revision of all keys at which the record was right. A copy is sealed
//! ([`Seal`]), so that another program that can write to the store cannot make one. Such a program can put an older copy
//! back: front ends see its older revision, and use a copy for no longer than [`LIFETIME`] after it was made.

use std::sync::LazyLock;
use std::time::Duration;

use futures::future::join;
use rootlight_limits::unix_time::unix_time;
use rootlight_server::keys::KeyRecord;

use super::rows::VersionedKey;
use crate::Seal;
use crate::store::{HotStore, HotStoreError, Script};

/// The channel on which changes are announced. A message is the id of the changed key; an empty one stands for any key.
pub(super) const CHANNEL: &str = "keys";

/// The name in the store of the revision of the last change.
const REVISION: &str = "keys:revision";

/// How long the store keeps a copy after a front end has put it there.
const LIFETIME: Duration = Duration::from_secs(600);

/// Stores a copy, unless the stored one has a higher revision.
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

/// Raises the stored revision to a number, unless it is higher already. A stored number from 2^53 on is no revision:
/// revisions are times in milliseconds, or each is the one before plus one.
static RAISE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "local text = redis.call('GET', KEYS[1])
local old = text and string.find(text, '^%d+$') and tonumber(text)
if old and old < 2 ^ 53 and old >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1",
    )
});

/// The name in the store of the copy of a key.
fn copy_name(id: &str) -> String {
    format!("key:{id}")
}

/// The name in the store of the counters of a key.
pub(super) fn counters_name(id: &str) -> String {
    format!("quota:{id}")
}

/// The copy of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyCopy {
    pub(super) key: VersionedKey,
    /// The revision of all keys at which the copy was right.
    pub(super) right_at: i64,
}

/// The copy of a key in the store. A value that no front end has put there, or that is too old, counts as absent and is removed.
pub(super) async fn get(store: &HotStore, seal: &Seal, id: &str) -> Result<Option<KeyCopy>, HotStoreError> {
    let name = copy_name(id);
    let Some(bytes) = store.get(&name).await? else { return Ok(None) };
    let copied = parse(seal, &name, &bytes).filter(|copied| copied.key.record.id == id);
    if copied.is_none() {
        store.remove(&name).await?;
    }
    Ok(copied)
}

/// Reads a copy: `REVISION SEALED`, where the sealed text is `REVISION RIGHT_AT PUT_AT RECORD` as [`put`] writes it.
fn parse(seal: &Seal, name: &str, bytes: &[u8]) -> Option<KeyCopy> {
    let (revision, sealed) = take_number(bytes)?;
    // The revision before the sealed text is for the script only, and could be forged.
    let (sealed_revision, rest) = take_number(seal.unseal(name, sealed)?)?;
    let (right_at, rest) = take_number(rest)?;
    let (put_at, record) = take_number(rest)?;
    let is_recent = unix_time().abs_diff(u64::try_from(put_at).ok()?) <= LIFETIME.as_secs();
    let record: KeyRecord = serde_json::from_slice(record).ok()?;
    let key = VersionedKey { record, revision };
    (sealed_revision == revision && is_recent).then_some(KeyCopy { key, right_at })
}

/// Splits a number, and the rest after the space that follows the number.
fn take_number(bytes: &[u8]) -> Option<(i64, &[u8])> {
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
    let name = copy_name(&found.record.id);
    let text = [format!("{} {right_at} {} ", found.revision, unix_time()).into_bytes(), record].concat();
    let revision = found.revision.to_string().into_bytes();
    let lifetime = LIFETIME.as_millis().to_string().into_bytes();
    store.script::<i64>(&PUT, &name, &[revision, seal.seal(&name, &text), lifetime]).await.map(drop)
}

/// Removes a record that cannot be right.
pub(super) async fn remove(store: &HotStore, id: &str) -> Result<(), HotStoreError> {
    store.remove(&copy_name(id)).await.map(drop)
}

/// The revision of the last change, as the store has it; `None` if it has none.
pub(super) async fn revision(store: &HotStore) -> Result<Option<i64>, HotStoreError> {
    let bytes = store.get(REVISION).await?;
    Ok(bytes.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.parse().ok()))
}

/// Raises the stored revision of the last change to this one.
pub(super) async fn raise(store: &HotStore, revision: i64) -> Result<(), HotStoreError> {
    let revision = revision.to_string().into_bytes();
    store.script::<i64>(&RAISE, REVISION, &[revision]).await.map(drop)
}

/// Announces a change: puts the new copy into the store, raises the stored revision, and notifies the front ends. Each step
/// is tried even if another one fails. `new_rate`: the limit per second has changed.
pub(super) async fn announce(
    store: &HotStore,
    seal: &Seal,
    changed: &VersionedKey,
    new_rate: bool,
) -> Result<(), HotStoreError> {
    let id = &changed.record.id;
    let limits = async {
        // The fields `s` and `n` of the counters (`take.lua`) are the time at which the whole burst is available, which was
        // computed with the old rate. The count of the day stays.
        let fields = [b"s".to_vec(), b"n".to_vec()];
        if new_rate {
            store.command::<i64>("HDEL", &counters_name(id), &fields).await.map(drop)
        } else {
            Ok(())
        }
    };
    let (put, limits) = join(put(store, seal, changed, changed.revision), limits).await;
    let raised = raise(store, changed.revision).await;
    let published = store.publish(CHANNEL, id.as_bytes()).await;
    put.and(limits).and(raised).and(published)
}
