//! The source of a request, as its connection, the proxies and its headers show it.

use std::net::IpAddr;
use std::sync::Arc;

use rootlight_limits::caller_id::CallerId;

/// The sender of a request according to its `Origin` header, which browsers set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallerOrigin {
    /// A program, or a page that may call every method.
    Trusted,
    /// A page of this origin, on a server that admits every page (`Origins::Any`): the page may call methods of
    /// [`rootlight::rpc::PageAccess::Own`].
    Admitted(Arc<str>),
    /// A page of this origin, which may call methods of [`rootlight::rpc::PageAccess::Any`] only.
    Foreign(Arc<str>),
}

/// The default is the origin with the fewest rights.
impl Default for CallerOrigin {
    fn default() -> Self {
        Self::Foreign(Arc::default())
    }
}

impl CallerOrigin {
    /// The origin, if the sender is a page that may not call every method.
    pub(crate) fn foreign_page(&self) -> Option<String> {
        match self {
            Self::Trusted => None,
            Self::Admitted(origin) | Self::Foreign(origin) => Some(origin.to_string()),
        }
    }
}

/// Where a request comes from, as its connection, the proxies and its headers say. Once it is admitted, the request belongs to
/// a `Caller`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestSource {
    /// The client's address, or the /64 network of an IPv6 address, and the number of its connection. Work and memory are divided
    /// by this id.
    pub(crate) id: CallerId,
    /// The client's whole address, with which rules are compared.
    pub(crate) address: IpAddr,
    /// Whether a trusted proxy passed the request on. The rights of clients of this machine are never given to such a
    /// request, because the proxy may be misconfigured and the address in the header a claim of the client.
    pub(crate) proxied: bool,
    /// Whether the operator trusts any proxy: the server is behind one, which may also pass on requests in another way.
    pub(crate) behind_proxies: bool,
    /// The page that sent the request. Before `Access::check` the origin with the fewest rights.
    pub(crate) origin: CallerOrigin,
    /// Whether the request is addressed to this machine by `localhost` or a loopback address: in its `Host` header, in its target
    /// (`GET http://name/`), or in both where it has both. A proxy that adds no header may still pass on the name by which the
    /// service is known. `false` before `Access::check`, which refuses a request without a name.
    pub(crate) is_named_locally: bool,
}

impl RequestSource {
    /// Whether the request comes from this machine, without a proxy.
    pub(crate) fn is_local(&self) -> bool {
        !self.proxied && self.address.is_loopback()
    }
}
