//! The settings that can change while the server runs.

use std::sync::Arc;

use tokio::sync::watch;
use tracing::{error, info, warn};

use super::access::{Access, Origins};
use super::proxies::Proxies;
use super::tls::Certificates;
use crate::bans::HostBans;

/// The settings that can change.
#[derive(Debug)]
pub(crate) struct ReloadableSettings {
    /// The hosts and pages that are served.
    pub(crate) access: Access,
    /// The proxies that are trusted.
    pub(crate) proxies: Proxies,
}

/// The present settings. A request uses those of its beginning; a WebSocket ends when others would not admit it in the same
/// way.
#[derive(Debug)]
pub(crate) struct LiveSettings(watch::Sender<Arc<ReloadableSettings>>);

impl LiveSettings {
    pub(crate) fn new(rules: ReloadableSettings) -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(Arc::new(rules))))
    }

    /// The present settings. They cannot be replaced while the returned value is held.
    pub(crate) fn rules(&self) -> watch::Ref<'_, Arc<ReloadableSettings>> {
        self.0.borrow()
    }

    /// The present settings, and each change of them.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<ReloadableSettings>> {
        self.0.subscribe()
    }

    fn replace(&self, rules: ReloadableSettings) {
        self.0.send_replace(Arc::new(rules));
    }
}

/// Changes the settings of a running server.
#[derive(Debug, Clone)]
pub struct Control {
    pub(super) live: Arc<LiveSettings>,
    pub(super) certificates: Option<Arc<Certificates>>,
    /// The configured host name, which requests may always be addressed to.
    pub(super) host: String,
    /// The bans, which never cover a trusted proxy.
    pub(super) bans: Option<Arc<HostBans>>,
}

impl Control {
    /// Replaces the pages, host names and proxies. Open WebSockets that would not be admitted with the same rights end.
    pub fn set_rules(&self, origins: Origins, mut hosts: Vec<String>, proxies: Proxies) {
        hosts.push(self.host.to_ascii_lowercase());
        if let Some(warning) = origins.warning() {
            warn!("{warning}");
        }
        if let Some(bans) = &self.bans {
            bans.trust(proxies.networks.clone());
        }
        self.live.replace(ReloadableSettings { access: Access { origins, hosts }, proxies });
    }

    /// Reads the certificate again. New connections get the new one; if it cannot be used, the log says why, and the old
    /// one stays.
    pub fn reload_certificate(&self) {
        match self.certificates.as_ref().map(|certificates| certificates.reload()) {
            Some(Ok(true)) => info!("the TLS certificate was replaced"),
            Some(Err(failure)) => error!("the old TLS certificate stays in use: {failure}"),
            Some(Ok(false)) | None => {}
        }
    }
}
