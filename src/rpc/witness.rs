//! `rootlight_getWitness`, `rootlight_getBlockWitness` and `debug_executionWitness`: the trie nodes and values that an execution
//! reads, in one response.
//!
//! A client checks the nodes against the state root of a header that it has verified, and runs the same execution on
//! them. If no node is missing, the witness was complete; nothing in the response needs to be trusted.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

use alloy_primitives::{B256, Bytes, U256, hex};
use serde::Serialize;

use super::{
    blocks::by_block_param,
    call::keys_of_call,
    call_object::is_simulation,
    envelope::MAX_RESPONSE,
    error::{ParamError, RpcError},
    lookup::{find, require, state_failure},
    method::{BLOCK_HASH, CALL, Failure, HandlerResult, Method, THE_BLOCK, absent, optional, verified},
    params::{BlockParam, Params},
    simulate::keys_of_simulation,
};
use crate::{
    engine::{BlockHeader, Refusal, State, Stop, View},
    exec::{BlockObserver, FrameStart, Inspector},
    state::{Access, AccessKey, StateError, StateKey, StateReader, keys},
    types::{Header, HeaderForm, encode_uncles},
};

/// Most bytes of nodes and values in one witness. In hex they are twice as long, and no answer is longer than [`MAX_RESPONSE`].
pub const MAX_WITNESS_BYTES: usize = MAX_RESPONSE / 2;

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "rootlight_getWitness",
        CALL,
        "witness: trie nodes and values that prove what the call reads",
        "Proof of all state that eth_call with the same parameters reads, in one response. With the parameter \
         of eth_simulateV1 in place of a call: all state that the simulation reads.",
        of_call,
    )
    .costs(100),
    Method::read(
        "rootlight_getBlockWitness",
        &[BLOCK_HASH, optional("transactionIndex", "QUANTITY"), optional("wholeStorage", "BOOLEAN")],
        "witness of the parent's state, or null",
        "Proof of all state of the parent that a block's transactions, up to an index, read and \
         write; on request also of the whole storage of the contracts they call, which instruction \
         traces list.",
        of_block,
    )
    .costs(300),
    Method::read(
        "debug_executionWitness",
        &[THE_BLOCK],
        "{state, codes, headers, uncles} or null",
        "What a block's execution reads (execution-apis): nodes and long values of the parent's state, codes, RLP of \
         ancestors, and RLP lists of uncles. REMASC's nonce is that of its transaction.",
        of_execution,
    )
    .costs(300),
];

/// A witness in the form in which light clients request it from upstreams.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Witness {
    /// The block whose state is proven.
    block_number: String,
    block_hash: B256,
    state_root: B256,
    /// Serialized trie nodes, each once; their order has no meaning.
    nodes: Vec<String>,
    /// Codes and long values, of which the nodes contain only the hash.
    values: Vec<String>,
}

/// The witness of a block's execution in the form of execution-apis (Ethereum's specification of JSON-RPC), with the additional
/// data that only Rootstock's blocks read.
#[derive(Serialize)]
struct ExecutionWitness {
    /// Trie nodes, and long values of which the nodes contain only the hash, without codes.
    state: Vec<String>,
    codes: Vec<String>,
    /// The parent and the ancestors that the execution reads, in ascending order, as in bodies of blocks: the BlockHeader
    /// contract reads fields that the hash does not cover.
    headers: Vec<String>,
    /// For each ancestor whose uncles REMASC reads, in ascending order: the list to which its header commits.
    uncles: Vec<String>,
}

/// `rootlight_getWitness`.
fn of_call(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let (header, keys) = match is_simulation(params) {
        true => keys_of_simulation(view, params)?,
        false => keys_of_call(view, params)?,
    };
    verified(&witness(view, &header, &keys)?)
}

/// `rootlight_getBlockWitness`.
fn of_block(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let hash = params.hash(0, "block hash")?;
    let last = params.is_given(1).then(|| params.index(1)).transpose()?;
    let Some(header) = find(view, &by_hash(hash))? else { return absent() };
    if header.number == 0 {
        return absent();
    }
    let parent = require(view, &by_hash(header.parent_hash))?;
    let whole_storage = WholeStorage { is_selected: params.boolean(2, false)?, keys: BTreeSet::new() };
    let mut reads = Reads { last, whole_storage, ..Reads::default() };
    view.replay(&header, &mut reads)?;
    reads.keys.append(&mut reads.whole_storage.keys);
    verified(&witness(view, &parent, &reads.keys)?)
}

