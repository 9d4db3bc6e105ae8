//! `eth_sendRawTransaction`: signed transactions, for the local pool or for upstreams.

use super::method::{Handler, Method, PageAccess, ParamSubject, doc_text, required};
use crate::engine::Level;

pub(super) const METHODS: &[Method] = &[Method {
    name: "eth_sendRawTransaction",
    aliases: &[],
    params: &[required("transactionData", "DATA").of(ParamSubject::Signed)],
    result: doc_text("HASH"),
    level: Level::Forwarded,
    cost: 20,
    pages: PageAccess::Any,
    doc: doc_text(
        "Takes a signed transaction into the pool; with instant mining it is mined before the answer. A light client forwards it to upstreams.",
    ),
    handler: HANDLER,
}];

#[cfg(feature = "dev")]
const HANDLER: Handler = Handler::Forward(super::dev::send_raw);

/// Without a development chain there is no pool. A light client's session forwards transactions to upstreams before it
/// reaches this.
#[cfg(not(feature = "dev"))]
const HANDLER: Handler = Handler::Forward();
