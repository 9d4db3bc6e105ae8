//! Answers requests of the core, which have the form of JSON-RPC requests, from messages of a peer. The answers have the form of a
//! JSON-RPC server's, so that the core verifies them in the same way.

use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use rootlight::consensus::Network;
use rootlight::light::{MAX_BATCH_BYTES, MAX_BATCH_HEADERS, UpstreamRequest, encode_raw_headers};
use rootlight::state::keys::{account_key, code_key, slot_key};
use rootlight::trie::{lookup_value, prove};
use rootlight::types::block::block_len;
use rootlight::types::header::HeaderForm;
use rootlight::types::json::{BlockParts, Location, RpcBlock, RpcTransaction, RpcTransactions};
use rootlight::types::{SealedHeader, Transaction};
use rootlight_limits::budget::Reservation;
use rootlight_p2p::message::{Items, Push};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::block::PeerHeaders;
use super::body::BlockContents;
use super::error::PeerError;
use super::node::PeerNode;
use super::state::{self, FoundNodes, Searched, StateNodes};
use super::stretch::FullHeader;
use crate::quota_owner;

/// The memory that bytes take while they become JSON, in their length: the bytes in a list (1), two digits for each byte (2), and
/// these digits in the text (2), rounded up.
const JSON_COPIES: usize = 6;

/// The block that a request names.
#[derive(Debug, Clone, Copy)]
enum RequestedBlock {
    Hash(B256),
    Number(u64),
    Latest,
}

/// JSON text, and the bytes of the budget that it takes.
type ReservedJson = (Box<RawValue>, Reservation);

/// Answers the requests that a peer can answer.
pub(super) struct PeerAnswers {
    /// The peer.
    node: Arc<PeerNode>,
    /// Headers and bodies of the peer's blocks.
    blocks: PeerHeaders,
    /// Proven trie nodes, shared with other peers.
    nodes: Arc<StateNodes>,
    /// The states that were searched at this peer.
    searched: Searched,
}

impl PeerAnswers {
    pub(super) fn new(node: Arc<PeerNode>, network: Arc<Network>, nodes: Arc<StateNodes>) -> Self {
        Self { blocks: PeerHeaders::new(node.clone(), network), node, nodes, searched: Searched::default() }
    }

    /// Answers one request by its method.
    pub(super) async fn answer(&self, request: &UpstreamRequest) -> Result<ReservedJson, PeerError> {
        let params: Vec<Value> = serde_json::from_str(&request.params)
            .map_err(|_| PeerError::Params("the parameters are no list"))?;
        let at = |index: usize| params.get(index).unwrap_or(&Value::Null);
        match request.method {
            "eth_blockNumber" => to_json(&format!("{:#x}", self.blocks.head().await?)),
            "rootlight_getHeaders" => {
                let count = quantity(at(1))?.min(MAX_BATCH_HEADERS);
                let headers = self.blocks.headers(quantity(at(0))?, count).await?;
                let bytes = headers.iter().map(FullHeader::bytes).fold(0, usize::saturating_add);
                if bytes > MAX_BATCH_BYTES {
                    return Err(PeerError::Wrong("headers are longer than the rules allow"));
                }
                self.json_on_worker(bytes, move || {
                    let raw = headers.iter().map(|header| (&header.rlp[..], header.uncles.as_deref()));
                    let text = encode_raw_headers(raw);
                    // Not encoded by serde: base64 has nothing to escape, and a search for it takes as long as the encoding.
                    RawValue::from_string(format!("\"{text}\""))
                        .map_err(|_| PeerError::Wrong("it has no JSON form"))
                })
                .await
            }
            "eth_getBlockByNumber" | "eth_getBlockByHash" => {
                self.block(named(at(0))?, at(1) == &json!(true)).await
            }
            "rsk_getRawBlockHeaderByNumber" | "rsk_getRawBlockHeaderByHash" => {
                let header = self.header(named(at(0))?).await?;
                to_json(&header.map(|header| hex::encode_prefixed(header.encode(HeaderForm::Raw))))
            }
            "eth_getUncleByBlockHashAndIndex" | "eth_getUncleByBlockNumberAndIndex" => {
                self.uncle(named(at(0))?, quantity(at(1))?).await
            }
            "eth_getProof" => self.proof(address(at(0))?, &slots(at(1))?, named(at(2))?).await,
            "eth_getCode" => self.value(code_key(&address(at(0))?).to_vec(), named(at(1))?).await,
            "rsk_getStorageBytesAt" => {
                self.value(slot_key(&address(at(0))?, &word(at(1))?), named(at(2))?).await
            }
            "eth_sendRawTransaction" => self.send(at(0)).await,
            "eth_getTransactionReceipt" | "rsk_getRawTransactionReceiptByHash" => {
                Err(PeerError::NoMessage("receipts"))
            }
            "eth_getTransactionByHash" => Err(PeerError::NoMessage("transactions by hash")),
            _ => Err(PeerError::NoMessage(request.method)),
        }
    }

