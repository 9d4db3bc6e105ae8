//! Admission of requests after the check of their host and origin (`access.rs`) and before their body is read: the base path,
//! the profile, and the API key in the path. An admitted request has a `Caller`, with its methods and rights.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, header};
use rootlight::rpc::Caller;

use super::key_access::KeyAccess;
use super::presented_key::PresentedKey;
use super::refusal::RequestRefusal;
use super::request_source::RequestSource;
use crate::keys::KeyText;
use crate::methods::Profile;

/// First segments of paths that the server uses itself or may use later. None of them is an API key.
const RESERVED: [&str; 7] = ["admin", "assets", "health", "livez", "metrics", "readyz", "websocket"];

/// The rules by which a server admits requests and gives them methods and rights. By default a server admits all requests, at
/// any path, under the profile of a node.
#[derive(Debug, Clone, Default)]
pub struct AdmissionRules {
    /// The profile.
    pub profile: Profile,
    /// The path below which the service is, without a slash at its end; empty for the root.
    pub base_path: String,
    /// The API keys; `None` if the service needs none.
    pub keys: Option<KeyAccess>,
    /// Whether programs of this machine are the operator without a key. `None`: they are under the profile of a node, unless
    /// a proxy is configured or the request names another host than this machine. Behind a proxy, requests of all clients
    /// come from this machine.
    pub local_operator: Option<bool>,
}

impl AdmissionRules {
    /// The part of a path after the base path; `None` if the path is not below it.
    pub(crate) fn below_base_path<'a>(&self, path: &'a str) -> Option<&'a str> {
        // Without a base path nothing is compared: comparing with an empty `String`, whose pointer dangles, takes some processors
        // longer than the rest of the admission.
        let rest = match self.base_path.as_str() {
            "" => path,
            base_path => path.strip_prefix(base_path)?,
        };
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }

    /// The refusal of an unknown path; it names the path of the service.
    fn not_found(&self) -> RequestRefusal {
        let key = if self.keys.is_some() { "/API_KEY" } else { "" };
        let path = format!("{}{key}", self.base_path);
        RequestRefusal::NotFound(if path.is_empty() { "/".to_owned() } else { path })
    }

    /// Checks the path, and the key in the path if the service needs one. Returns the caller, whose batches have at most
    /// `batch_limit` calls, and its key. The request's body is unread until then.
    pub(crate) async fn admit(
        &self,
        path: &str,
        headers: &HeaderMap,
        source: &RequestSource,
        batch_limit: usize,
    ) -> Result<(Caller, Option<Arc<PresentedKey>>), RequestRefusal> {
        let rest = self.below_base_path(path).ok_or_else(|| self.not_found())?;
        let key = match &self.keys {
            None => None,
            // Boxed, because most servers have no keys.
            Some(access) => Box::pin(self.admit_key(access, rest, headers, source)).await?,
        };
        let id = key.as_ref().map_or(source.id, |key| source.id.of_key(key.owner()));
        let caller = id
            .caller(source.foreign_page.as_deref().map(str::to_owned))
            .with_selection(self.profile.selection(key.as_deref().is_some_and(PresentedKey::debugs)))
            .with_rights(key.as_deref().map_or(0, PresentedKey::rights))
            .with_operator(self.is_operator(key.as_deref(), headers, source))
            .with_batch_limit(batch_limit)
            .admitting_all_pages(source.admits_all_pages);
        Ok((caller, key))
    }

    /// Checks the key in a path below the base path.
    async fn admit_key(
        &self,
        access: &KeyAccess,
        rest: &str,
        headers: &HeaderMap,
        source: &RequestSource,
    ) -> Result<Option<Arc<PresentedKey>>, RequestRefusal> {
        let Some(segment) = key_segment(rest).map_err(|NoService| self.not_found())? else {
            let open = access.anonymous && source.is_local();
            return if open { Ok(None) } else { Err(RequestRefusal::Missing) };
        };
        let key = KeyText::parse(segment).ok_or(RequestRefusal::Invalid)?;
        let record = access.keys.find(key.id()).await.map_err(|_| RequestRefusal::Unavailable)?;
        // `refuse` makes a wrong secret take as long as an unknown id, so that timing does not reveal which ids exist.
        let known = key.has(record.as_ref().map(|record| &record.hash));
        if record.is_some() && !known {
            access.keys.refuse(key.id()).await.map_err(|_| RequestRefusal::Unavailable)?;
        }
        let record = record.filter(|_| known).ok_or(RequestRefusal::Invalid)?;
        let key = PresentedKey::new(access, &record, origin(headers), source.address);
        key.check(&record)?;
        Ok(Some(Arc::new(key)))
    }

    /// Whether the caller is the operator: by its key, or as a program of this machine.
    pub(crate) fn is_operator(
        &self,
        key: Option<&PresentedKey>,
        headers: &HeaderMap,
        source: &RequestSource,
    ) -> bool {
        let local = || {
            let by_default =
                self.profile == Profile::Node && !source.behind_proxies && source.is_named_locally;
            self.local_operator.unwrap_or(by_default) && is_direct(headers, source)
        };
        key.map_or_else(local, PresentedKey::is_operator)
    }
}

/// Headers that proxies add. A request with one of them does not count as one of this machine, even if its connection comes from
/// this machine: a proxy here passes on a request of another machine.
pub(super) static OF_PROXIES: [HeaderName; 4] = [
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-real-ip"),
];

