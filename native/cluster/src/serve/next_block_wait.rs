//! Makes messages wait for blocks that other front ends may show already.
//!
//! A front end that cannot reach the hot store shows its own newest block. A client that has seen a block at one front end and asks
//! another one about the block's number could get the answer that there is no such block, or only the logs of the blocks before it.
//! So a message that names one of the next blocks waits for that block for a moment: at a front end that cannot reach the store,
//! and at those that miss another front end.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rootlight::rpc::Message;
use rootlight_limits::priority::SHORT_JSON;
use rootlight_node::light::VisibleHead;

use super::backend::NewBlocks;

/// How long front ends may differ after a report that failed, and after the store was emptied.
const UNSURE_TIME: Duration = Duration::from_secs(10);
/// How long after its last report another front end may still run without reaching the store; later it counts as stopped.
const LOST_TIME: Duration = Duration::from_secs(60);
/// How many blocks above the head a named block may be for a message to wait for it.
const MAX_DISTANCE: u64 = 16;
/// Longest wait for such a block.
const WAIT: Duration = Duration::from_secs(2);
/// Least interval at which backends are asked for new blocks meanwhile, however many messages wait. Announcements of other front ends
/// may not arrive.
const ASK_INTERVAL: Duration = Duration::from_millis(250);

/// Lets messages wait for blocks that other front ends may show.
pub(super) struct NextBlockWait {
    head: VisibleHead,
    new_blocks: NewBlocks,
    /// Until when other front ends may show other blocks.
    unsure_until: Mutex<Option<Instant>>,
    /// When the backends were asked last.
    asked: Mutex<Option<Instant>>,
}

impl NextBlockWait {
    pub(super) const fn new(head: VisibleHead, new_blocks: NewBlocks) -> Self {
        Self { head, new_blocks, unsure_until: Mutex::new(None), asked: Mutex::new(None) }
    }

    /// Notes that a report about the head failed, or that the store has lost which block is shown.
    pub(super) fn report_failed(&self) {
        self.unsure_for(UNSURE_TIME);
    }

    /// Notes that another front end was lost this long ago.
    pub(super) fn was_lost(&self, ago: Duration) {
        self.unsure_for(LOST_TIME.saturating_sub(ago));
    }

    /// Notes that other front ends may show other blocks for this time from now on.
    fn unsure_for(&self, time: Duration) {
        let mut until = self.unsure_until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(Instant::now().checked_add(time));
    }

    /// Whether other front ends may show other blocks.
    pub(super) fn is_unsure(&self) -> bool {
        let until = *self.unsure_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Waits for the newest block that a message names, if that block is a little above the head. Does not wait while messages are
    /// refused.
    pub(super) async fn wait_for_named(&self, message: &Message) {
        let mut changes = self.head.changes();
        let Some(head) = self.head.newest_visible() else { return };
        let is_next = |number: &u64| (1..=MAX_DISTANCE).contains(&number.saturating_sub(head.number));
        let Some(wanted) = named_blocks(message).into_iter().filter(is_next).max() else { return };
        let reached = async {
            while self.head.newest_visible().is_none_or(|head| head.number < wanted) {
                self.ask_backends();
                if let Ok(Err(_)) = tokio::time::timeout(ASK_INTERVAL, changes.changed()).await {
                    return;
                }
            }
        };
        // If the block does not come in time, the message is answered without it.
        tokio::select! {
            biased;
            () = self.head.refuses() => {}
            _ = tokio::time::timeout(WAIT, reached) => {}
        }
    }

    /// Asks the backends for new blocks, unless they were asked a moment ago.
    fn ask_backends(&self) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.is_none_or(|last| last.elapsed() >= ASK_INTERVAL) {
            *asked = Some(Instant::now());
            self.new_blocks.look();
        }
    }
}

/// The numbers of blocks that a message names; empty for a long message, whose reading would take too long here.
fn named_blocks(message: &Message) -> Vec<u64> {
    match message.bytes() <= SHORT_JSON {
        true => message.calls().flat_map(|call| call.blocks()).collect(),
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::read;

    #[test]
    fn blocks_are_named_by_numbers_maps_and_filters() {
        let of = |method: &str, params: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            named_blocks(&read(text.as_bytes()))
        };
        assert_eq!(of("eth_getBalance", r#"["0x01","0x1f"]"#), [31]);
        assert_eq!(of("eth_call", r#"[{"to":"0x01"},{"blockNumber":"0x2"}]"#), [2]);
        assert_eq!(of("eth_getBlockByNumber", r#"["0x7",true]"#), [7]);
        assert_eq!(of("eth_getLogs", r#"[{"fromBlock":"0x1","toBlock":"0x2","address":"0x03"}]"#), [1, 2]);
        assert_eq!(of("trace_filter", r#"[{"toBlock":"0x9"}]"#), [9]);
        let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_getCode","params":["0x01","0x1"]},
            {"jsonrpc":"2.0","id":2,"method":"eth_blockNumber"},{"id":3},
            {"jsonrpc":"2.0","id":4,"method":"eth_getStorageAt","params":["0x01","0x5","0x3"]}]"#;
        assert_eq!(named_blocks(&read(batch.as_bytes())), [1, 3]);
        for (method, params) in [
            ("eth_getBalance", r#"["0x01","latest"]"#),
            ("eth_getLogs", r#"[{"blockHash":"0x1"}]"#),
            ("eth_getUncleCountByBlockHash", r#"["0x1"]"#),
            ("no_such", r#"["0x1"]"#),
        ] {
            assert_eq!(of(method, params), [0; 0], "{method} {params}");
        }
        assert!(
            named_blocks(&read(b"{")).is_empty()
                && named_blocks(&read(&vec![b' '; SHORT_JSON + 1])).is_empty()
        );
    }
}
