//! Decides which requests of the admin page are answered: [`sender`] checks where a request comes from, [`token`] its token.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::warn;

use super::reply::AdminError;
use super::state;
use super::token_check::Denied;

/// The content security policy of all answers: scripts and styles come from this port only, text does not become script or
/// markup, no form is sent without script (a browser would put its fields into the URL), and no other page shows this one
/// in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of all answers.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Refuses requests to a name that is not of this machine, and those of other web pages. Adds [`HEADERS`] to all answers.
pub(super) async fn sender(request: Request, next: Next) -> Response {
    let mut response = match check_sender(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Refuses requests without the token, with a wrong one, or with another body than JSON.
pub(super) async fn token(
    State(state): State<Arc<state::AdminState>>,
    request: Request,
    next: Next,
) -> Response {
    match check_token(&state, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// The only value of a header; `None` if there is none, or there are several.
fn single<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}

/// Checks the `Host` and `Origin` headers. Another site can make its own name resolve to this machine (DNS rebinding), so
/// `Host` must be a name that no other site can have.
fn check_sender(headers: &HeaderMap, uri: &Uri) -> Result<(), AdminError> {
    let host = single(headers, &header::HOST).filter(|host| is_own(host)).ok_or(AdminError::Host)?;
    // A request for a proxy names a host in its first line too, which could differ from `Host`.
    if uri.authority().is_some() {
        return Err(AdminError::Host);
    }
    if headers.contains_key(header::ORIGIN) {
        let scheme = single(headers, &header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        if !scheme.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
            return Err(AdminError::Origin);
        }
    }
    // URLs may be written to logs, so they must not contain a token or an id.
    if uri.query().is_some() {
        return Err(AdminError::Parameters);
    }
    Ok(())
}

/// Whether a `Host` header names this machine. The port may differ from the page's, as that of an SSH tunnel does.
fn is_own(host: &str) -> bool {
    let names = ["127.0.0.1", "[::1]", "localhost"];
    let rest = names.into_iter().find_map(|name| {
        let (start, rest) = host.split_at_checked(name.len())?;
        start.eq_ignore_ascii_case(name).then_some(rest)
    });
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Checks the token and the content type of a request.
fn check_token(state: &state::AdminState, request: &Request) -> Result<(), AdminError> {
    let headers = request.headers();
    let sent = single(headers, &header::AUTHORIZATION).and_then(bearer).ok_or(AdminError::NoToken)?;
    match state.token_check.check(sent.as_bytes()) {
        Ok(()) => {}
        Err(Denied::Wrong) => {
            warn!("admin page: a wrong token was sent");
            return Err(AdminError::WrongToken);
        }
        Err(Denied::TooMany) => return Err(AdminError::TooManyTokens),
    }
    let json = single(headers, &header::CONTENT_TYPE) == Some("application/json");
    if *request.method() == Method::POST && !json {
        return Err(AdminError::ContentType);
    }
    Ok(())
}

/// The token in an `Authorization` header of the scheme `Bearer`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&str, &str)], uri: &str) -> Option<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(header::HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        check_sender(&map, &uri.parse().unwrap()).err().map(|refusal| format!("{refusal:?}"))
    }

    #[test]
    fn requests_to_names_of_this_machine_are_answered() {
        for host in ["127.0.0.1", "127.0.0.1:4447", "localhost:1", "LOCALHOST", "[::1]:4447"] {
            assert_eq!(check(&[("host", host)], "/"), None, "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost.",
            "127.0.0.1:",
            "127.0.0.1:99999",
            "127.0.0.1:+1",
            "10.0.0.1:4447",
            "x@127.0.0.1",
            "[::1",
            "",
        ] {
            assert_eq!(check(&[("host", host)], "/").as_deref(), Some("Host"), "{host}");
        }
        assert!(check(&[], "/").is_some(), "no host");
        assert!(check(&[("host", "localhost"), ("host", "localhost")], "/").is_some(), "two hosts");
        assert!(check(&[("host", "localhost")], "http://evil.example/").is_some(), "another authority");
    }

    #[test]
    fn other_pages_of_this_machine_are_foreign_too() {
        let from = |origin: &str| check(&[("host", "127.0.0.1:4447"), ("origin", origin)], "/api/overview");
        assert_eq!(from("http://127.0.0.1:4447"), None);
        for origin in [
            "null",
            "",
            "http://127.0.0.1",
            "http://127.0.0.1:4444",
            "http://localhost:4447",
            "https://127.0.0.1:4447",
            "http://evil.example",
        ] {
            assert_eq!(from(origin).as_deref(), Some("Origin"), "{origin}");
        }
        let own = ("origin", "http://localhost");
        assert!(check(&[("host", "localhost"), own, own], "/").is_some(), "two origins");
    }

    #[test]
    fn an_address_has_no_parameters() {
        assert_eq!(check(&[("host", "localhost")], "/?token=x").as_deref(), Some("Parameters"));
    }

    #[test]
    fn the_token_is_what_follows_the_scheme() {
        assert_eq!((bearer("Bearer abc"), bearer("bearer abc")), (Some("abc"), Some("abc")));
        assert_eq!((bearer("Basic abc"), bearer("Bearerabc"), bearer("")), (None, None, None));
    }
}