/// Whether a request comes from a program of this machine, and not through a proxy.
fn is_direct(headers: &HeaderMap, source: &RequestSource) -> bool {
    source.is_local() && !headers.keys().any(|name| OF_PROXIES.contains(name))
}

/// The path is neither that of the service nor that of the service with a key.
#[derive(Debug, PartialEq, Eq)]
struct NoService;

/// The segment of a path below the base path that is the key: `/KEY` or `/websocket/KEY`, with or without a slash at the end.
/// `None` if the path has no key.
fn key_segment(rest: &str) -> Result<Option<&str>, NoService> {
    let mut segments = rest.strip_prefix('/').unwrap_or(rest).split('/');
    let mut first = segments.next().unwrap_or_default();
    if first == "websocket" {
        first = segments.next().unwrap_or_default();
    }
    // One slash at the end is no further segment.
    let ends = match segments.next() {
        None => true,
        Some(last) => last.is_empty() && segments.next().is_none() && !first.is_empty(),
    };
    if !ends || RESERVED.contains(&first) {
        return Err(NoService);
    }
    Ok(Some(first).filter(|first| !first.is_empty()))
}

/// The origin of the page that sends a request; an empty text if there are several origins or one that is not ASCII.
fn origin(headers: &HeaderMap) -> Option<String> {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let first = origins.next()?;
    let only = origins.next().is_none();
    Some(first.to_str().ok().filter(|_| only).unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use rootlight_limits::caller_id::CallerId;

    use super::*;

    #[test]
    fn the_key_is_the_only_segment_of_the_path_or_follows_websocket() {
        for (path, key) in [
            ("", None),
            ("/", None),
            ("/websocket", None),
            ("/websocket/", None),
            ("/KEY", Some("KEY")),
            ("/KEY/", Some("KEY")),
            ("/websocket/KEY", Some("KEY")),
            ("/healthy", Some("healthy")),
            ("/%00", Some("%00")),
        ] {
            assert_eq!(key_segment(path).unwrap(), key, "{path}");
        }
        for path in [
            "//",
            "//KEY",
            "/KEY/more",
            "/KEY//",
            "/health",
            "/admin",
            "/assets",
            "/assets/x-1f.js",
            "/websocket/websocket",
            "/metrics/",
        ] {
            assert_eq!(key_segment(path), Err(NoService), "{path}");
        }
    }

    #[test]
    fn without_a_key_only_direct_requests_of_this_machine_are_the_operators() {
        let at = |address: &str| {
            let address: std::net::IpAddr = address.parse().unwrap();
            let (id, address) = (CallerId::new(address), address.to_canonical());
            RequestSource {
                id,
                address,
                proxied: false,
                behind_proxies: false,
                foreign_page: None,
                admits_all_pages: false,
                is_named_locally: true,
            }
        };
        let (mut headers, here) = (HeaderMap::new(), &at("127.0.0.1"));
        assert!(is_direct(&headers, here) && is_direct(&headers, &at("::1")));
        assert!(is_direct(&headers, &at("::ffff:127.0.0.1")));
        assert!(
            !is_direct(&headers, &at("192.0.2.1"))
                && !is_direct(&headers, &RequestSource { proxied: true, ..here.clone() })
        );
        headers.insert("x-forwarded-for", header::HeaderValue::from_static("192.0.2.1"));
        assert!(!is_direct(&headers, here), "a proxy on this machine");
    }

    #[test]
    fn programs_of_this_machine_are_the_operator_where_no_proxy_is_to_be_expected_or_as_the_flag_says() {
        let address = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        let direct = RequestSource {
            id: CallerId::new(address),
            address,
            proxied: false,
            behind_proxies: false,
            foreign_page: None,
            admits_all_pages: false,
            is_named_locally: true,
        };
        let named_publicly = RequestSource { is_named_locally: false, ..direct.clone() };
        let beside_a_proxy = RequestSource { behind_proxies: true, ..direct.clone() };
        let operator = |profile, local_operator, source: &RequestSource| {
            let rules = AdmissionRules { profile, local_operator, ..AdmissionRules::default() };
            rules.is_operator(None, &HeaderMap::new(), source)
        };
        assert!(operator(Profile::Node, None, &direct));
        for source in [&beside_a_proxy, &named_publicly] {
            assert!(!operator(Profile::Node, None, source), "{source:?}");
        }
        assert!(!operator(Profile::Hosted, None, &direct));
        for profile in Profile::ALL {
            for source in [&beside_a_proxy, &named_publicly] {
                assert!(operator(profile, Some(true), source));
            }
            assert!(!operator(profile, Some(false), &direct));
            let proxied = RequestSource { proxied: true, ..direct.clone() };
            assert!(!operator(profile, Some(true), &proxied), "a request of others");
        }
    }

    #[test]
    fn a_base_path_ends_at_a_segment() {
        let rules = AdmissionRules { base_path: "/v1".into(), ..AdmissionRules::default() };
        assert_eq!(
            (rules.below_base_path("/v1"), rules.below_base_path("/v1/KEY")),
            (Some(""), Some("/KEY"))
        );
        for outside in ["/", "/v12", "/v", "", "/v2/KEY"] {
            assert_eq!(rules.below_base_path(outside), None, "{outside}");
        }
        assert_eq!(AdmissionRules::default().below_base_path("/any/path"), Some("/any/path"));
    }
}
