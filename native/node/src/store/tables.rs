//! The tables of the chain store's database, and the names of entries in them. The table of the index is in `log_index.rs`.

use redb::TableDefinition;

/// Properties of the file itself, under the three names below, and the state of the index.
pub(crate) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// Version of the layout.
pub(super) const FORMAT: &str = "format";
/// Hash of block 0.
pub(super) const GENESIS: &str = "genesis";
/// Hash of the head.
pub(super) const HEAD: &str = "head";

/// Encoded blocks by hash.
pub(super) const BLOCKS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("blocks");
/// Encoded receipts by block hash and index.
pub(super) const RECEIPTS: TableDefinition<'_, ([u8; 32], u32), &[u8]> = TableDefinition::new("receipts");
/// Trie nodes and long values by hash.
pub(super) const NODES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("nodes");
/// State roots by block hash: 32 bytes for the executed state, then 32 for the state after changes by hand;
/// zero if there is none.
pub(super) const ROOTS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("roots");
/// Data that is neither a block nor a state, by name.
pub(super) const NOTES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("notes");
/// Name of the note with the timestamp of block 0: eight bytes, the highest first.
pub(super) const GENESIS_TIME: &str = "genesis time";
/// Name of the note with the settings of a development chain, as JSON.
pub(super) const SETTINGS: &str = "settings";
