//! A source of Bitcoin's chain, of any of the protocols: Esplora, Electrum, another Rootlight, or a recording.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::bitcoin::HEADER_LEN;
use rootlight_limits::Limits;
use tokio::time::timeout;

use super::coinbase::RawCoinbase;
use super::electrum::Electrum;
use super::electrum_link::{Endpoint, Transport};
use super::esplora::Esplora;
use super::recording::BitcoinRecording;
use super::rootlight::Rootlight;
use crate::error::{Secrets, redact};
use crate::source_quota::SourceQuota;
use crate::{UpstreamError, UrlError};

/// Most headers of one call: a period of Bitcoin's difficulty (two weeks), and the most that Electrum's protocol gives at once.
pub const MAX_HEADERS: u32 = 2_016;

/// Most coinbases of one call: a day's blocks.
pub const MAX_COINBASES: usize = 144;

/// The time limit of a call of many requests, in time limits of one request.
const LONGEST_CALL: u32 = 6;

/// Limits of a source.
#[derive(Debug, Clone)]
pub struct BitcoinSourceConfig {
    /// Time limit for one request, connection and response included. A call that needs many requests, such as two thousand
    /// headers from Esplora, takes at most six times as long.
    pub timeout: Duration,
    /// The budgets in which responses count until they are read.
    pub limits: Arc<Limits>,
    /// Whether the responses of the source are stored for [`BitcoinSource::write_recording`].
    pub records: bool,
}

impl Default for BitcoinSourceConfig {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(20), limits: Limits::new(), records: false }
    }
}

/// An untrusted source of Bitcoin's headers and coinbases.
pub struct BitcoinSource {
    /// The name for logs.
    name: String,
    /// Parts of the URL that no error may contain.
    secrets: Secrets,
    protocol: Protocol,
    /// Time limit for one request.
    timeout: Duration,
    /// The responses so far, if they are recorded.
    recording: Option<Mutex<BitcoinRecording>>,
}

/// The protocol of a source, with its connection.
enum Protocol {
    Esplora(Esplora),
    Electrum(Box<Electrum>),
    Rootlight(Rootlight),
    /// Recorded responses of another source.
    Recorded(Box<BitcoinRecording>),
}

/// The prefix of the URL of another Rootlight.
const ROOTLIGHT: &str = "rootlight+";

impl BitcoinSource {
    /// Prepares a source with the default limits; nothing is sent yet. See [`Self::open_with`].
    ///
    /// # Errors
    /// The text is not the URL of a source.
    pub fn open(url: &str) -> Result<Self, UrlError> {
        Self::open_with(url, BitcoinSourceConfig::default())
    }

