//! Decides which requests have answers that do not change any more, and which answers may be cached.

use alloy_primitives::{B256, Keccak256};
use rootlight::consensus::ChainView;
use rootlight::engine::{FINALIZED_DEPTH, Level};
use rootlight::rpc::envelope::Id;
use rootlight::rpc::{BlockParam, Effect, Handler, Message, Method, Response};
use rootlight::types::BlockRef;
use serde_json::value::RawValue;

/// Longest message whose answer may be cached, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// Where a request or its response names the block that the answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockPointer {
    /// The parameter of this index is the block's number or tag.
    Number(usize),
    /// The first parameter is the block's hash.
    Hash,
    /// Only the response names the block, as for a transaction's hash.
    Response,
}

/// The block of an answer, as far as the request names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerBlock {
    Number(u64),
    Hash(B256),
    /// Only the response names the block.
    Response,
}

/// A request whose answer cannot change once its block is final.
#[derive(Debug)]
pub(in crate::serve) struct CacheableRequest {
    /// The same for equal requests to front ends with equal settings.
    pub(super) key: B256,
    pub(super) id: Id,
    /// The block of the answer.
    block: AnswerBlock,
}

/// Where the block of a method's answers is named; `None` if the answers depend on more than that block. Answers of the namespace
/// `rootlight` also state how the block is proven at present.
fn block_pointer(row: &Method) -> Option<BlockPointer> {
    let reads_chain = matches!(row.handler, Handler::Read(_)) && row.level == Level::Verified;
    if !reads_chain || row.namespace() == "rootlight" {
        return None;
    }
    let blocks: Vec<usize> =
        (0..).zip(row.params).filter(|(_, param)| param.kind == "BLOCK").map(|(at, _)| at).collect();
    match (blocks.as_slice(), row.params.first()) {
        ([at], _) => Some(BlockPointer::Number(*at)),
        ([], Some(first)) if first.kind == "HASH" && first.name == "blockHash" => Some(BlockPointer::Hash),
        ([], Some(first)) if first.kind == "HASH" && first.name == "transactionHash" => {
            Some(BlockPointer::Response)
        }
        _ => None,
    }
}

/// The result of a response, if it has no mark: it is verified from a trusted block on, and the check against Bitcoin's chain raises
/// no doubt.
pub(super) fn verified_result(response: &Response) -> Option<&RawValue> {
    response.outcome.as_deref().ok().filter(|_| response.marks.is_empty())
}

impl CacheableRequest {
    /// The cacheable request in a message; `None` if the message is not one request, or if the answer may change with the head.
    /// `settings` is the hash of the settings on which answers depend.
    pub(super) fn of(message: &Message, settings: &B256) -> Option<Self> {
        let entry = message.single().filter(|_| message.bytes() <= MAX_MESSAGE_BYTES)?;
        let call = entry.call.as_ref().ok()?;
        let params = call.params()?;
        let block = match block_pointer(call.row?)? {
            BlockPointer::Number(at) => match params.block(at).ok()? {
                BlockParam::Number(number, _) => AnswerBlock::Number(number?),
                // A tag names another block later. Requests with a block hash here (EIP-1898) are left to the light client.
                _ => return None,
            },
            BlockPointer::Hash => AnswerBlock::Hash(params.hash(0, "block hash").ok()?),
            BlockPointer::Response => AnswerBlock::Response,
        };
        // The lengths of the parts keep different requests from giving the same bytes.
        let mut hasher = Keccak256::new();
        hasher.update(settings);
        for part in [call.method.as_str()].into_iter().chain(call.params.iter().map(|param| param.get())) {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Some(Self { key: hasher.finalize(), id: entry.id.clone(), block })
    }

    /// The block that a response is about, if it is as deep in this chain as the tag `finalized`.
    pub(super) fn block(&self, response: &Response, chain: &ChainView) -> Option<BlockRef> {
        let block = match self.block {
            AnswerBlock::Number(number) => BlockRef { number, hash: chain.hash_at(number)? },
            AnswerBlock::Hash(hash) => BlockRef { number: chain.by_hash(&hash)?.number, hash },
            AnswerBlock::Response => match response.effect? {
                Effect::About(block) => block,
                // Other effects change filters, subscriptions or the pool, so their responses name no block.
                _ => return None,
            },
        };
        (is_final(&block, chain)).then_some(block)
    }
}

/// Whether a block is on this chain, and as deep as the tag `finalized`.
pub(super) fn is_final(block: &BlockRef, chain: &ChainView) -> bool {
    let last = chain.head().number.checked_sub(FINALIZED_DEPTH);
    last.is_some_and(|last| block.number <= last) && chain.is_canonical(block.number, &block.hash)
}

#[cfg(test)]
mod tests {
    use rootlight::rpc::Marks;

