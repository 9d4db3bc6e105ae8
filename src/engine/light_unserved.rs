//! What a light client finds out itself where its upstreams have no method for it, as nodes of the peer-to-peer network
//! have none for receipts and places of transactions: it executes a block again on its parent's proven state, and looks
//! for a transaction in the newest blocks.

use alloc::{sync::Arc, vec::Vec};

use alloy_primitives::B256;

use super::{
    BlockHeader, Refusal,
    light_replay::replay,
    view::{Need, Stop, View},
};
use crate::{
    consensus::{ChainView, VerifiedReceipts},
    exec::{BlockObserver, Executed},
    light::Known,
    state::Facts,
    types::{BlockRef, Receipt},
};

/// Most blocks that one request may have executed again.
const MAX_EXECUTED: usize = 128;

/// Blocks from the head downwards in which a transaction is looked for: about half an hour of the main network.
const SEARCHED_BLOCKS: u64 = 64;

/// Most bodies that are requested at a time while a transaction is looked for.
const BODIES_AT_ONCE: usize = 16;

/// What a request has executed.
#[derive(Debug, Default)]
pub(crate) struct ExecutedBlocks {
    /// The receipts of the blocks whose execution is complete.
    pub(crate) receipts: Vec<Arc<VerifiedReceipts>>,
    /// The block whose execution has stopped last.
    pub(crate) stopped: Option<BlockRef>,
    begun: usize,
}

impl ExecutedBlocks {
    pub(super) fn find(&self, block: &B256) -> Option<&Arc<VerifiedReceipts>> {
        self.receipts.iter().find(|receipts| receipts.block() == *block)
    }

    /// Counts an execution.
    pub(super) fn begin(&mut self, block: BlockRef) -> Need<()> {
        self.begun = self.begun.saturating_add(1);
        if self.begun > MAX_EXECUTED {
            return Err(Stop::Refused(Refusal::TooManyBlocks { max: MAX_EXECUTED as u64 }));
        }
        self.stopped = Some(block);
        Ok(())
    }

    pub(super) fn complete(&mut self, receipts: Arc<VerifiedReceipts>) {
        self.receipts.push(receipts);
        self.stopped = None;
    }
}

/// Executes a block again. Its receipts have the root in its header.
///
/// # Errors
/// As [`replay`].
pub(super) fn executed_receipts(
    view: &dyn View,
    known: Known<'_>,
    header: &BlockHeader,
) -> Need<VerifiedReceipts> {
    let mut receipts = Receipts(Vec::new());
    replay(view, known, header, &mut receipts)?;
    Ok(VerifiedReceipts::executed(header, receipts.0))
}

struct Receipts(Vec<Receipt>);

impl BlockObserver for Receipts {
    fn executed(&mut self, _: usize, executed: &Executed<'_>) {
        self.0.push(executed.receipt.clone());
    }
}

/// Looks for a transaction in the newest blocks of the chain. Returns its block and its index there.
///
/// # Errors
/// Bodies that are missing; a refusal if the blocks do not have it.
pub(super) fn search(
    view: &dyn View,
    chain: &ChainView,
    transaction: B256,
) -> Need<Option<(BlockHeader, usize)>> {
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
            Err(Stop::Lacking(facts)) => missing.extend(facts),
            Err(refused) => return Err(refused),
        }
        if missing.len() >= BODIES_AT_ONCE {
            break;
        }
    }
    if missing.is_empty() { Ok(None) } else { Err(Stop::Lacking(missing)) }
}

/// The refusal of a transaction that [`search`] has not found.
pub(super) fn not_found() -> Stop {
    Stop::Refused(Refusal::NotInNewestBlocks { blocks: SEARCHED_BLOCKS })
}
