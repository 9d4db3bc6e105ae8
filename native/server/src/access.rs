//! Access control by the `Host` and `Origin` headers: the check of the host name against DNS rebinding, and the web pages that
//! may call. It comes before the checks of the path and the API key (`admission.rs`).

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};

use super::request_source::RequestSource;

/// The longest origin, in bytes, that an error repeats. Real origins are a scheme, a host and a port; the longest host name has
/// 253 bytes.
const SHOWN_ORIGIN: usize = 300;

/// The web pages that the operator allows to call (`--cors`). Pages of this machine always may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// The option is not given. Any page may call methods that only read or that send signed transactions; the other
    /// methods ([`rootlight::rpc::PageAccess::Own`]) are for pages of this machine.
    Unnamed,
    /// `*`: every page may use keys and change the chain. Methods that show the host's upstreams or pool stay for pages of this
    /// machine.
    Any,
    /// The pages that may call every method; other pages may call none. The comparison ignores case (`https://wallet.example`).
    List(Vec<String>),
}

impl Origins {
    /// A warning to the operator if these pages are more than the operator may expect; `None` if not.
    pub(crate) fn warning(&self) -> Option<&'static str> {
        let Self::List(names) = self else { return None };
        names.iter().any(|name| name == "null").then_some(
            "--cors null: every web page can make a sandboxed frame, whose origin is null, so every page may call every \
             method and use the keys of a development chain. Serve the page from localhost instead.",
        )
    }

    /// Parses a comma-separated list; `*` stands for all pages.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let names = names(text);
        if names.iter().any(|name| name == "*") { Self::Any } else { Self::List(names) }
    }
}

/// The entries of a comma-separated list in lower case.
pub fn names(text: &str) -> Vec<String> {
    let names = text.split(',').map(|name| name.trim().to_ascii_lowercase());
    names.filter(|name| !name.is_empty()).collect()
}

/// The access rules of one server.
#[derive(Debug, Clone)]
pub struct Access {
    /// The web pages that may call.
    pub origins: Origins,
    /// Host names, in lower case and without port, that the `Host` header may contain besides `localhost` and IP
    /// addresses; `*` stands for all. A web page whose domain name was changed to resolve to this server (DNS
    /// rebinding) sends its own name.
    pub hosts: Vec<String>,
}

/// The reason why a request is refused; its text goes into the error body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccessRefusal {
    /// The `Host` header names another host.
    #[error(
        "host not allowed: this server answers for localhost, IP addresses and names given by --allow-host"
    )]
    Host,
    /// The `Origin` header is not in the list.
    #[error("origin not allowed: {}", advice(.0))]
    Origin(String),
}

/// The value of `Access-Control-Allow-Origin`, and whether the value depends on the request, which a `Vary` header must then
/// say.
pub(crate) type AllowedOrigin = (HeaderValue, bool);

impl Access {
    /// Checks a request's headers, and notes in the source of the request which page sent the request and whether the request
    /// names this machine. Returns the header that lets the page read the answer; `None` if no page sent the request.
    ///
    /// # Errors
    /// The rule that refuses the request. The source of a refused request stays one of a page with the fewest rights, as
    /// `Proxies::source` has made it.
    pub(crate) fn check(
        &self,
        headers: &HeaderMap,
        authority: Option<&str>,
        source: &mut RequestSource,
    ) -> Result<Option<AllowedOrigin>, AccessRefusal> {
        // `Some(None)` for a header that is not ASCII, which names no host.
        let given = headers.get(header::HOST).map(|value| value.to_str().ok());
        let mut names = given.into_iter().chain(authority.map(Some));
        let is_local = names.all(|name| name.is_some_and(is_loopback_host));
        let host = given.flatten().or(authority);
        if !host.is_some_and(|host| self.answers_for(host)) {
            return Err(AccessRefusal::Host);
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = origins.next() else {
            (source.foreign_page, source.is_named_locally) = (None, is_local);
            return Ok(None);
        };
        // A request with several origins is treated as one of an unknown origin.
        let text = if origins.next().is_none() { origin.to_str().unwrap_or("") } else { "" };
        (source.foreign_page, source.is_named_locally) = (self.foreign_page(text)?, is_local);
        source.admits_all_pages = self.origins == Origins::Any && source.foreign_page.is_some();
        Ok(Some(match self.origins {
            Origins::Any | Origins::Unnamed => (HeaderValue::from_static("*"), false),
            Origins::List(_) => (origin.clone(), true),
        }))
    }

    /// The origin of a page, if the page may not call every method.
    fn foreign_page(&self, origin: &str) -> Result<Option<Arc<str>>, AccessRefusal> {
        let is_named = |names: &[String]| names.iter().any(|name| name.eq_ignore_ascii_case(origin));
        match &self.origins {
            _ if is_of_this_machine(origin) => Ok(None),
            Origins::List(names) if is_named(names) => Ok(None),
            Origins::List(_) => Err(AccessRefusal::Origin(shown(origin))),
            Origins::Any | Origins::Unnamed => Ok(Some(shown(origin).into())),
        }
    }

    /// Whether a host name, with or without port, is one of this server: `localhost`, an IP address or an allowed name.
    pub(crate) fn answers_for(&self, host: &str) -> bool {
        let name = without_port(host).trim_end_matches('.');
        is_localhost(name)
            || name.parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name) || known == "*")
    }
}

