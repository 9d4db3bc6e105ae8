//! A block of ERC-20 transfers on a recorded state, built and imported.

use alloy_primitives::{Address, B256, U256, keccak256};
use rootlight::consensus::{Genesis, Network};
use rootlight::dev::PrivateKey;
use rootlight::exec::{
    Ancestry, BlockEnvironment, BlockInput, BuiltBlock, NoObserver, TransactionCandidate, build_block,
    check_block, execute_block,
};
use rootlight::state::World;
use rootlight::trie::Trie;
use rootlight::types::{Header, RawUint, SealedHeader, Transaction};

use crate::state::{TOKEN, state};

/// The ancestors of block 1, where REMASC reads none yet.
struct EmptyHistory;

impl Ancestry for EmptyHistory {
    fn header(&self, _: u64) -> Option<SealedHeader> {
        None
    }

    fn uncles(&self, _: u64) -> Option<Vec<Header>> {
        None
    }
}

/// A block of transfers, each to an account that holds no token.
pub struct Transfers {
    network: Network,
    state: Trie,
    header: Header,
    candidates: Vec<TransactionCandidate>,
    /// The block as it was built.
    pub built: BuiltBlock,
}

fn transfer(key: &PrivateKey, nonce: u64, to: Address) -> TransactionCandidate {
    let mut data = vec![0xa9, 0x05, 0x9c, 0xbb];
    data.extend_from_slice(to.into_word().as_slice());
    data.extend_from_slice(&U256::from(1).to_be_bytes::<32>());
    let transaction = Transaction {
        nonce: RawUint::from(nonce),
        gas_price: RawUint::from(1),
        gas_limit: RawUint::from(100_000),
        to: Some(TOKEN.parse().expect("an address")),
        value: U256::ZERO,
        data: data.into(),
        v: 0,
        r: U256::ZERO,
        s: U256::ZERO,
    };
    let transaction = key.sign_transaction(transaction, 33).expect("it signs");
    TransactionCandidate { transaction, sender: key.address() }
}

impl Transfers {
    /// Builds a block of `count` transfers on a state with `accounts` further accounts; `None` if the recordings are
    /// missing.
    #[must_use]
    pub fn load(accounts: u64, count: u64) -> Option<Self> {
        let network = Network::regtest();
        let state = state(accounts)?;
        let key = PrivateKey::from_seed("cow").expect("a key");
        let first = World::new(state.clone()).account(&key.address()).expect("it is funded").nonce;
        let to = |index: u64| Address::from_word(keccak256((index + accounts).to_be_bytes()));
        let candidates: Vec<TransactionCandidate> =
            (0..count).map(|index| transfer(&key, first + index, to(index))).collect();
        let template = BlockEnvironment {
            number: 1,
            timestamp: 1_000,
            coinbase: Address::ZERO,
            difficulty: U256::from(1),
            gas_limit: U256::from(100_000_000),
            minimum_gas_price: U256::from(1),
        };
        let built = build_block(&network, &state, &template, &candidates, &EmptyHistory).expect("it builds");
        assert!(built.dropped.is_empty());
        assert!(built.executed.receipts.iter().all(|receipt| receipt.success));
        let mut header = Genesis::regtest().header(&network).into_header();
        header.shape = network.header_shape(1);
        header.number = 1;
        header.timestamp = 1_000;
        header.coinbase = Some(Address::ZERO);
        header.gas_limit = RawUint::from(100_000_000);
        header.minimum_gas_price = 1.into();
        built.complete(&mut header, &network);
        Some(Self { network, state, header, candidates, built })
    }

    /// Executes the block and compares all roots. Senders are recovered unless they are given.
    pub fn import(&self, senders: Option<&[Address]>) {
        let input = BlockInput { header: &self.header, transactions: &self.built.transactions, senders };
        let executed =
            execute_block(&self.network, &self.state, &input, &EmptyHistory, &mut NoObserver).expect("valid");
        check_block(&executed, &self.header, &self.network).expect("equal");
    }

    /// Recovers the senders only, and returns their number.
    pub fn recover(&self) -> usize {
        let recover = |transaction: &Transaction| transaction.recover_sender(33).is_ok();
        self.built.transactions.iter().filter(|transaction| recover(transaction)).count()
    }

    /// Builds the block again and returns its state root.
    pub fn build(&self) -> B256 {
        let template = BlockEnvironment::from(&self.header);
        let built = build_block(&self.network, &self.state, &template, &self.candidates, &EmptyHistory);
        built.expect("it builds").executed.state.root()
    }
}
