//! Verifies an `eth_getProof` result: account, code hash and storage under a state root.

use alloc::format;
use alloc::vec::Vec;

use alloy_primitives::hex;

use super::fact::{ProvenFact, SlotContent};
use super::input::{DocumentMembers, Input, bytes, fixed, hash, list, nodes, number};
use super::input_error::InputError;
use super::report::{CheckFailure, NotProven, Report, Rule};
use super::root::Root;
use super::root_kind::RootKind;
use crate::consensus::Network;
use crate::state::keys::{account_key, slot_key, storage_root_key};
use crate::state::{Account, AccountState, StateError, StateReader, TrieState};
use crate::trie::limits::MAX_INLINE_VALUE;
use crate::trie::{
    EMPTY_ROOT, Lookup, ProofError, ProvenNodes, WalkError, lookup, lookup_node, verify_multiproof,
};
use crate::types::{Address, B256, Bytes, U256, keccak256};

/// Names of the two lists in failures.
const ACCOUNT_PROOF: &str = "accountProof";
const STORAGE_PROOF: &str = "storageProof";

/// An `eth_getProof` result. Claims may be left out; each claim that is made must be proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountProof {
    /// The account.
    pub address: Address,
    /// Trie nodes on the path of the account, raw or as RLP strings, in any order.
    pub account_proof: Vec<Bytes>,
    /// The claimed balance in wei.
    pub balance: Option<U256>,
    /// The claimed nonce.
    pub nonce: Option<U256>,
    /// The claimed code hash: that of no bytes if there is no code, zero if there is no account.
    pub code_hash: Option<B256>,
    /// The claimed hash of the node at the account's storage prefix, [`EMPTY_ROOT`] if there is none.
    pub storage_hash: Option<B256>,
    /// Storage slots.
    pub storage_proof: Vec<SlotProof>,
}

/// A storage slot with its proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotProof {
    /// The slot.
    pub key: U256,
    /// The claimed content: [`SlotContent::Word`] or [`SlotContent::Bytes`].
    pub value: Option<SlotContent>,
    /// Trie nodes from the state root on, as in [`AccountProof::account_proof`].
    pub proof: Vec<Bytes>,
}

