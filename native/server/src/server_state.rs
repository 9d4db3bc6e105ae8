//! The state that all connections of a server share.

use std::net::IpAddr;
use std::sync::Arc;

use rootlight_limits::runs::RunQueue;
use tokio::sync::watch;

use super::access::Access;
use super::admission::AdmissionRules;
use super::connection_slots::ConnectionSlots;
use super::key_sockets::KeySockets;
use super::limits::ServerLimits;
use super::page::Page;
use super::proxies::Proxies;
use super::rests::Rests;
use super::sourcify::SourcifyAddress;
use crate::bans::HostBans;
use crate::metrics::Started;
use crate::service::{Counts, SharedService};

/// The settings that can change while the server runs.
#[derive(Debug)]
pub(crate) struct ReloadableSettings {
    /// The hosts and pages that are served.
    pub(crate) access: Access,
    /// The proxies that are trusted.
    pub(crate) proxies: Proxies,
}

/// The state that all connections share.
#[derive(Clone)]
pub(crate) struct ServerState {
    /// The engine that answers messages.
    pub(crate) service: SharedService,
    /// The budgets and metrics, which the service uses too.
    pub(crate) counts: Counts,
    /// The settings that can change. A request uses the settings at its beginning; a WebSocket ends when new settings would not
    /// admit it in the same way.
    pub(crate) live: watch::Sender<Arc<ReloadableSettings>>,
    /// The rules for paths, profiles and API keys.
    pub(crate) admission: Arc<AdmissionRules>,
    /// The page for browsers, if the server shows one.
    pub(crate) page: Option<Page>,
    /// The Sourcify server that the page may ask for the ABI of a contract, if any.
    pub(crate) sourcify: Option<SourcifyAddress>,
    /// The limits of sizes, counts and times.
    pub(crate) limits: Arc<ServerLimits>,
    /// The slots of WebSockets. A connection that becomes a WebSocket gives its slot among the other connections back.
    pub(crate) websockets: Arc<ConnectionSlots>,
    /// The WebSockets of each API key.
    pub(crate) key_sockets: KeySockets,
    /// The banned addresses.
    pub(crate) bans: Option<Arc<HostBans>>,
    /// Schedules the parsing of long messages.
    pub(crate) reads: Arc<RunQueue>,
    /// Schedules the compression of long answers.
    pub(crate) compressions: Arc<RunQueue>,
    /// When the next piece of the bodies of each caller may be read.
    pub(crate) rests: Arc<Rests>,
    /// When the server started.
    pub(crate) started: Started,
    /// Becomes true when the server stops.
    pub(crate) stop: watch::Receiver<bool>,
}

impl ServerState {
    /// Whether clients of this address are refused.
    pub(crate) fn is_banned(&self, address: IpAddr) -> bool {
        self.bans.as_ref().is_some_and(|bans| bans.is_banned(address))
    }
}

/// Completes when the server stops.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await;
}
