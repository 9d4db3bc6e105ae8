//! Boot hosts, which discovery asks first, and the look-up of their addresses by DNS.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::debug;

/// Longest wait for the addresses of a host.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Most addresses of one host that are used.
const MAX_ADDRESSES: usize = 4;

/// Pause after a lookup that failed; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// Longest pause between two lookups that fail.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Time after which a host is looked up again, since it may have moved.
const REPEAT: Duration = Duration::from_secs(3_600);

/// A host that answers discovery. Its node id need not be known: the signature of its first datagram shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootHost {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// UDP port.
    pub port: u16,
}

/// The text is no `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a boot host is HOST:PORT, with a port from 1 to 65535; the host of an IPv6 address is in brackets")]
pub struct BootHostError;

impl FromStr for BootHost {
    type Err = BootHostError;

    fn from_str(text: &str) -> Result<Self, BootHostError> {
        let (host, port) = text.rsplit_once(':').ok_or(BootHostError)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(BootHostError)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bracketed.unwrap_or(host);
        // `ID@HOST:PORT` is the form of --peer.
        if host.is_empty()
            || host.contains(['@', '/', '[', ']'])
            || (host.contains(':') && bracketed.is_none())
        {
            return Err(BootHostError);
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for BootHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Why a boot host has no address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// DNS has no address of the host, or cannot be reached.
    #[error(transparent)]
    Failed(#[from] std::io::Error),
    /// The system did not answer in time.
    #[error("no response within {} s", .0.as_secs())]
    Late(Duration),
}

/// Looks a host up once; returns a few of its addresses.
pub async fn addresses_of(boot: &BootHost) -> Result<Vec<SocketAddr>, LookupError> {
    let looked = timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((boot.host.as_str(), boot.port))).await;
    Ok(looked.map_err(|_| LookupError::Late(LOOKUP_TIMEOUT))??.take(MAX_ADDRESSES).collect())
}

/// Looks a host up again and again, and sends the addresses of each look-up to `found`, until the receiver is gone. The receiver
/// has to check which addresses are allowed.
pub(super) async fn look_up(boot: BootHost, found: mpsc::Sender<Vec<SocketAddr>>) {
    let mut pause = FIRST_PAUSE;
    loop {
        let addresses = addresses_of(&boot).await.unwrap_or_else(|error| {
            debug!("host {boot}: {error}");
            Vec::new()
        });
        let wait = if addresses.is_empty() {
            let present = pause;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
            present
        } else {
            pause = FIRST_PAUSE;
            REPEAT
        };
        if !addresses.is_empty() && found.send(addresses).await.is_err() {
            return;
        }
        tokio::select! {
            () = sleep(wait) => {}
            () = found.closed() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_hosts_are_read_and_written_alike() {
        for text in ["bootstrap01.rsk.co:5050", "127.0.0.1:1", "[::1]:65535"] {
            assert_eq!(text.parse::<BootHost>().unwrap().to_string(), text);
        }
        for wrong in
            ["", "host", "host:", ":5050", "host:0", "host:65536", "::1:5050", "ab@host:1", "http://host:1"]
        {
            assert_eq!(wrong.parse::<BootHost>(), Err(BootHostError), "{wrong}");
        }
    }

    #[tokio::test]
    async fn an_address_needs_no_lookup() {
        let (found, mut addresses) = mpsc::channel(4);
        let looking = tokio::spawn(look_up("127.0.0.1:5050".parse().unwrap(), found));
        assert_eq!(addresses.recv().await, Some(vec!["127.0.0.1:5050".parse().unwrap()]));
        drop(addresses);
        looking.await.unwrap();
    }
}
