//! Who may talk to the server: the `Host` check against DNS rebinding and the `Origin` list.

use std::net::IpAddr;

use axum::http::{header, HeaderMap};

/// Origins whose pages may read answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// Every page. Fine for a service without keys and cookies.
    Any,
    /// Only these, compared without regard to case (`https://wallet.example`).
    List(Vec<String>),
}

impl Origins {
    /// Reads a comma-separated list; `*` stands for all.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let names: Vec<String> = text
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase())
            .filter(|name| !name.is_empty())
            .collect();
        if names.iter().any(|name| name == "*") {
            Self::Any
        } else {
            Self::List(names)
        }
    }
}

/// The access rules of one server.
#[derive(Debug, Clone)]
pub struct Access {
    /// Pages allowed to call.
    pub origins: Origins,
    /// Whether the `Host` header must name this machine. On for servers bound to loopback: a web
    /// page whose domain is re-pointed to 127.0.0.1 (DNS rebinding) sends its own name there.
    pub loopback_only: bool,
}

/// Why a request is turned away; the text goes into the error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// A foreign name in `Host` on a loopback server.
    #[error("host not allowed: this server only answers for localhost and IP addresses")]
    Host,
    /// `Origin` outside the list.
    #[error("origin not allowed")]
    Origin,
}

impl Access {
    /// Checks a request's headers.
    pub(crate) fn check(&self, headers: &HeaderMap, authority: Option<&str>) -> Result<(), Refusal> {
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).or(authority);
        if self.loopback_only && !host.is_some_and(names_this_machine) {
            return Err(Refusal::Host);
        }
        match headers.get(header::ORIGIN) {
            Some(origin) if !self.allows(origin.to_str().unwrap_or("")) => Err(Refusal::Origin),
            _ => Ok(()),
        }
    }

    /// The value of `access-control-allow-origin` for a request that passed [`Access::check`], and
    /// whether it depends on the request.
    pub(crate) fn allow_origin(&self, headers: &HeaderMap) -> Option<(header::HeaderValue, bool)> {
        let origin = headers.get(header::ORIGIN)?;
        match self.origins {
            Origins::Any => Some((header::HeaderValue::from_static("*"), false)),
            Origins::List(_) => Some((origin.clone(), true)),
        }
    }

    fn allows(&self, origin: &str) -> bool {
        match &self.origins {
            Origins::Any => true,
            Origins::List(names) => names.iter().any(|name| name.eq_ignore_ascii_case(origin)),
        }
    }
}

/// `localhost`, names below it, and literal addresses: none can be re-pointed by a stranger's DNS.
fn names_this_machine(host: &str) -> bool {
    let name = without_port(host).to_ascii_lowercase();
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

/// The host of `name:port`, `[v6]:port` or either without port.
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

    #[test]
    fn host_names_that_cannot_be_rebound() {
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
            assert!(names_this_machine(good), "{good}");
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
            assert!(!names_this_machine(bad), "{bad}");
        }
    }

    #[test]
    fn origin_lists() {
        assert_eq!(Origins::parse("a.example, *"), Origins::Any);
        let access =
            Access { origins: Origins::parse("https://a.example , http://b.example"), loopback_only: false };
        assert!(access.allows("https://A.example"));
        assert!(!access.allows("https://a.example.evil"));
        assert!(!access.allows("null"));
    }
}
