//! The auxiliary source of `rootlight sidecar`, whose only upstream is the operator's full node: state is read from that node's
//! store, and requests that need no state are relayed to the node.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes, U256};
use rootlight::consensus::VerifiedHeader;
use rootlight::engine::{FINALIZED_DEPTH, Refusal, gate};
use rootlight::light::{KnownFacts, PinnedHead, RequestFailure, UpstreamRequest, UpstreamResponse};
use rootlight::rpc::{AuxiliaryAnswer, AuxiliaryRequest, AuxiliarySource, Method, Request, RpcError, Runs};
use rootlight::state::{Fact, Facts, StateKey, keys};
use rootlight::trie::{self, ProvenNodes, StoreFault, TrieStore, WalkError, connected};
use rootlight::types::BlockRef;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Most blocks that a relayed request for logs may cover: as many as a light client proves logs of.
const MAX_LOG_BLOCKS: u64 = 2_000;

/// The operator's own full node, which is the client's only upstream. State is read from the node's store; blocks below the
/// start are taken from the node without proof.
#[derive(Debug, Clone)]
pub struct OwnNode {
    /// The trie nodes that the full node has on disk.
    pub store: Arc<dyn TrieStore>,
    /// Whether calls, estimates and traces run in this process. Otherwise the full node runs them.
    pub executes: bool,
}

impl AuxiliarySource for OwnNode {
    fn intercept(
        &self,
        request: &Request,
        pinned: &PinnedHead,
        _: KnownFacts<'_>,
    ) -> Option<Result<AuxiliaryRequest, RpcError>> {
        if is_relayed(self.executes, request.row()) { relay(request, pinned).transpose() } else { None }
    }

    fn fall_back(
        &self,
        request: &Request,
        pinned: &PinnedHead,
        refusal: &Refusal,
    ) -> Option<Result<AuxiliaryRequest, RpcError>> {
        // The node may run what this process cannot.
        let asked =
            request.row().runs != Runs::Nothing && request.row().relayed && node_could_answer(refusal);
        let asked = if asked { relay(request, pinned).transpose() } else { None };
        asked.or_else(|| Some(Err(RpcError::Refused(refusal.clone()))))
    }

    fn supply_state(
        &self,
        missing: &Facts,
        pinned: &PinnedHead,
        known: KnownFacts<'_>,
    ) -> Result<Option<ProvenNodes>, Refusal> {
        stored_state(missing, &*self.store, pinned, &known)
    }
}

/// The request to the node. Each block parameter is replaced by the block of the pinned chain that it means: by its hash where the
/// method takes one, else by its number, as always for the ends of a log filter. `None` if a parameter is wrong, which the handler
/// then refuses.
///
/// # Errors
/// The refusal of a chain that cannot be read yet, or of a range of too many blocks.
fn relay(request: &Request, pinned: &PinnedHead) -> Result<Option<AuxiliaryRequest>, RpcError> {
    gate::usable_chain(pinned)?;
    let Some(params) = request.pinned_params(pinned) else { return Ok(None) };
    check_range(&params)?;
    let request = UpstreamRequest::new(name_at_node(request.row()), params);
    Ok(Some(AuxiliaryRequest::Upstream(request, relayed_answer)))
}

/// The node's response is the answer; it is final if the block that it states is.
fn relayed_answer(response: UpstreamResponse, pinned: &PinnedHead) -> AuxiliaryAnswer {
    let head = pinned.chain().map_or(0, |chain| chain.head().number);
    match response {
        Ok(response) if is_final(&response, head) => AuxiliaryAnswer::Final(response),
        // An answer that may change later is whole too, but not kept for later requests.
        response => AuxiliaryAnswer::Whole(response.map_err(own_node_failed)),
    }
}

/// The range of a filter whose ends are numbers, as `Request::pinned_params` writes them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FilterRange {
    from_block: U256,
    to_block: U256,
}

/// Refuses parameters, in JSON, that ask the node for the logs of too many blocks.
fn check_range(params: &str) -> Result<(), RpcError> {
    // A filter by block hash has no range.
    let Ok([FilterRange { from_block, to_block }]) = serde_json::from_str::<[FilterRange; 1]>(params) else {
        return Ok(());
    };
    let (from, to) = (from_block.saturating_to::<u64>(), to_block.saturating_to::<u64>());
    if to.saturating_sub(from) < MAX_LOG_BLOCKS {
        return Ok(());
    }
    let last = from.saturating_add(MAX_LOG_BLOCKS.saturating_sub(1));
    Err(RpcError::TooManyBlocks { max: MAX_LOG_BLOCKS, fits: (from, last) })
}

