//! An account and storage slots of it under a state root.

use alloc::{format, string::String, vec::Vec};

use alloy_primitives::{Address, Bytes, B256, KECCAK256_EMPTY, U256};
use serde::Deserialize;

use super::{
    document,
    report::{Failure, Report, Rule},
};
use crate::{
    state::{keys, AccountState, StateReader, TrieState},
    trie::{verify_multiproof, ProvenNodes},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    state_root: B256,
    #[serde(deserialize_with = "document::unwrapped")]
    proof: Proof,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Proof {
    address: Address,
    account_proof: Vec<Bytes>,
    #[serde(default)]
    storage_proof: Vec<StorageProof>,
    nonce: U256,
    balance: U256,
    code_hash: B256,
}

#[derive(Deserialize)]
struct StorageProof {
    key: U256,
    value: U256,
    // The reference's first draft used the plural.
    #[serde(alias = "proofs")]
    proof: Vec<Bytes>,
}

/// Checks `{"stateRoot", "proof"}`, where `proof` is what `eth_getProof` answers. The values in it are compared with
/// those that the nodes prove. `storageHash` is not: it has no meaning in Rootstock's single trie.
///
/// # Errors
/// [`Failure`]: the rule that is broken.
pub fn check_account(text: &str) -> Result<Report, Failure> {
    let mut report = Report::default();
    let parsed = document::parse::<Document>(text);
    let document = report.check(Rule::Document, parsed, |d| {
        format!(
            "a proof for account {:#x} and {} storage slots",
            d.proof.address,
            d.proof.storage_proof.len()
        )
    })?;
    let root = document.state_root;
    let nodes = report.check(Rule::StateProof, nodes(root, &document.proof), |nodes| {
        format!("{} trie nodes link the account to root {root}", nodes.len())
    })?;
    let state = TrieState::new(nodes, root);
    let read = state.account(&document.proof.address).map_err(|e| format!("{e}"));
    let compared =
        read.and_then(|account| compare_account(&document.proof, account.as_ref()).map(|()| account));
    let account = report.check(Rule::StateValues, compared, |account| {
        String::from(if account.is_some() { "the account is as claimed" } else { "there is no such account" })
    })?;
    let slots = read_slots(&state, &document.proof);
    let slots = report
        .check(Rule::StateValues, slots, |slots| format!("{} storage slots are as claimed", slots.len()))?;
    put_facts(&mut report, &document.proof.address, account.as_ref(), &slots);
    Ok(report)
}

fn nodes(root: B256, proof: &Proof) -> Result<ProvenNodes, crate::trie::ProofError> {
    let mut paths = alloc::vec![keys::account_key(&proof.address).to_vec()];
    paths.extend(proof.storage_proof.iter().map(|slot| keys::slot_key(&proof.address, &slot.key)));
    let storage = proof.storage_proof.iter().flat_map(|slot| slot.proof.iter());
    let nodes: Vec<&Bytes> = proof.account_proof.iter().chain(storage).collect();
    let no_long_values: [&[u8]; 0] = [];
    verify_multiproof(root, &paths, &nodes, &no_long_values)
}

fn compare_account(proof: &Proof, account: Option<&AccountState>) -> Result<(), String> {
    let (nonce, balance, code_hash) =
        account.map_or((0, U256::ZERO, B256::ZERO), |a| (a.nonce, a.balance, a.code_hash));
    let differs = |name: &str, claimed: String, proven: String| {
        Err(format!("{name} {claimed} is claimed, {proven} is proven"))
    };
    if proof.nonce != U256::from(nonce) {
        return differs("nonce", format!("{}", proof.nonce), format!("{nonce}"));
    }
    if proof.balance != balance {
        return differs("balance", format!("{}", proof.balance), format!("{balance}"));
    }
    // Where there is no account, EIP-1052's zero and the hash of no code are both in use.
    let same = proof.code_hash == code_hash || (account.is_none() && proof.code_hash == KECCAK256_EMPTY);
    if !same {
        return differs("code hash", format!("{}", proof.code_hash), format!("{code_hash}"));
    }
    Ok(())
}

fn read_slots(state: &impl StateReader, proof: &Proof) -> Result<Vec<(U256, U256)>, String> {
    let mut slots = Vec::with_capacity(proof.storage_proof.len());
    for slot in &proof.storage_proof {
        let value = state.storage_word(&proof.address, &slot.key).map_err(|e| format!("{e}"))?;
        if value != slot.value {
            return Err(format!(
                "storage slot {:#x}: {:#x} is claimed, {value:#x} is proven",
                slot.key, slot.value
            ));
        }
        slots.push((slot.key, value));
    }
    Ok(slots)
}

fn put_facts(report: &mut Report, address: &Address, account: Option<&AccountState>, slots: &[(U256, U256)]) {
    report.facts.put("address", format!("{address:#x}"));
    report.facts.put("exists", account.is_some());
    if let Some(account) = account {
        report.facts.put("nonce", account.nonce);
        report.facts.put("balance", account.balance);
        report.facts.put("codeHash", account.code_hash);
        report.facts.put("codeSize", account.code_size);
    }
    for (key, value) in slots {
        report.facts.put(format!("storage[{key:#x}]"), format!("{value:#x}"));
    }
}
