//! Verified headers on disk: what the light client had proven when it stopped, in one redb file.
//!
//! The core says what to keep, in numbered pages, and checks what it gets back
//! ([`rootlight::light::Sync::restore`]). This file only moves pages: each change is one transaction
//! of the database, so that a crash at any point leaves the pages of one moment. A file that is
//! damaged, or about something else, is set aside and a new one begun; nothing of it is used.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use redb::{
    Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, StorageError, TableDefinition,
};
use rootlight::light::{KeptFault, Page, REPROVEN, Sync};
use tracing::{info, warn};

use crate::store::StoreError;

/// File inside `--data-dir`.
pub const FILE: &str = "light.redb";

/// What an unusable file is called from then on; there is one at most.
pub const SET_ASIDE: &str = "light.redb.unusable";

/// Version of the layout and of the pages.
const FORMAT_VERSION: &[u8] = b"1";

/// Facts of the file itself, by the names below.
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// Version of the layout.
const FORMAT: &str = "format";
/// Name and chain id of the network.
const NETWORK: &str = "network";
/// Number (8 bytes, big-endian) and hash of the checkpoint.
const CHECKPOINT: &str = "checkpoint";
/// Pages by number.
const PAGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("pages");

/// The open file.
pub struct HeaderStore {
    database: Database,
    path: PathBuf,
}

/// Why a file cannot be used.
enum Trouble {
    /// It is no fault of the file: in use, no permission, no space.
    Fatal(StoreError),
    /// The file is of no use.
    Useless(String),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Fatal(error)
    }
}

