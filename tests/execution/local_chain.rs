//! The executed chain: recorded blocks imported in several orders, reorganisations, refused blocks, restored ones.

use crate::support;

use std::sync::Arc;

use rootlight::consensus::{HeadChange, Network};
use rootlight::dev::{DevAccounts, DevChain, DevConfig, Mining};
use rootlight::exec::GenesisBlock;
use rootlight::local::{ImportError, LocalChain};
use rootlight::types::{Address, B256, Block, BlockBody, Transaction, U256};
use support::recording::{RecordedBlock, Recording};
use support::shared;

/// Blocks of the recorded chain that are imported: uncles, reorganisations and every kind of transaction are in them.
const BLOCKS: usize = 677;

fn chain(history: Option<u64>) -> LocalChain {
    let genesis = GenesisBlock::regtest();
    LocalChain::new(Arc::new(Network::regtest()), genesis.header, genesis.state, history).unwrap()
}

fn recording() -> Option<Recording> {
    Some(Recording::load(&shared()?.join("vectors/chain"), Network::regtest()))
}

fn block(recorded: &RecordedBlock) -> Block {
    recorded.block()
}

fn check(chain: &LocalChain, recording: &Recording, head: usize) {
    let view = chain.view();
    assert_eq!(chain.head().hash(), recording.blocks[head].header.hash());
    assert_eq!(view.head_state().root(), chain.head().state_root);
    for recorded in &recording.blocks[..=head] {
        let (number, hash) = (recorded.header.number, recorded.header.hash());
        assert_eq!(view.headers().hash_at(number), Some(hash));
        assert_eq!(view.headers().total_difficulty(&hash), recorded.total_difficulty, "block {number}");
        assert_eq!(view.uncles(&hash).unwrap().headers().len(), recorded.uncles.len());
        for (index, transaction) in recorded.transactions.iter().enumerate() {
            assert_eq!(view.locate(&transaction.hash()), Some((hash, index)), "block {number}");
        }
        for (index, receipt) in &recorded.receipts {
            assert_eq!(&view.block(&hash).unwrap().receipts.receipts()[*index as usize], receipt);
        }
    }
}

#[test]
fn the_recorded_chain_with_its_side_branches() {
    let Some(recording) = recording() else { return };
    let mut chain = chain(None);
    let mut reorganised = 0;
    for recorded in recording.up_to(BLOCKS as u64 - 1) {
        let imported = chain.import(block(recorded), None).unwrap_or_else(|e| panic!("{e}"));
        reorganised += usize::from(matches!(imported.change, HeadChange::Reorganised(_)));
        let again = chain.import(block(recorded), None).unwrap();
        assert_eq!(again.change, HeadChange::Known);
    }
    check(&chain, &recording, BLOCKS - 1);
    println!("{BLOCKS} blocks, {reorganised} reorganisations");
}

#[test]
fn side_branches_that_come_first_are_left_again() {
    let Some(recording) = recording() else { return };
    let mut chain = chain(None);
    let mut all = recording.up_to(BLOCKS as u64 - 1);
    all.sort_by_key(|b| {
        (b.header.number, recording.blocks[b.header.number as usize].header.hash() == b.header.hash())
    });
    let mut changes = 0;
    for recorded in all {
        let imported = chain.import(block(recorded), None).unwrap_or_else(|e| panic!("{e}"));
        if let HeadChange::Reorganised(change) = imported.change {
            changes += 1;
            // Transactions that left the chain are not found any more, except where the new branch has them too.
            for header in &change.removed {
                for hash in chain.view().block(&header.hash()).unwrap().body.hashes() {
                    assert_ne!(chain.view().locate(hash).map(|(block, _)| block), Some(header.hash()));
                }
            }
        }
    }
    assert!(changes > 0, "nothing was reorganised");
    println!("{changes} reorganisations");
    check(&chain, &recording, BLOCKS - 1);
}

#[test]
fn a_broken_block_changes_nothing() {
    let Some(recording) = recording() else { return };
    let mut chain = chain(None);
    for recorded in &recording.blocks[1..30] {
        chain.import(block(recorded), None).unwrap();
    }
    let next = block(&recording.blocks[30]);
    let head = chain.head().hash();
    let mut broken: Vec<(&str, Block)> = Vec::new();
    let mut add = |what, change: &dyn Fn(&mut Block)| {
        let mut block = next.clone();
        change(&mut block);
        broken.push((what, block));
    };
    add("bitcoinMergedMining", &|block| block.header.state_root = B256::ZERO);
    add("transactionsRoot", &|block| drop(block.body.transactions.remove(0)));
    add("transactionsRoot", &|block| block.body.transactions[0].value += U256::from(1));
    add("sha3Uncles", &|block| block.uncles.push(recording.blocks[29].header.header().clone()));
    add("not known", &|block| block.header.parent_hash = B256::repeat_byte(1));
    for (rule, block) in broken {
        let error = chain.import(block, None).unwrap_err();
        assert!(error.to_string().contains(rule), "{rule}: {error}");
        assert_eq!(chain.head().hash(), head);
        assert_eq!(chain.view().headers().len(), 30);
        assert!(chain.view().at_height(30).is_empty());
    }
    assert!(chain.import(next, None).is_ok());
}

#[test]
fn states_older_than_the_history_are_dropped() {
    let Some(recording) = recording() else { return };
    let mut chain = chain(Some(5));
    for recorded in &recording.blocks[1..20] {
        chain.import(block(recorded), None).unwrap();
    }
    let state = |number: usize| chain.view().state(&recording.blocks[number].header.hash()).is_some();
    assert_eq!((state(13), state(14), state(19)), (false, true, true));
    // A branch that starts below the kept states cannot be executed.
    let old = recording.side.iter().find(|block| block.header.number < 14);
    if let Some(old) = old {
        assert!(matches!(chain.import(block(old), None), Err(ImportError::NoState { .. })));
    }
}

