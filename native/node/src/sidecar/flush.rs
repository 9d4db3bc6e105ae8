//! Asks the node at intervals to write its newest states to disk (`rootlight sidecar --flush`), where the sidecar reads them.

use std::sync::Weak;
use std::time::Duration;

use rootlight_upstream::call;
use serde_json::json;
use tracing::{debug, warn};

use super::state::SidecarState;

/// Calls `rsk_flush` of the node once in an interval, if the state of its head is not on disk yet, until the service is dropped.
pub(super) async fn run(service: Weak<SidecarState>, interval: Duration) {
    let mut warned = false;
    loop {
        tokio::time::sleep(interval).await;
        let Some(parts) = service.upgrade() else { return };
        let pinned = parts.light.pinned();
        let Some(head) = pinned.chain().map(|chain| chain.head().number) else { continue };
        if parts.provable.newest(&pinned) == Some(head) {
            continue;
        }
        match parts.node.request(vec![call("rsk_flush", json!([]))]).await.pop() {
            Some(Ok(_)) => {
                debug!("the node has written its states to disk");
                warned = false;
                parts.catch_up().await;
            }
            Some(Err(error)) if !warned => {
                warn!(
                    "rsk_flush of the node: {error}; remove it from rpc.modules.rsk.methods.disabled in the node's configuration, or leave --flush out"
                );
                warned = true;
            }
            // No response, or a failure that was logged before.
            _ => {}
        }
    }
}
