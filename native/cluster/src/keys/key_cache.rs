//! The keys that a front end has in memory, with the ids that do not exist. A record is replaced only by one of a higher
//! revision, and a record that was asked for before a change is not cached.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rootlight_server::keys::KeyRecord;

use super::rows::VersionedKey;

/// Most ids that are cached as absent or refused.
const MAX_ABSENT: usize = 100_000;

/// How long an id is cached as absent or refused. A new key is not announced, so a front end may call it absent for so long.
const ABSENT_TIME: Duration = Duration::from_secs(5);

/// About how many keys the cache will hold, by which it sizes its tables.
const EXPECTED_KEYS: usize = 100_000;

/// The cached state of an id.
#[derive(Debug, Clone)]
pub(super) enum CachedLookup {
    Key(Arc<KeyRecord>),
    /// No key has this id.
    Absent,
}

/// A cached key.
#[derive(Clone)]
struct CachedKey {
    record: Arc<KeyRecord>,
    revision: i64,
    /// The generation of the cache in which the key was asked for.
    generation: u64,
}

/// Bytes that a key takes besides its texts and lists: the record, its entry in the cache, and what the allocator adds to each
/// of its parts. Measured with a million keys (`native/cli/tests/cluster/million.rs`).
const OVERHEAD: usize = 560;

/// The weight of a key in the cache: its bytes, approximately.
#[derive(Clone)]
struct KeyWeight;

impl Weighter<String, CachedKey> for KeyWeight {
    fn weight(&self, id: &String, entry: &CachedKey) -> u64 {
        let rules = &entry.record.rules;
        // A text takes 24 bytes besides its letters (`String`), an address of a contract 20, and a network of clients 18.
        let lists = rules.methods.iter().chain(&rules.origins).map(|text| text.len().saturating_add(24));
        let fixed =
            rules.contracts.len().saturating_mul(20).saturating_add(rules.addresses.len().saturating_mul(18));
        let own = id.len().saturating_add(entry.record.name.len()).saturating_add(OVERHEAD);
        let total = lists.fold(own, usize::saturating_add).saturating_add(fixed);
        u64::try_from(total).unwrap_or(u64::MAX)
    }
}

/// The keys that a front end remembers, and for a few seconds which ids do not exist.
pub(super) struct KeyCache {
    keys: Cache<String, CachedKey, KeyWeight>,
    /// Ids that do not exist, with the time at which this was found out.
    absent: Cache<String, Instant>,
    /// Ids of keys that were refused, with the time.
    refused: Cache<String, Instant>,
    /// Rises when all keys must be asked for again: keys of an earlier generation are not returned.
    generation: AtomicU64,
    /// Number of changes of keys that this front end has learnt of.
    changes: AtomicU64,
    /// The highest revision of a key that was read from the database.
    newest_revision: AtomicI64,
}

/// The state of the cache when a key was asked for. If it has changed when the record arrives, the record may be older than
/// a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheVersion {
    generation: u64,
    changes: u64,
}

impl KeyCache {
    /// A cache of at most about so many bytes of keys.
    pub(super) fn new(bytes: u64) -> Self {
        let keys = Cache::with_weighter(EXPECTED_KEYS, bytes, KeyWeight);
        Self {
            keys,
            absent: Cache::new(MAX_ABSENT),
            refused: Cache::new(MAX_ABSENT),
            generation: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            newest_revision: AtomicI64::new(0),
        }
    }

    /// The cached state of an id; `None` if it must be asked for.
    pub(super) fn get(&self, id: &str) -> Option<CachedLookup> {
        if let Some(entry) = self.keys.get(id) {
            return (entry.generation == self.version().generation)
                .then_some(CachedLookup::Key(entry.record));
        }
        let since = self.absent.get(id)?;
        if since.elapsed() < ABSENT_TIME {
            return Some(CachedLookup::Absent);
        }
        self.absent.remove(id);
        None
    }

    /// Whether a key was refused within [`ABSENT_TIME`].
    pub(super) fn was_refused(&self, id: &str) -> bool {
        self.refused.get(id).is_some_and(|since| since.elapsed() < ABSENT_TIME)
    }

    /// Notes that a key was refused, for [`ABSENT_TIME`].
    pub(super) fn note_refused(&self, id: &str) {
        self.refused.insert(id.to_owned(), Instant::now());
    }

    /// The present state, to be taken before a key is asked for.
    pub(super) fn version(&self) -> CacheVersion {
        let load = |number: &AtomicU64| number.load(Ordering::Acquire);
        CacheVersion { generation: load(&self.generation), changes: load(&self.changes) }
    }

    /// The highest revision of a key that was read from the database.
    pub(super) fn newest_revision(&self) -> i64 {
        self.newest_revision.load(Ordering::Acquire)
    }

    /// Notes that the database has a key of this revision.
    pub(super) fn note_revision(&self, revision: i64) {
        self.newest_revision.fetch_max(revision, Ordering::AcqRel);
    }

    /// Notes that the database has no higher revision than this any more, and makes all keys be asked for again.
    pub(super) fn go_back(&self, revision: i64) {
        self.newest_revision.store(revision, Ordering::Release);
        self.invalidate_all();
    }

