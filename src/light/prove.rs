//! Turns an upstream's responses into proven facts ([`responses`]). Every response is hostile until a hash, a root or a proof of
//! work confirms it.

use alloc::{borrow::Cow, format, string::String, string::ToString, sync::Arc, vec::Vec};

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;

use super::upstream_fetch::RAW_HEADER_AT;
use super::{
    fact_store::{FactStore, KnownFacts, Location},
    upstream::{RequestFailure, UpstreamRequest, UpstreamResponse},
    upstream_fetch::{Cause, FetchTarget, RAW_HEADER, RAW_UNCLES, UpstreamFetch},
};
use crate::{
    consensus::{
        ChainView, HeaderCandidate, MAX_UNCLES, Network, VerifiedBody, VerifiedHeader, VerifiedReceipts,
        VerifiedUncles,
    },
    state::{Fact, StateKey, keys},
    trie::{self, limits::MAX_MULTIPROOF_NODES, verify_multiproof},
    types::{BlockRef, Header, HeaderError, Receipt, SealedHeader, json},
};

/// The verified chain that responses are checked against.
#[derive(Debug, Clone, Copy)]
pub struct ProofContext<'a> {
    /// The network's rules.
    pub network: &'a Network,
    /// The chain; `None` until the checkpoint's header is verified.
    pub chain: Option<&'a ChainView>,
}

/// Proves the facts that a fetch's responses claim.
///
/// # Errors
/// [`Cause`]: a response is missing, or breaks a rule.
pub fn responses(
    fetch: &UpstreamFetch,
    context: ProofContext<'_>,
    known: &KnownFacts<'_>,
) -> Result<FactStore, Cause> {
    let mut facts = FactStore::default();
    match &fetch.target {
        FetchTarget::One(Fact::Header(hash)) => {
            let header = header_off_chain(fetch, *hash, context)?;
            facts.headers.insert(*hash, header.map(Arc::new));
        }
        FetchTarget::One(Fact::HeaderAt(number)) => {
            let header = Arc::new(header_at(fetch, *number, context.network)?);
            facts.headers_at.insert(*number, VerifiedHeader::of_own_node(header));
        }
        FetchTarget::One(Fact::Body(block)) => {
            let body = body(first(fetch)?, &verified_header(context, known, block)?, context.network)?;
            facts.block_bytes = body.bytes();
            facts.bodies.insert(block.hash, Arc::new(body));
        }
        FetchTarget::One(Fact::Uncles(block, _)) => {
            let header = verified_header(context, known, block)?;
            facts.uncles.insert(block.hash, Arc::new(uncles(fetch, &header, context.network)?));
        }
        FetchTarget::One(Fact::Receipts(block)) => {
            let receipts = receipts(fetch, &verified_header(context, known, block)?, context.network)?;
            facts.block_bytes = receipts.bytes();
            facts.receipts.insert(block.hash, Arc::new(receipts));
        }
        FetchTarget::One(Fact::Location(hash)) => {
            let head = context.chain.map_or(0, |chain| chain.head().number);
            let location = location(fetch, *hash, head, context.network.chain_id)?;
            facts.locations.insert(*hash, Arc::new(location));
        }
        FetchTarget::One(Fact::State(block, key)) => {
            let root = verified_header(context, known, block)?.state_root;
            facts.nodes = long_value(first(fetch)?, root, key, known)?;
        }
        FetchTarget::Proof { block, address, slots } => {
            let root = verified_header(context, known, block)?.state_root;
            facts.nodes = account_proof(first(fetch)?, root, address, slots)?;
        }
        FetchTarget::Witness { block, .. } => {
            facts.nodes = witness(first(fetch)?, verified_header(context, known, block)?.state_root)?;
        }
    }
    Ok(facts)
}

/// The cause for a response that breaks a rule.
fn refuted(error: impl core::fmt::Display) -> Cause {
    Cause::Refuted(error.to_string())
}

/// The cause for JSON without the expected members. The reader's own message is dropped, because it can quote the upstream.
fn unreadable(_: serde_json::Error) -> Cause {
    Cause::Refuted("unexpected JSON".into())
}

