//! Requests that a call costs on a large state. `ROOTLIGHT_ACCOUNTS` sets how large.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::{Address, B256, U256, keccak256};
use rootlight::consensus::Network;
use rootlight::engine::FollowNode;
use rootlight::exec::{CallPolicy, GenesisBlock};
use rootlight::state::Account;
use rootlight::state::keys::{account_key, code_key, slot_key};
use rootlight::trie::{NodeSource, Trie};
use rootlight::types::{Header, SealedHeader};
use rootlight_limits::caller_id::CallerId;
use rootlight_node::local::{Entropy, LocalOptions, LocalService, host_input};
use rootlight_node::peer_server::{LocalChain, PeerChain, PeerHead, ServedBlock};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::chain::serve;
use crate::common::ask;
use crate::recorded::light;

/// Accounts of an ordinary run.
const ACCOUNTS: u64 = 30_000;

/// Most requests for chunks that a cold call of `balanceOf` may cost.
const MOST: usize = 6;

const TOKEN: Address = Address::repeat_byte(0x70);

/// Returns the cell at the keccak of the first argument and slot 0, where compilers keep the balances of tokens.
const BALANCE_OF: &str = "0x60043560005260006020526040600020546000526020 6000f3";

/// A chain that counts the chunks that it gives.
struct CountingChain {
    inner: LocalChain,
    chunks: AtomicUsize,
}

impl PeerChain for CountingChain {
    fn head(&self) -> Option<PeerHead> {
        self.inner.head()
    }

    fn hash_at(&self, number: u64) -> Option<B256> {
        self.inner.hash_at(number)
    }

    fn header(&self, hash: B256) -> Option<SealedHeader> {
        self.inner.header(hash)
    }

    fn block(&self, hash: B256) -> Option<ServedBlock> {
        self.inner.block(hash)
    }

    fn total_difficulty(&self, hash: B256) -> Option<U256> {
        self.inner.total_difficulty(hash)
    }

    fn with_state(&self, number: u64, read: &mut dyn FnMut(B256, &dyn NodeSource)) {
        self.chunks.fetch_add(1, Ordering::Relaxed);
        self.inner.with_state(number, read);
    }

    fn submit(&self, peer: CallerId, transactions: Vec<Vec<u8>>) {
        self.inner.submit(peer, transactions);
    }

    fn pending(&self, next: &mut u64) -> Vec<Vec<u8>> {
        self.inner.pending(next)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}

fn holder(index: u64) -> Address {
    Address::from_slice(&keccak256(index.to_be_bytes())[12..])
}

/// Cell of a holder's balance.
fn cell(holder: &Address) -> U256 {
    keccak256([holder.into_word().0, [0; 32]].concat()).into()
}

/// Fills a state with accounts; every tenth holds the token, whose code is as long as that of common tokens.
fn fill(state: &mut Trie, accounts: u64) {
    let put = |state: &mut Trie, key: &[u8], value: Vec<u8>| state.put(key, value);
    let mut code = alloy_primitives::hex::decode(BALANCE_OF.replace(' ', "")).unwrap();
    code.resize(6_000, 0x5b);
    put(state, &account_key(&TOKEN), Account { nonce: 1, ..Account::default() }.encode());
    put(state, &[&account_key(&TOKEN)[..], &[0]].concat(), vec![1]);
    put(state, &code_key(&TOKEN), code);
    for index in 0..accounts {
        let (holder, balance) = (holder(index), U256::from(1_000_000_007 * (index + 1)));
        put(
            state,
            &account_key(&holder),
            Account { balance, nonce: index % 9, ..Account::default() }.encode(),
        );
        if index % 10 == 0 {
            put(state, &slot_key(&TOKEN, &cell(&holder)), balance.to_be_bytes_trimmed_vec());
        }
    }
}

/// A chain whose only block has this state.
fn chain(accounts: u64) -> Arc<LocalService> {
    let (genesis, mut network) = (GenesisBlock::regtest(), Network::regtest());
    let mut state = genesis.state;
    fill(&mut state, accounts);
    let header = Header { state_root: state.root(), ..genesis.header.header().clone() }.seal();
    network.genesis_hash = header.hash();
    let chain = rootlight::local::LocalChain::new(Arc::new(network), header, state, None).unwrap();
    let entropy = Entropy::from_system().unwrap();
    let node = FollowNode::new(chain, "Rootlight/t", "none", CallPolicy::default(), host_input(&entropy));
    Arc::new(LocalService::new(Box::new(node), LocalOptions::follower(), entropy, None))
}

#[tokio::test(flavor = "multi_thread")]
async fn balance_of_on_a_large_state_costs_few_requests() {
    let accounts = std::env::var("ROOTLIGHT_ACCOUNTS").map_or(ACCOUNTS, |text| text.parse().unwrap());
    let node = chain(accounts);
    let counted =
        Arc::new(CountingChain { inner: LocalChain::new(node.clone()), chunks: AtomicUsize::new(0) });
    let (_server, address) = serve(counted.clone()).await;
    let mut seen = Vec::new();
    for index in (0..6).map(|sample| sample * (accounts / 6) / 10 * 10) {
        // A new client each time, which knows nothing of the state.
        let light = light(std::slice::from_ref(&address), counted.hash_at(0).unwrap()).await;
        let data = format!("0x70a08231{:0>64}", alloy_primitives::hex::encode(holder(index)));
        let call = json!([{ "to": TOKEN, "data": data }, "latest"]);
        let call = async || {
            counted.chunks.store(0, Ordering::Relaxed);
            let answer = ask(&light, "eth_call", call.clone()).await;
            (answer, counted.chunks.load(Ordering::Relaxed))
        };
        let (answer, cold) = call().await;
        let balance = format!("{:#066x}", U256::from(1_000_000_007 * (index + 1)));
        assert_eq!((&answer["result"], &answer["level"]), (&json!(balance), &Value::Null), "{answer}");
        assert_eq!(call().await, (answer, 0), "a repeated call needs no request");
        seen.push(cold);
    }
    println!("{accounts} accounts: {seen:?} requests");
    assert!(seen.iter().all(|cold| *cold <= MOST), "{accounts} accounts: {seen:?}");
}
