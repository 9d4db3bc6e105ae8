//! The interface of a Bitcoin chain that other Rootlight programs may request. `light::bitcoin` writes and reads its texts.

use alloc::string::String;

/// A Bitcoin chain that other Rootlight programs may request: the one that a light client follows, or that of a development chain.
pub trait ServedBitcoin {
    /// The result of `rootlight_getBitcoinHeaders`, in base64: at most `count` headers from the height `from` on.
    fn served_headers(&self, from: u32, count: u32) -> String;

    /// The result of `rootlight_getBitcoinTags`, in base64: the coinbases of at most `count` blocks from the height `from` on.
    fn served_coinbases(&self, from: u32, count: u32) -> String;
}
