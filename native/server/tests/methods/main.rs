//! Tests of the methods and profiles of the server, on chains that run in this process.

#[path = "../../../../tests/rpc/fixture.rs"]
#[allow(dead_code)]
mod fixture;
#[path = "../../../../tests/support/mod.rs"]
mod support;

mod bans;
mod docs;
mod hosted;
mod hosted_recorded;
mod modes;

use std::sync::Arc;

use rootlight_server::bans::HostBans;
use rootlight_server::methods::dispatcher;
use support::dev::DevClient;

/// The development chain of a server, with its methods and its bans.
fn served(mut dev: DevClient) -> DevClient {
    dev.client.node().set_host(Arc::<HostBans>::default());
    dev.client = dev.client.with_dispatcher(dispatcher().clone());
    dev
}
