//! Stores what a fork has read of its base block on disk, in one file for each block hash, so that a second run need not request
//! it again.
//!
//! Data is checked when it is read: trie nodes by their hashes, from the state root on, headers by the hashes in the headers above
//! them, and blocks by the roots of their headers. Three things are trusted as stored: the hash that was linked for a height, the
//! network of a trusted block, and values that no upstream proved. Such values have a file of their own for each policy by which
//! they were accepted.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use alloy_primitives::{B256, Bytes};
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableError, WriteTransaction,
};
use rootlight::consensus::{Network, VerifiedHeader};
use rootlight::dev::fork::{Entry, FetchedState, ForkBlock, ForkCache, ForkState};
use rootlight::light::UnprovenPolicy;
use rootlight::local::ForkBase as _;
use rootlight::types::header::HeaderForm;
use rootlight::types::{Header, SealedHeader};
use rootlight_limits::files;
use rootlight_server::database_file;
use tracing::info;

/// Trie nodes and long values by their hashes.
const NODES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("nodes");
/// Values that no upstream proved, by trie key. The first byte is 0 for an absent value, else 1, and the value follows.
const VALUES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("values");
/// Encoded headers by height.
const HEADERS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("headers");

/// Parts of blocks below the fork, by the keys and in the encoding of `rootlight::dev::fork`.
const BLOCKS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("blocks");

/// Longest file with the hash of a height or with a chain id, in bytes: the hash and the end of its line take 67.
const MAX_NOTE_FILE: u64 = 128;

/// The file of a block.
#[derive(Debug)]
pub(super) struct ForkStore {
    database: Database,
    path: PathBuf,
    /// Whether values are accepted that no upstream proved.
    accepts_unproven: bool,
    /// Size in bytes from which on nothing more is stored.
    most_bytes: u64,
}

/// Why a file cannot be used, as a text.
type Fault = String;

impl ForkStore {
    /// Opens the file of a block in a folder; `None` if the file cannot be used, so that the run stores nothing.
    pub(super) fn open(
        folder: &Path,
        block: &B256,
        unproven: UnprovenPolicy,
        most_bytes: u64,
    ) -> Option<Self> {
        let name = match unproven {
            UnprovenPolicy::Refuse => "redb".to_owned(),
            UnprovenPolicy::Trust => "trust.redb".to_owned(),
            UnprovenPolicy::Quorum(count) => format!("quorum-{count}.redb"),
        };
        let path = folder.join(format!("{block}.{name}"));
        let opened = std::fs::create_dir_all(folder).map_err(|error| error.to_string());
        let opened = opened
            .and_then(|()| database_file::create(&path).map_err(|error| database_file::words(&error.into())));
        match opened {
            Ok(database) => {
                let accepts_unproven = unproven != UnprovenPolicy::Refuse;
                Some(Self { database, path, accepts_unproven, most_bytes })
            }
            Err(error) => {
                info!(
                    "what is read below the fork is not kept on disk in this run: {}: {error}",
                    path.display()
                );
                None
            }
        }
    }

    /// The header of a block, if it is stored. The caller checks its hash.
    pub(super) fn header(&self, number: u64, network: &Network) -> Option<SealedHeader> {
        let read = self.database.begin_read().ok()?;
        let bytes = read.open_table(HEADERS).ok()?.get(number).ok()??;
        decoded(bytes.value(), network)
    }

    /// Fills a state with the stored data about it.
    pub(super) fn load(&self, state: &ForkState) {
        if let Err(fault) = self.read(state) {
            info!("a part of what was read below the fork in earlier runs is read again: {fault}");
        }
    }

    /// Reads all data of the file into a state.
    fn read(&self, state: &ForkState) -> Result<(), Fault> {
        let read = self.database.begin_read().map_err(text)?;
        let table = |found: Result<_, TableError>| match found {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(text(error)),
        };
        if let Some(nodes) = table(read.open_table(NODES))? {
            for entry in nodes.iter().map_err(text)? {
                let bytes = Bytes::copy_from_slice(entry.map_err(text)?.1.value());
                // The state computes the node's hash, so a damaged node gets a hash to which no node refers.
                state.add_node(bytes);
            }
        }
        if let Some(values) = table(read.open_table(VALUES))?.filter(|_| self.accepts_unproven) {
            for entry in values.iter().map_err(text)? {
                let (key, value) = entry.map_err(text)?;
                let value = value.value().split_first().filter(|(is_there, _)| **is_there == 1);
                state.add_value(key.value(), value.map(|(_, value)| Bytes::copy_from_slice(value)));
            }
        }
        // Without a table that can be read, the headers are fetched again.
        self.read_headers(state, read.open_table(HEADERS).ok())
    }

    /// Adds the stored headers below the fork, from the highest down, as long as each has the hash that the one above states.
    fn read_headers(
        &self,
        state: &ForkState,
        table: Option<redb::ReadOnlyTable<u64, &[u8]>>,
    ) -> Result<(), Fault> {
        let Some(table) = table else { return Ok(()) };
        for entry in table.range(..state.block().number).map_err(text)?.rev() {
            let (_, value) = entry.map_err(text)?;
            let header = decoded(value.value(), state.network());
            let Some(linked) = header.and_then(|header| state.lowest().parent_from(header)) else { break };
            state.add_header(linked);
        }
        Ok(())
    }

