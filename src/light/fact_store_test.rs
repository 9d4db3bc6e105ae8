//! Tests of the fact cache: which proven facts it keeps, and for how long.

use alloc::{format, vec};

use super::*;
use crate::{
    consensus::testing::{chain, easy_network},
    trie::connected,
    types::KEY_ASKERS,
};
use alloy_primitives::keccak256;

fn hash(number: usize) -> B256 {
    B256::from(U256::from(number))
}

fn touched_by(cache: &FactCache, contract: u8) -> Vec<StateKey> {
    KnownFacts::new(&FactStore::default(), cache).touched(Address::repeat_byte(contract), hash(1)).collect()
}

fn key(number: usize) -> StateKey {
    StateKey::Storage(Address::ZERO, U256::from(number))
}

fn touch(contract: u8, number: usize, data: usize) -> TouchedKey {
    TouchedKey { contract: Address::repeat_byte(contract), key: key(number), data: Some(hash(data)) }
}

/// An absent transaction may appear later, and a pending one may be mined.
#[test]
fn only_facts_that_stay_true_are_cached() {
    let mut learned = FactStore::default();
    let header = chain(easy_network(&[], &[]), 7).head().sealed().clone();
    learned.headers.extend([(hash(1), None), (hash(2), Some(Arc::new(header)))]);
    let block = BlockRef { number: 1, hash: hash(9) };
    let waiting = Arc::new(Transaction::remasc(1));
    let locations = [Location::Unknown, Location::Pending(waiting), Location::Mined(block)];
    let body = VerifiedBody::of_hashes(block.hash, vec![hash(2)]);
    learned.bodies.insert(block.hash, Arc::new(body));
    // No body shows this transaction in its block.
    learned.locations.insert(hash(3), Location::Mined(block).into());
    learned
        .locations
        .extend(locations.into_iter().enumerate().map(|(at, location)| (hash(at), location.into())));
    let mut cache = FactCache::new();
    cache.absorb(learned);
    let own = FactStore::default();
    let known = KnownFacts::new(&own, &cache);
    assert!(
        known.header(&hash(1)).is_none() && known.header(&hash(2)).is_none(),
        "headers off the chain belong to one message"
    );
    assert!(known.location(&hash(0)).is_none());
    assert!(known.location(&hash(1)).is_none() && known.location(&hash(2)).is_some());
    assert!(known.location(&hash(3)).is_none(), "a location that was not proven");
    assert_eq!(known.location(&hash(2)), Some(&Location::Mined(block)));
}

#[test]
fn two_generations_are_kept() {
    let mut cache = FactCache::new();
    let body = |at: usize| Arc::new(VerifiedBody::of_hashes(hash(at), Vec::new()));
    for generation in 0..3_usize {
        let mut learned = FactStore::default();
        let range = generation * 600..generation * 600 + 600;
        learned.bodies.extend(range.map(|at| (hash(at), body(at))));
        cache.absorb(learned);
    }
    let own = FactStore::default();
    let known = KnownFacts::new(&own, &cache);
    assert!(known.body(&hash(1_800 - 1)).is_some() && known.body(&hash(600)).is_none());
    assert_eq!((GENERATION_ENTRIES, cache.young.bodies.len(), cache.old.bodies.len()), (512, 0, 600));
}

/// The facts that a message has proven about block `at`, which count as `block_bytes` bytes.
fn learned(at: usize, block_bytes: usize) -> FactStore {
    let body = Arc::new(VerifiedBody::of_hashes(hash(at), Vec::new()));
    FactStore { bodies: [(hash(at), body)].into(), block_bytes, ..FactStore::default() }
}

/// A few large blocks fill a generation as many small ones do. Facts that are larger than a generation are not kept.
#[test]
fn the_bytes_of_a_generation_are_limited() {
    let mut cache = FactCache::new();
    cache.absorb(learned(1, GENERATION_BYTES));
    assert_eq!((cache.young.bodies.len(), cache.young.bytes()), (1, GENERATION_BYTES));
    cache.absorb(learned(2, 1));
    assert_eq!((cache.young.bodies.len(), cache.old.bodies.len()), (1, 1));
    cache.absorb(learned(3, GENERATION_BYTES + 1));
    assert_eq!((cache.young.bodies.len(), cache.young.bytes(), cache.old.bodies.len()), (1, 1, 1));
}

