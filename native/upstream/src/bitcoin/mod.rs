//! Untrusted sources of Bitcoin's chain: headers, and coinbases with their Merkle branches.
//!
//! | file | contents |
//! |---|---|
//! | `source` | [`BitcoinSource`], and what it gives |
//! | `esplora` | Esplora's HTTP interface, which offers headers |
//! | `electrum` | Electrum's protocol, which offers headers and coinbases |
//! | `electrum_link` | its connections: lines over TCP or TLS, messages over WebSocket |
//! | `rootlight` | other Rootlights, which offer headers and coinbases |
//! | `coinbase` | [`RawCoinbase`]: the coinbase of a block |
//! | `follow` | the whole chain of one source, verified |
//! | `recording` | what a source gave, as a file |
//! | `hex` | hexadecimal text |
//! | `public` | the sources that are asked if the user names none |
//!
//! Nothing here is verified beyond its form: a header may have no work, and a branch may lead to any root. All that a source
//! sends is limited in time, bytes and number. A source is asked once: the caller decides when to ask again.

mod coinbase;
mod electrum;
mod electrum_link;
mod esplora;
mod follow;
mod hex;
mod public;
mod recording;
mod rootlight;
mod source;

pub use coinbase::RawCoinbase;
pub use follow::follow;
pub use public::public_sources;
pub use source::{BitcoinSource, BitcoinSourceConfig, MAX_COINBASES, MAX_HEADERS};
