//! A recorded state with many additional accounts, in the form in which a local chain holds it.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use rootlight::state::{Account, World};
use rootlight::trie::{Loader, Trie};
use serde_json::Value;

use crate::recordings::read;

/// The recorded token, which the first funded account holds.
pub const TOKEN: &str = "0x83c5541a6c8d2dbad642f385d8d06ca9b6c731ee";
/// The block whose state is used.
const BLOCK: u64 = 642;
/// Number of accounts besides those of the recording in benchmarks that take time.
pub const ACCOUNTS: u64 = 100_000;

/// Returns the recorded state with additional accounts; `None` if the recordings are missing.
#[must_use]
pub fn state(accounts: u64) -> Option<Trie> {
    let (blocks, nodes) = (read("vectors/chain/blocks.jsonl")?, read("vectors/chain/state_nodes.jsonl")?);
    let lines = |text: &str| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let hash = |value: &Value| value.as_str().expect("a hash").parse::<B256>().expect("a hash");
    let bytes = |value: &Value| {
        let text = value.as_str().expect("hex").trim_start_matches("0x");
        Bytes::from(hex::decode(text).expect("hex"))
    };
    let nodes: BTreeMap<B256, Bytes> =
        lines(&nodes).iter().map(|node| (hash(&node["hash"]), bytes(&node["value"]))).collect();
    let blocks = lines(&blocks);
    let mut blocks = blocks.iter().map(|line| &line["response"]["result"]);
    let block = blocks.rfind(|block| block["number"] == format!("{BLOCK:#x}")).expect("recorded");
    let trie = Loader::new(&nodes).load(hash(&block["stateRoot"])).expect("recorded");
    let mut world = World::new(trie);
    for index in 0..accounts {
        let address = Address::from_word(keccak256(index.to_be_bytes()));
        world.set_account(
            &address,
            Account { nonce: index, balance: U256::from(index), ..Account::default() },
        );
    }
    let mut state = world.commit();
    // Removes the nonce of the REMASC transaction, so that the next block can be block 1.
    state.delete(&rootlight::state::keys::REMASC_SENDER_KEY);
    state.root();
    Some(state)
}
