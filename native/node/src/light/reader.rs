//! A light client that reads the header store of another program and does not write it; also the accessor of a client's Bitcoin
//! chain.

use std::path::Path;
use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight::light::bitcoin::BitcoinFollower;
use rootlight_server::bans::HostBans;
use rootlight_upstream::SharedUpstream;

use super::bitcoin::HeaderFolder;
use super::checkpoint::LightStart;
use super::options::LightOptions;
use super::service::LightService;

impl LightService {
    /// Does what [`Self::start`] does, but continues a start by window from the verified headers, Bitcoin's among them, in a folder
    /// that another program writes. This client writes nothing there. If the folder cannot be read, the client starts without it.
    #[must_use]
    pub fn resume_reading(
        network: Network,
        start: impl Into<LightStart>,
        upstreams: Vec<SharedUpstream>,
        options: LightOptions,
        folder: &Path,
    ) -> Self {
        let bans = Arc::<HostBans>::default();
        let mut shared = Self::shared(network, start.into(), &upstreams, &options, &bans);
        shared.read_headers_in(folder);
        Self::launch(shared, upstreams, options, bans, Some(HeaderFolder { path: folder, is_own: false }))
    }

    /// The state of Bitcoin's chain, and its evidence for this client's; `None` if there are no sources.
    #[must_use]
    pub fn bitcoin(&self) -> Option<Arc<BitcoinFollower>> {
        self.shared.client.sync().bitcoin().cloned()
    }
}
