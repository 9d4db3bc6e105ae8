//! An index of the blocks of a local chain: for each address and topic, the blocks in which it occurs.
//!
//! Each term (an address or topic with its role) has one bitmap for every 65,536 blocks, a row. A block's position in a row is its
//! number modulo 65,536. A search reads the rows
//! of its terms instead of the headers of its range: 16 rows for each term of a million blocks. A stored chain has its rows
//! in its own database ([`crate::store::StoredIndex`]), other chains in memory ([`MemoryIndex`]).
//!
//! An index names candidates, and every candidate is checked against the block's own receipts. So a row that names too
//! many blocks costs time only, and a row that cannot be read counts as one that names every block.

mod memory;
mod row;
mod search;

pub use memory::MemoryIndex;
pub(crate) use memory::{Table, add_terms, read_table};
pub(crate) use row::{RowKey, TermKey, row_key};
pub use row::{decode_row, encode_row};
pub(crate) use search::{IndexSearch, RowBitmaps, Rows, Unreadable};