/// Whether a method is passed on to the host's own node instead of being answered here.
fn is_relayed(executes: bool, row: &Method) -> bool {
    row.relayed && !(executes && row.runs != Runs::Nothing)
}

/// Whether a node that executes every block could answer what this client refuses.
fn node_could_answer(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        // A method of a native contract that is not implemented here.
        Refusal::NotSimulated(_)
            | Refusal::BlockNotSimulated { .. }
            // State that is not in the store on disk, or that cannot be proven.
            | Refusal::StateNotStored { .. }
            | Refusal::NoStateProofs { .. }
            | Refusal::StorageNotListed(_)
            | Refusal::Unproven(_)
            // Facts of headers that this client did not see or check.
            | Refusal::NoTotalDifficulty(_)
            | Refusal::NoWork(_)
            | Refusal::OffChain { .. }
    )
}

/// The name under which the reference node (rskj) serves a method: an alias such as `rsk_getRawBlockHeaderByHash` of
/// `ext_getRawBlockHeaderByHash`, if the method has one.
fn name_at_node(row: &Method) -> &'static str {
    row.aliases.iter().find(|alias| alias.starts_with("rsk_")).unwrap_or(&row.name)
}

/// The error of a request that the node did not answer. A request names the block of the pinned chain by its hash where the
/// method takes one; a node that was restarted may have gone back below that block.
fn own_node_failed(failure: RequestFailure) -> RpcError {
    // rskj answers so about a block that is not on its chain.
    let behind = matches!(&failure, RequestFailure::Rpc { code: -32600, message } if message.contains("not canonical"));
    let behind =
        behind.then(|| RequestFailure::Transport("it does not have the block at present; ask again".into()));
    match behind.unwrap_or(failure) {
        RequestFailure::Rpc { code, message } => {
            RpcError::Host { code: i32::try_from(code).unwrap_or(-32603), text: message, data: None }
        }
        RequestFailure::Reverted { code, message, output } => {
            RpcError::Host { code: i32::try_from(code).unwrap_or(-32603), text: message, data: Some(output) }
        }
        silent => RpcError::unavailable(&format!("the node gives no answer: {silent}")),
    }
}

/// Whether a response about a block or transaction cannot change any more: the block whose number it states is at least as deep as
/// the tag `finalized`.
fn is_final(response: &RawValue, head: u64) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct StatedHeight {
        number: Option<U256>,
        block_number: Option<U256>,
    }
    let stated: Option<StatedHeight> = serde_json::from_str(response.get()).ok();
    let number = stated.and_then(|stated| stated.block_number.or(stated.number));
    let last = head.checked_sub(FINALIZED_DEPTH);
    number.zip(last).is_some_and(|(number, last)| number <= U256::from(last))
}

/// Reads the state among missing facts from the node's store; `None` if no state is among them.
///
/// # Errors
/// [`Refusal::StateNotStored`], [`Refusal::Store`] or [`Refusal::UnreadableState`].
fn stored_state(
    facts: &Facts,
    store: &dyn TrieStore,
    pinned: &PinnedHead,
    known: &KnownFacts<'_>,
) -> Result<Option<ProvenNodes>, Refusal> {
    let mut found = None;
    for fact in facts {
        let Fact::State(block, key) = fact else { continue };
        // The header is known, because the run that reads the block's state has read it.
        let Some(root) = header(block, pinned, known).map(|header| header.state_root) else { continue };
        let nodes = paths(root, key, store).map_err(|error| refusal(error, root, block.number, store))?;
        let found: &mut ProvenNodes = found.get_or_insert_default();
        found.merge(nodes).map_err(|_| Refusal::UnreadableState { number: block.number })?;
    }
    Ok(found)
}

/// The header of a block: on the chain, or among the known facts.
fn header<'a>(
    block: &BlockRef,
    pinned: &'a PinnedHead,
    known: &KnownFacts<'a>,
) -> Option<&'a VerifiedHeader> {
    let on_chain = pinned.chain().and_then(|chain| chain.by_hash(&block.hash));
    on_chain.or_else(|| known.header_at(block.number).filter(|header| header.hash() == block.hash))
}