    /// Prepares a source; nothing is sent yet. `http://` and `https://` are the base of Esplora's interface, `tcp://`,
    /// `ssl://`, `ws://` and `wss://` are servers of Electrum's protocol, `rootlight+https://` and so on other
    /// Rootlights. URLs come from the user or from the network's data, never from a caller or another source.
    ///
    /// # Errors
    /// The text is not such a URL, or the HTTP client cannot be created.
    pub fn open_with(url: &str, config: BitcoinSourceConfig) -> Result<Self, UrlError> {
        let failed = |reason: String| UrlError { name: "upstream of Bitcoin".into(), reason };
        let (prefix, rest) = url.split_at_checked(ROOTLIGHT.len()).unwrap_or((url, ""));
        let is_rootlight = prefix.eq_ignore_ascii_case(ROOTLIGHT);
        let url = if is_rootlight { rest } else { url };
        let parsed: reqwest::Url = url.parse().map_err(|_| failed("not a URL".into()))?;
        let host = parsed.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| failed("the URL has no host".into()))?.to_owned();
        let quota = SourceQuota::of_upstream(&config.limits);
        let endpoint = |transport, port| Endpoint {
            transport,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: parsed.port().unwrap_or(port),
            url: url.to_owned(),
        };
        let electrum = |endpoint| Box::new(Electrum::new(endpoint, config.timeout, quota.clone()));
        let protocol = match parsed.scheme() {
            scheme @ ("http" | "https" | "ws" | "wss") if is_rootlight => {
                let is_http = scheme.starts_with("http");
                let limits = config.limits.clone();
                let opened = Rootlight::new(url, is_http, config.timeout, limits);
                Protocol::Rootlight(opened.map_err(|error| failed(error.reason))?)
            }
            _ if is_rootlight => return Err(failed("a Rootlight has an http(s) or ws(s) URL".into())),
            "http" | "https" => {
                Protocol::Esplora(Esplora::new(&parsed, config.timeout, quota).map_err(failed)?)
            }
            // The usual ports of Electrum servers.
            "tcp" => Protocol::Electrum(electrum(endpoint(Transport::Lines, 50_001))),
            "ssl" => Protocol::Electrum(electrum(endpoint(Transport::TlsLines, 50_002))),
            // A WebSocket connects by the URL, not by host and port.
            "ws" | "wss" => Protocol::Electrum(electrum(endpoint(Transport::Messages, 0))),
            _ => {
                return Err(failed(
                    "a source has an http(s), ssl, tcp, ws(s) or rootlight+http(s) URL".into(),
                ));
            }
        };
        let name = match (parsed.scheme(), parsed.port()) {
            (scheme @ ("tcp" | "ssl"), Some(port)) => format!("{scheme}://{host}:{port}"),
            (scheme @ ("tcp" | "ssl"), None) => format!("{scheme}://{host}"),
            _ if is_rootlight => format!("{ROOTLIGHT}{}", redact(url)),
            _ => redact(url),
        };
        let mut source =
            Self { name, secrets: Secrets::of(url), protocol, timeout: config.timeout, recording: None };
        if config.records {
            let recording = BitcoinRecording::of(&source.name, source.offers_coinbases());
            source.recording = Some(Mutex::new(recording));
        }
        Ok(source)
    }

    /// A source that gives the recorded responses of another source, under the name of that source ([`Self::write_recording`]).
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn replay(file: &Path) -> io::Result<Self> {
        let recording = Box::new(BitcoinRecording::read(file)?);
        let (name, secrets) = (recording.name.clone(), Secrets::of(""));
        let (protocol, timeout) = (Protocol::Recorded(recording), BitcoinSourceConfig::default().timeout);
        Ok(Self { name, secrets, protocol, timeout, recording: None })
    }

    /// Writes the responses of the source so far, and its latest errors, to a file. Nothing is written if the source was opened
    /// without [`BitcoinSourceConfig::records`].
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_recording(&self, file: &Path) -> io::Result<()> {
        let Some(recording) = &self.recording else { return Ok(()) };
        recording.lock().unwrap_or_else(PoisonError::into_inner).write(file)
    }

    /// Returns the given result, and notes it in the recording if there is one.
    fn noted<T>(
        &self,
        given: Result<T, UpstreamError>,
        note: impl FnOnce(&mut BitcoinRecording, &Result<T, UpstreamError>),
    ) -> Result<T, UpstreamError> {
        if let Some(recording) = &self.recording {
            note(&mut recording.lock().unwrap_or_else(PoisonError::into_inner), &given);
        }
        given
    }

    /// The name for logs: scheme, host and port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the source's protocol offers coinbases.
    pub fn offers_coinbases(&self) -> bool {
        match &self.protocol {
            Protocol::Esplora(_) => false,
            Protocol::Electrum(_) | Protocol::Rootlight(_) => true,
            Protocol::Recorded(recording) => recording.offers_coinbases,
        }
    }

    /// Asks for the height of the newest block.
    ///
    /// # Errors
    /// The source gave no usable response.
    pub async fn tip(&self) -> Result<u32, UpstreamError> {
        let tip = self
            .within(Box::pin(async {
                match &self.protocol {
                    Protocol::Esplora(esplora) => esplora.tip().await,
                    Protocol::Electrum(electrum) => electrum.tip().await,
                    Protocol::Rootlight(rootlight) => rootlight.tip().await,
                    Protocol::Recorded(recording) => recording.tip(),
                }
            }))
            .await;
        self.noted(tip, BitcoinRecording::note_tip)
    }

    /// Asks for at most `count` headers, and at most [`MAX_HEADERS`], from the height `from` on, in the order of their heights.
    /// The source returns fewer where its chain ends, or if it gives fewer at once. The headers of another Rootlight begin
    /// higher if that Rootlight has none so low.
    ///
    /// # Errors
    /// The source gave no usable response.
    pub async fn headers(&self, from: u32, count: u32) -> Result<Vec<[u8; HEADER_LEN]>, UpstreamError> {
        let count = count.min(MAX_HEADERS).min(u32::MAX - from);
        if count == 0 {
            return Ok(Vec::new());
        }
        let headers = self
            .within(Box::pin(async {
                match &self.protocol {
                    Protocol::Esplora(esplora) => esplora.headers(from, count).await,
                    Protocol::Electrum(electrum) => electrum.headers(from, count).await,
                    Protocol::Rootlight(rootlight) => rootlight.headers(from, count).await,
                    Protocol::Recorded(recording) => recording.headers(from, count),
                }
            }))
            .await;
        self.noted(headers, |recording, given| recording.note_headers(from, given))
    }

    /// Asks for the coinbases of the blocks at the first [`MAX_COINBASES`] of these heights. Coinbases that the source does not
    /// give, or gives in a form that cannot be right, are left out.
    ///
    /// # Errors
    /// The source gave no usable response at all, or its protocol offers no coinbases.
    pub async fn coinbases(&self, heights: &[u32]) -> Result<Vec<RawCoinbase>, UpstreamError> {
        let heights = heights.get(..MAX_COINBASES).unwrap_or(heights);
        if heights.is_empty() {
            return Ok(Vec::new());
        }
        let coinbases = match &self.protocol {
            Protocol::Esplora(_) => {
                Err(UpstreamError::NotSent("Esplora offers no coinbases in a practical way".into()))
            }
            Protocol::Electrum(electrum) => self.within(Box::pin(electrum.coinbases(heights))).await,
            Protocol::Rootlight(rootlight) => self.within(Box::pin(rootlight.coinbases(heights))).await,
            Protocol::Recorded(recording) => recording.coinbases(heights),
        };
        self.noted(coinbases, BitcoinRecording::note_coinbases)
    }

    /// Ends a call that takes too long, and removes the secrets of the URL from its error.
    async fn within<T>(&self, call: BoxFuture<'_, Result<T, UpstreamError>>) -> Result<T, UpstreamError> {
        let longest = self.timeout.saturating_mul(LONGEST_CALL);
        let outcome = timeout(longest, call).await;
        let outcome = outcome.unwrap_or(Err(UpstreamError::Timeout(longest.as_millis())));
        outcome.map_err(|error| error.without(&self.secrets))
    }
}

