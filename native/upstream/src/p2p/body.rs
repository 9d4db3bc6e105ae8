//! Bodies of a peer's blocks. A body is compared with its header before it is decoded.

use std::sync::Arc;

use alloy_primitives::{B256, U256, keccak256};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rootlight::consensus::{Network, root_format};
use rootlight::trie::ordered_root;
use rootlight::types::rlp::put_list;
use rootlight::types::{EMPTY_UNCLES_HASH, Header, SealedHeader, Transaction};
use rootlight_limits::budget::Reservation;
use rootlight_p2p::header::RawHeader;
use rootlight_p2p::message::{Body, Items, Request, Response};

use super::error::PeerError;
use super::message::response;
use super::negative_cache::MissingItem;
use super::node::PeerNode;
use super::share::retry_within_share;
use super::stretch::FullHeader;
use crate::source_quota::ReceivedBytes;

/// Bytes of bodies in the cache: several requests about one block follow each other.
const CACHE_BYTES: u64 = 4 * 1024 * 1024;

/// Longest body that is cached, in bytes, so that one body does not displace all others.
const LONGEST_CACHED: usize = 128 * 1024;

/// Number of bodies for which the cache is laid out.
const CACHE_ENTRIES: usize = 256;

/// Gas of the cheapest transaction.
const TRANSACTION_GAS: u64 = 21_000;

/// Most transactions of a block that pay no gas: that of REMASC, Rootstock's contract that pays the miners, and those of the
/// federation to the Bridge, the contract that holds the bitcoins.
const FREE_TRANSACTIONS: u64 = 1_024;

/// Memory that a transaction takes beside its bytes: decoded, in a trie, and the fixed part of its JSON.
const TRANSACTION_BYTES: usize = 2_560;

/// The memory that a body takes while it becomes JSON, in its length: decoded, in a trie, and in hexadecimal digits twice.
const BODY_COPIES: usize = 6;

/// Weighs bodies by their bytes; a long body weighs more than the cache can hold, so that it is not cached.
#[derive(Clone)]
struct BodyWeight;

impl Weighter<B256, ReceivedBytes> for BodyWeight {
    fn weight(&self, _: &B256, body: &ReceivedBytes) -> u64 {
        if body.len() > LONGEST_CACHED { CACHE_BYTES + 1 } else { body.len().max(1) as u64 }
    }
}

/// The uncles that the header of a block states.
#[derive(Clone, Copy)]
pub(super) struct UnclesCommitment {
    pub(super) number: u64,
    pub(super) hash: B256,
}

/// The transactions and uncles of a block, decoded after they were compared with the header.
pub(super) struct BlockContents {
    pub(super) transactions: Vec<Transaction>,
    pub(super) uncles: Vec<SealedHeader>,
}

/// The bodies of one peer's blocks, with a cache.
pub(super) struct PeerBodies {
    node: Arc<PeerNode>,
    network: Arc<Network>,
    /// The messages with bodies, by block hash.
    cache: Cache<B256, ReceivedBytes, BodyWeight>,
}

impl PeerBodies {
    pub(super) fn new(node: Arc<PeerNode>, network: Arc<Network>) -> Self {
        Self { node, network, cache: Cache::with_weighter(CACHE_ENTRIES, CACHE_BYTES, BodyWeight) }
    }

    /// The full form of the header with this hash, from its short form (`rlp`) and its body, with the uncles of the body.
    pub(super) async fn complete(&self, hash: B256, rlp: Vec<u8>) -> Result<FullHeader, PeerError> {
        let (message, network) = (self.message(hash).await?, self.network.clone());
        let read = move |payload: &[u8]| {
            let (header, body) = (split(&rlp)?, body(payload)?);
            check_uncles(&network, header.number(), header.uncles_hash(), &body.uncles)?;
            FullHeader::new(header.full(body.extension.as_ref())?, Some(body.uncles.payload().to_vec()))
        };
        let read = message.read(read).await?;
        read.inspect_err(|_| self.forget(hash))
    }

