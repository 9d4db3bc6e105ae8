//! The interface of the node's trie files. `crate::rskj_store` implements it for rskj.

use rootlight::trie::TrieStore;

/// The trie nodes in the files of a full node, which writes further ones meanwhile.
pub trait NodeStore: TrieStore + 'static {
    /// Makes readable what the node has written since the last call.
    ///
    /// # Errors
    /// The database's error message. Data that was readable before can still be read.
    fn catch_up(&self) -> Result<(), String>;

    /// A number that changes when [`Self::catch_up`] has made new data readable.
    fn version(&self) -> u64;
}
