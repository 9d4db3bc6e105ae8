//! Tests of the index of blocks: whatever happens to a chain, its answers equal those of reading every block.

use alloy_primitives::{Address, B256, hex};
use proptest::prelude::*;
use redb::ReadableTable as _;
use rootlight::engine::{HostInput, LocalNode as _, LogFilter, View, block_logs, range_logs};
use rootlight::types::{Block, BlockBody};
use serde_json::{Value, json};

use super::disk_test::{Disk, get, node, open, opener, request, send};
use super::*;
use crate::index::encode_row;
use crate::store::{INDEX, META, STATE};

/// Creates a contract that writes a log with the two words of its call data as topics.
const CREATE: &str = "0x6a60203560003560006000a2600052600b6015f3";

/// The account that sends all transactions.
fn sender() -> Address {
    node(None).chain().wallet().addresses()[0]
}

/// The first two contracts that the sender creates.
fn contracts() -> [Address; 2] {
    [0, 1].map(|nonce| sender().create(nonce))
}

#[derive(Debug, Clone)]
enum ChainStep {
    /// A transaction that writes a log: its contract and topics.
    Log(usize, u8, u8),
    Mine(u64),
    Snapshot,
    Revert(u64),
    Reset,
    /// Two logs in one message, the first of which is reverted in the same message.
    RevertedInBatch(u8),
    /// The process ends while a log is written to disk, after so many writes.
    Crash(u64, u8),
    /// The disk is full for one message.
    Full(u8),
    Restart,
    /// The index is lost, and built again in the background.
    Lost,
}

fn step() -> impl Strategy<Value = ChainStep> {
    prop_oneof![
        8 => (0..2_usize, 0..4_u8, 0..4_u8).prop_map(|(contract, a, b)| ChainStep::Log(contract, a, b)),
        2 => (1..9_u64).prop_map(ChainStep::Mine),
        2 => Just(ChainStep::Snapshot),
        2 => (1..4_u64).prop_map(ChainStep::Revert),
        1 => Just(ChainStep::Reset),
        1 => (0..4_u8).prop_map(ChainStep::RevertedInBatch),
        2 => (0..12_u64, 0..4_u8).prop_map(|(writes, topic)| ChainStep::Crash(writes, topic)),
        1 => (0..4_u8).prop_map(ChainStep::Full),
        1 => Just(ChainStep::Restart),
        1 => Just(ChainStep::Lost),
    ]
}

fn word(byte: u8) -> B256 {
    B256::with_last_byte(byte)
}

fn logging(contract: usize, a: u8, b: u8) -> Value {
    let (to, data) = (contracts()[contract], hex::encode_prefixed([word(a), word(b)].concat()));
    request("eth_sendTransaction", json!([{ "from": sender(), "to": to, "data": data, "gas": "0x30d40" }]))
}

/// Filters of every shape over the two contracts and four topics.
fn filters() -> Vec<LogFilter> {
    let contracts = contracts();
    let mut all = Vec::new();
    for addresses in [vec![], vec![contracts[0]], vec![contracts[1]], contracts.to_vec()] {
        for first in [vec![], vec![word(1)], vec![word(0), word(3)], vec![word(9)]] {
            for topics in
                [vec![], vec![first.clone()], vec![first.clone(), vec![word(2)]], vec![vec![], vec![], first]]
            {
                all.push(LogFilter { addresses: addresses.clone(), topics });
            }
        }
    }
    all
}

/// Compares searches over several ranges with reading every block.
fn compare(view: &dyn View) {
    let head = view.height().unwrap();
    for filter in filters() {
        let plain: Vec<_> = (0..=head)
            .flat_map(|number| {
                block_logs(view, &view.header_by_number(number).unwrap().unwrap(), &filter).unwrap()
            })
            .collect();
        for (from, to) in [(0, u64::MAX), (head / 2, head), (head / 3, head / 2)] {
            let within = |number: u64| (from..=to).contains(&number);
            let expected: Vec<_> = plain.iter().filter(|log| within(log.block.number)).cloned().collect();
            assert_eq!(range_logs(view, from, to, &filter), Ok(expected), "{filter:?} in {from}..={to}");
        }
    }
}

fn compare_service(service: &LocalService) {
    let snapshot = service.parts.view();
    compare(&*snapshot.view(1_700_000_000, &|| false));
}

async fn create_contracts(service: &LocalService) {
    for _ in 0..2 {
        let create = json!([{ "from": sender(), "data": CREATE, "gas": "0x30d40" }]);
        get(service, "eth_sendTransaction", create).await;
    }
}

fn lose_index(disk: &Disk) {
    let genesis = node(None).local().head().hash();
    let store = opener(disk, genesis)().unwrap();
    let write = store.write().unwrap();
    write.open_table(META).unwrap().remove(STATE).unwrap();
    write.commit().unwrap();
}

