//! Tests of the state overlay.

use alloy_primitives::{Address, Bytes, U256, keccak256};

use super::access::AccessKey::{Account, Cell};
use super::access::Touches;
use super::keys::account_key;
use super::world::World;
use crate::trie::Trie;

const A: Address = Address::repeat_byte(0xa);
const B: Address = Address::repeat_byte(0xb);

fn slot(number: u64) -> U256 {
    U256::from(number)
}

/// A state with a contract that has code and two cells, and a plain account.
fn base() -> Trie {
    let mut world = World::new(Trie::new());
    world.credit(&A, U256::from(7));
    world.set_marker(&A);
    world.set_code(&A, Bytes::from_static(&[0x60; 40]));
    world.set_word(&A, &slot(1), U256::from(1));
    world.set_word(&A, &slot(2), U256::from(2));
    world.create(&B);
    world.commit()
}

#[test]
fn reads_return_what_was_written() {
    let mut world = World::new(base());
    assert_eq!(world.account(&A).map(|account| account.balance), Some(U256::from(7)));
    assert_eq!(world.code_id(&A), (keccak256([0x60; 40]), 40));
    assert_eq!((world.word(&A, &slot(2)), world.word(&A, &slot(3))), (U256::from(2), U256::ZERO));
    assert!(world.marker(&A) && !world.marker(&B));
    world.set_word(&A, &slot(1), U256::ZERO);
    world.bump_nonce(&B);
    let root = world.commit().root();
    let mut same = World::new(base());
    same.bump_nonce(&B);
    same.set_cell(&A, &slot(1), Bytes::new());
    assert_eq!(same.commit().root(), root);
}

#[test]
fn reads_do_not_change_the_root() {
    let before = base().root();
    let mut world = World::new(base());
    for address in [A, B, Address::ZERO] {
        world.account(&address);
        world.code_id(&address);
        world.marker(&address);
        world.cell(&address, &slot(1));
    }
    assert_eq!(world.commit().root(), before);
}

#[test]
fn a_deleted_account_can_be_created_again() {
    let mut world = World::new(base());
    world.remove(&A);
    assert_eq!((world.account(&A), world.word(&A, &slot(1))), (None, U256::ZERO));
    assert_eq!((world.code_id(&A).1, world.marker(&A)), (0, false));
    world.set_word(&A, &slot(5), U256::from(5));
    let state = world.commit();
    let mut plain = World::new(Trie::new());
    plain.create(&B);
    plain.set_word(&A, &slot(5), U256::from(5));
    assert_eq!(state.root(), plain.commit().root(), "writing a cell creates the account and its marker");
}

#[test]
fn restoring_an_account_undoes_its_changes() {
    let before = base().root();
    let mut world = World::new(base());
    for address in [A, Address::ZERO] {
        let held = world.account(&address);
        world.bump_nonce(&address);
        world.charge(&address, U256::from(99));
        world.restore(&address, held);
    }
    assert_eq!(world.commit().root(), before);
    assert!(base().get(&account_key(&Address::ZERO)).is_none());
}

#[test]
fn overlays_that_write_different_cells_of_a_contract_merge() {
    let (mut one, mut two) = (World::new(base()), World::new(base()));
    one.set_word(&A, &slot(1), U256::from(10));
    one.account(&B);
    two.set_word(&A, &slot(2), U256::from(20));
    two.bump_nonce(&B);
    let mut both = World::new(base());
    both.merge(one);
    both.merge(two);
    let mut single = World::new(base());
    single.set_word(&A, &slot(1), U256::from(10));
    single.set_word(&A, &slot(2), U256::from(20));
    single.bump_nonce(&B);
    assert_eq!(both.commit().root(), single.commit().root());
}

#[test]
fn keys_are_recorded_from_track_access_on() {
    let mut world = World::new(base());
    world.word(&A, &slot(1));
    world.track_access();
    world.word(&A, &slot(2));
    world.credit(&B, U256::from(1));
    world.credit(&A, U256::ZERO);
    world.set_word(&A, &slot(3), U256::from(3));
    let keys = world.take_access().keys;
    let expected = [Account(A), Account(B), Cell(A, slot(2)), Cell(A, slot(3))];
    assert_eq!(
        keys.into_iter().collect::<alloc::vec::Vec<_>>(),
        expected,
        "slot 1 was read before tracking started"
    );
}

#[test]
fn the_overlay_records_no_touches_itself() {
    let mut world = World::new(base());
    assert!(world.touches().is_none());
    world.track_touches();
    world.credit(&A, U256::from(1));
    world.set_word(&A, &slot(1), U256::from(1));
    assert_eq!(world.take_touches(), Touches::default());
    assert!(world.touches().is_none(), "taken");
}
