//! `rootlight_getWitness` and `rootlight_getBlockWitness`: everything that proves an execution, in one response.
//!
//! A client checks the nodes against the state root of a header that it has verified, runs the same execution on
//! them, and finds that nothing is missing. It needs to trust nothing else of the response.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};

use alloy_primitives::{B256, Bytes, U256, hex};
use serde::Serialize;

use super::{
    call::keys_of_call,
    envelope::MAX_RESPONSE,
    lookup::{find, require, state_failure},
    method::{BLOCK_HASH, CALL, Failure, HandlerOutput, Method, absent, optional, verified},
    params::{BlockParam, Params},
};
use crate::{
    engine::{BlockHeader, Refusal, State, Stop, View},
    exec::{BlockObserver, FrameStart, Inspector},
    state::{Access, AccessKey, StateError, StateKey, StateReader, keys},
};

/// Most bytes of nodes and values in one witness: hex makes them twice as long, and no answer is longer than
/// [`MAX_RESPONSE`].
pub const MAX_WITNESS_BYTES: usize = MAX_RESPONSE / 2;

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "rootlight_getWitness",
        CALL,
        "witness: trie nodes and values that prove what the call reads",
        "Proof of all state that eth_call with the same parameters reads, in one response.",
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
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Witness {
    /// The block whose state is proven.
    block_number: String,
    block_hash: B256,
    state_root: B256,
    /// Serialized trie nodes, each once; their order has no meaning.
    nodes: Vec<String>,
    /// Codes and long values of which the nodes hold only the hash.
    values: Vec<String>,
}

fn of_call(view: &dyn View, params: Params<'_>) -> Result<HandlerOutput, Failure> {
    let (header, keys) = keys_of_call(view, params)?;
    verified(&witness(view, &header, &keys)?)
}

fn of_block(view: &dyn View, params: Params<'_>) -> Result<HandlerOutput, Failure> {
    let hash = params.hash(0, "block hash")?;
    let last = params.is_given(1).then(|| params.index(1)).transpose()?;
    let Some(header) = find(view, &by_hash(hash))? else { return absent() };
    if header.number == 0 {
        return absent();
    }
    let parent = require(view, &by_hash(header.parent_hash))?;
    let listing = Listing { wanted: params.boolean(2, false)?, keys: BTreeSet::new() };
    let mut reads = Reads { last, done: false, keys: BTreeSet::new(), listing };
    view.replay(&header, &mut reads)?;
    reads.keys.append(&mut reads.listing.keys);
    verified(&witness(view, &parent, &reads.keys)?)
}

fn by_hash(hash: B256) -> BlockParam {
    BlockParam::Hash { hash, require_canonical: false, in_map: false }
}

/// Collects the keys that transactions access, up to the last wanted one.
struct Reads {
    last: Option<usize>,
    done: bool,
    keys: BTreeSet<StateKey>,
    listing: Listing,
}

/// Collects the whole storage of called contracts.
struct Listing {
    wanted: bool,
    keys: BTreeSet<StateKey>,
}

impl Inspector for Listing {
    fn wants_storage(&self) -> bool {
        self.wanted
    }

    fn frame(&mut self, start: FrameStart) {
        let (Some(contract), Some(storage)) = (start.context, start.storage) else { return };
        self.keys.extend(storage.into_keys().map(|slot| StateKey::Storage(contract, slot)));
    }
}

impl BlockObserver for Reads {
    fn inspector(&mut self, _: usize) -> Option<&mut dyn Inspector> {
        (self.listing.wanted && !self.done).then_some(&mut self.listing)
    }

    fn watches_access(&self) -> bool {
        !self.done
    }

    fn accessed(&mut self, index: usize, access: &Access) {
        if self.done {
            return;
        }
        for key in &access.keys {
            match key {
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
        self.done = self.last.is_some_and(|last| index >= last);
    }
}

/// Nodes and values, each once, and their size in bytes.
#[derive(Default)]
struct Collected {
    nodes: BTreeSet<Bytes>,
    values: BTreeSet<Bytes>,
    bytes: usize,
}

impl Collected {
    fn put(into: &mut BTreeSet<Bytes>, total: &mut usize, bytes: Bytes) {
        let size = bytes.len();
        if into.insert(bytes) {
            *total = total.saturating_add(size);
        }
    }

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

    /// Adds a value if its node holds only its hash.
    fn long(&mut self, value: Bytes) {
        if value.len() > crate::trie::limits::MAX_INLINE_VALUE {
            Self::put(&mut self.values, &mut self.bytes, value);
        }
    }
}

fn witness(view: &dyn State, header: &BlockHeader, keys: &BTreeSet<StateKey>) -> Result<Witness, Failure> {
    let state = view.state(header)?;
    let mut collected = Collected::default();
    for key in keys {
        add(view, header, &*state, key, &mut collected)?;
        if collected.bytes > MAX_WITNESS_BYTES {
            return Err(Failure::Stop(Stop::Refused(Refusal::WitnessTooLarge { max: MAX_WITNESS_BYTES })));
        }
    }
    let texts = |all: BTreeSet<Bytes>| all.iter().map(hex::encode_prefixed).collect();
    Ok(Witness {
        block_number: format!("{:#x}", header.number),
        block_hash: header.hash(),
        state_root: view.state_root(header),
        nodes: texts(collected.nodes),
        values: texts(collected.values),
    })
}

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
            collected.long(state.code(address).map_err(failed)?);
            collected.path_nodes(view, header, &keys::code_key(address), key)
        }
        StateKey::Storage(address, slot) | StateKey::StorageBytes(address, slot) => {
            collected.long(state.storage(address, slot).map_err(failed)?);
            collected.path_nodes(view, header, &keys::slot_key(address, slot), key)
        }
        // Headers and uncles are verified by the chain, not by the state.
        _ => Ok(()),
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
