//! Requests about a scenario, and their true answers. The answers come from what was recorded when the blocks were
//! mined; of the client's data only its head is used, which must be one of these blocks.

use alloy_primitives::hex;
use serde_json::{Value, json};

use super::{
    chain::{CONTRACT, RICH, START, ScenarioBlock, signed},
    upstream::ScenarioData,
};
use crate::types::{B256, SealedHeader, U256};

/// How a request selects its block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BlockSelector {
    Tag(&'static str),
    Number(u64),
    NumberMap(u64),
    Hash(B256),
    /// EIP-1898, with `requireCanonical`.
    Map(B256, bool),
}

impl BlockSelector {
    pub(super) fn to_json(self) -> Value {
        match self {
            Self::Tag(tag) => json!(tag),
            Self::Number(number) => json!(format!("{number:#x}")),
            Self::NumberMap(number) => json!({ "blockNumber": format!("{number:#x}") }),
            Self::Hash(hash) => json!(hash),
            Self::Map(hash, canonical) => json!({ "blockHash": hash, "requireCanonical": canonical }),
        }
    }
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Probe {
    Height,
    Block(BlockSelector),
    BlockByHash(B256),
    Balance(BlockSelector),
    Cell(BlockSelector),
    Nonce(BlockSelector, usize),
    /// A call that returns the hash of the block with this number.
    CallHash(BlockSelector, u64),
    UncleCount(BlockSelector),
    Uncle(BlockSelector, usize),
    TransactionCount(BlockSelector),
    Verification(BlockSelector),
    /// An index into `signed`, and whether the signed transaction is given too.
    Transaction(usize, bool),
    Receipt(usize, bool),
    UnknownTransaction,
    Logs(BlockSelector, BlockSelector),
    LogsOf(B256),
    /// A trace of a block; its content is not checked.
    Trace(BlockSelector),
}

impl Probe {
    pub(super) fn call(&self) -> (&'static str, Value) {
        let raw = |position: usize, whole: bool| {
            let sent = &signed()[position];
            match whole {
                true => json!([sent.hash, hex::encode_prefixed(sent.transaction.encode())]),
                false => json!([sent.hash]),
            }
        };
        match *self {
            Self::Height => ("eth_blockNumber", json!([])),
            Self::Block(at) => ("eth_getBlockByNumber", json!([at.to_json(), false])),
            Self::BlockByHash(hash) => ("eth_getBlockByHash", json!([hash, false])),
            Self::Balance(at) => ("eth_getBalance", json!([RICH, at.to_json()])),
            Self::Cell(at) => ("eth_getStorageAt", json!([CONTRACT, "0x0", at.to_json()])),
            Self::Nonce(at, position) => {
                ("eth_getTransactionCount", json!([signed()[position].sender, at.to_json()]))
            }
            Self::CallHash(at, number) => {
                let call = json!({ "to": CONTRACT, "data": format!("{:#066x}", U256::from(number)) });
                ("eth_call", json!([call, at.to_json()]))
            }
            Self::UncleCount(BlockSelector::Hash(hash)) => ("eth_getUncleCountByBlockHash", json!([hash])),
            Self::UncleCount(at) => ("eth_getUncleCountByBlockNumber", json!([at.to_json()])),
            Self::Uncle(BlockSelector::Hash(hash), index) => {
                ("eth_getUncleByBlockHashAndIndex", json!([hash, format!("{index:#x}")]))
            }
            Self::Uncle(at, index) => {
                ("eth_getUncleByBlockNumberAndIndex", json!([at.to_json(), format!("{index:#x}")]))
            }
            Self::TransactionCount(BlockSelector::Hash(hash)) => {
                ("eth_getBlockTransactionCountByHash", json!([hash]))
            }
            Self::TransactionCount(at) => ("eth_getBlockTransactionCountByNumber", json!([at.to_json()])),
            Self::Verification(at) => ("rootlight_verification", json!([at.to_json()])),
            Self::Transaction(position, whole) => ("eth_getTransactionByHash", raw(position, whole)),
            Self::Receipt(position, whole) => ("eth_getTransactionReceipt", raw(position, whole)),
            Self::UnknownTransaction => ("eth_getTransactionByHash", json!([B256::repeat_byte(0x99)])),
            Self::Logs(from, to) => {
                ("eth_getLogs", json!([{ "fromBlock": from.to_json(), "toBlock": to.to_json() }]))
            }
            Self::LogsOf(hash) => ("eth_getLogs", json!([{ "blockHash": hash }])),
            Self::Trace(BlockSelector::Hash(hash)) => ("debug_traceBlockByHash", json!([hash])),
            Self::Trace(at) => {
                ("trace_filter", json!([{ "fromBlock": at.to_json(), "toBlock": at.to_json() }]))
            }
        }
    }
}

/// The judgement of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// Correct and at the right level, or refused where it must be.
    Right,
    /// Refused, although there is an answer.
    Unanswered,
    /// Marked as unproven, where that is allowed.
    Marked,
    Wrong(&'static str),
}

/// The knowledge that the client can have when it answers.
pub(super) struct ClientKnowledge<'a> {
    pub(super) data: &'a ScenarioData,
    /// The client's chain, from the checkpoint to its head.
    pub(super) branch: Vec<B256>,
    /// Whether the gate must refuse every request.
    pub(super) closed: bool,
    pub(super) min_depth: u64,
    /// Whether there is an honest upstream, which serves everything that exists.
    pub(super) honest: bool,
    /// Whether the user accepts unproven answers.
    pub(super) credulous: bool,
}

