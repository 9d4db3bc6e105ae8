//! Tests of the HTTP and WebSocket server over real sockets.

#[path = "../common/mod.rs"]
mod common;

mod apart;
mod bans;
mod batches;
mod fair;
mod http;
mod keys;
mod logs;
mod operations;
mod page;
mod pages;
mod recorded;
mod subscriptions;
mod tls;
mod unread;
mod ws;
