//! A proven balance and the evidence for it, as the light client of the command answers them.

use alloy_primitives::utils::format_ether;
use alloy_primitives::{Address, B256, U256};
use rootlight::consensus::Network;
use serde_json::{Value, json};

use super::args::BlockChoice;
use crate::service_call::{ask_all, quantity};
use rootlight_node::light::LightService;

/// A balance that is proven from the state root of a verified block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BalanceAnswer {
    pub(super) account: Address,
    /// In wei.
    pub(super) balance: U256,
    /// The block after which the account has the balance.
    pub(super) number: u64,
    pub(super) hash: B256,
    /// Time of the block, in seconds since 1970.
    pub(super) time: u64,
    pub(super) basis: AnswerBasis,
}

/// The basis of an answer, as of `rootlight_verification` and `rootlight_checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnswerBasis {
    /// How far the block is verified.
    pub(super) level: String,
    /// Blocks on top of the block.
    pub(super) depth: u64,
    /// How the client started: `checkpoint` if a block is trusted, else another word, such as `work` or `window`.
    pub(super) start: String,
    /// Number and hash of the block from which the client verifies: a trusted block, or one that work supports.
    pub(super) first: (u64, B256),
    /// Without a trusted block: the least work that a forgery needs, in hashes.
    pub(super) attack_cost: Option<U256>,
    /// Bitcoin's evidence above the block, if its chain is followed.
    pub(super) bitcoin: Option<BitcoinBasis>,
}

/// Bitcoin's evidence above a block, as `rootlight_verification` states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BitcoinBasis {
    /// `held`, `weak`, `contested` or `unavailable`.
    pub(super) verdict: String,
    /// Why the verdict is not `held`.
    pub(super) reason: Option<String>,
    /// Bitcoin blocks that commit to the block or to one above it.
    pub(super) blocks: u64,
    /// Seconds since the newest of these Bitcoin blocks was mined.
    pub(super) age: Option<u64>,
    /// How many of the newest Bitcoin blocks have a tag (the merge-mining mark of Rootstock in a coinbase) of this chain, and
    /// how many a tag of another chain.
    pub(super) tags: (u64, u64),
}

impl BitcoinBasis {
    fn read(status: &Value) -> Option<Self> {
        let tags = |name: &str| status["tags"][name].as_u64();
        Some(Self {
            verdict: status["verdict"].as_str()?.to_owned(),
            reason: status["reason"].as_str().map(str::to_owned),
            blocks: status["blocksAbove"].as_u64()?,
            age: status["newestAge"].as_u64(),
            // A `kin` tag names a block that is not shown, such as an uncle, and agrees with this chain otherwise.
            tags: (tags("own")?.saturating_add(tags("kin")?), tags("foreign")?),
        })
    }

    fn to_json(&self) -> Value {
        json!({
            "verdict": self.verdict,
            "reason": self.reason,
            "blocksAbove": self.blocks,
            "newestAgeSeconds": self.age,
            "tags": { "thisChain": self.tags.0, "another": self.tags.1 },
        })
    }
}

/// Why there is no proven balance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoBalance {
    /// The message of the client. A later question may succeed.
    Unproven(String),
    /// The verified chain has no such block.
    NoBlock,
}

/// Asks a light client once for a balance, and for the evidence for it.
pub(super) async fn ask_balance(
    service: &LightService,
    account: Address,
    block: BlockChoice,
) -> Result<BalanceAnswer, NoBalance> {
    let (account_text, block) = (format!("{account:#x}"), block.to_string());
    let calls = [
        ("eth_getBlockByNumber", json!([block, false])),
        ("rootlight_verification", json!([block])),
        ("rootlight_checkpoint", json!([])),
        ("eth_getBalance", json!([account_text, block])),
    ];
    let mut answers = ask_all(service, &calls).await.into_iter();
    // A missing answer cannot occur: there is one for each call.
    let mut next = || answers.next().unwrap_or(Err(String::new())).map_err(NoBalance::Unproven);
    let (block, verification, checkpoint) = (next()?, next()?, next()?);
    if block.is_null() {
        return Err(NoBalance::NoBlock);
    }
    let balance = next()?;
    let malformed = || NoBalance::Unproven("an answer has another form than expected".into());
    read(account, &balance, &block, &verification, &checkpoint).ok_or_else(malformed)
}