/// The block that a request selects.
enum SelectedBlock<'a> {
    Block(&'a ScenarioBlock),
    /// A header below the checkpoint.
    Below(&'a SealedHeader),
    /// No such block on this chain.
    Nothing,
    /// A block that was made up, or that no upstream knows.
    Unproven,
    /// A block that exists and must not be answered about.
    Hidden,
}

impl<'a> ClientKnowledge<'a> {
    fn head(&self) -> &'a ScenarioBlock {
        self.data.chains.block(self.branch.last().unwrap())
    }

    fn at(&self, number: u64) -> SelectedBlock<'a> {
        match number.checked_sub(START).map(|position| self.branch.get(position as usize)) {
            Some(Some(hash)) => SelectedBlock::Block(self.data.chains.block(hash)),
            Some(None) => SelectedBlock::Nothing,
            None => {
                let mut below = self.data.chains.below.iter();
                below
                    .find(|header| header.number == number)
                    .map_or(SelectedBlock::Unproven, SelectedBlock::Below)
            }
        }
    }

    fn by_hash(&self, hash: B256) -> SelectedBlock<'a> {
        let mut below = self.data.chains.below.iter();
        match (self.data.chains.get(&hash), below.find(|header| header.hash() == hash)) {
            (Some(block), _) => SelectedBlock::Block(block),
            (None, Some(header)) => SelectedBlock::Below(header),
            (None, None) => SelectedBlock::Unproven,
        }
    }

    fn depth(&self, block: &ScenarioBlock) -> u64 {
        if !self.branch.contains(&block.hash()) {
            return 0;
        }
        self.head().number() - block.number()
    }

    fn find(&self, at: BlockSelector) -> SelectedBlock<'a> {
        let head = self.head().number();
        let found = match at {
            BlockSelector::Tag("safe") => self.at(head - 12),
            BlockSelector::Tag("finalized") => self.at(head - 120),
            BlockSelector::Tag(_) => self.at(head),
            BlockSelector::Number(number) | BlockSelector::NumberMap(number) => self.at(number),
            BlockSelector::Hash(hash) | BlockSelector::Map(hash, _) => self.by_hash(hash),
        };
        let canonical = !matches!(at, BlockSelector::Map(_, true));
        match found {
            SelectedBlock::Block(block) if self.depth(block) < self.min_depth => SelectedBlock::Hidden,
            SelectedBlock::Below(header) if head - header.number < self.min_depth => SelectedBlock::Hidden,
            SelectedBlock::Block(block) if !canonical && !self.branch.contains(&block.hash()) => {
                SelectedBlock::Hidden
            }
            found => found,
        }
    }

    /// The logs of a block: block hash, transaction hash and index of each.
    fn logs(block: &ScenarioBlock) -> Vec<Value> {
        let mut index = 0;
        let mut all = Vec::new();
        for (position, receipt) in block.transactions.iter().zip(&block.receipts) {
            for _ in &receipt.logs {
                all.push(json!([block.hash(), signed()[*position].hash, format!("{index:#x}")]));
                index += 1;
            }
        }
        all
    }

    /// Judges the answer to a probe.
    pub(super) fn judge(&self, probe: &Probe, answer: &Value) -> Verdict {
        let Some(result) = answer.get("result") else {
            return if self.is_answerable(probe) { Verdict::Unanswered } else { Verdict::Right };
        };
        if self.closed {
            return Verdict::Wrong("answered although the gate is closed");
        }
        let level = answer.get("level").and_then(Value::as_str);
        if level == Some("unproven") {
            let allowed = if self.credulous { Verdict::Marked } else { Verdict::Wrong("unproven") };
            return allowed;
        }
        match *probe {
            Probe::Transaction(position, _) | Probe::Receipt(position, _) => {
                return self.judge_transaction(position, result, level);
            }
            Probe::UnknownTransaction => {
                let marked = result.is_null() && level == Some("unproven-absence");
                return if marked {
                    Verdict::Right
                } else {
                    Verdict::Wrong("an unproven absence without its level")
                };
            }
            _ => {}
        }
        if let Some(at) = probe.at() {
            match self.find(at) {
                SelectedBlock::Hidden if is_none(result) && level == Some("unproven-absence") => {
                    return Verdict::Marked;
                }
                SelectedBlock::Hidden => {
                    return Verdict::Wrong("about a block that is too young or off the chain");
                }
                SelectedBlock::Unproven if level == Some("unproven-absence") && is_none(result) => {
                    return Verdict::Right;
                }
                SelectedBlock::Unproven => return Verdict::Wrong("about a block without a proven branch"),
                SelectedBlock::Nothing if is_none(result) && level.is_none() => return Verdict::Right,
                SelectedBlock::Nothing => return Verdict::Wrong("no such block"),
                SelectedBlock::Below(header) => return judge_below(probe, header, result),
                // An uncle is shown with its own uncles, and whether it has any may be unproven.
                SelectedBlock::Block(block)
                    if level.is_some() && matches!(probe, Probe::Uncle(..)) && !result.is_null() =>
                {
                    return match self.judge_block(probe, block, result) {
                        Verdict::Right => Verdict::Marked,
                        wrong => wrong,
                    };
                }
                SelectedBlock::Block(block) if level == Some("unproven-absence") => {
                    // If no upstream serves it, all upstreams report that a side block does not exist.
                    let shown = self.honest && self.data.chains.is_valid(block.hash());
                    let gone = is_none(result) && !shown;
                    return if gone { Verdict::Marked } else { Verdict::Wrong("reported as absent") };
                }
                SelectedBlock::Block(block) => return self.judge_block(probe, block, result),
            }
        }
        let right = match *probe {
            Probe::Height => *result == json!(format!("{:#x}", self.head().number())),
            Probe::Logs(from, to) => self.judge_range(from, to, result),
            _ => unreachable!("{probe:?}"),
        };
        if right { Verdict::Right } else { Verdict::Wrong("not what is on the chain") }
    }

    /// Whether an honest upstream can prove the answer. It cannot prove the absence of a transaction against
    /// upstreams that report a location.
    pub(super) fn is_answerable(&self, probe: &Probe) -> bool {
        let state =
            matches!(probe, Probe::Balance(_) | Probe::Cell(_) | Probe::Nonce(..) | Probe::CallHash(..));
        match *probe {
            _ if self.closed => false,
            Probe::Height => true,
            Probe::Trace(_) | Probe::UnknownTransaction => false,
            Probe::Transaction(position, _) | Probe::Receipt(position, _) => {
                self.mined(position).is_some_and(|block| self.depth(block) >= self.min_depth)
            }
            Probe::Logs(from, to) => {
                let open = |at| matches!(self.find(at), SelectedBlock::Block(_));
                open(from) && open(to)
            }
            Probe::CallHash(at, number) => {
                let far = number < START - self.data.chains.below.len() as u64;
                !far && matches!(self.find(at), SelectedBlock::Block(block) if self.reachable(block))
            }
            _ => match probe.at().map(|at| self.find(at)) {
                Some(SelectedBlock::Block(block)) => {
                    // An uncle is shown with its own uncles, which may not exist.
                    let uncle = match (probe, &block.uncles) {
                        (Probe::Uncle(_, index), Some(uncles)) => uncles.get(*index),
                        _ => None,
                    };
                    if uncle.is_some_and(|uncle| uncle.uncle_count > 0) {
                        return false;
                    }
                    let uncles = matches!(
                        probe,
                        Probe::UncleCount(_) | Probe::Uncle(..) | Probe::Block(_) | Probe::BlockByHash(_)
                    );
                    // Receipts are requested by transaction, of which the upstream finds those on its own chain.
                    let logs = matches!(probe, Probe::LogsOf(_)) && !block.transactions.is_empty();
                    self.reachable(block)
                        && (!uncles || block.uncles.is_some())
                        && (!logs || self.branch.contains(&block.hash()))
                }
                Some(SelectedBlock::Below(_)) => !state && matches!(probe, Probe::Verification(_)),
                _ => false,
            },
        }
    }

    /// Whether a block is on the chain, or on a branch short enough to be connected to it.
    fn reachable(&self, block: &ScenarioBlock) -> bool {
        if !self.branch.contains(&block.hash()) && !self.data.chains.is_valid(block.hash()) {
            return false;
        }
        let branch = self.data.chains.branch(block.hash());
        branch.iter().filter(|hash| !self.branch.contains(hash)).count() <= crate::light::MAX_BRANCH
    }

    fn mined(&self, position: usize) -> Option<&'a ScenarioBlock> {
        let mut blocks = self.branch.iter().map(|hash| &**self.data.chains.block(hash));
        blocks.find(|block| block.transactions.contains(&position))
    }

    fn judge_transaction(&self, position: usize, result: &Value, level: Option<&str>) -> Verdict {
        let sent = &signed()[position];
        let marked = level == Some("unproven-absence");
        let absent = result.is_null() || result["blockHash"].is_null();
        match self.mined(position) {
            Some(block) if absent => {
                let deep = self.depth(block) >= self.min_depth;
                match marked {
                    false => Verdict::Wrong("a mined transaction is hidden"),
                    true if self.honest && deep => {
                        Verdict::Wrong("a mined transaction is hidden though shown")
                    }
                    true => Verdict::Marked,
                }
            }
            Some(block) => {
                let index = block.transactions.iter().position(|other| *other == position).unwrap();
                let deep = self.depth(block) >= self.min_depth;
                let hash = result.get("hash").or(result.get("transactionHash"));
                let logs = result.get("logs").is_none_or(|logs| {
                    logs.as_array().is_some_and(|logs| logs.len() == block.receipts[index].logs.len())
                });
                let fits = hash == Some(&json!(sent.hash))
                    && result["blockHash"] == json!(block.hash())
                    && result["transactionIndex"] == json!(format!("{index:#x}"))
                    && logs;
                match (deep, fits, level) {
                    (true, true, None) => Verdict::Right,
                    (false, ..) => Verdict::Wrong("of a block that is too young"),
                    _ => Verdict::Wrong("a transaction in another place"),
                }
            }
            None if !absent => Verdict::Wrong("mined nowhere"),
            None => {
                let next = self.data.chains.nonce(self.head().hash(), &sent.sender);
                // Once the nonce is used, nothing proves whether the transaction is mined.
                match marked || next <= sent.nonce {
                    true => Verdict::Right,
                    false => Verdict::Wrong("an unproven absence without its level"),
                }
            }
        }
    }

    fn judge_range(&self, from: BlockSelector, to: BlockSelector, result: &Value) -> bool {
        let number = |at: BlockSelector| match at {
            BlockSelector::Number(number) | BlockSelector::NumberMap(number) => number,
            _ => self.head().number(),
        };
        let deepest = self.head().number().saturating_sub(self.min_depth);
        let (from, to) = (number(from), number(to).min(deepest));
        let blocks = self.branch.iter().map(|hash| self.data.chains.block(hash));
        let within = blocks.filter(|block| (from..=to).contains(&block.number()));
        let expected: Vec<Value> = within.flat_map(|block| Self::logs(block)).collect();
        answered_logs(result) == expected
    }

    fn judge_block(&self, probe: &Probe, block: &ScenarioBlock, result: &Value) -> Verdict {
        let facts = &block.facts;
        let right = match *probe {
            Probe::Block(_) | Probe::BlockByHash(_) => self.is_block(block, result),
            Probe::Balance(_) => *result == json!(format!("{:#x}", facts.balance)),
            Probe::Cell(_) => {
                let answer = result.as_str().and_then(|text| text.parse::<U256>().ok());
                answer == Some(facts.cell)
            }
            Probe::Nonce(_, position) => {
                let nonce = self.data.chains.nonce(block.hash(), &signed()[position].sender);
                *result == json!(format!("{nonce:#x}"))
            }
            Probe::CallHash(_, number) => {
                let own = self.data.chains.branch(block.hash());
                let above = number.checked_sub(START).map(|position| own.get(position as usize).copied());
                let hash = match above {
                    Some(hash) => hash,
                    None => {
                        let mut below = self.data.chains.below.iter();
                        below.find(|header| header.number == number).map(|header| header.hash())
                    }
                };
                let hash = hash.filter(|_| number < block.number()).unwrap_or_default();
                *result == json!(hash)
            }
            Probe::UncleCount(_) => {
                block.uncles.as_ref().is_some_and(|uncles| *result == json!(format!("{:#x}", uncles.len())))
            }
            Probe::Uncle(_, index) => match block.uncles.as_ref().map(|uncles| uncles.get(index)) {
                Some(Some(uncle)) => result["hash"] == json!(uncle.hash()),
                Some(None) => result.is_null(),
                None => false,
            },
            Probe::TransactionCount(_) => *result == json!(format!("{:#x}", block.transactions.len())),
            Probe::Verification(_) => self.is_verification(block, result),
            Probe::LogsOf(_) => answered_logs(result) == Self::logs(block),
            Probe::Trace(_) => true,
            _ => unreachable!("{probe:?}"),
        };
        if right { Verdict::Right } else { Verdict::Wrong("not what the block has") }
    }

    fn is_block(&self, block: &ScenarioBlock, shown: &Value) -> bool {
        let uncles: Option<Vec<B256>> =
            block.uncles.as_ref().map(|uncles| uncles.iter().map(SealedHeader::hash).collect());
        let transactions: Vec<B256> =
            block.transactions.iter().map(|position| signed()[*position].hash).collect();
        let total = self.data.chains.total(block.hash()).map(|total| json!(format!("{total:#x}")));
        let total_fits =
            shown["totalDifficulty"].is_null() || Some(&shown["totalDifficulty"]) == total.as_ref();
        let none = ["CoinbaseTransaction", "MerkleProof"]
            .map(|field| shown[format!("bitcoinMergedMining{field}")].is_null());
        is_header(&block.header, shown)
            && (block.shows_work || none == [true, true])
            && shown["transactions"] == json!(transactions)
            && uncles.is_some_and(|uncles| shown["uncles"] == json!(uncles))
            && total_fits
    }

    fn is_verification(&self, block: &ScenarioBlock, answer: &Value) -> bool {
        let canonical = self.branch.contains(&block.hash());
        let chains = &self.data.chains;
        let on_top = chains.work(self.head().hash()).saturating_sub(chains.work(block.hash()));
        let at_most = |value: &Value, most: U256| {
            value.as_str().is_none_or(|text| text.parse::<U256>().is_ok_and(|work| work <= most))
        };
        answer["blockHash"] == json!(block.hash())
            && answer["level"] == "verified"
            && answer["canonical"] == json!(canonical)
            && answer["depth"] == json!(format!("{:#x}", self.depth(block)))
            && (canonical || answer["workOnTop"].is_null())
            && at_most(&answer["workOnTop"], on_top)
            && at_most(&answer["headerWork"], chains.work(block.hash()))
    }
}

