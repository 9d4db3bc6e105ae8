//! Tests of calls, transactions and blocks that are executed, and of native contracts.

#[path = "../support/mod.rs"]
mod support;

mod bridge;
mod build;
mod call_recorded;
mod call_semantics;
mod eras;
mod estimates_sent;
mod fuzz;
mod lists;
mod lists_recorded;
mod local_chain;
mod native;
mod native_logs;
mod reference_json;
mod replay;
mod rules;
mod touches;
mod trace_calls;
