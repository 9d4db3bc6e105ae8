//! Discovery of nodes over UDP: datagrams, and a machine with a table of nodes. The protocol is Rootstock's own, similar to discv4
//! of Ethereum, but not compatible with it.
//!
//! [`Discovery`] does all of it; a host moves its datagrams and gives it the time. Source: the reference implementation
//! (`co/rsk/net/discovery`).

mod address;
mod datagram;
mod error;
mod limits;
mod machine;
mod message_id;
mod packet;
mod pending;
mod random;
mod table;

pub use address::{NodeRecord, allowed, canonical, is_public, networks, one_owner};
pub use datagram::{DATAGRAM_MAX, DATAGRAM_MIN, Datagram};
pub use error::{DatagramError, Ignored};
pub use machine::{Discovery, DiscoveryConfig, MAX_BOOT_ADDRESSES, MAX_CANDIDATES, MAX_OUTPUTS, Output};
pub use message_id::MessageId;
pub use packet::{Endpoint, NEIGHBORS_MAX, Neighbor, Packet};
pub use table::{BIN_SIZE, MAX_NODES, PER_SLASH_16, PER_SLASH_24, distance};
