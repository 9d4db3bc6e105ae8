//! The keys that a front end remembers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rootlight_server::keys::KeyRecord;

use super::rows::VersionedKey;

/// Most ids that are remembered not to exist.
const UNKNOWN_IDS: usize = 100_000;

/// How long an id is remembered not to exist.
const UNKNOWN_FOR: Duration = Duration::from_secs(5);

/// Number of keys that the memory is laid out for.
const EXPECTED_KEYS: usize = 100_000;

/// The cached state of an id.
#[derive(Debug, Clone)]
pub(super) enum CachedLookup {
    Key(Arc<KeyRecord>),
    /// There is none.
    Absent,
}

#[derive(Clone)]
struct CachedKey {
    record: Arc<KeyRecord>,
    revision: i64,
    generation: u64,
}

/// Bytes that a key takes besides its texts: the record, its place in the cache, and what the allocator adds to each of
/// its parts. Measured with a million keys (`native/cli/tests/cluster/million.rs`).
const OVERHEAD: usize = 560;

#[derive(Clone)]
struct KeyWeight;

impl Weighter<String, CachedKey> for KeyWeight {
    fn weight(&self, id: &String, entry: &CachedKey) -> u64 {
        let rules = &entry.record.rules;
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
    unknown: Cache<String, Instant>,
    /// Keys that were refused, as `unknown` has ids that do not exist.
    refused: Cache<String, Instant>,
    /// Keys of an earlier generation must be asked for again.
    generation: AtomicU64,
    /// Rises with every change that is learnt of.
    changes: AtomicU64,
    /// The highest revision of a key that the database had.
    newest: AtomicI64,
}

/// The moment at which a key was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    generation: u64,
    changes: u64,
}

impl KeyCache {
    /// A memory of at most about so many bytes of keys.
    pub(super) fn new(bytes: u64) -> Self {
        let keys = Cache::with_weighter(EXPECTED_KEYS, bytes, KeyWeight);
        Self {
            keys,
            unknown: Cache::new(UNKNOWN_IDS),
            refused: Cache::new(UNKNOWN_IDS),
            generation: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            newest: AtomicI64::new(0),
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<CachedLookup> {
        if let Some(entry) = self.keys.get(id) {
            return (entry.generation == self.mark().generation).then_some(CachedLookup::Key(entry.record));
        }
        let since = self.unknown.get(id)?;
        if since.elapsed() < UNKNOWN_FOR {
            return Some(CachedLookup::Absent);
        }
        self.unknown.remove(id);
        None
    }

    /// Whether a key was refused a moment ago, for as long as an id is remembered not to exist.
    pub(super) fn was_refused(&self, id: &str) -> bool {
        self.refused.get(id).is_some_and(|since| since.elapsed() < UNKNOWN_FOR)
    }

    pub(super) fn note_refused(&self, id: &str) {
        self.refused.insert(id.to_owned(), Instant::now());
    }

    /// The present moment, to be taken before a key is asked for.
    pub(super) fn mark(&self) -> Mark {
        let load = |number: &AtomicU64| number.load(Ordering::Acquire);
        Mark { generation: load(&self.generation), changes: load(&self.changes) }
    }

    /// The highest revision of a key that the database had, as far as it was asked for keys.
    pub(super) fn newest(&self) -> i64 {
        self.newest.load(Ordering::Acquire)
    }

    /// Notes that the database has a key of this revision.
    pub(super) fn seen(&self, revision: i64) {
        self.newest.fetch_max(revision, Ordering::AcqRel);
    }

    /// Notes that the database has no higher revision than this any more, and makes all keys be asked for again.
    pub(super) fn go_back(&self, revision: i64) {
        self.newest.store(revision, Ordering::Release);
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

    /// Remembers a key that was asked for at a moment, unless some key has changed since. Returns what is known then: a
    /// newer record stays.
    pub(super) fn put(&self, found: VersionedKey, asked: Mark) -> Arc<KeyRecord> {
        let VersionedKey { record, revision } = found;
        if asked != self.mark() {
            return Arc::new(record);
        }
        let (id, generation) = (record.id.clone(), asked.generation);
        self.unknown.remove(&id);
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

    /// Remembers a key as the database has it, as [`Self::put`]. Returns whether what was remembered claimed to be newer,
    /// which only a store that is wrong can bring about; `None` if some key has changed since, so that it must be read again.
    pub(super) fn correct(&self, found: &VersionedKey, asked: Mark) -> Option<bool> {
        let id = &found.record.id;
        self.seen(found.revision);
        if asked != self.mark() {
            return None;
        }
        let wrong = self.keys.peek(id).is_some_and(|known| known.revision > found.revision);
        if wrong {
            self.keys.remove(id);
        }
        self.put(found.clone(), asked);
        Some(wrong)
    }

    /// Replaces a key that is remembered by a newer record.
    pub(super) fn renew(&self, changed: &VersionedKey) {
        let id = &changed.record.id;
        self.seen(changed.revision);
        self.changes.fetch_add(1, Ordering::AcqRel);
        if self.keys.peek(id).is_some_and(|known| known.revision <= changed.revision) {
            self.put(changed.clone(), self.mark());
        }
    }

    pub(super) fn put_absent(&self, id: &str) {
        self.keys.remove(id);
        self.unknown.insert(id.to_owned(), Instant::now());
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
        cache.put(key("a", 3, "new"), cache.mark());
        assert_eq!(cache.put(key("a", 2, "old"), cache.mark()).name, "new");
        cache.renew(&key("a", 4, "newest"));
        cache.renew(&key("b", 4, "not asked for"));
        assert_eq!((name(&cache, "a").unwrap(), name(&cache, "b")), ("newest".to_owned(), None));
        cache.invalidate_all();
        assert_eq!(name(&cache, "a"), None);
        cache.put(key("a", 4, "again"), cache.mark());
        assert_eq!(name(&cache, "a").unwrap(), "again");
        let asked = cache.mark();
        cache.invalidate("a");
        assert_eq!(cache.put(key("a", 4, "asked before"), asked).name, "asked before");
        assert_eq!(name(&cache, "a"), None);
        cache.put(key("a", 9, "lie"), cache.mark());
        let asked = cache.mark();
        cache.renew(&key("b", 10, "another one"));
        assert_eq!(cache.correct(&key("a", 4, "true"), asked), None);
        assert_eq!(name(&cache, "a").unwrap(), "lie");
        assert_eq!(cache.correct(&key("a", 4, "true"), cache.mark()), Some(true));
        assert_eq!(name(&cache, "a").unwrap(), "true");
        assert_eq!(cache.correct(&key("a", 5, "newer"), cache.mark()), Some(false));
        cache.put_absent("a");
        assert_eq!(name(&cache, "a").unwrap(), "absent");
        cache.put(key("a", 0, "made"), cache.mark());
        assert_eq!(name(&cache, "a").unwrap(), "made");
    }

    #[test]
    fn memory_is_bounded_by_the_size_of_the_keys() {
        let cache = KeyCache::new(1 << 20);
        for number in 0..100_000 {
            cache.put(key(&number.to_string(), 0, &"x".repeat(200)), cache.mark());
        }
        let kept = cache.keys.len();
        assert!((500..2_000).contains(&kept), "{kept} keys in a mebibyte");
        for number in 0..300_000 {
            cache.put_absent(&number.to_string());
        }
        assert!(cache.unknown.len() <= UNKNOWN_IDS);
    }
}
