//! Stores a local chain on disk: writes new blocks and states after every change, and restores the chain at the start.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use alloy_primitives::B256;
use rootlight::consensus::{Network, VerifiedHeader};
use rootlight::dev::Settings;
use rootlight::local::{BlockState, ChainSnapshot, ImportError, LocalChain};
use rootlight::trie::{LoadError, Loader, NodeSource as _, Trie};
use rootlight::types::block::encode_block;
use rootlight::types::{Block, FieldError, Header, Receipt};

use super::append::{FurtherWrites, StatesToWrite};
use super::database::{ChainStore, OpenStore, StateRoots, StoreSlot, StoredBlock, StoredNodes};
use super::error::ChainStoreError;
use super::log_index::StoredIndex;
use super::tables::SETTINGS;

/// Why a stored chain cannot be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum RestoreError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] ChainStoreError),
    /// The head or another block names a block that is not stored.
    #[error("the store lacks block {0}: use an empty folder")]
    MissingBlock(B256),
    /// Stored bytes do not decode as a block.
    #[error("stored block {hash}: {reason}: use an empty folder")]
    Block { hash: B256, reason: String },
    /// The bytes stored under a hash are another block's.
    #[error("stored block {hash}: its header has the hash {found}: use an empty folder")]
    OtherBlock { hash: B256, found: B256 },
    /// The state of a block was changed by hand, which only a development chain allows.
    #[error("the state of block {0} was changed by hand: only `rootlight dev` opens this folder")]
    Edited(B256),
    /// Stored bytes do not decode as a receipt.
    #[error("stored receipts of block {hash}: {error}: use an empty folder")]
    Receipt { hash: B256, error: FieldError },
    /// The state of a block cannot be loaded completely.
    #[error("stored state of block {hash}: {error}: use an empty folder")]
    State { hash: B256, error: LoadError },
    /// A block breaks a rule of this network.
    #[error("stored {0}: use an empty folder")]
    Import(#[from] ImportError),
}

/// The store of a chain in memory, with the part of the chain that the store holds.
pub struct ChainPersistence {
    /// `None` while the store is closed after a failure.
    store: Arc<StoreSlot>,
    index: Arc<StoredIndex>,
    open: OpenStore,
    /// Hash of block 0 and the root of its state; block 0 itself is not stored.
    genesis: (B256, B256),
    /// Hashes of the blocks that the store holds.
    stored_blocks: HashSet<B256>,
    /// Hash of the stored head.
    head: B256,
    /// Root of the head's state, including changes by hand.
    head_root: B256,
    /// The stored settings of a development chain.
    settings: Option<Vec<u8>>,
}

impl ChainPersistence {
    /// Opens a store and restores its chain into `chain`, which holds only genesis, with the states of the
    /// last `history` blocks. `allows_edits` says whether states that were changed by hand are accepted.
    ///
    /// # Errors
    /// The first stored item that cannot be read or breaks a rule; everything read is checked again.
    pub fn restore(
        mut open: OpenStore,
        chain: &mut LocalChain,
        history: Option<u64>,
        allows_edits: bool,
    ) -> Result<Self, RestoreError> {
        let store = open()?;
        let (genesis, genesis_root) = (chain.head().hash(), chain.view().head_state().root());
        let mut stored_blocks = HashSet::from([genesis]);
        let head = store.head()?.unwrap_or(genesis);
        let blocks = branch(&store, head, genesis, chain.view().network())?;
        let keep_from = history.map_or(0, |history| (blocks.len() as u64).saturating_sub(history));
        let nodes = store.nodes()?;
        let mut states =
            StateReader { store: &store, loader: Loader::new(&nodes), nodes: &nodes, head, allows_edits };
        if let Some(edited) = states.edited(genesis)? {
            chain.set_head_state(edited);
        }
        for (hash, block, receipts) in blocks.into_iter().rev() {
            let has_state = block.header.number >= keep_from;
            let state = if has_state { states.executed(hash, block.header.state_root)? } else { None };
            chain.restore(block, receipts, state)?;
            if let Some(edited) = has_state.then(|| states.edited(hash)).transpose()?.flatten() {
                chain.set_head_state(edited);
            }
            stored_blocks.insert(hash);
        }
        let head_root = chain.view().head_state().root();
        let settings = store.note(SETTINGS)?;
        let store = Arc::new(RwLock::new(Some(store)));
        let index = Arc::new(StoredIndex::open(store.clone(), head, chain.head().number)?);
        let genesis = (genesis, genesis_root);
        Ok(Self { store, index, open, genesis, stored_blocks, head, head_root, settings })
    }

