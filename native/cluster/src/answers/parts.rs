//! Implements [`BlockIndex`] for [`IndexSource`]: the questions of a light client that only an index answers, such as logs by
//! filter and blocks below the proven chain.

use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::types::B256;
use rootlight_index::IndexReader;
use rootlight_limits::budget::Reservation;
use rootlight_node::light::BlockPosition;
use rootlight_node::light::index::{
    AskedBlock, BlockIndex, BlockPart, BlockQuestion, IndexAnswer, LogQuestion, LogReply, TraceQuestion,
    TraceReply, TransactionPart,
};
use serde_json::value::{RawValue, to_raw_value};

use super::block::CheckedIndexBlock;
use super::failure::NoAnswer;
use super::source::IndexSource;
use super::{logs, traces};

/// The answer to a question, with the reservation of its bytes.
type ReservedPart = (Box<RawValue>, Reservation);

impl BlockIndex for IndexSource {
    fn logs(&self, question: LogQuestion) -> BoxFuture<'_, IndexAnswer<LogReply>> {
        with_error_text(async move {
            let chain = self.chain()?;
            self.ask_long(async { logs::answer(&self.readers().await?.long, chain, question).await }).await
        })
    }

    fn traces(&self, question: TraceQuestion) -> BoxFuture<'_, IndexAnswer<TraceReply>> {
        with_error_text(async move {
            let chain = self.chain()?;
            self.ask_long(async { traces::answer(&self.readers().await?.long, chain, question).await }).await
        })
    }

    fn block_part(&self, question: BlockQuestion) -> BoxFuture<'_, IndexAnswer<Option<Box<RawValue>>>> {
        with_error_text(async move {
            Ok(match self.part_below(question).await? {
                Some((part, reserved)) => (Some(part), reserved),
                None => (None, Reservation::default()),
            })
        })
    }

    fn transaction_part(
        &self,
        part: TransactionPart,
        transaction: B256,
    ) -> BoxFuture<'_, IndexAnswer<Option<Box<RawValue>>>> {
        with_error_text(
            async move { Ok((self.find_part(part, &transaction).await?, Reservation::default())) },
        )
    }
}

/// Boxes an answer; an error becomes the text that callers get.
fn with_error_text<'a, T: 'a>(
    answer: impl Future<Output = Result<(T, Reservation), NoAnswer>> + Send + 'a,
) -> BoxFuture<'a, IndexAnswer<T>> {
    Box::pin(async { answer.await.map_err(|failure| failure.to_string()) })
}

impl IndexSource {
    /// A part of a block below the proven chain; `None` if the index does not have it.
    async fn part_below(&self, question: BlockQuestion) -> Result<Option<ReservedPart>, NoAnswer> {
        let BlockQuestion { block, part } = question;
        if part == BlockPart::Traces {
            let chain = self.chain()?;
            return self
                .ask_long(async { traces::of_block(&self.readers().await?.long, chain, block).await })
                .await;
        }
        let Some(found) = self.block_below(block).await? else { return Ok(None) };
        let Some(uncles) = found.uncles() else { return Ok(None) };
        let answer = match part {
            BlockPart::Uncle(index) => {
                uncles.get(index).cloned().unwrap_or_else(|| RawValue::NULL.to_owned())
            }
            // Traces were returned above.
            BlockPart::UncleCount | BlockPart::Traces => to_raw_value(&format!("{:#x}", uncles.len()))?,
        };
        Ok(Some((answer, Reservation::default())))
    }

    /// A checked block below the proven chain; `None` if the index does not have it, or if it is not below.
    async fn block_below(&self, block: AskedBlock) -> Result<Option<Arc<CheckedIndexBlock>>, NoAnswer> {
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