    /// Hands the content of a block to `convert`, on a thread for long work. Returns the result, and the reservation for it.
    pub(super) async fn content<T: Send + 'static>(
        &self,
        header: &SealedHeader,
        convert: impl FnOnce(BlockContents) -> Result<T, PeerError> + Send + 'static,
    ) -> Result<(T, Reservation), PeerError> {
        let (message, hash) = (self.message(header.hash()).await?, header.hash());
        let gas_limit = header.gas_limit.value();
        let count = message.read(move |payload| count(gas_limit, &body(payload)?)).await?;
        let count = count.inspect_err(|_| self.forget(hash))?;
        let needed =
            count.saturating_mul(TRANSACTION_BYTES).saturating_add(message.len().saturating_mul(BODY_COPIES));
        if needed > self.node.quota().most() {
            self.forget(hash);
            return Err(PeerError::Wrong("a body is longer than a block can be"));
        }
        let (network, checked) = (self.network.clone(), header.clone());
        let read = move |payload: &[u8]| {
            let body = body(payload)?;
            check_body(&network, &checked, &body)?;
            decode(&network, &body)
        };
        let read = move |payload: &[u8]| read(payload).map(convert);
        let (converted, reserved) = message.read_into(needed, read).await?;
        Ok((converted.inspect_err(|_| self.forget(hash))??, reserved))
    }

    /// The uncle at this index of a block. The core compares the uncles with the header that it has verified. If the peer has just
    /// sent the header (`committed`), they are compared here too, because a peer that contradicts itself is refused at once.
    pub(super) async fn uncle(
        &self,
        block: B256,
        index: usize,
        committed: Option<UnclesCommitment>,
    ) -> Result<Option<SealedHeader>, PeerError> {
        let (message, network) = (self.message(block).await?, self.network.clone());
        let read = move |payload: &[u8]| {
            let body = body(payload)?;
            if let Some(UnclesCommitment { number, hash }) = committed {
                check_uncles(&network, number, hash, &body.uncles)?;
            }
            body.uncles.iter().nth(index).map(|rlp| decode_uncle(&network, rlp)).transpose()
        };
        let read = message.read(read).await?;
        read.inspect_err(|_| self.forget(block))
    }

    /// Removes a body that is not the block's from the cache. Requests of callers for this body are not sent for a while.
    fn forget(&self, hash: B256) {
        self.cache.remove(&hash);
        self.node.negative_cache().note(MissingItem::Block(hash));
    }

    /// The message with a body. Requests for the same body wait for one response.
    async fn message(&self, hash: B256) -> Result<ReceivedBytes, PeerError> {
        if let Some(body) = self.cache.get(&hash) {
            return Ok(body);
        }
        // The permit is taken before the cache's lock of this body: a caller whose requests wait for permits must not keep other
        // callers waiting for the same body.
        let request = Request::Body(hash);
        retry_within_share(|| async {
            let permit = self.node.permit(&request).await?;
            let ask = async {
                let mut message = permit.ask(request).await?;
                if message.len() <= LONGEST_CACHED {
                    // The cache has its own limit of bytes.
                    message.give_back();
                }
                Ok(message)
            };
            self.cache.get_or_insert_async(&hash, ask).await
        })
        .await
    }
}

fn split(rlp: &[u8]) -> Result<RawHeader<'_>, PeerError> {
    RawHeader::split(rlp).map_err(|error| PeerError::Message(error.into()))
}

/// Decodes the payload of a message that must be a body.
fn body(payload: &[u8]) -> Result<Body<'_>, PeerError> {
    match response(payload)? {
        Response::Body(body) => Ok(body),
        _ => Err(PeerError::Wrong("not a body")),
    }
}

/// Checks that a list of uncles has the hash that the header names.
fn check_uncles(network: &Network, number: u64, asked: B256, uncles: &Items<'_>) -> Result<(), PeerError> {
    let found = match uncles.is_empty() {
        true => EMPTY_UNCLES_HASH,
        false => {
            let mut list = Vec::new();
            put_list(&mut list, uncles.payload());
            keccak256(list)
        }
    };
    if found == asked {
        Ok(())
    } else {
        Err(PeerError::other_hash(network, number, "a list of uncles", asked, found))
    }
}

/// The number of a body's transactions, if a block with this gas limit can have so many. The caller then reserves memory for them.
fn count(gas_limit: U256, body: &Body<'_>) -> Result<usize, PeerError> {
    let most = (gas_limit / U256::from(TRANSACTION_GAS)).saturating_add(U256::from(FREE_TRANSACTIONS));
    let count = body.transactions.len();
    if U256::from(count) > most {
        return Err(PeerError::Wrong("a body has more transactions than the block's gas limit allows"));
    }
    Ok(count)
}

/// Checks that a body is the one that the header names. Nothing is decoded.
fn check_body(network: &Network, header: &SealedHeader, body: &Body<'_>) -> Result<(), PeerError> {
    check_uncles(network, header.number, header.uncles_hash, &body.uncles)?;
    check_transactions(network, header, &body.transactions)
}

/// Checks that a list of transactions has the root that the header names.
fn check_transactions(
    network: &Network,
    header: &SealedHeader,
    transactions: &Items<'_>,
) -> Result<(), PeerError> {
    let items: Vec<&[u8]> = transactions.iter().collect();
    let asked = header.transactions_root;
    let found = ordered_root(&items, root_format(network, header.number));
    if found == asked {
        return Ok(());
    }
    Err(PeerError::other_hash(network, header.number, "a list of transactions", asked, found))
}

/// Decodes the transactions and uncles of a body.
fn decode(network: &Network, body: &Body<'_>) -> Result<BlockContents, PeerError> {
    let transactions: Result<_, _> = body.transactions.iter().map(Transaction::decode).collect();
    Ok(BlockContents {
        transactions: transactions.map_err(|error| PeerError::Message(error.into()))?,
        uncles: decode_uncles(network, &body.uncles)?,
    })
}

fn decode_uncles(network: &Network, uncles: &Items<'_>) -> Result<Vec<SealedHeader>, PeerError> {
    uncles.iter().map(|rlp| decode_uncle(network, rlp)).collect()
}

fn decode_uncle(network: &Network, rlp: &[u8]) -> Result<SealedHeader, PeerError> {
    let decoded = Header::decode(rlp, &|number| network.header_shape(number));
    decoded.map(Header::seal).map_err(|_| PeerError::Wrong("an uncle does not decode"))
}
