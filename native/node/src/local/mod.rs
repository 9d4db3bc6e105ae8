//! A local chain as a service: the development chain, or a chain that a follower imports and executes.
//!
//! | file | contents |
//! |---|---|
//! | `service` | [`LocalService`]: where messages run |
//! | `state` | the node, its snapshots and its options; changes that are undone if they cannot be stored |
//! | `message_run`, `inline_runs`, `inline_poll` | the run of a message; short runs and polls on a connection's thread |
//! | `log_stream`, `mined` | answers in pieces; answers that wait for a block |
//! | `codes`, `indexing` | the cache of contracts' code; the index of logs |
//! | `report`, `watchdog` | log lines; time limits of mined and imported blocks |

mod codes;
mod indexing;
mod inline_poll;
mod inline_runs;
mod log_stream;
mod message_run;
mod mined;
mod report;
mod service;
mod state;
mod watchdog;

pub use service::LocalService;
pub use state::{Entropy, LocalOptions, NoChange, host_input};
