//! Checks estimates with the recorded transactions on their parent's state: they succeed with the estimate as
//! gas limit, and fail with one percent less.

use crate::support;

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, U256};
use rootlight::consensus::Network;
use rootlight::exec::{
    Ancestry as _, BlockContext, BlockEnvironment, BlockHashes, CallContext, CallMessage, CallStop, Estimate,
    IndexedTransaction, OnUnsimulated, RunLimits, TransactionList, estimate,
};
use rootlight::state::{StateOverride, World};
use rootlight::trie::Trie;
use rootlight::types::{Header, RawUint, SealedHeader, Transaction};
use support::executed::Executed;
use support::recording::RecordedBranch;
use support::shared;

/// Hashes of transactions that can succeed with less gas: their contract calls a native contract, and continues if that runs out
/// of gas.
const SWALLOWS: [&str; 3] = [
    "0xd08d6f771d0629a9fb6653dad8b4b2857946ebcbeb63774a82b88b4d29f076af",
    "0x0ef2ab55187631ee28984647928e80941003c3835ed3ce25aa9bf678af113b60",
    "0x4c5ee229ed7cec7c5038ec0224b06c86c024b5e0c4c836b1a439cad7cebdf355",
];

struct BranchHashes<'a>(RecordedBranch<'a>);

impl BlockHashes for BranchHashes<'_> {
    fn block_hash(&self, number: u64) -> Option<B256> {
        self.0.hash(number)
    }

    fn header(&self, number: u64) -> Option<SealedHeader> {
        self.0.header(number)
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        self.0.uncles(number)
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        self.0.total_difficulty(number)
    }
}

/// Whether the transaction succeeds as the first one of the block.
fn sent(context: &BlockContext<'_>, state: &Trie, transaction: &Transaction, sender: Address) -> bool {
    let mut list = TransactionList::new(World::new(state.clone()), 10_000_000);
    let item = IndexedTransaction { index: 0, transaction, sender };
    list.execute(context, item, None).is_ok_and(|end| end.receipt.success)
}

fn message(transaction: &Transaction, sender: Address) -> CallMessage {
    CallMessage {
        from: Some(sender),
        to: transaction.to,
        gas: None,
        gas_price: transaction.gas_price.value(),
        value: transaction.value,
        data: transaction.data.clone(),
    }
}

#[test]
fn recorded_transactions_succeed_with_their_estimate() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), 676);
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut faults = Vec::new();
    for (number, block) in chain.recording.blocks.iter().enumerate().skip(1) {
        let state = &chain.states[number - 1];
        let environment = BlockEnvironment::from(block.header.header());
        let branch = RecordedBranch::canonical(&chain.recording);
        let mut context = BlockContext::new(&chain.recording.network, environment.clone(), &branch);
        context.unsimulated = OnUnsimulated::Fail;
        let hashes = BranchHashes(RecordedBranch::canonical(&chain.recording));
        let call =
            CallContext { state, hashes: &hashes, block: &environment, rules: context.rules, chain_id: 33 };
        // Twelve of each block are enough, because the other ones are bulk transfers of the same form.
        for transaction in block.transactions.iter().filter(|tx| !tx.is_remasc()).take(12) {
            let sender = transaction.recover_sender(33).unwrap();
            let message = message(transaction, sender);
            let limits = RunLimits::default();
            let outcome = match estimate(&call, &message, &StateOverride::default(), &limits) {
                Ok(Estimate::Gas(gas)) => {
                    let with = |gas: u64| Transaction {
                        gas_limit: RawUint::from(gas),
                        nonce: next_nonce(state, sender),
                        ..transaction.clone()
                    };
                    let enough = sent(&context, state, &with(gas), sender);
                    let less = sent(&context, state, &with(gas * 99 / 100), sender);
                    match (enough, less) {
                        (true, false) => "kept",
                        (true, true) if SWALLOWS.contains(&format!("{:#x}", transaction.hash()).as_str()) => {
                            "swallows a failure"
                        }
                        (true, true) => {
                            faults.push(format!(
                                "block {number} {:#x}: less than {gas} suffices",
                                transaction.hash()
                            ));
                            "less suffices"
                        }
                        (false, _) => {
                            faults.push(format!(
                                "block {number} {:#x}: {gas} is too little",
                                transaction.hash()
                            ));
                            "too little"
                        }
                    }
                }
                Ok(Estimate::Revert { .. }) => "reverts",
                Ok(Estimate::Halt { .. }) => "halts",
                Ok(Estimate::InsufficientFunds) => "no funds yet",
                Err(CallStop::NotSimulated(_)) => "not simulated",
                Err(stop) => panic!("block {number} {:#x}: {stop}", transaction.hash()),
            };
            *counts.entry(outcome).or_default() += 1;
        }
    }
    println!("{counts:?}\n{}", faults.join("\n"));
    assert!(faults.is_empty());
    assert!(counts["kept"] >= 399 && counts["swallows a failure"] == 3, "{counts:?}");
}

fn next_nonce(state: &Trie, sender: Address) -> RawUint {
    let account = World::new(state.clone()).account(&sender);
    RawUint::from(account.map_or(0, |account| account.nonce))
}
