//! Removes the newest headers from the chain, for the methods of a development chain that undo blocks.

use alloc::vec::Vec;

use super::HeaderChain;
use crate::types::B256;

impl HeaderChain {
    /// Makes the canonical header of a number the head again, and drops every header above that number, also off the
    /// canonical chain. Returns the hashes of the dropped headers; `None` if the header of the number is not kept.
    pub fn rewind(&mut self, number: u64) -> Option<Vec<B256>> {
        let head = self.view.entries.get(self.view.canonical.get(&number)?)?.clone();
        // Every header above the number descends from one at the number: from the new head or from a side header.
        let at_number =
            |hash: &B256| self.view.entries.get(hash).is_some_and(|entry| entry.number() == number);
        let mut parents: Vec<B256> = self.side.hashes().filter(at_number).collect();
        parents.push(head.hash());
        (number..self.view.head.number())
            .for_each(|parent| self.view.canonical.remove(&parent.saturating_add(1)));
        self.view.head = head;
        let mut dropped = Vec::new();
        for parent in parents {
            for child in self.take_children(&parent) {
                dropped.extend(self.drop_branch(child));
            }
        }
        Some(dropped)
    }
}
