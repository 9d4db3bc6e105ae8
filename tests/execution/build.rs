//! Building blocks. Executing a built block gives the same result, in any order of the candidates.

use crate::support;

use std::path::Path;

use rootlight::consensus::Network;
use rootlight::consensus::body::{root_format, transactions_root};
use rootlight::exec::{
    BlockEnvironment, BlockInput, BuiltBlock, NoObserver, TransactionCandidate, TxError, build_block,
    execute_block,
};
use rootlight::trie::Trie;
use rootlight::types::Header;
use support::recording::{RecordedBlock, RecordedBranch, Recording, genesis_state, regtest_v0};
use support::shared;

fn candidates(block: &RecordedBlock, network: &Network) -> Vec<TransactionCandidate> {
    let all = block.transactions.iter().filter(|transaction| !transaction.is_remasc());
    let with_sender = all.map(|transaction| TransactionCandidate {
        transaction: transaction.clone(),
        sender: transaction.recover_sender(network.chain_id).unwrap(),
    });
    with_sender.collect()
}

/// The header of a built block, with the fields that execution reads.
fn header_of(built: &BuiltBlock, block: &RecordedBlock, network: &Network) -> Header {
    let mut header = block.header.header().clone();
    header.edges = built.edges.clone();
    header.transactions_root = transactions_root(&built.transactions, root_format(network, header.number));
    header
}

/// Builds a block from these candidates and executes it.
fn build(
    recording: &Recording,
    parent: &Trie,
    block: &RecordedBlock,
    from: &[TransactionCandidate],
) -> BuiltBlock {
    let network = &recording.network;
    let branch = RecordedBranch::canonical(recording);
    let template = BlockEnvironment::from(block.header.header());
    let built = build_block(network, parent, &template, from, &branch).unwrap();
    let header = header_of(&built, block, network);
    let input = BlockInput {
        header: &header,
        transactions: &built.transactions,
        senders: Some(&built.executed.senders),
    };
    let executed = execute_block(network, parent, &input, &branch, &mut NoObserver)
        .unwrap_or_else(|error| panic!("block {}: {error}", header.number));
    assert_eq!(executed.receipts, built.executed.receipts, "block {}", header.number);
    assert_eq!(executed.state.root(), built.executed.state.root(), "block {}", header.number);
    assert_eq!(executed.gas_used, built.executed.gas_used);
    assert_eq!(executed.paid_fees, built.executed.paid_fees);
    assert_eq!(executed.logs_bloom, built.executed.logs_bloom);
    assert_eq!(executed.contract_addresses, built.executed.contract_addresses);
    built
}

fn rebuilt(folder: &str, network: Network) {
    let Some(shared) = shared() else { return };
    let recording = Recording::load(&shared.join("vectors").join(Path::new(folder)), network);
    let mut state = genesis_state(&shared, &recording.network);
    let (mut same_edges, mut with_edges) = (0, 0);
    for block in &recording.blocks[1..] {
        let from = candidates(block, &recording.network);
        let built = build(&recording, &state, block, &from);
        assert!(built.dropped.is_empty(), "block {}: {:?}", block.header.number, built.dropped);
        with_edges += usize::from(!block.header.edges.is_empty());
        same_edges += usize::from(!block.header.edges.is_empty() && built.edges == block.header.edges);
        // In reverse order the nonces of a sender are out of order, so some candidates are dropped.
        let backwards: Vec<TransactionCandidate> = from.iter().rev().cloned().collect();
        let other = build(&recording, &state, block, &backwards);
        assert!(other.dropped.iter().all(|(_, error)| matches!(error, TxError::Nonce { .. })));
        let input = BlockInput { header: &block.header, transactions: &block.transactions, senders: None };
        let branch = RecordedBranch::canonical(&recording);
        state = execute_block(&recording.network, &state, &input, &branch, &mut NoObserver).unwrap().state;
    }
    println!("{folder}: edges as recorded in {same_edges} of {with_edges} blocks with lists");
}

#[test]
fn recorded_blocks_are_built_with_parallel_lists() {
    rebuilt("chain", Network::regtest());
}

#[test]
fn recorded_blocks_are_built_with_one_list() {
    rebuilt("chain_v0", regtest_v0());
}
