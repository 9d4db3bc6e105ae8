//! The API keys of one process: a database, and all keys with their counters in memory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use futures::future::BoxFuture;
use rootlight_limits::unix_time::unix_time;
use tokio::sync::watch;

use super::error::KeyError;
use super::meter::{Charge, Exceeded, KeyMeter, KeyUsage, LimitStatus, MeterTime};
use super::record::KeyRecord;
use super::rules::{KeyChange, KeyRules};
use super::secret::{KeyText, is_id};
use super::store::KeyFile;
use super::traits::{ChangeNotifier, FilterOwners, KeyLookup, Quotas, Topic, Unavailable};

/// Most keys of a database. All are in memory: each takes at most some 300 KiB, and usually below 1 KiB.
pub const MAX_KEYS: usize = 10_000;

/// A key and its counters in memory.
struct KeyEntry {
    record: Arc<KeyRecord>,
    meter: Arc<Mutex<KeyMeter>>,
}

impl KeyEntry {
    fn meter(&self) -> MutexGuard<'_, KeyMeter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys of one process.
pub struct KeyDatabase {
    path: PathBuf,
    store: KeyFile,
    /// The keys by id.
    keys: RwLock<HashMap<String, KeyEntry>>,
    /// Locked during a change: changes are made one at a time, in the database first and then in memory.
    changing: Mutex<()>,
    /// The number of changes so far.
    changed: watch::Sender<u64>,
    /// The zero of the clock that the limits per second use.
    start: Instant,
}

impl KeyDatabase {
    /// Opens a database of keys, or creates it.
    ///
    /// # Errors
    /// [`KeyError::InUse`] if another process has it open; the file cannot be used.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        let store = KeyFile::open(path)?;
        let entry = |(record, usage): (KeyRecord, KeyUsage)| {
            let meter = Arc::new(Mutex::new(KeyMeter::new(usage)));
            (record.id.clone(), KeyEntry { record: Arc::new(record), meter })
        };
        let keys = RwLock::new(store.load()?.into_iter().map(entry).collect());
        let (changing, changed) = (Mutex::default(), watch::Sender::new(0));
        Ok(Self { path: path.to_owned(), store, keys, changing, changed, start: Instant::now() })
    }

