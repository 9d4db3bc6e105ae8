//! Writes blocks with their states into the database, in one transaction.

use alloy_primitives::B256;
use redb::{ReadableTable as _, WriteTransaction};
use rootlight::trie::Trie;

use super::database::{ChainStore, StateRoots, StoredBlock};
use super::error::ChainStoreError;
use super::log_index::StoredIndex;
use super::tables::{BLOCKS, HEAD, META, NODES, NOTES, RECEIPTS, ROOTS, SETTINGS};

/// States after a block, to be written.
#[derive(Debug, Clone)]
pub struct StatesToWrite {
    /// Hash of the block.
    pub block: B256,
    /// Roots of its states.
    pub roots: StateRoots,
    /// The states that the store may not hold yet.
    pub tries: Vec<Trie>,
}

/// What else is written in the transaction of blocks and states.
#[derive(Default)]
pub(super) struct FurtherWrites<'a> {
    /// The index, whose new rows are written.
    pub(super) index: Option<&'a StoredIndex>,
    /// The settings of a development chain.
    pub(super) settings: Option<&'a [u8]>,
}

impl ChainStore {
    /// Adds blocks and states and sets the head, in one transaction.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn append(
        &self,
        blocks: &[StoredBlock],
        states: &[StatesToWrite],
        head: B256,
    ) -> Result<(), ChainStoreError> {
        self.append_with(blocks, states, head, &FurtherWrites::default())
    }

    /// As [`Self::append`], with further writes in the same transaction.
    pub(super) fn append_with(
        &self,
        blocks: &[StoredBlock],
        states: &[StatesToWrite],
        head: B256,
        further: &FurtherWrites<'_>,
    ) -> Result<(), ChainStoreError> {
        let write = self.write()?;
        for block in blocks {
            put_block(&write, block)?;
        }
        for states in states {
            put_states(&write, states)?;
        }
        write.open_table(META)?.insert(HEAD, head.as_slice())?;
        if let Some(index) = further.index {
            index.write(&write, head)?;
        }
        if let Some(settings) = further.settings {
            write.open_table(NOTES)?.insert(SETTINGS, settings)?;
        }
        write.commit()?;
        if let Some(index) = further.index {
            index.written();
        }
        Ok(())
    }
}

/// Writes a block with its receipts.
fn put_block(write: &WriteTransaction, block: &StoredBlock) -> Result<(), ChainStoreError> {
    let mut blocks = write.open_table(BLOCKS)?;
    blocks.insert(&block.hash.0, block.block.as_slice())?;
    let mut receipts = write.open_table(RECEIPTS)?;
    for (index, receipt) in (0u32..).zip(&block.receipts) {
        receipts.insert((block.hash.0, index), receipt.as_slice())?;
    }
    Ok(())
}

/// Writes the states after a block, and their roots; zeros stand for no state.
fn put_states(write: &WriteTransaction, states: &StatesToWrite) -> Result<(), ChainStoreError> {
    for state in &states.tries {
        put_state(write, state)?;
    }
    let StateRoots { executed, edited } = states.roots;
    let roots = [executed.unwrap_or_default(), edited.unwrap_or_default()].concat();
    write.open_table(ROOTS)?.insert(&states.block.0, roots.as_slice())?;
    Ok(())
}

/// Writes the nodes that the store does not hold yet.
fn put_state(write: &WriteTransaction, state: &Trie) -> Result<(), ChainStoreError> {
    let mut nodes = write.open_table(NODES)?;
    let mut new = Vec::new();
    let mut failure = None;
    state.for_each_new(
        &mut |hash| match nodes.get(&hash.0) {
            Ok(found) => found.is_some(),
            Err(error) => {
                failure = Some(error);
                true
            }
        },
        &mut |hash, bytes| new.push((hash, bytes)),
    );
    if let Some(error) = failure {
        return Err(error.into());
    }
    for (hash, bytes) in new {
        nodes.insert(&hash.0, bytes.as_ref())?;
    }
    Ok(())
}
