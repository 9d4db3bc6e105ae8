//! Tests of a development chain's store: full disks, and restoring the chain.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use alloy_primitives::{Address, B256};
use redb::{Database, StorageBackend};
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::engine::{DevNode, HostInput, LocalNode as _};
use serde_json::{Value, json};

use super::*;
use crate::bitcoin_chain::RegtestChain;
use crate::store::{ChainStore, OpenStore, RestoreError};

/// A disk in memory. Its contents survive closing the database, and tests can make it full.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    full: Arc<AtomicBool>,
    /// Number of writes until the disk is full.
    left: Arc<AtomicU64>,
}

impl Default for Disk {
    fn default() -> Self {
        Self { bytes: Arc::default(), full: Arc::default(), left: Arc::new(AtomicU64::new(u64::MAX)) }
    }
}

impl Disk {
    /// Makes the disk full after so many writes.
    pub(super) fn fail_after(&self, writes: u64) {
        self.left.store(writes, Ordering::Relaxed);
    }

    /// Gives the disk room again.
    pub(super) fn recover(&self) {
        self.fail_after(u64::MAX);
    }

    fn check(&self) -> io::Result<()> {
        let take = |left: u64| left.checked_sub(1);
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        if taken.is_err() || self.full.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = offset as usize;
        out.copy_from_slice(&self.bytes.lock().unwrap()[offset..offset + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.bytes.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        let offset = offset as usize;
        self.bytes.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }
}

pub(super) fn opener(disk: &Disk, genesis: B256) -> OpenStore {
    let disk = disk.clone();
    Box::new(move || ChainStore::with(Database::builder().create_with_backend(disk.clone())?, genesis))
}

const NOBODY: Address = Address::repeat_byte(0xaa);

pub(super) fn node(history: Option<u64>) -> DevNode {
    let config = DevConfig { history, mining: Mining::Instant, ..DevConfig::new(&DevAccounts::default()) };
    DevNode::new(config, HostInput { now: 1_700_000_000, entropy: B256::ZERO }).unwrap()
}

pub(super) fn open(disk: &Disk, history: Option<u64>) -> Result<LocalService, RestoreError> {
    let mut node = node(history);
    let genesis = node.local().head().hash();
    let chain = node.chain_mut().local_mut();
    let persist = ChainPersistence::restore(opener(disk, genesis), chain, history, true)?;
    let entropy = Entropy::from_system().unwrap();
    Ok(LocalService::new(Box::new(node), LocalOptions::default(), entropy, Some(persist)))
}

pub(super) fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

pub(super) async fn send(service: &LocalService, message: Value) -> Value {
    let answer = service.answer(message.to_string().into_bytes()).await;
    serde_json::from_str(&answer.into_text().unwrap()).unwrap()
}

pub(super) async fn get(service: &LocalService, method: &str, params: Value) -> Value {
    let mut answer = send(service, request(method, params)).await;
    assert!(answer["error"].is_null(), "{method}: {answer}");
    answer["result"].take()
}

async fn transfer(service: &LocalService) -> Value {
    let from = get(service, "eth_accounts", json!([])).await[0].clone();
    let transaction = json!([{ "from": from, "to": NOBODY, "value": "0x5" }]);
    send(service, request("eth_sendTransaction", transaction)).await
}

/// A change that cannot be written to disk gives an error and is not visible to readers. It succeeds when it is sent
/// again after the disk has room.
#[tokio::test]
async fn a_change_that_a_full_disk_refuses_is_an_error_and_not_visible() {
    let disk = Disk::default();
    let service = open(&disk, None).unwrap();
    get(&service, "hardhat_mine", json!(["0x3"])).await;
    disk.full.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        let refused = transfer(&service).await;
        assert_eq!(refused["error"]["code"], -32603, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("written to disk"), "{refused}");
        assert!(service.with_node(|node| node.dev().unwrap().mine(1_700_000_100).is_ok()).is_err());
        assert_eq!(get(&service, "eth_blockNumber", json!([])).await, "0x3");
        assert_eq!(get(&service, "eth_getBalance", json!([NOBODY, "latest"])).await, "0x0");
        let health = service.health();
        assert!(!health.ready && health.reason.unwrap().contains("written to disk"));
    }
    disk.full.store(false, Ordering::Relaxed);
    assert!(transfer(&service).await["error"].is_null());
    assert!(service.health().ready);
    assert_eq!(get(&service, "eth_blockNumber", json!([])).await, "0x4");
    drop(service);
    let again = open(&disk, None).unwrap();
    assert_eq!(get(&again, "eth_blockNumber", json!([])).await, "0x4");
    assert_eq!(get(&again, "eth_getBalance", json!([NOBODY, "latest"])).await, "0x5");
}

/// A change that cannot be written to disk leaves no Bitcoin blocks, and those that it has replaced are back.
#[tokio::test]
async fn a_change_that_a_full_disk_refuses_leaves_the_bitcoin_chain_as_it_was() {
    let disk = Disk::default();
    let bitcoin = Arc::new(RegtestChain::new(1));
    let service = open(&disk, None).unwrap();
    service.with_node(|node| node.dev().unwrap().set_bitcoin(bitcoin.clone())).unwrap();
    get(&service, "hardhat_mine", json!(["0x5"])).await;
    let before = bitcoin.headers(0, 99);
    assert_eq!(before.len(), 6);
    let replaced = json!(["0x4", { "parent": 3 }]);
    let batch = json!([request("rootlight_mineBitcoin", replaced), request("evm_mine", json!([]))]);
    disk.full.store(true, Ordering::Relaxed);
    for message in [request("evm_mine", json!([])), batch.clone()] {
        let refused = send(&service, message).await.to_string();
        assert!(refused.contains("was not made"), "{refused}");
        assert_eq!(bitcoin.headers(0, 99), before);
    }
    disk.full.store(false, Ordering::Relaxed);
    assert!(send(&service, batch).await[1]["error"].is_null());
    let after = bitcoin.headers(0, 99);
    assert_eq!((after.len(), &after[..4]), (9, &before[..4]));
    assert_ne!(after[4..6], before[4..]);
}

/// One message mines more blocks than the states kept in memory. Every block is written with its state.
#[tokio::test]
async fn a_chain_with_a_short_history_is_restored() {
    let disk = Disk::default();
    let service = open(&disk, Some(10)).unwrap();
    transfer(&service).await;
    get(&service, "hardhat_mine", json!(["0x64"])).await;
    drop(service);
    for history in [Some(10), Some(1_000), None] {
        let again = open(&disk, history).unwrap();
        assert_eq!(get(&again, "eth_blockNumber", json!([])).await, "0x65");
        assert_eq!(get(&again, "eth_getBalance", json!([NOBODY, "latest"])).await, "0x5");
        let old = send(&again, request("eth_getBalance", json!([NOBODY, "0x2"]))).await;
        assert_eq!(old["result"].is_null(), history == Some(10), "{old}");
    }
}

/// Direct changes of the state are restored: at the head, below a block mined on them, and made in the same message
/// as the block.
#[tokio::test]
async fn direct_changes_are_restored_apart_from_executed_states() {
    let disk = Disk::default();
    let service = open(&disk, None).unwrap();
    get(&service, "anvil_setBalance", json!([NOBODY, "0x1"])).await;
    let batch = json!([request("evm_mine", json!([])), request("anvil_setBalance", json!([NOBODY, "0x2"]))]);
    send(&service, batch).await;
    let transfer = transfer(&service).await["result"].clone();
    get(&service, "anvil_setBalance", json!([NOBODY, "0x9"])).await;
    drop(service);
    for _ in 0..2 {
        let again = open(&disk, None).unwrap();
        for (block, balance) in [("0x0", "0x1"), ("0x1", "0x2"), ("latest", "0x9")] {
            assert_eq!(get(&again, "eth_getBalance", json!([NOBODY, block])).await, balance, "{block}");
        }
        // The block is executed again on the changed state on which it was mined.
        let trace = get(&again, "trace_transaction", json!([transfer])).await;
        assert_eq!(trace[0]["action"]["value"], "0x5");
    }
    let again = open(&disk, None).unwrap();
    get(&again, "evm_reset", json!([])).await;
    drop(again);
    let again = open(&disk, None).unwrap();
    assert_eq!(get(&again, "eth_blockNumber", json!([])).await, "0x0");
    assert_eq!(get(&again, "eth_getBalance", json!([NOBODY, "latest"])).await, "0x0");
}

/// A follower does not serve states that were changed directly.
#[tokio::test]
async fn a_follower_refuses_a_store_with_directly_changed_states() {
    let disk = Disk::default();
    let service = open(&disk, None).unwrap();
    get(&service, "evm_mine", json!([])).await;
    get(&service, "anvil_setBalance", json!([NOBODY, "0x1"])).await;
    drop(service);
    let mut node = node(None);
    let genesis = node.local().head().hash();
    let refused =
        ChainPersistence::restore(opener(&disk, genesis), node.chain_mut().local_mut(), None, false);
    assert!(matches!(refused, Err(RestoreError::Edited(_))));
}

/// The store holds another block under the hash of the head.
#[tokio::test]
async fn a_stored_block_with_another_hash_is_refused() {
    let disk = Disk::default();
    let service = open(&disk, None).unwrap();
    get(&service, "hardhat_mine", json!(["0x2"])).await;
    let mut node = node(None);
    let genesis = node.local().head().hash();
    drop(service);
    let store = opener(&disk, genesis)().unwrap();
    let head = store.head().unwrap().unwrap();
    let parent = rootlight::types::Block::decode(&store.block(head).unwrap().unwrap().block, &|number| {
        node.local().network().header_shape(number)
    })
    .unwrap()
    .header
    .parent_hash;
    let wrong = crate::store::StoredBlock { hash: head, ..store.block(parent).unwrap().unwrap() };
    store.append(&[wrong], &[], head).unwrap();
    drop(store);
    let refused = ChainPersistence::restore(opener(&disk, genesis), node.chain_mut().local_mut(), None, true);
    assert!(
        matches!(refused, Err(RestoreError::OtherBlock { hash, found }) if (hash, found) == (head, parent))
    );
}

/// Writing a chain fails if the parent of a block is neither in memory nor in the store.
#[test]
fn saving_a_chain_with_a_missing_parent_is_an_error() {
    let disk = Disk::default();
    let mut empty = node(None);
    let genesis = empty.local().head().hash();
    let mut persist =
        ChainPersistence::restore(opener(&disk, genesis), empty.chain_mut().local_mut(), None, true).unwrap();
    let config = DevConfig::new(&DevAccounts { count: 1, ..DevAccounts::default() });
    let mut other = DevNode::new(config, HostInput { now: 1_700_000_000, entropy: B256::ZERO }).unwrap();
    other.chain_mut().mine(1_700_000_000).unwrap();
    let refused = persist.save(other.local(), Vec::new(), None);
    assert!(matches!(refused, Err(ChainStoreError::MissingBlock { .. })));
}

/// Answers of the pending block and the settings of later ones.
async fn settings(service: &LocalService) -> Vec<Value> {
    let mut found = Vec::new();
    for method in ["eth_gasPrice", "eth_coinbase"] {
        found.push(send(service, request(method, json!([]))).await["result"].take());
    }
    let pending = send(service, request("eth_getBlockByNumber", json!(["pending", false]))).await;
    found.extend(["gasLimit", "minimumGasPrice"].map(|field| pending["result"][field].clone()));
    found
}

async fn time(service: &LocalService, block: &str) -> u64 {
    let block = send(service, request("eth_getBlockByNumber", json!([block, false]))).await;
    let text = block["result"]["timestamp"].as_str().unwrap().to_owned();
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

#[tokio::test]
async fn the_clock_and_the_settings_of_later_blocks_survive_a_restart() {
    let disk = Disk::default();
    let service = open(&disk, None).unwrap();
    send(&service, request("evm_mine", json!([]))).await;
    let start = time(&service, "latest").await;
    // Settings are stored although no block follows.
    for (method, params) in [
        ("evm_increaseTime", json!([31_536_000])),
        ("anvil_setMinGasPrice", json!(["0x32"])),
        ("evm_setBlockGasLimit", json!(["0x1c9c380"])),
        ("anvil_setCoinbase", json!([NOBODY])),
    ] {
        assert!(send(&service, request(method, params)).await["error"].is_null(), "{method}");
    }
    let before = settings(&service).await;
    drop(service);
    let service = open(&disk, None).unwrap();
    assert_eq!(settings(&service).await, before);
    assert!(time(&service, "pending").await >= start + 31_536_000);
    send(&service, request("evm_mine", json!([]))).await;
    let head = time(&service, "latest").await;
    assert!(head >= start + 31_536_000);
    send(&service, request("evm_increaseTime", json!([100]))).await;
    send(&service, request("evm_mine", json!([]))).await;
    assert!(time(&service, "latest").await >= head + 100);
    // A timestamp that waits for its block.
    let next = head + 1_000_000;
    send(&service, request("evm_setNextBlockTimestamp", json!([next]))).await;
    drop(service);
    let service = open(&disk, None).unwrap();
    assert_eq!(time(&service, "pending").await, next);
}

/// A folder of a version without settings, or with settings of another form.
#[tokio::test]
async fn settings_that_cannot_be_read_are_left_out() {
    let disk = Disk::default();
    let service = open(&disk, None).unwrap();
    send(&service, request("anvil_setMinGasPrice", json!(["0x32"]))).await;
    drop(service);
    let genesis = node(None).local().head().hash();
    opener(&disk, genesis)().unwrap().set_note("settings", b"{\"clock\":7}").unwrap();
    let service = open(&disk, None).unwrap();
    assert_eq!(send(&service, request("eth_gasPrice", json!([]))).await["result"], json!("0x0"));
}