async fn run(steps: Vec<ChainStep>) {
    let disk = Disk::default();
    let mut service = open(&disk, None).unwrap();
    create_contracts(&service).await;
    for step in steps {
        match step {
            ChainStep::Log(contract, a, b) => drop(send(&service, logging(contract, a, b)).await),
            ChainStep::Mine(blocks) => {
                drop(get(&service, "hardhat_mine", json!([format!("{blocks:#x}")])).await)
            }
            ChainStep::Snapshot => drop(get(&service, "evm_snapshot", json!([])).await),
            ChainStep::Revert(id) => {
                drop(send(&service, request("evm_revert", json!([format!("{id:#x}")]))).await)
            }
            ChainStep::Reset => {
                get(&service, "evm_reset", json!([])).await;
                create_contracts(&service).await;
            }
            ChainStep::RevertedInBatch(topic) => {
                let id = get(&service, "evm_snapshot", json!([])).await;
                let revert = request("evm_revert", json!([id]));
                let all = json!([logging(0, topic, 3), request("evm_snapshot", json!([])), revert]);
                send(&service, all).await;
            }
            ChainStep::Crash(writes, topic) => {
                disk.fail_after(writes);
                send(&service, logging(1, topic, 2)).await;
                drop(service);
                disk.recover();
                service = open(&disk, None).unwrap();
            }
            ChainStep::Full(topic) => {
                disk.fail_after(0);
                send(&service, logging(0, topic, topic)).await;
                disk.recover();
            }
            ChainStep::Restart => {
                drop(service);
                service = open(&disk, None).unwrap();
            }
            ChainStep::Lost => {
                drop(service);
                lose_index(&disk);
                service = open(&disk, None).unwrap();
            }
        }
        compare_service(&service);
    }
    drop(service);
    compare_traces(&disk).await;
}

