//! Why an upstream gave no result.

use rootlight::light::CallFailure;
use serde_json::Value;

/// A URL that no upstream can be reached under.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("upstream {name}: {reason}")]
pub struct UrlError {
    /// Host of the upstream.
    pub name: String,
    /// What is wrong with the URL.
    pub reason: String,
}

/// Failure of one call to an upstream.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It answered with a JSON-RPC error.
    #[error("upstream error {code}: {message}")]
    Rpc {
        /// JSON-RPC code.
        code: i64,
        /// Its text, as sent.
        message: String,
        /// Its data, as sent.
        data: Option<Value>,
    },
    /// The recording holds no answer to this question.
    #[error("not recorded: {0}")]
    NotRecorded(String),
    /// It could not be reached or the connection broke.
    #[error("upstream not reachable: {0}")]
    Transport(String),
    /// It did not answer in time.
    #[error("upstream did not answer within {0} ms")]
    Timeout(u128),
    /// It answered with more bytes than are taken.
    #[error("upstream answer exceeds {0} bytes")]
    TooLarge(usize),
    /// Its answer was not read since too many others are held.
    #[error("too many bytes of upstreams' answers are being worked on; the next was not read")]
    NoRoom,
    /// It answered with an HTTP status instead of JSON-RPC.
    #[error("upstream answered HTTP status {0}")]
    Status(u16),
    /// It wants fewer questions and says for how long (`Retry-After`).
    #[error("upstream answered HTTP status {status} and asks for a pause of {seconds} s")]
    Busy {
        /// 429 or a server error.
        status: u16,
        /// The pause in seconds.
        seconds: u64,
    },
    /// Its answer is no JSON-RPC answer to what was asked.
    #[error("upstream answer is malformed: {0}")]
    Malformed(String),
}

impl UpstreamError {
    /// The same error without these texts, which an upstream or a library may repeat.
    pub(crate) fn without(mut self, secrets: &Secrets) -> Self {
        if let Self::Rpc { message: text, .. } | Self::Transport(text) | Self::Malformed(text) = &mut self {
            for secret in &secrets.0 {
                if text.contains(secret.as_str()) {
                    *text = text.replace(secret.as_str(), "...");
                }
            }
        }
        self
    }
}

impl From<CallFailure> for UpstreamError {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Rpc { code, message } => Self::Rpc { code, message, data: None },
            CallFailure::NotRecorded => Self::NotRecorded(String::new()),
            CallFailure::Malformed(reason) => Self::Malformed(reason.into()),
            other => Self::Transport(other.to_string()),
        }
    }
}

impl From<UpstreamError> for CallFailure {
    fn from(error: UpstreamError) -> Self {
        match error {
            UpstreamError::Rpc { code, message, .. } => Self::Rpc { code, message },
            UpstreamError::NotRecorded(_) => Self::NotRecorded,
            UpstreamError::Busy { seconds, .. } => Self::Busy { seconds: Some(seconds) },
            // The upstream is not to blame. It is asked again soon.
            UpstreamError::NoRoom => Self::Busy { seconds: Some(1) },
            UpstreamError::Status(429 | 503) => Self::Busy { seconds: None },
            UpstreamError::Malformed(_) => Self::Malformed("not a JSON-RPC answer"),
            other => Self::Transport(other.to_string()),
        }
    }
}

/// The parts of an upstream's URL that nobody else may see, the longest first.
#[derive(Debug, Default)]
pub(crate) struct Secrets(Vec<String>);

/// Shorter parts of a path (`v3`, `rpc`, `mainnet`) are no keys.
const KEY_CHARS: usize = 12;

impl Secrets {
    /// Of a URL as it was given: all of it, user and password, what the query says, and the parts of the path that are
    /// long enough for a key.
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
        secrets.retain(|secret| secret.len() > 3);
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_repeats_a_password_or_a_key() {
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
                UpstreamError::Rpc { code: -1, message: text.clone(), data: None },
            ] {
                let shown = error.without(&secrets).to_string();
                for secret in ["hunter22", "0123456789abcdef", "sesame"] {
                    assert!(!shown.contains(secret), "{shown}");
                }
            }
        }
    }
}
