//! The redb database of an executed chain: opening it, checks of its layout, and all reads. `append.rs` has the writes.

use std::path::Path;
use std::sync::{Arc, RwLock};

use alloy_primitives::{B256, Bytes};
use redb::{
    Database, ReadTransaction, ReadableDatabase as _, ReadableTable as _, TableError, WriteTransaction,
};
use rootlight::trie::NodeSource;
use rootlight_server::database_file;

use super::error::ChainStoreError;
use super::tables::{BLOCKS, FORMAT, GENESIS, GENESIS_TIME, HEAD, META, NODES, NOTES, RECEIPTS, ROOTS};

/// Version of the layout. Files of unknown versions are refused, because the chain can be built again.
const FORMAT_VERSION: &[u8] = b"2";
/// The layout before the table of state roots, in which the state root of each block is its header's. Opening
/// upgrades it.
const FORMAT_WITHOUT_ROOTS: &[u8] = b"1";

/// Name of the file inside `--data-dir`.
const FILE: &str = "chain.redb";

/// A block as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlock {
    /// Hash of the block.
    pub hash: B256,
    /// Header, transactions and uncles, as `types::Block` encodes them.
    pub block: Vec<u8>,
    /// Encoded receipts, in the order of the transactions.
    pub receipts: Vec<Vec<u8>>,
}

/// Roots of the states after a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateRoots {
    /// Root of the state that execution gave; `None` if that state was not stored.
    pub executed: Option<B256>,
    /// Root of the state after changes by hand (such as a balance set by a development method); `None`
    /// without changes.
    pub edited: Option<B256>,
}

/// A store that its owner closes after a failed write, and opens again. Readers lock it only while they read, because the database
/// cannot be opened again before all of them have released it.
pub(super) type StoreSlot = RwLock<Option<ChainStore>>;

/// Opens the store again after a failed write. The previous database must be closed first.
pub type OpenStore = Box<dyn FnMut() -> Result<ChainStore, ChainStoreError> + Send>;

/// The open database.
#[derive(Clone, Debug)]
pub struct ChainStore {
    database: Arc<Database>,
}

