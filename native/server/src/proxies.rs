//! Proxies that the operator trusts (`--trusted-proxy`): the addresses of their clients, and the ids of their requests, which
//! they state in headers.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use data_encoding::HEXLOWER;
use ipnet::IpNet;
use rootlight_limits::caller_id::CallerId;

use super::connection_slots::ClientConnection;
use super::request_source::RequestSource;
use crate::addresses;

/// The header with the id of a request, in requests of proxies and in all responses.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id of a request that is taken from a proxy, in bytes. UUIDs have 36.
const MAX_ID_LENGTH: usize = 64;

/// The header in which each proxy appends the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Number of addresses in the header that are read, from the last one. Chains of proxies are much shorter.
const MAX_HOPS: usize = 16;

/// The proxies whose headers about their clients are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// Networks of proxies.
    pub networks: Vec<IpNet>,
    /// Whether the clients of the server's Unix socket are such proxies.
    pub unix: bool,
}

/// One value of `--trusted-proxy`: a network, an address, or `unix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustedProxy {
    /// A network.
    Network(IpNet),
    /// All clients of a Unix socket.
    Unix,
}

impl FromStr for TrustedProxy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map(Self::Network).map_err(|_| "must be a network such as 10.0.0.0/8, an address, or unix")
    }
}

impl FromIterator<TrustedProxy> for Proxies {
    fn from_iter<T: IntoIterator<Item = TrustedProxy>>(all: T) -> Self {
        let mut proxies = Self::default();
        for proxy in all {
            match proxy {
                TrustedProxy::Network(network) => proxies.networks.push(network),
                TrustedProxy::Unix => proxies.unix = true,
            }
        }
        proxies
    }
}

impl Proxies {
    /// The source of a request, before its origin is checked: until then the request has the fewest rights.
    pub(crate) fn source(&self, connection: &ClientConnection, headers: &HeaderMap) -> RequestSource {
        let id = connection.id;
        let proxied = if connection.is_unix { self.unix } else { self.trusts(connection.source) };
        let forwarded = if proxied { self.forwarded(headers) } else { None };
        let address = forwarded.unwrap_or(connection.source);
        let id =
            forwarded.map_or(id, |address| CallerId { connection: id.connection, ..CallerId::new(address) });
        let behind_proxies = self.unix || !self.networks.is_empty();
        RequestSource {
            id,
            address,
            proxied,
            behind_proxies,
            foreign_page: Some(Arc::default()),
            admits_all_pages: false,
            is_named_locally: false,
        }
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| addresses::has(network, address))
    }

    /// The last address in the header that is not a trusted proxy; if all are, the earliest one that was read. An entry that is
    /// not an address ends the search, because the sender of that entry could have written anything before it.
    fn forwarded(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let values: Vec<&str> =
            headers.get_all(FORWARDED_FOR).iter().map(|value| value.to_str().unwrap_or("")).collect();
        let mut client = None;
        for entry in values.iter().rev().flat_map(|value| value.rsplit(',')).take(MAX_HOPS) {
            let Some(address) = address(entry.trim()) else { break };
            client = Some(address);
            if !self.trusts(address) {
                break;
            }
        }
        client
    }
}

/// The id of a request, by which log lines of proxies, of this server and of clients can be matched: the id that a trusted proxy
/// sent (`proxied`) if it is valid, or else a random one of 16 hexadecimal digits.
pub(crate) fn request_id(headers: &HeaderMap, proxied: bool) -> HeaderValue {
    let given = headers.get(REQUEST_ID).filter(|id| proxied && is_valid_id(id.as_bytes())).cloned();
    given.unwrap_or_else(|| {
        let mut text = [0; 16];
        HEXLOWER.encode_mut(&fastrand::u64(..).to_be_bytes(), &mut text);
        HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("0"))
    })
}

/// Letters, digits and `-_.:` only, so that an id cannot forge log lines or markup.
fn is_valid_id(id: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    !id.is_empty() && id.len() <= MAX_ID_LENGTH && id.iter().all(plain)
}

