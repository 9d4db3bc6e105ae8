//! Recovery of the senders of many transactions on all processors.

use std::num::NonZero;
use std::thread::{self, Builder};

use alloy_primitives::Address;
use rootlight::exec::Recovery;
use rootlight::types::Transaction;

use rootlight_limits::{priority, processors};

/// Fewest transactions for one thread: their recovery takes several times as long as starting the thread.
const MIN_OF_THREAD: usize = 8;

/// Transactions between two points at which a thread lets others run: together they take a fraction of a millisecond.
const BETWEEN_PAUSES: usize = 4;

/// Recovers senders on all processors, with the priority of the calling thread.
#[derive(Debug)]
pub(crate) struct AllProcessors;

impl Recovery for AllProcessors {
    fn senders(&self, transactions: &[Transaction], chain_id: u64) -> Vec<Option<Address>> {
        on_threads(priority::processors(), transactions, chain_id)
    }
}

/// Recovers senders on at most `threads` threads, of which the calling thread is one.
fn on_threads(threads: usize, transactions: &[Transaction], chain_id: u64) -> Vec<Option<Address>> {
    let threads =
        NonZero::new(threads.min(transactions.len() / MIN_OF_THREAD)).unwrap_or(NonZero::<usize>::MIN);
    let mut parts = transactions.chunks(transactions.len().div_ceil(threads.get()).max(1));
    let own = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let helpers: Vec<_> = parts
            .map(|part| {
                let recover = move || {
                    processors::join_serving_threads();
                    senders(part, chain_id)
                };
                // The part is recovered below if the system has no further thread.
                (part, Builder::new().name("senders".to_owned()).spawn_scoped(scope, recover).ok())
            })
            .collect();
        let mut all = senders(own, chain_id);
        for (part, helper) in helpers {
            let theirs = helper.and_then(|helper| helper.join().ok());
            all.extend(theirs.unwrap_or_else(|| senders(part, chain_id)));
        }
        all
    })
}

/// Recovers senders on the calling thread; `None` for a transaction with an invalid signature.
fn senders(transactions: &[Transaction], chain_id: u64) -> Vec<Option<Address>> {
    let mut senders = Vec::with_capacity(transactions.len());
    for part in transactions.chunks(BETWEEN_PAUSES) {
        senders.extend(part.iter().map(|transaction| transaction.recover_sender(chain_id).ok()));
        thread::yield_now();
    }
    senders
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{B256, U256};
    use rootlight::dev::PrivateKey;
    use rootlight::types::RawUint;

    use super::*;

    #[test]
    fn the_senders_are_in_the_order_of_the_transactions_on_any_number_of_threads() {
        let keys: Vec<PrivateKey> =
            (1..=3_u8).map(|byte| PrivateKey::new(&B256::repeat_byte(byte)).unwrap()).collect();
        let mut transactions: Vec<Transaction> = Vec::new();
        for nonce in 0..50_u64 {
            let key = &keys[nonce as usize % keys.len()];
            let unsigned = Transaction { nonce: RawUint::from(nonce), ..Transaction::remasc(1) };
            transactions.push(key.sign_transaction(unsigned, 33).unwrap());
        }
        transactions[20].s = U256::MAX;
        let expected: Vec<Option<Address>> = (0..transactions.len())
            .map(|place| (place != 20).then(|| keys[place % keys.len()].address()))
            .collect();
        for threads in [1, 2, 3, 7, 50] {
            assert_eq!(on_threads(threads, &transactions, 33), expected, "{threads} threads");
        }
        assert!(on_threads(4, &[], 33).is_empty());
    }
}