/// `debug_executionWitness`.
fn of_execution(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let Some(header) = by_block_param(view, params)? else { return absent() };
    if params.block(0)? == BlockParam::Pending {
        return Err(ParamError::BlockId("pending".into()).into());
    }
    if header.number == 0 {
        return absent();
    }
    let parent = require(view, &by_hash(header.parent_hash))?;
    let mut reads = Reads::default();
    view.replay(&header, &mut reads)?;
    reads.headers.insert(parent.number);
    let mut collected = collect(view, &parent, &reads.keys)?;
    let mut headers = Vec::new();
    for number in reads.headers {
        let ancestor = ancestor(view, &parent, number)?;
        // Without proven merged-mining fields, the header has only the fields that its hash covers.
        let form = if view.shows_work(&ancestor) { HeaderForm::Full } else { HeaderForm::Raw };
        headers.push(collected.counted(ancestor.encode(form))?);
    }
    let mut uncles = Vec::new();
    for number in reads.uncles {
        let list = view.uncles(&ancestor(view, &parent, number)?)?;
        let list: Vec<Header> = list.headers().iter().map(|uncle| uncle.header().clone()).collect();
        uncles.push(collected.counted(encode_uncles(&list))?);
    }
    let Collected { mut nodes, codes, mut values, .. } = collected;
    nodes.append(&mut values);
    verified(&ExecutionWitness { state: texts(&nodes), codes: texts(&codes), headers, uncles })
}

/// The ancestor with this number of a child of `parent`, which may be `parent` itself.
fn ancestor(view: &dyn View, parent: &BlockHeader, number: u64) -> Result<BlockHeader, Failure> {
    let found = view.ancestor(parent.hash(), number)?;
    found.ok_or_else(|| RpcError::BlockNotFound(format!("{number:#x}")).into())
}

fn by_hash(hash: B256) -> BlockParam {
    BlockParam::Hash { hash, require_canonical: false, in_map: false }
}

/// Collects the keys that transactions access, and the numbers of the ancestors that are read.
#[derive(Default)]
struct Reads {
    /// Index of the last transaction whose keys are collected; `None` for all transactions.
    last: Option<usize>,
    /// Whether the keys of that transaction are collected.
    is_done: bool,
    keys: BTreeSet<StateKey>,
    whole_storage: WholeStorage,
    /// The numbers of the ancestors whose headers are read.
    headers: BTreeSet<u64>,
    /// The numbers of the ancestors whose uncles are read.
    uncles: BTreeSet<u64>,
}

/// Collects the keys of the whole storage of called contracts.
#[derive(Default)]
struct WholeStorage {
    /// Whether the caller has requested these keys.
    is_selected: bool,
    keys: BTreeSet<StateKey>,
}

impl Inspector for WholeStorage {
    fn wants_storage(&self) -> bool {
        self.is_selected
    }

    fn frame(&mut self, start: FrameStart) {
        let (Some(contract), Some(storage)) = (start.context, start.storage) else { return };
        self.keys.extend(storage.into_keys().map(|slot| StateKey::Storage(contract, slot)));
    }
}

impl BlockObserver for Reads {
    fn inspector(&mut self, _: usize) -> Option<&mut dyn Inspector> {
        (self.whole_storage.is_selected && !self.is_done).then_some(&mut self.whole_storage)
    }

    fn watches_access(&self) -> bool {
        !self.is_done
    }

    fn accessed(&mut self, index: usize, access: &Access) {
        if self.is_done {
            return;
        }
        for key in &access.keys {
            match key {
                // The key covers the account, its code and its storage marker. The path of slot 0 leads through the marker.
                AccessKey::Account(address) => {
                    self.keys.insert(StateKey::Account(*address));
                    self.keys.insert(StateKey::Code(*address));
                    self.keys.insert(StateKey::Storage(*address, U256::ZERO));
                }
                AccessKey::Cell(address, slot) => {
                    self.keys.insert(StateKey::Storage(*address, *slot));
                }
            }
        }
        self.is_done = self.last.is_some_and(|last| index >= last);
    }

    fn ancestors(&mut self, headers: &BTreeSet<u64>, uncles: &BTreeSet<u64>) {
        self.headers.extend(headers);
        self.uncles.extend(uncles);
    }
}

/// Nodes, codes and other values, each once, and the size of all in bytes.
#[derive(Default)]
struct Collected {
    nodes: BTreeSet<Bytes>,
    codes: BTreeSet<Bytes>,
    values: BTreeSet<Bytes>,
    bytes: usize,
}

