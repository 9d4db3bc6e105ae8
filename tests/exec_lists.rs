//! Lists of transactions that touch each other in ways only their runs show, and contracts created where
//! one was destroyed in the same block.

mod support;

use rootlight::consensus::body::{root_format, transactions_root};
use rootlight::consensus::{AllocatedContract, Allocation, Genesis, Network};
use rootlight::dev::PrivateKey;
use rootlight::exec::{
    build_block, execute_block, Ancestry, BlockEnvironment, BlockError, BlockInput, Built, Candidate,
    ExecutedBlock, GenesisBlock, NoObserver,
};
use rootlight::state::{AccessKey, World};
use rootlight::trie::Trie;
use rootlight::types::{Address, Header, RawUint, SealedHeader, Transaction, U256};

const CONTRACT: Address = Address::repeat_byte(0xc0);

struct NoAncestors;

impl Ancestry for NoAncestors {
    fn header(&self, _: u64) -> Option<SealedHeader> {
        None
    }

    fn uncles(&self, _: u64) -> Option<Vec<Header>> {
        None
    }
}

struct Chain {
    network: Network,
    state: Trie,
    header: Header,
}

impl Chain {
    /// Regtest with one contract of this code.
    fn new(code: &str) -> Self {
        let network = Network::regtest();
        let mut alloc = Genesis::regtest().alloc;
        alloc.push(Allocation {
            address: CONTRACT,
            contract: Some(AllocatedContract {
                code: hex::decode(code).unwrap().into(),
                storage: Vec::new(),
            }),
            ..Allocation::default()
        });
        let genesis = GenesisBlock::new(&Genesis::regtest().with_alloc(alloc), &network);
        let mut header = genesis.header.header().clone();
        (header.shape, header.number) = (network.header_shape(1), 1);
        header.gas_limit = RawUint::from(30_000_000);
        Self { network, state: genesis.state, header }
    }

    fn call(&self, sender: usize, nonce: u64, to: Address, data: &[u8]) -> Candidate {
        let seed = if sender == 0 { "cow".into() } else { format!("cow{sender}") };
        let key = PrivateKey::from_seed(&seed).unwrap();
        let transaction = Transaction {
            nonce: RawUint::from(nonce),
            gas_price: RawUint::from(0),
            gas_limit: RawUint::from(500_000),
            to: Some(to),
            value: U256::ZERO,
            data: data.to_vec().into(),
            v: 0,
            r: U256::ZERO,
            s: U256::ZERO,
        };
        let transaction = key.sign_transaction(transaction, 33).unwrap();
        Candidate { transaction, sender: key.address() }
    }

    fn execute(&self, candidates: &[Candidate], edges: &[u16]) -> Result<ExecutedBlock, BlockError> {
        let mut transactions: Vec<Transaction> =
            candidates.iter().map(|candidate| candidate.transaction.clone()).collect();
        transactions.push(Transaction::remasc(1));
        let mut header = Header { edges: edges.to_vec(), ..self.header.clone() };
        header.transactions_root = transactions_root(&transactions, root_format(&self.network, 1));
        let input = BlockInput { header: &header, transactions: &transactions, senders: None };
        execute_block(&self.network, &self.state, &input, &NoAncestors, &mut NoObserver)
    }

    fn build(&self, candidates: &[Candidate]) -> Built {
        let template = BlockEnvironment::from(&self.header);
        build_block(&self.network, &self.state, &template, candidates, &NoAncestors).unwrap()
    }
}

/// With data it writes slot 0 and reverts, without it reads slot 0.
const WRITE_AND_REVERT: &str = "36600757 5f5400 5b60015f555f5ffd";

#[test]
fn writes_that_are_rolled_back_count() {
    let chain = Chain::new(&WRITE_AND_REVERT.replace(' ', ""));
    let calls = [chain.call(0, 0, CONTRACT, &[1]), chain.call(1, 0, CONTRACT, &[])];
    let error = chain.execute(&calls, &[1, 2]).unwrap_err();
    let key = AccessKey::Cell(CONTRACT, U256::ZERO);
    assert_eq!(error, BlockError::Conflict { lists: (0, 1), key });
    let built = chain.build(&calls);
    assert_eq!(built.edges, [2], "one list holds both");
    assert!(!built.executed.receipts[0].success);
    // Reading alone is no conflict.
    let reads = [chain.call(0, 0, CONTRACT, &[]), chain.call(1, 0, CONTRACT, &[])];
    chain.execute(&reads, &[1, 2]).unwrap();
    assert_eq!(chain.build(&reads).edges, [1, 2]);
}

/// CREATE2 of a contract that destroys itself when called; its address goes to slot 0.
const FACTORY: &str = "69 6133ff5f526002601ef3 5f52 5f600a60165ff5 5f55 00";

#[test]
fn nothing_is_created_where_the_block_destroyed() {
    let chain = Chain::new(&FACTORY.replace(' ', ""));
    let first = chain.execute(&[chain.call(0, 0, CONTRACT, &[])], &[]).unwrap();
    let child = World::new(first.state.clone()).word(&CONTRACT, &U256::ZERO);
    let child = Address::from_word(child.into());
    assert!(World::new(first.state).account(&child).is_some());

    let calls: Vec<Candidate> = [CONTRACT, child, CONTRACT]
        .into_iter()
        .enumerate()
        .map(|(nonce, to)| chain.call(0, nonce as u64, to, &[]))
        .collect();
    let all = chain.execute(&calls, &[]).unwrap();
    let outcomes: Vec<bool> = all.receipts.iter().map(|receipt| receipt.success).collect();
    assert_eq!(outcomes, [true, true, false, true], "the second creation loses all its gas");
    assert_eq!(all.receipts[2].gas_used, 500_000);
    assert!(World::new(all.state).account(&child).is_none());
    // The same in a parallel list, and when it is built.
    assert_eq!(chain.execute(&calls, &[3]).unwrap().receipts[..3], all.receipts[..3]);
    assert_eq!(chain.build(&calls).executed.receipts[..3], all.receipts[..3]);

    // In the next block the address is free again.
    let two = chain.execute(&calls[..2], &[]).unwrap();
    let mut next = Chain { state: two.state, ..Chain::new("00") };
    next.state.delete(&rootlight::state::keys::REMASC_SENDER_KEY);
    let again = next.execute(&[next.call(0, 2, CONTRACT, &[])], &[]).unwrap();
    assert!(again.receipts[0].success);
}

#[test]
fn a_list_sees_nothing_of_another() {
    let chain = Chain::new("6001545f55345f5500");
    let calls = [chain.call(0, 0, CONTRACT, &[]), chain.call(0, 1, CONTRACT, &[])];
    let error = chain.execute(&calls, &[1, 2]).unwrap_err();
    assert!(matches!(error, BlockError::Transaction { index: 1, .. }), "{error}");
    assert!(chain.execute(&calls, &[1]).is_ok(), "the sequential list does");
}
