//! Limits that the crates of a host share, and the few host functions that every crate needs. It is the lowest of the crates
//! below `native/`.
//!
//! | file | contents |
//! |---|---|
//! | the root | what the parts of one server share ([`Limits`]) |
//! | `budget` | limits of memory, in bytes, for callers, upstreams and peers |
//! | `runs` | which waiting run of a handler starts next |
//! | `network_counts` | how many connections each network has, so that one network does not take them all |
//! | `caller_id`, `quota_owner` | the address, page and connection by which limits tell callers apart, and whose share a message takes |
//! | `request_permits` | whose request a peer, a node or an index gets next |
//! | `priority`, `processors` | threads of lower priority for long work, and the processors they run on |
//! | `files`, `io_words` | files that are written as a whole, and why a file or a server cannot be used |
//! | `sanitize`, `unix_time` | text from outside for logs and tables, the clock |

pub mod budget;
pub mod caller_id;
pub mod files;
pub mod io_words;
mod limits;
pub mod network_counts;
pub mod priority;
pub mod processors;
pub mod quota_owner;
pub mod request_permits;
pub mod runs;
pub mod sanitize;
pub mod unix_time;

pub use limits::{Limits, OF_ONE_SOURCE};