    /// The stored settings of a development chain; `None` if there are none or if another version wrote them.
    pub fn settings(&self) -> Option<Settings> {
        serde_json::from_slice(self.settings.as_deref()?).ok()
    }

    /// Writes the part of the canonical chain that the store does not hold, in one transaction: new blocks
    /// with the states that their execution gave (`block_states`), and states changed by hand. `settings` are those of a
    /// development chain.
    ///
    /// # Errors
    /// The store cannot be written. Its contents do not change, and the caller must undo the change of the chain.
    pub fn save(
        &mut self,
        chain: &ChainSnapshot,
        block_states: Vec<BlockState>,
        settings: Option<&Settings>,
    ) -> Result<(), ChainStoreError> {
        let index = self.index.clone();
        self.save_with(chain, block_states, settings, Some(&index))
    }

    /// Writes as an older version of this program, which had no index, did.
    #[cfg(test)]
    pub(crate) fn save_without_index(
        &mut self,
        chain: &ChainSnapshot,
        block_states: Vec<BlockState>,
    ) -> Result<(), ChainStoreError> {
        self.save_with(chain, block_states, None, None)
    }

    /// Writes the new part of the chain, with the rows of an index.
    fn save_with(
        &mut self,
        chain: &ChainSnapshot,
        block_states: Vec<BlockState>,
        settings: Option<&Settings>,
        index: Option<&StoredIndex>,
    ) -> Result<(), ChainStoreError> {
        let (head, head_root) = (chain.head().hash(), chain.head_state().root());
        let settings = settings.and_then(|settings| serde_json::to_vec(settings).ok());
        let settings = settings.filter(|settings| self.settings.as_ref() != Some(settings));
        if (head, head_root) == (self.head, self.head_root) && settings.is_none() {
            return Ok(());
        }
        self.ready()?;
        let executed = block_states.into_iter().map(|state| (state.block, state.state)).collect();
        let new = self.new_blocks(chain)?;
        // The state of the old head may have been changed by hand before a block was mined on it.
        let old = chain.headers().by_hash(&self.head).filter(|_| self.head != head);
        let changed = old.into_iter().chain(new.iter().map(|(header, _)| header)).chain([chain.head()]);
        let states: Result<Vec<_>, _> = changed
            .map(|header| self.states(chain, header, &executed))
            .filter_map(Result::transpose)
            .collect();
        let states = states?;
        let blocks: Vec<StoredBlock> = new.into_iter().map(|(_, block)| block).collect();
        let further = FurtherWrites { index, settings: settings.as_deref() };
        let written = self.store()?.append_with(&blocks, &states, head, &further);
        if let Err(error) = written {
            // redb requires a database to be opened again after a failed write.
            *self.store.write().unwrap_or_else(PoisonError::into_inner) = None;
            return Err(error);
        }
        self.stored_blocks.extend(blocks.iter().map(|block| block.hash));
        (self.head, self.head_root) = (head, head_root);
        self.settings = settings.or_else(|| self.settings.take());
        Ok(())
    }

