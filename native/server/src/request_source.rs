//! The source of a request. `Proxies::source` makes it from the connection and the headers of proxies, and `Access::check` adds
//! what the `Origin` and `Host` headers show.

use std::net::IpAddr;
use std::sync::Arc;

use rootlight_limits::caller_id::CallerId;

/// Where a request comes from, as its connection, the proxies and its headers state. Once the request is admitted, it belongs to
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
    /// Whether the operator trusts any proxy at all. The server is then behind one, which may also pass on requests over a
    /// connection that does not look like that of a trusted proxy.
    pub(crate) behind_proxies: bool,
    /// The origin of the page that sent the request, by the `Origin` header, which browsers set; `None` for a program, and for
    /// a page that may call every method. Before `Access::check` an empty origin, which has the fewest rights.
    pub(crate) foreign_page: Option<Arc<str>>,
    /// Whether the page may call methods of [`rootlight::rpc::PageAccess::Own`] because every page may. `false` before
    /// `Access::check`.
    pub(crate) admits_all_pages: bool,
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
