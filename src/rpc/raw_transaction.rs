//! `eth_sendRawTransaction`: signed transactions, for the local pool or for upstreams.

use super::method::{Handler, Method, ParamSubject, Runs, required};
use crate::engine::Level;

pub(super) const METHODS: &[Method] = &[Method::new(
    "eth_sendRawTransaction",
    &[required("transactionData", "DATA").of(ParamSubject::Signed)],
    "HASH",
    "Takes a signed transaction into the pool; with instant mining it is mined before \
         the answer. A light client forwards it to upstreams.",
    HANDLER,
)
.at(Level::Forwarded)
.runs(Runs::Transaction)
.costs(20)];

#[cfg(feature = "dev")]
const HANDLER: Handler = Handler::Forward(super::dev::send_raw);

/// Without `dev` there is no pool, so the variant has no function. A light client needs none: its session forwards transactions to
/// upstreams.
#[cfg(not(feature = "dev"))]
const HANDLER: Handler = Handler::Forward();
