//! A map that only grows, so that references to its values stay valid while other threads add to it. `ForkState` stores the values of
//! the forked state in it, because [`crate::trie::TrieBase`] returns references.

use alloc::boxed::Box;
use core::hash::BuildHasher as _;
use core::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::map::DefaultHashBuilder;
use spin::Once;

/// Number of chains of entries, of which each holds the keys with the same low bits of their hash. With a million entries a chain has
/// some sixty.
const CHAINS: usize = 1 << 14;

/// The bits of a hash that choose the chain.
const CHAIN_BITS: u64 = (1 << 14) - 1;

/// A map from byte strings. Entries are never removed or changed.
pub(super) struct GrowingMap<V> {
    chains: Box<[Link<V>]>,
    count: AtomicUsize,
    hasher: DefaultHashBuilder,
}

/// The first entry of a chain, or the one after another entry; empty at the end of the chain.
type Link<V> = Once<Box<Entry<V>>>;

/// An entry, and the link to the next one of the same chain.
struct Entry<V> {
    key: Box<[u8]>,
    value: V,
    next: Link<V>,
}

impl<V> Default for GrowingMap<V> {
    fn default() -> Self {
        let chains = (0..CHAINS).map(|_| Link::new()).collect();
        Self { chains, count: AtomicUsize::new(0), hasher: DefaultHashBuilder::default() }
    }
}

impl<V> GrowingMap<V> {
    /// The chain that a key belongs to. There is one for every key.
    fn chain(&self, key: &[u8]) -> Option<&Link<V>> {
        let chain = usize::try_from(self.hasher.hash_one(key) & CHAIN_BITS).ok()?;
        self.chains.get(chain)
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The value under a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&V> {
        let mut link = self.chain(key)?;
        while let Some(entry) = link.get() {
            if *entry.key == *key {
                return Some(&entry.value);
            }
            link = &entry.next;
        }
        None
    }

    /// Adds a value, unless the key has one already. Returns the value under the key.
    pub(super) fn insert(&self, key: &[u8], value: V) -> Option<&V> {
        let mut new = Some(Box::new(Entry { key: key.into(), value, next: Link::new() }));
        let mut link = self.chain(key)?;
        loop {
            // `append` runs only if this link is empty, and therefore once. If another thread has filled the link, `entry` is that
            // thread's, and the loop goes on to the next link.
            let append = || {
                self.count.fetch_add(1, Ordering::Relaxed);
                new.take().ok_or(())
            };
            let entry = link.try_call_once(append).ok()?;
            if *entry.key == *key {
                return Some(&entry.value);
            }
            link = &entry.next;
        }
    }
}

impl<V> Drop for GrowingMap<V> {
    /// Drops the entries of a chain one by one: the derived drop recurses, and a long chain would exhaust the stack.
    fn drop(&mut self) {
        for link in &mut self.chains {
            let mut next = core::mem::take(link).try_into_inner();
            while let Some(mut entry) = next {
                next = core::mem::take(&mut entry.next).try_into_inner();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_while_other_threads_add() {
        let map = GrowingMap::default();
        std::thread::scope(|scope| {
            for offset in 0..4_u32 {
                let map = &map;
                scope.spawn(move || {
                    for number in (0..20_000_u32).map(|number| number ^ offset) {
                        assert_eq!(map.insert(&number.to_be_bytes(), number), Some(&number));
                    }
                });
            }
        });
        assert!((0..20_000_u32).all(|number| map.get(&number.to_be_bytes()) == Some(&number)));
        assert_eq!(map.insert(&7_u32.to_be_bytes(), 8), Some(&7), "the first value stays");
        assert_eq!(map.len(), 20_000);
        assert_eq!(map.get(b"other"), None);
    }
}
