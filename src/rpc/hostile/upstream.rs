//! Upstreams of a scenario: the responses of an honest one, and how others differ.

use alloy_primitives::hex;
use fastrand::Rng;
use serde_json::{Value, json, value::RawValue};

use super::chain::{CONTRACT, Chains, RICH, ScenarioBlock, signed};
use crate::{
    light::{RequestFailure, UpstreamRequest, UpstreamResponse, encode_headers},
    state::keys,
    trie,
    types::{
        Address, B256, Header, HeaderForm, SealedHeader, U256,
        json::{BlockParts, Location, RpcBlock, RpcReceipt, RpcTransaction, RpcTransactions},
    },
};

/// How an upstream departs from honest responses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum UpstreamTrick {
    /// Never responds.
    Silent,
    /// Responds to some requests only.
    Lossy(u64),
    /// Truncates some responses.
    Truncated,
    /// Changes one digit of some responses.
    Digits(u64),
    /// Reports that there are no transactions.
    NoTransactions,
    /// Reports that mined transactions are pending.
    SaysPending,
    /// Reports transactions in a block below the checkpoint.
    OldLocation,
    /// Reports transactions in the block before theirs.
    WrongLocation,
    /// Reports transactions in its newest block.
    NewLocation,
    /// Shows replaced transactions as pending.
    ShowsReplaced,
    /// Reports that blocks requested by hash do not exist.
    NoBlocks,
    /// Serves no uncles.
    HidesUncles,
    /// Serves other headers as uncles.
    FalseUncles,
    /// Announces blocks that it does not have.
    Boasts,
    /// Serves no state proofs.
    NoProofs,
    /// Proves the state of the parent.
    OldState,
    /// Proves another account.
    OtherAccount,
    /// Leaves logs out of receipts.
    OmitsLogs,
    /// Changes coinbase and Merkle proof of headers that are accepted because of their hash.
    SwapsEvidence,
    /// Extends its chain with headers without proof of work.
    NoWork,
    /// Extends its chain with headers whose difficulty is too low.
    EasyWork,
}

/// The tricks that are drawn with equal probability.
pub(super) const TRICKS: [UpstreamTrick; 20] = [
    UpstreamTrick::Silent,
    UpstreamTrick::Lossy(30),
    UpstreamTrick::Truncated,
    UpstreamTrick::Digits(30),
    UpstreamTrick::NoTransactions,
    UpstreamTrick::SaysPending,
    UpstreamTrick::OldLocation,
    UpstreamTrick::WrongLocation,
    UpstreamTrick::ShowsReplaced,
    UpstreamTrick::NoBlocks,
    UpstreamTrick::HidesUncles,
    UpstreamTrick::FalseUncles,
    UpstreamTrick::Boasts,
    UpstreamTrick::NoProofs,
    UpstreamTrick::OldState,
    UpstreamTrick::OtherAccount,
    UpstreamTrick::OmitsLogs,
    UpstreamTrick::SwapsEvidence,
    UpstreamTrick::NoWork,
    UpstreamTrick::EasyWork,
];

/// A header that was made up, with a state root whose state can be proven.
pub(super) struct Foreign {
    pub(super) header: SealedHeader,
}

/// The data that the upstreams of a scenario have.
pub(super) struct ScenarioData {
    pub(super) chains: Chains,
    pub(super) foreign: Vec<Foreign>,
    /// Headers with no proof of work, or with too little difficulty, on top of some chain.
    pub(super) false_tops: Vec<SealedHeader>,
}

/// A simulated upstream.
pub(super) struct SimulatedUpstream {
    /// Its chain, from the checkpoint up.
    pub(super) chain: Vec<B256>,
    pub(super) tricks: Vec<UpstreamTrick>,
    /// Whether it serves made-up headers and proves their states.
    pub(super) forger: bool,
    /// Milliseconds from a request to its response.
    pub(super) latency: u64,
    /// Whether it has `rootlight_getHeaders`, and whether its responses contain uncles.
    pub(super) binary: Option<bool>,
    pub(super) random: Rng,
    /// Whether its whole chain is valid, as that of a full node is.
    pub(super) valid: bool,
}

