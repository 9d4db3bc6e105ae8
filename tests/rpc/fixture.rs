//! Arguments for every method of the table, on a development chain that has what they name.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use rootlight::consensus::bitcoin::{ServedBitcoin, double_sha256, pack_headers, reversed};
use rootlight::consensus::mining::BitcoinWork;
use rootlight::dev::{BitcoinBlocks, BitcoinTip, DevAccounts, DevConfig, Mining, SimulatedBitcoin};
use rootlight::light::bitcoin::{encode_coinbase_proofs, encode_packed_headers};
use rootlight::rpc::Caller;
use rootlight::types::{Block, BlockBody};
use serde_json::{Value, json};

use crate::support::arguments::{Named, reading};
use crate::support::dev::DevClient;

pub(crate) const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
pub(crate) const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
/// An address without an account.
pub(crate) const NOBODY: &str = "0x00000000000000000000000000000000000abcde";
/// Initialisation code of a contract that sets slot 0 to 42, writes a log with topic 0xaa, and returns 42.
pub(crate) const LOGGER: &str = "0x601680600b6000396000f3602a600055602a60005260aa60206000a160206000f3";
/// Runtime code that reverts with `Error("no")`.
pub(crate) const REVERTS: &str = "0x6308c379a060e01b60005260206004526002602452616e6f60f01b60445260646000fd";
/// Runtime code that reads slot 5, and returns the cell of a mapping in slot 3 whose key is the first argument.
pub(crate) const TOKEN: &str = "0x60055450600435600052600360205260406000205460005260206000f3";
/// The topic of the contract's logs.
pub(crate) const TOPIC: &str = "0x00000000000000000000000000000000000000000000000000000000000000aa";

/// A chain with mining on request: block 1 creates a contract, block 2 calls it and has an uncle, and a transaction
/// waits in the pool.
pub(crate) struct Fixture {
    pub(crate) dev: DevClient,
    pub(crate) contract: Value,
    pub(crate) created: Value,
    pub(crate) called: Value,
    pub(crate) block: Value,
    pub(crate) caller: Arc<Caller>,
}

/// A Bitcoin chain whose height is the number of blocks that were asked for.
#[derive(Debug)]
struct Bitcoin;

impl ServedBitcoin for Bitcoin {
    fn served_headers(&self, _: u32, _: u32) -> String {
        encode_packed_headers(0, 0, &pack_headers([]))
    }

    fn served_coinbases(&self, _: u32, _: u32) -> String {
        encode_coinbase_proofs(std::iter::empty())
    }
}

impl SimulatedBitcoin for Bitcoin {
    fn next(&self, commitment: &B256, time: u64) -> BitcoinWork {
        BitcoinWork::new(commitment, time as u32)
    }

    fn add_merge_mined(&self, _: &BitcoinWork) {}

    fn begin(&self, _: bool) {}

    fn end(&self, _: bool) {}

    fn mine(&self, blocks: &BitcoinBlocks) -> Result<BitcoinTip, String> {
        Ok(BitcoinTip { height: blocks.commitments.len() as u32, hash: B256::ZERO })
    }
}

fn solved(work: &Value, time: u32) -> BitcoinWork {
    let hash = work["blockHashForMergedMining"].as_str().unwrap().parse().unwrap();
    BitcoinWork::new(&hash, time).solved(U256::from(1), 1_000).unwrap()
}

