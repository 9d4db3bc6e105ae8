//! JSON-RPC: envelope, method table, parameters, handlers and sessions.

#[cfg(all(feature = "light", feature = "local"))]
mod batches;
#[cfg(feature = "light")]
mod beside;
mod blocks;
mod call;
mod call_object;
mod chain;
#[cfg(feature = "light")]
mod client;
mod connection;
#[cfg(feature = "local")]
mod debug;
#[cfg(feature = "dev")]
mod dev;
mod dispatch;
mod entries;
pub mod envelope;
mod error;
mod exchange;
mod filters;
#[cfg(all(test, feature = "light"))]
mod forged_test;
#[cfg(all(test, feature = "dev", feature = "light"))]
mod gate_test;
mod headers;
#[cfg(feature = "light")]
mod hints;
#[cfg(all(test, feature = "light", feature = "local"))]
mod hostile;
mod limits;
#[cfg(feature = "local")]
mod local_client;
#[cfg(feature = "local")]
mod log_stream;
mod logs;
mod lookup;
mod message;
mod method;
#[cfg(all(any(test, feature = "testkit"), feature = "light"))]
#[doc(hidden)]
pub mod mined_chain;
#[cfg(all(test, feature = "light"))]
mod mined_pair_test;
#[cfg(all(test, feature = "light"))]
mod mined_scenarios_test;
#[cfg(all(test, feature = "light"))]
mod mined_sync_test;
#[cfg(all(test, feature = "light"))]
mod mined_test;
mod notify;
#[cfg(feature = "light")]
mod obstacle;
mod pages;
mod params;
#[cfg(feature = "light")]
mod poll;
#[cfg(feature = "light")]
mod prefetch;
mod raw_transaction;
mod render;
mod reply;
mod request;
mod revert;
#[cfg(feature = "light")]
mod rootlight;
#[cfg(all(feature = "dev", feature = "light"))]
pub mod server;
#[cfg(feature = "light")]
mod session;
#[cfg(feature = "light")]
mod share;
mod signed;
mod state;
#[cfg(feature = "catalogue")]
mod support;
mod table;
#[cfg(feature = "local")]
mod trace;
mod transactions;
#[cfg(feature = "local")]
mod witness;
#[cfg(all(test, feature = "light"))]
mod work_start_test;

#[cfg(feature = "light")]
pub use beside::{Answered, Asked, Beside, Part, Question};
pub use chain::sync_status;
#[cfg(feature = "light")]
pub use client::{Client, MAX_WAITING, SharedClient};
pub use connection::{Connection, Selection};
pub use dispatch::Dispatcher;
pub use envelope::MAX_RESPONSE;
pub use error::{EnvelopeError, ParamError, RpcError};
#[cfg(feature = "local")]
pub use local_client::{LocalClient, LocalMessage};
#[cfg(feature = "local")]
pub use log_stream::{LogStream, ReplyOrLogs};
pub use logs::{range_failure, watch as log_watch};
pub use message::Message;
#[cfg(feature = "dev")]
pub use method::Write;
pub use method::{BRIEF_COST, Done, Effect, Failure, Handler, Method, Pages, Param, Read, Subject, Watching};
pub use notify::{MORE_NOTIFICATIONS, News, changes_of, notification};
#[cfg(feature = "light")]
pub use obstacle::{MAX_FACT_BYTES, MAX_FACTS, MAX_ROUNDS};
pub use params::{BlockParam, MAX_PROOF_KEYS, Params};
pub use reply::{Reply, Response};
pub use request::Request;
pub use revert::reason as revert_reason;
#[cfg(feature = "light")]
pub use session::{Session, SessionStep};
#[cfg(feature = "light")]
pub use share::{Alone, Lock, Share};
#[cfg(feature = "catalogue")]
pub use support::{Mode, Support};
pub use table::{UNAVAILABLE, methods};
#[cfg(feature = "local")]
pub use trace::{Filter as TraceFilter, traced_block};
#[cfg(feature = "local")]
pub use witness::MAX_WITNESS_BYTES;