/// Advice about an origin that is not in the list. Every sandboxed frame of every page sends `null`.
fn advice(origin: &str) -> String {
    match origin {
        "null" => "this page has no origin of its own, serve it from localhost".to_owned(),
        origin => format!("to let this page call, start with: --cors {origin}"),
    }
}

/// Whether an origin is one of this machine: `localhost` or a loopback address, over HTTP or HTTPS, on any port.
fn is_of_this_machine(origin: &str) -> bool {
    let origin = origin.to_ascii_lowercase();
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(is_loopback_host)
}

/// Whether a host, with or without port, is `localhost`, a name below it, or a loopback address.
fn is_loopback_host(host: &str) -> bool {
    let name = without_port(host);
    is_localhost(name) || name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Whether a name is `localhost` or below it. No DNS server of others can change what these names resolve to.
fn is_localhost(name: &str) -> bool {
    const NAME: &[u8] = b"localhost";
    let (name, at) = (name.as_bytes(), name.len().saturating_sub(NAME.len()));
    name[at..].eq_ignore_ascii_case(NAME) && (at == 0 || name[at - 1] == b'.')
}

/// The origin as an answer may repeat it: `ORIGIN` for long ones and for those with characters that no origin has,
/// which could mislead the reader.
fn shown(origin: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-._:/[]".contains(c);
    match origin {
        "" => "ORIGIN".to_owned(),
        text if text.len() <= SHOWN_ORIGIN && text.chars().all(plain) => text.to_owned(),
        _ => "ORIGIN".to_owned(),
    }
}

/// The host part of `name:port` or `[v6]:port`; the port may be missing.
fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_slots::ClientConnection;
    use crate::proxies::Proxies;
    use crate::service::Counts;

    /// The source of a request with these headers, as `Access::check` leaves the source.
    fn checked(
        access: &Access,
        headers: &HeaderMap,
        authority: Option<&str>,
    ) -> Result<RequestSource, AccessRefusal> {
        let connection = ClientConnection::new(None, &Counts::default());
        let mut source = Proxies::default().source(&connection, headers);
        access.check(headers, authority, &mut source).map(|_| source)
    }

    fn access(origins: Origins, hosts: &[&str]) -> Access {
        Access { origins, hosts: hosts.iter().map(|host| (*host).to_owned()).collect() }
    }

    #[test]
    fn the_server_answers_for_localhost_ip_addresses_and_allowed_names_only() {
        let strict = access(Origins::Any, &[]);
        for good in [
            "localhost",
            "LOCALHOST:4444",
            "localhost.",
            "app.localhost:1",
            "127.0.0.1:4444",
            "[::1]:4444",
            "[::1]",
            "::1",
            "10.0.0.7:80",
        ] {
            assert!(strict.answers_for(good), "{good}");
        }
        for bad in [
            "evil.com",
            "evil.com:4444",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "",
            "notlocalhost",
            "[evil]",
        ] {
            assert!(!strict.answers_for(bad), "{bad}");
        }
        let named = access(Origins::Any, &["node.example"]);
        assert!(named.answers_for("Node.Example:4444") && !named.answers_for("evil.com"));
        assert!(access(Origins::Any, &["*"]).answers_for("evil.com"));
    }

    #[test]
    fn only_pages_of_localhost_are_of_this_machine() {
        for own in [
            "http://localhost",
            "https://LOCALHOST:3000",
            "http://app.localhost:1",
            "http://127.0.0.1:8080",
            "http://127.8.9.1",
            "http://[::1]:5",
        ] {
            assert!(is_of_this_machine(own), "{own}");
        }
        for foreign in [
            "null",
            "",
            "file://",
            "http://localhost.evil.com",
            "http://127.0.0.1.nip.io",
            "http://192.168.0.1",
            "http://evil.com:80",
            "chrome-extension://localhost",
            "http://evil.com/http://localhost",
        ] {
            assert!(!is_of_this_machine(foreign), "{foreign}");
        }
    }

    #[test]
    fn listed_origins_and_own_pages_are_trusted() {
        assert_eq!(Origins::parse("a.example, *"), Origins::Any);
        let list = access(Origins::parse("https://a.example , http://b.example"), &[]);
        assert_eq!(list.foreign_page("https://A.example"), Ok(None));
        assert_eq!(list.foreign_page("http://localhost:3000"), Ok(None));
        for foreign in ["https://a.example.evil", "null", ""] {
            assert!(matches!(list.foreign_page(foreign), Err(AccessRefusal::Origin(_))), "{foreign}");
        }
        let unnamed = access(Origins::Unnamed, &[]);
        assert_eq!(unnamed.foreign_page("null"), Ok(Some("null".into())));
        assert_eq!(unnamed.foreign_page("http://x\"<script>"), Ok(Some("ORIGIN".into())));
    }

    #[test]
    fn errors_do_not_advise_to_allow_the_origin_null() {
        let list = access(Origins::parse("https://a.example"), &[]);
        let advice = |origin: &str| list.foreign_page(origin).unwrap_err().to_string();
        assert!(advice("https://b.example").contains("--cors https://b.example"));
        assert!(!advice("null").contains("--cors"), "{}", advice("null"));
        for (text, warned) in
            [("null", true), ("https://a.example,NULL", true), ("https://a.example", false), ("*", false)]
        {
            assert_eq!(Origins::parse(text).warning().is_some(), warned, "{text}");
        }
    }

    #[test]
    fn a_page_that_is_admitted_with_all_others_is_not_trusted() {
        let all = access(Origins::Any, &[]);
        let of = |origin: &'static str| {
            let headers = [(header::HOST, "localhost"), (header::ORIGIN, origin)];
            let headers = HeaderMap::from_iter(headers.map(|(name, value)| (name, value.parse().unwrap())));
            let source = |access| {
                let source = checked(access, &headers, None).unwrap();
                (source.foreign_page, source.admits_all_pages)
            };
            (source(&all), source(&access(Origins::Unnamed, &[])))
        };
        let page = Some("https://any.example".into());
        assert_eq!(of("https://any.example"), ((page.clone(), true), (page, false)));
        assert_eq!(of("http://localhost:3000"), ((None, false), (None, false)));
    }

    #[test]
    fn a_request_with_two_origins_is_not_trusted() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        headers.append(header::ORIGIN, HeaderValue::from_static("http://localhost"));
        let unnamed = access(Origins::Unnamed, &[]);
        let foreign_page = |headers: &HeaderMap| checked(&unnamed, headers, None).unwrap().foreign_page;
        assert_eq!(foreign_page(&headers), None);
        headers.append(header::ORIGIN, HeaderValue::from_static("http://evil.example"));
        assert_eq!(foreign_page(&headers), Some("ORIGIN".into()));
    }

    #[test]
    fn a_request_is_addressed_to_this_machine_by_its_host_header() {
        let all = access(Origins::Any, &["*"]);
        let is_local = |host: &str, authority: Option<&str>| {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            checked(&all, &headers, authority).unwrap().is_named_locally
        };
        for host in ["localhost:4444", "127.0.0.1:4444", "[::1]:4444", "app.localhost"] {
            assert!(is_local(host, None), "{host}");
        }
        for host in ["node.example", "192.0.2.1:4444", "localhost.example"] {
            assert!(!is_local(host, Some("localhost")), "{host}");
            assert!(!is_local("localhost", Some(host)), "{host}");
        }
    }

    /// Proxies send whole targets, and those of HTTP/1.0 no `Host` header.
    #[test]
    fn a_request_without_a_host_header_is_addressed_by_its_target() {
        let all = access(Origins::Any, &["*"]);
        let is_local =
            |target| checked(&all, &HeaderMap::new(), target).map(|source| source.is_named_locally);
        assert_eq!(is_local(Some("localhost:4444")), Ok(true));
        for name in ["node.example", "192.0.2.1:4444", "localhost.example"] {
            assert_eq!(is_local(Some(name)), Ok(false), "{name}");
        }
        assert_eq!(is_local(None), Err(AccessRefusal::Host));
    }
}
