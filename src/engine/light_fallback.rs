//! Answers that a light client computes itself where its upstreams have no method for them. Nodes of the peer-to-peer network,
//! for example, serve neither receipts nor the locations of transactions: the client then executes a block again on its parent's
//! proven state, and looks for a transaction in the newest blocks.

use alloc::{sync::Arc, vec::Vec};

use alloy_primitives::B256;

use super::{BlockHeader, Chain, Refusal, Stop, ViewResult};
use crate::{
    consensus::{ChainView, VerifiedReceipts},
    state::Facts,
    types::BlockRef,
};

/// Most blocks that one message may have executed again: as many as one request for traces may cover on a light client.
const MAX_EXECUTED: usize = 128;

/// Most blocks of one run whose execution has stopped at missing state. Each of them is executed again after each round of
/// requests, so later blocks wait.
const OPEN_BLOCKS: usize = 4;

/// Blocks from the head downwards in which a transaction is looked for: about half an hour of the main network.
const SEARCHED_BLOCKS: u64 = 64;

/// Most bodies that are requested at a time while a transaction is looked for. The newest blocks come first, so that a
/// recent transaction needs only one round.
const BODIES_AT_ONCE: usize = 16;

/// The blocks that one run of a message has executed, or begun to execute.
#[derive(Debug, Default)]
pub(crate) struct ExecutedBlocks {
    /// The receipts of the blocks whose execution is complete.
    pub(crate) receipts: Vec<Arc<VerifiedReceipts>>,
    /// The block whose execution was begun last, if it has not completed.
    pub(crate) stopped: Option<BlockRef>,
    /// The missing facts of blocks whose execution is not complete.
    missing: Facts,
    /// The number of blocks whose execution is not complete.
    open: usize,
    /// The number of blocks that the run wanted to execute.
    wanted: usize,
}

impl ExecutedBlocks {
    /// The receipts of a block that this run has executed.
    pub(super) fn find(&self, block: &B256) -> Option<&Arc<VerifiedReceipts>> {
        self.receipts.iter().find(|receipts| receipts.block() == *block)
    }

    /// Begins an execution; `before` is the number of blocks that earlier runs of the message have executed.
    ///
    /// # Errors
    /// The missing facts of the blocks before this one, if there are [`OPEN_BLOCKS`] of them; a refusal above [`MAX_EXECUTED`].
    pub(super) fn begin(&mut self, block: BlockRef, before: usize) -> ViewResult<()> {
        self.wanted = self.wanted.saturating_add(1);
        if before.saturating_add(self.wanted) > MAX_EXECUTED {
            return Err(Stop::Refused(Refusal::TooManyBlocks { max: MAX_EXECUTED as u64 }));
        }
        if self.open >= OPEN_BLOCKS {
            return Err(Stop::Missing(self.missing.clone()));
        }
        self.stopped = Some(block);
        Ok(())
    }

    /// Ends the execution that was begun.
    ///
    /// # Errors
    /// The error of the execution.
    pub(super) fn end(
        &mut self,
        receipts: ViewResult<VerifiedReceipts>,
    ) -> ViewResult<Arc<VerifiedReceipts>> {
        let receipts = receipts.inspect_err(|stop| {
            let Stop::Missing(facts) = stop else { return };
            self.open = self.open.saturating_add(1);
            self.missing.extend(facts);
        })?;
        let receipts = Arc::new(receipts);
        self.receipts.push(receipts.clone());
        self.stopped = None;
        Ok(receipts)
    }
}

/// Looks for a transaction in the newest blocks of the chain. Returns its block and its index there; `None` if these
/// blocks do not contain it.
///
/// # Errors
/// Bodies that are missing.
pub(super) fn search(
    view: &dyn Chain,
    chain: &ChainView,
    transaction: B256,
) -> ViewResult<Option<(BlockHeader, usize)>> {
    let head = chain.head().number;
    let oldest = head.saturating_add(1).saturating_sub(SEARCHED_BLOCKS).max(chain.lowest());
    let mut missing = Facts::new();
    for header in (oldest..=head).rev().map_while(|number| chain.by_number(number)) {
        let header = BlockHeader::from(header);
        match view.body(&header) {
            Ok(body) => {
                if let Some(index) = body.position(&transaction) {
                    return Ok(Some((header, index)));
                }
            }
            Err(Stop::Missing(facts)) => missing.extend(facts),
            Err(refused) => return Err(refused),
        }
        if missing.len() >= BODIES_AT_ONCE {
            break;
        }
    }
    if missing.is_empty() { Ok(None) } else { Err(Stop::Missing(missing)) }
}

/// The refusal of a transaction that [`search`] has not found.
pub(super) fn not_found() -> Stop {
    Stop::Refused(Refusal::NotInNewestBlocks { blocks: SEARCHED_BLOCKS })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Fact, StateKey};

    fn block(number: usize) -> BlockRef {
        BlockRef { number: number as u64, hash: B256::ZERO }
    }

    /// Each run executes all blocks that miss state, so their number is limited.
    #[test]
    fn later_blocks_wait_until_earlier_ones_have_their_state() {
        let mut blocks = ExecutedBlocks::default();
        let fact = |number| Fact::State(block(number), StateKey::Account(alloy_primitives::Address::ZERO));
        for number in 0..OPEN_BLOCKS {
            blocks.begin(block(number), 0).unwrap();
            blocks.end(Err(Stop::Missing(Facts::from([fact(number)])))).unwrap_err();
        }
        let waits = blocks.begin(block(OPEN_BLOCKS), 0).unwrap_err();
        assert_eq!(waits, Stop::Missing((0..OPEN_BLOCKS).map(fact).collect()));
        assert_eq!(blocks.stopped, Some(block(OPEN_BLOCKS - 1)));
    }

    /// A range with too many blocks is refused at once, and not when most of them are executed.
    #[test]
    fn a_message_may_have_a_limited_number_of_blocks_executed() {
        let refused = |blocks: &mut ExecutedBlocks, before| {
            matches!(blocks.begin(block(1), before), Err(Stop::Refused(Refusal::TooManyBlocks { max: 128 })))
        };
        assert!(!refused(&mut ExecutedBlocks::default(), MAX_EXECUTED - 1));
        assert!(refused(&mut ExecutedBlocks::default(), MAX_EXECUTED));
        let mut many = ExecutedBlocks { open: OPEN_BLOCKS, ..ExecutedBlocks::default() };
        assert!((0..MAX_EXECUTED).all(|_| !refused(&mut many, 0)));
        assert!(refused(&mut many, 0));
    }
}