#[test]
fn a_host_limits_the_bytes_of_the_cache() {
    let mut cache = FactCache::new();
    cache.limit(2_000);
    for at in 0..100 {
        cache.absorb(learned(at, 100));
        assert!(cache.young.bytes() + cache.old.bytes() <= 2_000, "after {at}");
    }
    cache.absorb(learned(100, 1_001));
    let own = FactStore::default();
    let known = KnownFacts::new(&own, &cache);
    assert!(known.body(&hash(99)).is_some() && known.body(&hash(100)).is_none());
}

#[test]
fn the_nodes_of_a_generation_are_limited() {
    let mut learned = FactStore::default();
    for number in 0..=GENERATION_NODES as u64 {
        assert!(!learned.is_full(), "{number}");
        // A trie of one short value.
        let node = [&[0x40][..], &number.to_be_bytes()].concat();
        let nothing: [&[u8]; 0] = [];
        learned.nodes.merge(connected(keccak256(&node), &[&node], &nothing).unwrap()).unwrap();
    }
    assert_eq!((learned.nodes.len(), learned.is_full()), (GENERATION_NODES + 1, true));
}

#[test]
fn keys_of_calls_are_remembered_within_limits() {
    let mut cache = FactCache::new();
    let touch = |contract: u8, number| touch(contract, number, 1);
    let touched_now = (0..30).map(|number| touch(1, number)).chain([touch(1, 10)]).collect();
    cache.absorb(FactStore { touched: touched_now, ..FactStore::default() });
    let kept = touched_by(&cache, 1);
    assert_eq!(
        (kept.len(), kept[0], kept[23]),
        (24, key(6), key(10)),
        "the oldest are dropped, and no key is kept twice"
    );
    for contract in 2..=180 {
        let all = (0..24).map(|number| touch(contract, number)).collect();
        cache.absorb(FactStore { touched: all, ..FactStore::default() });
    }
    assert_eq!(cache.touched.len(), 4_096);
    assert!(touched_by(&cache, 1).is_empty() && touched_by(&cache, 180).len() == 24);
    let (first, before) = (cache.touched[0], touched_by(&cache, 180));
    cache.absorb(FactStore { touched: vec![touch(180, 24)], ..FactStore::default() });
    assert_eq!(touched_by(&cache, 180)[..23], before[1..], "the contract's own oldest key is dropped");
    assert_eq!(cache.touched[0], first);
}

/// A message may miss thousands of keys in each of its calls.
#[test]
fn the_newest_keys_of_many_calls_are_remembered() {
    let mut cache = FactCache::new();
    let calls = (0..50).flat_map(|contract| (0..4_000).map(move |number| touch(contract, number, 1)));
    let touched = calls.collect();
    cache.absorb(FactStore { touched, ..FactStore::default() });
    for contract in 0..50 {
        assert_eq!(touched_by(&cache, contract), (3_976..4_000).map(key).collect::<Vec<_>>());
    }
}

/// A key that calls with different data have read counts for all calls; any other key only for calls with the same
/// data.
#[test]
fn a_key_belongs_to_one_call_data_until_calls_with_other_data_read_it() {
    let mut cache = FactCache::new();
    let mut read = |touches: &[(usize, usize)]| {
        let touched = touches.iter().map(|(number, data)| touch(1, *number, *data)).collect();
        cache.absorb(FactStore { touched, ..FactStore::default() });
        let own = FactStore::default();
        let known = KnownFacts::new(&own, &cache);
        [1, 2].map(|data| known.touched(Address::repeat_byte(1), hash(data)).collect::<Vec<_>>())
    };
    assert_eq!(read(&[(5, 1), (6, 1), (7, 2)]), [vec![key(5), key(6)], vec![key(7)]]);
    assert_eq!(read(&[(6, 1)]), [vec![key(5), key(6)], vec![key(7)]], "read again with the same data");
    assert_eq!(read(&[(5, 2), (8, 2)]), [vec![key(6), key(5)], vec![key(7), key(5), key(8)]]);
    let common = [vec![key(6), key(5), key(7)], vec![key(8), key(5), key(7)]];
    assert_eq!(read(&[(5, 2), (7, 3)]), common, "read by calls with different data, from then on");
}

