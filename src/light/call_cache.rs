//! Values that calls have computed from proven trie nodes: accounts below a state root, slots below an account's storage node, and
//! analysed code. Each value follows from the hash of its root, node or code alone, so it never becomes wrong.

use alloc::{sync::Arc, vec::Vec};

use alloy_primitives::{Address, B256, Bytes, U256};

use crate::{exec::ReadyCode, state::ReadAccount};

/// Most accounts that are kept, about 300 bytes each. The oldest is dropped first.
pub(super) const MAX_ACCOUNTS: usize = 64;

/// Most slots that are kept, at most about 150 bytes each. The oldest is dropped first.
const MAX_SLOTS: usize = 128;

/// Most codes that are kept. With their jump targets they take at most 27 kB each, in all 450 kB.
const MAX_CODES: usize = 16;

/// The longest code in bytes that is kept, which is the limit of Rootstock's contracts.
const MAX_CODE_BYTES: usize = 0x6000;

/// Accounts, slots and codes, oldest first. The lists are short: a look-up takes less time than one step of the trie.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallCache {
    /// Accounts by address and state root.
    accounts: Vec<(Address, B256, Arc<ReadAccount>)>,
    /// Values of slots by slot and hash of the node below which it was found.
    slots: Vec<(U256, B256, Bytes)>,
    /// Analysed codes by code hash.
    codes: Vec<(B256, ReadyCode)>,
}

impl CallCache {
    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.slots.is_empty() && self.codes.is_empty()
    }

    /// Takes over the values of another cache.
    pub(crate) fn absorb(&mut self, other: Self) {
        other
            .accounts
            .into_iter()
            .for_each(|(address, root, account)| self.put_account(address, root, account));
        other.slots.into_iter().for_each(|(slot, node, value)| self.put_slot(node, slot, value));
        other.codes.into_iter().for_each(|(hash, code)| self.put_code(hash, code));
    }

    pub(super) fn account(&self, root: &B256, address: &Address) -> Option<Arc<ReadAccount>> {
        let mut newest = self.accounts.iter().rev();
        newest.find(|(own, below, _)| own == address && below == root).map(|(.., account)| account.clone())
    }

    pub(super) fn slot(&self, node: &B256, slot: &U256) -> Option<Bytes> {
        let mut newest = self.slots.iter().rev();
        newest.find(|(own, below, _)| own == slot && below == node).map(|(.., value)| value.clone())
    }

    pub(super) fn code(&self, hash: &B256) -> Option<ReadyCode> {
        self.codes.iter().find(|(own, _)| own == hash).map(|(_, code)| code.clone())
    }

    pub(super) fn put_account(&mut self, address: Address, root: B256, account: Arc<ReadAccount>) {
        if self.account(&root, &address).is_none() {
            drop_oldest(&mut self.accounts, MAX_ACCOUNTS);
            self.accounts.push((address, root, account));
        }
    }

    pub(super) fn put_slot(&mut self, node: B256, slot: U256, value: Bytes) {
        if self.slot(&node, &slot).is_none() {
            drop_oldest(&mut self.slots, MAX_SLOTS);
            self.slots.push((slot, node, value));
        }
    }

    pub(super) fn put_code(&mut self, hash: B256, code: ReadyCode) {
        if self.code(&hash).is_none() && code.size() <= MAX_CODE_BYTES {
            drop_oldest(&mut self.codes, MAX_CODES);
            self.codes.push((hash, code));
        }
    }
}

/// Drops the oldest entry of a list that has `most` entries.
fn drop_oldest<T>(list: &mut Vec<T>, most: usize) {
    if list.len() >= most {
        list.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_limited_and_found_below_their_node_only() {
        let mut call_cache = CallCache::default();
        let value = |number: usize| Bytes::from(alloc::vec![0x77; number % 33]);
        let (node, slot) = (B256::repeat_byte(1), |number: usize| U256::from(number));
        for number in 0..=MAX_SLOTS {
            call_cache.put_slot(node, slot(number), value(number));
            call_cache.put_slot(node, slot(number), value(number));
        }
        assert_eq!(call_cache.slots.len(), MAX_SLOTS);
        assert_eq!(call_cache.slot(&node, &slot(0)), None);
        for number in 1..=MAX_SLOTS {
            assert_eq!(call_cache.slot(&node, &slot(number)), Some(value(number)));
            assert_eq!(call_cache.slot(&B256::repeat_byte(2), &slot(number)), None);
        }
    }

    #[test]
    fn codes_are_limited_in_number_and_length() {
        let mut call_cache = CallCache::default();
        let code = |len: usize| ReadyCode::of(alloc::vec![0x5b; len].into());
        let hash = |number: usize| B256::from(alloy_primitives::U256::from(number));
        for number in 0..=MAX_CODES {
            call_cache.put_code(hash(number), code(number + 1));
            call_cache.put_code(hash(number), code(1));
        }
        assert!(call_cache.code(&hash(0)).is_none());
        assert_eq!(call_cache.code(&hash(1)).unwrap().size(), 2);
        assert_eq!(call_cache.codes.len(), MAX_CODES);
        call_cache.put_code(hash(100), code(MAX_CODE_BYTES + 1));
        assert!(call_cache.code(&hash(100)).is_none());
    }
}
