//! `debug_executionWitness`: blocks are executed again from it alone.

use std::collections::BTreeMap;

use crate::fixture::Fixture;
use crate::support::bytes;
use crate::support::light::{ExecutedUpstream, Light, follower};
use rootlight::consensus::Network;
use rootlight::engine::LocalNode as _;
use rootlight::exec::{Ancestry, BlockInput, ExecutedBlock, NoObserver, execute_block};
use rootlight::state::{Account, keys::REMASC_SENDER_KEY};
use rootlight::trie::PartialTrie;
use rootlight::types::{B256, Block, Bytes, Header, SealedHeader, decode_uncles, keccak256, uncles_hash};
use serde_json::{Value, json};

/// The parts of a witness, found by what the block commits to.
struct Witness {
    nodes: BTreeMap<B256, Bytes>,
    headers: BTreeMap<u64, SealedHeader>,
    uncles: BTreeMap<B256, Vec<Header>>,
}

fn list(witness: &Value, name: &str) -> Vec<Bytes> {
    witness[name].as_array().unwrap().iter().map(|item| bytes(item.as_str().unwrap())).collect()
}

impl Witness {
    fn read(witness: &Value, network: &Network) -> Self {
        let shape = |number| network.header_shape(number);
        let preimages = ["state", "codes"].map(|name| list(witness, name)).concat();
        let headers = list(witness, "headers").into_iter();
        let headers = headers.map(|rlp| Header::decode(&rlp, &shape).unwrap().seal());
        let uncles = list(witness, "uncles").into_iter().map(|rlp| decode_uncles(&rlp, &shape).unwrap());
        Self {
            nodes: preimages.into_iter().map(|bytes| (keccak256(&bytes), bytes)).collect(),
            headers: headers.map(|header| (header.number, header)).collect(),
            uncles: uncles.map(|list| (uncles_hash(&list), list)).collect(),
        }
    }

    /// Executes the block. Nothing else is read than the block and the witness.
    fn execute(&self, block: &Block, network: &Network) -> Option<ExecutedBlock> {
        let parent = self.headers.get(&block.header.number.checked_sub(1)?)?;
        assert_eq!(parent.hash(), block.header.parent_hash);
        let mut state = PartialTrie::new(&self.nodes, parent.state_root, &|| false).unwrap().trie().clone();
        let transactions = block.body.transactions.as_slice();
        let nonce = u64::try_from(transactions.last()?.nonce.value()).unwrap();
        state.put(&REMASC_SENDER_KEY, Account { nonce, ..Account::default() }.encode());
        let input = BlockInput { header: &block.header, transactions, senders: None };
        let executed = execute_block(network, &state, &input, self, &mut NoObserver).ok()?;
        executed.check_apart_from_state(&block.header, network).ok()?;
        Some(executed)
    }
}

impl Ancestry for Witness {
    fn header(&self, number: u64) -> Option<SealedHeader> {
        self.headers.get(&number).cloned()
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        self.uncles.get(&self.headers.get(&number)?.uncles_hash).cloned()
    }
}

/// Asks for the witness and the block, and executes it. Returns the witness.
fn check(call: &mut dyn FnMut(&str, Value) -> Value, network: &Network, number: u64) -> Value {
    let at = json!([format!("{number:#x}")]);
    let block = bytes(call("debug_getRawBlock", at.clone()).as_str().unwrap());
    let block = Block::decode(&block, &|at| network.header_shape(at)).unwrap();
    let shown = call("debug_executionWitness", at);
    let witness = Witness::read(&shown, network);
    assert!(witness.execute(&block, network).is_some(), "block {number}");
    for name in ["state", "codes"] {
        assert!(list(&shown, name).is_sorted_by(|one, next| one < next), "{name} of block {number}");
    }
    shown
}

#[test]
fn blocks_are_executed_from_their_witness_alone() {
    let Some((node, _)) = follower() else { return };
    let network = Network::regtest();
    let executed = ExecutedUpstream::new(node.snapshot());
    let mut light = Light::new(network.clone(), ExecutedUpstream::new(node.snapshot()));
    let (mut codes, mut older, mut uncles) = (0, 0, 0);
    for number in (1..=676).filter(|number| number % 3 == 1) {
        let mut ask = |method: &str, params: Value| executed.call(method, &params).unwrap();
        let witness = check(&mut ask, &network, number);
        codes += list(&witness, "codes").len();
        older += list(&witness, "headers").len() - 1;
        uncles += list(&witness, "uncles").len();
        if number % 96 == 1 {
            let mut ask = |method: &str, params: Value| light.call(method, &params).unwrap();
            assert_eq!(check(&mut ask, &network, number), witness, "block {number}");
        }
    }
    assert!(codes >= 20 && older > 1_000 && uncles > 10, "{codes} codes, {older} headers, {uncles} lists");
}

/// Each part is read: without any one of them the execution gives something else.
#[test]
fn no_part_of_a_witness_can_be_left_out() {
    let Some((node, _)) = follower() else { return };
    let network = Network::regtest();
    let executed = ExecutedUpstream::new(node.snapshot());
    let (mut failed, mut all) = (0, 0);
    for number in (200..=660).step_by(20) {
        let at = json!([format!("{number:#x}")]);
        let block = bytes(executed.call("debug_getRawBlock", &at).unwrap().as_str().unwrap());
        let block = Block::decode(&block, &|at| network.header_shape(at)).unwrap();
        let shown = executed.call("debug_executionWitness", &at).unwrap();
        for name in ["codes", "headers", "uncles"] {
            for index in 0..shown[name].as_array().unwrap().len() {
                let mut less = shown.clone();
                less[name].as_array_mut().unwrap().remove(index);
                let outcome = Witness::read(&less, &network).execute(&block, &network);
                all += 1;
                failed += usize::from(outcome.is_none());
                assert!(outcome.is_none() || name == "codes", "{name} {index} of block {number}");
            }
        }
        let mut less = shown.clone();
        less["state"] = json!([]);
        assert!(Witness::read(&less, &network).execute(&block, &network).is_none(), "block {number}");
    }
    // The code of an account that a block only names is not run.
    assert!(all > 100 && failed * 4 > all * 3, "{failed} of {all}");
}

#[test]
fn the_next_block_and_the_first_have_no_witness() {
    let mut fixture = Fixture::new();
    for (block, answer) in [("0x0", Value::Null), ("0xffff", Value::Null)] {
        assert_eq!(fixture.dev.get("debug_executionWitness", json!([block])), answer, "{block}");
    }
    let (code, text) = fixture.dev.refused("debug_executionWitness", json!(["pending"]));
    assert_eq!(code, -32602, "{text}");
}
