//! Verified headers on disk: the proven chain of the light client, in one redb file.
//!
//! The core exports the headers as numbered pages, and checks the pages when it reads them again
//! ([`rootlight::light::HeaderSync::restore`]). This file only stores pages. Each change is one database
//! transaction, so a crash at any point leaves a consistent set of pages. A file that is damaged or belongs
//! to another network or checkpoint is set aside and never used; a new one replaces it.

use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use redb::backends::InMemoryBackend;
use redb::{
    Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, StorageBackend as _, StorageError,
    TableDefinition,
};
use rootlight::light::{
    HeaderPage, HeaderStoreFault, HeaderSync, MAX_PAGE_BYTES, REPROVEN, WINDOW_PAGES, WindowRecord,
};
use rootlight_limits::files;
use rootlight_limits::unix_time::unix_time;
use rootlight_server::database_file;
use tracing::{info, warn};

use crate::store::ChainStoreError;

/// Name of the file inside `--data-dir`.
pub const FILE: &str = "light.redb";

/// New name of an unusable file; it replaces an earlier file of this name.
pub const SET_ASIDE: &str = "light.redb.unusable";

/// Name of the file of a start by window. Headers above a trusted checkpoint stay in their own file.
pub const WINDOW_FILE: &str = "window.redb";

/// New name of an unusable file of a start by window.
const WINDOW_SET_ASIDE: &str = "window.redb.unusable";

/// Longest file that is read as a copy, in bytes: several times what the newest [`WINDOW_PAGES`] (120 pages of 64
/// headers) take. Bounds memory.
const MAX_COPY: u64 = 64 * 1024 * 1024;

/// Version of the layout and of the pages.
const FORMAT_VERSION: &[u8] = b"1";

/// Properties of the file itself, under the names below.
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// Version of the layout.
const FORMAT: &str = "format";
/// Name and chain id of the network.
const NETWORK: &str = "network";
/// Number (8 bytes, big-endian) and hash of the checkpoint.
const CHECKPOINT: &str = "checkpoint";
/// For a start by window, in place of a checkpoint: its encoded [`WindowRecord`].
const WINDOW: &str = "window";
/// Pages by number.
const PAGES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("pages");

/// The store of verified headers, which has its file open.
pub struct HeaderStore {
    database: Database,
    path: PathBuf,
    /// Whether the database is a copy in memory of a file that another program writes.
    is_copy: bool,
}

/// Why opening a file failed.
enum OpenFailure {
    /// The file is in use, or permission or space is missing. Its contents may be good, so it is not set aside.
    Fatal(ChainStoreError),
    /// The contents of the file cannot be used, so it is set aside.
    Useless(String),
}

impl From<ChainStoreError> for OpenFailure {
    fn from(error: ChainStoreError) -> Self {
        Self::Fatal(error)
    }
}

