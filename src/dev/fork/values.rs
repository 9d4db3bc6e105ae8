//! Fetches values of the state of the fork's block: with proofs that lead to the state root, or without proof if the user has chosen to
//! trust upstreams or a quorum of them ([`UnprovenPolicy`]). [`super::Rounds`] calls this file with the keys that a run found missing.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use serde::Deserialize;

use super::error::ForkError;
use super::exchanges::{Exchanges, Fetched, given, lacks_method, no_upstream, refuted};
use super::state::ForkState;
use crate::light::{RequestFailure, UnprovenPolicy, UpstreamRequest, UpstreamResponse};
use crate::state::keys::{account_key, code_key, fact_of, slot_key, storage_root_key};
use crate::state::{Account, StateKey};
use crate::trie::{NodeSource as _, connected, unwrap_node};
use crate::types::BlockRef;

/// Number of stored trie nodes and long values above which no more values are fetched, which bounds the memory of a fork.
const MOST_NODES: usize = 4_000_000;

/// Number of stored values above which no more are fetched; keys without a value count too.
const MOST_VALUES: usize = 2 * MOST_NODES;

/// Most storage slots in one proof, since upstreams limit them.
const SLOTS_AT_ONCE: usize = 256;

/// The wanted values by account.
type WantedAccounts = BTreeMap<Address, Keys>;

/// The wanted values of one account.
#[derive(Debug, Default, Clone)]
struct Keys {
    /// The trie keys of all wanted values, those of storage included.
    keys: BTreeSet<Vec<u8>>,
    /// The storage slots among them, which requests name.
    slots: BTreeSet<U256>,
}

/// The values that one fetch has got, which a host may store ([`super::ForkCache`]).
#[derive(Debug, Default)]
pub struct FetchedState {
    /// Proven trie nodes and long values by their keccak-256.
    pub nodes: Vec<(B256, Bytes)>,
    /// Values by trie key that upstreams state without proof; `None` for a key without a value.
    pub values: Vec<(Vec<u8>, Option<Bytes>)>,
}

/// Fetches the values under these trie keys, and adds them to `state`.
pub(super) fn fetch_values(
    exchanges: &mut Exchanges,
    state: &ForkState,
    wanted: &BTreeSet<Vec<u8>>,
) -> Fetched<FetchedState> {
    let mut accounts = WantedAccounts::new();
    for key in wanted {
        let address = match fact_of(key) {
            Some(StateKey::Account(address) | StateKey::Code(address)) => address,
            Some(StateKey::Storage(address, slot)) => {
                accounts.entry(address).or_default().slots.insert(slot);
                address
            }
            // Runs read no other keys.
            _ => continue,
        };
        accounts.entry(address).or_default().keys.insert(key.clone());
    }
    if accounts.is_empty() {
        return Ok(FetchedState::default());
    }
    if state.parts().nodes.0.len() > MOST_NODES || state.values.len() > MOST_VALUES {
        return Err(ForkError::TooMuch(MOST_NODES).into());
    }
    match exchanges.unproven() {
        UnprovenPolicy::Refuse => proven(exchanges, state, accounts),
        UnprovenPolicy::Trust => unproven(exchanges, state, accounts, 1),
        UnprovenPolicy::Quorum(needed) => unproven(exchanges, state, accounts, needed),
    }
}

/// Whether an address is one of those reserved for native contracts: 16 zero bytes, then four that are not all zero. The storage of
/// native contracts has values that are longer than a word.
fn is_native(address: &Address) -> bool {
    address.iter().take(16).all(|byte| *byte == 0) && !address.is_zero()
}

fn request(method: &'static str, params: String) -> UpstreamRequest {
    UpstreamRequest::new(method, params)
}

/// The block parameter of requests, in JSON.
struct BlockForms {
    /// The parameter of `eth_getProof`.
    proof: String,
    /// The parameter of all other methods.
    other: String,
}

impl BlockForms {
    /// The forms that name the block by its height and, if that fails because the upstream has another block at the height, by its
    /// hash.
    fn of(block: &BlockRef) -> [Self; 2] {
        let (number, hash) = (format!("\"{:#x}\"", block.number), format!("\"{}\"", block.hash));
        let object = format!("{{\"blockHash\":{hash}}}");
        [Self { proof: number.clone(), other: number }, Self { proof: hash, other: object }]
    }
}

