//! Tests of the pool: each rule by itself, and its invariants under random operations.

use alloy_primitives::{Address, U256};
use proptest::prelude::*;

use super::{Pool, PoolContext, PoolError};
use crate::consensus::Network;
use crate::dev::block_limits::BlockLimits;
use crate::state::AccountState;
use crate::types::{Header, RawUint, Transaction};

const SENDER: Address = Address::repeat_byte(0xaa);

fn head(network: &Network) -> Header {
    Header { gas_limit: 10_000_000u64.into(), ..crate::consensus::testing::header(network, 7) }
}

fn transaction(nonce: u64, price: u64, value: u64) -> Transaction {
    Transaction {
        nonce: nonce.into(),
        gas_price: RawUint::from(price),
        gas_limit: 21_000u64.into(),
        to: Some(Address::ZERO),
        value: U256::from(value),
        v: 27,
        r: U256::from(1),
        s: U256::from(1),
        ..Transaction::remasc(1)
    }
}

fn account(nonce: u64, balance: u64) -> AccountState {
    AccountState { nonce, balance: U256::from(balance), ..AccountState::EMPTY }
}

struct QueueFixture {
    network: Network,
    head: Header,
    pool: Pool,
    account: AccountState,
}

impl QueueFixture {
    fn new() -> Self {
        let network = Network::regtest();
        let mut head = head(&network);
        head.minimum_gas_price = 1u64.into();
        Self { head, network, pool: Pool::new(16), account: account(5, u64::MAX) }
    }

    fn add(&mut self, transaction: Transaction) -> Result<usize, PoolError> {
        let account = self.account;
        self.add_from(Some(&account), transaction)
    }

    /// Adds a transaction of a sender with this account.
    fn add_from(
        &mut self,
        account: Option<&AccountState>,
        transaction: Transaction,
    ) -> Result<usize, PoolError> {
        let context = PoolContext {
            network: &self.network,
            head: &self.head,
            target: BlockLimits::of(&self.head),
            asker: None,
        };
        let added = self.pool.add(&context, transaction, SENDER, account)?;
        Ok(added.pending.len())
    }

    fn nonces(&self) -> (Vec<u64>, Vec<u64>) {
        let of = |map: std::collections::BTreeMap<Address, Vec<std::sync::Arc<super::Pooled>>>| {
            map.into_values().flatten().map(|tx| tx.transaction.nonce.value().to::<u64>()).collect()
        };
        (of(self.pool.pending()), of(self.pool.queued()))
    }
}

#[test]
fn transactions_after_a_nonce_gap_are_queued_until_it_is_filled() {
    let mut fixture = QueueFixture::new();
    assert_eq!(fixture.add(transaction(7, 1, 0)), Ok(0));
    assert_eq!(fixture.add(transaction(8, 1, 0)), Ok(0));
    assert_eq!(fixture.add(transaction(5, 1, 0)), Ok(1));
    assert_eq!(fixture.nonces(), (vec![5], vec![7, 8]));
    assert_eq!(fixture.add(transaction(6, 1, 0)), Ok(3), "this one and the two that waited");
    assert_eq!(fixture.nonces(), (vec![5, 6, 7, 8], vec![]));
    assert_eq!(fixture.pool.next_nonce(&SENDER, 5), 9);
    // A block with the transactions up to nonce 6 was mined.
    assert!(fixture.pool.refresh(&SENDER, 7).is_empty());
    assert_eq!(fixture.nonces(), (vec![7, 8], vec![]));
    // Without 7 the transaction with nonce 8 is queued until the state's nonce is 8.
    let seven = fixture.pool.pending()[&SENDER][0].hash;
    fixture.pool.remove(&seven);
    assert_eq!(fixture.nonces(), (vec![], vec![8]));
    assert_eq!(fixture.pool.refresh(&SENDER, 8).len(), 1);
}

