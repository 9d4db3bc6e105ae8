//! The logs of a range of an executed chain, for an answer that a server writes piece by piece, so that its memory does not depend
//! on the length of the answer.

use alloc::{sync::Arc, vec, vec::Vec};

use alloy_primitives::B256;

use super::{
    Refusal,
    chain::Chain,
    log_filter::LogFilter,
    logs::{FoundLog, LogWeight, RangeStop, check_count, each_log, json_bytes, weight},
    stop::{Stop, ViewResult, both},
};
use crate::{
    consensus::{VerifiedBody, VerifiedReceipts},
    types::BlockRef,
};

/// A block with logs for a filter.
struct SelectedBlock {
    at: BlockRef,
    body: Arc<VerifiedBody>,
    receipts: Arc<VerifiedReceipts>,
    weight: LogWeight,
}

/// The blocks of a range that have logs for a filter. The blocks are shared with the chain, so the list takes little memory
/// however many logs there are, and it stays valid without the view from which it was made.
pub struct LogBlocks {
    filter: LogFilter,
    blocks: vec::IntoIter<SelectedBlock>,
    /// The number of logs of the first block that were returned already.
    taken: usize,
}

impl LogBlocks {
    /// Finds the canonical blocks from one height to another, both included, up to the head.
    ///
    /// # Errors
    /// As [`range_logs`](super::range_logs), but without a limit of bytes.
    pub fn of_range(view: &dyn Chain, from: u64, to: u64, filter: LogFilter) -> Result<Self, RangeStop> {
        let to = to.min(view.height()?);
        let (mut blocks, mut count) = (Vec::new(), 0_usize);
        for number in view.log_blocks(&filter, from, to) {
            if view.policy().interrupted() {
                return Err(Stop::Refused(Refusal::Interrupted).into());
            }
            let Some(header) = view.header_by_number(number)? else { break };
            let (body, receipts) = both(view.body(&header), view.receipts(&header))?;
            let weight = weight(&receipts, &filter);
            if weight.logs > 0 {
                let at = BlockRef { number, hash: header.hash() };
                blocks.push(SelectedBlock { at, body, receipts, weight });
            }
            count = count.saturating_add(weight.logs);
            check_count(count, from, to, number)?;
        }
        Ok(Self { filter, blocks: blocks.into_iter(), taken: 0 })
    }

    /// The block with this hash; none if there is no such block.
    pub fn of_block(view: &dyn Chain, block: B256, filter: LogFilter) -> ViewResult<Self> {
        let mut blocks = Vec::new();
        if let Some(header) = view.header_by_hash(block)? {
            let (body, receipts) = both(view.body(&header), view.receipts(&header))?;
            let weight = weight(&receipts, &filter);
            blocks.push(SelectedBlock {
                at: BlockRef { number: header.number, hash: block },
                body,
                receipts,
                weight,
            });
        }
        Ok(Self { filter, blocks: blocks.into_iter(), taken: 0 })
    }

    /// Most bytes in JSON, approximately, of the logs that [`Self::take_next`] returns next for the same `least`.
    pub fn next_bytes(&self, least: usize) -> usize {
        let (mut bytes, mut longest) = (0_usize, 0);
        for SelectedBlock { weight, .. } in self.blocks.as_slice() {
            bytes = bytes.saturating_add(weight.bytes);
            longest = weight.longest.max(longest);
            if bytes >= least {
                break;
            }
        }
        bytes.min(least.saturating_add(longest))
    }

    /// The next logs, with at least `least` bytes in JSON, or all that are left. Empty at the end.
    pub fn take_next(&mut self, least: usize) -> Vec<FoundLog> {
        let (mut found, mut bytes) = (Vec::new(), 0_usize);
        while bytes < least {
            let Some(block) = self.blocks.as_slice().first() else { break };
            let mut passed = 0_usize;
            each_log(&block.body, &block.receipts, &self.filter, |log| {
                passed = passed.saturating_add(1);
                if passed > self.taken {
                    bytes = bytes.saturating_add(json_bytes(log.log));
                    found.push(log.found(block.at));
                }
                bytes < least
            });
            self.taken = passed;
            if passed >= block.weight.logs {
                self.blocks.next();
                self.taken = 0;
            }
        }
        found
    }

    /// Whether no logs are left.
    pub fn is_empty(&self) -> bool {
        self.blocks.as_slice().is_empty()
    }
}
