//! Results of requests to upstreams, and their errors; how errors are freed from secrets, and what they become in the core
//! (`RequestFailure`).

use alloy_primitives::Bytes;
use rootlight::light::{MAX_ERROR_TEXT, RequestFailure};
use serde_json::Value;
use serde_json::value::RawValue;

use super::words;

/// The result of one request: the JSON text of the result as it was sent, or an error.
pub type UpstreamResult = Result<Box<RawValue>, UpstreamError>;

/// The reason for a text that is no URL.
pub(crate) const NOT_A_URL: &str = "not a URL: give SCHEME://HOST:PORT, such as http://127.0.0.1:4444";

/// The URL of an upstream cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {reason}")]
pub struct UrlError {
    /// Scheme, host and port of the upstream, or another name without secrets.
    pub name: String,
    /// The fault of the URL.
    pub reason: String,
}

/// Why a request to an upstream gave no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum UpstreamError {
    /// The upstream returned a JSON-RPC error.
    #[error("upstream error {code}: {message}")]
    Rpc {
        code: i64,
        message: String,
        /// The error's data, as sent.
        data: Option<Value>,
    },
    /// The recording holds no response to this request.
    #[error("not recorded: {0}")]
    NotRecorded(String),
    /// The upstream could not be reached, or the connection broke.
    #[error("upstream not reachable: {0}")]
    Transport(String),
    /// The upstream did not respond in time.
    #[error("upstream did not answer within {0} ms")]
    Timeout(u128),
    /// The upstream gave no response, for this reason.
    #[error("{0}")]
    Silent(String),
    /// The upstream gave no response to a request of a caller, and may not have the requested data. The text is the reason.
    #[error("{0}")]
    NotAvailable(String),
    /// The request was not sent, for this reason.
    #[error("{0}")]
    NotSent(String),
    /// The response is longer than the limit.
    #[error("upstream answer exceeds {0} bytes")]
    TooLarge(usize),
    /// The response was not read, because other responses in memory use up their budget.
    #[error("{}", RequestFailure::BudgetUsedUp)]
    BudgetUsedUp,
    /// The upstream returned an HTTP error status without a JSON-RPC body.
    #[error("upstream answered HTTP status {0}")]
    Status(u16),
    /// The upstream asks for fewer requests and says how long to wait (`Retry-After`).
    #[error("upstream answered HTTP status {status} and asks for a pause of {seconds} s")]
    Busy { status: u16, seconds: u64 },
    /// The response is one that no honest source sends for the request, from a source that has proven its identity.
    #[error("false response: {0}")]
    False(String),
    /// The response is not a JSON-RPC response to the requests.
    #[error("upstream answer is malformed: {0}")]
    Malformed(String),
}

impl UpstreamError {
    /// The text in the error that the upstream or a library wrote; `None` if the whole text is this program's.
    pub(super) const fn foreign_text(&mut self) -> Option<&mut String> {
        match self {
            Self::Rpc { message: text, .. } | Self::Transport(text) | Self::Malformed(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the error without the secrets, which an upstream's message or a library's error may contain.
    pub(crate) fn without(mut self, secrets: &Secrets) -> Self {
        if let Self::Rpc { data, .. } = &mut self {
            // A secret may be in any part of the data, so data that contains one is dropped as a whole.
            data.take_if(|data| secrets.are_in(&data.to_string()));
        }
        if let Some(text) = self.foreign_text() {
            let is_cut = text.chars().count() >= MAX_ERROR_TEXT;
            for secret in &secrets.0 {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), "...");
                }
            }
            // The core has cut the text, perhaps within a secret.
            let start = secrets.0.iter().map(|secret| start_at_end(text, secret)).max().unwrap_or(0);
            if is_cut && start > 0 {
                text.truncate(text.len().saturating_sub(start));
                text.push_str("...");
            }
        }
        self
    }
}

/// The length in bytes of the longest start of a secret with which a text ends.
fn start_at_end(text: &str, secret: &str) -> usize {
    let ends = secret.char_indices().rev().map(|(end, _)| end);
    let is_at_end = |end: &usize| secret.get(..*end).is_some_and(|start| text.ends_with(start));
    ends.into_iter().find(is_at_end).unwrap_or(0)
}

impl From<RequestFailure> for UpstreamError {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::Rpc { code, message } => Self::Rpc { code, message, data: None },
            RequestFailure::NotRecorded => Self::NotRecorded(String::new()),
            RequestFailure::BudgetUsedUp => Self::BudgetUsedUp,
            RequestFailure::Malformed(reason) => Self::Malformed(reason.into()),
            RequestFailure::False(reason) => Self::False(reason),
            RequestFailure::NotAvailable(reason) => Self::NotAvailable(reason),
            RequestFailure::NotSent(reason) => Self::NotSent(reason),
            RequestFailure::Transport(words) => Self::Transport(words),
            other => Self::Transport(other.to_string()),
        }
    }
}