impl fmt::Debug for BitcoinSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    #[test]
    fn the_scheme_says_the_protocol() {
        for (url, name, coinbases) in [
            ("https://user:pass@esplora.example/api?key=abcd", "https://esplora.example", false),
            ("http://127.0.0.1:3000/", "http://127.0.0.1:3000", false),
            ("SSL://electrum.example", "ssl://electrum.example", true),
            ("tcp://[::1]:50001", "tcp://[::1]:50001", true),
            ("wss://electrum.example:50004/0123456789abcdef", "wss://electrum.example:50004", true),
            ("rootlight+https://user:pass@rsk.example/key", "rootlight+https://rsk.example", true),
            ("Rootlight+ws://127.0.0.1:4444/", "rootlight+ws://127.0.0.1:4444", true),
        ] {
            let source = BitcoinSource::open(url).unwrap();
            assert_eq!((source.name(), source.offers_coinbases()), (name, coinbases), "{url}");
            assert_eq!(format!("{source:?}"), name, "credentials and paths are not shown");
        }
    }

    #[test]
    fn other_urls_are_refused_and_not_repeated() {
        for url in [
            "",
            "esplora.example",
            "ftp://secretsecret.example",
            "ssl://",
            "ssl:///x",
            "file:///etc/passwd",
            "rootlight+",
            "rootlight+rsk.example",
            "rootlight+ssl://rsk.example",
            "rootlight+rootlight+https://rsk.example",
            "rootlight://secretsecret.example",
        ] {
            let error = BitcoinSource::open(url).unwrap_err().to_string();
            assert!(!error.contains("secret") && error.starts_with("upstream of Bitcoin: "), "{error}");
        }
    }

    #[tokio::test]
    async fn calls_for_no_headers_or_coinbases_send_no_request() {
        // No program listens at these addresses.
        let esplora = BitcoinSource::open("http://127.0.0.1:1").unwrap();
        let electrum = BitcoinSource::open("tcp://127.0.0.1:1").unwrap();
        assert_eq!(esplora.headers(5, 0).await, Ok(Vec::new()));
        assert_eq!(electrum.headers(u32::MAX, 10).await, Ok(Vec::new()));
        assert_eq!(electrum.coinbases(&[]).await, Ok(Vec::new()));
        assert!(matches!(esplora.coinbases(&[1]).await, Err(UpstreamError::NotSent(_))));
        let rootlight = BitcoinSource::open("rootlight+http://127.0.0.1:1").unwrap();
        assert_eq!(rootlight.headers(u32::MAX, 10).await, Ok(Vec::new()));
        assert_eq!(rootlight.coinbases(&[]).await, Ok(Vec::new()));
        for source in [esplora, electrum, rootlight] {
            assert_eq!(source.tip().await, Err(UpstreamError::Transport(words::REFUSED.into())));
        }
    }
}
