//! Limits that the crates of a host share, and the few host functions that every crate needs.
//!
//! | file | contents |
//! |---|---|
//! | the root | what the parts of one server share ([`Limits`]) |
//! | `budget` | limits of memory, in bytes, for callers, upstreams and peers |
//! | `runs`, `network_counts`, `caller_id` | whose turn it is, whose places are taken, and who a caller is |
//! | `request_permits` | whose question a peer, a node or an index is asked next |
//! | `priority`, `processors` | threads of long work |
//! | `files`, `io_words` | files that are written as a whole, and why a file or a server cannot be used |
//! | `sanitize`, `unix_time` | text from outside, the clock |

pub mod budget;
pub mod caller_id;
pub mod files;
pub mod io_words;
mod limits;
pub mod network_counts;
pub mod priority;
pub mod processors;
pub mod request_permits;
pub mod runs;
pub mod sanitize;
pub mod unix_time;

pub use limits::{Limits, OF_ONE_SOURCE};
