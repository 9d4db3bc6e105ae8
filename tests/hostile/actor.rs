//! Upstreams: an honest one made of a recording, and the ways in which others differ from it.

use fastrand::Rng;
use rootlight::{
    light::{RequestFailure, UpstreamRequest, UpstreamResponse},
    types::json::header_from_json,
};
use serde_json::{Value, json, value::RawValue};

use crate::support::{chain::text, shapes, u64_of, upstream::RecordedUpstream};

/// How an upstream departs from honesty.
#[derive(Debug, Clone, PartialEq)]
pub enum ActorTrick {
    Honest,
    /// Never answers.
    Silent,
    /// Never answers these methods.
    Mute(&'static [&'static str]),
    /// Answers some questions only.
    Lossy(u64),
    /// Cuts answers off.
    Truncated,
    /// Changes one digit of some answers, in percent.
    Digits(u64),
    /// Says `null` to these methods.
    Withhold(&'static [&'static str]),
    /// Knows no methods but those of the reference: no proofs.
    NoProofs,
    /// Answers with the block before the one asked for.
    OtherBlock,
    /// Proves state of an older block.
    StaleRoots,
    /// Proves another account.
    OtherKeys,
    /// Proves an account that does not exist.
    AbsentForPresent,
    /// Counts logs from one too high.
    ShiftedLogs,
    /// Leaves logs out.
    OmittedLogs,
    /// Says that what succeeded has failed.
    WrongReceipts,
    /// Says that transactions are in other blocks.
    WrongPlace,
    /// Says that mined transactions wait.
    SaysPending,
    /// Says that transactions are in block 1.
    OldPlace,
    /// Has nothing newer than this.
    Behind(u64),
    /// Announces what it does not have.
    Boastful,
    /// Shows the Bitcoin fields of the block before.
    CopiedWork,
    /// Leaves Merkle proof and coinbase out.
    WithoutProof,
    /// Gives other headers as uncles.
    FakeUncles,
    /// Follows one branch, then another.
    Flapping,
}

pub struct Actor<'a> {
    pub trunk: &'a RecordedUpstream,
    /// The branch that the actor shows half of the time, when it flaps; or always, when it is on another branch.
    pub other: Option<&'a RecordedUpstream>,
    pub trick: ActorTrick,
    /// Milliseconds that one exchange takes.
    pub latency: u64,
    pub random: Rng,
    pub asked: Vec<UpstreamRequest>,
}

impl<'a> Actor<'a> {
    pub fn new(trunk: &'a RecordedUpstream, trick: ActorTrick) -> Self {
        Self { trunk, other: None, trick, latency: 30, random: Rng::with_seed(7), asked: Vec::new() }
    }

    pub fn answer(&mut self, call: &UpstreamRequest) -> UpstreamResponse {
        self.asked.push(call.clone());
        let silent = match self.trick {
            ActorTrick::Silent => true,
            ActorTrick::Mute(methods) => methods.contains(&call.method),
            ActorTrick::Lossy(percent) => self.random.u64(..100) < percent,
            _ => false,
        };
        if silent {
            return Err(RequestFailure::Transport("timed out".into()));
        }
        let honest = self.source().answer(call).ok_or(RequestFailure::NotRecorded)?;
        let text = self.depart(call, honest)?;
        RawValue::from_string(text).map_err(|_| RequestFailure::Malformed("not JSON"))
    }