    /// Stores data that was fetched.
    pub(super) fn save(&self, fetched: &FetchedState, headers: &[VerifiedHeader]) {
        if fetched.nodes.is_empty() && fetched.values.is_empty() && headers.is_empty() {
            return;
        }
        self.add(|write| {
            let mut nodes = write.open_table(NODES).map_err(text)?;
            for (hash, node) in &fetched.nodes {
                nodes.insert(hash.as_slice(), node.as_ref()).map_err(text)?;
            }
            let mut values = write.open_table(VALUES).map_err(text)?;
            for (key, value) in &fetched.values {
                let mut stored = vec![u8::from(value.is_some())];
                stored.extend(value.iter().flatten());
                values.insert(&**key, &*stored).map_err(text)?;
            }
            let mut table = write.open_table(HEADERS).map_err(text)?;
            for header in headers {
                let stored = header.header().encode(HeaderForm::Full);
                table.insert(header.number, &*stored).map_err(text)?;
            }
            Ok(())
        });
    }

    /// Runs `put` in a transaction, unless the file is full.
    fn add(&self, put: impl FnOnce(&WriteTransaction) -> Result<(), Fault>) {
        if std::fs::metadata(&self.path).is_ok_and(|file| file.len() >= self.most_bytes) {
            return;
        }
        let written = self.database.begin_write().map_err(text).and_then(|write| {
            put(&write)?;
            write.commit().map_err(text)
        });
        if let Err(fault) = written {
            info!("what was read below the fork could not be kept on disk: {fault}");
        }
    }
}

impl ForkCache for ForkStore {
    fn store_values(&self, fetched: &FetchedState) {
        self.save(fetched, &[]);
    }

    fn store_blocks(&self, entries: &mut dyn Iterator<Item = Entry>) {
        self.add(|write| {
            let mut blocks = write.open_table(BLOCKS).map_err(text)?;
            for (key, value) in entries {
                blocks.insert(&*key, &*value).map_err(text)?;
            }
            Ok(())
        });
    }

    fn block_part(&self, key: &[u8]) -> Option<Vec<u8>> {
        let read = self.database.begin_read().ok()?;
        let bytes = read.open_table(BLOCKS).ok()?.get(key).ok()??;
        Some(bytes.value().to_vec())
    }
}

/// Decodes a stored header.
fn decoded(bytes: &[u8], network: &Network) -> Option<SealedHeader> {
    Header::decode(bytes, &|number| network.header_shape(number)).ok().map(Header::seal)
}

/// The text of an error.
fn text(error: impl ToString) -> Fault {
    error.to_string()
}

/// The file that stores the hash of the block at a height, which was once linked from a verified head.
fn number_file(folder: &Path, chain_id: u64, number: u64) -> PathBuf {
    folder.join(format!("{chain_id}-{number}.hash"))
}

/// The file that stores the chain id of the network of a trusted block.
fn chain_id_file(folder: &Path, hash: &B256) -> PathBuf {
    folder.join(format!("{hash}.chain-id"))
}

/// Reads the value of a file with one line.
fn note<T: FromStr>(file: &Path) -> Option<T> {
    let bytes = files::read(file, MAX_NOTE_FILE).ok()?;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// The stored hash of the block at a height.
pub(super) fn stored_hash(folder: &Path, chain_id: u64, number: u64) -> Option<B256> {
    note(&number_file(folder, chain_id, number))
}

/// The stored chain id of a trusted block.
pub(super) fn stored_chain_id(folder: &Path, hash: &B256) -> Option<u64> {
    note(&chain_id_file(folder, hash))
}

/// Stores the hash of a block that was linked at its height, or the chain id of a trusted block.
pub(super) fn store_note(folder: &Path, chain_id: u64, block: ForkBlock, hash: B256) {
    let (file, text) = match block {
        // A later start on the head finds the head of its own time.
        ForkBlock::Head => return,
        ForkBlock::Number(number) => (number_file(folder, chain_id, number), hash.to_string()),
        ForkBlock::Trusted(..) => (chain_id_file(folder, &hash), chain_id.to_string()),
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text + "\n"));
    if let Err(error) = written {
        info!("the next start asks the network for it: {}: {error}", file.display());
    }
}

#[cfg(test)]
mod tests {
    use super::super::start::MOST_FILE_BYTES;
    use super::*;

    #[test]
    fn values_are_kept_apart_by_the_way_in_which_they_were_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let open = |unproven| ForkStore::open(folder.path(), &B256::ZERO, unproven, MOST_FILE_BYTES);
        let ways = [
            UnprovenPolicy::Refuse,
            UnprovenPolicy::Trust,
            UnprovenPolicy::Quorum(2),
            UnprovenPolicy::Quorum(3),
        ];
        let stores = ways.map(open);
        assert!(stores.iter().all(Option::is_some));
        assert!(ways.map(open).iter().all(Option::is_none), "a file is open once");
    }
}