/// An address with or without port and brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::service::Counts;

    fn client(proxies: &[&str], peer: &str, forwarded: &[&str]) -> (String, bool) {
        let proxies: Proxies = proxies.iter().map(|text| text.parse::<TrustedProxy>().unwrap()).collect();
        let connection = ClientConnection::new(Some(peer.parse().unwrap()), &Counts::default());
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        let source = proxies.source(&connection, &headers);
        assert_eq!(source.id.connection, connection.id.connection);
        assert_eq!(source.id.address, CallerId::new(source.address).address);
        (source.address.to_string(), source.proxied)
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_trusted_proxy() {
        let proxies = ["10.0.0.0/8", "192.168.0.1", "fd00:1::/32", "fd00:2::5"];
        for (peer, forwarded, expected) in [
            ("10.0.0.1", &["1.2.3.4"][..], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", &["6.6.6.6", "1.2.3.4, 192.168.0.1"], "1.2.3.4"),
            ("10.0.0.1", &["1.2.3.4:5678"], "1.2.3.4"),
            ("10.0.0.1", &["[2001:db8:1:2:3::4]:80"], "2001:db8:1:2:3::4"),
            ("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1"),
            ("::ffff:10.0.0.1", &["1.2.3.4"], "1.2.3.4"),
            ("fd00:1::1", &["1.2.3.4"], "1.2.3.4"),
            ("fd00:2::5", &["1.2.3.4"], "1.2.3.4"),
            // Only proxies are in the header: the first of them counts.
            ("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            // An entry that is no address, and the entries before it, do not count.
            ("10.0.0.1", &["1.2.3.4, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["1.2.3.4, unknown, 10.0.0.2"], "10.0.0.2"),
            ("10.0.0.1", &[""], "10.0.0.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
        ] {
            assert_eq!(
                client(&proxies, peer, forwarded),
                (expected.to_owned(), true),
                "{peer} {forwarded:?}"
            );
        }
        let long = ["1.2.3.4"].into_iter().chain(["10.0.0.2"; MAX_HOPS]).collect::<Vec<_>>().join(",");
        assert_eq!(client(&proxies, "10.0.0.1", &[&long]).0, "10.0.0.2", "the search is bounded");
    }

    #[test]
    fn the_forwarded_header_of_untrusted_clients_is_ignored() {
        let header = &["1.2.3.4"][..];
        assert_eq!(client(&["10.0.0.0/8"], "11.0.0.1", header), ("11.0.0.1".to_owned(), false));
        assert_eq!(client(&["fd00:2::5"], "fd00:2::6", header), ("fd00:2::6".to_owned(), false));
        assert_eq!(client(&[], "127.0.0.1", header), ("127.0.0.1".to_owned(), false));
        assert_eq!(client(&["unix"], "127.0.0.1", header), ("127.0.0.1".to_owned(), false));
    }

    #[test]
    fn unix_socket_clients_are_proxies_only_if_configured() {
        let connection = ClientConnection::new(None, &Counts::default());
        let mut headers = HeaderMap::new();
        headers.insert(FORWARDED_FOR, "1.2.3.4".parse().unwrap());
        let local = "127.0.0.0/8".parse().unwrap();
        let without = Proxies { networks: vec![local], unix: false };
        assert!(without.source(&connection, &headers).is_local(), "networks do not include Unix sockets");
        let with = Proxies { networks: Vec::new(), unix: true };
        let source = with.source(&connection, &headers);
        assert_eq!((source.id.address.to_string().as_str(), source.is_local()), ("1.2.3.4", false));
    }

    #[test]
    fn no_request_through_a_proxy_counts_as_local() {
        let proxies: Proxies = ["127.0.0.1".parse::<TrustedProxy>().unwrap()].into_iter().collect();
        let connection = ClientConnection::new(Some(Ipv4Addr::LOCALHOST.into()), &Counts::default());
        assert!(!proxies.source(&connection, &HeaderMap::new()).is_local());
        for (own, expected) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("::2", false),
        ] {
            let connection = ClientConnection::new(Some(own.parse().unwrap()), &Counts::default());
            assert_eq!(
                Proxies::default().source(&connection, &HeaderMap::new()).is_local(),
                expected,
                "{own}"
            );
        }
        assert!("10.0.0.0/33".parse::<TrustedProxy>().is_err() && "".parse::<TrustedProxy>().is_err());
    }

    fn id_of(value: &[u8], proxied: bool) -> HeaderValue {
        let headers = HeaderMap::from_iter([(REQUEST_ID, HeaderValue::from_bytes(value).unwrap())]);
        request_id(&headers, proxied)
    }

    #[test]
    fn a_valid_id_of_a_proxy_is_kept() {
        let uuid = b"018f5c3e-7c6b-7d2a-9b1e-2f1a3b4c5d6e";
        assert_eq!(id_of(uuid, true), &uuid[..]);
        assert_eq!(id_of(&[b'x'; MAX_ID_LENGTH], true), &[b'x'; MAX_ID_LENGTH][..]);
        assert_ne!(id_of(uuid, false), &uuid[..], "only proxies give ids");
    }

    #[test]
    fn other_ids_are_replaced() {
        for bad in
            [&b""[..], &[b'x'; MAX_ID_LENGTH + 1], b"a b", b"a\tb", b"<script>", b"\xff", b"a\"b", b"{a}"]
        {
            let new = id_of(bad, true);
            assert_eq!(new.len(), 16, "{bad:?}");
            assert!(new.as_bytes().iter().all(u8::is_ascii_hexdigit));
        }
        assert_ne!(id_of(b"", true), id_of(b"", true));
    }
}
