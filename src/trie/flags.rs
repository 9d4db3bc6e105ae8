//! The first byte of a node, in its serialization and in chunks (RSKIP-107): two bits of version and six flags.

/// The bits of the version.
pub const VERSION_MASK: u8 = 0b1100_0000;
/// The version.
pub const VERSION: u8 = 0b0100_0000;
/// The value is too long to be inline.
pub const LONG_VALUE: u8 = 0b0010_0000;
/// There is a shared path.
pub const PATH: u8 = 0b0001_0000;
/// There is a left child.
pub const LEFT: u8 = 0b0000_1000;
/// There is a right child.
pub const RIGHT: u8 = 0b0000_0100;
/// The left child is embedded.
pub const LEFT_EMBEDDED: u8 = 0b0000_0010;
/// The right child is embedded.
pub const RIGHT_EMBEDDED: u8 = 0b0000_0001;
