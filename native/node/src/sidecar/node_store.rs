//! The files of a sidecar's node, as the sidecar reads them.

use rootlight::trie::TrieStore;

/// The trie nodes of a full node that goes on writing them.
pub trait NodeStore: TrieStore + 'static {
    /// Makes readable what the node has written since the last call.
    ///
    /// # Errors
    /// The database's error message. What was readable before can still be read.
    fn catch_up(&self) -> Result<(), String>;

    /// A number that changes when there is more to read.
    fn version(&self) -> u64;
}
