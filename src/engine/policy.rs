//! The settings and limits that hold for all requests on a view.

use core::any::Any;

#[cfg(feature = "catalogue")]
use crate::exec::trace::ScriptEngine;
use crate::{consensus::Network, exec::CallPolicy};

/// The settings and limits that hold for all requests on a view: the host's, the chain's, and when a run is interrupted.
#[derive(Clone, Copy)]
pub struct Policy<'a> {
    /// The network's parameters.
    pub network: &'a Network,
    /// The client's name and version as `web3_clientVersion` returns them.
    pub version: &'a str,
    /// The limits and defaults of calls.
    pub calls: CallPolicy,
    /// The required depth: blocks with fewer blocks on top are refused. On a light client that also requires Bitcoin blocks, the depth
    /// of the newest block that has enough of them, if that is greater.
    pub min_depth: u64,
    /// Most blocks that one request for logs may cover.
    pub max_log_blocks: u64,
    /// Most blocks that one request for traces may cover.
    pub max_traced_blocks: u64,
    /// Whether messages run inline: for a fraction of a millisecond on the thread that has received them, before they move to another
    /// thread. A run that cannot be interrupted in that time counts as interrupted at once.
    pub is_inline: bool,
    /// Tells whether the present run has used up its time.
    pub interrupt: &'a dyn Fn() -> bool,
    /// The host's clock in seconds since 1970. Views of executed chains set it; the view of a light client does not.
    pub now: Option<u64>,
    /// The host's data for its own rows of the method table ([`rpc::row`](crate::rpc::row)).
    pub host: Option<&'a (dyn Any + Send + Sync)>,
    /// The host's engine for tracers that are scripts, if it has one. Browsers run no scripts; their modules leave out `catalogue`.
    #[cfg(feature = "catalogue")]
    pub scripts: Option<&'a dyn ScriptEngine>,
}

impl<'a> Policy<'a> {
    /// The policy of a host without a name, without limits and without a clock.
    #[must_use]
    pub fn of(network: &'a Network) -> Self {
        Self {
            network,
            version: "",
            calls: CallPolicy::default(),
            min_depth: 0,
            max_log_blocks: u64::MAX,
            max_traced_blocks: u64::MAX,
            is_inline: false,
            interrupt: &|| false,
            now: None,
            host: None,
            #[cfg(feature = "catalogue")]
            scripts: None,
        }
    }

    /// Whether the present run has used up its time.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        (self.interrupt)()
    }
}