/// Reads the results of the four requests; `None` if a member is missing or malformed.
fn read(
    account: Address,
    balance: &Value,
    block: &Value,
    verification: &Value,
    checkpoint: &Value,
) -> Option<BalanceAnswer> {
    let as_u256 = |value: &Value| value.as_str().and_then(|text| text.parse::<U256>().ok());
    let as_hash = |value: &Value| value.as_str().and_then(|text| text.parse::<B256>().ok());
    let basis = AnswerBasis {
        level: verification["level"].as_str()?.to_owned(),
        depth: quantity(&verification["depth"])?,
        start: verification["start"].as_str()?.to_owned(),
        first: (quantity(&checkpoint["number"])?, as_hash(&checkpoint["hash"])?),
        attack_cost: as_u256(&verification["attackCost"]),
        bitcoin: BitcoinBasis::read(&verification["bitcoin"]),
    };
    Some(BalanceAnswer {
        account,
        balance: as_u256(balance)?,
        number: quantity(&block["number"])?,
        hash: as_hash(&block["hash"])?,
        time: quantity(&block["timestamp"])?,
        basis,
    })
}

/// Measures of a run of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunFigures {
    /// Names of the sources that gave proofs of state.
    pub(super) provers: Vec<String>,
    pub(super) milliseconds: u64,
    /// Bytes of all responses of sources, as JSON text.
    pub(super) bytes: u64,
    /// The present, in seconds since 1970.
    pub(super) now: u64,
}

impl BalanceAnswer {
    /// The balance with 18 decimals.
    pub(super) fn rbtc(&self) -> String {
        format_ether(self.balance)
    }

    /// The JSON object that `--json` prints.
    pub(super) fn to_json(&self, network: &Network, run: &RunFigures) -> Value {
        let basis = &self.basis;
        json!({
            "network": network.name,
            "chainId": network.chain_id,
            "account": format!("{:#x}", self.account),
            "rbtc": self.rbtc(),
            "wei": self.balance.to_string(),
            "block": {
                "number": self.number,
                "hash": self.hash,
                "timestamp": self.time,
                "ageSeconds": run.now.saturating_sub(self.time),
            },
            "level": basis.level,
            "depth": basis.depth,
            "start": basis.start,
            "firstBlock": { "number": basis.first.0, "hash": basis.first.1 },
            "attackCost": basis.attack_cost.map(|cost| cost.to_string()),
            "bitcoin": basis.bitcoin.as_ref().map(BitcoinBasis::to_json),
            "provenBy": run.provers,
            "milliseconds": run.milliseconds,
            "receivedBytes": run.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_without_a_member_are_not_read() {
        let account = Address::repeat_byte(7);
        let hash = format!("{}", B256::repeat_byte(1));
        let block = json!({ "number": "0x5", "hash": hash, "timestamp": "0x64" });
        let proof = json!({ "level": "verified", "depth": "0x2", "start": "work", "attackCost": "0xff" });
        let first = json!({ "number": "0x1", "hash": hash });
        let answer = read(account, &json!("0xde0b6b3a7640001"), &block, &proof, &first).unwrap();
        assert_eq!(answer.rbtc(), "1.000000000000000001");
        assert_eq!((answer.number, answer.time, answer.basis.depth), (5, 100, 2));
        assert_eq!(answer.basis.attack_cost, Some(U256::from(255)));
        for member in ["number", "hash", "timestamp"] {
            let mut less = block.clone();
            less[member] = Value::Null;
            assert_eq!(read(account, &json!("0x1"), &less, &proof, &first), None, "{member}");
        }
        for member in ["level", "depth", "start"] {
            let mut less = proof.clone();
            less[member] = Value::Null;
            assert_eq!(read(account, &json!("0x1"), &block, &less, &first), None, "{member}");
        }
        assert_eq!(read(account, &Value::Null, &block, &proof, &first), None);
    }
}
