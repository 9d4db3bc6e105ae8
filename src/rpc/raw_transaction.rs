//! `eth_sendRawTransaction`: signed transactions, for the local pool or for upstreams.

use super::method::{Handler, Method, Pages, required, told};
use crate::engine::Level;

pub(super) const METHODS: &[Method] = &[Method {
    name: "eth_sendRawTransaction",
    aliases: &[],
    params: &[required("transactionData", "DATA")],
    result: told("HASH"),
    level: Level::Forwarded,
    cost: 20,
    pages: Pages::Any,
    doc: told(
        "Takes a signed transaction into the pool; with instant mining it is mined before the answer. A light client forwards it to upstreams.",
    ),
    handler: Handler::Forward(pool),
}];

#[cfg(feature = "local")]
use super::dev::send_raw as pool;

/// Without a local chain there is no pool. A light client's session forwards transactions to upstreams before it
/// reaches this.
#[cfg(not(feature = "local"))]
fn pool(
    _: &mut dyn crate::engine::Node,
    _: super::params::Params<'_>,
) -> Result<super::method::Done, super::method::Failure> {
    Err(super::error::RpcError::NeedsLocalChain("eth_sendRawTransaction").into())
}