    use super::*;
    use crate::serve;

    fn read(method: &str, params: &str) -> Option<CacheableRequest> {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        CacheableRequest::of(&serve::read(message.as_bytes()), &B256::ZERO)
    }

    #[test]
    fn requests_about_a_named_block_or_transaction_are_found() {
        let hash = format!("[\"{}\"]", B256::repeat_byte(7));
        let about = |method: &str, params: &str| read(method, params).map(|request| request.block);
        assert_eq!(about("eth_getBalance", r#"["0x01","0x1f"]"#), Some(AnswerBlock::Number(31)));
        assert_eq!(about("eth_getBlockByNumber", r#"["0x0",true]"#), Some(AnswerBlock::Number(0)));
        assert_eq!(about("eth_getBlockByHash", &hash), Some(AnswerBlock::Hash(B256::repeat_byte(7))));
        assert_eq!(about("eth_getTransactionReceipt", &hash), Some(AnswerBlock::Response));
        assert_eq!(about("trace_transaction", &hash), Some(AnswerBlock::Response));
    }

    #[test]
    fn requests_whose_answers_change_are_left_alone() {
        for (method, params) in [
            ("eth_getBalance", r#"["0x01","latest"]"#),
            ("eth_getBalance", r#"["0x01"]"#),
            ("eth_getBalance", r#"["0x01","0x10000000000000000"]"#),
            ("eth_getBalance", r#"["0x01","0x1","0x2"]"#),
            ("eth_getLogs", r#"[{"fromBlock":"0x1","toBlock":"0x2"}]"#),
            ("eth_blockNumber", "[]"),
            ("rootlight_verify", "[]"),
            ("eth_sendRawTransaction", r#"["0x1"]"#),
            ("no_such", r#"["0x1"]"#),
        ] {
            assert!(read(method, params).is_none(), "{method} {params}");
        }
        let asks = |text: &[u8]| CacheableRequest::of(&serve::read(text), &B256::ZERO).is_some();
        let one = r#"{"id":1,"method":"eth_getBalance","params":["0x01","0x1"]}"#;
        assert!(asks(one.as_bytes()) && !asks(format!("[{one}]").as_bytes()) && !asks(b"{"));
    }

    #[test]
    fn keys_differ_with_method_parameters_and_settings() {
        let key = |method, params| read(method, params).unwrap().key;
        let first = key("eth_getBalance", r#"["0x01","0x1"]"#);
        assert_eq!(first, key("eth_getBalance", r#"[ "0x01" , "0x1" ]"#));
        assert_ne!(first, key("eth_getBalance", r#"["0x01","0x2"]"#));
        assert_ne!(first, key("eth_getCode", r#"["0x01","0x1"]"#));
        let message = br#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x01","0x1"]}"#;
        let message = serve::read(message);
        assert_ne!(first, CacheableRequest::of(&message, &B256::repeat_byte(1)).unwrap().key);
    }

    #[test]
    fn only_answers_without_marks_are_verified() {
        let response = |outcome, marks| Response { id: Id::Absent, row: None, outcome, effect: None, marks };
        let list = || Ok(RawValue::from_string("[1, 2]".into()).unwrap());
        let verified = response(list(), Marks::default());
        assert_eq!(verified_result(&verified).map(RawValue::get), Some("[1, 2]"));
        for marked in [
            response(list(), Marks { level: Some(Level::Unproven), ..Marks::default() }),
            response(list(), Marks { start: Some("work"), ..Marks::default() }),
            response(list(), Marks { bitcoin: Some("weak"), ..Marks::default() }),
            response(Err(rootlight::rpc::RpcError::Internal), Marks::default()),
        ] {
            assert!(verified_result(&marked).is_none(), "{marked:?}");
        }
    }
}
