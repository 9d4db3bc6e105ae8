//! The logs of a range for an answer that is written block by block.

use alloc::{sync::Arc, vec, vec::Vec};

use alloy_primitives::B256;

use super::{
    Refusal,
    log_filter::LogFilter,
    logs::{FoundLog, RangeStop, body_logs, check_count, weight},
    view::{Need, Stop, View, both},
};
use crate::{
    consensus::{VerifiedBody, VerifiedReceipts},
    types::BlockRef,
};

/// A block with logs that a filter selects.
struct Block {
    at: BlockRef,
    body: Arc<VerifiedBody>,
    receipts: Arc<VerifiedReceipts>,
    /// Least bytes of its logs in JSON.
    bytes: usize,
}

/// The blocks of a range that have logs for a filter. It shares the blocks with the chain, so its memory does not depend
/// on their logs, and it does not depend on the view from which it was made.
pub struct LogBlocks {
    filter: LogFilter,
    blocks: vec::IntoIter<Block>,
}

impl LogBlocks {
    /// Finds the canonical blocks from one height to another, both included, up to the head.
    ///
    /// # Errors
    /// As [`range_logs`](super::range_logs), but without a limit of bytes.
    pub fn of_range(view: &dyn View, from: u64, to: u64, filter: LogFilter) -> Result<Self, RangeStop> {
        let to = to.min(view.height()?);
        let (mut blocks, mut count) = (Vec::new(), 0_usize);
        for number in view.log_blocks(&filter, from, to) {
            if view.interrupted() {
                return Err(Stop::Refused(Refusal::Interrupted).into());
            }
            let Some(header) = view.header_by_number(number)? else { break };
            let (body, receipts) = both(view.body(&header), view.receipts(&header))?;
            let (logs, bytes) = weight(&receipts, &filter);
            if logs > 0 {
                let at = BlockRef { number, hash: header.hash() };
                blocks.push(Block { at, body, receipts, bytes });
            }
            count = count.saturating_add(logs);
            check_count(count, from, to, number)?;
        }
        Ok(Self { filter, blocks: blocks.into_iter() })
    }

    /// The block with this hash; none if there is no such block.
    ///
    /// # Errors
    /// As [`logs_by_hash`](super::logs_by_hash).
    pub fn of_block(view: &dyn View, block: B256, filter: LogFilter) -> Need<Self> {
        let mut blocks = Vec::new();
        if let Some(header) = view.header_by_hash(block)? {
            let (body, receipts) = both(view.body(&header), view.receipts(&header))?;
            let (_, bytes) = weight(&receipts, &filter);
            blocks.push(Block { at: BlockRef { number: header.number, hash: block }, body, receipts, bytes });
        }
        Ok(Self { filter, blocks: blocks.into_iter() })
    }

    /// The number of the next blocks that have at least this many bytes of logs, and the bytes of these blocks.
    fn ahead(&self, least: usize) -> (usize, usize) {
        let (mut count, mut bytes) = (0_usize, 0_usize);
        for block in self.blocks.as_slice() {
            if bytes >= least {
                break;
            }
            (count, bytes) = (count.saturating_add(1), bytes.saturating_add(block.bytes));
        }
        (count, bytes)
    }

    /// Approximate bytes in JSON of the logs that [`Self::take_next`] returns next.
    #[must_use]
    pub fn next_bytes(&self, least: usize) -> usize {
        self.ahead(least).1
    }

    /// The logs of the next blocks with at least this many bytes, or of all that are left. Empty at the end.
    pub fn take_next(&mut self, least: usize) -> Vec<FoundLog> {
        let (count, _) = self.ahead(least);
        let next = self.blocks.by_ref().take(count);
        next.flat_map(|block| body_logs(block.at, &block.body, &block.receipts, &self.filter)).collect()
    }

    /// Whether no logs are left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.as_slice().is_empty()
    }
}
