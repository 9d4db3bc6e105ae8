//! Notices that a development chain has begun anew, because its program was started again or went back to an earlier block, and makes
//! the client begin anew with it.
//!
//! Such a chain may be shorter than the verified one, and never links to it. A client that starts at the block 0 that its
//! upstreams show has no more reason to trust the former chain than the new one, so that it begins anew with them.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use futures::future::join_all;
use rootlight::consensus::Network;
use rootlight_upstream::SharedUpstream;
use tracing::{info, warn};

use super::first_block::{block_of, first_block};
use super::shared_light::SharedLight;

/// Time between two checks of the upstreams' chain.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Number of checks in a row without the verified head at any upstream, after which a chain counts as begun anew. A single such check
/// may mean that the upstreams have moved to a heavier branch, which synchronization follows.
const MAX_CHECKS_WITHOUT_HEAD: u32 = 2;

/// Checks the upstreams' chain until the service is dropped.
pub(super) async fn watch(shared: Arc<SharedLight>, upstreams: Vec<SharedUpstream>) {
    let network = shared.client.sync().network().clone();
    let (mut former, mut checks_without_head) = (None, 0);
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let head = shared.client.sync().chain().map(|chain| (chain.head().number, chain.head().hash()));
        let Some((number, hash)) = head else { continue };
        // A head that has just changed is not checked.
        let is_gone =
            former.replace(hash) == Some(hash) && is_lacking(&network, &upstreams, number, hash).await;
        checks_without_head = if is_gone { checks_without_head + 1 } else { 0 };
        if checks_without_head >= MAX_CHECKS_WITHOUT_HEAD {
            checks_without_head = 0;
            begin_anew(&shared, &network, &upstreams, number).await;
        }
    }
}

/// Whether all upstreams that respond have another block at the height of the verified head, or none. An upstream that does
/// not respond does not count; without any response the function returns `false`.
async fn is_lacking(network: &Network, upstreams: &[SharedUpstream], number: u64, hash: B256) -> bool {
    let shown = join_all(upstreams.iter().map(|upstream| block_of(network, upstream, number))).await;
    let mut responses =
        shown.into_iter().flatten().map(|header| header.map(|header| header.hash())).peekable();
    responses.peek().is_some() && responses.all(|shown| shown != Some(hash))
}

/// Begins anew at the block 0 that the upstreams show now, if they agree.
async fn begin_anew(shared: &SharedLight, network: &Network, upstreams: &[SharedUpstream], head: u64) {
    let block = match first_block(network, upstreams).await {
        Ok(block) => block,
        Err(error) => return info!("the upstreams do not have the verified head {head} any more: {error}"),
    };
    warn!(
        "the upstreams' chain has begun anew: none has the verified head {head}, and their block 0 is {}; following it \
         from there, and forgetting the former chain",
        block.hash
    );
    shared.client.sync_mut().begin_anew(block);
    shared.changed();
}