    /// The hash of a block; `None` if the peer has none at that height.
    async fn hash(&self, block: RequestedBlock) -> Result<Option<B256>, PeerError> {
        match block {
            RequestedBlock::Hash(hash) => Ok(Some(hash)),
            RequestedBlock::Number(number) => self.blocks.hash_at(number).await,
            RequestedBlock::Latest => self.blocks.hash_at(self.blocks.head().await?).await,
        }
    }

    /// The header of a block; `None` if the peer has none at that height.
    async fn header(&self, block: RequestedBlock) -> Result<Option<SealedHeader>, PeerError> {
        match self.hash(block).await? {
            Some(hash) => self.blocks.header(hash).await.map(Some),
            None => Ok(None),
        }
    }

    /// A block as `eth_getBlockByNumber` returns it, with `full` transactions or only their hashes.
    async fn block(&self, block: RequestedBlock, full: bool) -> Result<ReservedJson, PeerError> {
        let Some(header) = self.header(block).await? else { return to_json(&Value::Null) };
        let of = header.clone();
        let convert = move |content: BlockContents| {
            let BlockContents { transactions, uncles } = content;
            let parts = BlockParts {
                transactions: match full {
                    true => RpcTransactions::Full(full_transactions(&transactions, &header)),
                    false => RpcTransactions::Hashes(transactions.iter().map(Transaction::hash).collect()),
                },
                uncles: Some(&uncles),
                total_difficulty: None,
                size: Some(block_len(&header, &transactions, uncles.iter().map(SealedHeader::header))),
            };
            to_raw_json(&RpcBlock::new(&header, parts))
        };
        Ok(trimmed(self.blocks.bodies().content(&of, convert).await?))
    }

    /// An uncle of a block, by its index, as `eth_getUncleByBlockNumberAndIndex` returns it.
    async fn uncle(&self, block: RequestedBlock, index: u64) -> Result<ReservedJson, PeerError> {
        let Some(hash) = self.hash(block).await? else { return to_json(&Value::Null) };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let uncle = self.blocks.bodies().uncle(hash, index, self.blocks.recent_commitment(hash)).await?;
        to_json(&uncle.map(|uncle| RpcBlock::uncle(&uncle, None, None, None)))
    }

    /// Makes JSON from this many bytes, on a thread for long work.
    async fn json_on_worker(
        &self,
        bytes: usize,
        convert: impl FnOnce() -> Result<Box<RawValue>, PeerError> + Send + 'static,
    ) -> Result<ReservedJson, PeerError> {
        let (text, reserved) = self.node.quota().work(bytes.saturating_mul(JSON_COPIES), convert).await?;
        Ok(trimmed((text?, reserved)))
    }

    /// The trie nodes on the paths of keys in a block's state, and the state root; `None` if the peer has no such block.
    async fn state(
        &self,
        block: RequestedBlock,
        keys: Vec<Vec<u8>>,
    ) -> Result<Option<(FoundNodes, B256)>, PeerError> {
        let Some(header) = self.header(block).await? else { return Ok(None) };
        let (block, root) = (header.number, header.state_root);
        let found = state::find(&self.node, &self.nodes, &self.searched, block, root, keys).await?;
        Ok(Some((found, root)))
    }

    /// Those members of `eth_getProof`'s result that the core reads: the trie nodes.
    async fn proof(
        &self,
        address: Address,
        slots: &[U256],
        block: RequestedBlock,
    ) -> Result<ReservedJson, PeerError> {
        let account = account_key(&address).to_vec();
        let paths: Vec<(U256, Vec<u8>)> =
            slots.iter().map(|slot| (*slot, slot_key(&address, slot))).collect();
        let keys = std::iter::once(account.clone()).chain(paths.iter().map(|path| path.1.clone())).collect();
        let Some((found, root)) = self.state(block, keys).await? else { return to_json(&Value::Null) };
        let bytes = found.bytes();
        let walk = move || {
            let path = |key: &[u8]| {
                let nodes = prove(found.nodes(), root, key);
                nodes.map_err(|_| PeerError::Wrong("a node of a path is missing"))
            };
            let storage = paths.iter().map(|(slot, key)| Ok((*slot, path(key)?)));
            Ok::<_, PeerError>((path(&account)?, storage.collect::<Result<Vec<_>, PeerError>>()?))
        };
        let (walked, _held) = self.node.quota().work(bytes, walk).await?;
        let (account, storage) = walked?;
        let length = |path: &Vec<Bytes>| path.iter().map(|node| node.len()).fold(0, usize::saturating_add);
        let bytes =
            storage.iter().map(|(_, path)| length(path)).fold(length(&account), usize::saturating_add);
        let convert = move || {
            let hex = |path: &Vec<Bytes>| path.iter().map(hex::encode_prefixed).collect::<Vec<String>>();
            let storage =
                storage.iter().map(|(slot, path)| json!({ "key": format!("{slot:#x}"), "proof": hex(path) }));
            to_raw_json(&json!({
                "address": address,
                "accountProof": hex(&account),
                "storageProof": storage.collect::<Vec<Value>>(),
            }))
        };
        self.json_on_worker(bytes, convert).await
    }

