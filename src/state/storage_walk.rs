//! Reads the whole storage of an account from a complete trie.

use alloc::collections::BTreeMap;

use alloy_primitives::{Address, U256};

use super::keys::{BALANCING, storage_root_key};
use crate::trie::Trie;

/// All non-zero storage words of an account. Values of more than 32 bytes, which only native contracts store,
/// are left out.
pub fn storage_words(trie: &Trie, address: &Address) -> BTreeMap<U256, U256> {
    storage_words_up_to(trie, address, usize::MAX).unwrap_or_default()
}

/// As [`storage_words`], but `None` if there are more than `limit` words, or more trie nodes than `limit`
/// words need.
pub fn storage_words_up_to(trie: &Trie, address: &Address, limit: usize) -> Option<BTreeMap<U256, U256>> {
    let prefix = storage_root_key(address);
    let start = prefix.len().saturating_add(BALANCING);
    let mut words = BTreeMap::new();
    // One more node for the storage-root marker at the prefix itself.
    let nodes = limit.saturating_mul(2).saturating_add(1);
    let whole = trie.for_each_below(&prefix, nodes, &mut |key, value| {
        let slot = key.get(start..).and_then(U256::try_from_be_slice);
        if let (Some(slot), Some(word)) = (slot, U256::try_from_be_slice(value)) {
            words.insert(slot, word);
        }
        words.len() <= limit
    });
    whole.then_some(words)
}

#[cfg(test)]
mod tests {
    use alloc::{vec, vec::Vec};

    use super::*;
    use crate::state::keys::{account_key, code_key, slot_key};

    #[test]
    fn words_of_one_account() {
        let (mine, other) = (Address::repeat_byte(1), Address::repeat_byte(2));
        let mut trie = Trie::new();
        for address in [mine, other] {
            trie.put(&account_key(&address), vec![1]);
            trie.put(&code_key(&address), vec![0x60; 40]);
            trie.put(&storage_root_key(&address), vec![1]);
            trie.put(&slot_key(&address, &U256::from(7)), vec![9; 33]);
        }
        let want = BTreeMap::from([(U256::ZERO, U256::from(5)), (U256::MAX, U256::from(0x0102))]);
        trie.put(&slot_key(&mine, &U256::ZERO), vec![5]);
        trie.put(&slot_key(&mine, &U256::MAX), vec![1, 2]);
        assert_eq!(storage_words_up_to(&trie, &mine, 2), Some(want));
        assert_eq!(storage_words_up_to(&trie, &mine, 1), None, "more than the limit");
        assert!(storage_words(&trie, &Address::ZERO).is_empty());
        assert!(storage_words(&trie, &other).is_empty());
    }

    /// Keys that differ only in their 80 balancing bits end in the same slot, and there can be any number of
    /// them.
    #[test]
    fn several_keys_of_one_slot_count_towards_the_limit() {
        let (mine, mut trie) = (Address::repeat_byte(1), Trie::new());
        for balancing in 0..9u8 {
            let mut key = slot_key(&mine, &U256::ZERO);
            let at = storage_root_key(&mine).len();
            key[at] = balancing;
            trie.put(&key, vec![7]);
        }
        assert_eq!(storage_words_up_to(&trie, &mine, 7), None);
        assert_eq!(storage_words_up_to(&trie, &mine, 9).map(|words| words.len()), Some(1));
    }

    #[test]
    fn a_walk_finds_the_keys_below_a_prefix_that_ends_inside_a_path() {
        let mut trie = Trie::new();
        trie.put(&[1, 2, 3], vec![1]);
        trie.put(&[1, 2, 4], vec![2]);
        trie.put(&[1, 9], vec![3]);
        let below = |prefix: &[u8]| {
            let mut keys = Vec::new();
            trie.for_each_below(prefix, usize::MAX, &mut |key, _| {
                keys.push(key.to_vec());
                true
            });
            keys
        };
        assert_eq!(below(&[1, 2]), [vec![1, 2, 3], vec![1, 2, 4]]);
        assert_eq!(below(&[1, 2, 4]), [vec![1, 2, 4]]);
        assert_eq!(below(&[]).len(), 3);
        assert!(below(&[1, 3]).is_empty() && below(&[1, 2, 4, 0]).is_empty());
    }
}
