//! A block changed in any way, mined again or not, against the chain it was made for: refused for a reason, and then
//! nothing has changed, or taken in with exactly the roots its header names, the same way twice.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use alloy_primitives::{Address, B256, U256};
use rootlight::consensus::Network;
use rootlight::consensus::body::{root_format, transactions_root};
use rootlight::consensus::mining::mine;
use rootlight::dev::{DevChain, DevConfig, Mining, PrivateKey, cow_keys};
use rootlight::exec::GenesisBlock;
use rootlight::local::{ImportError, LocalChain};
use rootlight::types::json::{JsonBlock, block_from_json, header_from_json};
use rootlight::types::{Block, BlockBody, Header, RawUint, SignedUint, Transaction, uncles_hash};
use serde_json::Value;

use crate::input::{Input, change};

/// Blocks of the recording that are imported one after the other: transactions of every kind, uncles, REMASC's
/// first payments.
const RECORDED: usize = 40;
/// Nonces tried; regtest needs three on average.
const ATTEMPTS: u32 = 256;

/// A block and the chain that ends below it.
struct ImportCase {
    below: LocalChain,
    block: Block,
}

/// Blocks mined here, then those of the recorded chain where it is at hand.
fn stages() -> &'static [ImportCase] {
    static STAGES: OnceLock<Vec<ImportCase>> = OnceLock::new();
    STAGES.get_or_init(|| {
        let shared = std::env::var_os("ROOTLIGHT_SHARED").map(PathBuf::from);
        let shared = shared.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"));
        let mut all = staged(mined());
        all.extend(staged(recorded(&shared.join("vectors/chain"))));
        all
    })
}

fn staged(blocks: Vec<Block>) -> Vec<ImportCase> {
    let GenesisBlock { header, state } = GenesisBlock::regtest();
    let mut chain =
        LocalChain::new(Arc::new(Network::regtest()), header, state, None).expect("regtest's own genesis");
    let stage = |block: Block| {
        let stage = ImportCase { below: chain.clone(), block: block.clone() };
        chain.import(block, None).expect("a valid block");
        stage
    };
    blocks.into_iter().map(stage).collect()
}

/// Transfers, a contract, calls of it and of native contracts, mined by a development chain.
fn mined() -> Vec<Block> {
    let config = DevConfig { mining: Mining::Manual, ..DevConfig::reference() };
    let (keys, mut chain) = (cow_keys(), DevChain::new(config).expect("the reference's genesis"));
    // Stores what it is sent, logs it and pays it back.
    let init = b"\x60\x0c\x60\x0c\x5f\x39\x60\x0c\x5f\xf3\x5b\x5b\x5f\x35\x60\x01\x55\x5f\x35\x5f\x52\x60\x20\x5f\xa0";
    for number in 1..16u64 {
        let key = &keys[number as usize % 3];
        let contract = keys[1].address().create(0);
        let native = |low: u64| Address::left_padding_from(&low.to_be_bytes());
        let (to, data) = match number % 5 {
            1 => (None, init.to_vec()),
            2 => (Some(contract), vec![number as u8; 32]),
            3 => (Some(native(0x0100_0006 + number)), vec![number as u8; 36]),
            _ => (Some(Address::repeat_byte(number as u8)), Vec::new()),
        };
        for price in 0..=number % 2 {
            let transaction = Transaction {
                nonce: RawUint::from(chain.next_nonce(&key.address())),
                gas_price: RawUint::from(price),
                gas_limit: RawUint::from(200_000u64),
                to,
                value: U256::from(number),
                data: data.clone().into(),
                v: 0,
                r: U256::ZERO,
                s: U256::ZERO,
            };
            let signed = key.sign_transaction(transaction, 33).expect("a small chain id");
            chain.submit(signed, key.address(), 1_700_000_000 + 30 * number).expect("a good transaction");
        }
        chain.mine(1_700_000_000 + 30 * number).expect("it is mined");
    }
    let view = chain.view();
    let block = |number| {
        let header = view.headers().by_number(number).expect("it was mined");
        Block {
            header: header.header().clone(),
            body: BlockBody {
                transactions: view.block(&header.hash()).expect("stored").body.transactions().to_vec(),
            },
            uncles: Vec::new(),
        }
    };
    (1..16).map(block).collect()
}

