//! A Bitcoin chain that other Rootlights may ask for.

use alloc::string::String;

/// A Bitcoin chain that other Rootlights may ask for: the one that a light client follows, or that of a development chain.
pub trait ServedBitcoin {
    /// The result of `rootlight_getBitcoinHeaders`: at most `count` headers from a height on.
    fn served_headers(&self, from: u32, count: u32) -> String;

    /// The result of `rootlight_getBitcoinTags`: the coinbases of at most `count` blocks from a height on.
    fn served_coinbases(&self, from: u32, count: u32) -> String;
}
