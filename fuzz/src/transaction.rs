//! Transactions, receipts and sender recovery.

use alloy_primitives::{Address, U256, keccak256};
use k256::ecdsa::SigningKey;
use rootlight::types::{Receipt, Transaction};

use crate::input::{Input, change};
use crate::limit::with_limit;

/// Signs the transactions of the second half.
const KEY: [u8; 32] = [0x11; 32];
/// Mainnet's.
const CHAIN_ID: u64 = 30;

/// The bytes as a transaction, as a receipt, and as choices for a signed transaction that is then changed.
pub fn check(data: &[u8]) {
    with_limit(data.len(), || {
        check_transaction(data);
        check_receipt(data);
        check_signature(data);
    });
}

fn check_transaction(rlp: &[u8]) {
    let Ok(tx) = Transaction::decode(rlp) else { return };
    assert_eq!(tx.encode(), rlp);
    assert_eq!(tx.hash(), keccak256(rlp));
    if tx.is_remasc() {
        assert_eq!(tx.recover_sender(CHAIN_ID), Ok(Address::ZERO));
        return;
    }
    // Recovering a key costs a thousand times what decoding costs: an eighth of the inputs.
    if tx.hash()[0] >= 32 {
        return;
    }
    let named = tx.chain_id().unwrap_or(CHAIN_ID);
    let Ok(sender) = tx.recover_sender(named) else { return };
    assert_eq!(tx.contract_address(&sender).is_some(), tx.to.is_none());
    // Another chain takes it only if it names none.
    assert_eq!(tx.recover_sender(named + 1).is_ok(), tx.chain_id().is_none());
    // The other signature of the same point must be refused: a transaction has one hash.
    let order = U256::from_be_bytes(ORDER);
    let twin_v = if matches!(tx.v, 27 | 28) { 55 - tx.v } else { ((tx.v - 35) ^ 1) + 35 };
    let twin = Transaction { s: order - tx.s, v: twin_v, ..tx };
    assert!(twin.recover_sender(named).is_err());
}

/// Order of secp256k1.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba,
    0xae, 0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
];

fn check_receipt(rlp: &[u8]) {
    let Ok(receipt) = Receipt::decode(rlp) else { return };
    assert_eq!(receipt.encode(), rlp);
    let rebuilt =
        Receipt::new(receipt.success, receipt.cumulative_gas_used, receipt.gas_used, receipt.logs.clone());
    assert_eq!(receipt.bloom_matches(), rebuilt == receipt);
}

/// A transaction signed here has our sender; after any change it has not, or it is the same transaction.
fn check_signature(data: &[u8]) {
    // A few of the inputs: signing costs far more than parsing.
    if keccak256(data)[0] >= 16 {
        return;
    }
    let mut input = Input::new(data);
    let tx = signed(&mut input);
    let Ok(sender) = tx.recover_sender(CHAIN_ID) else { panic!("our own signature is refused") };
    assert_eq!(sender, our_address());
    let mut rlp = tx.encode();
    change(&mut rlp, &mut input);
    let Ok(changed) = Transaction::decode(&rlp) else { return };
    if changed != tx {
        assert_ne!(changed.recover_sender(CHAIN_ID), Ok(sender));
    }
}

fn signed(input: &mut Input<'_>) -> Transaction {
    let protected = input.byte() % 2 == 0;
    let mut tx = Transaction {
        nonce: u64::from(input.byte()).into(),
        gas_price: U256::from(input.short()).into(),
        gas_limit: u64::from(input.byte()).into(),
        to: (input.byte() % 4 != 0).then(|| Address::from(input.array::<20>())),
        value: U256::from_be_bytes(input.array::<32>()),
        data: Vec::new().into(),
        v: if protected { 35 + 2 * CHAIN_ID as u8 } else { 27 },
        r: U256::from(1),
        s: U256::from(1),
    };
    let len = usize::from(input.byte());
    tx.data = input.take(len).to_vec().into();
    let key = SigningKey::from_slice(&KEY).expect("a valid key");
    let (signature, id) = key.sign_prehash_recoverable(tx.signing_hash().as_slice()).expect("a signature");
    tx.v += id.to_byte();
    tx.r = U256::from_be_slice(&signature.r().to_bytes());
    tx.s = U256::from_be_slice(&signature.s().to_bytes());
    tx
}

fn our_address() -> Address {
    let key = SigningKey::from_slice(&KEY).expect("a valid key");
    let point = key.verifying_key().to_encoded_point(false);
    Address::from_word(keccak256(&point.as_bytes()[1..]))
}