    /// Makes all keys be asked for again.
    pub(super) fn invalidate_all(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Makes one key be asked for again.
    pub(super) fn invalidate(&self, id: &str) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.keys.remove(id);
    }

    /// Caches a key that was asked for at `asked_at`, unless some key has changed since. Returns the record to use: the cached
    /// one if that is newer.
    pub(super) fn put(&self, found: VersionedKey, asked_at: CacheVersion) -> Arc<KeyRecord> {
        let VersionedKey { record, revision } = found;
        if asked_at != self.version() {
            return Arc::new(record);
        }
        let (id, generation) = (record.id.clone(), asked_at.generation);
        self.absent.remove(&id);
        if let Some(known) = self.keys.get(&id)
            && known.revision > revision
            && known.generation >= generation
        {
            return known.record;
        }
        let record = Arc::new(record);
        self.keys.insert(id, CachedKey { record: record.clone(), revision, generation });
        record
    }

    /// Caches a key as the database has it, as [`Self::put`], also in place of a newer record. Returns whether there was a newer
    /// record, which only a wrong copy in the store can bring about; `None` if some key has changed since `asked_at`, so that the
    /// key must be read again.
    pub(super) fn correct(&self, found: &VersionedKey, asked_at: CacheVersion) -> Option<bool> {
        let id = &found.record.id;
        self.note_revision(found.revision);
        if asked_at != self.version() {
            return None;
        }
        let wrong = self.keys.peek(id).is_some_and(|known| known.revision > found.revision);
        if wrong {
            self.keys.remove(id);
        }
        self.put(found.clone(), asked_at);
        Some(wrong)
    }

    /// Replaces a cached key by a changed record. A key that is not cached stays so.
    pub(super) fn update(&self, changed: &VersionedKey) {
        let id = &changed.record.id;
        self.note_revision(changed.revision);
        self.changes.fetch_add(1, Ordering::AcqRel);
        if self.keys.peek(id).is_some_and(|known| known.revision <= changed.revision) {
            self.put(changed.clone(), self.version());
        }
    }

    /// Caches that no key has this id, for [`ABSENT_TIME`].
    pub(super) fn put_absent(&self, id: &str) {
        self.keys.remove(id);
        self.absent.insert(id.to_owned(), Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;
    use rootlight_server::keys::KeyRules;

    use super::*;

    fn key(id: &str, revision: i64, name: &str) -> VersionedKey {
        let (id, name, rules) = (id.to_owned(), name.to_owned(), KeyRules::default());
        let record = KeyRecord { id, number: 1, name, hash: B256::ZERO, created: 0, revoked: None, rules };
        VersionedKey { record, revision }
    }

    fn name(cache: &KeyCache, id: &str) -> Option<String> {
        match cache.get(id)? {
            CachedLookup::Key(record) => Some(record.name.clone()),
            CachedLookup::Absent => Some("absent".to_owned()),
        }
    }

    #[test]
    fn a_newer_record_stays_and_doubt_makes_a_key_be_asked_for() {
        let cache = KeyCache::new(1 << 20);
        assert_eq!(name(&cache, "a"), None);
        cache.put(key("a", 3, "new"), cache.version());
        assert_eq!(cache.put(key("a", 2, "old"), cache.version()).name, "new");
        cache.update(&key("a", 4, "newest"));
        cache.update(&key("b", 4, "not asked for"));
        assert_eq!((name(&cache, "a").unwrap(), name(&cache, "b")), ("newest".to_owned(), None));
        cache.invalidate_all();
        assert_eq!(name(&cache, "a"), None);
        cache.put(key("a", 4, "again"), cache.version());
        assert_eq!(name(&cache, "a").unwrap(), "again");
        let asked = cache.version();
        cache.invalidate("a");
        assert_eq!(cache.put(key("a", 4, "asked before"), asked).name, "asked before");
        assert_eq!(name(&cache, "a"), None);
        cache.put(key("a", 9, "lie"), cache.version());
        let asked = cache.version();
        cache.update(&key("b", 10, "another one"));
        assert_eq!(cache.correct(&key("a", 4, "true"), asked), None);
        assert_eq!(name(&cache, "a").unwrap(), "lie");
        assert_eq!(cache.correct(&key("a", 4, "true"), cache.version()), Some(true));
        assert_eq!(name(&cache, "a").unwrap(), "true");
        assert_eq!(cache.correct(&key("a", 5, "newer"), cache.version()), Some(false));
        cache.put_absent("a");
        assert_eq!(name(&cache, "a").unwrap(), "absent");
        cache.put(key("a", 0, "made"), cache.version());
        assert_eq!(name(&cache, "a").unwrap(), "made");
    }

    #[test]
    fn memory_is_bounded_by_the_size_of_the_keys() {
        let cache = KeyCache::new(1 << 20);
        for number in 0..100_000 {
            cache.put(key(&number.to_string(), 0, &"x".repeat(200)), cache.version());
        }
        let kept = cache.keys.len();
        assert!((500..2_000).contains(&kept), "{kept} keys in a mebibyte");
        for number in 0..300_000 {
            cache.put_absent(&number.to_string());
        }
        assert!(cache.absent.len() <= MAX_ABSENT);
    }
}
