//! Blocks full of ERC-20 transfers: executed with sender recovery and every root, and built.

use std::collections::BTreeMap;

use alloy_primitives::{keccak256, Address, Bytes, B256, U256};
use criterion::{criterion_group, Criterion, Throughput};
use rootlight::consensus::body::{root_format, transactions_root};
use rootlight::consensus::Network;
use rootlight::dev::PrivateKey;
use rootlight::exec::{
    build_block, check_block, execute_block, Ancestry, BlockEnvironment, BlockInput, Built, Candidate,
    NoObserver,
};
use rootlight::state::{Account, World};
use rootlight::trie::{Loader, Trie};
use rootlight::types::{Header, RawUint, SealedHeader, Transaction};
use rootlight_bench::ratio::{only_ratios, seconds, Ratio};
use rootlight_bench::recordings::read;
use serde_json::Value;

/// The recorded token; the first funded account holds it. The block whose state is taken.
const TOKEN: &str = "0x83c5541a6c8d2dbad642f385d8d06ca9b6c731ee";
const BLOCK: u64 = 642;
/// Transfers in a block.
const TRANSFERS: u64 = 250;
/// Accounts beside those that take part.
const ACCOUNTS: u64 = 100_000;

/// The block is block 1, where REMASC looks at nothing yet.
struct NoAncestors;

impl Ancestry for NoAncestors {
    fn header(&self, _: u64) -> Option<SealedHeader> {
        None
    }

    fn uncles(&self, _: u64) -> Option<Vec<Header>> {
        None
    }
}

/// The recorded state among many other accounts.
fn state() -> Option<Trie> {
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
    for index in 0..ACCOUNTS {
        let address = Address::from_word(keccak256(index.to_be_bytes()));
        world.set_account(
            &address,
            Account { nonce: index, balance: U256::from(index), ..Account::default() },
        );
    }
    let mut state = world.commit();
    // As if no REMASC transaction had been: block 1 comes next.
    state.delete(&rootlight::state::keys::REMASC_SENDER_KEY);
    state.root();
    Some(state)
}

struct Sample {
    network: Network,
    state: Trie,
    header: Header,
    candidates: Vec<Candidate>,
    built: Built,
}

fn transfer(key: &PrivateKey, nonce: u64, to: Address) -> Candidate {
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
    Candidate { transaction, sender: key.address() }
}

impl Sample {
    fn load() -> Option<Self> {
        let network = Network::regtest();
        let state = state()?;
        let key = PrivateKey::from_seed("cow").expect("a key");
        let first = World::new(state.clone()).account(&key.address()).expect("it is funded").nonce;
        let to = |index: u64| Address::from_word(keccak256((index + ACCOUNTS).to_be_bytes()));
        let candidates: Vec<Candidate> =
            (0..TRANSFERS).map(|index| transfer(&key, first + index, to(index))).collect();
        let template = BlockEnvironment {
            number: 1,
            timestamp: 1_000,
            coinbase: Address::ZERO,
            difficulty: U256::from(1),
            gas_limit: U256::from(100_000_000),
            minimum_gas_price: U256::from(1),
        };
        let built = build_block(&network, &state, &template, &candidates, &NoAncestors).expect("it builds");
        assert!(built.dropped.is_empty());
        assert!(built.executed.receipts.iter().all(|receipt| receipt.success));
        let mut header = rootlight::consensus::Genesis::regtest().header(&network).into_header();
        header.shape = network.header_shape(1);
        header.number = 1;
        header.timestamp = 1_000;
        header.coinbase = Some(Address::ZERO);
        header.gas_limit = RawUint::from(100_000_000);
        header.minimum_gas_price = 1.into();
        header.edges = built.edges.clone();
        let format = root_format(&network, 1);
        header.transactions_root = transactions_root(&built.transactions, format);
        header.receipts_root = rootlight::consensus::body::receipts_root(&built.executed.receipts, format);
        header.state_root = built.executed.state.root();
        header.logs_bloom = built.executed.logs_bloom;
        header.gas_used = built.executed.gas_used;
        header.paid_fees = built.executed.paid_fees;
        Some(Self { network, state, header, candidates, built })
    }

    fn import(&self, senders: Option<&[Address]>) {
        let input = BlockInput { header: &self.header, transactions: &self.built.transactions, senders };
        let executed =
            execute_block(&self.network, &self.state, &input, &NoAncestors, &mut NoObserver).expect("valid");
        check_block(&executed, &self.header, &self.network).expect("equal");
    }

    /// Only the senders.
    fn recover(&self) -> usize {
        let recover = |transaction: &Transaction| transaction.recover_sender(33).is_ok();
        self.built.transactions.iter().filter(|transaction| recover(transaction)).count()
    }

    fn build(&self) -> B256 {
        let template = BlockEnvironment::from(&self.header);
        let built = build_block(&self.network, &self.state, &template, &self.candidates, &NoAncestors);
        built.expect("it builds").executed.state.root()
    }
}

fn blocks(c: &mut Criterion) {
    let Some(sample) = Sample::load() else { return };
    let mut group = c.benchmark_group("block of ERC-20 transfers");
    group.throughput(Throughput::Elements(TRANSFERS));
    group.bench_function("import, senders recovered", |b| b.iter(|| sample.import(None)));
    group.bench_function("import, senders known", |b| {
        b.iter(|| sample.import(Some(&sample.built.executed.senders)));
    });
    group.bench_function("build with state root", |b| b.iter(|| sample.build()));
    group.finish();
}

criterion_group!(benches, blocks);

fn main() {
    if !only_ratios() {
        benches();
    }
    let Some(sample) = Sample::load() else { return };
    let ratio = Ratio::measure(&seconds, 10, || sample.recover(), || sample.import(None));
    println!("block of ERC-20 transfers, imported, to recovering its senders: {ratio}");
}