    /// Returns the store, which is opened again if it failed before.
    fn store(&mut self) -> Result<ChainStore, ChainStoreError> {
        if let Some(store) = &*self.store.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(store.clone());
        }
        let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
        if store.is_none() {
            *store = Some((self.open)()?);
        }
        store.clone().ok_or(ChainStoreError::Closed)
    }

    /// The index of the stored chain.
    pub const fn index(&self) -> &Arc<StoredIndex> {
        &self.index
    }

    /// Checks that the store is open, and opens it again if it failed before.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn ready(&mut self) -> Result<(), ChainStoreError> {
        self.store().map(drop)
    }

    /// Returns the canonical blocks that the store does not hold, oldest first.
    fn new_blocks(
        &self,
        chain: &ChainSnapshot,
    ) -> Result<Vec<(VerifiedHeader, StoredBlock)>, ChainStoreError> {
        let mut new = Vec::new();
        let mut next = chain.head().clone();
        while !self.stored_blocks.contains(&next.hash()) {
            let hash = next.hash();
            let missing = ChainStoreError::MissingBlock { number: next.number, hash };
            let parent = chain.headers().by_hash(&next.parent_hash).cloned();
            let (Some(block), Some(parent)) = (chain.block(&hash), parent) else { return Err(missing) };
            let uncles: Vec<Header> = chain
                .uncles(&hash)
                .map(|uncles| uncles.headers().iter().map(|uncle| uncle.header().clone()).collect())
                .unwrap_or_default();
            let stored = StoredBlock {
                hash,
                block: encode_block(next.header(), block.body.transactions(), &uncles),
                receipts: block.receipts.receipts().iter().map(Receipt::encode).collect(),
            };
            new.push((core::mem::replace(&mut next, parent), stored));
        }
        new.reverse();
        Ok(new)
    }

    /// Returns the states after a block that are to be written; `None` if the store holds them already.
    fn states(
        &self,
        chain: &ChainSnapshot,
        header: &VerifiedHeader,
        executed: &HashMap<B256, Trie>,
    ) -> Result<Option<StatesToWrite>, ChainStoreError> {
        let hash = header.hash();
        let stored = if self.stored_blocks.contains(&hash) { Some(self.stored_roots(header)?) } else { None };
        let executed = executed.get(&hash).filter(|_| stored.is_none()).cloned();
        let current = chain.state(&hash).cloned();
        let (mut roots, mut tries) = (stored.unwrap_or_default(), Vec::new());
        match (executed, &current) {
            (Some(executed), _) => {
                roots.executed = Some(executed.root());
                tries.push(executed);
            }
            // The block was a side block until now. Only the head's state can be changed by hand, so its
            // state is the executed one.
            (None, Some(current)) if stored.is_none() => roots.executed = Some(current.root()),
            // The store has the root of the executed state already, or no state of the block is in memory.
            _ => {}
        }
        if let Some(current) = current {
            let root = Some(current.root());
            roots.edited = root.filter(|_| root != roots.executed);
            tries.push(current);
        }
        Ok((stored != Some(roots)).then_some(StatesToWrite { block: hash, roots, tries }))
    }

    /// Returns the stored state roots of a block that the store holds.
    fn stored_roots(&self, header: &VerifiedHeader) -> Result<StateRoots, ChainStoreError> {
        let hash = header.hash();
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner);
        let stored = store.as_ref().ok_or(ChainStoreError::Closed)?.roots(hash)?;
        // A store of an older version has no roots, and no changes by hand: the state is that of the header.
        let named = if hash == self.genesis.0 { self.genesis.1 } else { header.state_root };
        Ok(stored.unwrap_or(StateRoots { executed: Some(named), edited: None }))
    }
}

/// Returns the blocks from the head down to genesis, without genesis.
fn branch(
    store: &ChainStore,
    head: B256,
    genesis: B256,
    network: &Network,
) -> Result<Vec<(B256, Block, Vec<Receipt>)>, RestoreError> {
    let mut blocks = Vec::new();
    let mut next = head;
    while next != genesis {
        let hash = next;
        let stored = store.block(hash)?.ok_or(RestoreError::MissingBlock(hash))?;
        let block = Block::decode(&stored.block, &|number| network.header_shape(number))
            .map_err(|error| RestoreError::Block { hash, reason: error.to_string() })?;
        let found = block.header.clone().seal().hash();
        if found != hash {
            return Err(RestoreError::OtherBlock { hash, found });
        }
        let receipts: Result<Vec<Receipt>, FieldError> =
            stored.receipts.iter().map(|receipt| Receipt::decode(receipt)).collect();
        next = block.header.parent_hash;
        blocks.push((hash, block, receipts.map_err(|error| RestoreError::Receipt { hash, error })?));
    }
    Ok(blocks)
}

/// Loads the stored states of blocks.
struct StateReader<'a> {
    store: &'a ChainStore,
    nodes: &'a StoredNodes,
    loader: Loader<'a>,
    head: B256,
    allows_edits: bool,
}

impl StateReader<'_> {
    /// Returns the state that the execution of a block gave; `None` if it was not stored. The head's state is always stored. `named` is
    /// the state root of the block's header.
    fn executed(&mut self, hash: B256, named: B256) -> Result<Option<Trie>, RestoreError> {
        let roots = self.store.roots(hash)?;
        let Some(root) = roots.map_or(Some(named), |roots| roots.executed) else { return Ok(None) };
        if hash != self.head && self.nodes.node(&root).is_none() {
            return Ok(None);
        }
        self.load(hash, root).map(Some)
    }

    /// Returns the state after changes by hand, if there were any.
    fn edited(&mut self, hash: B256) -> Result<Option<Trie>, RestoreError> {
        let roots = self.store.roots(hash)?.unwrap_or_default();
        match roots {
            StateRoots { edited: None, .. } => Ok(None),
            StateRoots { edited: Some(_), .. } if !self.allows_edits => Err(RestoreError::Edited(hash)),
            StateRoots { edited: Some(root), .. } => self.load(hash, root).map(Some),
        }
    }

    /// Loads a state of a block by its root.
    fn load(&mut self, hash: B256, root: B256) -> Result<Trie, RestoreError> {
        self.loader.load(root).map_err(|error| RestoreError::State { hash, error })
    }
}