/// The requests for each account: for proofs of its slots, for its code, and for the bytes of long values.
fn proof_requests(wanted: &WantedAccounts, forms: &BlockForms) -> Vec<(Address, UpstreamRequest)> {
    let mut requests = Vec::new();
    for (address, keys) in wanted {
        let slots: Vec<String> = keys.slots.iter().map(|slot| format!("\"{slot:#066x}\"")).collect();
        // Without a slot the proof would end at the account. The path to any slot passes the node that marks a contract.
        let slots = if slots.is_empty() { vec![format!("\"{:#066x}\"", U256::ZERO)] } else { slots };
        let BlockForms { proof, other } = forms;
        for part in slots.chunks(SLOTS_AT_ONCE) {
            let params = format!(r#"["{address:#x}",[{}],{proof}]"#, part.join(","));
            requests.push((*address, request("eth_getProof", params)));
        }
        // A run that reads an account usually reads its code too.
        requests.push((*address, request("eth_getCode", format!(r#"["{address:#x}",{other}]"#))));
        if is_native(address) {
            requests.extend(keys.slots.iter().map(|slot| {
                let params = format!(r#"["{address:#x}","{slot:#x}",{other}]"#);
                (*address, request("rsk_getStorageBytesAt", params))
            }));
        }
    }
    requests
}

/// The nodes of an `eth_getProof` response.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProofResponse {
    account_proof: Vec<Bytes>,
    #[serde(default)]
    storage_proof: Vec<StorageProofResponse>,
}

#[derive(Deserialize)]
struct StorageProofResponse {
    #[serde(alias = "proofs", default)]
    proof: Vec<Bytes>,
}

/// The responses of an upstream about one account.
#[derive(Default)]
struct GivenAccount {
    /// Trie nodes of the proofs.
    nodes: Vec<Bytes>,
    /// Code, and values of cells of native contracts: the trie may have only their hashes.
    values: Vec<Bytes>,
    /// Why a request for a proof failed.
    failure: Option<RequestFailure>,
    /// Why a proof does not decode.
    fault: Option<String>,
}

impl GivenAccount {
    /// Adds the response to a request with this method.
    fn take(&mut self, method: &str, response: &UpstreamResponse) {
        let raw = match response {
            Ok(raw) => raw,
            Err(failure) => {
                // The other requests only add values to which the nodes of a proof lead.
                if method == "eth_getProof" {
                    self.failure = Some(failure.clone());
                }
                return;
            }
        };
        if method == "eth_getProof" {
            match serde_json::from_str::<ProofResponse>(raw.get()) {
                Ok(proof) => {
                    self.nodes.extend(proof.account_proof);
                    self.nodes.extend(proof.storage_proof.into_iter().flat_map(|slot| slot.proof));
                }
                Err(error) => self.fault = Some(error.to_string()),
            }
        } else if let Ok(value) = serde_json::from_str::<Bytes>(raw.get()) {
            self.values.push(value);
        }
    }

    /// The nodes and values that hashes connect to a state root, each with its keccak-256.
    fn proven(&self, root: B256) -> Result<Vec<(B256, Bytes)>, String> {
        let proven = connected(root, &self.nodes, &self.values).map_err(|error| error.to_string())?;
        let nodes = self.nodes.iter().filter_map(|node| unwrap_node(node).ok());
        let all = nodes.map(Bytes::copy_from_slice).chain(self.values.iter().cloned());
        let hashed = all.map(|bytes| (keccak256(&bytes), bytes));
        Ok(hashed.filter(|(hash, _)| proven.node(hash).is_some()).collect())
    }
}

/// Fetches values with their proofs from one upstream after the other, until all are proven.
fn proven(exchanges: &mut Exchanges, state: &ForkState, mut wanted: WantedAccounts) -> Fetched<FetchedState> {
    let block = BlockRef { number: state.block.number, hash: state.block.hash() };
    let (mut fetched, mut failure) = (FetchedState::default(), None);
    let forms = BlockForms::of(&block);
    for (upstream, name) in exchanges.names().iter().enumerate() {
        for form in &forms {
            let requests = proof_requests(&wanted, form);
            let sent = requests.iter().map(|(_, request)| request.clone()).collect();
            let mut of_accounts: Vec<(Address, GivenAccount)> = Vec::new();
            for ((address, request), response) in requests.iter().zip(&*exchanges.ask(upstream, sent)?) {
                // The requests about one account are adjacent.
                if of_accounts.last().is_none_or(|(last, _)| last != address) {
                    of_accounts.push((*address, GivenAccount::default()));
                }
                if let Some((_, given)) = of_accounts.last_mut() {
                    given.take(request.method, response);
                }
            }
            for (address, given) in &of_accounts {
                let nodes = given.proven(state.block.state_root);
                let fault = given.fault.clone().or_else(|| nodes.as_ref().err().cloned());
                let nodes = nodes.unwrap_or_default();
                state.parts().nodes.0.extend(nodes.iter().cloned());
                fetched.nodes.extend(nodes);
                let Some(keys) = wanted.get_mut(address) else { continue };
                keys.keys.retain(|key| state.proven(key).is_err());
                if !keys.keys.is_empty() {
                    failure = Some(proof_error(name, *address, block, given.failure.as_ref(), fault));
                }
            }
            wanted.retain(|_, keys| !keys.keys.is_empty());
            if wanted.is_empty() {
                return Ok(fetched);
            }
        }
    }
    Err(failure.unwrap_or_else(no_upstream).into())
}

/// The error of an upstream that did not prove all wanted values of an account.
fn proof_error(
    name: &str,
    address: Address,
    block: BlockRef,
    failure: Option<&RequestFailure>,
    fault: Option<String>,
) -> ForkError {
    match failure {
        Some(error) if lacks_method(error) => {
            ForkError::NoProofs { name: name.to_owned(), reason: error.to_string() }
        }
        // A request that got no response says nothing about the state of the upstream.
        Some(
            error @ (RequestFailure::Transport(_)
            | RequestFailure::Busy { .. }
            | RequestFailure::BudgetUsedUp),
        ) => {
            let what = format!("proof of account {address} at {block}");
            ForkError::Unanswered { name: name.to_owned(), what, reason: error.to_string() }
        }
        Some(error) => ForkError::State { name: name.to_owned(), address, block, reason: error.to_string() },
        None => {
            let fault = fault.unwrap_or_else(|| "the nodes do not lead to all of it".to_owned());
            refuted(name, &format!("proof of account {address} at {block}"), fault)
        }
    }
}

/// Values by key of the state; `None` for a key without a value.
type KeyValues = Vec<(Vec<u8>, Option<Bytes>)>;

/// Fetches values without proof, and stores those that at least `needed` upstreams state alike.
fn unproven(
    exchanges: &mut Exchanges,
    state: &ForkState,
    wanted: WantedAccounts,
    needed: usize,
) -> Fetched<FetchedState> {
    // The different statements about each account, with the number of upstreams that made each.
    let mut statements: BTreeMap<Address, Vec<(KeyValues, usize)>> = BTreeMap::new();
    let (mut open, mut failure) = (wanted, None);
    for (upstream, name) in exchanges.names().iter().enumerate() {
        for (address, values) in stated_by(exchanges, (upstream, name), state, &open)? {
            match values {
                Err(error) => failure = Some(error),
                Ok(values) => {
                    let counted = statements.entry(address).or_default();
                    match counted.iter_mut().find(|(known, _)| *known == values) {
                        Some((_, count)) => *count = count.saturating_add(1),
                        None => counted.push((values, 1)),
                    }
                }
            }
        }
        let agreed = |counted: &Vec<(_, usize)>| counted.iter().any(|(_, count)| *count >= needed);
        open.retain(|address, _| !statements.get(address).is_some_and(agreed));
        if open.is_empty() {
            break;
        }
    }
    if let Some((address, _)) = open.first_key_value() {
        let block = BlockRef { number: state.block.number, hash: state.block.hash() };
        let different = ForkError::Disagreement { wanted: needed, address: *address, block };
        // Where one upstream suffices, all have failed, and the last error says why. A quorum may fail without any error.
        return Err(failure.filter(|_| needed == 1).unwrap_or(different).into());
    }
    let agreed = statements
        .into_values()
        .filter_map(|counted| counted.into_iter().find(|(_, count)| *count >= needed));
    let values: Vec<_> = agreed.flat_map(|(values, _)| values).collect();
    for (key, value) in &values {
        state.add_value(key, value.clone());
    }
    Ok(FetchedState { nodes: Vec::new(), values })
}

/// The values of accounts from one upstream, or the errors, for each account.
fn stated_by(
    exchanges: &mut Exchanges,
    (upstream, name): (usize, &str),
    state: &ForkState,
    wanted: &WantedAccounts,
) -> Fetched<Vec<(Address, Result<KeyValues, ForkError>)>> {
    let (number, hash) = (state.block.number, state.block.hash());
    // The other requests name the block by its height. The block is requested in the same exchange, to check that the upstream has
    // this block there.
    let mut requests = vec![request("eth_getBlockByNumber", format!(r#"["{number:#x}",false]"#))];
    for (address, keys) in wanted {
        for method in ["eth_getTransactionCount", "eth_getBalance", "eth_getCode"] {
            requests.push(request(method, format!(r#"["{address:#x}","{number:#x}"]"#)));
        }
        let method = if is_native(address) { "rsk_getStorageBytesAt" } else { "eth_getStorageAt" };
        for slot in &keys.slots {
            requests.push(request(method, format!(r#"["{address:#x}","{slot:#x}","{number:#x}"]"#)));
        }
    }
    let responses = exchanges.ask(upstream, requests)?;
    let mut responses = responses.iter();
    let checked = on_branch(name, number, hash, responses.next());
    let mut stated = Vec::new();
    for (address, keys) in wanted {
        // Nonce, balance and code.
        let account: Vec<&UpstreamResponse> = responses.by_ref().take(3).collect();
        let slots: Vec<&UpstreamResponse> = responses.by_ref().take(keys.slots.len()).collect();
        let block = BlockRef { number, hash };
        let values = checked.clone().and_then(|()| {
            values_of(address, keys, account, slots).map_err(|reason| {
                let name = name.to_owned();
                ForkError::State { name, address: *address, block, reason }
            })
        });
        stated.push((*address, values));
    }
    Ok(stated)
}

#[derive(Deserialize)]
struct HashOfBlock {
    hash: B256,
}

/// Checks that the upstream has this block at this height.
pub(super) fn on_branch(
    name: &str,
    number: u64,
    hash: B256,
    response: Option<&UpstreamResponse>,
) -> Result<(), ForkError> {
    let (what, name) = (format!("block {number}"), name.to_owned());
    let Some(text) = given(&name, &what, response)? else {
        return Err(ForkError::NoBlock { name, number });
    };
    let found = serde_json::from_str::<HashOfBlock>(text).map_err(|error| refuted(&name, &what, error))?;
    match found.hash == hash {
        true => Ok(()),
        false => Err(ForkError::OffChain { name, number, hash, found: found.hash }),
    }
}

/// The values under the keys of an account, as an upstream states them. An account without nonce, balance and code counts as
/// absent, unless it is a native contract. A native contract and an account with code have the marker of a contract.
fn values_of(
    address: &Address,
    keys: &Keys,
    account: Vec<&UpstreamResponse>,
    slots: Vec<&UpstreamResponse>,
) -> Result<KeyValues, String> {
    fn text(response: &UpstreamResponse) -> Result<&str, String> {
        response.as_ref().map(|raw| raw.get()).map_err(ToString::to_string)
    }
    let mut account = account.into_iter().map(text);
    let mut next = || account.next().unwrap_or_else(|| Err("no response".to_owned()));
    let (nonce, balance, code) = (next()?, next()?, next()?);
    let bad = |error: serde_json::Error| error.to_string();
    let nonce: U256 = serde_json::from_str(nonce).map_err(bad)?;
    let balance: U256 = serde_json::from_str(balance).map_err(bad)?;
    let code: Option<Bytes> = serde_json::from_str(code).map_err(bad)?;
    let code = code.filter(|code| !code.is_empty());
    let nonce = u64::try_from(nonce).map_err(|_| "a nonce of 2^64 or more".to_owned())?;
    let is_contract = code.is_some() || is_native(address);
    let exists = nonce > 0 || !balance.is_zero() || is_contract;
    let account = Account { nonce, balance, ..Account::default() };
    let mut values = vec![
        (account_key(address).to_vec(), exists.then(|| account.encode().into())),
        (code_key(address).to_vec(), code),
        (storage_root_key(address).to_vec(), is_contract.then(|| Bytes::from_static(&[1]))),
    ];
    for (slot, value) in keys.slots.iter().zip(slots) {
        let value = text(value)?;
        let value: Bytes = match is_native(address) {
            // The forms in which upstreams state that a native contract's cell is empty.
            true if matches!(value, "null" | "\"0x0\"") => Bytes::new(),
            true => serde_json::from_str(value).map_err(bad)?,
            false => serde_json::from_str::<U256>(value).map_err(bad)?.to_be_bytes_trimmed_vec().into(),
        };
        values.push((slot_key(address, slot), Some(value).filter(|value| !value.is_empty())));
    }
    Ok(values)
}