/// What a node answered to one method, each as text.
fn answers(path: &Path, method: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| line.contains(method));
    let values = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let results = values.map(|value| value["response"]["result"].to_string());
    results.filter(|result| result.starts_with('{')).collect()
}

/// The first blocks of the recorded chain; none without it.
fn recorded(folder: &Path) -> Vec<Block> {
    let network = Network::regtest();
    let shape_of = |number| network.header_shape(number);
    let block = |text: &String| block_from_json(text, None, &shape_of, network.chain_id).expect("a block");
    let mut blocks: Vec<JsonBlock> =
        answers(&folder.join("blocks.jsonl"), "eth_getBlockByNumber").iter().map(block).collect();
    blocks.sort_by_key(|block| block.header.number);
    blocks.dedup_by_key(|block| block.header.number);
    let mut uncles: HashMap<B256, Header> = HashMap::new();
    for text in answers(&folder.join("uncles.jsonl"), "eth_getUncle") {
        let uncle = header_from_json(&text, None, &shape_of).expect("an uncle");
        uncles.insert(uncle.hash(), uncle.into_header());
    }
    let blocks = blocks.into_iter().skip(1).take(RECORDED);
    let whole = |block: JsonBlock| Block {
        uncles: block.uncles.iter().filter_map(|hash| uncles.get(hash).cloned()).collect(),
        body: BlockBody { transactions: block.transactions.into_full().expect("whole transactions") },
        header: block.header.into_header(),
    };
    blocks.map(whole).collect()
}

/// A stage, changes of its block, and whether it is mined again.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let stages = stages();
    let stage = &stages[input.below(stages.len())];
    let network = stage.below.view().network();
    let choices = input.byte();
    let mut block = stage.block.clone();
    if choices % 8 == 7 {
        // Any bytes, or the block's own with changes.
        let mut bytes = block.encode();
        while !input.is_empty() {
            change(&mut bytes, &mut input);
        }
        match Block::decode(&bytes, &|number| network.header_shape(number)) {
            Ok(decoded) => block = decoded,
            Err(_) => return,
        }
    } else {
        for _ in 0..=choices / 8 % 3 {
            alter(&mut block, &mut input, stages);
        }
        if choices % 8 != 0 {
            let again = again(&block, choices, &stage.below);
            block = match again {
                Some(mined) => mined,
                None => return,
            };
        }
    }
    judge(stage, block);
}

fn judge(stage: &ImportCase, block: Block) {
    let before = &stage.below;
    let (hash, root) = (block.header.hash(), block.header.state_root);
    let known = before.view().headers().by_hash(&hash).is_some();
    let mut chain = before.clone();
    match chain.import(block.clone(), None) {
        Ok(imported) => {
            assert_eq!(imported.header.hash(), hash);
            let state = chain.view().state(&hash).expect("it was taken in");
            assert_eq!(state.root(), root);
            let mut other = before.clone();
            other.import(block, None).expect("what is valid stays valid");
            assert_eq!(other.view().state(&hash).map(|state| state.root()), Some(root));
            assert_eq!(receipts(&other, &hash), receipts(&chain, &hash));
        }
        Err(error) => {
            assert!(!known && (hash != stage.block.header.hash() || block != stage.block), "{error}");
            assert!(!matches!(error, ImportError::NoState { .. }), "every state is kept");
            unchanged(before, &chain, &hash);
            // The chain goes on as ever.
            chain.import(stage.block.clone(), None).expect("the block itself");
        }
    }
}

fn receipts(chain: &LocalChain, hash: &B256) -> Vec<rootlight::types::Receipt> {
    chain.view().block(hash).expect("stored").receipts.receipts().to_vec()
}

fn unchanged(before: &LocalChain, after: &LocalChain, refused: &B256) {
    assert_eq!(before.head().hash(), after.head().hash());
    let (one, other) = (before.view(), after.view());
    assert_eq!(one.headers().len(), other.headers().len());
    assert_eq!(one.head_state().root(), other.head_state().root());
    for number in 0..=before.head().number + 1 {
        assert_eq!(one.at_height(number), other.at_height(number));
    }
    assert!(before.view().block(refused).is_some() == other.block(refused).is_some());
}