/// The properties that a usable file must have.
struct StoreIdentity(Vec<(&'static str, Vec<u8>)>);

impl StoreIdentity {
    /// The properties for the network and the start of `sync`. A start by window has no checkpoint.
    fn of(sync: &HeaderSync) -> Self {
        let (network, checkpoint) = (sync.network(), sync.checkpoint());
        let name = format!("{} {}", network.name, network.chain_id);
        let mut properties = vec![(FORMAT, FORMAT_VERSION.to_vec()), (NETWORK, name.into_bytes())];
        if !sync.is_by_window() {
            let mut start = checkpoint.number.to_be_bytes().to_vec();
            start.extend(checkpoint.hash);
            properties.push((CHECKPOINT, start));
        }
        Self(properties)
    }
}

impl HeaderStore {
    /// Opens the file in a folder, and restores its headers into `sync`. Creates the folder and the file if
    /// needed. An unusable file is set aside.
    ///
    /// # Errors
    /// The folder cannot be written to, or another process has the file open.
    pub fn open(folder: &Path, sync: &mut HeaderSync) -> Result<Self, ChainStoreError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| ChainStoreError::Folder { folder: folder.to_owned(), source })?;
        let (file, set_aside) =
            if sync.is_by_window() { (WINDOW_FILE, WINDOW_SET_ASIDE) } else { (FILE, SET_ASIDE) };
        let path = folder.join(file);
        let existed = path.exists();
        let reason = match Self::attempt(|| Self::open_file(&path), sync) {
            Ok(store) => return Ok(store),
            Err(OpenFailure::Fatal(error)) => return Err(error.at(&path)),
            Err(OpenFailure::Useless(reason)) => reason,
        };
        let aside = folder.join(set_aside);
        if existed {
            warn!("{}: {reason}: not used, kept as {set_aside}; starting anew", path.display());
        }
        std::fs::rename(&path, &aside)
            .map_err(|source| ChainStoreError::Folder { folder: folder.to_owned(), source })?;
        Self::attempt(|| Self::open_file(&path), sync).map_err(|failure| match failure {
            OpenFailure::Fatal(error) => error.at(&path),
            OpenFailure::Useless(reason) => {
                ChainStoreError::Folder { folder: folder.to_owned(), source: std::io::Error::other(reason) }
            }
        })
    }

    /// Restores the headers of a start by window from a copy of the file, which another program has open. Nothing is
    /// written. `None` if there is no such file, or its contents cannot be used: the other program may have written while
    /// they were read.
    pub(super) fn open_copy(folder: &Path, sync: &mut HeaderSync) -> Option<Self> {
        let path = folder.join(WINDOW_FILE);
        let bytes = sync.is_by_window().then(|| files::read(&path, MAX_COPY).ok()).flatten()?;
        let copied = || -> Result<Database, DatabaseError> {
            let memory = InMemoryBackend::new();
            memory.set_len(bytes.len() as u64)?;
            memory.write(0, &bytes)?;
            Database::builder().create_with_backend(memory)
        };
        let open = || Ok(Self { database: copied()?, path: path.clone(), is_copy: true });
        Self::attempt(open, sync).ok()
    }

    fn open_file(path: &Path) -> Result<Self, DatabaseError> {
        Ok(Self { database: database_file::create(path)?, path: path.to_owned(), is_copy: false })
    }

    /// Tries to open and restore once; after a failure, `sync` holds nothing from the file.
    fn attempt(
        open: impl FnOnce() -> Result<Self, DatabaseError>,
        sync: &mut HeaderSync,
    ) -> Result<Self, OpenFailure> {
        // redb panics at some kinds of damage. A damaged file must not end the program.
        let tried = catch_unwind(AssertUnwindSafe(|| Self::open_and_restore(open, sync)));
        let outcome = tried.unwrap_or_else(|_| Err(OpenFailure::Useless("damaged".into())));
        if outcome.is_err() {
            // A panic may have left headers half restored; this removes them.
            let nothing = || HeaderStoreFault::Unreadable { index: 0, reason: String::new() };
            let _ = sync.restore(1, &mut |_| Err(nothing()));
        }
        outcome
    }

    /// Opens the database, compares its properties and restores its headers into `sync`.
    fn open_and_restore(
        open: impl FnOnce() -> Result<Self, DatabaseError>,
        sync: &mut HeaderSync,
    ) -> Result<Self, OpenFailure> {
        let store = open().map_err(of_opening)?;
        let found = store.identify(&StoreIdentity::of(sync)).map_err(of_reading)?;
        if let Some(fault) = found {
            return Err(OpenFailure::Useless(fault));
        }
        if sync.is_by_window() && !store.resume_window(sync)? {
            return Ok(store);
        }
        store.restore(sync)?;
        Ok(store)
    }

    /// Passes the record of an earlier run's window to `sync`; returns whether its headers are recent enough to be restored.
    fn resume_window(&self, sync: &mut HeaderSync) -> Result<bool, OpenFailure> {
        let read = || -> Result<_, ChainStoreError> {
            let meta = self.database.begin_read()?.open_table(META)?;
            Ok(meta.get(WINDOW)?.map(|record| record.value().to_vec()))
        };
        let Some(bytes) = read().map_err(of_reading)? else { return Ok(false) };
        let record = WindowRecord::decode(&bytes).map_err(|error| OpenFailure::Useless(error.to_string()))?;
        let is_recent = sync.resume_window(&record, unix_time());
        if !is_recent {
            info!("{}: its headers end too long ago; starting with a new window", self.path.display());
        }
        Ok(is_recent)
    }

    /// Whether the file has its tables and these properties.
    fn has(&self, identity: &StoreIdentity) -> Result<bool, ChainStoreError> {
        let read = self.database.begin_read()?;
        let (Ok(meta), Ok(_)) = (read.open_table(META), read.open_table(PAGES)) else { return Ok(false) };
        for (name, value) in &identity.0 {
            if meta.get(*name)?.as_ref().map(|found| found.value()) != Some(value.as_slice()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the properties into a new file, or compares those of an existing one. Returns the first
    /// difference.
    fn identify(&self, identity: &StoreIdentity) -> Result<Option<String>, ChainStoreError> {
        // A transaction that writes waits for the disk, so an existing file is only read.
        if self.has(identity)? {
            return Ok(None);
        }
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
                    return Ok(Some(format!("its {name} is another one")));
                }
            }
        }
        write.commit()?;
        Ok(None)
    }

    /// Restores all pages into `sync`, which checks them.
    fn restore(&self, sync: &mut HeaderSync) -> Result<(), OpenFailure> {
        let started = Instant::now();
        let read = self.database.begin_read().map_err(|error| of_reading(error.into()))?;
        let pages = read.open_table(PAGES).map_err(|error| of_reading(error.into()))?;
        let last = pages.last().map_err(|error| of_reading(error.into()))?;
        let count = last.map_or(0, |(index, _)| index.value().saturating_add(1));
        let restored = sync.restore(count, &mut |index| match pages.get(index) {
            Ok(page) => page.map(|page| copied(index, page.value())).transpose(),
            Err(error) => Err(HeaderStoreFault::Unreadable { index, reason: error.to_string() }),
        });
        match restored {
            Ok(None) => {}
            Ok(Some(head)) => {
                let millis = started.elapsed().as_millis();
                info!(
                    "headers up to block {head} restored in {millis} ms, the last {REPROVEN} proven again; the others are proven in the background"
                );
            }
            Err(fault) => return Err(OpenFailure::Useless(fault.to_string())),
        }
        Ok(())
    }

    /// Returns a page by its number.
    ///
    /// # Errors
    /// [`HeaderStoreFault::Unreadable`] if the database cannot be read, [`HeaderStoreFault::Damaged`] if the page is too long.
    pub fn page(&self, index: u64) -> Result<Option<Vec<u8>>, HeaderStoreFault> {
        let read = || -> Result<_, redb::Error> {
            let pages = self.database.begin_read()?.open_table(PAGES)?;
            Ok(pages.get(index)?)
        };
        let page =
            read().map_err(|error| HeaderStoreFault::Unreadable { index, reason: error.to_string() })?;
        page.map(|page| copied(index, page.value())).transpose()
    }

    /// Writes pages and removes all pages above the last one, in one transaction.
    ///
    /// # Errors
    /// The database cannot be written. A damaged file is also set aside, so that the next run creates a new
    /// one.
    pub fn write(&self, pages: &[HeaderPage]) -> Result<(), ChainStoreError> {
        self.write_with(pages, None)
    }

    /// Does what [`Self::write`] does, with the record of a start by window, and removes the pages below the newest
    /// [`WINDOW_PAGES`].
    pub fn write_window(&self, pages: &[HeaderPage], record: &WindowRecord) -> Result<(), ChainStoreError> {
        self.write_with(pages, Some(record))
    }

    /// Writes pages, with the record of a start by window if there is one. A copy writes nothing.
    fn write_with(&self, pages: &[HeaderPage], window: Option<&WindowRecord>) -> Result<(), ChainStoreError> {
        if pages.is_empty() || self.is_copy {
            return Ok(());
        }
        let damaged = || redb::Error::Corrupted("an assertion of the database failed".into());
        let tried = catch_unwind(AssertUnwindSafe(|| self.replace(pages, window)));
        let outcome = tried.unwrap_or_else(|_| Err(ChainStoreError::Database(Box::new(damaged()))));
        outcome.map_err(|error| match of_reading(error) {
            OpenFailure::Fatal(error) => error,
            OpenFailure::Useless(reason) => {
                // If renaming fails, the next run finds the damage.
                let set_aside = if window.is_some() { WINDOW_SET_ASIDE } else { SET_ASIDE };
                let _ = std::fs::rename(&self.path, self.path.with_file_name(set_aside));
                ChainStoreError::Database(Box::new(redb::Error::Corrupted(reason)))
            }
        })
    }

    /// Writes pages in one transaction, in place of all pages above them.
    fn replace(&self, pages: &[HeaderPage], window: Option<&WindowRecord>) -> Result<(), ChainStoreError> {
        let write = self.database.begin_write()?;
        {
            let mut table = write.open_table(PAGES)?;
            for page in pages {
                table.insert(page.index, page.bytes.as_slice())?;
            }
            let above = pages.last().map_or(0, |last| last.index.saturating_add(1));
            table.retain_in(above.., |_, _| false)?;
            if let Some(record) = window {
                table.retain_in(..above.saturating_sub(WINDOW_PAGES), |_, _| false)?;
                write.open_table(META)?.insert(WINDOW, record.encode().as_slice())?;
            }
        }
        Ok(write.commit()?)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Copies a page, unless it is longer than any page that was written.
fn copied(index: u64, page: &[u8]) -> Result<Vec<u8>, HeaderStoreFault> {
    if page.len() > MAX_PAGE_BYTES {
        return Err(HeaderStoreFault::Damaged { index });
    }
    Ok(page.to_vec())
}

/// Decides whether a failure to open means a damaged file.
fn of_opening(error: DatabaseError) -> OpenFailure {
    match error {
        DatabaseError::DatabaseAlreadyOpen => OpenFailure::Fatal(error.into()),
        DatabaseError::Storage(StorageError::Io(ref io)) if !says_damage(io.kind()) => {
            OpenFailure::Fatal(error.into())
        }
        other => OpenFailure::Useless(other.to_string()),
    }
}

/// Decides whether a failure to read means a damaged file.
fn of_reading(error: ChainStoreError) -> OpenFailure {
    match &error {
        ChainStoreError::Database(cause) => match cause.as_ref() {
            redb::Error::Io(io) if !says_damage(io.kind()) => OpenFailure::Fatal(error),
            other => OpenFailure::Useless(other.to_string()),
        },
        _ => OpenFailure::Fatal(error),
    }
}

/// Whether an I/O error means damaged contents and not a problem of the system.
fn says_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput)
}

#[cfg(test)]
#[path = "header_store_test.rs"]
mod tests;
