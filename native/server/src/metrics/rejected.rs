//! Metrics of HTTP responses by status, and of refused requests and connections by reason.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Why a request or a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The message is not JSON-RPC.
    Invalid,
    /// The request has no API key, or one that is unknown, revoked or expired.
    Unauthorized,
    /// The host, the page or the client's address is not allowed, or the API key does not allow the request.
    Forbidden,
    /// No service is at the path.
    Path,
    /// The HTTP method is not served.
    HttpMethod,
    /// The content type is not JSON.
    ContentType,
    /// The body was not sent in time.
    SlowBody,
    /// The body is longer than a message may be.
    TooLong,
    /// A limit of an API key is exceeded.
    Limit,
    /// A budget of memory is used up, all WebSockets are taken, or the API keys cannot be checked.
    Unavailable,
    /// The TLS handshake failed or took too long.
    Handshake,
}

impl Rejection {
    /// All reasons, with the values of the label `reason`.
    const ALL: [(Self, &'static str); 11] = [
        (Self::Invalid, "invalid"),
        (Self::Unauthorized, "unauthorized"),
        (Self::Forbidden, "forbidden"),
        (Self::Path, "path"),
        (Self::HttpMethod, "http_method"),
        (Self::ContentType, "content_type"),
        (Self::SlowBody, "slow_body"),
        (Self::TooLong, "too_long"),
        (Self::Limit, "limit"),
        (Self::Unavailable, "no_room"),
        (Self::Handshake, "handshake"),
    ];

    /// The reason that an HTTP status stands for; `None` if the request is served.
    pub(super) fn of(status: u16) -> Option<Self> {
        Some(match status {
            400 | 426 => Self::Invalid,
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::Path,
            405 => Self::HttpMethod,
            408 => Self::SlowBody,
            413 => Self::TooLong,
            415 => Self::ContentType,
            429 => Self::Limit,
            503 => Self::Unavailable,
            _ => return None,
        })
    }
}

/// The HTTP statuses that the server gives, with the values of the label `status`. The last entry counts all others.
const STATUSES: [(u16, &str); 16] = [
    (200, "200"),
    (101, "101"),
    (204, "204"),
    (400, "400"),
    (401, "401"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (408, "408"),
    (413, "413"),
    (415, "415"),
    (426, "426"),
    (429, "429"),
    (500, "500"),
    (503, "503"),
    (0, "other"),
];

/// Counters with one label.
type LabelledCounters = Family<[(&'static str, &'static str); 1], Counter>;

/// The counts of HTTP responses and of refused requests.
#[derive(Debug)]
pub(super) struct Responses {
    statuses: [Counter; STATUSES.len()],
    rejections: [Counter; Rejection::ALL.len()],
}

impl Responses {
    /// Adds the metrics to a registry.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let (statuses, rejections) = (LabelledCounters::default(), LabelledCounters::default());
        registry.register("http_responses", "HTTP responses by status", statuses.clone());
        let help = "Requests, WebSocket messages and connections that were refused, by reason";
        registry.register("rejected_requests", help, rejections.clone());
        Self {
            statuses: STATUSES.map(|(_, status)| statuses.get_or_create_owned(&[("status", status)])),
            rejections: Rejection::ALL
                .map(|(_, reason)| rejections.get_or_create_owned(&[("reason", reason)])),
        }
    }

    /// Counts an HTTP response, and the refusal that its status may stand for.
    pub(super) fn count(&self, status: u16) {
        let label_index =
            STATUSES.iter().position(|(known, _)| *known == status).unwrap_or(STATUSES.len() - 1);
        if let Some(counter) = self.statuses.get(label_index) {
            counter.inc();
        }
        if let Some(rejection) = Rejection::of(status) {
            self.reject(rejection);
        }
    }

    /// Counts a refusal.
    pub(super) fn reject(&self, rejection: Rejection) {
        let label_index = Rejection::ALL.iter().position(|(known, _)| *known == rejection);
        if let Some(counter) = label_index.and_then(|label_index| self.rejections.get(label_index)) {
            counter.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_that_refuses_a_request_has_a_reason_and_a_label() {
        for (status, _) in STATUSES {
            let refused = matches!(status, 400..500 | 503);
            assert_eq!(Rejection::of(status).is_some(), refused, "{status}");
        }
        let mut registry = Registry::default();
        let responses = Responses::new(&mut registry);
        responses.count(429);
        responses.count(299);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            r#"http_responses_total{status="429"} 1"#,
            r#"http_responses_total{status="other"} 1"#,
            r#"rejected_requests_total{reason="limit"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
