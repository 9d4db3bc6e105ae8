//! JSON-RPC: envelope, method table, parameters, handlers and sessions.
//!
//! A host reads a message (`message`), which becomes requests with their rows of the method table (`method`, `table`). On a light
//! client a `session` runs the handlers and names the facts to fetch; on a local chain `local_client` runs them at once. The
//! handlers are in the file of their subject (`blocks`, `logs`, `call` ...). What each `cfg` feature adds, the documentation of the
//! crate lists; browser modules are built without `catalogue`, and that of the light client without `local` and `dev`.

#[cfg(feature = "catalogue")]
mod access_list;
#[cfg(feature = "catalogue")]
mod account;
#[cfg(feature = "light")]
mod auxiliary;
#[cfg(all(feature = "light", feature = "local"))]
mod batches;
#[cfg(all(feature = "light", feature = "catalogue"))]
mod bitcoin;
#[cfg(feature = "light")]
mod bitcoin_status;
mod block_override;
mod blocks;
#[cfg(feature = "catalogue")]
mod bridge;
mod call;
mod call_object;
#[cfg(all(feature = "light", feature = "local"))]
mod call_witness;
mod caller;
mod chain;
#[cfg(feature = "light")]
mod client;
#[cfg(feature = "catalogue")]
mod config;
#[cfg(feature = "local")]
mod debug;
#[cfg(feature = "dev")]
mod dev;
#[cfg(feature = "catalogue")]
mod discover;
mod entries;
pub mod envelope;
mod error;
#[cfg(feature = "light")]
mod fetch_refusal;
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
#[cfg(feature = "light")]
mod lock;
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
mod mode;
mod named;
mod notify;
#[cfg(all(feature = "catalogue", feature = "local"))]
mod otterscan;
mod page_access;
mod params;
#[cfg(feature = "light")]
mod poll;
#[cfg(feature = "light")]
mod prefetch;
mod progress;
#[cfg(feature = "catalogue")]
mod proof;
#[cfg(feature = "catalogue")]
mod raw;
mod raw_transaction;
mod render;
mod reply;
mod request;
mod revert;
#[cfg(feature = "light")]
mod rootlight;
#[cfg(feature = "light")]
mod round;
pub mod row;
#[cfg(feature = "light")]
mod session;
mod shared_gas;
mod signed;
mod simulate;
mod simulation_error;
mod state;
#[cfg(all(feature = "catalogue", feature = "local"))]
mod storage_range;
#[cfg(feature = "catalogue")]
mod storage_values;
#[cfg(all(feature = "dev", feature = "light"))]
mod subjects;
#[cfg(feature = "catalogue")]
mod support;
mod table;
#[cfg(feature = "local")]
mod trace;
#[cfg(feature = "local")]
mod traced_run;
mod transactions;
#[cfg(all(test, feature = "light"))]
mod window_rounds_test;
#[cfg(all(test, feature = "light"))]
mod window_start_test;
#[cfg(feature = "local")]
mod witness;
#[cfg(feature = "catalogue")]
mod work;
#[cfg(all(test, feature = "light"))]
mod work_start_test;

#[cfg(feature = "light")]
pub use auxiliary::{
    AuxiliaryAnswer, AuxiliaryRequest, AuxiliarySource, EvaluateResponse, HostAnswer, HostQuestion,
    PartialResult,
};
#[cfg(feature = "light")]
pub use bitcoin_status::BitcoinStatus;
pub use caller::{Caller, Selection};
pub use chain::sync_status;
#[cfg(feature = "light")]
pub use client::{Client, MAX_WAITING, SharedClient};
pub use envelope::MAX_RESPONSE;
pub use error::{EnvelopeError, ParamError, RpcError};
#[cfg(feature = "light")]
pub use fetch_refusal::{MAX_FACT_BYTES, MAX_FACTS, MAX_MESSAGE_REQUESTS, MAX_ROUNDS};
#[cfg(feature = "local")]
pub use local_client::LocalClient;
#[cfg(feature = "light")]
pub use lock::{Lock, LockKind, SingleOwner};
#[cfg(feature = "local")]
pub use log_stream::{LogStream, ReplyOrLogs};
pub use logs::{filter_spec as log_filter_spec, range_failure};
pub use message::{Call, Dispatcher, Message, MessageEntry};
#[cfg(feature = "dev")]
pub use method::Write;
pub use method::{
    BRIEF_COST, Effect, Failure, FilterHandler, Handler, HandlerOutput, HandlerResult, Indexed, Method,
    ModeRefusal, PageAccess, Param, ParamSubject, Read, Runs,
};
pub use mode::Mode;
pub use notify::{MORE_NOTIFICATIONS, Notifications, notification, poll_message};
pub use params::{BlockParam, MAX_PROOF_KEYS, Params};
pub use progress::MessageProgress;
pub use reply::{Marks, Reply, Response};
pub use request::Request;
pub use revert::reason as revert_reason;
#[cfg(feature = "light")]
pub use round::{PartResponses, Round, RoundPart};
#[cfg(feature = "light")]
pub use session::{Session, SessionStep};
pub use simulation_error::SimulationError;
#[cfg(feature = "catalogue")]
pub use support::Support;
pub use table::{IMPOSSIBLE, UNAVAILABLE, methods};
#[cfg(feature = "local")]
pub use trace::{TraceFilter, traced_block};
#[cfg(feature = "local")]
pub use witness::MAX_WITNESS_BYTES;
