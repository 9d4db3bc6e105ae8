//! Tables of the database.

use redb::TableDefinition;

/// Facts of the file itself, by the names below.
pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
/// Version of the layout.
pub(super) const FORMAT: &str = "format";
/// Hash of the chain's first block.
pub(super) const GENESIS: &str = "genesis";
/// Hash of the head.
pub(super) const HEAD: &str = "head";

/// Encoded blocks by hash.
pub(super) const BLOCKS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("blocks");
/// Encoded receipts by block hash and index.
pub(super) const RECEIPTS: TableDefinition<'_, ([u8; 32], u32), &[u8]> = TableDefinition::new("receipts");
/// Trie nodes and long values by hash.
pub(super) const NODES: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("nodes");
/// State root of each block by its hash: 32 bytes, and 32 more where the state was changed by hand afterwards.
pub(super) const ROOTS: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("roots");
/// Everything else, by name.
pub(super) const NOTES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("notes");
