//! The configuration of the hot store: its addresses, the prefix of its keys, and limits of time and number.

use std::fmt;
use std::time::Duration;

use redis::{ConnectionInfo, IntoConnectionInfo, ProtocolVersion};

use super::error::HotStoreError;

/// The default prefix of the keys of a service.
pub const PREFIX: &str = "rootlight";

/// Most addresses of a store.
const MAX_URLS: usize = 64;

/// Longest prefix of keys, in bytes.
const MAX_PREFIX: usize = 64;

/// Whether the store is one server or a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StoreLayout {
    /// Take the layout that the first server that answers has.
    #[default]
    Detect,
    /// One server. With several addresses, the first one that answers and takes writes.
    Single,
    /// A cluster, of which the addresses are some nodes.
    Cluster,
}

/// Limits of the time that a front end waits for the store, and of the commands that wait.
#[derive(Debug, Clone, Copy)]
pub struct StoreLimits {
    /// Longest time of a command.
    pub command: Duration,
    /// Longest time for a new connection.
    pub connect: Duration,
    /// Most commands that wait for an answer. Further ones fail at once with [`HotStoreError::Busy`].
    pub waiting: usize,
    /// Time for which a part of the store that fails gets no further command.
    pub pause: Duration,
    /// Interval of the checks whether the store answers, and whether the connection for announcements does.
    pub check: Duration,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            command: Duration::from_millis(250),
            connect: Duration::from_secs(1),
            waiting: 2_048,
            pause: Duration::from_millis(100),
            check: Duration::from_millis(500),
        }
    }
}

/// The addresses of the store and its limits. `Debug` shows no address, because addresses may contain passwords.
#[derive(Clone)]
pub struct StoreConfig {
    pub(super) nodes: Vec<ConnectionInfo>,
    pub(super) prefix: String,
    /// Whether the store is one server or a cluster.
    pub layout: StoreLayout,
    /// Limits of time and of waiting commands.
    pub limits: StoreLimits,
}

impl fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreConfig")
            .field("nodes", &self.nodes.len())
            .field("prefix", &self.prefix)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl StoreConfig {
    /// Reads addresses: `redis://USER:PASSWORD@HOST:PORT`, or `rediss://` for TLS with the certificate
    /// authorities of the system. Several addresses are of one store: nodes of a cluster, with the same user and password, or servers
    /// of which one takes writes.
    ///
    /// All keys and channels begin with `prefix` and a colon, so that several services can share a store.
    ///
    /// # Errors
    /// [`HotStoreError::Address`]: an address cannot be read, there are none or too many, or the prefix has other characters.
    pub fn parse<T: AsRef<str>>(urls: &[T], prefix: &str) -> Result<Self, HotStoreError> {
        let wrong = |reason: &str| HotStoreError::Address(reason.to_owned());
        if urls.is_empty() || urls.len() > MAX_URLS {
            return Err(HotStoreError::Address(format!("give 1 to {MAX_URLS}")));
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if prefix.is_empty() || prefix.len() > MAX_PREFIX || !prefix.bytes().all(plain) {
            return Err(wrong("a prefix has 1 to 64 letters, digits, and -_.:"));
        }
        let mut nodes = Vec::new();
        for url in urls {
            let url = url.as_ref();
            if !url.starts_with("redis://") && !url.starts_with("rediss://") {
                return Err(wrong("it begins with neither redis:// nor rediss://"));
            }
            let info = url.into_connection_info().map_err(|_| wrong("it cannot be read"))?;
            let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
            nodes.push(info.set_redis_settings(settings));
        }
        Ok(Self {
            nodes,
            prefix: prefix.to_owned(),
            layout: StoreLayout::Detect,
            limits: StoreLimits::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_prefixes_are_checked_and_not_repeated() {
        let wrong = |urls: &[&str], prefix: &str| StoreConfig::parse(urls, prefix).unwrap_err().to_string();
        for urls in [&["http://a:secret@b"][..], &["redis://a:secret@b:port"], &[], &["redis://a"; 65]] {
            let text = wrong(urls, "rootlight");
            assert!(!text.contains("secret"), "{text}");
        }
        for prefix in ["", "a b", "{tag}", &"a".repeat(65)] {
            assert!(wrong(&["redis://localhost"], prefix).contains("prefix"));
        }
        let config = StoreConfig::parse(&["rediss://me:secret@db.example:6380"], "rootlight").unwrap();
        assert!(!format!("{config:?}").contains("secret"));
    }
}
