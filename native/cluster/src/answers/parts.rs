//! Answers about traces, and about uncles of blocks below the proven chain.

use std::sync::Arc;

use rootlight_index::IndexReader;
use rootlight_limits::budget::Reservation;
use rootlight_node::light::BlockPosition;
use rootlight_node::light::index::{AskedBlock, BlockPart, BlockQuestion, TraceQuestion};
use serde_json::value::{RawValue, to_raw_value};

use super::block::CheckedIndexBlock;
use super::failure::NoAnswer;
use super::source::IndexSource;
use super::traces;

/// The answer to a question, with the budget's bytes that it takes.
pub(super) type ReservedPart = (Box<RawValue>, Reservation);

impl IndexSource {
    /// The traces that a filter selects.
    pub(super) async fn traces(&self, question: TraceQuestion) -> Result<ReservedPart, NoAnswer> {
        let chain = self.chain()?;
        self.long(async { traces::answer(&self.readers().await?.logs, chain, question).await }).await
    }

    /// A part of a block below the proven chain; `None` if the index does not have it.
    pub(super) async fn block_part(&self, question: BlockQuestion) -> Result<Option<ReservedPart>, NoAnswer> {
        let BlockQuestion { block, part } = question;
        if part == BlockPart::Traces {
            let chain = self.chain()?;
            return self
                .long(async { traces::of_block(&self.readers().await?.logs, chain, block).await })
                .await;
        }
        let Some(found) = self.below(block).await? else { return Ok(None) };
        let Some(uncles) = found.uncles() else { return Ok(None) };
        let answer = match part {
            BlockPart::Uncle(index) => {
                uncles.get(index).cloned().unwrap_or_else(|| RawValue::NULL.to_owned())
            }
            _ => to_raw_value(&format!("{:#x}", uncles.len()))?,
        };
        Ok(Some((answer, Reservation::default())))
    }

    /// A checked block below the proven chain.
    async fn below(&self, block: AskedBlock) -> Result<Option<Arc<CheckedIndexBlock>>, NoAnswer> {
        let chain = self.chain()?;
        let read = async |reader: &IndexReader| match block {
            AskedBlock::Number(number) => reader.block(number).await,
            AskedBlock::Hash(hash) => reader.block_with_hash(&hash).await,
            AskedBlock::Transaction(hash) => reader.block_of_transaction(&hash).await,
        };
        let found = self.look_up(read).await?;
        Ok(found.filter(|found| chain.position(&found.block_ref) == BlockPosition::Below))
    }
}
