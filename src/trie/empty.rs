//! The root of an empty trie.

use alloy_primitives::{B256, b256};

/// Root of an empty trie: keccak-256 of the single byte 0x80 (the RLP of an empty string).
pub const EMPTY_ROOT: B256 = b256!("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");