#[test]
fn a_replacement_pays_at_least_forty_percent_more() {
    let mut fixture = QueueFixture::new();
    fixture.add(transaction(5, 10, 0)).unwrap();
    assert_eq!(fixture.add(transaction(5, 10, 0)), Err(PoolError::KnownPending));
    assert_eq!(fixture.add(transaction(5, 13, 0)), Err(PoolError::Bump));
    assert_eq!(fixture.add(transaction(5, 14, 0)), Ok(1));
    assert_eq!((fixture.pool.pending_len(), fixture.pool.queued_len()), (1, 0));
    // A queued transaction is replaced at any price.
    fixture.add(transaction(9, 10, 0)).unwrap();
    assert_eq!(fixture.add(transaction(9, 10, 0)), Err(PoolError::KnownQueued));
    assert_eq!(fixture.add(transaction(9, 2, 0)), Ok(0));
    assert_eq!((fixture.pool.pending_len(), fixture.pool.queued_len()), (1, 1));
}

#[test]
fn each_admission_rule_gives_its_error() {
    let ok = transaction(5, 1, 0);
    let cases: Vec<(Transaction, PoolError)> = vec![
        (transaction(4, 1, 0), PoolError::NonceTooLow),
        (transaction(21, 1, 0), PoolError::NonceTooHigh),
        (transaction(5, 0, 0), PoolError::MinimumGasPrice),
        (transaction(5, 81, 0), PoolError::GasPriceCap),
        (Transaction { nonce: RawUint::padded(U256::from(5), 2), ..ok.clone() }, PoolError::NonceEncoding),
        (Transaction { nonce: RawUint::padded(U256::from(5), 9), ..ok.clone() }, PoolError::NonceLength(9)),
        (Transaction { gas_limit: 20_999u64.into(), ..ok.clone() }, PoolError::BasicCost),
        (
            Transaction { gas_limit: 6_800_001u64.into(), ..ok.clone() },
            PoolError::GasLimit { gas: U256::from(6_800_001), limit: 6_800_000 },
        ),
        (
            Transaction { gas_limit: 1_000_000u64.into(), gas_price: RawUint::from(U256::MAX), ..ok.clone() },
            PoolError::Funds,
        ),
        (transaction(5, 1, u64::MAX), PoolError::FundsForAll),
        (Transaction { to: None, data: vec![0; 49_153].into(), ..ok.clone() }, PoolError::InitCodeSize),
        (Transaction::remasc(6), PoolError::Remasc),
    ];
    for (transaction, error) in cases {
        assert_eq!(QueueFixture::new().add(transaction), Err(error));
    }
    let big = Transaction { data: vec![1; 131_072].into(), gas_limit: 6_000_000u64.into(), ..ok.clone() };
    assert!(matches!(QueueFixture::new().add(big), Err(PoolError::Size(_))));
    let mut poor = QueueFixture::new();
    assert_eq!(poor.add_from(None, ok.clone()), Err(PoolError::NoAccount));
    assert_eq!(poor.add(ok), Ok(1));
}

#[test]
fn the_balance_must_cover_all_pending_transactions() {
    let mut fixture = QueueFixture::new();
    fixture.account = account(5, 3 * 21_000 + 10);
    fixture.add(transaction(5, 1, 10)).unwrap();
    fixture.add(transaction(6, 1, 0)).unwrap();
    assert_eq!(fixture.add(transaction(7, 1, 1)), Err(PoolError::FundsForAll));
    assert_eq!(fixture.add(transaction(7, 1, 0)), Ok(1));
    // The replaced transaction is not counted.
    assert_eq!(fixture.add(transaction(5, 2, 0)), Err(PoolError::FundsForAll));
    fixture.account = account(5, 4 * 21_000);
    assert_eq!(fixture.add(transaction(5, 2, 0)), Ok(1));
}

/// As in the reference node, a queued transaction is checked again when the gap before it is filled.
#[test]
fn a_queued_transaction_that_fails_the_rules_is_dropped_when_its_gap_is_filled() {
    let mut fixture = QueueFixture::new();
    fixture.account = account(5, 2 * 21_000 + 10);
    fixture.add(transaction(6, 1, 11)).unwrap();
    fixture.add(transaction(7, 1, 0)).unwrap();
    assert_eq!(fixture.nonces(), (vec![], vec![6, 7]));
    assert_eq!(fixture.add(transaction(5, 1, 0)), Ok(1), "only this one");
    // The transaction behind the dropped one stays queued.
    assert_eq!(fixture.nonces(), (vec![5], vec![7]));
    assert_eq!(fixture.pool.get(&transaction(6, 1, 11).hash()), None);
    assert_eq!(
        fixture.add(transaction(6, 1, 10)),
        Ok(1),
        "another one fills the gap; 7 is not affordable then"
    );
    assert_eq!(fixture.nonces(), (vec![5, 6], vec![]));

    // The minimum gas price rises while a transaction is queued.
    let mut fixture = QueueFixture::new();
    fixture.add(transaction(6, 1, 0)).unwrap();
    fixture.head.minimum_gas_price = 2u64.into();
    assert_eq!(fixture.add(transaction(5, 2, 0)), Ok(1));
    assert_eq!(fixture.nonces(), (vec![5], vec![]));
}