impl ChainStore {
    /// Opens the database in a folder for the chain of this genesis. Creates the folder and the database if
    /// needed.
    ///
    /// # Errors
    /// The folder belongs to another chain, the file is of another program or version, or another process has
    /// it open.
    pub fn open(folder: &Path, genesis: B256) -> Result<Self, ChainStoreError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| ChainStoreError::Folder { folder: folder.to_owned(), source })?;
        let path = folder.join(FILE);
        let open = || Self::with(database_file::create(&path)?, genesis);
        open().map_err(|error| error.at(&path))
    }

    /// Returns a function that calls [`Self::open`] with these arguments.
    #[must_use]
    pub fn opener(folder: &Path, genesis: B256) -> OpenStore {
        let folder = folder.to_owned();
        Box::new(move || Self::open(&folder, genesis))
    }

    /// As [`Self::opener`]; a new database also stores the timestamp of block 0, which [`Self::genesis_time`] reads.
    #[must_use]
    pub fn opener_at(folder: &Path, genesis: B256, time: u64) -> OpenStore {
        let mut open = Self::opener(folder, genesis);
        Box::new(move || {
            let store = open()?;
            if store.note(GENESIS_TIME)?.is_none() && store.head()?.is_none() {
                store.set_note(GENESIS_TIME, &time.to_be_bytes())?;
            }
            Ok(store)
        })
    }

    /// Returns the timestamp of block 0 of the chain in a folder, in seconds since 1970; `None` without a chain. Chains
    /// of older versions do not store it; their block 0 has the time 0.
    ///
    /// # Errors
    /// The file cannot be read as a database, or another process has it open.
    pub fn genesis_time(folder: &Path) -> Result<Option<u64>, ChainStoreError> {
        let file = folder.join(FILE);
        if !file.exists() {
            return Ok(None);
        }
        // Tables can be read only while the database is open.
        let database = Database::create(&file).map_err(|error| ChainStoreError::from(error).at(&file))?;
        let notes = match database.begin_read()?.open_table(NOTES) {
            Ok(notes) => notes,
            // A process that made the file stopped before it wrote a table.
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let note = notes.get(GENESIS_TIME)?;
        let time = note.and_then(|note| Some(u64::from_be_bytes(note.value().try_into().ok()?)));
        Ok(Some(time.unwrap_or(0)))
    }

    /// Does what [`Self::open`] does, with a database that is already open.
    pub fn with(database: Database, genesis: B256) -> Result<Self, ChainStoreError> {
        let store = Self { database: Arc::new(database) };
        store.check(genesis)?;
        Ok(store)
    }

    /// Checks the version and the genesis of the database, or writes them into a new one.
    fn check(&self, genesis: B256) -> Result<(), ChainStoreError> {
        let write = self.write()?;
        {
            let mut meta = write.open_table(META)?;
            let read = |key: &str| -> Result<Option<Vec<u8>>, ChainStoreError> {
                Ok(meta.get(key)?.map(|value| value.value().to_vec()))
            };
            match (read(FORMAT)?, read(GENESIS)?) {
                (None, _) => {
                    meta.insert(FORMAT, FORMAT_VERSION)?;
                    meta.insert(GENESIS, genesis.as_slice())?;
                }
                (Some(format), Some(found))
                    if format == FORMAT_WITHOUT_ROOTS && found == genesis.as_slice() =>
                {
                    meta.insert(FORMAT, FORMAT_VERSION)?;
                }
                (Some(format), _) if format != FORMAT_VERSION => {
                    return Err(ChainStoreError::Format(String::from_utf8_lossy(&format).into_owned()));
                }
                (_, Some(found)) if found == genesis.as_slice() => {}
                (_, found) => {
                    let found = B256::try_from(found.unwrap_or_default().as_slice()).unwrap_or_default();
                    return Err(ChainStoreError::OtherChain { expected: genesis, found });
                }
            }
            // All tables exist from the start, so that reading needs no special case.
            write.open_table(BLOCKS)?;
            write.open_table(RECEIPTS)?;
            write.open_table(NODES)?;
            write.open_table(ROOTS)?;
            write.open_table(NOTES)?;
        }
        Ok(write.commit()?)
    }

    /// Begins a transaction that writes; one at a time can be open.
    pub(crate) fn write(&self) -> Result<WriteTransaction, ChainStoreError> {
        Ok(self.database.begin_write()?)
    }

    /// Begins a transaction that reads the database as it is now.
    pub(crate) fn read(&self) -> Result<ReadTransaction, ChainStoreError> {
        Ok(self.database.begin_read()?)
    }

    /// Returns the roots of the states after a block; `None` if the block was stored without states, or by a version without the table
    /// of roots.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn roots(&self, hash: B256) -> Result<Option<StateRoots>, ChainStoreError> {
        let roots = self.read()?.open_table(ROOTS)?;
        let Some(value) = roots.get(&hash.0)? else { return Ok(None) };
        let root =
            |at: usize| value.value().get(at..at + 32).map(B256::from_slice).filter(|root| !root.is_zero());
        Ok(Some(StateRoots { executed: root(0), edited: root(32) }))
    }

    /// Returns the head that was written last; `None` in a new database.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn head(&self) -> Result<Option<B256>, ChainStoreError> {
        let meta = self.read()?.open_table(META)?;
        let head = meta.get(HEAD)?;
        Ok(head.and_then(|value| B256::try_from(value.value()).ok()))
    }

    /// Returns a block by its hash.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn block(&self, hash: B256) -> Result<Option<StoredBlock>, ChainStoreError> {
        let read = self.read()?;
        let blocks = read.open_table(BLOCKS)?;
        let Some(block) = blocks.get(&hash.0)? else { return Ok(None) };
        let table = read.open_table(RECEIPTS)?;
        let mut receipts = Vec::new();
        for entry in table.range((hash.0, 0)..=(hash.0, u32::MAX))? {
            receipts.push(entry?.1.value().to_vec());
        }
        Ok(Some(StoredBlock { hash, block: block.value().to_vec(), receipts }))
    }

    /// Returns the trie nodes that are stored now.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn nodes(&self) -> Result<StoredNodes, ChainStoreError> {
        Ok(StoredNodes { table: self.read()?.open_table(NODES)? })
    }

    /// Returns a note by its name. Notes are data that is neither a block nor a state, such as the settings of a development chain.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn note(&self, name: &str) -> Result<Option<Vec<u8>>, ChainStoreError> {
        let notes = self.read()?.open_table(NOTES)?;
        let note = notes.get(name)?;
        Ok(note.map(|value| value.value().to_vec()))
    }

    /// Sets a note.
    pub(crate) fn set_note(&self, name: &str, value: &[u8]) -> Result<(), ChainStoreError> {
        let write = self.write()?;
        write.open_table(NOTES)?.insert(name, value)?;
        Ok(write.commit()?)
    }
}

/// Stored trie nodes and long values by hash, as of one moment.
pub struct StoredNodes {
    table: redb::ReadOnlyTable<&'static [u8; 32], &'static [u8]>,
}

