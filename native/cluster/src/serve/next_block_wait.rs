//! Messages about blocks that other front ends may show already.
//!
//! A front end that cannot reach the store shows its own newest block. A client that has seen a block at one of them and asks
//! the next one about its number would hear that there is none, or get the logs of the blocks before it. So a message
//! that names one of the next blocks waits for it for a moment, at a front end that is cut off and at those that have lost one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rootlight::rpc::Message;
use rootlight_limits::priority::SHORT_JSON;
use rootlight_node::light::VisibleHead;

use super::backend::NewBlocks;

/// How long front ends may differ after a report that failed, and after the store was emptied.
const UNSURE: Duration = Duration::from_secs(10);
/// How long after the last report of another front end it may be cut off from the store, and not gone.
const LOST: Duration = Duration::from_secs(60);
/// How many blocks above its head a front end waits for.
const NEXT: u64 = 16;
/// Longest wait for such a block.
const WAIT: Duration = Duration::from_secs(2);
/// Interval of looks at the backends meanwhile, however many messages wait: only they may tell of the block.
const LOOK: Duration = Duration::from_millis(250);

/// Lets messages wait for blocks that other front ends may show.
pub(super) struct NextBlockWait {
    head: VisibleHead,
    new_blocks: NewBlocks,
    unsure_until: Mutex<Option<Instant>>,
    looked: Mutex<Option<Instant>>,
}

impl NextBlockWait {
    pub(super) const fn new(head: VisibleHead, new_blocks: NewBlocks) -> Self {
        Self { head, new_blocks, unsure_until: Mutex::new(None), looked: Mutex::new(None) }
    }

    /// Notes that a report about the head failed, or that the store has forgotten which block is shown.
    pub(super) fn report_failed(&self) {
        self.unsure_for(UNSURE);
    }

    /// Notes that another front end was lost this long ago.
    pub(super) fn was_lost(&self, ago: Duration) {
        self.unsure_for(LOST.saturating_sub(ago));
    }

    fn unsure_for(&self, time: Duration) {
        let mut until = self.unsure_until.lock().unwrap_or_else(PoisonError::into_inner);
        *until = (*until).max(Instant::now().checked_add(time));
    }

    /// Whether other front ends may show other blocks.
    pub(super) fn is_unsure(&self) -> bool {
        let until = *self.unsure_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Waits for the newest block that a message names, if it is one of the next; not while messages are refused.
    pub(super) async fn wait_for_named(&self, message: &Message) {
        let mut changes = self.head.changes();
        let Some(head) = self.head.served() else { return };
        let is_next = |number: &u64| (1..=NEXT).contains(&number.saturating_sub(head.number));
        let Some(wanted) = named(message).into_iter().filter(is_next).max() else { return };
        let reached = async {
            while self.head.served().is_none_or(|head| head.number < wanted) {
                self.look();
                if let Ok(Err(_)) = tokio::time::timeout(LOOK, changes.changed()).await {
                    return;
                }
            }
        };
        // A block that does not come in time is answered as unknown.
        tokio::select! {
            biased;
            () = self.head.refuses() => {}
            _ = tokio::time::timeout(WAIT, reached) => {}
        }
    }

    /// Makes the backends look for new blocks, unless they did a moment ago.
    fn look(&self) {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_none_or(|last| last.elapsed() >= LOOK) {
            *looked = Some(Instant::now());
            self.new_blocks.look();
        }
    }
}

/// The numbers of blocks that a message names; none of a long one.
fn named(message: &Message) -> Vec<u64> {
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
            named(&read(text.as_bytes()))
        };
        assert_eq!(of("eth_getBalance", r#"["0x01","0x1f"]"#), [31]);
        assert_eq!(of("eth_call", r#"[{"to":"0x01"},{"blockNumber":"0x2"}]"#), [2]);
        assert_eq!(of("eth_getBlockByNumber", r#"["0x7",true]"#), [7]);
        assert_eq!(of("eth_getLogs", r#"[{"fromBlock":"0x1","toBlock":"0x2","address":"0x03"}]"#), [1, 2]);
        assert_eq!(of("trace_filter", r#"[{"toBlock":"0x9"}]"#), [9]);
        let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_getCode","params":["0x01","0x1"]},
            {"jsonrpc":"2.0","id":2,"method":"eth_blockNumber"},{"id":3},
            {"jsonrpc":"2.0","id":4,"method":"eth_getStorageAt","params":["0x01","0x5","0x3"]}]"#;
        assert_eq!(named(&read(batch.as_bytes())), [1, 3]);
        for (method, params) in [
            ("eth_getBalance", r#"["0x01","latest"]"#),
            ("eth_getLogs", r#"[{"blockHash":"0x1"}]"#),
            ("eth_getUncleCountByBlockHash", r#"["0x1"]"#),
            ("no_such", r#"["0x1"]"#),
        ] {
            assert_eq!(of(method, params), [0; 0], "{method} {params}");
        }
        assert!(named(&read(b"{")).is_empty() && named(&read(&vec![b' '; SHORT_JSON + 1])).is_empty());
    }
}