    /// The file of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn keys(&self) -> RwLockReadGuard<'_, HashMap<String, KeyEntry>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn keys_mut(&self) -> RwLockWriteGuard<'_, HashMap<String, KeyEntry>> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> MeterTime {
        let nanos = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        MeterTime { nanos, seconds: unix_time() }
    }

    /// Makes a key. Returns its text, which is stored nowhere, and its record. If the database is full, the key that was revoked
    /// first is removed.
    ///
    /// # Errors
    /// The limits cannot be used, there are [`MAX_KEYS`] keys that are not revoked, or the database cannot be written.
    pub fn create(&self, change: &KeyChange) -> Result<(KeyText, Arc<KeyRecord>), KeyError> {
        let (mut name, mut rules) = (String::new(), KeyRules::default());
        change.apply(&mut name, &mut rules)?;
        let _changing = self.changing();
        let (number, removed) = self.next_number()?;
        let key = loop {
            let key = KeyText::random().map_err(KeyError::Random)?;
            if !self.keys().contains_key(key.id()) {
                break key;
            }
        };
        let (id, hash) = (key.id().to_owned(), key.hash());
        let record = KeyRecord { id, number, name, hash, created: unix_time(), revoked: None, rules };
        self.store.put(&record, removed.as_deref())?;
        let record = Arc::new(record);
        let entry = KeyEntry { record: record.clone(), meter: Arc::default() };
        let mut keys = self.keys_mut();
        if let Some(id) = &removed {
            keys.remove(id);
        }
        keys.insert(record.id.clone(), entry);
        drop(keys);
        self.publish(Topic::Keys);
        Ok((key, record))
    }

    /// The number of the next key; and if there are [`MAX_KEYS`] keys, the id of the one that was revoked first, to be removed.
    fn next_number(&self) -> Result<(u32, Option<String>), KeyError> {
        let keys = self.keys();
        let records = || keys.values().map(|entry| &entry.record);
        let number = records().map(|record| record.number).max().map_or(0, |last| last.saturating_add(1));
        if keys.len() < MAX_KEYS {
            return Ok((number, None));
        }
        let revoked = records().filter_map(|record| Some((record.revoked?, &record.id)));
        let (_, id) = revoked.min().ok_or(KeyError::TooMany(MAX_KEYS))?;
        Ok((number, Some(id.clone())))
    }

    /// Every key with its usage, in the order in which the keys were made.
    #[must_use]
    pub fn list(&self) -> Vec<(Arc<KeyRecord>, KeyUsage)> {
        let keys = self.keys();
        let listed = |entry: &KeyEntry| (entry.record.clone(), entry.meter().usage().clone());
        let mut all: Vec<_> = keys.values().map(listed).collect();
        all.sort_by_key(|(record, _)| record.number);
        all
    }

    /// Revokes a key, for good. Its open WebSockets are closed.
    ///
    /// # Errors
    /// No key has this id, or the database cannot be written.
    pub fn revoke(&self, id: &str) -> Result<(Arc<KeyRecord>, KeyUsage), KeyError> {
        self.edit(id, |record| {
            record.revoked.get_or_insert_with(unix_time);
            Ok(())
        })
    }

    /// Changes the name or limits of a key.
    ///
    /// # Errors
    /// No key has this id, it is revoked, a value cannot be used, or the database cannot be written.
    pub fn limit(&self, id: &str, change: &KeyChange) -> Result<(Arc<KeyRecord>, KeyUsage), KeyError> {
        self.edit(id, |record| match record.revoked {
            Some(_) => Err(KeyError::Revoked(record.id.clone())),
            None => change.apply(&mut record.name, &mut record.rules),
        })
    }

    /// Changes the record of a key, in the database and in memory. Returns the new record and the usage.
    fn edit(
        &self,
        id: &str,
        edit: impl FnOnce(&mut KeyRecord) -> Result<(), KeyError>,
    ) -> Result<(Arc<KeyRecord>, KeyUsage), KeyError> {
        // A malformed id may be a whole key with its secret, so the error does not repeat it.
        let unknown = || KeyError::Unknown(if is_id(id) { id.to_owned() } else { "ID".to_owned() });
        let _changing = self.changing();
        let old = self.keys().get(id).map(|entry| entry.record.clone()).ok_or_else(unknown)?;
        let mut record = KeyRecord::clone(&old);
        edit(&mut record)?;
        if record != *old {
            self.store.put(&record, None)?;
        }
        let record = Arc::new(record);
        let mut keys = self.keys_mut();
        let entry = keys.get_mut(id).ok_or_else(unknown)?;
        let rate = |rules: &KeyRules| (rules.per_second, rules.burst());
        if rate(&record.rules) != rate(&entry.record.rules) {
            entry.meter().forget_rate();
        }
        entry.record = record.clone();
        let usage = entry.meter().usage().clone();
        drop(keys);
        self.publish(Topic::Keys);
        Ok((record, usage))
    }

    /// Writes the usage of the keys that were used since the last call, in one transaction.
    ///
    /// # Errors
    /// The database cannot be written. The counts of each key stay in memory, and are written after the key is used again.
    pub fn flush(&self) -> Result<(), KeyError> {
        let used: Vec<(String, KeyUsage)> = {
            let keys = self.keys();
            let changed =
                |(id, entry): (&String, &KeyEntry)| Some((id.clone(), entry.meter().take_changed()?));
            keys.iter().filter_map(changed).collect()
        };
        if used.is_empty() {
            return Ok(());
        }
        self.store.put_usage(&used)
    }
}

impl KeyLookup for KeyDatabase {
    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Arc<KeyRecord>>, Unavailable>> {
        let found = self.keys().get(id).map(|entry| entry.record.clone());
        Box::pin(std::future::ready(Ok(found)))
    }
}

impl Quotas for KeyDatabase {
    fn take<'a>(
        &'a self,
        key: &'a KeyRecord,
        charge: &'a Charge,
    ) -> BoxFuture<'a, Result<Option<LimitStatus>, Exceeded>> {
        let meter = self.keys().get(&key.id).map(|entry| entry.meter.clone());
        // The time is read under the lock, so that it never goes back for a meter.
        // A key without a meter was removed after it was found. Its last message has no limits.
        let taken = meter.map_or(Ok(None), |meter| {
            let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
            meter.take(&key.rules, charge, self.now())
        });
        Box::pin(std::future::ready(taken))
    }

    fn usage(&self) -> Vec<(String, KeyUsage)> {
        self.keys().iter().map(|(id, entry)| (id.clone(), entry.meter().usage().clone())).collect()
    }
}

