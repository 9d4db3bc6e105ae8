//! The database of keys: one redb file, of mode 0600.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use redb::backends::FileBackend;
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::error::KeyError;
use super::meter::Usage;
use super::record::Record;
use crate::files;

/// Format of the file.
const META: TableDefinition<'_, &str, &str> = TableDefinition::new("keys-meta");
/// Keys by id, as JSON.
const KEYS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("keys");
/// What keys have been used for, by id, as JSON.
const USAGE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("keys-usage");

const FORMAT: &str = "format";
const VERSION: &str = "1";

/// The open database.
pub(super) struct Store(Database);

impl Store {
    /// Opens a database, or creates it.
    pub(super) fn open(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        let store =
            Self(redb::Builder::new().create_with_backend(FileBackend::new(file(path).map_err(failed)?)?)?);
        store.check()?;
        Ok(store)
    }

    fn check(&self) -> Result<(), KeyError> {
        let write = self.0.begin_write()?;
        {
            let mut meta = write.open_table(META)?;
            let version = meta.get(FORMAT)?.map(|version| version.value().to_owned());
            match version.as_deref() {
                Some(VERSION) => {}
                Some(other) => return Err(KeyError::Format(format!("format {other:?}"))),
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

    /// All keys with their usage.
    pub(super) fn load(&self) -> Result<Vec<(Record, Usage)>, KeyError> {
        let read = self.0.begin_read()?;
        let (keys, usage) = (read.open_table(KEYS)?, read.open_table(USAGE)?);
        let damaged = |error: serde_json::Error| KeyError::Format(error.to_string());
        let mut all = Vec::new();
        for entry in keys.iter()? {
            let (id, record) = entry?;
            let record = serde_json::from_slice(record.value()).map_err(damaged)?;
            let used = match usage.get(id.value())? {
                Some(used) => serde_json::from_slice(used.value()).map_err(damaged)?,
                None => Usage::default(),
            };
            all.push((record, used));
        }
        Ok(all)
    }

    /// Writes a key, and removes another one.
    pub(super) fn put(&self, record: &Record, removed: Option<&str>) -> Result<(), KeyError> {
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
    pub(super) fn put_usage(&self, used: &[(String, Usage)]) -> Result<(), KeyError> {
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

/// Opens the file, which is made for its owner only: whoever can write it has every right, and it has the names of
/// customers.
fn file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    files::check_secret(&file)?;
    Ok(file)
}