/// The JSON-RPC codes of a call whose contract reverted: that of other chains' nodes and that of Rootstock's reference node.
const REVERTED: [i64; 2] = [3, -32015];

/// The output of reverted code in the data of an error.
fn output(data: &Value) -> Option<Bytes> {
    data.as_str()?.parse().ok()
}

impl From<UpstreamError> for RequestFailure {
    fn from(error: UpstreamError) -> Self {
        match error {
            UpstreamError::Rpc { code, message, data } => match data.as_ref().and_then(output) {
                Some(output) if REVERTED.contains(&code) => Self::Reverted { code, message, output },
                _ => Self::Rpc { code, message },
            },
            UpstreamError::NotRecorded(_) => Self::NotRecorded,
            UpstreamError::Busy { seconds, .. } => Self::Busy { seconds: Some(seconds) },
            UpstreamError::BudgetUsedUp => Self::BudgetUsedUp,
            UpstreamError::Status(429 | 503) => Self::Busy { seconds: None },
            UpstreamError::False(reason) => Self::False(reason),
            UpstreamError::NotAvailable(reason) => Self::NotAvailable(reason),
            UpstreamError::NotSent(reason) => Self::NotSent(reason),
            UpstreamError::Malformed(_) => Self::Malformed(words::NOT_JSON_RPC),
            UpstreamError::Transport(words) => Self::Transport(words),
            UpstreamError::Timeout(_) => Self::Transport(words::TIME_OVER.into()),
            UpstreamError::Status(status) => Self::Transport(words::status(status)),
            // `Silent` and `TooLarge`.
            other => Self::Transport(other.to_string()),
        }
    }
}

/// Returns scheme, host and port of a URL.
pub(super) fn redact(url: &str) -> String {
    match url.parse::<reqwest::Url>() {
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => "upstream".to_owned(),
    }
}

/// The parts of an upstream's URL that must not appear in errors or logs, the longest first, so that a part of another one is
/// replaced after it.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Vec<String>);

/// Shortest path segment or user name that may be a key; `v3`, `rpc` or `mainnet` are shorter.
const KEY_CHARS: usize = 12;

impl Secrets {
    /// Collects the secrets of a URL: the whole URL, the password, the query and its values, and a user name
    /// or path segments that are long enough to be a key.
    pub(crate) fn of(text: &str) -> Self {
        let mut secrets = vec![text.to_owned()];
        if let Ok(url) = text.parse::<reqwest::Url>() {
            secrets.push(url.as_str().to_owned());
            secrets.extend(url.password().map(str::to_owned));
            secrets.extend(url.query().map(str::to_owned));
            secrets.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
            let long = |part: &&str| part.len() >= KEY_CHARS;
            secrets.extend(Some(url.username()).filter(long).map(str::to_owned));
            secrets.extend(url.path_segments().into_iter().flatten().filter(long).map(str::to_owned));
        }
        // Shorter texts occur in any error by chance, and are no keys.
        secrets.retain(|secret| secret.len() > 3);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|secret| text.contains(secret.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_contain_no_password_or_key_of_the_url() {
        let url = "wss://user:hunter22@node.example/v3/0123456789abcdef?token=sesame";
        let secrets = Secrets::of(url);
        for text in [
            format!("Unable to connect to {url}"),
            "key 0123456789abcdef is over its limit".to_owned(),
            "bad token sesame".to_owned(),
            "hunter22 is wrong".to_owned(),
        ] {
            for error in [
                UpstreamError::Transport(text.clone()),
                UpstreamError::Rpc { code: -1, message: text.clone(), data: Some(json!({"see": [text]})) },
            ] {
                let error = error.without(&secrets);
                let shown = format!("{error} {error:?}");
                for secret in ["hunter22", "0123456789abcdef", "sesame"] {
                    assert!(!shown.contains(secret), "{shown}");
                }
            }
        }
    }

    /// The core cuts long texts before secrets are removed.
    #[test]
    fn errors_contain_no_start_of_a_key_that_was_cut() {
        // The letter `h` is the first one of another secret, the whole URL.
        let key = "0123456789abcdefh-more";
        let secrets = Secrets::of(&format!("https://node.example/v3/{key}"));
        for shown in 1..18 {
            let text = format!("{}{}", "x".repeat(MAX_ERROR_TEXT - shown), &key[..shown]);
            let error = UpstreamError::Rpc { code: -1, message: text, data: None }.without(&secrets);
            assert!(error.to_string().ends_with("x..."), "{error}");
        }
        let whole = "ends with 0123";
        let error = UpstreamError::Rpc { code: -1, message: whole.into(), data: None }.without(&secrets);
        assert!(error.to_string().ends_with(whole), "a text that was not cut stays: {error}");
    }
}
