//! The database of API keys: one redb file, which is made with mode 0600. `key_database.rs` has the keys in memory.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use rootlight_limits::files;
use tracing::warn;

use super::error::KeyError;
use super::meter::KeyUsage;
use super::record::KeyRecord;
use crate::database_file;

/// The format of the file, under the name [`FORMAT`].
const META: TableDefinition<'_, &str, &str> = TableDefinition::new("keys-meta");
/// Keys by id, as JSON.
const KEYS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("keys");
/// The usage of keys by id, as JSON.
const USAGE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("keys-usage");

/// The name of the format in [`META`], and the only format that this version reads and writes.
const FORMAT: &str = "format";
const VERSION: &str = "1";

/// The open database file.
pub(super) struct KeyFile(Database);

impl KeyFile {
    /// Opens the database at a path, or makes it.
    pub(super) fn open(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        let open = || -> Result<Database, KeyError> {
            let backend = FileBackend::new(file(path).map_err(failed)?)?;
            Ok(redb::Builder::new().create_with_backend(backend)?)
        };
        let store = Self(database_file::whole(path, open, |error| matches!(error, KeyError::InUse))?);
        store.check()?;
        Ok(store)
    }

    /// Checks that the file is a database of keys in the present format, and makes the tables of a new file.
    fn check(&self) -> Result<(), KeyError> {
        let write = self.0.begin_write()?;
        {
            let mut meta = write.open_table(META)?;
            let version = meta.get(FORMAT)?.map(|version| version.value().to_owned());
            match version.as_deref() {
                Some(VERSION) => {}
                Some(other) => return Err(KeyError::Format(format!("format {other:?}"))),
                // `META` is one of the tables.
                None if write.list_tables()?.count() > 1 => {
                    return Err(KeyError::Format("it has other tables".into()));
                }
                None => _ = meta.insert(FORMAT, VERSION)?,
            }
            write.open_table(KEYS)?;
            write.open_table(USAGE)?;
        }
        Ok(write.commit()?)
    }

    /// All keys with their usage. A damaged row of a key is left out, and a damaged row of usage counts as no usage, because the
    /// other keys do not depend on them. The log names a row by its number, since a damaged row may have no id.
    pub(super) fn load(&self) -> Result<Vec<(KeyRecord, KeyUsage)>, KeyError> {
        let read = self.0.begin_read()?;
        let (keys, usage) = (read.open_table(KEYS)?, read.open_table(USAGE)?);
        let mut all = Vec::new();
        for (number, entry) in (1_u64..).zip(keys.iter()?) {
            let (id, record) = entry?;
            let record = serde_json::from_slice(record.value()).ok();
            let Some(record) = record.filter(|record: &KeyRecord| record.id == id.value()) else {
                warn!("row {number} of the API keys is damaged: its key is refused, the others are served");
                continue;
            };
            let used = usage.get(id.value())?.map(|used| serde_json::from_slice(used.value()));
            let used = used.transpose().unwrap_or_else(|_| {
                warn!("the usage of the API key in row {number} is damaged, and begins anew");
                None
            });
            all.push((record, used.unwrap_or_default()));
        }
        Ok(all)
    }

    /// Writes a key, and in the same transaction removes the key with the id `removed`, if there is one.
    pub(super) fn put(&self, record: &KeyRecord, removed: Option<&str>) -> Result<(), KeyError> {
        let write = self.0.begin_write()?;
        {
            let mut keys = write.open_table(KEYS)?;
            keys.insert(record.id.as_str(), json(record)?.as_slice())?;
            if let Some(id) = removed {
                keys.remove(id)?;
                write.open_table(USAGE)?.remove(id)?;
            }
        }
        Ok(write.commit()?)
    }

    /// Writes the usage of several keys in one transaction.
    pub(super) fn put_usage(&self, used: &[(String, KeyUsage)]) -> Result<(), KeyError> {
        let write = self.0.begin_write()?;
        {
            let mut table = write.open_table(USAGE)?;
            for (id, usage) in used {
                table.insert(id.as_str(), json(usage)?.as_slice())?;
            }
        }
        Ok(write.commit()?)
    }
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, KeyError> {
    serde_json::to_vec(value).map_err(|error| KeyError::Format(error.to_string()))
}

/// Opens the file, which is made for its owner only: a user who can write the file can give any right to a key, and the file has
/// the names of customers.
fn file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    files::check_secret(&file)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;

    use super::*;
    use crate::keys::KeyRules;

    fn record(id: &str, number: u32) -> KeyRecord {
        let (name, rules) = (String::new(), KeyRules::default());
        KeyRecord { id: id.into(), number, name, hash: B256::ZERO, created: 1, revoked: None, rules }
    }

    #[test]
    fn a_damaged_row_loses_no_other_key() {
        let folder = tempfile::tempdir().unwrap();
        let whole = json(&record("b", 1)).unwrap();
        let text = |text: &str| text.as_bytes().to_vec();
        for row in [
            vec![],
            vec![0; 100],
            text("null"),
            text("{\"id\":\"b\"}"),
            whole[..whole.len() - 1].to_vec(),
            String::from_utf8(whole.clone()).unwrap().replace("\"number\":1", "\"number\":-1").into_bytes(),
            // The record of another key.
            json(&record("a", 1)).unwrap(),
        ] {
            let path = folder.path().join("keys");
            let store = KeyFile::open(&path).unwrap();
            let used = KeyUsage::default();
            for (number, id) in (0..).zip(["a", "b", "c"]) {
                store.put(&record(id, number), None).unwrap();
                store.put_usage(&[(id.to_owned(), used.clone())]).unwrap();
            }
            let ids = |store: &KeyFile| -> Vec<String> {
                store.load().unwrap().into_iter().map(|(record, _)| record.id).collect()
            };
            assert_eq!(ids(&store), ["a", "b", "c"]);
            for (table, left) in [(USAGE, &["a", "b", "c"][..]), (KEYS, &["a", "c"])] {
                let write = store.0.begin_write().unwrap();
                write.open_table(table).unwrap().insert("b", row.as_slice()).unwrap();
                write.commit().unwrap();
                assert_eq!(ids(&store), left, "{row:?}");
            }
            drop(store);
            std::fs::remove_file(path).unwrap();
        }
    }
}