fn first_response(fetch: &UpstreamFetch) -> Result<&UpstreamResponse, Cause> {
    fetch.responses().next().ok_or(Cause::Call(RequestFailure::Malformed("no response")))
}

/// The JSON of the only response, `null` included.
fn first(fetch: &UpstreamFetch) -> Result<&RawValue, Cause> {
    match first_response(fetch)? {
        Ok(raw) => Ok(raw),
        Err(failure) => Err(Cause::Call(failure.clone())),
    }
}

/// The verified header that commits to a fact.
fn verified_header(
    context: ProofContext<'_>,
    known: &KnownFacts<'_>,
    block: &BlockRef,
) -> Result<VerifiedHeader, Cause> {
    let header = context.chain.and_then(|chain| chain.by_hash(&block.hash));
    let header = header.or_else(|| known.header_at(block.number).filter(|own| own.hash() == block.hash));
    header.cloned().ok_or(Cause::Needs(Fact::Header(block.hash)))
}

fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// Reads a block number or count, a JSON string in hex with `0x`.
pub fn quantity(raw: &RawValue) -> Option<u64> {
    u64::from_str_radix(string(raw)?.strip_prefix("0x")?, 16).ok()
}

/// The contents of a JSON string, borrowed unless a character in it is escaped. `None` if the JSON is not a string.
pub(super) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if text.contains('\\') {
        return serde_json::from_str(raw.get()).map(Cow::Owned).ok();
    }
    Some(Cow::Borrowed(text))
}

/// Rebuilds a header from a node's block object. The header must have the hash `claimed` or, without one, the hash that the
/// object states.
///
/// # Errors
/// The field that is wrong, and the rule that it breaks.
pub fn header(text: &str, claimed: Option<B256>, network: &Network) -> Result<SealedHeader, json::JsonError> {
    json::header_from_json(text, claimed, &|number| network.header_shape(number))
}

/// The cause for a block object from which no header with the right hash can be rebuilt. If only the hash differs, the object may
/// be honest: JSON leaves out the uncle count that an uncle's header states, and shows the uncles that exist, whatever the header
/// counts. Any other fault in the object is refuted.
fn hidden(error: json::JsonError) -> Cause {
    match error {
        json::JsonError::Hash { .. } => Cause::Hidden(error.to_string()),
        error => refuted(error),
    }
}

