//! The blocks that a filter of a light client has reported. Each poll compares them with the view and reports the difference.

use alloc::vec::Vec;

use crate::{
    engine::{
        BlockHeader, Refusal,
        block_id::newest_answerable_height,
        chain::Chain,
        logs::{FoundLog, RangeStop},
        stop::{Stop, ViewResult},
    },
    types::BlockRef,
};

/// Number of reported blocks that a filter remembers. After a deeper reorganisation, the logs of older blocks are not reported
/// as removed.
pub const MAX_REPORTED_BLOCKS: usize = 256;
/// Number of reported logs that a filter remembers, so that they can be reported as removed even if the host no longer has
/// their blocks: about a megabyte, if the logs have little data.
pub const MAX_REPORTED_LOGS: usize = 4_096;
/// Approximate bytes of a remembered log without its data.
const LOG_BYTES: usize = 256;

/// A reported block, with those of its logs that were reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedBlock {
    /// The block.
    pub block: BlockRef,
    /// The logs of the block that were reported.
    pub logs: Vec<FoundLog>,
}

/// The last reported blocks, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct ReportedBlocks(pub(super) Vec<ReportedBlock>);

/// The blocks in which a view differs from the reported blocks, and their logs, oldest first.
#[derive(Default)]
pub(super) struct ChainDelta {
    /// Canonical blocks that were not reported.
    pub(super) new: Vec<BlockHeader>,
    /// Logs of the new blocks that the filter selects; in the first poll, all logs of its range.
    pub(super) logs: Vec<FoundLog>,
    /// Reported logs of blocks that left the chain.
    pub(super) removed: Vec<FoundLog>,
}

impl ReportedBlocks {
    /// The blocks of a new filter: the head and blocks below it count as reported, because a later reorganisation may go below
    /// this head.
    pub(super) fn new(view: &dyn Chain) -> ViewResult<Self> {
        let head = newest_answerable_height(view)?;
        let mut reported = Self::default();
        reported.extend(&headers(view, head.saturating_sub(MAX_REPORTED_BLOCKS as u64), head)?);
        Ok(reported)
    }

    /// The memory of the blocks and their logs in bytes, approximately.
    pub(super) fn bytes(&self) -> usize {
        let logs = self.0.iter().flat_map(|reported| &reported.logs);
        let logs =
            logs.fold(0_usize, |sum, log| sum.saturating_add(log.log.data.len()).saturating_add(LOG_BYTES));
        size_of_val(&*self.0).saturating_add(logs)
    }

    /// Makes the canonical blocks of the view the reported ones, and returns the difference. `logs` returns the selected logs of
    /// the blocks above a height up to the head; it may lower the head, if the logs of fewer blocks fit into the answer.
    /// `is_first` is set for the first poll of a filter with logs, which reports the logs of its range even if the view is older
    /// than the filter.
    ///
    /// # Errors
    /// The errors of `logs` and of the look-ups in the view. After an error nothing has changed.
    pub(super) fn advance(
        &mut self,
        view: &dyn Chain,
        is_first: bool,
        logs: impl FnOnce(u64, &mut u64) -> Result<Vec<FoundLog>, RangeStop>,
    ) -> Result<ChainDelta, RangeStop> {
        let mut head = newest_answerable_height(view)?;
        let (stayed, kept) = self.fork(view, head);
        if kept == head && stayed < self.0.len() && !is_first {
            // The view is older than the one that was polled last: the blocks above its head have not left the chain. On a
            // light client the head never goes back on its own branch.
            return Ok(ChainDelta::default());
        }
        let logs = logs(kept, &mut head)?;
        let new = headers(view, kept.saturating_add(1), head)?;
        let removed = self.replace(stayed, &new, &logs);
        Ok(ChainDelta { new, logs, removed })
    }

    /// Adds blocks as reported, without logs.
    fn extend(&mut self, new: &[BlockHeader]) {
        let blocks = new.iter().map(|header| BlockRef { number: header.number, hash: header.hash() });
        self.0.extend(blocks.map(|block| ReportedBlock { block, logs: Vec::new() }));
    }

    /// How many of the reported blocks are still canonical, and the height of the newest of these. If none is, the height below
    /// the oldest reported block; if there are no blocks, the head.
    fn fork(&self, view: &dyn Chain, head: u64) -> (usize, u64) {
        let stayed = self.0.iter().rposition(|reported| view.is_canonical(reported.block));
        let kept = match (stayed.and_then(|at| self.0.get(at)), self.0.first()) {
            (Some(reported), _) => reported.block.number,
            (None, Some(oldest)) => oldest.block.number.saturating_sub(1).min(head),
            (None, None) => head,
        };
        (stayed.map_or(0, |at| at.saturating_add(1)), kept)
    }

    /// Replaces the blocks after the first `stayed`, which left the chain, by the new blocks. Returns the reported logs of the
    /// blocks that left, oldest first.
    fn replace(&mut self, stayed: usize, new: &[BlockHeader], logs: &[FoundLog]) -> Vec<FoundLog> {
        let removed = self.0.split_off(stayed).into_iter().flat_map(|reported| reported.logs).collect();
        self.extend(new);
        self.0.drain(..self.0.len().saturating_sub(MAX_REPORTED_BLOCKS));
        let mut count = 0_usize;
        for reported in self.0.iter_mut().rev() {
            // The first poll may report logs of blocks that count as reported already.
            reported.logs.extend(logs.iter().filter(|log| log.block == reported.block).cloned());
            count = count.saturating_add(reported.logs.len());
            // The logs of the newest blocks are remembered.
            if count > MAX_REPORTED_LOGS {
                reported.logs.clear();
            }
        }
        removed
    }
}

/// The blocks of a range that the view has, oldest first.
fn headers(view: &dyn Chain, from: u64, to: u64) -> ViewResult<Vec<BlockHeader>> {
    let mut blocks = Vec::new();
    for number in from..=to {
        match view.header_by_number(number) {
            Ok(header) => blocks.extend(header),
            // A light client has no headers far below its checkpoint, and no reorganisation reaches them.
            Err(Stop::Refused(Refusal::TooOld { .. })) => {}
            Err(stop) => return Err(stop),
        }
    }
    Ok(blocks)
}