/// One change that leaves a block that can be written.
fn alter(block: &mut Block, input: &mut Input<'_>, stages: &[ImportCase]) {
    let kind = input.byte() % 25;
    let byte = input.byte();
    let other = &stages[usize::from(byte) % stages.len()].block;
    let header = &mut block.header;
    match kind {
        0 => header.parent_hash = other.header.parent_hash,
        1 => header.uncles_hash = B256::repeat_byte(byte),
        2 => header.coinbase = Some(Address::repeat_byte(byte)),
        3 => header.state_root = other.header.state_root,
        4 => header.receipts_root = other.header.receipts_root,
        5 => header.logs_bloom = other.header.logs_bloom,
        6 => header.difficulty = SignedUint::from(u64::from(byte)),
        7 => header.number = header.number.wrapping_add(u64::from(byte)).wrapping_sub(1),
        8 => header.gas_limit = RawUint::from(number(input)),
        9 => header.gas_used = number(input),
        10 => header.timestamp = header.timestamp.wrapping_add(u64::from(byte)).wrapping_sub(9),
        11 => header.extra_data = vec![byte; usize::from(input.byte())].into(),
        12 => header.paid_fees = U256::from(number(input)),
        13 => header.minimum_gas_price = SignedUint::from(u64::from(byte)),
        14 => header.uncle_count = u32::from(byte),
        15 => header.edges = (0..byte % 18).map(|_| u16::from(input.byte())).collect(),
        16 => header.base_event = vec![byte; usize::from(input.byte())].into(),
        17 => header.umm_root = vec![byte; usize::from(byte % 3) * 10].into(),
        18 => block.uncles.push(other.header.clone()),
        19 => drop(block.uncles.pop()),
        _ => alter_transactions(&mut block.body.transactions, kind, input, other),
    }
}

fn number(input: &mut Input<'_>) -> u64 {
    let len = input.below(9);
    input.take(len).iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn alter_transactions(all: &mut Vec<Transaction>, kind: u8, input: &mut Input<'_>, other: &Block) {
    let at = input.below(all.len());
    if at >= all.len() {
        return;
    }
    match kind {
        20 => drop(all.remove(at)),
        21 => all.insert(at, other.body.transactions[0].clone()),
        22 => {
            let with = input.below(all.len());
            all.swap(at, with);
        }
        23 => {
            let mut bytes = all[at].encode();
            change(&mut bytes, input);
            if let Ok(changed) = Transaction::decode(&bytes) {
                all[at] = changed;
            }
        }
        // Signed by an account that may send it.
        _ => {
            let keys: Vec<PrivateKey> = cow_keys();
            let key = &keys[input.below(keys.len())];
            let mut transaction = all[at].clone();
            transaction.nonce = RawUint::from(u64::from(input.byte() % 8));
            transaction.gas_price = RawUint::from(u64::from(input.byte() % 4));
            transaction.gas_limit = RawUint::from(number(input));
            let length = input.below(40);
            transaction.data = input.take(length).to_vec().into();
            all[at] = key.sign_transaction(transaction, 33).expect("a small chain id");
        }
    }
}

/// The block with the hashes of its parts put right, mined again: what is wrong with it lies deeper.
fn again(block: &Block, choices: u8, chain: &LocalChain) -> Option<Block> {
    let Block { mut header, body, uncles } = block.clone();
    let network = chain.view().network();
    header.shape = network.header_shape(header.number);
    if choices & 1 == 1 {
        header.transactions_root = transactions_root(&body.transactions, root_format(network, header.number));
    }
    if choices & 2 == 2 {
        header.uncles_hash = uncles_hash(&uncles);
        header.uncle_count = uncles.len() as u32;
    }
    let data = chain.view().headers().fork_detection_after(&header.parent_hash).unwrap_or_default();
    let sealed = mine(header, &data, network, ATTEMPTS)?;
    Some(Block { header: sealed.into_header(), body, uncles })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_inputs() {
        let mut state = 1u64;
        for _ in 0..1000 {
            let bytes: Vec<u8> = (0..60)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 33) as u8
                })
                .collect();
            check(&bytes);
        }
    }

    #[test]
    fn every_block_itself_is_taken_in() {
        for stage in stages() {
            judge(stage, stage.block.clone());
        }
    }
}