/// What the file must say about itself.
struct Identity([(&'static str, Vec<u8>); 3]);

impl Identity {
    fn of(sync: &Sync) -> Self {
        let (network, checkpoint) = (sync.network(), sync.checkpoint());
        let mut start = checkpoint.number.to_be_bytes().to_vec();
        start.extend(checkpoint.hash);
        let name = format!("{} {}", network.name, network.chain_id);
        Self([(FORMAT, FORMAT_VERSION.to_vec()), (NETWORK, name.into_bytes()), (CHECKPOINT, start)])
    }
}

impl HeaderStore {
    /// Opens the file in a folder, or makes both, and gives what it holds back to the machine. A file
    /// that is of no use is set aside.
    ///
    /// # Errors
    /// The folder cannot be written to, or another process has the file open.
    pub fn open(folder: &Path, sync: &mut Sync) -> Result<Self, StoreError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| StoreError::Folder { folder: folder.to_owned(), source })?;
        let path = folder.join(FILE);
        let existed = path.exists();
        let reason = match Self::attempt(&path, sync) {
            Ok(store) => return Ok(store),
            Err(Trouble::Fatal(error)) => return Err(error),
            Err(Trouble::Useless(reason)) => reason,
        };
        let aside = folder.join(SET_ASIDE);
        if existed {
            warn!(
                "{}: {reason}: not used, kept as {SET_ASIDE}; starting from the checkpoint",
                path.display()
            );
        }
        std::fs::rename(&path, &aside)
            .map_err(|source| StoreError::Folder { folder: folder.to_owned(), source })?;
        Self::attempt(&path, sync).map_err(|trouble| match trouble {
            Trouble::Fatal(error) => error,
            Trouble::Useless(reason) => {
                StoreError::Folder { folder: folder.to_owned(), source: std::io::Error::other(reason) }
            }
        })
    }

    /// One try; after a failure the machine holds nothing of the file.
    fn attempt(path: &Path, sync: &mut Sync) -> Result<Self, Trouble> {
        // The database asserts some of what it reads; a damaged file must not end the program.
        let tried = catch_unwind(AssertUnwindSafe(|| Self::open_and_restore(path, sync)));
        let outcome = tried.unwrap_or_else(|_| Err(Trouble::Useless("damaged".into())));
        if outcome.is_err() {
            // What a panic has left half done goes too.
            let nothing = || KeptFault::Unreadable { index: 0, reason: String::new() };
            let _ = sync.restore(1, &mut |_| Err(nothing()));
        }
        outcome
    }

    fn open_and_restore(path: &Path, sync: &mut Sync) -> Result<Self, Trouble> {
        let database = Database::create(path).map_err(of_opening)?;
        let store = Self { database, path: path.to_owned() };
        let found = store.identify(&Identity::of(sync)).map_err(of_reading)?;
        if let Some(fault) = found {
            return Err(Trouble::Useless(fault));
        }
        store.restore(sync)?;
        Ok(store)
    }

    /// Writes into a new file what it is about, or compares; gives what is different.
    fn identify(&self, identity: &Identity) -> Result<Option<String>, StoreError> {
        let write = self.database.begin_write()?;
        {
            let mut meta = write.open_table(META)?;
            let pages = write.open_table(PAGES)?;
            if meta.first()?.is_none() && pages.first()?.is_none() {
                for (name, value) in &identity.0 {
                    meta.insert(*name, value.as_slice())?;
                }
            }
            for (name, value) in &identity.0 {
                let found = meta.get(*name)?;
                if found.as_ref().map(|found| found.value()) != Some(value.as_slice()) {
                    return Ok(Some(format!("it is about another {name}")));
                }
            }
        }
        write.commit()?;
        Ok(None)
    }

    fn restore(&self, sync: &mut Sync) -> Result<(), Trouble> {
        let started = Instant::now();
        let read = self.database.begin_read().map_err(|error| of_reading(error.into()))?;
        let pages = read.open_table(PAGES).map_err(|error| of_reading(error.into()))?;
        let last = pages.last().map_err(|error| of_reading(error.into()))?;
        let count = last.map_or(0, |(index, _)| index.value().saturating_add(1));
        let restored = sync.restore(count, &mut |index| match pages.get(index) {
            Ok(page) => Ok(page.map(|page| page.value().to_vec())),
            Err(error) => Err(KeptFault::Unreadable { index, reason: error.to_string() }),
        });
        match restored {
            Ok(None) => {}
            Ok(Some(head)) => {
                let millis = started.elapsed().as_millis();
                info!(
                    "headers up to block {head} read back in {millis} ms, the last {REPROVEN} proven again; the rest is proven behind"
                );
            }
            Err(fault) => return Err(Trouble::Useless(fault.to_string())),
        }
        Ok(())
    }

    /// The page of a number, as it was written.
    ///
    /// # Errors
    /// [`KeptFault::Unreadable`].
    pub fn page(&self, index: u64) -> Result<Option<Vec<u8>>, KeptFault> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let pages = self.database.begin_read()?.open_table(PAGES)?;
            Ok(pages.get(index)?.map(|page| page.value().to_vec()))
        };
        read().map_err(|error| KeptFault::Unreadable { index, reason: error.to_string() })
    }

    /// Writes pages and forgets those above the last, all or nothing.
    ///
    /// # Errors
    /// The database's own. A file found damaged is set aside, so that the next run begins a new one.
    pub fn write(&self, pages: &[Page]) -> Result<(), StoreError> {
        if pages.is_empty() {
            return Ok(());
        }
        let damaged = || redb::Error::Corrupted("an assertion of the database failed".into());
        let tried = catch_unwind(AssertUnwindSafe(|| self.replace(pages)));
        let outcome = tried.unwrap_or_else(|_| Err(StoreError::Database(Box::new(damaged()))));
        outcome.map_err(|error| match of_reading(error) {
            Trouble::Fatal(error) => error,
            Trouble::Useless(reason) => {
                // Where it cannot be renamed, the next run finds the damage.
                let _ = std::fs::rename(&self.path, self.path.with_file_name(SET_ASIDE));
                StoreError::Database(Box::new(redb::Error::Corrupted(reason)))
            }
        })
    }

    fn replace(&self, pages: &[Page]) -> Result<(), StoreError> {
        let write = self.database.begin_write()?;
        {
            let mut table = write.open_table(PAGES)?;
            for page in pages {
                table.insert(page.index, page.bytes.as_slice())?;
            }
            let above = pages.last().map_or(0, |last| last.index.saturating_add(1));
            table.retain_in(above.., |_, _| false)?;
        }
        Ok(write.commit()?)
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Opening: which failures say something about the file.
fn of_opening(error: DatabaseError) -> Trouble {
    match error {
        DatabaseError::DatabaseAlreadyOpen => Trouble::Fatal(error.into()),
        DatabaseError::Storage(StorageError::Io(ref io)) if !says_damage(io.kind()) => {
            Trouble::Fatal(error.into())
        }
        other => Trouble::Useless(other.to_string()),
    }
}

/// Reading: likewise.
fn of_reading(error: StoreError) -> Trouble {
    match &error {
        StoreError::Database(cause) => match cause.as_ref() {
            redb::Error::Io(io) if !says_damage(io.kind()) => Trouble::Fatal(error),
            other => Trouble::Useless(other.to_string()),
        },
        _ => Trouble::Fatal(error),
    }
}

/// Whether a failure of input or output tells of wrong contents rather than of the machine.
fn says_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput)
}

#[cfg(test)]
#[path = "kept_test.rs"]
mod tests;