/// The nodes that prove a piece of state, and its value if the value is too long to be inside a node.
fn paths(root: B256, key: &StateKey, store: &dyn TrieStore) -> Result<ProvenNodes, WalkError> {
    let (mut nodes, mut values) = (vec![], vec![]);
    // `with_value` adds the value of the key, if it has one.
    let mut add = |key: &[u8], with_value: bool| {
        nodes.append(&mut trie::prove(&store, root, key)?);
        values.extend(if with_value { trie::lookup_value(&store, root, key)? } else { None });
        Ok(())
    };
    match key {
        StateKey::Account(address) => {
            add(&keys::account_key(address), false)?;
            add(&keys::code_key(address), false)?;
        }
        StateKey::Code(address) => add(&keys::code_key(address), true)?,
        StateKey::Storage(address, slot) | StateKey::StorageBytes(address, slot) => {
            add(&keys::slot_key(address, slot), true)?;
        }
        // Facts of the chain are not in the trie.
        StateKey::BlockHash(_) | StateKey::Header(_) | StateKey::Uncles(_) | StateKey::TotalDifficulty(_) => {
        }
    }
    values.retain(|value: &Bytes| value.len() > trie::limits::MAX_INLINE_VALUE);
    // The nodes were read by their hashes and parse, so connecting them does not fail.
    Ok(connected(root, &nodes, &values).unwrap_or_default())
}

/// The refusal for a store that lacks a node or has a damaged one.
fn refusal(error: WalkError, root: B256, number: u64, store: &dyn TrieStore) -> Refusal {
    let WalkError::Missing(hash) = error else { return Refusal::UnreadableState { number } };
    match store.why_missing(&hash) {
        StoreFault::Absent if hash == root => Refusal::StateNotStored { number },
        fault => Refusal::Store { number, hash, fault },
    }
}

#[cfg(test)]
mod tests {
    use rootlight_server::methods::methods;

    use super::*;

    /// A caller that reaches the node through this client gets none of the methods that the node trusts its own machine with.
    #[test]
    fn only_methods_that_read_the_chain_go_to_the_node() {
        for executes in [false, true] {
            let relayed: Vec<&str> =
                methods().filter(|row| is_relayed(executes, row)).map(|row| row.name).collect();
            for name in &relayed {
                let space = name.split('_').next().unwrap();
                assert!(["eth", "ext", "trace", "debug", "net", "txpool"].contains(&space), "{name}");
            }
            assert!(relayed.contains(&"eth_getBlockByNumber") && relayed.contains(&"eth_getLogs"));
            assert_eq!(relayed.contains(&"eth_call"), !executes);
            assert!(!relayed.contains(&"eth_getProof") && !relayed.contains(&"trace_filter"));
            assert!(!relayed.contains(&"eth_createAccessList") && !relayed.contains(&"eth_getAccount"));
        }
    }

    #[test]
    fn logs_of_too_many_blocks_are_not_asked_of_the_node() {
        let range = |from: u64, to: u64| {
            check_range(&format!(r#"[{{"fromBlock":"{from:#x}","toBlock":"{to:#x}"}}]"#))
        };
        assert_eq!((range(5, 2_004), range(9, 3)), (Ok(()), Ok(())));
        let refused = RpcError::TooManyBlocks { max: 2_000, fits: (5, 2_004) };
        assert_eq!(range(5, 2_005), Err(refused));
        assert!(range(0, u64::MAX).is_err());
        assert_eq!(check_range(r#"[{"blockHash":"0x00"}]"#), Ok(()));
    }

    #[test]
    fn a_node_that_went_back_is_asked_again_later() {
        let error =
            |message: &str| own_node_failed(RequestFailure::Rpc { code: -32600, message: message.into() });
        let behind = error("Block with hash 0x6c87 is not canonical and it is required");
        assert!(behind.code() == -32002 && behind.to_json().contains("ask again"), "{behind}");
        assert_eq!(error("Invalid request").code(), -32600);
    }

    #[test]
    fn only_what_is_in_a_deep_block_is_final() {
        let is = |text: &str, head| {
            let raw: Box<RawValue> = RawValue::from_string(String::from(text)).unwrap();
            is_final(&raw, head)
        };
        for text in [r#"{"number":"0x5"}"#, r#"{"blockNumber":"0x5","number":"0xffff"}"#] {
            assert_eq!([124, 125].map(|head| is(text, head)), [false, true], "{text}");
        }
        for text in ["null", "\"0x5\"", "[]", "{}", r#"{"blockNumber":null}"#, r#"{"number":null}"#] {
            assert!(!is(text, 1_000), "{text}");
        }
    }
}
