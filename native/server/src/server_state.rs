//! State that all connections of a server share.

use std::sync::Arc;

use rootlight_limits::runs::RunQueue;
use tokio::sync::watch;

use super::admission::AdmissionRules;
use super::connection_slots::ConnectionSlots;
use super::key_sockets::KeySockets;
use super::limits::ServerLimits;
use super::live_settings::LiveSettings;
use super::page::Page;
use super::request_id::Ids;
use super::rests::Rests;
use super::sourcify::SourcifyAddress;
use crate::bans::HostBans;
use crate::metrics::Started;
use crate::service::{Counts, SharedService};

/// State that all connections share.
#[derive(Clone)]
pub(crate) struct ServerState {
    pub(crate) service: SharedService,
    pub(crate) counts: Counts,
    /// The settings that can change.
    pub(crate) live: Arc<LiveSettings>,
    pub(crate) admission: Arc<AdmissionRules>,
    pub(crate) page: Option<Page>,
    /// Where the page may ask for the functions of contracts.
    pub(crate) sourcify: Option<SourcifyAddress>,
    pub(crate) limits: Arc<ServerLimits>,
    pub(crate) websockets: Arc<ConnectionSlots>,
    /// The WebSockets of each API key.
    pub(crate) key_sockets: KeySockets,
    /// The banned addresses.
    pub(crate) bans: Option<Arc<HostBans>>,
    /// Schedules the reading of long messages.
    pub(crate) reads: Arc<RunQueue>,
    /// Schedules the compression of long answers.
    pub(crate) compressions: Arc<RunQueue>,
    /// When the bodies of each address may be read on.
    pub(crate) rests: Arc<Rests>,
    pub(crate) ids: Arc<Ids>,
    /// When the server started.
    pub(crate) started: Started,
    /// Becomes true when the server stops.
    pub(crate) stop: watch::Receiver<bool>,
}

/// Completes when the server stops.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await;
}