    fn source(&mut self) -> &'a RecordedUpstream {
        match self.other {
            Some(other) if self.trick != ActorTrick::Flapping || self.random.u64(..100) < 50 => other,
            _ => self.trunk,
        }
    }

    fn depart(&mut self, call: &UpstreamRequest, honest: String) -> Result<String, RequestFailure> {
        let params: Value = serde_json::from_str(&call.params).unwrap();
        let again = |method: &'static str, params: Value| {
            self.trunk.answer(&UpstreamRequest::new(method, params.to_string())).unwrap_or(honest.clone())
        };
        let block = call.method == "eth_getBlockByNumber" && honest != "null";
        let receipt = call.method == "eth_getTransactionReceipt" && honest != "null";
        Ok(match &self.trick {
            ActorTrick::Truncated if self.random.u64(..100) < 50 => honest[..honest.len() / 2].to_owned(),
            ActorTrick::Digits(percent) if self.random.u64(..100) < *percent => {
                change_digit(&honest, self.random.usize(..honest.len()))
            }
            ActorTrick::Withhold(methods) if methods.contains(&call.method) => "null".into(),
            ActorTrick::NoProofs if ["eth_getProof", "rsk_getProof"].contains(&call.method) => {
                return Err(RequestFailure::Rpc { code: -32601, message: "method not found".into() });
            }
            ActorTrick::OtherBlock if block => {
                again("eth_getBlockByNumber", json!([before(&params[0]), params[1]]))
            }
            ActorTrick::StaleRoots if call.method == "eth_getProof" => {
                again("eth_getProof", json!([params[0], params[1], before(&params[2])]))
            }
            ActorTrick::OtherKeys if call.method == "eth_getProof" => again(
                "eth_getProof",
                json!(["0x0000000000000000000000000000000001000006", params[1], params[2]]),
            ),
            ActorTrick::AbsentForPresent if call.method == "eth_getProof" => again(
                "eth_getProof",
                json!(["0x00000000000000000000000000000000deadbeef", params[1], params[2]]),
            ),
            ActorTrick::ShiftedLogs | ActorTrick::OmittedLogs | ActorTrick::WrongReceipts
                if call.method == "rsk_getRawTransactionReceiptByHash" =>
            {
                "null".into()
            }
            ActorTrick::WrongReceipts if receipt => {
                let mut value: Value = serde_json::from_str(&honest).unwrap();
                value["status"] = if value["status"] == "0x1" { "0x0" } else { "0x1" }.into();
                value.to_string()
            }
            ActorTrick::ShiftedLogs | ActorTrick::OmittedLogs if receipt => self.change_logs(&honest),
            ActorTrick::WrongPlace if receipt => self.misplace(&honest),
            ActorTrick::SaysPending if receipt => "null".into(),
            ActorTrick::SaysPending if call.method == "eth_getTransactionByHash" && honest != "null" => {
                let mut value: Value = serde_json::from_str(&honest).unwrap();
                for field in ["blockHash", "blockNumber", "transactionIndex"] {
                    value[field] = Value::Null;
                }
                value.to_string()
            }
            ActorTrick::OldPlace if receipt => {
                let block = again("eth_getBlockByNumber", json!(["0x1", true]));
                let (mut value, block): (Value, Value) =
                    (serde_json::from_str(&honest).unwrap(), serde_json::from_str(&block).unwrap());
                (value["blockNumber"], value["blockHash"]) = (block["number"].clone(), block["hash"].clone());
                value.to_string()
            }
            ActorTrick::Behind(head) => self.cut(call, &params, *head, honest),
            ActorTrick::Boastful if call.method == "eth_blockNumber" => {
                format!("\"{:#x}\"", self.trunk.head + 50)
            }
            ActorTrick::CopiedWork if block => self.copy_work(&params, honest),
            ActorTrick::WithoutProof if block => {
                let mut value: Value = serde_json::from_str(&honest).unwrap();
                value["bitcoinMergedMiningCoinbaseTransaction"] = "0x".into();
                value["bitcoinMergedMiningMerkleProof"] = "0x".into();
                value.to_string()
            }
            ActorTrick::FakeUncles if call.method.starts_with("eth_getUncle") && honest != "null" => {
                again("eth_getBlockByNumber", json!(["0x20", true]))
            }
            _ => honest,
        })
    }

    fn change_logs(&self, honest: &str) -> String {
        let mut value: Value = serde_json::from_str(honest).unwrap();
        let logs = value["logs"].as_array_mut().unwrap();
        if self.trick == ActorTrick::OmittedLogs {
            logs.pop();
        }
        for log in logs {
            log["logIndex"] = format!("{:#x}", u64_of(text(log, "logIndex")) + 1).into();
        }
        value.to_string()
    }

    fn misplace(&self, honest: &str) -> String {
        let mut value: Value = serde_json::from_str(honest).unwrap();
        let number = before(&value["blockNumber"]);
        let call = UpstreamRequest::new("eth_getBlockByNumber", json!([number, true]).to_string());
        let block: Value =
            self.trunk.answer(&call).map_or(Value::Null, |block| serde_json::from_str(&block).unwrap());
        if block.is_object() {
            (value["blockNumber"], value["blockHash"]) = (block["number"].clone(), block["hash"].clone());
        }
        value.to_string()
    }

    fn cut(&self, call: &UpstreamRequest, params: &Value, head: u64, honest: String) -> String {
        let place = if call.method == "eth_getProof" { 2 } else { 0 };
        let above = params[place].as_str().filter(|p| p.len() < 20).is_some_and(|n| u64_of(n) > head);
        match call.method {
            "eth_blockNumber" => format!("\"{head:#x}\""),
            "eth_getBlockByNumber" | "eth_getProof" if above => "null".into(),
            _ => honest,
        }
    }

    /// The header with another's Bitcoin fields, and the hash that follows from that.
    fn copy_work(&self, params: &Value, honest: String) -> String {
        let call =
            UpstreamRequest::new("eth_getBlockByNumber", json!([before(&params[0]), true]).to_string());
        let Some(donor) = self.trunk.answer(&call).filter(|text| text != "null") else { return honest };
        let (donor, mut block): (Value, Value) =
            (serde_json::from_str(&donor).unwrap(), serde_json::from_str(&honest).unwrap());
        let mut header = header_from_json(&honest, None, &shapes::regtest).unwrap().into_header();
        let giver = header_from_json(&donor.to_string(), None, &shapes::regtest).unwrap().into_header();
        (header.bitcoin_header, header.merkle_proof, header.coinbase_tx) =
            (giver.bitcoin_header, giver.merkle_proof, giver.coinbase_tx);
        for field in ["Header", "MerkleProof", "CoinbaseTransaction"] {
            let name = format!("bitcoinMergedMining{field}");
            block[&name] = donor[&name].clone();
        }
        block["hash"] = header.hash().to_string().into();
        block.to_string()
    }
}

/// The block before, as a parameter; a hash stays.
fn before(number: &Value) -> Value {
    if number.as_str().is_some_and(|text| text.len() > 20) {
        return number.clone();
    }
    let number = number.as_str().map_or(1, u64_of);
    format!("{:#x}", number.saturating_sub(1)).into()
}

fn change_digit(text: &str, place: usize) -> String {
    let mut bytes = text.as_bytes().to_vec();
    bytes[place] = if bytes[place] == b'1' { b'2' } else { b'1' };
    String::from_utf8(bytes).unwrap()
}
