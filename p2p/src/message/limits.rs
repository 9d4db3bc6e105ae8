//! Limits on messages. A message that exceeds one is refused. Items of lists are not copied, so the limits bound the work that a message
//! can cause; its memory is bounded by the size of the frame.

/// Most headers in a response (`sync.chunkSize` of the reference node). A request for more stays unanswered.
pub const MAX_HEADERS: usize = 192;

/// Number of blocks from one entry of a skeleton (a list of block hashes at regular heights) to the next.
pub const SKELETON_STEP: u64 = 192;

/// Most entries in a skeleton: twenty steps and the end.
pub const MAX_SKELETON: usize = 21;

/// Most blocks in a response with blocks: the block whose state a snapshot server serves (its checkpoint), and the 400 before it.
pub const MAX_BLOCKS: usize = 401;

/// Most announced blocks in one message. The reference node announces the blocks of one import, which is mostly one.
pub const MAX_ANNOUNCED: usize = 192;

/// Most transactions in one message or block. The ends of parallel sublists (RSKIP-144) are 16-bit positions, so no block has more.
pub const MAX_TRANSACTIONS: usize = 65_536;

/// Most uncles of a block.
pub const MAX_UNCLES: usize = rootlight::consensus::network::MAX_UNCLES;

/// Longest header extension in bytes: a bloom (256 bytes), an event of at most 128 bytes, and the ends of parallel sublists, 2 bytes
/// each.
pub const MAX_EXTENSION_BYTES: usize = 4096;

/// Longest state chunk in bytes. A chunk spans 51,200 bytes of nodes; the nodes on the paths to both of its ends are
/// added with their values, of which the largest ones (cells of the Bridge) have some hundred kilobytes.
pub const MAX_CHUNK_BYTES: usize = 2 * 1024 * 1024;