proptest! {
    /// After any operations the pending transactions of a sender have no nonce gap and the counts are right.
    #[test]
    fn pending_transactions_have_no_gaps_after_any_operations(
        steps in proptest::collection::vec((0u8..4, 0u8..3, 0u64..12, 1u64..60), 0..60)
    ) {
        let mut fixture = QueueFixture::new();
        let senders = [Address::repeat_byte(1), Address::repeat_byte(2), Address::repeat_byte(3)];
        let mut state = [0u64; 3];
        for (kind, who, nonce, price) in steps {
            let index = usize::from(who);
            let context = PoolContext { network: &fixture.network, head: &fixture.head, target: BlockLimits::of(&fixture.head), asker: None };
            match kind {
                0 | 1 => {
                    let known = account(state[index], u64::MAX);
                    let tx = Transaction { data: vec![who].into(), gas_limit: 30_000u64.into(), ..transaction(nonce, price, 0) };
                    let _ = fixture.pool.add(&context, tx, senders[index], Some(&known));
                }
                2 => {
                    state[index] = fixture.pool.next_nonce(&senders[index], state[index]);
                    fixture.pool.refresh(&senders[index], state[index]);
                }
                _ => {
                    if let Some(first) = fixture.pool.ordered().first() {
                        let (hash, sender) = (first.hash, first.sender);
                        fixture.pool.remove(&hash);
                        let index = senders.iter().position(|s| *s == sender).unwrap();
                        fixture.pool.refresh(&sender, state[index]);
                    }
                }
            }
            let ordered = fixture.pool.ordered();
            prop_assert_eq!(ordered.len(), fixture.pool.pending_len());
            let queued: usize = fixture.pool.queued().values().map(Vec::len).sum();
            prop_assert_eq!(queued, fixture.pool.queued_len());
            let mut next = state;
            for tx in &ordered {
                let index = senders.iter().position(|s| *s == tx.sender).unwrap();
                prop_assert_eq!(tx.transaction.nonce.value(), U256::from(next[index]));
                next[index] += 1;
                prop_assert!(fixture.pool.get(&tx.hash).is_some());
            }
            for (sender, waiting) in fixture.pool.queued() {
                let index = senders.iter().position(|s| *s == sender).unwrap();
                prop_assert!(waiting.iter().all(|tx| tx.transaction.nonce.value() > U256::from(next[index])));
            }
        }
    }
}

/// Each account may have many transactions, and there is any number of accounts.
#[test]
fn the_bytes_of_all_transactions_are_limited() {
    let long = |nonce| Transaction {
        data: vec![0; 120_000].into(),
        gas_limit: 600_000_u64.into(),
        ..transaction(nonce, 1, 0)
    };
    let mut fixture = QueueFixture { pool: Pool::new(1_024), ..QueueFixture::new() };
    let fill = |fixture: &mut QueueFixture, first: u64| {
        (first..1_000).find(|nonce| fixture.add(long(*nonce)) == Err(PoolError::Full)).unwrap()
    };
    // The transaction with nonce 5 is left out.
    let full = fill(&mut fixture, 6);
    assert_eq!(full, 6 + (32 << 20) / 121_024);
    let own = fixture.nonces().1;
    assert_eq!(own, (6..full).collect::<Vec<_>>());

    let dropped = fixture.pool.queued()[&SENDER][0].hash;
    fixture.pool.remove(&dropped);
    assert_eq!(fill(&mut fixture, full), full + 1, "there is room for one");
    fixture.account = account(10, u64::MAX);
    fixture.pool.refresh(&SENDER, 10);
    assert_eq!(fill(&mut fixture, full + 1), full + 4, "there is room for those with nonces 7 to 9");
    fixture.pool.clear();
    assert_eq!(fill(&mut fixture, 11), 11 + (32 << 20) / 121_024);
}
