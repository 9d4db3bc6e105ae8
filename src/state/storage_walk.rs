//! Reads the storage of an account from a complete trie, whole or page by page.

use alloc::{collections::BTreeMap, vec::Vec};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};

use super::keys::{BALANCING, storage_root_key};
use crate::trie::Trie;

/// All non-zero storage words of an account. Values of more than 32 bytes, which only native contracts store,
/// are left out.
pub fn storage_words(trie: &Trie, address: &Address) -> BTreeMap<U256, U256> {
    storage_words_up_to(trie, address, usize::MAX).unwrap_or_default()
}

/// As [`storage_words`], but `None` if there are more than `limit` words, or more trie nodes than `limit`
/// words need, or if the trie is above a base ([`Trie::above`]), whose words cannot be listed.
pub fn storage_words_up_to(trie: &Trie, address: &Address, limit: usize) -> Option<BTreeMap<U256, U256>> {
    if trie.is_above_base() {
        return None;
    }
    let prefix = storage_root_key(address);
    let slot_at = prefix.len().saturating_add(BALANCING);
    let mut words = BTreeMap::new();
    // A binary trie with n values has fewer than 2n nodes. One more node is that of the storage-root marker at the prefix itself.
    let nodes = limit.saturating_mul(2).saturating_add(1);
    let whole = trie.for_each_below(&prefix, nodes, &mut |key, value| {
        let slot = key.get(slot_at..).and_then(U256::try_from_be_slice);
        if let (Some(slot), Some(word)) = (slot, U256::try_from_be_slice(value)) {
            words.insert(slot, word);
        }
        words.len() <= limit
    });
    whole.then_some(words)
}

/// A page of an account's cells, in the order of the hashes of their slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageRange {
    /// Slots and values as stored, by the hash of the slot.
    pub cells: BTreeMap<B256, (U256, Bytes)>,
    /// The hash of the first slot of the next page; `None` after the last one.
    pub next: Option<B256>,
}

/// At most `most` cells of an account, from the slot with the hash `start`, or the next higher one, on. `None` if the trie is above a
/// base ([`Trie::above`]), whose cells cannot be listed.
pub fn storage_range(trie: &Trie, address: &Address, start: &B256, most: usize) -> Option<StorageRange> {
    if trie.is_above_base() {
        return None;
    }
    let root = storage_root_key(address);
    let mut cells: BTreeMap<B256, (U256, Bytes)> = BTreeMap::new();
    // Balancing bytes of the cell that was read last: the first bytes of the hash of its slot.
    let mut last = [0; BALANCING];
    let mut visit = |key: &[u8], value: &Bytes| {
        let rest = key.get(root.len()..).and_then(|rest| rest.split_first_chunk::<BALANCING>());
        let Some((balancing, slot)) = rest else { return true };
        // The trie does not order slots with the same balancing bytes by the rest of their hashes, so all of these slots are read.
        if cells.len() > most && last != *balancing {
            return false;
        }
        let slot = U256::try_from_be_slice(slot).map(|slot| (slot, keccak256(slot.to_be_bytes::<32>())));
        if let Some((slot, hash)) = slot.filter(|(_, hash)| hash >= start) {
            cells.insert(hash, (slot, value.clone()));
            last = *balancing;
        }
        true
    };
    // The cells whose balancing bytes are those of the start, then those that share fewer and fewer of them.
    let shared = start.split_at(BALANCING).0;
    let mut prefixes = Vec::from([[&root[..], shared].concat()]);
    for depth in (0..BALANCING).rev() {
        let (same, from) = (shared.get(..depth).unwrap_or_default(), shared.get(depth).copied().unwrap_or(0));
        // The bytes above `from`; `from` itself was covered at the depth below.
        let above = (from..=u8::MAX).skip(1);
        prefixes.extend(above.map(|byte| [&root[..], same, &[byte]].concat()));
    }
    for prefix in prefixes {
        if !trie.for_each_below(&prefix, usize::MAX, &mut visit) {
            break;
        }
    }
    let next = cells.keys().nth(most).copied();
    cells.retain(|hash, _| next.is_none_or(|next| *hash < next));
    Some(StorageRange { cells, next })
}

#[cfg(test)]
mod tests {
    use alloc::{sync::Arc, vec};

    use super::*;
    use crate::state::keys::{account_key, code_key, slot_key};
    use crate::trie::TrieBase;

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

    #[derive(Debug)]
    struct NoValues;

    impl TrieBase for NoValues {
        fn value(&self, _: &[u8]) -> Option<&Bytes> {
            None
        }

        fn root(&self) -> B256 {
            B256::ZERO
        }
    }

    #[test]
    fn a_trie_above_another_one_lists_no_storage() {
        let (mine, mut trie) = (Address::repeat_byte(1), Trie::above(Arc::new(NoValues)));
        trie.put(&slot_key(&mine, &U256::ZERO), vec![5]);
        assert_eq!(storage_words_up_to(&trie, &mine, 9), None);
        assert_eq!(storage_range(&trie, &mine, &B256::ZERO, 9), None);
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

    /// Pages of any length, from any hash on, are parts of the whole storage in the order of the hashes.
    #[test]
    fn pages_of_storage_follow_each_other() {
        let (mine, other, mut trie) = (Address::repeat_byte(1), Address::repeat_byte(2), Trie::new());
        for address in [mine, other] {
            trie.put(&account_key(&address), vec![1]);
            trie.put(&code_key(&address), vec![0x60; 40]);
            trie.put(&storage_root_key(&address), vec![1]);
        }
        trie.put(&slot_key(&other, &U256::ZERO), vec![1]);
        let mut whole = BTreeMap::new();
        for number in 0..300_u64 {
            let (slot, value) = (U256::from(number), vec![u8::MAX, number as u8]);
            trie.put(&slot_key(&mine, &slot), value.clone());
            whole.insert(keccak256(slot.to_be_bytes::<32>()), (slot, Bytes::from(value)));
        }
        for most in [1, 7, 299, 300, 1_000] {
            let (mut found, mut start) = (BTreeMap::new(), Some(B256::ZERO));
            while let Some(from) = start {
                let page = storage_range(&trie, &mine, &from, most).unwrap();
                assert!(page.cells.len() <= most && !page.cells.is_empty(), "{most}");
                found.extend(page.cells);
                start = page.next;
            }
            assert_eq!(found, whole, "{most}");
        }
        // Between two hashes, at the first and above the last one.
        let hashes: Vec<B256> = whole.keys().copied().collect();
        let after = |hash: &B256| B256::from(U256::from_be_bytes(hash.0) + U256::from(1));
        let first_of = |start: &B256| storage_range(&trie, &mine, start, 1).unwrap().cells.into_keys().next();
        for pair in hashes.windows(2) {
            assert_eq!((first_of(&pair[0]), first_of(&after(&pair[0]))), (Some(pair[0]), Some(pair[1])));
        }
        assert_eq!(first_of(&after(hashes.last().unwrap())), None);
        assert_eq!(first_of(&B256::repeat_byte(0xff)), None);
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