#[test]
fn the_newest_transactions_sent_from_here_are_remembered() {
    let mut cache = FactCache::new();
    let sent = |number: u64| {
        let transaction = Arc::new(Transaction::remasc(number + 1));
        SentTransaction {
            hash: hash(number as usize),
            sender: Address::repeat_byte(5),
            asker: Default::default(),
            transaction,
        }
    };
    let all = (0..300).chain([299]).map(sent).collect();
    cache.absorb(FactStore { sent: all, ..FactStore::default() });
    assert_eq!(cache.sent_by_hash().count(), 256);
    let own = FactStore::default();
    let known = KnownFacts::new(&own, &cache);
    assert!(known.sent(&hash(43)).is_none() && known.sent(&hash(44)).is_some());
    let sender = Address::repeat_byte(5);
    assert_eq!((known.next_nonce(&sender, 44), known.next_nonce(&sender, 40)), (300, 40));
    assert_eq!(known.next_nonce(&Address::ZERO, 44), 44);
}

#[test]
fn no_asker_makes_the_transactions_of_others_forgotten() {
    let sender = Address::repeat_byte(5);
    let operator = Asker::from(1);
    let sent = |nonce: u64, asker: Asker| {
        let transaction = Arc::new(Transaction::remasc(nonce + 1));
        SentTransaction { hash: hash(nonce as usize), sender, asker, transaction }
    };
    let page =
        |caller: u64, number: u64| Asker::from(caller).on_page(Some(&format!("https://{number}.example")), 1);
    let floods: [(&str, &dyn Fn(u64) -> SentTransaction); 5] = [
        ("one transaction from many origins at the operator's address", &|number| sent(900, page(1, number))),
        ("transactions of many origins", &|number| sent(1_000 + number, page(1, number))),
        ("transactions of one key", &|number| sent(1_000 + number, KEY_ASKERS.start.into())),
        ("transactions of another caller", &|number| sent(1_000 + number, 2.into())),
        ("the operator's own transaction from many origins", &|number| sent(7, page(2, number))),
    ];
    for (flood, make) in floods {
        let mut cache = FactCache::new();
        let others = [operator, page(3, 0), (KEY_ASKERS.start + 1).into()];
        for asker in others {
            cache.absorb(FactStore { sent: vec![sent(7, asker), sent(8, asker)], ..FactStore::default() });
        }
        let first = make(0);
        for number in 0..600 {
            cache.absorb(FactStore { sent: vec![make(number)], ..FactStore::default() });
        }
        assert_eq!(cache.sent.len(), 256, "{flood}");
        for asker in others {
            let own = FactStore { asker, ..FactStore::default() };
            let known = KnownFacts::new(&own, &cache);
            assert!(known.sent(&hash(7)).is_some() && known.sent(&hash(8)).is_some(), "{flood}");
            assert_eq!(known.next_nonce(&sender, 8), 9, "{flood}");
        }
        let own = FactStore { asker: first.asker, ..FactStore::default() };
        let known = KnownFacts::new(&own, &cache);
        assert!(known.is_from_others(&hash(8)) && known.sent(&first.hash).is_none(), "{flood}");
        assert!(cache.sent_by_hash().any(|(known, _)| known == hash(8)), "{flood}");
        for (index, one) in cache.sent.iter().enumerate() {
            let mut same = cache.sent.iter().skip(index).filter(|other| other.hash == one.hash);
            assert!(
                same.all(|other| Arc::ptr_eq(&other.transaction, &one.transaction)),
                "kept once: {flood}"
            );
        }
    }
}
