//! A chain that ends now, merge-mined on a Bitcoin chain, and the state of its newest blocks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};
use rootlight::consensus::mining::hash_to_commit;
use rootlight::consensus::{Checkpoint, HeaderCandidate, HeaderChain, Network};
use rootlight::dev::SimulatedBitcoin as _;
use rootlight::state::Account;
use rootlight::state::keys::account_key;
use rootlight::trie::Trie;
use rootlight::types::rlp::put_str;
use rootlight::types::{HeaderForm, SealedHeader};
use rootlight_node::bitcoin_chain::RegtestChain;

use crate::cold::header;

/// Rules of regtest, whose Bitcoin chain can be mined here. Headers may be an hour ahead of the clock, so that a restart after
/// an hour needs no hour.
pub(crate) const NETWORK: &str = r#"{
    "name": "regtest", "base": "regtest", "params": { "minimumDifficulty": 4, "futureBound": 4000 },
    "rules": { "rskip97": 0, "rskip351": -1, "rskip535": -1 }, "workStart": { "difficulty": 4, "from": 0, "headers": 5760 }
}"#;

/// Seconds between blocks, as on the main network in 2026.
const SPACING: u64 = 25;
/// Blocks between two blocks of Bitcoin.
const EVERY: u32 = 24;
/// Number of the first block.
const FIRST: u64 = 9_000_000;
/// Newest blocks that have the state.
const WITH_STATE: u64 = 600;
/// Blocks of the hour after now.
pub(crate) const HOUR: u64 = 3_600 / SPACING;

pub(crate) struct NewcomerChain {
    headers: Vec<SealedHeader>,
    numbers: BTreeMap<B256, u64>,
    pub(crate) state: Trie,
    /// Bitcoin's chain up to now, and up to an hour from now.
    pub(crate) bitcoin: [Arc<RegtestChain>; 2],
}

/// The rules of the chain.
pub(crate) fn network() -> Network {
    Network::from_json(NETWORK).expect("a network")
}

pub(crate) fn account(index: u64) -> Address {
    Address::from_slice(&keccak256(index.to_be_bytes())[12..])
}

/// The balance of an account, in wei.
pub(crate) fn balance(index: u64) -> U256 {
    U256::from(1_000_000_007) * U256::from(index + 1)
}

fn state(accounts: u64) -> Trie {
    let mut state = Trie::new();
    for index in 0..accounts {
        let account_of = Account { balance: balance(index), nonce: index % 9, ..Account::default() };
        state.put(&account_key(&account(index)), account_of.encode());
    }
    state
}

impl NewcomerChain {
    /// Mines a chain of so many headers up to now, and those of an hour more.
    pub(crate) fn make(headers: u64, accounts: u64) -> Self {
        let network = Arc::new(network());
        let state = state(accounts);
        let root = state.root();
        let bitcoin = [RegtestChain::new(EVERY), RegtestChain::new(EVERY)].map(Arc::new);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs();
        let mut found: Vec<SealedHeader> = Vec::new();
        let mut chain: Option<HeaderChain> = None;
        for index in 0..headers + HOUR {
            let time = now - (headers - 1) * SPACING + index * SPACING;
            let mut next = header(&network, FIRST + index, found.last(), time);
            if index + WITH_STATE > headers {
                next.state_root = root;
            }
            let data = chain
                .as_ref()
                .map_or(Some([0; 12]), |chain| chain.view().fork_detection_after(&chain.head().hash()));
            let commitment = hash_to_commit(&next, &data.expect("the head is known"));
            let works = bitcoin.each_ref().map(|bitcoin| bitcoin.next(&commitment, time));
            let [_, work] = works;
            let solved = work.solved(next.difficulty.value(), u32::MAX).expect("a nonce");
            let known = if index < headers { &bitcoin[..] } else { &bitcoin[1..] };
            known.iter().for_each(|bitcoin| bitcoin.add_merge_mined(&solved));
            let sealed = solved.seal(next, network.rules(FIRST + index)).expect("a coinbase with a tag");
            match &mut chain {
                None => {
                    let checkpoint =
                        Checkpoint { number: FIRST, hash: sealed.hash(), total_difficulty: None };
                    chain = HeaderChain::from_checkpoint(network.clone(), &checkpoint, sealed.clone()).ok();
                }
                Some(chain) => {
                    chain.insert(HeaderCandidate::from(sealed.clone()), None).expect("a header by all rules");
                }
            }
            found.push(sealed);
        }
        let numbers = found.iter().map(|header| (header.hash(), header.number)).collect();
        Self { headers: found, numbers, state, bitcoin }
    }

    pub(crate) fn at(&self, number: u64) -> Option<&SealedHeader> {
        self.headers.get(usize::try_from(number.checked_sub(FIRST)?).ok()?)
    }

    pub(crate) fn by_hash(&self, hash: &B256) -> Option<&SealedHeader> {
        self.at(*self.numbers.get(hash)?)
    }

    /// Bytes of a header's RLP.
    pub(crate) fn bytes_per_header(&self) -> usize {
        let bytes: usize = self.headers.iter().map(|header| header.encode(HeaderForm::Full).len()).sum();
        bytes / self.headers.len()
    }

    /// The newest block, an hour from now.
    pub(crate) fn newest(&self) -> u64 {
        FIRST + self.headers.len() as u64 - 1
    }

    /// The proof of an account, as `eth_getProof` gives it.
    pub(crate) fn proof(&self, address: &Address) -> Vec<String> {
        let nodes = self.state.proof(&account_key(address));
        let wrapped = |node: &Bytes| {
            let mut wrapped = Vec::new();
            put_str(&mut wrapped, node);
            hex::encode_prefixed(wrapped)
        };
        nodes.iter().map(wrapped).collect()
    }
}
