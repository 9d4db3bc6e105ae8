//! An `eth_getProof` answer: account, code hash and storage under a state root.

use rootlight::consensus::Network;
use rootlight::state::keys::{account_key, code_key, slot_key, storage_root_key};
use rootlight::state::Account;
use rootlight::trie::{
    lookup, lookup_node, lookup_value, verify_multiproof, verify_path, Leaf, Lookup, ProvenNodes, WalkError,
    EMPTY_ROOT,
};
use rootlight::types::{keccak256, Address, Bytes, B256, U256};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::{bytes, hash, nodes, Input, InputError};
use super::{header, Report, VerifyError};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given<'a> {
    #[serde(borrow)]
    proof: Option<&'a RawValue>,
    state_root: Option<String>,
    #[serde(borrow)]
    header: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Proof {
    address: String,
    account_proof: Vec<String>,
    balance: Option<String>,
    nonce: Option<String>,
    code_hash: Option<String>,
    storage_hash: Option<String>,
    #[serde(default)]
    storage_proof: Vec<Slot>,
}

#[derive(Deserialize)]
struct Slot {
    key: String,
    value: Option<String>,
    #[serde(alias = "proofs", default)]
    proof: Vec<String>,
}

/// Checks `{proof: <eth_getProof>, stateRoot | header}`, or the answer itself with `stateRoot` or
/// `header` added to it.
pub(super) fn check(input: &Input, network: &Network, report: &mut Report) -> Result<(), VerifyError> {
    let given: Given<'_> = input.object("account proof")?;
    let root = root(&given, network, report)?;
    let proof: Proof = match given.proof {
        Some(raw) => Input::of(raw)?.object("proof")?,
        None => input.object("account proof")?,
    };
    let address: Address =
        proof.address.parse().map_err(|_| InputError::Shape("address is not a 20-byte address".into()))?;
    account(root, &address, &proof, report)?;
    for slot in &proof.storage_proof {
        storage(root, &address, slot, report)?;
    }
    code_and_storage_hash(root, &address, &proof, report)
}

/// The root to prove under.
fn root(given: &Given<'_>, network: &Network, report: &mut Report) -> Result<B256, VerifyError> {
    let Some(raw) = given.header else {
        let text =
            given.state_root.as_ref().ok_or(InputError::Shape("stateRoot or header is missing".into()))?;
        report.not_proven("the state root itself; give \"header\" to prove it");
        return Ok(hash(text, "stateRoot")?);
    };
    let candidate = Input::of(raw)?.header(network)?;
    let root = candidate.header().state_root;
    header::prove(candidate, network, report)?;
    if let Some(text) = &given.state_root {
        if hash(text, "stateRoot")? != root {
            return Err(VerifyError::rule("stateRoot", format!("stated as {text}, the header has {root}")));
        }
    }
    report.proven("state root", root, "header");
    Ok(root)
}

fn account(root: B256, address: &Address, proof: &Proof, report: &mut Report) -> Result<(), VerifyError> {
    const STEP: &str = "accountProof";
    let list = nodes(&proof.account_proof, STEP)?;
    let (account, rule) = match path(STEP, root, &account_key(address), &list)? {
        Leaf::Absent => (Account::default(), "absence under the state root"),
        Leaf::Inline(value) => (decode(value)?, "inclusion under the state root"),
        Leaf::Long { .. } => return Err(VerifyError::rule(STEP, "an account value has at most 32 bytes")),
    };
    if rule.starts_with("absence") {
        report.proven("account", format_args!("{address} does not exist"), rule);
    } else {
        report.proven("account", address, rule);
    }
    claim("balance", proof.balance.as_deref(), account.balance)?;
    claim("nonce", proof.nonce.as_deref(), U256::from(account.nonce))?;
    report.proven("balance", format_args!("{:#x} wei", account.balance), "account");
    report.proven("nonce", account.nonce, "account");
    Ok(())
}

fn decode(value: &[u8]) -> Result<Account, VerifyError> {
    Account::decode(value).map_err(|error| VerifyError::rule("account", error))
}

fn path<'a>(step: &'static str, root: B256, key: &[u8], list: &'a [Bytes]) -> Result<Leaf<'a>, VerifyError> {
    verify_path(root, key, list).map_err(|error| {
        let hint = if list.is_empty() { " (an empty list proves nothing, not even absence)" } else { "" };
        VerifyError::rule(step, format!("{error}{hint}"))
    })
}