fn failed<T>(words: &str) -> Result<T, RequestFailure> {
    Err(RequestFailure::Transport(words.into()))
}

fn unknown<T>() -> Result<T, RequestFailure> {
    Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() })
}

fn number_of(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

fn hash_of(value: &Value) -> Option<B256> {
    value.as_str()?.parse().ok()
}

impl SimulatedUpstream {
    /// Whether it responds as a reference node does.
    pub(super) fn is_honest(&self) -> bool {
        self.tricks.is_empty() && !self.forger && self.valid && self.binary != Some(false)
    }

    fn does(&self, trick: UpstreamTrick) -> bool {
        self.tricks.contains(&trick)
    }

    pub(super) fn answer(&mut self, data: &ScenarioData, call: &UpstreamRequest) -> UpstreamResponse {
        for trick in self.tricks.clone() {
            match trick {
                UpstreamTrick::Silent => return failed("timed out"),
                UpstreamTrick::Lossy(percent) if self.random.u64(..100) < percent => {
                    return failed("timed out");
                }
                _ => {}
            }
        }
        let params: Vec<Value> = serde_json::from_str(&call.params).unwrap();
        let value = self.response(data, call.method, &params)?;
        let mut text = value.to_string();
        for trick in self.tricks.clone() {
            match trick {
                UpstreamTrick::Truncated if self.random.u64(..100) < 40 => text.truncate(text.len() / 2),
                UpstreamTrick::Digits(percent) if self.random.u64(..100) < percent => {
                    let index = self.random.usize(..text.len());
                    let digit = if text.as_bytes()[index] == b'1' { "2" } else { "1" };
                    text.replace_range(index..=index, digit);
                }
                _ => {}
            }
        }
        RawValue::from_string(text).map_err(|_| RequestFailure::Malformed("not JSON"))
    }

    /// Its block at a height.
    fn at<'a>(&self, data: &'a ScenarioData, number: u64) -> Option<&'a ScenarioBlock> {
        let first = data.chains.base.number();
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        self.chain.get(index).map(|hash| &**data.chains.block(hash))
    }

    /// Its header at a height, also below the checkpoint and above the mined blocks.
    fn header_at(&self, data: &ScenarioData, number: u64) -> Option<SealedHeader> {
        let header = match self.at(data, number) {
            Some(block) => block.header.clone(),
            None if number < data.chains.base.number() => {
                data.chains.below.iter().find(|header| header.number == number)?.clone()
            }
            None => self.false_top(data, number)?.clone(),
        };
        Some(self.shown(data, header))
    }

    fn false_top<'a>(&self, data: &'a ScenarioData, number: u64) -> Option<&'a SealedHeader> {
        let tops = self.does(UpstreamTrick::NoWork) || self.does(UpstreamTrick::EasyWork);
        let parent = |header: &&SealedHeader| {
            let below = |hash: &B256| *hash == header.parent_hash;
            header.number == number
                && (self.chain.last().is_some_and(below)
                    || data.false_tops.iter().any(|top| below(&top.hash())))
        };
        data.false_tops.iter().find(parent).filter(|_| tops)
    }

    /// The header as it serves it; fields that the hash does not cover may be changed.
    fn shown(&self, data: &ScenarioData, header: SealedHeader) -> SealedHeader {
        if !self.does(UpstreamTrick::SwapsEvidence) || header.number > data.chains.base.number() {
            return header;
        }
        swapped(&header)
    }

    /// Returns the block with this hash, whether it is on the chain of this upstream or not.
    fn by_hash(&self, data: &ScenarioData, hash: B256) -> Option<SealedHeader> {
        if self.does(UpstreamTrick::NoBlocks) {
            return None;
        }
        let foreign = data.foreign.iter().find(|foreign| foreign.header.hash() == hash);
        let below = data.chains.below.iter().find(|header| header.hash() == hash);
        let block = data.chains.get(&hash).filter(|_| !self.is_honest() || data.chains.is_valid(hash));
        let own = block.map(|block| &block.header).or(below);
        own.or(foreign.filter(|_| self.forger).map(|foreign| &foreign.header))
            .map(|header| self.shown(data, header.clone()))
    }

    fn response(
        &mut self,
        data: &ScenarioData,
        method: &str,
        params: &[Value],
    ) -> Result<Value, RequestFailure> {
        let first = params.first().cloned().unwrap_or_default();
        Ok(match method {
            "eth_blockNumber" => {
                let tops =
                    (0..).take_while(|more| self.false_top(data, self.height(data) + 1 + more).is_some());
                let claimed = if self.does(UpstreamTrick::Boasts) { 1_000_000 } else { 0 };
                json!(format!("{:#x}", self.height(data) + tops.count() as u64 + claimed))
            }
            "rootlight_getHeaders" => return self.headers(data, params),
            "eth_getBlockByNumber" => {
                let header = number_of(&first).and_then(|number| self.header_at(data, number));
                block_json(data, header, params.get(1) == Some(&json!(true)))
            }
            "eth_getBlockByHash" => {
                let header = hash_of(&first).and_then(|hash| self.by_hash(data, hash));
                block_json(data, header, params.get(1) == Some(&json!(true)))
            }
            "rsk_getRawBlockHeaderByNumber" => {
                raw(number_of(&first).and_then(|number| self.header_at(data, number)))
            }
            "rsk_getRawBlockHeaderByHash" => {
                let hash = hash_of(&first).unwrap_or_default();
                let mut uncles = data.chains.all().flat_map(|block| block.uncles.iter().flatten());
                let uncle = uncles.find(|uncle| uncle.hash() == hash).cloned();
                raw(self.by_hash(data, hash).or(uncle))
            }
            "eth_getUncleByBlockHashAndIndex" | "eth_getUncleByBlockNumberAndIndex" => {
                let block = match hash_of(&first) {
                    Some(hash) => data.chains.get(&hash).map(|block| &**block),
                    None => number_of(&first).and_then(|number| self.at(data, number)),
                };
                self.uncle(data, block, number_of(&params[1]).unwrap_or(99) as usize)
            }
            "eth_getTransactionReceipt" => self.receipt(data, hash_of(&first).unwrap_or_default()),
            "rsk_getRawTransactionReceiptByHash" => {
                let hash = hash_of(&first).unwrap_or_default();
                match self.location(data, hash).filter(|_| !self.does(UpstreamTrick::OmitsLogs)) {
                    Some((block, index)) => json!(hex::encode_prefixed(block.receipts[index].encode())),
                    None => Value::Null,
                }
            }
            "eth_getTransactionByHash" => self.transaction(data, hash_of(&first).unwrap_or_default()),
            "eth_getProof" => return self.proof(data, params),
            "eth_getCode" | "rsk_getStorageBytesAt" => return self.value(data, method, params),
            _ => return unknown(),
        })
    }

    fn height(&self, data: &ScenarioData) -> u64 {
        data.chains.base.number() + self.chain.len() as u64 - 1
    }

    fn headers(&self, data: &ScenarioData, params: &[Value]) -> Result<Value, RequestFailure> {
        let Some(uncles) = self.binary else { return unknown() };
        let (first, count) = (number_of(&params[0]).unwrap_or(0), number_of(&params[1]).unwrap_or(0));
        let mut all = Vec::new();
        for number in first..first + count.min(600) {
            let Some(header) = self.header_at(data, number) else { continue };
            let list = self.at(data, number).and_then(|block| block.uncles.clone()).unwrap_or_default();
            let list = if !uncles || self.does(UpstreamTrick::HidesUncles) { Vec::new() } else { list };
            all.push((header, list));
        }
        let list = all.iter().map(|(header, uncles)| (header.header(), Some(&uncles[..])));
        Ok(json!(encode_headers(list)))
    }

    fn uncle(&self, data: &ScenarioData, block: Option<&ScenarioBlock>, index: usize) -> Value {
        let Some(block) = block.filter(|_| !self.does(UpstreamTrick::HidesUncles)) else {
            return Value::Null;
        };
        let uncles = block.uncles.as_deref().unwrap_or_default();
        let uncle = match self.does(UpstreamTrick::FalseUncles) {
            true if index < uncles.len() => Some(&data.chains.base.header),
            _ => uncles.get(index),
        };
        uncle.map_or(Value::Null, |uncle| json!(RpcBlock::uncle(uncle, None, None, None)))
    }

    /// The location of a transaction on its chain.
    fn location<'a>(&self, data: &'a ScenarioData, hash: B256) -> Option<(&'a ScenarioBlock, usize)> {
        let position = signed().iter().position(|sent| sent.hash == hash)?;
        self.chain.iter().find_map(|block| {
            let block = data.chains.block(block);
            Some((&**block, block.transactions.iter().position(|other| *other == position)?))
        })
    }

    fn receipt(&self, data: &ScenarioData, hash: B256) -> Value {
        if self.does(UpstreamTrick::NoTransactions) || self.does(UpstreamTrick::SaysPending) {
            return Value::Null;
        }
        let Some((block, index)) = self.location(data, hash) else { return Value::Null };
        let sent = &signed()[block.transactions[index]];
        let at = Location { block_hash: block.hash(), block_number: block.number(), index: index as u64 };
        let before: usize = block.receipts[..index].iter().map(|receipt| receipt.logs.len()).sum();
        let receipt = &block.receipts[index];
        let mut object =
            json!(RpcReceipt::new(receipt, &sent.transaction, hash, sent.sender, &at, before as u64));
        let before = self.at(data, block.number() - 1).filter(|_| self.does(UpstreamTrick::WrongLocation));
        let other = match self.does(UpstreamTrick::OldLocation) {
            true => Some((data.chains.base.number() - 200, B256::repeat_byte(0x55))),
            false if self.does(UpstreamTrick::NewLocation) => {
                self.chain.last().map(|hash| (self.height(data), *hash))
            }
            false => before.map(|block| (block.number(), block.hash())),
        };
        if let Some((number, hash)) = other {
            (object["blockNumber"], object["blockHash"]) = (json!(format!("{number:#x}")), json!(hash));
        }
        if self.does(UpstreamTrick::OmitsLogs) {
            object["logs"] = json!([]);
        }
        object
    }

    fn transaction(&self, data: &ScenarioData, hash: B256) -> Value {
        let Some(sent) = signed().iter().find(|sent| sent.hash == hash) else { return Value::Null };
        if self.does(UpstreamTrick::NoTransactions) {
            return Value::Null;
        }
        let location = self.location(data, hash).filter(|_| !self.does(UpstreamTrick::SaysPending));
        let at = location.map(|(block, index)| Location {
            block_hash: block.hash(),
            block_number: block.number(),
            index: index as u64,
        });
        let waits = self.does(UpstreamTrick::SaysPending) || self.does(UpstreamTrick::ShowsReplaced);
        if at.is_none() && !waits {
            return Value::Null;
        }
        json!(RpcTransaction::new(&sent.transaction, hash, sent.sender, at.as_ref()))
    }

    /// The state root of a block by number or hash.
    fn root(&self, data: &ScenarioData, block: &Value) -> Option<B256> {
        let header = match hash_of(block) {
            Some(hash) => self.by_hash(data, hash)?,
            None => {
                let foreign = |number: u64| {
                    let found = data.foreign.iter().find(|foreign| foreign.header.number == number);
                    found.filter(|_| self.forger).map(|foreign| foreign.header.clone())
                };
                let number = number_of(block)?;
                self.header_at(data, number).or_else(|| foreign(number))?
            }
        };
        let old = self.does(UpstreamTrick::OldState);
        let parent = data.chains.get(&header.parent_hash).filter(|_| old);
        Some(parent.map_or(header.state_root, |parent| parent.header.state_root))
    }

    fn proof(&self, data: &ScenarioData, params: &[Value]) -> Result<Value, RequestFailure> {
        if self.does(UpstreamTrick::NoProofs) {
            return unknown();
        }
        let address: Address = params[0].as_str().unwrap_or_default().parse().unwrap_or_default();
        let other = if address == RICH { CONTRACT } else { RICH };
        let address = if self.does(UpstreamTrick::OtherAccount) { other } else { address };
        let Some(root) = self.root(data, &params[2]) else { return Ok(Value::Null) };
        let proof = |key: &[u8]| -> Vec<String> {
            let nodes = trie::prove(&data.chains.nodes, root, key).unwrap_or_default();
            nodes.iter().map(|node| hex::encode_prefixed(alloy_rlp::encode(node))).collect()
        };
        let slots = params[1].as_array().into_iter().flatten().map(|slot| {
            let slot: U256 = slot.as_str().unwrap_or_default().parse().unwrap_or_default();
            json!({ "key": format!("{slot:#x}"), "value": "0x0", "proof": proof(&keys::slot_key(&address, &slot)) })
        });
        let slots: Vec<Value> = slots.collect();
        Ok(json!({ "accountProof": proof(&keys::account_key(&address)), "storageProof": slots }))
    }

    fn value(&self, data: &ScenarioData, method: &str, params: &[Value]) -> Result<Value, RequestFailure> {
        let address: Address = params[0].as_str().unwrap_or_default().parse().unwrap_or_default();
        let (key, block) = match method {
            "eth_getCode" => (keys::code_key(&address).to_vec(), &params[1]),
            _ => {
                let slot: U256 = params[1].as_str().unwrap_or_default().parse().unwrap_or_default();
                (keys::slot_key(&address, &slot), &params[2])
            }
        };
        let root = self.root(data, block);
        let value = root.and_then(|root| trie::lookup_value(&data.chains.nodes, root, &key).ok()?);
        Ok(value.map_or(Value::Null, |value| json!(hex::encode_prefixed(value))))
    }
}

