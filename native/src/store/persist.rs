//! Keeping a local chain on disk: what is new goes in after every change, and comes back at the start.

use std::collections::HashSet;

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight::local::{ChainSnapshot, ImportError, LocalChain};
use rootlight::trie::{LoadError, Loader};
use rootlight::types::block::encode_block;
use rootlight::types::{Block, FieldError, Header, Receipt};

use super::{Store, StoreError, StoredBlock};

/// A stored chain cannot be brought back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The database's own.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A block that another one or the head names is not there.
    #[error("the store lacks block {0}: use an empty folder")]
    MissingBlock(B256),
    /// Stored bytes are no block.
    #[error("stored block {hash}: {reason}: use an empty folder")]
    Block {
        /// What it is stored under.
        hash: B256,
        /// Field and rule.
        reason: String,
    },
    /// Stored bytes are no receipt.
    #[error("stored receipts of block {hash}: {error}: use an empty folder")]
    Receipt {
        /// The block.
        hash: B256,
        /// Field and rule.
        error: FieldError,
    },
    /// The state behind the head is incomplete.
    #[error("stored state of block {hash}: {error}: use an empty folder")]
    State {
        /// The block.
        hash: B256,
        /// What is missing or wrong.
        error: LoadError,
    },
    /// A block breaks a rule of this network.
    #[error("stored {0}: use an empty folder")]
    Import(#[from] ImportError),
}

/// A store and what it holds of the chain in memory.
pub struct Persist {
    store: Store,
    held: HashSet<B256>,
    head: B256,
}

impl Persist {
    /// Brings the stored chain back into one that holds nothing but genesis, with the states of its last `history`
    /// blocks.
    ///
    /// # Errors
    /// Everything read is checked again; the first thing that does not hold.
    pub fn restore(store: Store, chain: &mut LocalChain, history: Option<u64>) -> Result<Self, RestoreError> {
        let genesis = chain.head().hash();
        let mut persist = Self { store, held: HashSet::from([genesis]), head: genesis };
        let Some(head) = persist.store.head()? else { return Ok(persist) };
        let blocks = persist.branch(head, genesis, chain.view().network())?;
        let keep_from = history.map_or(0, |history| (blocks.len() as u64).saturating_sub(history));
        let nodes = persist.store.nodes()?;
        let mut loader = Loader::new(&nodes);
        for (hash, block, receipts) in blocks.into_iter().rev() {
            let state = match block.header.number >= keep_from {
                true => Some(
                    loader
                        .load(block.header.state_root)
                        .map_err(|error| RestoreError::State { hash, error })?,
                ),
                false => None,
            };
            chain.restore(block, receipts, state)?;
            persist.held.insert(hash);
        }
        persist.head = head;
        Ok(persist)
    }

    /// The blocks from the head down to genesis, which is not among them.
    fn branch(
        &self,
        head: B256,
        genesis: B256,
        network: &Network,
    ) -> Result<Vec<(B256, Block, Vec<Receipt>)>, RestoreError> {
        let mut blocks = Vec::new();
        let mut next = head;
        while next != genesis {
            let hash = next;
            let stored = self.store.block(hash)?.ok_or(RestoreError::MissingBlock(hash))?;
            let block = Block::decode(&stored.block, &|number| network.header_shape(number))
                .map_err(|error| RestoreError::Block { hash, reason: error.to_string() })?;
            let receipts: Result<Vec<Receipt>, FieldError> =
                stored.receipts.iter().map(|receipt| Receipt::decode(receipt)).collect();
            next = block.header.parent_hash;
            blocks.push((hash, block, receipts.map_err(|error| RestoreError::Receipt { hash, error })?));
        }
        Ok(blocks)
    }

    /// Writes what the store does not hold of the canonical chain, in one transaction.
    ///
    /// # Errors
    /// The database's own; the chain in memory is ahead of the store then.
    pub fn save(&mut self, chain: &ChainSnapshot) -> Result<(), StoreError> {
        let head = chain.head();
        if head.hash() == self.head {
            return Ok(());
        }
        let mut new = Vec::new();
        let mut next = Some(head.clone());
        while let Some(header) = next.take().filter(|header| !self.held.contains(&header.hash())) {
            let hash = header.hash();
            let (Some(block), Some(state)) = (chain.block(&hash), chain.state(&hash)) else { break };
            let uncles: Vec<Header> = chain
                .uncles(&hash)
                .map(|uncles| uncles.headers().iter().map(|uncle| uncle.header().clone()).collect())
                .unwrap_or_default();
            let stored = StoredBlock {
                hash,
                block: encode_block(header.header(), block.body.transactions(), &uncles),
                receipts: block.receipts.receipts().iter().map(Receipt::encode).collect(),
            };
            new.push((stored, state.clone()));
            next = chain.headers().by_hash(&header.parent_hash).cloned();
        }
        new.reverse();
        self.store.append(&new, head.hash())?;
        self.held.extend(new.iter().map(|(block, _)| block.hash));
        self.head = head.hash();
        Ok(())
    }

    /// The store, for notes.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
}