/// Compares `trace_filter` with that of a node that has no index.
async fn compare_traces(disk: &Disk) {
    let mut plain = node(None);
    let genesis = plain.local().head().hash();
    drop(
        ChainPersistence::restore(opener(disk, genesis), plain.chain_mut().local_mut(), None, true).unwrap(),
    );
    let service = open(disk, None).unwrap();
    let mut client = LocalClient::new(Box::new(plain));
    let accounts = [json!([]), json!(sender()), json!(contracts()), json!([contracts()[0]])];
    for sender in &accounts {
        for recipient in &accounts {
            let filter = json!([{ "fromBlock": "0x0", "fromAddress": sender, "toAddress": recipient }]);
            let message = request("trace_filter", filter);
            let open = client.open(message.to_string().as_bytes());
            let expected =
                client.answer(open, host_input(&service.parts.entropy), &|| false).into_text().unwrap();
            let expected: Value = serde_json::from_str(&expected).unwrap();
            assert!(expected["result"].is_array(), "{expected}");
            assert_eq!(send(&service, message).await, expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A development chain that mines, reverts, restarts, crashes and loses its index.
    #[test]
    fn an_indexed_chain_gives_the_logs_of_a_plain_scan(steps in proptest::collection::vec(step(), 1..20)) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run(steps));
    }

    /// A follower imports the blocks of three branches in any order, so that its chain is reorganized.
    #[test]
    fn a_reorganized_chain_gives_the_logs_of_a_plain_scan(
        topics in proptest::collection::vec((0..2_usize, 0..4_u8, 0..4_u8), 24),
        order in proptest::collection::vec(0..3_usize, 24),
        restarts in proptest::collection::vec(any::<bool>(), 24),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let branches: Vec<Vec<Block>> =
            topics.chunks(8).enumerate().map(|(which, logs)| runtime.block_on(branch(which, logs))).collect();
        let (disk, mut at) = (Disk::default(), [0; 3]);
        let mut service = open(&disk, None).unwrap();
        for (which, restart) in order.into_iter().zip(restarts) {
            if restart {
                drop(service);
                service = open(&disk, None).unwrap();
                // Side blocks are not stored, so that the branches are imported again.
                at = [0; 3];
            }
            let Some(block) = branches[which].get(at[which]) else { continue };
            at[which] += 1;
            service.with_node(|node| node.import(block.clone(), None).map(drop)).unwrap().unwrap();
            compare_service(&service);
        }
    }
}

/// The blocks of a chain from block 1 on: one that no other branch has, the contracts, and the logs.
async fn branch(which: usize, logs: &[(usize, u8, u8)]) -> Vec<Block> {
    let entropy = Entropy::from_system().unwrap();
    let service = LocalService::new(Box::new(node(None)), LocalOptions::default(), entropy, None);
    let other = get(&service, "eth_accounts", json!([])).await[1].clone();
    let apart = json!([{ "from": other, "to": other, "value": format!("{which:#x}") }]);
    get(&service, "eth_sendTransaction", apart).await;
    create_contracts(&service).await;
    for (contract, a, b) in logs {
        send(&service, logging(*contract, *a, *b)).await;
    }
    // This chain has an index in memory.
    compare_service(&service);
    let chain = service.with_node(|node| node.local().clone()).unwrap();
    let block = |number| {
        let hash = chain.headers().hash_at(number).unwrap();
        let uncles =
            chain.uncles(&hash).unwrap().headers().iter().map(|uncle| uncle.header().clone()).collect();
        let header = chain.headers().by_hash(&hash).unwrap().header().clone();
        let body = BlockBody { transactions: chain.block(&hash).unwrap().body.transactions().to_vec() };
        Block { header, body, uncles }
    };
    (1..=chain.head().number).map(block).collect()
}

/// Rows of an older store are added from the top down, also after an interruption in between.
#[tokio::test]
async fn an_index_that_is_being_built_leaves_out_no_block() {
    let disk = Disk::default();
    let service = open(&disk, None).unwrap();
    create_contracts(&service).await;
    for at in 0..30_u8 {
        send(&service, logging(usize::from(at % 2), at % 4, at % 3)).await;
    }
    drop(service);
    lose_index(&disk);
    let mut floors = Vec::new();
    for _ in 0..9 {
        let mut node = node(None);
        let genesis = node.local().head().hash();
        let persist =
            ChainPersistence::restore(opener(&disk, genesis), node.chain_mut().local_mut(), None, true)
                .unwrap();
        let index = persist.index().clone();
        node.set_index(index.clone());
        floors.push(index.progress().map(|progress| progress.total - progress.done));
        compare(&*node.snapshot().view(1_700_000_000, &|| false));
        index.build_some(node.local()).unwrap();
        compare(&*node.snapshot().view(1_700_000_000, &|| false));
    }
    // Seven blocks at a time in tests.
    assert_eq!(floors, [Some(33), Some(26), Some(19), Some(12), Some(5), None, None, None, None]);
}

/// A damaged row is not used: searches read every block, and the next start builds the index again.
#[tokio::test]
async fn a_damaged_row_leads_to_a_new_index() {
    let disk = Disk::default();
    let service = open(&disk, None).unwrap();
    create_contracts(&service).await;
    send(&service, logging(0, 1, 2)).await;
    drop(service);
    let genesis = node(None).local().head().hash();
    let store = opener(&disk, genesis)().unwrap();
    let write = store.write().unwrap();
    {
        let mut rows = write.open_table(INDEX).unwrap();
        let keys: Vec<[u8; 24]> = rows.iter().unwrap().map(|entry| *entry.unwrap().0.value()).collect();
        assert!(keys.len() > 5);
        for key in keys {
            // An empty bitmap, which would hide the log, with the checksum of another row.
            rows.insert(&key, encode_row(&[7; 24], &Default::default()).as_slice()).unwrap();
        }
    }
    write.commit().unwrap();
    drop(store);
    let service = open(&disk, None).unwrap();
    compare_service(&service);
    send(&service, logging(1, 3, 3)).await;
    compare_service(&service);
    drop(service);
    let service = open(&disk, None).unwrap();
    assert!(service.health().log_index.is_some() || service.index.as_ref().unwrap().progress().is_none());
    while service.health().log_index.is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    compare_service(&service);
    assert_eq!(candidates(&service, contracts()[1]), [4]);
}

/// An older version of the program writes blocks without the index.
#[tokio::test]
async fn blocks_written_without_the_index_are_added_at_the_next_start() {
    let disk = Disk::default();
    let service = open(&disk, None).unwrap();
    create_contracts(&service).await;
    drop(service);
    let mut node = node(None);
    let genesis = node.local().head().hash();
    let mut persist =
        ChainPersistence::restore(opener(&disk, genesis), node.chain_mut().local_mut(), None, true).unwrap();
    let mut client = LocalClient::new(Box::new(node));
    let message = client.open(logging(0, 1, 2).to_string().as_bytes());
    client.answer(message, HostInput { now: 1_800_000_000, entropy: B256::ZERO }, &|| false);
    let settled = client.node().take_block_states();
    persist.save_without_index(client.node().local(), settled).unwrap();
    drop((persist, client));
    let service = open(&disk, None).unwrap();
    compare_service(&service);
    while service.health().log_index.is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    compare_service(&service);
    assert_eq!(candidates(&service, contracts()[0]), [3]);
}

/// Blocks that the index names for a contract, up to the head.
fn candidates(service: &LocalService, contract: Address) -> Vec<u64> {
    let snapshot = service.parts.view();
    let view = snapshot.view(0, &|| false);
    let filter = LogFilter { addresses: vec![contract], topics: Vec::new() };
    view.log_blocks(&filter, 0, view.height().unwrap()).collect()
}

/// Test suites revert to the same snapshot many times; the index in memory does not grow with each of them.
#[tokio::test]
async fn an_index_in_memory_is_made_again_after_many_reverts() {
    let entropy = Entropy::from_system().unwrap();
    let service = LocalService::new(Box::new(node(None)), LocalOptions::default(), entropy, None);
    create_contracts(&service).await;
    let id = get(&service, "evm_snapshot", json!([])).await;
    let added = || {
        let added = service.with_node(|node| node.local().index().unwrap().added());
        added.unwrap()
    };
    for _ in 0..9 {
        get(&service, "hardhat_mine", json!(["0x3e8"])).await;
        get(&service, "evm_revert", json!([id])).await;
        assert!(added() <= 6_000, "{}", added());
    }
    send(&service, logging(0, 1, 2)).await;
    compare_service(&service);
    assert_eq!(candidates(&service, contracts()[0]), [3]);
}