/// Why a raw header cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RawHeaderError {
    /// The response is not a hex string.
    #[error("raw header: {0}")]
    Hex(#[from] hex::FromHexError),
    /// A response does not have the expected JSON structure. The message does not repeat the reader's, which can quote the upstream.
    #[error("raw header: unexpected JSON")]
    Json(#[from] serde_json::Error),
    /// The bytes do not decode as a header.
    #[error(transparent)]
    Header(#[from] HeaderError),
}

/// Decodes a header from its raw encoding, a JSON string of hex digits. Raw headers lack the merged-mining proof and coinbase, so
/// these come from the JSON of the block object.
///
/// # Errors
/// The field that is wrong, and the rule that it breaks.
pub fn raw_header(raw: &str, block: &str, network: &Network) -> Result<SealedHeader, RawHeaderError> {
    let raw = hex_text(raw)?;
    let block: MergedMiningFields = serde_json::from_str(block)?;
    let mut header = Header::decode(&raw, &|number| network.header_shape(number))?;
    let shown = |field: Option<String>| field.map_or(Ok(Bytes::new()), |text| decode_hex(&text));
    header.merkle_proof = shown(block.bitcoin_merged_mining_merkle_proof)?;
    header.coinbase_tx = shown(block.bitcoin_merged_mining_coinbase_transaction)?;
    Ok(header.seal())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MergedMiningFields {
    bitcoin_merged_mining_merkle_proof: Option<String>,
    bitcoin_merged_mining_coinbase_transaction: Option<String>,
}

/// Checks the proof of work of a header that an upstream showed as this block object. The block's hash covers neither
/// Merkle proof nor coinbase (RSKIP-92), so anyone can show a header with the right hash but without its work.
///
/// # Errors
/// [`Cause::Hidden`] if the object shows `null` for both fields, as a light client does that has not checked them (yet), and
/// [`Cause::Refuted`] if the fields are wrong.
pub fn work(header: &SealedHeader, object: &str, network: &Network) -> Result<(), Cause> {
    let Err(error) = VerifiedHeader::alone(HeaderCandidate::from(header.clone()), network) else {
        return Ok(());
    };
    let shown = serde_json::from_str::<MergedMiningFields>(object);
    match shown.is_ok_and(|shown| shown.bitcoin_merged_mining_merkle_proof.is_none()) {
        true => Err(Cause::Hidden(error.to_string())),
        false => Err(refuted(error)),
    }
}

/// A header that is not on the chain, with its proof of work checked; `None` if the upstream says that there is none. The header
/// states its own difficulty, which is checked when the header is connected to the chain. Below the chain only its ancestors can be
/// connected. They need no proof of work, because the chain's own hashes lead to them.
fn header_off_chain(
    fetch: &UpstreamFetch,
    hash: B256,
    context: ProofContext<'_>,
) -> Result<Option<SealedHeader>, Cause> {
    let network = context.network;
    let (found, object) = match (fetch.attempt(), fetch.requests(), fetch.responses().nth(1)) {
        (RAW_HEADER, [request, ..], Some(object)) => {
            (raw_of(request, first_response(fetch)?, object, network)?, text(object)?)
        }
        _ => {
            let raw = first(fetch)?;
            if is_null(raw) {
                return Ok(None);
            }
            (header(raw.get(), Some(hash), network).map_err(hidden)?, raw.get())
        }
    };
    if context.chain.is_some_and(|chain| found.number > chain.lowest()) {
        work(&found, object, network)?;
    }
    Ok(Some(found))
}

/// A header by its height, as the host's own node shows it.
fn header_at(fetch: &UpstreamFetch, number: u64, network: &Network) -> Result<SealedHeader, Cause> {
    let found = match (fetch.attempt(), fetch.responses().nth(1)) {
        (RAW_HEADER_AT, Some(object)) => {
            raw_header(text(first_response(fetch)?)?, text(object)?, network).map_err(refuted)?
        }
        _ => {
            let raw = first(fetch)?;
            if is_null(raw) {
                return Err(Cause::Denied);
            }
            header(raw.get(), None, network).map_err(hidden)?
        }
    };
    match found.number == number {
        true => Ok(found),
        false => Err(Cause::Refuted(format!("the header of block {}", found.number))),
    }
}

#[derive(Deserialize)]
struct BlockTransactions<'a> {
    #[serde(borrow)]
    transactions: &'a RawValue,
}

/// The transactions of a block object, checked against the header's commitment.
fn body(raw: &RawValue, header: &VerifiedHeader, network: &Network) -> Result<VerifiedBody, Cause> {
    if is_null(raw) {
        return Err(Cause::Withheld);
    }
    let block: BlockTransactions<'_> = serde_json::from_str(raw.get()).map_err(unreadable)?;
    let (mut transactions, mut fault) = (Vec::new(), None);
    json::for_each_member(block.transactions.get(), &mut |raw| {
        match json::transaction_from_json(raw.get(), None, network.chain_id) {
            Ok(transaction) => transactions.push(transaction),
            Err(error) => fault = Some(refuted(error)),
        }
        fault.is_none()
    })
    .map_err(refuted)?;
    fault.map_or(Ok(()), Err)?;
    VerifiedBody::check(header, transactions, network).map_err(refuted)
}

/// The attempt that requests the uncles at all indexes that a list may have.
const ALL_INDEXES: usize = 2;

/// The uncles of a block, checked against its header's commitment.
///
/// # Errors
/// [`Cause`]; [`Cause::Refuted`] only if no honest upstream would respond so. To a request by number, an honest upstream may
/// show the list of a block of another branch; to one by index, a part of the list if the header counts too few uncles; and an
/// uncle that JSON shows incompletely may still be right.
pub fn uncles(
    fetch: &UpstreamFetch,
    header: &VerifiedHeader,
    network: &Network,
) -> Result<VerifiedUncles, Cause> {
    let uncles = uncle_headers(fetch, network)?;
    let count = uncles.len();
    VerifiedUncles::check(header, uncles).map_err(|error| {
        let has_response =
            |response: &UpstreamResponse| matches!(response, Ok(_) | Err(RequestFailure::NotRecorded));
        // A list of as many uncles as were requested may be cut off.
        let is_whole = fetch.responses().all(has_response) && count < MAX_UNCLES;
        match fetch.attempt() == ALL_INDEXES && is_whole {
            true => refuted(error),
            false => Cause::Hidden(error.to_string()),
        }
    })
}

/// The uncle hashes that a fetch's responses show, for requesting the uncles in another form.
pub fn uncle_hashes(fetch: &UpstreamFetch) -> Vec<B256> {
    #[derive(Deserialize)]
    struct Shown {
        hash: B256,
    }
    if !matches!(fetch.target, FetchTarget::One(Fact::Uncles(..))) {
        return Vec::new();
    }
    let shown = fetch.responses().flatten().filter_map(|raw| serde_json::from_str::<Shown>(raw.get()).ok());
    shown.take(MAX_UNCLES).map(|shown| shown.hash).collect()
}

/// The uncle headers in a fetch's responses, each rebuilt to the hash that it claims.
fn uncle_headers(fetch: &UpstreamFetch, network: &Network) -> Result<Vec<Header>, Cause> {
    let mut uncles = Vec::new();
    if fetch.attempt() == RAW_UNCLES {
        // The first half of the requests is for raw headers, the second half for the block objects of the same uncles.
        let (raw, objects) = fetch.requests().split_at(fetch.requests().len() / 2);
        for ((request, response), object) in
            raw.iter().zip(fetch.responses()).zip(fetch.responses().skip(objects.len()))
        {
            uncles.push(raw_of(request, response, object, network)?.into_header());
        }
        return Ok(uncles);
    }
    for response in fetch.responses() {
        let raw = match response {
            // An upstream may answer an index behind the end of the list with an error.
            Err(_) if fetch.attempt() == ALL_INDEXES => break,
            Err(failure) => return Err(Cause::Call(failure.clone())),
            Ok(raw) => raw,
        };
        // The list ends before this index: the header may count more uncles than it commits to.
        if is_null(raw) {
            break;
        }
        let uncle = header(raw.get(), None, network).map_err(hidden)?;
        uncles.push(uncle.into_header());
    }
    // The header commits to at least one uncle, whatever number it states.
    if uncles.is_empty() {
        return Err(Cause::Withheld);
    }
    Ok(uncles)
}

/// The JSON of a response that is not `null`.
fn text(response: &UpstreamResponse) -> Result<&str, Cause> {
    match response {
        Ok(raw) if is_null(raw) => Err(Cause::Withheld),
        Ok(raw) => Ok(raw.get()),
        Err(failure) => Err(Cause::Call(failure.clone())),
    }
}

/// Decodes a header from its raw form and its block object. The header must have the hash that the request for the raw form
/// names.
fn raw_of(
    request: &UpstreamRequest,
    raw: &UpstreamResponse,
    object: &UpstreamResponse,
    network: &Network,
) -> Result<SealedHeader, Cause> {
    let header = raw_header(text(raw)?, text(object)?, network).map_err(refuted)?;
    match request.params.contains(&header.hash().to_string()) {
        true => Ok(header),
        false => Err(Cause::Refuted("the raw header has another hash than the one asked for".into())),
    }
}

/// The receipts of a block, checked against the header's commitment. The first attempt gets them as JSON, the second one raw.
fn receipts(
    fetch: &UpstreamFetch,
    header: &VerifiedHeader,
    network: &Network,
) -> Result<VerifiedReceipts, Cause> {
    let mut receipts = Vec::new();
    for response in fetch.responses() {
        let raw = response.as_ref().map_err(|failure| Cause::Call(failure.clone()))?;
        if is_null(raw) {
            return Err(Cause::Withheld);
        }
        receipts.push(match fetch.attempt() {
            0 => json::receipt_from_json(raw.get()).map_err(refuted)?,
            _ => Receipt::decode(&hex_bytes(raw)?).map_err(refuted)?,
        });
    }
    VerifiedReceipts::check(header, receipts, network).map_err(refuted)
}

/// Decodes a JSON string of hex digits.
fn hex_text(json: &str) -> Result<Bytes, RawHeaderError> {
    let text: String = serde_json::from_str(json)?;
    Ok(decode_hex(&text)?)
}

fn decode_hex(text: &str) -> Result<Bytes, hex::FromHexError> {
    hex::decode(text).map(Bytes::from)
}

fn hex_bytes(raw: &RawValue) -> Result<Bytes, Cause> {
    let text = string(raw).ok_or_else(|| Cause::Refuted("not a hex string".into()))?;
    decode_hex(&text).map_err(refuted)
}

/// The location that an upstream states for a transaction, up to the pinned head. "Nowhere" is accepted only if both forms of the
/// request (receipt, then transaction) say so.
///
/// An upstream that is ahead of this client may name a block above the head. Up to the head the transaction is not
/// mined, so it counts as pending. Like every absence, this is accepted only if all upstreams say so.
pub(super) fn location(
    fetch: &UpstreamFetch,
    hash: B256,
    head: u64,
    chain_id: u64,
) -> Result<Location, Cause> {
    let has_no_receipt = matches!(fetch.last_cause(), Some(Cause::Denied));
    let raw = match first(fetch) {
        Err(Cause::Call(RequestFailure::NotRecorded)) if has_no_receipt => return Ok(Location::Unknown),
        other => other?,
    };
    if is_null(raw) {
        return if has_no_receipt { Ok(Location::Unknown) } else { Err(Cause::Denied) };
    }
    let location = json::location_from_json(raw.get()).map_err(refuted)?;
    let is_above_head = location.as_ref().is_some_and(|location| location.block_number > head);
    if let Some(location) = location.filter(|_| !is_above_head) {
        return Ok(Location::Mined(BlockRef { number: location.block_number, hash: location.block_hash }));
    }
    if fetch.attempt() == 0 {
        return Err(match is_above_head {
            true => Cause::Denied,
            false => Cause::Refuted("a receipt without block".into()),
        });
    }
    let transaction = json::transaction_from_json(raw.get(), Some(hash), chain_id).map_err(refuted)?;
    // The transaction that calls REMASC, which pays out fees, has the zero address as its sender and is never pending: the miner makes
    // it with the block. Neither is one whose signature gives no sender.
    if is_above_head && transaction.recover_sender(chain_id).unwrap_or_default().is_zero() {
        return Ok(Location::Unknown);
    }
    Ok(Location::Pending(Arc::new(transaction)))
}

/// Proves bytes whose hash a proven trie node has: code, or a long storage value.
fn long_value(
    raw: &RawValue,
    root: B256,
    key: &StateKey,
    known: &KnownFacts<'_>,
) -> Result<trie::ProvenNodes, Cause> {
    let path = match key {
        StateKey::Code(address) => keys::code_key(address).to_vec(),
        StateKey::StorageBytes(address, slot) => keys::slot_key(address, slot),
        // `plan` requests accounts and slots as proofs, and the other keys are not in the trie.
        _ => return Err(Cause::Refuted("not a value behind a hash".into())),
    };
    if is_null(raw) {
        return Err(Cause::Withheld);
    }
    let value = hex_bytes(raw)?;
    let nodes = trie::prove(known, root, &path).map_err(refuted)?;
    verify_multiproof(root, &[path], &nodes, &[value]).map_err(refuted)
}

/// The nodes of an `eth_getProof` response or of a witness, not decoded yet. Both share one type, because each type
/// adds code to the browser module.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProofResponse<'a> {
    #[serde(borrow, alias = "nodes")]
    account_proof: &'a RawValue,
    #[serde(borrow, default)]
    storage_proof: Option<&'a RawValue>,
    /// The codes and long storage values of a witness.
    #[serde(borrow, default)]
    values: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StorageProofResponse<'a> {
    // The reference node's first draft of `eth_getProof` used the plural.
    #[serde(borrow, alias = "proofs", default)]
    proof: Option<&'a RawValue>,
}

/// Reads the members of a list one by one, up to the number of nodes that a proof may have. Without this limit, a list of many
/// members of two bytes would take much more memory decoded than as text.
fn for_each<'a>(
    list: Option<&'a RawValue>,
    read: &mut dyn FnMut(&'a RawValue) -> Result<(), Cause>,
) -> Result<(), Cause> {
    let (mut count, mut result) = (0, Ok(()));
    json::for_each_member(list.map_or("[]", RawValue::get), &mut |member| {
        count = usize::saturating_add(count, 1);
        result = match count > MAX_MULTIPROOF_NODES {
            true => Err(Cause::Refuted(format!("more than {MAX_MULTIPROOF_NODES} nodes"))),
            false => read(member),
        };
        result.is_ok()
    })
    .map_err(refuted)?;
    result
}

/// Proves the nodes of an `eth_getProof` response. The balance, nonce and values that the response states are ignored: they are read
/// from the nodes.
pub(super) fn account_proof(
    raw: &RawValue,
    root: B256,
    address: &Address,
    slots: &[U256],
) -> Result<trie::ProvenNodes, Cause> {
    if is_null(raw) {
        return Err(Cause::Withheld);
    }
    let response: ProofResponse<'_> = serde_json::from_str(raw.get()).map_err(unreadable)?;
    let mut paths: Vec<Vec<u8>> = alloc::vec![keys::account_key(address).to_vec()];
    paths.extend(slots.iter().map(|slot| keys::slot_key(address, slot)));
    let (mut nodes, mut has_empty_proof) = (Vec::new(), false);
    // Adds the nodes of a list. Returns whether the list is empty.
    let mut read = |list: Option<&RawValue>| {
        let before = nodes.len();
        for_each(list, &mut |node| {
            nodes.push(hex_bytes(node)?);
            Ok(())
        })?;
        Ok::<_, Cause>(nodes.len() == before)
    };
    read(Some(response.account_proof))?;
    for_each(response.storage_proof, &mut |entry| {
        let entry: StorageProofResponse<'_> = serde_json::from_str(entry.get()).map_err(unreadable)?;
        has_empty_proof |= read(entry.proof)?;
        Ok(())
    })?;
    let no_values: [&[u8]; 0] = [];
    verify_multiproof(root, &paths, &nodes, &no_values).map_err(|error| {
        // Upstreams without proofs of absence leave the proof of an absent key empty.
        if nodes.is_empty() || has_empty_proof {
            return Cause::NoAbsence(format!("{error}"));
        }
        refuted(error)
    })
}

/// Longest witness that is read, in bytes of JSON, which are twice the bytes of its nodes and codes. A
/// call of 10 million gas can read some 50,000 cells; calls of real contracts read less than a hundred.
pub const MAX_WITNESS_TEXT: usize = 32 * 1024 * 1024;

/// Proves the nodes of a witness that belong to the state, and the codes. The witness may still be incomplete: data that the run
/// misses is requested afterwards.
fn witness(raw: &RawValue, root: B256) -> Result<trie::ProvenNodes, Cause> {
    if is_null(raw) {
        return Err(Cause::Withheld);
    }
    if raw.get().len() > MAX_WITNESS_TEXT {
        return Err(Cause::Refuted(format!("a witness of more than {MAX_WITNESS_TEXT} bytes")));
    }
    let response: ProofResponse<'_> = serde_json::from_str(raw.get()).map_err(unreadable)?;
    let decoded = |list: Option<&RawValue>| {
        let mut all = Vec::new();
        for_each(list, &mut |text| {
            all.push(hex_bytes(text)?);
            Ok(())
        })?;
        Ok::<_, Cause>(all)
    };
    let (nodes, values) = (decoded(Some(response.account_proof))?, decoded(response.values)?);
    let proven = trie::connected(root, &nodes, &values).map_err(refuted)?;
    if proven.is_empty() {
        return Err(Cause::Refuted("nothing of the witness belongs to the state".into()));
    }
    Ok(proven)
}
