//! Tests accounts and slots whose values do not fit into a trie node; recorded proofs have none.

use alloc::string::ToString;
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::{Report, Rule, verify_account};
use crate::state::Account;
use crate::state::keys::{account_key, slot_key, storage_root_key};
use crate::trie::Trie;
use crate::types::{Address, Bytes, U256, keccak256};

const ADDRESS: Address = Address::repeat_byte(0x11);

fn check(document: &Value) -> Report {
    verify_account(document.to_string().as_bytes(), None)
}

fn nodes(trie: &Trie, key: &[u8]) -> Vec<Bytes> {
    trie.proof(key).iter().map(|node| Bytes::from(node.to_vec())).collect()
}

/// A contract with this balance, a word in slot 5 and 40 bytes in slot 6, and its proof. `marker` sets the value at the
/// storage prefix that contracts have.
fn document(balance: U256, marker: bool) -> (Trie, Value) {
    let mut trie = Trie::new();
    let account = Account { nonce: 3, balance, ..Account::default() };
    trie.put(&account_key(&Address::repeat_byte(0x22)), Account::default().encode());
    trie.put(&account_key(&ADDRESS), account.encode());
    if marker {
        trie.put(&storage_root_key(&ADDRESS), alloc::vec![1]);
    }
    trie.put(&slot_key(&ADDRESS, &U256::from(5)), alloc::vec![9]);
    trie.put(&slot_key(&ADDRESS, &U256::from(6)), alloc::vec![8; 40]);
    let slot = |slot: u64, value: Value| json!({"key": slot, "value": value, "proof": nodes(&trie, &slot_key(&ADDRESS, &U256::from(slot)))});
    let long = Bytes::from(alloc::vec![8; 40]).to_string();
    let document = json!({"stateRoot": trie.root(), "proof": {
        "address": ADDRESS,
        "accountProof": nodes(&trie, &account_key(&ADDRESS)),
        "nonce": "0x3",
        "balance": balance,
        "storageProof": [slot(5, json!("0x9")), slot(6, json!(long))],
    }});
    (trie, document)
}

fn refused(document: &Value, rule: Rule, what: &str) {
    let report = check(document);
    let failed = report.failed.as_ref().unwrap();
    assert_eq!((failed.rule, failed.what), (rule, what), "{report}");
}

#[test]
fn a_balance_that_does_not_fit_into_a_node_is_proven_by_its_hash() {
    let balance = U256::MAX.wrapping_shr(1);
    let (_, mut document) = document(balance, true);
    let report = check(&document);
    assert!(report.verified(), "{report}");
    assert_eq!(report.value("balance"), Some(balance.to_string()));
    document["proof"]["balance"] = json!(balance.wrapping_shr(1));
    refused(&document, Rule::StateProof, "accountProof");
    document["proof"]["balance"] = json!("0x1");
    refused(&document, Rule::StateValues, "account");
    document["proof"].as_object_mut().unwrap().remove("balance");
    refused(&document, Rule::StateValues, "account");
}

#[test]
fn a_long_storage_value_is_compared_by_its_hash() {
    let (_, mut document) = document(U256::from(7), true);
    let report = check(&document);
    assert!(report.verified(), "{report}");
    assert_eq!(report.value("storage[0x6]"), Some(Bytes::from(alloc::vec![8; 40]).to_string()));
    for other in
        [json!("0x8"), json!(Bytes::from(alloc::vec![8; 41])), json!(Bytes::from(alloc::vec![7; 40]))]
    {
        document["proof"]["storageProof"][1]["value"] = other;
        refused(&document, Rule::StateValues, "storageProof.value");
    }
    document["proof"]["storageProof"][1].as_object_mut().unwrap().remove("value");
    let hash = keccak256([8; 40]);
    assert_eq!(check(&document).value("storage[0x6]"), Some(alloc::format!("40 bytes with hash {hash}")));
    document["proof"]["storageProof"][0]["value"] = json!(Bytes::from(alloc::vec![8; 40]));
    refused(&document, Rule::StateValues, "storageProof.value");
}

/// The reference node returns the hash of the node at the storage prefix, whether or not the node has a value.
#[test]
fn a_storage_hash_is_the_hash_of_the_node_at_the_prefix_with_or_without_a_value() {
    for marker in [true, false] {
        let (trie, mut document) = document(U256::from(7), marker);
        let hash = crate::trie::lookup_node(
            &crate::trie::verify_multiproof(
                trie.root(),
                &[slot_key(&ADDRESS, &U256::from(5))],
                &nodes(&trie, &slot_key(&ADDRESS, &U256::from(5))),
                &[] as &[&[u8]],
            )
            .unwrap(),
            trie.root(),
            &storage_root_key(&ADDRESS),
        )
        .unwrap()
        .map_or(crate::trie::EMPTY_ROOT, |node| node.hash);
        document["proof"]["storageHash"] = json!(hash);
        let report = check(&document);
        assert!(report.verified() && report.value("storageHash") == Some(hash.to_string()), "{report}");
        document["proof"]["storageHash"] = json!(keccak256(hash));
        refused(&document, Rule::StateValues, "storageHash");
    }
}
