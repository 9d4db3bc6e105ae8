//! Lists of transactions whose conflicts only show when they run, and contract creations at the address of a
//! contract that was destroyed in the same block.

use std::collections::BTreeSet;

use crate::support;

use rootlight::exec::{BlockError, BlockObserver, TransactionCandidate, TxError};
use rootlight::state::{Access, AccessKey, World};
use rootlight::types::{Address, U256};
use support::lists::Lists;

const CONTRACT: Address = Address::repeat_byte(0xc0);

/// Writes slot 0 and reverts if there is data; reads slot 0 otherwise.
const WRITE_AND_REVERT: &str = "36600757 5f5400 5b60015f555f5ffd";

#[test]
fn reverted_writes_conflict_with_reads() {
    let chain = Lists::new(&[(CONTRACT, WRITE_AND_REVERT, 0)]);
    let calls = [chain.call(0, 0, CONTRACT, &[1]), chain.call(1, 0, CONTRACT, &[])];
    let error = chain.execute(&calls, &[1, 2]).unwrap_err();
    let key = AccessKey::Cell(CONTRACT, U256::ZERO);
    assert_eq!(error, BlockError::Conflict { lists: (0, 1), key });
    let built = chain.build(&calls);
    assert_eq!(built.edges, [2], "one list holds both");
    assert!(!built.executed.receipts[0].success);
    // Two reads do not conflict.
    let reads = [chain.call(0, 0, CONTRACT, &[]), chain.call(1, 0, CONTRACT, &[])];
    chain.execute(&reads, &[1, 2]).unwrap();
    assert_eq!(chain.build(&reads).edges, [1, 2]);
}

/// Creates, with CREATE2, a contract that destroys itself when called, and stores its address in slot 0.
const FACTORY: &str = "69 6133ff5f526002601ef3 5f52 5f600a60165ff5 5f55 00";

#[test]
fn a_contract_destroyed_in_the_block_cannot_be_created_again() {
    let chain = Lists::new(&[(CONTRACT, FACTORY, 0)]);
    let first = chain.execute(&[chain.call(0, 0, CONTRACT, &[])], &[]).unwrap();
    let child = World::new(first.state.clone()).word(&CONTRACT, &U256::ZERO);
    let child = Address::from_word(child.into());
    assert!(World::new(first.state).account(&child).is_some());

    let calls: Vec<TransactionCandidate> = [CONTRACT, child, CONTRACT]
        .into_iter()
        .enumerate()
        .map(|(nonce, to)| chain.call(0, nonce as u64, to, &[]))
        .collect();
    let all = chain.execute(&calls, &[]).unwrap();
    let outcomes: Vec<bool> = all.receipts.iter().map(|receipt| receipt.success).collect();
    assert_eq!(outcomes, [true, true, false, true], "the second creation loses all its gas");
    assert_eq!(all.receipts[2].gas_used, 500_000);
    assert!(World::new(all.state).account(&child).is_none());
    // The result is the same in a parallel list, and when the block is built.
    assert_eq!(chain.execute(&calls, &[3]).unwrap().receipts[..3], all.receipts[..3]);
    assert_eq!(chain.build(&calls).executed.receipts[..3], all.receipts[..3]);

    // In the next block the address can be used again.
    let two = chain.execute(&calls[..2], &[]).unwrap();
    let mut next = Lists { state: two.state, ..Lists::new(&[]) };
    next.state.delete(&rootlight::state::keys::REMASC_SENDER_KEY);
    let again = next.execute(&[next.call(0, 2, CONTRACT, &[])], &[]).unwrap();
    assert!(again.receipts[0].success);
}

#[test]
fn a_creation_at_a_destroyed_address_must_be_in_the_list_of_the_destruction() {
    let chain = Lists::new(&[(CONTRACT, FACTORY, 0)]);
    let first = chain.execute(&[chain.call(0, 0, CONTRACT, &[])], &[]).unwrap();
    let child = World::new(first.state.clone()).word(&CONTRACT, &U256::ZERO);
    let child = Address::from_word(child.into());
    let mut next = Lists { state: first.state, ..Lists::new(&[]) };
    next.state.delete(&rootlight::state::keys::REMASC_SENDER_KEY);

    let calls = [next.call(1, 0, child, &[]), next.call(2, 0, CONTRACT, &[])];
    let error = next.execute(&calls, &[1, 2]).unwrap_err();
    assert_eq!(error, BlockError::Conflict { lists: (0, 1), key: AccessKey::Account(child) });
    let built = next.build(&calls);
    assert_eq!(built.edges, [2], "one list holds both");
    let outcomes: Vec<bool> = built.executed.receipts.iter().map(|receipt| receipt.success).collect();
    assert_eq!(outcomes, [true, false, true]);
    let executed = next.execute_built(&built).unwrap();
    assert_eq!(executed.state.root(), built.executed.state.root());
    assert_eq!(executed.receipts, built.executed.receipts);
}

