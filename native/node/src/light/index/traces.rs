//! Questions to the host's index for traces of a range of blocks (`trace_filter`), and for traces and uncles of one block below the
//! start. The answers have the level `unproven`.

use rootlight::consensus::ChainView;
use rootlight::engine::{Chain as _, FINALIZED_DEPTH, LightView, RESOURCE_UNAVAILABLE, Refusal, SAFE_DEPTH};
use rootlight::exec::trace::MAX_TRACE_BYTES;
use rootlight::light::PinnedHead;
use rootlight::rpc::{BlockParam, Indexed, Method, ParamError, Request, RpcError, TraceFilter, traced_block};
use rootlight_server::methods::is_hosted;
use serde_json::{json, value::RawValue};

use super::questions::{AskedBlock, BlockPart, BlockQuestion, TraceQuestion, TraceReply};

/// The part of a request for traces that the index answers, and the end of the whole range.
#[derive(Debug)]
pub(super) struct OlderTraces {
    pub(super) asked: TraceQuestion,
    /// The last block of the whole request.
    to: u64,
}

/// The evaluated reply of the index.
pub(super) enum AnsweredTraces {
    /// The traces of the whole request.
    Whole(Box<RawValue>),
    /// The traces of the older blocks, and the filter for the newer ones.
    Part(Box<RawValue>, Box<RawValue>),
}

impl OlderTraces {
    /// The part of a request that the index answers; `None` if the request needs no index, or is refused elsewhere.
    ///
    /// # Errors
    /// The refusal of a range that the profile does not allow.
    pub(super) fn of(
        request: &Request,
        pinned: &PinnedHead,
        view: &LightView<'_>,
    ) -> Option<Result<Self, RpcError>> {
        if request.row().indexed != Some(Indexed::Traces) {
            return None;
        }
        let chain = pinned.chain()?;
        let (head, lowest) = (chain.head().number, chain.lowest());
        let hosted = is_hosted(request.row());
        let range = TraceFilter::of_params(request.params(), hosted, |param| height(param, chain));
        // A filter that cannot be read is refused by its handler.
        let (filter, from, to) = match range {
            Ok(range) => range?,
            Err(error) if refuses_range(&error) => return Some(Err(error.into())),
            Err(_) => return None,
        };
        let most = view.policy().max_traced_blocks;
        let last = to.min(head.saturating_sub(view.policy().min_depth));
        // Few blocks, all on the proven chain, are answered with proofs.
        if (from >= lowest && to.saturating_sub(from) < most) || from > last {
            return None;
        }
        // The index may leave out only as many of the newest blocks as this client can prove in one request.
        let must_reach = lowest.saturating_sub(1).max(to.saturating_sub(most)).min(last);
        let TraceFilter { senders, receivers: recipients, after, count, .. } = filter;
        let asked = TraceQuestion { from, to: last, must_reach, senders, recipients, after, count };
        Some(Ok(Self { asked, to }))
    }

    /// Evaluates the reply of the index.
    pub(super) fn answered(self, reply: TraceReply) -> Result<AnsweredTraces, RpcError> {
        let (count, skipped, last, traces) = match reply {
            TraceReply::Found { count, skipped, last, traces } => (count, skipped, last, traces),
            TraceReply::TooLong => {
                return Err(RpcError::Refused(Refusal::TraceTooLarge { max: MAX_TRACE_BYTES }));
            }
        };
        let TraceQuestion { senders, recipients, after, count: most, .. } = self.asked;
        let left = most.saturating_sub(count);
        if left == 0 || last >= self.to {
            return Ok(AnsweredTraces::Whole(traces));
        }
        let rest = json!({
            "fromBlock": format!("{:#x}", last.saturating_add(1)),
            "toBlock": format!("{:#x}", self.to),
            "fromAddress": senders,
            "toAddress": recipients,
            "after": after.saturating_sub(skipped),
            "count": left,
        });
        Ok(AnsweredTraces::Part(traces, serde_json::value::to_raw_value(&rest)?))
    }
}

/// A request of the same method with another filter.
pub(super) fn rest(row: &'static Method, filter: Box<RawValue>) -> Option<Request> {
    Request::new(row, vec![filter]).ok()
}

/// Whether the range itself is refused, as opposed to a parameter that cannot be read.
fn refuses_range(error: &ParamError) -> bool {
    matches!(error, ParamError::BlockRange | ParamError::TraceRange(_))
}

/// The height that an end of a range means; `None` for a block that may not be on the chain.
fn height(param: &BlockParam, chain: &ChainView) -> Option<u64> {
    let head = chain.head().number;
    match param {
        BlockParam::Latest | BlockParam::Pending => Some(head),
        BlockParam::Safe => Some(head.saturating_sub(SAFE_DEPTH)),
        BlockParam::Finalized => Some(head.saturating_sub(FINALIZED_DEPTH)),
        BlockParam::Earliest => Some(0),
        // `None` is a number of more than 64 bits.
        BlockParam::Number(number, _) => Some(number.unwrap_or(u64::MAX).min(head)),
        BlockParam::Hash { hash, .. } => {
            let header = chain.by_hash(hash)?;
            chain.is_canonical(header.number, hash).then_some(header.number)
        }
    }
}

/// The question about a part of a block below the start, for a request that was refused; `None` for other methods.
pub(super) fn about(request: &Request, refusal: &Refusal) -> Option<BlockQuestion> {
    let params = request.params();
    if let Refusal::TransactionTooOld { transaction, .. } = refusal {
        let block = AskedBlock::Transaction(*transaction);
        return (request.row().indexed == Some(Indexed::TransactionTraces))
            .then_some(BlockQuestion { block, part: BlockPart::Traces });
    }
    let part = match request.row().indexed? {
        Indexed::BlockTraces => BlockPart::Traces,
        Indexed::UncleCount => BlockPart::UncleCount,
        Indexed::Uncle => BlockPart::Uncle(params.index(1).ok()?),
        _ => return None,
    };
    let block = match request.row().params.first()?.kind {
        "HASH" => AskedBlock::Hash(params.hash(0, "block hash").ok()?),
        _ => match traced_block(params.block(0)).ok()? {
            BlockParam::Earliest => AskedBlock::Number(0),
            BlockParam::Number(Some(number), _) => AskedBlock::Number(number),
            BlockParam::Hash { hash, .. } => AskedBlock::Hash(hash),
            // The other tags name blocks near the head, which this client proves; a number of more than 64 bits names none.
            _ => return None,
        },
    };
    // A header that no upstream proves may be below the start, so the index is asked.
    let old = matches!(refusal, Refusal::TooOld { .. })
        || (matches!(block, AskedBlock::Hash(_)) && refusal.code() == RESOURCE_UNAVAILABLE);
    old.then_some(BlockQuestion { block, part })
}