impl Collected {
    /// Adds bytes to one of the sets, and their length to the size of all.
    fn put(set: &mut BTreeSet<Bytes>, total: &mut usize, bytes: Bytes) {
        let size = bytes.len();
        if set.insert(bytes) {
            *total = total.saturating_add(size);
        }
    }

    /// Adds the nodes on a path of the trie; `key` names the missing fact if they are not available.
    fn path_nodes(
        &mut self,
        view: &dyn State,
        header: &BlockHeader,
        path: &[u8],
        key: &StateKey,
    ) -> Result<(), Failure> {
        let missing = |_| state_failure(header, StateError::Missing(*key));
        for node in view.prove(header, path).map_err(missing)? {
            Self::put(&mut self.nodes, &mut self.bytes, node);
        }
        Ok(())
    }

    /// Whether the node of a value contains only the hash of the value.
    fn is_long(value: &Bytes) -> bool {
        value.len() > crate::trie::limits::MAX_INLINE_VALUE
    }

    /// The hex of bytes that are neither nodes, codes nor values, such as headers. The bytes count towards the size of the witness.
    fn counted(&mut self, bytes: Vec<u8>) -> Result<String, Failure> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        self.check()?;
        Ok(hex::encode_prefixed(bytes))
    }

    /// A refusal if the witness is too large.
    fn check(&self) -> Result<(), Failure> {
        if self.bytes > MAX_WITNESS_BYTES {
            return Err(Failure::Stop(Stop::Refused(Refusal::WitnessTooLarge { max: MAX_WITNESS_BYTES })));
        }
        Ok(())
    }
}

/// The bytes in hex, in the order of the bytes.
fn texts(all: &BTreeSet<Bytes>) -> Vec<String> {
    all.iter().map(hex::encode_prefixed).collect()
}

/// Everything that proves these keys of the state after a block.
fn collect(view: &dyn State, header: &BlockHeader, keys: &BTreeSet<StateKey>) -> Result<Collected, Failure> {
    view.provable(header)?;
    let state = view.state(header)?;
    let mut collected = Collected::default();
    for key in keys {
        add(view, header, &*state, key, &mut collected)?;
        collected.check()?;
    }
    Ok(collected)
}

/// The witness of these keys of the state after a block.
fn witness(view: &dyn State, header: &BlockHeader, keys: &BTreeSet<StateKey>) -> Result<Witness, Failure> {
    let Collected { nodes, mut codes, mut values, .. } = collect(view, header, keys)?;
    values.append(&mut codes);
    Ok(Witness {
        block_number: format!("{:#x}", header.number),
        block_hash: header.hash(),
        state_root: view.state_root(header),
        nodes: texts(&nodes),
        values: texts(&values),
    })
}

/// Adds the proof of one key.
fn add(
    view: &dyn State,
    header: &BlockHeader,
    state: &dyn StateReader,
    key: &StateKey,
    collected: &mut Collected,
) -> Result<(), Failure> {
    let failed = |error: StateError| state_failure(header, error);
    match key {
        StateKey::Account(address) => {
            state.account(address).map_err(failed)?;
            collected.path_nodes(view, header, &keys::account_key(address), key)?;
            collected.path_nodes(view, header, &keys::code_key(address), key)
        }
        StateKey::Code(address) => {
            let code = state.code(address).map_err(failed)?;
            if Collected::is_long(&code) {
                Collected::put(&mut collected.codes, &mut collected.bytes, code);
            }
            collected.path_nodes(view, header, &keys::code_key(address), key)
        }
        StateKey::Storage(address, slot) | StateKey::StorageBytes(address, slot) => {
            let value = state.storage(address, slot).map_err(failed)?;
            if Collected::is_long(&value) {
                Collected::put(&mut collected.values, &mut collected.bytes, value);
            }
            collected.path_nodes(view, header, &keys::slot_key(address, slot), key)
        }
        // Facts about the chain are not in the trie: a client verifies them by its headers.
        StateKey::BlockHash(_) | StateKey::Header(_) | StateKey::Uncles(_) | StateKey::TotalDifficulty(_) => {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_on_the_paths_of_several_keys_counts_once() {
        let mut collected = Collected::default();
        for node in [&[1; 40][..], &[2; 50], &[1; 40]] {
            Collected::put(&mut collected.nodes, &mut collected.bytes, Bytes::copy_from_slice(node));
        }
        assert_eq!((collected.nodes.len(), collected.bytes), (2, 90));
    }
}