fn storage(root: B256, address: &Address, given: &Slot, report: &mut Report) -> Result<(), VerifyError> {
    const STEP: &str = "storageProof";
    let slot = number(&given.key, "storageProof.key")?;
    let list = nodes(&given.proof, "storageProof.proof")?;
    let claimed = given.value.as_deref();
    let what = format!("slot {slot:#x}");
    match path(STEP, root, &slot_key(address, &slot), &list)? {
        Leaf::Absent => {
            claim("storageProof.value", claimed, U256::ZERO)?;
            report.proven(&what, "0x0", "absence under the state root");
        }
        Leaf::Inline(value) => {
            let word = U256::try_from_be_slice(value).unwrap_or_default();
            claim("storageProof.value", claimed, word)?;
            report.proven(&what, format_args!("{word:#x}"), "inclusion under the state root");
        }
        Leaf::Long { hash, len } => {
            let value = bytes(claimed.unwrap_or_default(), "storageProof.value")?;
            if value.len() != len as usize || keccak256(&value) != *hash {
                let reason =
                    format!("slot {slot:#x} holds {len} bytes with hash {hash}, the value given is another");
                return Err(VerifyError::rule("storageProof.value", reason));
            }
            report.proven(&what, value, "inclusion of its hash under the state root");
        }
    }
    Ok(())
}

/// Code hash and storage hash, as far as the nodes of all proofs together show them.
fn code_and_storage_hash(
    root: B256,
    address: &Address,
    proof: &Proof,
    report: &mut Report,
) -> Result<(), VerifyError> {
    let known = all_nodes(root, address, proof)?;
    let account = lookup_value(&known, root, &account_key(address)).ok().flatten();
    let code = match lookup(&known, root, &code_key(address)) {
        Ok(Lookup::FoundLong { hash, .. }) => Some(hash),
        Ok(Lookup::Found(code)) => Some(keccak256(code)),
        // Absent accounts are given a zero hash by nodes, others the hash of nothing.
        Ok(Lookup::Absent) => Some(if account.is_none() { B256::ZERO } else { keccak256([]) }),
        Err(_) => None,
    };
    tell_hash("codeHash", "code hash", proof.code_hash.as_deref(), code, report)?;
    let storage = match lookup_node(&known, root, &storage_root_key(address)) {
        Ok(Some(node)) if node.value != Lookup::Absent => Some(node.hash),
        Ok(_) => Some(EMPTY_ROOT),
        // Not listed, but its hash is in the account's node: the left child, which ends at the
        // storage key because every contract has a value there.
        Err(WalkError::Missing(hash)) => Some(hash),
        Err(_) => None,
    };
    tell_hash("storageHash", "storage hash", proof.storage_hash.as_deref(), storage, report)
}

fn all_nodes(root: B256, address: &Address, proof: &Proof) -> Result<ProvenNodes, VerifyError> {
    let mut list = nodes(&proof.account_proof, "accountProof")?;
    let mut keys = vec![account_key(address).to_vec()];
    for slot in &proof.storage_proof {
        list.extend(nodes(&slot.proof, "storageProof.proof")?);
        keys.push(slot_key(address, &number(&slot.key, "storageProof.key")?));
    }
    let nothing: [&[u8]; 0] = [];
    verify_multiproof(root, &keys, &list, &nothing).map_err(|error| VerifyError::rule("proof nodes", error))
}

fn tell_hash(
    field: &'static str,
    what: &str,
    stated: Option<&str>,
    proven: Option<B256>,
    report: &mut Report,
) -> Result<(), VerifyError> {
    let Some(text) = stated else { return Ok(()) };
    let stated = hash(text, field)?;
    match proven {
        Some(proven) if proven == stated => report.proven(what, proven, "trie nodes of the account"),
        Some(proven) => {
            return Err(VerifyError::rule(field, format!("stated as {stated}, the nodes say {proven}")))
        }
        None => report.not_proven(format!("{field} {stated}: the nodes given do not show it")),
    }
    Ok(())
}

/// A value the answer states must be the proven one.
fn claim(field: &'static str, stated: Option<&str>, proven: U256) -> Result<(), VerifyError> {
    let Some(text) = stated else { return Ok(()) };
    if number(text, field)? == proven {
        return Ok(());
    }
    Err(VerifyError::rule(field, format!("stated as {text}, proven is {proven:#x}")))
}

/// Hex of up to 32 bytes, with or without leading zeros; `0x` is zero.
fn number(text: &str, field: &str) -> Result<U256, InputError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    match digits {
        "" => Ok(U256::ZERO),
        digits => U256::from_str_radix(digits, 16)
            .map_err(|_| InputError::Shape(format!("{field} is not a number of up to 32 bytes"))),
    }
}
