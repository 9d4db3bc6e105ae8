//! A map that only grows, so that what it holds can be lent while other threads add to it.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of chains. With a million entries each has some sixty.
const CHAINS: usize = 1 << 14;

/// A map from byte strings. What was inserted stays, and never changes.
#[derive(Debug)]
pub(super) struct GrowingMap<V> {
    chains: Box<[Link<V>]>,
    count: AtomicUsize,
    hasher: RandomState,
}

type Link<V> = OnceLock<Box<Entry<V>>>;

#[derive(Debug)]
struct Entry<V> {
    key: Box<[u8]>,
    value: V,
    next: Link<V>,
}

impl<V> Default for GrowingMap<V> {
    fn default() -> Self {
        let chains = (0..CHAINS).map(|_| Link::new()).collect();
        Self { chains, count: AtomicUsize::new(0), hasher: RandomState::new() }
    }
}

impl<V> GrowingMap<V> {
    fn chain(&self, key: &[u8]) -> &Link<V> {
        // The remainder is below the number of chains.
        &self.chains[usize::try_from(self.hasher.hash_one(key) % CHAINS as u64).unwrap_or(0)]
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The value under a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&V> {
        let mut link = self.chain(key);
        while let Some(entry) = link.get() {
            if *entry.key == *key {
                return Some(&entry.value);
            }
            link = &entry.next;
        }
        None
    }

    /// Adds a value; one that is there already stays. Returns the value that is kept.
    pub(super) fn insert(&self, key: &[u8], value: V) -> &V {
        let mut new = Some(Box::new(Entry { key: key.into(), value, next: Link::new() }));
        let mut link = self.chain(key);
        loop {
            // Another thread may append first; the next entry is looked at then.
            let entry = link.get_or_init(|| {
                self.count.fetch_add(1, Ordering::Relaxed);
                new.take().unwrap_or_else(|| unreachable!("it is taken once"))
            });
            if *entry.key == *key {
                return &entry.value;
            }
            link = &entry.next;
        }
    }
}

impl<V> Drop for GrowingMap<V> {
    /// Takes long chains apart without recursion.
    fn drop(&mut self) {
        for link in &mut self.chains {
            let mut next = link.take();
            while let Some(mut entry) = next {
                next = entry.next.take();
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
                        assert_eq!(*map.insert(&number.to_be_bytes(), number), number);
                    }
                });
            }
        });
        assert!((0..20_000_u32).all(|number| map.get(&number.to_be_bytes()) == Some(&number)));
        assert_eq!(*map.insert(&7_u32.to_be_bytes(), 8), 7, "the first value stays");
        assert_eq!(map.len(), 20_000);
        assert_eq!(map.get(b"other"), None);
    }
}