/// A header with the same hash and another coinbase, which the hash does not cover.
pub(super) fn swapped(header: &SealedHeader) -> SealedHeader {
    let coinbase_tx = [&header.coinbase_tx[..], &[0; 64]].concat().into();
    let other = Header { coinbase_tx, ..header.header().clone() }.seal();
    assert_eq!(other.hash(), header.hash(), "the hash does not cover the coinbase");
    other
}

fn raw(header: Option<SealedHeader>) -> Value {
    header.map_or(Value::Null, |header| json!(hex::encode_prefixed(header.header().encode(HeaderForm::Raw))))
}

/// A block object as nodes return it.
fn block_json(data: &ScenarioData, header: Option<SealedHeader>, full: bool) -> Value {
    let Some(header) = header else { return Value::Null };
    let block = data.chains.get(&header.hash());
    let positions = block.map_or(&[][..], |block| &block.transactions);
    let transactions = if full {
        let location = |index: usize| Location {
            block_hash: header.hash(),
            block_number: header.number,
            index: index as u64,
        };
        let shown = positions.iter().enumerate().map(|(index, position)| {
            let sent = &signed()[*position];
            RpcTransaction::new(&sent.transaction, sent.hash, sent.sender, Some(&location(index)))
        });
        RpcTransactions::Full(shown.collect())
    } else {
        RpcTransactions::Hashes(positions.iter().map(|position| signed()[*position].hash).collect())
    };
    let uncles = block.and_then(|block| block.uncles.as_deref()).unwrap_or_default();
    let parts = BlockParts { transactions, uncles: Some(uncles), total_difficulty: None, size: None };
    json!(RpcBlock::new(&header, parts))
}