#[test]
fn a_stored_chain_comes_back_without_executing() {
    let Some(recording) = recording() else { return };
    let mut first = chain(None);
    for recorded in &recording.blocks[1..60] {
        first.import(block(recorded), None).unwrap();
    }
    let mut second = chain(None);
    for recorded in &recording.blocks[1..60] {
        let hash = recorded.header.hash();
        let receipts = first.view().block(&hash).unwrap().receipts.receipts().to_vec();
        let state = first.view().state(&hash).cloned().filter(|_| recorded.header.number >= 50);
        let wrong = first.view().state(&recorded.header.parent_hash).cloned();
        if wrong.as_ref().map(|state| state.root()) != Some(recorded.header.state_root) {
            let refused = second.restore(block(recorded), receipts.clone(), wrong);
            let stated = recorded.header.state_root;
            assert!(
                matches!(refused, Err(ImportError::StoredState { expected, found, .. }) if expected == stated && found != stated)
            );
        }
        second.restore(block(recorded), receipts, state).unwrap();
    }
    check(&second, &recording, 59);
    second.import(block(&recording.blocks[60]), None).unwrap();
}

/// A transaction of an account to itself with this many bytes of data.
fn long_transaction(account: Address, nonce: u64, data: usize) -> Transaction {
    Transaction {
        nonce: nonce.into(),
        gas_price: 1u64.into(),
        gas_limit: 6_000_000u64.into(),
        to: Some(account),
        value: U256::ZERO,
        data: vec![0; data].into(),
        v: 0,
        r: U256::ZERO,
        s: U256::ZERO,
    }
}

/// The parent's children of one kind: each differs from the others by its time.
fn siblings(chain: &LocalChain, data: usize) -> impl Iterator<Item = Block> + use<> {
    let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
    let mut dev = DevChain::new(config).unwrap();
    assert_eq!(dev.view().head().hash(), chain.head().hash());
    let start = dev.save().unwrap();
    let key = dev.wallet().addresses()[0];
    (0u64..).map(move |index| {
        dev.revert(start);
        if data > 0 {
            let key = dev.wallet().key(&key, 0).unwrap().clone();
            let transaction = long_transaction(key.address(), 0, data);
            let signed = key.sign_transaction(transaction, 33).unwrap();
            dev.submit(signed, key.address(), 2_000_000_000).unwrap();
        }
        let mined = dev.mine(2_000_000_000 + index).unwrap();
        let stored = dev.view().block(&mined.header.hash()).unwrap();
        let body = BlockBody { transactions: stored.body.transactions().to_vec() };
        Block { header: mined.header.header().clone(), body, uncles: Vec::new() }
    })
}

#[test]
fn side_blocks_are_bounded_in_number_and_in_bytes() {
    for (data, blocks, most) in [(0, 4_200, 4_097), (120_000, 650, 560)] {
        let config = DevConfig::new(&DevAccounts::default());
        let (network, genesis) = (config.network, config.genesis);
        let mut chain = LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
        for block in siblings(&chain, data).take(blocks) {
            chain.import(block, None).unwrap();
        }
        let kept = chain.view().at_height(1).to_vec();
        assert!(kept.len() <= most && kept.len() > most / 2, "{} of {blocks} are kept", kept.len());
        assert!(kept.contains(&chain.head().hash()));
        assert!(kept.iter().all(|hash| chain.view().block(hash).is_some()));
    }
}

/// Blocks that follow block 0, the first at this time; each has a transaction with as many bytes of data, none for 0 bytes.
fn mined(count: u64, first_time: u64, data: usize) -> Vec<Block> {
    let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
    let mut dev = DevChain::new(config).unwrap();
    let address = dev.wallet().addresses()[0];
    let key = dev.wallet().key(&address, 0).unwrap().clone();
    let mut mine = |index: u64| {
        if data > 0 {
            let sent = long_transaction(address, index, data);
            dev.submit(key.sign_transaction(sent, 33).unwrap(), address, first_time).unwrap();
        }
        let mined = dev.mine(first_time + index).unwrap();
        let stored = dev.view().block(&mined.header.hash()).unwrap();
        let body = BlockBody { transactions: stored.body.transactions().to_vec() };
        Block { header: mined.header.header().clone(), body, uncles: Vec::new() }
    };
    (0..count).map(&mut mine).collect()
}

#[test]
fn filters_do_not_miss_that_blocks_left_which_are_dropped_at_once() {
    let config = DevConfig::new(&DevAccounts::default());
    let mut chain =
        LocalChain::new(config.network, config.genesis.header, config.genesis.state, None).unwrap();
    // The first branch is longer than the bytes of side blocks allow, so that the reorganisation drops it whole.
    let first = mined(560, 2_000_000_000, 120_000);
    let second = mined(561, 2_000_000_001, 0);
    let import = |chain: &mut LocalChain, blocks: Vec<Block>| {
        blocks.into_iter().for_each(|block| drop(chain.import(block, None).unwrap()));
    };
    import(&mut chain, first);
    let (next, removed) = (chain.view().events().next(), chain.head().hash());
    import(&mut chain, second);
    assert!(chain.view().block(&removed).is_none(), "the branch is dropped");
    assert!(chain.view().events().since(next).is_none(), "events of the branch are known to be missing");
}
