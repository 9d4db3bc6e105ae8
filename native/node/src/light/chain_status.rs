//! The state of a light client, as the server's metrics and probes show it.

use std::time::Duration;

use rootlight::light::{PinnedHead, UpstreamState};
use rootlight_server::service::{BitcoinHealth, ServiceStatus, UpstreamHealth};

/// The state of the chain and of the upstreams at a pinned head. `sources` is the number of sources of Bitcoin's chain that answer.
pub(super) fn of(pinned: &PinnedHead, sources: usize) -> ServiceStatus {
    let head = pinned.chain().map(|chain| chain.head());
    let progress = pinned.progress();
    let upstreams = pinned.states().iter().enumerate();
    ServiceStatus {
        head: head.map(|head| (head.number, head.timestamp)),
        target: Some(progress.target),
        synced: pinned.is_synced() && progress.head >= progress.target,
        upstreams: upstreams.map(|(index, state)| upstream(pinned, index, state)).collect(),
        bitcoin: pinned.bitcoin().map(|follower| BitcoinHealth {
            tip: follower.tip().map(|tip| (tip.height, tip.time)),
            sources,
            report: pinned.bitcoin_report(),
        }),
    }
}

fn upstream(pinned: &PinnedHead, index: usize, state: &UpstreamState) -> UpstreamHealth {
    UpstreamHealth {
        name: pinned.upstream_name(index).unwrap_or_default().to_owned(),
        healthy: state.resting.is_none(),
        announced: state.announced,
        latency: Duration::from_millis(state.record.latency),
        demerits: state.record.demerits,
        lies: state.record.lies,
    }
}