impl FilterOwners for KeyDatabase {
    fn owner(&self, key: &KeyRecord) -> u32 {
        key.number
    }
}

impl ChangeNotifier for KeyDatabase {
    fn publish(&self, topic: Topic) {
        match topic {
            Topic::Keys => self.changed.send_modify(|count| *count = count.wrapping_add(1)),
        }
    }

    fn listen(&self, topic: Topic) -> watch::Receiver<u64> {
        match topic {
            Topic::Keys => self.changed.subscribe(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(change: KeyChange) -> KeyChange {
        KeyChange { name: Some("shop".into()), ..change }
    }

    #[tokio::test]
    async fn keys_and_their_usage_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.redb");
        let database = KeyDatabase::open(&path).unwrap();
        let (key, record) =
            database.create(&limits(KeyChange { per_day: Some(5), ..KeyChange::default() })).unwrap();
        let (_, other) = database.create(&KeyChange::default()).unwrap();
        database.revoke(&other.id).unwrap();
        let charge = Charge { requests: 3, weight: 7, classes: vec![("eth", 2), ("net", 1)] };
        database.take(&record, &charge).await.unwrap();
        database.flush().unwrap();
        assert!(matches!(KeyDatabase::open(&path), Err(KeyError::InUse)));
        drop(database);
        let database = KeyDatabase::open(&path).unwrap();
        let listed = database.list();
        assert_eq!((&*listed[0].0, listed[0].1.requests, listed[0].1.weight), (&*record, 3, 7));
        assert!(listed[1].0.revoked.is_some());
        let found = database.find(key.id()).await.unwrap().unwrap();
        assert!(key.has(Some(&found.hash)));
        // The requests of the day count on.
        assert!(database.take(&found, &charge).await.is_err());
    }

    #[test]
    fn the_file_holds_no_secret_and_is_readable_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.redb");
        let database = KeyDatabase::open(&path).unwrap();
        let (key, _) = database.create(&KeyChange::default()).unwrap();
        drop(database);
        let bytes = std::fs::read(&path).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        let text = key.reveal();
        assert!(holds(key.id()) && !holds(&text) && !holds(&text[9..]));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn commands_on_unknown_or_revoked_keys_are_refused_without_repeating_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let database = KeyDatabase::open(&folder.path().join("keys.redb")).unwrap();
        let (key, record) = database.create(&KeyChange::default()).unwrap();
        let text = database.revoke(&key.reveal()).unwrap_err().to_string();
        assert!(!text.contains(&key.reveal()[9..]), "{text}");
        assert!(matches!(database.limit("aaaaaaaa", &KeyChange::default()), Err(KeyError::Unknown(_))));
        database.revoke(&record.id).unwrap();
        assert!(matches!(database.limit(&record.id, &KeyChange::default()), Err(KeyError::Revoked(_))));
        let again = database.revoke(&record.id).unwrap().0;
        assert!(again.revoked.is_some(), "revoking twice changes nothing");
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain.redb");
        let other = redb::Database::create(&path).unwrap();
        let write = other.begin_write().unwrap();
        write.open_table(redb::TableDefinition::<u64, u64>::new("blocks")).unwrap();
        write.commit().unwrap();
        drop(other);
        set_mode(&path, 0o600);
        assert!(matches!(KeyDatabase::open(&path), Err(KeyError::Format(_))));
        let text = folder.path().join("text");
        std::fs::write(&text, "not a database").unwrap();
        set_mode(&text, 0o600);
        assert!(KeyDatabase::open(&text).is_err());
    }

    fn set_mode(path: &Path, mode: u32) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_database_that_others_can_use_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.redb");
        drop(KeyDatabase::open(&path).unwrap());
        for mode in [0o666, 0o644, 0o602, 0o660] {
            set_mode(&path, mode);
            let refused = KeyDatabase::open(&path).map(drop).expect_err("refused").to_string();
            assert!(refused.contains("chmod 600"), "{mode:o}: {refused}");
        }
        set_mode(&path, 0o600);
        assert!(KeyDatabase::open(&path).is_ok());
    }
}