impl AccountProof {
    fn read(given: &DocumentMembers<'_>) -> Result<Self, InputError> {
        let required = |name| move || InputError::Shape(format!("{name} is missing"));
        let slots = given.storage_proof.map(|raw| list(raw.get(), STORAGE_PROOF)).transpose()?;
        Ok(Self {
            address: Address(fixed(given.address.ok_or_else(required("address"))?, "address")?.into()),
            account_proof: nodes(
                given.account_proof.ok_or_else(required(ACCOUNT_PROOF))?.get(),
                ACCOUNT_PROOF,
            )?,
            balance: given.balance.map(|raw| number(raw, "balance")).transpose()?,
            nonce: given.nonce.map(|raw| number(raw, "nonce")).transpose()?,
            code_hash: given.code_hash.map(|raw| hash(raw, "codeHash")).transpose()?,
            storage_hash: given.storage_hash.map(|raw| hash(raw, "storageHash")).transpose()?,
            storage_proof: slots
                .unwrap_or_default()
                .into_iter()
                .map(|raw| SlotProof::read(raw.get()))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl SlotProof {
    fn read(text: &str) -> Result<Self, InputError> {
        let given = DocumentMembers::read(text, STORAGE_PROOF)?;
        let key = given.key.ok_or_else(|| InputError::Shape("storageProof.key is missing".into()))?;
        let value = match given.value {
            // A number has at most 64 hex digits, `0x` and two quotes. Longer values are those of native contracts.
            Some(raw) if raw.get().len() > 68 => Some(SlotContent::Bytes(bytes(raw, "storageProof.value")?)),
            Some(raw) => Some(SlotContent::Word(number(raw, "storageProof.value")?)),
            None => None,
        };
        Ok(Self {
            key: number(key, "storageProof.key")?,
            value,
            proof: match given.proof {
                Some(raw) => nodes(raw.get(), "storageProof.proof")?,
                None => Vec::new(),
            },
        })
    }
}

/// Checks `{proof: <eth_getProof>, stateRoot | header}`, or the `eth_getProof` result with `stateRoot` or `header` as a
/// further member.
pub(super) fn check(
    input: &Input<'_>,
    network: Option<&Network>,
    report: &mut Report,
) -> Result<(), CheckFailure> {
    let given = input.members("account proof")?;
    let root = Root::read(&given, RootKind::State, network)?;
    let proof = match given.proof {
        Some(raw) => AccountProof::read(&Input::of(raw.get())?.members("proof")?)?,
        None => AccountProof::read(&given)?,
    };
    let slots = proof.storage_proof.len();
    report.passed(
        Rule::Document,
        format_args!("a proof for account {:#x} and {slots} storage slots", proof.address),
    );
    let (root, _) = root.prove(RootKind::State, network, report)?;
    let mut proven = account(root, &proof, report)?;
    for slot in &proof.storage_proof {
        let nodes = storage(root, &proof.address, slot, report)?;
        proven.merge(nodes).map_err(|error| CheckFailure::new(Rule::StateProof, STORAGE_PROOF, error))?;
    }
    report.passed(Rule::StateValues, format_args!("{slots} storage slots are as claimed"));
    storage_hash(root, &proof, &proven, report)
}

/// Links the nodes of one list to the root. Each list is checked alone: an empty one proves nothing, not even absence. `values` are
/// values of more than 32 bytes, `what` is the name of the list.
fn linked_nodes(
    root: B256,
    key: &[u8],
    nodes: &[Bytes],
    values: &[Vec<u8>],
    what: &'static str,
) -> Result<ProvenNodes, CheckFailure> {
    verify_multiproof(root, &[key], nodes, values).map_err(|error| match error {
        ProofError::Missing { .. } if nodes.is_empty() => {
            let reason = format!("{error} (an empty list proves nothing, not even absence)");
            CheckFailure::new(Rule::StateProof, what, reason)
        }
        error => CheckFailure::new(Rule::StateProof, what, error),
    })
}

/// Proves the account and compares the claims about it. Returns the proven nodes.
fn account(root: B256, proof: &AccountProof, report: &mut Report) -> Result<ProvenNodes, CheckFailure> {
    let key = account_key(&proof.address);
    let mut nodes = linked_nodes(root, &key, &proof.account_proof, &[], ACCOUNT_PROOF)?;
    let mut read = TrieState::new(&nodes, root).account(&proof.address);
    if let (Err(StateError::Missing(_)), Some(encoded)) = (&read, claimed_encoding(proof)) {
        // The node of an account of more than 32 bytes has only the hash of the account: the claims must be its preimage.
        nodes = linked_nodes(root, &key, &proof.account_proof, &[encoded], ACCOUNT_PROOF)?;
        read = TrieState::new(&nodes, root).account(&proof.address);
    }
    let account = read.map_err(|error| CheckFailure::new(Rule::StateValues, "account", error))?;
    let (count, address) = (nodes.len(), proof.address);
    report.passed(Rule::StateProof, format_args!("{count} trie nodes link the account to root {root}"));
    // As nodes show an account that does not exist.
    let proven = account.unwrap_or(AccountState { code_hash: B256::ZERO, ..AccountState::EMPTY });
    claim("balance", proof.balance, proven.balance)?;
    claim("nonce", proof.nonce, U256::from(proven.nonce))?;
    if let Some(stated) = proof.code_hash.filter(|stated| *stated != proven.code_hash) {
        return Err(differs("codeHash", &stated, &proven.code_hash));
    }
    let shown = if account.is_some() { "the account is as claimed" } else { "there is no such account" };
    report.passed(Rule::StateValues, shown);
    report.facts.push(ProvenFact::Account { address, account });
    Ok(nodes)
}

/// The account as encoded in the trie, if the claims are right; `None` if claims are left out, or if the encoding would fit into the node
/// itself.
fn claimed_encoding(proof: &AccountProof) -> Option<Vec<u8>> {
    let nonce = u64::try_from(proof.nonce?).ok()?;
    let encoded = Account { nonce, balance: proof.balance?, ..Account::default() }.encode();
    (encoded.len() > MAX_INLINE_VALUE).then_some(encoded)
}

/// Proves one slot and compares the claimed value. Returns the proven nodes.
fn storage(
    root: B256,
    address: &Address,
    slot: &SlotProof,
    report: &mut Report,
) -> Result<ProvenNodes, CheckFailure> {
    let path = slot_key(address, &slot.key);
    let nodes = linked_nodes(root, &path, &slot.proof, &[], STORAGE_PROOF)?;
    let proven = lookup(&nodes, root, &path)
        .map_err(|error| CheckFailure::new(Rule::StateProof, STORAGE_PROOF, error))?;
    let content = compared(slot.key, proven, slot.value.as_ref())?;
    report.facts.push(ProvenFact::Slot { key: slot.key, content });
    Ok(nodes)
}

/// The content of a slot, which the proof shows; an error if another content is claimed. If the proof shows only a hash, the claimed value
/// with this hash is the content.
fn compared(key: U256, proven: Lookup, claimed: Option<&SlotContent>) -> Result<SlotContent, CheckFailure> {
    const VALUE: &str = "storageProof.value";
    let content = match proven {
        Lookup::FoundLong { hash, len } => SlotContent::Hash { hash, len },
        // A value in a node has at most 32 bytes.
        Lookup::Found(value) => SlotContent::Word(U256::try_from_be_slice(&value).unwrap_or_default()),
        _ => SlotContent::Absent,
    };
    match (&content, claimed) {
        (SlotContent::Hash { hash, len }, Some(SlotContent::Bytes(value)))
            if value.len() == *len as usize && keccak256(value) == *hash =>
        {
            Ok(SlotContent::Bytes(value.clone()))
        }
        (SlotContent::Hash { hash, len }, Some(_)) => {
            let reason =
                format!("slot {key:#x} holds {len} bytes with hash {hash}, the value given is another");
            Err(CheckFailure::new(Rule::StateValues, VALUE, reason))
        }
        (_, Some(SlotContent::Bytes(value))) => Err(differs(VALUE, &hex::encode_prefixed(value), &content)),
        (_, Some(SlotContent::Word(word))) => claim(VALUE, Some(*word), content.word()).map(|()| content),
        _ => Ok(content),
    }
}

/// Compares the storage hash, the hash of the node at the storage prefix, as far as the nodes of all lists together show it. No rule of
/// consensus uses this hash.
fn storage_hash(
    root: B256,
    proof: &AccountProof,
    nodes: &ProvenNodes,
    report: &mut Report,
) -> Result<(), CheckFailure> {
    let Some(stated) = proof.storage_hash else { return Ok(()) };
    let proven = match lookup_node(nodes, root, &storage_root_key(&proof.address)) {
        Ok(Some(node)) => node.hash,
        Ok(None) => EMPTY_ROOT,
        // The nodes end at the account, which has the hash of its left child. An account whose storage begins below the storage prefix
        // would have this child too, but no node at the prefix.
        Err(WalkError::Missing(_)) if stated == EMPTY_ROOT => {
            report.not_proven.push(NotProven::StorageHash);
            return Ok(());
        }
        // The left child of a contract is the node at the storage prefix, because every contract has a value there.
        Err(WalkError::Missing(hash)) => hash,
        Err(error) => return Err(CheckFailure::new(Rule::StateProof, "storageHash", error)),
    };
    if stated != proven {
        return Err(differs("storageHash", &stated, &proven));
    }
    report.facts.push(ProvenFact::StorageHash(proven));
    Ok(())
}

/// Fails if a stated value differs from the proven one.
fn claim(field: &'static str, stated: Option<U256>, proven: U256) -> Result<(), CheckFailure> {
    match stated {
        Some(stated) if stated != proven => {
            Err(differs(field, &format_args!("{stated:#x}"), &format_args!("{proven:#x}")))
        }
        _ => Ok(()),
    }
}

/// The failure that a stated value differs from the proven one.
fn differs(
    field: &'static str,
    stated: &dyn core::fmt::Display,
    proven: &dyn core::fmt::Display,
) -> CheckFailure {
    CheckFailure::new(Rule::StateValues, field, format_args!("stated as {stated}, proven is {proven}"))
}