    /// The value of a key in a block's state, as hexadecimal digits.
    async fn value(&self, key: Vec<u8>, block: RequestedBlock) -> Result<ReservedJson, PeerError> {
        let Some((found, root)) = self.state(block, vec![key.clone()]).await? else {
            return to_json(&Value::Null);
        };
        let (value, _held) =
            self.node.quota().work(found.bytes(), move || lookup_value(found.nodes(), root, &key)).await?;
        // A key without a value reads as no bytes, such as the code of an account without code.
        let value = value.map_err(|_| PeerError::Wrong("a value is missing"))?.unwrap_or_default();
        self.json_on_worker(value.len(), move || to_raw_json(&hex::encode_prefixed(value))).await
    }

    /// Sends a transaction and returns its hash. A peer sends no response, whether it accepts the transaction or drops it.
    async fn send(&self, raw: &Value) -> Result<ReservedJson, PeerError> {
        let bytes = raw.as_str().and_then(|text| hex::decode(text).ok());
        let bytes = bytes.ok_or(PeerError::Params("the transaction is not hexadecimal"))?;
        let transaction =
            Transaction::decode(&bytes).map_err(|_| PeerError::Params("the transaction does not decode"))?;
        let items = Items::lists(&bytes, 1, "transactions")?;
        self.node.link().await?.push(quota_owner(), Push::Transactions(items)).await?;
        to_json(&transaction.hash())
    }
}

/// The JSON objects of a block's transactions, without senders: the core recovers those that it needs from the signatures.
fn full_transactions(all: &[Transaction], header: &SealedHeader) -> Vec<RpcTransaction> {
    let location = |index: usize| Location {
        block_hash: header.hash(),
        block_number: header.number,
        index: index as u64,
    };
    let transaction_json = |(index, transaction): (usize, &Transaction)| {
        RpcTransaction::new(transaction, transaction.hash(), Address::ZERO, Some(&location(index)))
    };
    all.iter().enumerate().map(transaction_json).collect()
}

/// Encodes a value as JSON text.
fn to_raw_json(value: &impl Serialize) -> Result<Box<RawValue>, PeerError> {
    to_raw_value(value).map_err(|_| PeerError::Wrong("it has no JSON form"))
}

/// A short answer, which reserves no bytes of the budget.
fn to_json(value: &impl Serialize) -> Result<ReservedJson, PeerError> {
    Ok((to_raw_json(value)?, Reservation::default()))
}

/// Gives back the bytes of the budget that were only needed to make an answer. Twice the text's length stays: the core decodes it.
fn trimmed((text, mut reserved): ReservedJson) -> ReservedJson {
    reserved.shrink_to(text.get().len().saturating_mul(2));
    (text, reserved)
}

fn text(value: &Value) -> Result<&str, PeerError> {
    value.as_str().ok_or(PeerError::Params("a parameter is not a string"))
}

fn quantity(value: &Value) -> Result<u64, PeerError> {
    let digits = text(value)?.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    digits.ok_or(PeerError::Params("a parameter is not a quantity"))
}

fn word(value: &Value) -> Result<U256, PeerError> {
    text(value)?.parse().map_err(|_| PeerError::Params("a storage slot is not a number"))
}

fn slots(value: &Value) -> Result<Vec<U256>, PeerError> {
    value.as_array().ok_or(PeerError::Params("the storage slots are no list"))?.iter().map(word).collect()
}

fn address(value: &Value) -> Result<Address, PeerError> {
    text(value)?.parse().map_err(|_| PeerError::Params("a parameter is not an address"))
}

/// The block of a parameter: a hash, a number, a tag, or the object of EIP-1898.
fn named(value: &Value) -> Result<RequestedBlock, PeerError> {
    let value = value.get("blockHash").or_else(|| value.get("blockNumber")).unwrap_or(value);
    let name = text(value)?;
    match name {
        "latest" => Ok(RequestedBlock::Latest),
        "earliest" => Ok(RequestedBlock::Number(0)),
        _ if name.len() == 66 => name
            .parse()
            .map(RequestedBlock::Hash)
            .map_err(|_| PeerError::Params("a parameter is not a block hash")),
        _ => quantity(value).map(RequestedBlock::Number),
    }
}