impl NodeSource for StoredNodes {
    /// A failed read looks like a missing node, which the trie's loader reports with its hash.
    fn node(&self, hash: &B256) -> Option<Bytes> {
        let found = self.table.get(&hash.0).ok()?;
        found.map(|value| Bytes::copy_from_slice(value.value()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::append::StatesToWrite;
    use super::*;
    use rootlight::trie::{Loader, Trie};

    const GENESIS: B256 = B256::repeat_byte(1);

    fn block(number: u8) -> StoredBlock {
        let receipts = vec![vec![number, 1], vec![number, 2]];
        StoredBlock { hash: B256::repeat_byte(number), block: vec![number; 10], receipts }
    }

    fn state(entries: u8) -> Trie {
        let mut trie = Trie::new();
        for i in 0..entries {
            trie.put(&[i; 31], vec![i + 1; 40]);
        }
        trie
    }

    #[test]
    fn blocks_and_states_are_read_back_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        {
            let store = ChainStore::open(folder.path(), GENESIS).unwrap();
            assert_eq!(store.head().unwrap(), None);
            let states = |number: u8, entries: &[u8]| {
                let tries: Vec<Trie> = entries.iter().map(|entries| state(*entries)).collect();
                let root = |at: usize| tries.get(at).map(Trie::root);
                let roots = StateRoots { executed: root(0), edited: root(1) };
                StatesToWrite { block: block(number).hash, roots, tries }
            };
            store.append(&[block(1)], &[states(1, &[5])], block(1).hash).unwrap();
            let two = [states(2, &[]), states(3, &[9, 7])];
            store.append(&[block(2), block(3)], &two, block(3).hash).unwrap();
            store.set_note("clock", b"12").unwrap();
        }
        let store = ChainStore::open(folder.path(), GENESIS).unwrap();
        assert_eq!(store.head().unwrap(), Some(block(3).hash));
        for number in 1..=3 {
            assert_eq!(store.block(B256::repeat_byte(number)).unwrap(), Some(block(number)));
        }
        assert_eq!(store.block(B256::ZERO).unwrap(), None);
        assert_eq!(store.note("clock").unwrap().as_deref(), Some(&b"12"[..]));
        let nodes = store.nodes().unwrap();
        let mut loader = Loader::new(&nodes);
        let edited = StateRoots { executed: Some(state(9).root()), edited: Some(state(7).root()) };
        assert_eq!(store.roots(block(3).hash).unwrap(), Some(edited));
        assert_eq!(store.roots(block(2).hash).unwrap(), Some(StateRoots::default()));
        assert_eq!(store.roots(B256::ZERO).unwrap(), None);
        for entries in [5, 7, 9] {
            let root = state(entries).root();
            assert_eq!(loader.load(root).unwrap().root(), root);
        }
    }

    #[test]
    fn the_time_of_block_0_is_kept_from_the_first_start_on() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ChainStore::genesis_time(folder.path()).unwrap(), None);
        drop(ChainStore::opener_at(folder.path(), GENESIS, 1_800_000_000)().unwrap());
        assert_eq!(ChainStore::genesis_time(folder.path()).unwrap(), Some(1_800_000_000));
        drop(ChainStore::opener_at(folder.path(), GENESIS, 5)().unwrap());
        assert_eq!(ChainStore::genesis_time(folder.path()).unwrap(), Some(1_800_000_000));
        let older = tempfile::tempdir().unwrap();
        drop(ChainStore::open(older.path(), GENESIS).unwrap());
        assert_eq!(ChainStore::genesis_time(older.path()).unwrap(), Some(0));
    }

    #[test]
    fn a_folder_of_another_chain_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        drop(ChainStore::open(folder.path(), GENESIS).unwrap());
        let error = ChainStore::open(folder.path(), B256::repeat_byte(2)).err().unwrap();
        assert!(matches!(error, ChainStoreError::OtherChain { .. }), "{error}");
    }

    #[test]
    fn a_file_with_another_layout_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = ChainStore::open(folder.path(), GENESIS).unwrap();
        let write = store.write().unwrap();
        write.open_table(META).unwrap().insert(FORMAT, &b"0"[..]).unwrap();
        write.commit().unwrap();
        drop(store);
        let error = ChainStore::open(folder.path(), GENESIS).err().unwrap();
        assert!(matches!(&error, ChainStoreError::Format(found) if found == "0"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_a_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), [7; 4096]).unwrap();
        assert!(ChainStore::open(folder.path(), GENESIS).is_err());
    }
}
