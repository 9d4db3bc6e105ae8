//! Compares the lists to which the reference node assigned pairs of conflicting transactions with the lists
//! of blocks built here from the same transactions.

use crate::support;

use std::collections::BTreeMap;
use std::path::Path;

use flate2::read::GzDecoder;
use rootlight::consensus::Network;
use rootlight::exec::{BlockEnvironment, BuiltBlock, TransactionCandidate, build_block};
use rootlight::types::{B256, Transaction};
use serde::Deserialize;
use support::executed::Executed;
use support::recording::{RecordedBlock, RecordedBranch, Recording};
use support::shared;

const FOLDER: &str = "vectors/execution/lists_chain";

/// Blocks whose lists depend on a transaction that the reference node left out, because its nonce was too
/// high once another one did not fit. While building a block, the reference node counts what such a
/// transaction read as read by the next one. This builder does not, and the rules do not require it.
const LEFT_OUT: [u64; 4] = [222, 224, 228, 230];

/// Two transactions, with the recorded list of each.
#[derive(Deserialize)]
struct Pair {
    block: u64,
    first: SideHash,
    second: SideHash,
    opcode: String,
    variant: String,
    frame: String,
    lists: [usize; 2],
}

#[derive(Deserialize)]
struct SideHash {
    hash: B256,
}

#[derive(Deserialize)]
struct Pairs {
    pairs: Vec<Pair>,
}

fn pairs(shared: &Path) -> Vec<Pair> {
    let file = std::fs::File::open(shared.join(FOLDER).join("pairs.json.gz")).unwrap();
    let pairs: Pairs = serde_json::from_reader(GzDecoder::new(file)).unwrap();
    pairs.pairs
}

/// The transactions of a block in the order of the reference node's pool: by descending gas price.
fn candidates(block: &RecordedBlock, network: &Network) -> Vec<TransactionCandidate> {
    let all = block.transactions.iter().filter(|transaction| !transaction.is_remasc());
    let sender = |transaction: &Transaction| transaction.recover_sender(network.chain_id).unwrap();
    let mut all: Vec<TransactionCandidate> =
        all.map(|one| TransactionCandidate { transaction: one.clone(), sender: sender(one) }).collect();
    all.sort_by_key(|candidate| std::cmp::Reverse(candidate.transaction.gas_price.value()));
    all
}

/// The list of each transaction: parallel lists are counted from 0, the sequential list is 2.
fn lists(transactions: &[Transaction], edges: &[u16]) -> BTreeMap<B256, usize> {
    let list = |index| edges.iter().position(|edge| index < usize::from(*edge)).unwrap_or(2);
    transactions.iter().enumerate().map(|(index, transaction)| (transaction.hash(), list(index))).collect()
}

fn rebuild(chain: &Executed, number: usize) -> BuiltBlock {
    let Recording { network, blocks, .. } = &chain.recording;
    let block = &blocks[number];
    let branch = RecordedBranch::canonical(&chain.recording);
    let template = BlockEnvironment::from(block.header.header());
    let parent = &chain.states[number - 1];
    build_block(network, parent, &template, &candidates(block, network), &branch).unwrap()
}

#[test]
fn blocks_built_here_have_the_lists_of_the_reference() {
    let Some(shared) = shared() else { return };
    let recording = Recording::load(&shared.join(FOLDER), Network::regtest());
    let chain = Executed::of(&shared, recording);
    let mut pairs_of: BTreeMap<u64, Vec<Pair>> = BTreeMap::new();
    for pair in pairs(&shared) {
        pairs_of.entry(pair.block).or_default().push(pair);
    }
    let (mut equal, mut whole, mut different) = (0, 0, Vec::new());
    for (number, block) in chain.recording.blocks.iter().enumerate().skip(1) {
        let built = rebuild(&chain, number);
        assert!(built.dropped.is_empty(), "block {number}: {:?}", built.dropped);
        let ours = lists(&built.transactions, &built.edges);
        for pair in pairs_of.remove(&(number as u64)).unwrap_or_default() {
            let found = [ours[&pair.first.hash], ours[&pair.second.hash]];
            if found == pair.lists {
                equal += 1;
                continue;
            }
            let Pair { opcode, variant, frame, lists, .. } = pair;
            different.push((number as u64, format!("{opcode} {variant} {frame}: {lists:?}, {found:?}")));
        }
        let as_recorded = built.edges == block.header.edges && built.transactions == block.transactions;
        whole += usize::from(as_recorded);
        assert!(as_recorded || LEFT_OUT.contains(&(number as u64)), "block {number}: {different:#?}");
    }
    let blocks: Vec<u64> = different.iter().map(|(block, _)| *block).collect();
    assert_eq!(blocks, LEFT_OUT, "{different:#?}");
    assert!(pairs_of.is_empty(), "every pair's block was built");
    println!("lists_chain: {equal} pairs as recorded, {} not; {whole} whole blocks", different.len());
    assert_eq!((equal, whole), (1_359, 229));
}