#[test]
fn changes_of_one_parallel_list_are_not_visible_in_another() {
    let chain = Lists::new(&[(CONTRACT, "6001545f55345f5500", 0)]);
    let calls = [chain.call(0, 0, CONTRACT, &[]), chain.call(0, 1, CONTRACT, &[])];
    let error = chain.execute(&calls, &[1, 2]).unwrap_err();
    assert!(matches!(error, BlockError::Transaction { index: 1, .. }), "{error}");
    assert!(chain.execute(&calls, &[1]).is_ok(), "they are visible in the sequential list");
}

/// Collects the keys that a block read or wrote.
#[derive(Default)]
struct AccessedKeys(BTreeSet<AccessKey>);

impl BlockObserver for AccessedKeys {
    fn watches_access(&self) -> bool {
        true
    }

    fn accessed(&mut self, _: usize, access: &Access) {
        self.0.extend(&access.keys);
    }
}

/// On a part of the state a transaction may use more gas than on the whole, so that the next one finds no room in its list:
/// only the keys tell what is missing.
#[test]
fn the_keys_of_a_list_that_fails_are_reported() {
    // Reads slot 5.
    let chain = Lists::new(&[(CONTRACT, "60055400", 0)]);
    let calls = [chain.call(0, 0, CONTRACT, &[]), chain.send(0, 1, Some(CONTRACT), 0, 29_990_000, &[])];
    for edges in [&[2][..], &[]] {
        let mut keys = AccessedKeys::default();
        let error = chain.execute_watched(&calls, edges, &mut keys).unwrap_err();
        let full = matches!(error, BlockError::Transaction { index: 1, error: TxError::ListGas { .. }, .. });
        assert!(full, "{error}");
        assert!(keys.0.contains(&AccessKey::Cell(CONTRACT, U256::from(5))), "{:?}", keys.0);
    }
}

/// A program that creates a contract, whose initialisation code asks the Bridge for the height of its Bitcoin
/// chain.
const BRIDGE_IN_CONSTRUCTOR: &str = "74 6314c89c015f525f5f6004601c63010000065afa00 5f52 6015600b5ff0 00";
/// A program that makes the same call without a creation.
const BRIDGE: &str = "6314c89c015f525f5f6004601c63010000065afa00";

#[test]
fn parallel_lists_call_the_bridge_only_in_constructors_of_inner_creations() {
    let chain = Lists::new(&[(CONTRACT, BRIDGE, 0)]);
    let calls = [chain.call(0, 0, CONTRACT, &[])];
    let error = chain.execute(&calls, &[1]).unwrap_err();
    assert!(matches!(error, BlockError::NativeContract { index: 0, .. }), "{error}");
    assert!(chain.build(&calls).edges.is_empty(), "in the sequential list");

    // The reference node ignores these calls. Blocks built here keep them in the sequential list.
    let chain = Lists::new(&[(CONTRACT, BRIDGE_IN_CONSTRUCTOR, 0)]);
    let calls = [chain.call(0, 0, CONTRACT, &[])];
    assert!(chain.execute(&calls, &[1]).unwrap().receipts[0].success);
    let built = chain.build(&calls);
    assert!(built.edges.is_empty());
    chain.execute_built(&built).unwrap();
    // The constructor of a transaction is not ignored.
    let create = [chain.send(0, 0, None, 0, 500_000, &hex::decode(BRIDGE).unwrap())];
    let error = chain.execute(&create, &[1]).unwrap_err();
    assert!(matches!(error, BlockError::NativeContract { index: 0, .. }), "{error}");
    // A call after the creation is not ignored either.
    let both = format!("{}{BRIDGE}", BRIDGE_IN_CONSTRUCTOR.trim_end_matches("00"));
    let chain = Lists::new(&[(CONTRACT, &both, 0)]);
    let error = chain.execute(&[chain.call(0, 0, CONTRACT, &[])], &[1]).unwrap_err();
    assert!(matches!(error, BlockError::NativeContract { index: 0, .. }), "{error}");
}