/// The parameters of `mnr_submitBitcoinBlockTransactions` for a solution.
pub(crate) fn submission(work: &BitcoinWork) -> Value {
    let leaf = double_sha256(&work.coinbase);
    json!(["0x", hex::encode(work.header), hex::encode(&work.coinbase), hex::encode(reversed(&leaf))])
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
        let mut dev = DevClient::with(config, |chain| chain.set_bitcoin(Arc::new(Bitcoin)));
        let created =
            dev.get("eth_sendTransaction", json!([{"from": ALICE, "data": LOGGER, "gas": "0x30d40"}]));
        let work = dev.get("mnr_getWork", json!([]));
        for time in [1_800_000_000, 1_800_000_001] {
            dev.get("mnr_submitBitcoinBlockTransactions", submission(&solved(&work, time)));
        }
        let contract = dev.get("eth_getTransactionReceipt", json!([created]))["contractAddress"].clone();
        let called =
            dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": contract, "gas": "0x186a0"}]));
        dev.get("evm_mine", json!([]));
        let block = dev.get("eth_getBlockByNumber", json!(["0x2"]))["hash"].clone();
        dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "value": "0x1"}]));
        let caller = Arc::new(Caller::new(1, 1).with_subscriptions(8));
        Self { dev, contract, created, called, block, caller }
    }

    /// The answer to a caller that receives notifications.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.dev.ask_over(&self.caller, method, params)
    }

    /// A signed transaction that the pool takes.
    pub(crate) fn signed(&mut self) -> Value {
        self.dev
            .get("eth_signTransaction", json!([{"from": BOB, "to": ALICE, "value": "0x1", "gas": "0x5208"}]))
    }

    /// A new solution of the present work.
    pub(crate) fn solution(&mut self) -> BitcoinWork {
        let work = self.dev.get("mnr_getWork", json!([]));
        solved(&work, 1_800_000_100)
    }

    fn named(&mut self) -> Named {
        let contract = self.contract.clone();
        Named {
            sender: json!(ALICE),
            block: (json!("0x2"), self.block.clone()),
            transaction: self.called.clone(),
            signed: self.signed(),
            encoded: self.dev.get("debug_getRawBlock", json!(["0x2"])),
            state: json!("latest"),
            call: json!([{"from": BOB, "to": contract}, "latest", {NOBODY: {"code": REVERTS}}]),
            logs: json!({"fromBlock": "0x1", "toBlock": "latest", "address": contract, "topics": [TOPIC]}),
            contract,
        }
    }

    /// Arguments for all parameters of a method, in the order of the table.
    pub(crate) fn arguments(&mut self, method: &str) -> Value {
        if let Some(arguments) = reading(method, &self.named()) {
            return arguments;
        }
        let word = format!("0x{}", "00".repeat(32));
        if method.ends_with("TransactionSync") {
            // The receipt is that of a block.
            self.dev.get("evm_setAutomine", json!([true]));
        }
        match method {
            "eth_getFilterChanges" | "eth_getFilterLogs" | "eth_uninstallFilter" => {
                let filter = self.arguments("eth_newFilter");
                json!([self.ask("eth_newFilter", &filter)["result"]])
            }
            "rootlight_mineBitcoin" => json!(["0x2", {"tag": "kin", "parent": "0x0"}]),
            "eth_subscribe" => json!(["newHeads"]),
            "eth_unsubscribe" => json!([self.ask("eth_subscribe", &json!(["newHeads"]))["result"]]),
            "eth_sendRawTransaction" | "eth_sendRawTransactionSync" => json!([self.signed()]),
            "eth_sendTransaction"
            | "eth_sendTransactionSync"
            | "eth_sendUnsignedTransaction"
            | "eth_signTransaction" => {
                json!([{"from": BOB, "to": ALICE, "gas": "0x5208", "gasPrice": "0x3938700", "value": "0x1", "data": "0x"}])
            }
            "eth_sign" => json!([BOB, "0xdeadbeef"]),
            "personal_sign" => json!(["0xdeadbeef", BOB]),
            "personal_ecRecover" => {
                json!(["0xdeadbeef", self.dev.get("eth_sign", json!([BOB, "0xdeadbeef"]))])
            }
            "eth_signTypedData_v4" => {
                let types = json!({"EIP712Domain": [], "Note": [{"name": "text", "type": "string"}]});
                let message = json!({"text": "a"});
                json!([BOB, {"types": types, "primaryType": "Note", "domain": {}, "message": message}])
            }
            "eth_submitWork" => json!(["0x0102030405060708", word, word]),
            "eth_submitHashrate" => json!([word, word]),
            "mnr_submitBitcoinBlock" => {
                let work = self.solution();
                json!([hex::encode([&work.header[..], &[1], &work.coinbase].concat())])
            }
            "mnr_submitBitcoinBlockTransactions" => submission(&self.solution()),
            "mnr_submitBitcoinBlockPartialMerkle" => {
                let work = self.solution();
                let leaf = double_sha256(&work.coinbase);
                json!(["0x", hex::encode(work.header), hex::encode(&work.coinbase), hex::encode(leaf), "1"])
            }
            "personal_importRawKey" => json!(["01".repeat(32), "pass"]),
            "personal_newAccount" => json!(["pass"]),
            "personal_newAccountWithSeed" => json!(["seed"]),
            "personal_dumpRawKey" | "personal_lockAccount" | "anvil_removePoolTransactions" => json!([BOB]),
            "personal_unlockAccount" | "personal_sendTransaction" => {
                let account = self.dev.get("personal_newAccount", json!(["pass"]));
                self.dev.get("anvil_setBalance", json!([account, "0xde0b6b3a7640000"]));
                if method == "personal_unlockAccount" {
                    return json!([account, "pass", "0x3e8"]);
                }
                json!([{"from": account, "to": ALICE, "value": "0x1"}, "pass"])
            }
            "evm_increaseTime" | "anvil_setBlockTimestampInterval" | "anvil_setIntervalMining" => {
                json!(["0x5"])
            }
            "evm_revert" => json!([self.dev.get("evm_snapshot", json!([]))]),
            "evm_setTime" | "evm_setNextBlockTimestamp" => json!([2_000_000_000_u64]),
            "evm_setIntervalMining" | "hardhat_setBlockTimestampInterval" => json!([1_000]),
            "evm_setAutomine"
            | "anvil_setAutomine"
            | "anvil_setLoggingEnabled"
            | "anvil_autoImpersonateAccount" => json!([true]),
            "anvil_dealERC20" | "anvil_setERC20Allowance" => {
                self.dev.get("anvil_setCode", json!([NOBODY, TOKEN]));
                match method {
                    "anvil_dealERC20" => json!([BOB, NOBODY, "0x5"]),
                    _ => json!([BOB, ALICE, NOBODY, "0x5"]),
                }
            }
            "anvil_loadState" => json!([self.dev.get("anvil_dumpState", json!([]))]),
            "anvil_reorg" => json!(["0x1", [[{"from": BOB, "to": ALICE, "value": "0x1"}, "0x0"]]]),
            "evm_setBlockGasLimit" => json!(["0x989680"]),
            "anvil_setMinGasPrice" | "hardhat_setMinGasPrice" => json!(["0x1"]),
            "anvil_addBalance" | "anvil_setBalance" | "hardhat_setBalance" | "anvil_setNonce"
            | "hardhat_setNonce" => json!([BOB, "0x5"]),
            "anvil_setCode" | "hardhat_setCode" => json!([NOBODY, "0x00"]),
            "anvil_setCoinbase"
            | "hardhat_setCoinbase"
            | "anvil_impersonateAccount"
            | "hardhat_impersonateAccount"
            | "anvil_stopImpersonatingAccount"
            | "hardhat_stopImpersonatingAccount" => json!([NOBODY]),
            "anvil_setStorageAt" => json!([NOBODY, "0x0", word]),
            "anvil_dropTransaction" | "hardhat_dropTransaction" => json!([word]),
            "sco_banAddress" | "sco_unbanAddress" => json!(["192.0.2.7"]),
            _ => json!([]),
        }
    }
}

/// A canonical block as it is sent to another node.
pub(crate) fn block_of(dev: &mut DevClient, number: u64) -> Block {
    let view = dev.chain().view();
    let header = view.headers().by_number(number).unwrap().clone();
    let stored = view.block(&header.hash()).unwrap();
    Block {
        body: BlockBody { transactions: stored.body.transactions().to_vec() },
        uncles: view.uncles(&header.hash()).unwrap().headers().iter().map(|u| u.header().clone()).collect(),
        header: header.header().clone(),
    }
}