impl Probe {
    /// The block that the whole request is about.
    fn at(&self) -> Option<BlockSelector> {
        match *self {
            Self::Block(at)
            | Self::Balance(at)
            | Self::Cell(at)
            | Self::Nonce(at, _)
            | Self::CallHash(at, _)
            | Self::UncleCount(at)
            | Self::Uncle(at, _)
            | Self::TransactionCount(at)
            | Self::Trace(at)
            | Self::Verification(at) => Some(at),
            Self::BlockByHash(hash) | Self::LogsOf(hash) => Some(BlockSelector::Hash(hash)),
            _ => None,
        }
    }
}

/// Checks the fields of a header. Fields that the hash does not cover must be true or left out.
fn is_header(header: &SealedHeader, shown: &Value) -> bool {
    let open =
        |name: &str, bytes: &[u8]| shown[name].is_null() || shown[name] == json!(hex::encode_prefixed(bytes));
    shown["hash"] == json!(header.hash())
        && shown["number"] == json!(format!("{:#x}", header.number))
        && shown["parentHash"] == json!(header.parent_hash)
        && shown["stateRoot"] == json!(header.state_root)
        && open("bitcoinMergedMiningCoinbaseTransaction", &header.coinbase_tx)
        && open("bitcoinMergedMiningMerkleProof", &header.merkle_proof)
}

/// Judges an answer about a block below the checkpoint, of which only the header is known.
fn judge_below(probe: &Probe, header: &SealedHeader, result: &Value) -> Verdict {
    let right = match probe {
        Probe::Block(_) | Probe::BlockByHash(_) => {
            is_header(header, result) && result["totalDifficulty"].is_null()
        }
        Probe::Verification(_) => result["blockHash"] == json!(header.hash()),
        Probe::UncleCount(_) | Probe::TransactionCount(_) => *result == json!("0x0"),
        Probe::Uncle(..) => result.is_null(),
        Probe::LogsOf(_) => *result == json!([]),
        Probe::Trace(_) => true,
        _ => false,
    };
    if right { Verdict::Right } else { Verdict::Wrong("of a block below the checkpoint") }
}

/// Whether a result is an empty answer, for one object or for a list.
fn is_none(result: &Value) -> bool {
    result.is_null() || *result == json!([])
}

fn answered_logs(result: &Value) -> Vec<Value> {
    let logs = result.as_array().into_iter().flatten();
    logs.map(|log| json!([log["blockHash"], log["transactionHash"], log["logIndex"]])).collect()
}
