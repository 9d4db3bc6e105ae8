//! A chain that begins on a block of the main network, with its rules and its difficulty.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};

use super::{DevAccounts, DevChain, DevConfig, DevError};
use crate::consensus::{Checkpoint, HeaderChain, Network, VerifiedHeader, VerifiedUncles, testing};
use crate::local::{ForkBase, ForkBody, StoredBlock, mark_sender};
use crate::state::Account;
use crate::state::keys::{REMASC_SENDER_KEY, account_key};
use crate::trie::{EMPTY_ROOT, Trie, TrieBase};
use crate::types::{SealedHeader, Transaction};

const WHALE: Address = Address::repeat_byte(0xba);
const NUMBER: u64 = 9_400_000;

#[derive(Debug)]
struct Base {
    block: VerifiedHeader,
    values: BTreeMap<Vec<u8>, Bytes>,
}

impl TrieBase for Base {
    fn value(&self, key: &[u8]) -> Option<&Bytes> {
        self.values.get(key)
    }

    fn root(&self) -> B256 {
        self.block.state_root
    }
}

impl ForkBase for Base {
    fn block(&self) -> &VerifiedHeader {
        &self.block
    }

    fn header(&self, _: u64) -> Option<VerifiedHeader> {
        None
    }

    fn header_by_hash(&self, _: &B256) -> Option<VerifiedHeader> {
        None
    }

    fn body(&self, _: &SealedHeader) -> Option<Arc<ForkBody>> {
        None
    }

    fn contents(&self, _: &SealedHeader) -> Option<Arc<StoredBlock>> {
        None
    }

    fn uncles(&self, _: &SealedHeader) -> Option<Arc<VerifiedUncles>> {
        None
    }

    fn locate(&self, _: &B256) -> Option<(B256, usize)> {
        None
    }

    fn other_start(&self, _: Option<&str>, _: Option<u64>) -> Option<Arc<dyn ForkBase>> {
        None
    }

    fn first_rewarded_block(&self) -> u64 {
        NUMBER + 1
    }
}

fn mainnet_fork() -> DevChain {
    let network = Network::mainnet();
    let mut header = testing::header(&network, NUMBER);
    header.difficulty = U256::from(7_u64).saturating_mul(U256::from(10).pow(U256::from(21))).into();
    header.minimum_gas_price = 23_000_000_u64.into();
    let header = header.seal();
    let at = Checkpoint { number: NUMBER, hash: header.hash(), total_difficulty: None };
    let chain = HeaderChain::from_checkpoint(Arc::new(network.clone()), &at, header).unwrap();
    let account = Account { nonce: 7, balance: U256::from(10).pow(U256::from(18)), ..Account::default() };
    let counter = Account { nonce: NUMBER, ..Account::default() };
    let values = [
        (account_key(&WHALE).to_vec(), account.encode().into()),
        (REMASC_SENDER_KEY.to_vec(), counter.encode().into()),
    ];
    let values = values.into();
    let base = Arc::new(Base { block: chain.head().clone(), values });
    let accounts = DevAccounts { count: 1, ..DevAccounts::default() };
    DevChain::new(DevConfig::above(network, base, &accounts)).unwrap()
}

#[test]
fn blocks_above_a_block_of_mainnet_are_mined_by_its_rules() {
    let mut chain = mainnet_fork();
    let now = chain.view().head().timestamp + 1_000;
    let to = Address::repeat_byte(0xaa);
    let sent = Transaction {
        nonce: 7_u64.into(),
        gas_price: 60_000_000_u64.into(),
        gas_limit: 21_000_u64.into(),
        to: Some(to),
        value: U256::from(5),
        ..Transaction::remasc(0)
    };
    let sent = mark_sender(sent, WHALE, 30).unwrap();
    let hash = chain.submit(sent, WHALE, now).unwrap();
    let (block, index) = chain.view().locate(&hash).unwrap();
    assert!(chain.view().block(&block).unwrap().receipts.receipts()[index].success);
    let head = chain.view().head().clone();
    assert_eq!((head.number, head.difficulty.value()), (NUMBER + 1, U256::from(1)));
    let account = chain.account(&WHALE).unwrap();
    assert_eq!(account.nonce, 8);
    assert!(account.balance < U256::from(10).pow(U256::from(18)));
    assert_eq!(chain.account(&to).unwrap().balance, U256::from(5));
    for _ in 0..3 {
        chain.mine(now).unwrap();
    }
    assert_eq!(chain.view().head().number, NUMBER + 4);
    // After ten years, too, although Bitcoin's header would be of another time.
    chain.clock_mut().increase(300_000_000, now, now).unwrap();
    chain.mine(now).unwrap();
    chain.reset();
    assert_eq!((chain.view().head().number, chain.account(&WHALE).unwrap().nonce), (NUMBER, 7));
}

#[test]
fn the_state_root_is_that_of_the_rule_that_is_documented() {
    let chain = mainnet_fork();
    let below = chain.view().head().state_root;
    let mut above = Trie::new();
    let key = account_key(&chain.wallet().addresses()[0]);
    let funded = Account { balance: DevAccounts::default().balance, ..Account::default() };
    above.put(&key, funded.encode());
    let expected = keccak256([below.as_slice(), above.root().as_slice()].concat());
    assert_ne!(above.root(), EMPTY_ROOT);
    assert_eq!(chain.view().head_state().root(), expected);
}

#[test]
fn only_a_fork_is_reset_to_another_block() {
    let mut alone = DevChain::new(DevConfig::new(&DevAccounts::default())).unwrap();
    assert_eq!(alone.reset_to(None, None), Err(DevError::NoFork));
}
