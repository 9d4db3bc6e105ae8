//! Untrusted sources of Bitcoin's chain: headers, and coinbases with their Merkle branches. A light client of Rootstock compares
//! its chain with the tags in the coinbases, because Bitcoin's miners also mine Rootstock's blocks.
//!
//! | file | contents |
//! |---|---|
//! | `source` | [`BitcoinSource`]: a source of any protocol |
//! | `esplora` | Esplora's HTTP interface, which offers headers |
//! | `electrum` | Electrum's protocol, which offers headers and coinbases |
//! | `electrum_link` | connections to Electrum servers: lines over TCP or TLS, messages over WebSocket |
//! | `rootlight` | other Rootlights, which offer headers and coinbases |
//! | `coinbase` | [`RawCoinbase`]: the coinbase of a block |
//! | `follow` | the whole chain of one source, verified |
//! | `recording` | the responses of a source, as a file |
//! | `hex` | hexadecimal text |
//! | `public` | the sources that are asked if the user names none |
//!
//! Except in `follow`, only the form of responses is checked here: a header may have no work, and a branch may lead to any root.
//! Responses are limited in time, bytes and number. A failed request is not repeated: the caller decides when to send it again.

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
