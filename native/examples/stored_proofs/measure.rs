//! The measurements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rootlight::consensus::Network;
use rootlight::state::keys::{account_key, slot_key};
use rootlight::trie::{NodeSource, StoreFault, TrieStore, prove};
use rootlight::types::{Address, B256, Bytes, U256};
use rootlight_native::replay::Replay;
use rootlight_native::rskj_store::RskjStore;
use rootlight_native::service::Service as _;
use rootlight_native::sidecar::{SidecarOptions, SidecarService};
use serde_json::{Value, json};

/// How long each measurement takes.
const TIME: Duration = Duration::from_secs(3);

/// Slots of each proof of a contract.
const SLOTS: u64 = 10;

pub(crate) type Failure = Box<dyn std::error::Error>;

/// Runs the work again and again; returns microseconds for each time.
fn measure(mut work: impl FnMut(usize) -> Result<(), Failure>) -> Result<f64, Failure> {
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < TIME {
        work(usize::try_from(count)?)?;
        count = count.saturating_add(1);
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

/// The accounts of recorded proofs, with the block and root of each.
fn accounts(chain: &str) -> Result<Vec<(Address, u64, B256)>, Failure> {
    let text = std::fs::read_to_string(format!("{chain}/state_proofs.jsonl"))?;
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found = lines.filter_map(|line| {
        let parse = |name: &str| line[name].as_str();
        Some((parse("address")?.parse().ok()?, line["block"].as_u64()?, parse("root")?.parse().ok()?))
    });
    Ok(found.collect())
}

/// Notes the hashes that a proof reads.
#[derive(Debug)]
struct Noted<'a>(&'a RskjStore, std::sync::Mutex<Vec<B256>>);

impl NodeSource for Noted<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        if let Ok(mut noted) = self.1.lock() {
            noted.push(*hash);
        }
        self.0.node(hash)
    }
}

impl TrieStore for Noted<'_> {
    fn why_missing(&self, hash: &B256) -> StoreFault {
        self.0.why_missing(hash)
    }
}

/// Measures and prints.
pub(crate) fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [chain, folder] = arguments.as_slice() else { return Err("give CHAIN and STORE".into()) };
    let (accounts, store) = (accounts(chain)?, Arc::new(RskjStore::open(folder.as_ref(), 64 << 20)?));
    let keys = |address: &Address| {
        let slots = (0..SLOTS).map(|slot| slot_key(address, &U256::from(slot)));
        std::iter::once(account_key(address).to_vec()).chain(slots).collect::<Vec<_>>()
    };
    let mut reads = Vec::new();
    for (address, _, root) in &accounts {
        let noted = Noted(&store, std::sync::Mutex::default());
        keys(address).iter().try_for_each(|key| prove(&noted, *root, key).map(drop))?;
        reads.push(noted.1.into_inner()?);
    }
    let nodes = reads.iter().map(Vec::len).sum::<usize>() / reads.len().max(1);
    let one = measure(|count| {
        let hashes = reads.get(count % reads.len()).ok_or("no proof")?;
        hashes.iter().try_for_each(|hash| store.node(hash).map(drop).ok_or("missing").map_err(Failure::from))
    })?;
    println!("reads of the nodes of an account and {SLOTS} slots ({nodes} nodes on average): {one:.1} us");
    let disk = measure(|count| {
        let hashes = reads.get(count % reads.len()).ok_or("no proof")?;
        hashes.iter().for_each(|hash| drop(store.why_missing(hash)));
        Ok(())
    })?;
    println!("the same reads past the cache of nodes: {disk:.1} us, {:.2} times", disk / one);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let node = Arc::new(Replay::open(chain)?);
    let service = runtime.block_on(async {
        let options = SidecarOptions { executes: true, ..SidecarOptions::default() };
        let service = SidecarService::start(Network::regtest(), node, store.clone(), options).await?;
        service.settled(Duration::from_secs(60)).await;
        Ok::<_, Failure>(service)
    })?;
    let slots: Vec<String> = (0..SLOTS).map(|slot| format!("{slot:#x}")).collect();
    for (name, slots) in
        [("eth_getProof of an account and ten slots", slots), ("eth_getProof of an account", Vec::new())]
    {
        let whole = measure(|count| {
            let (address, block, _) = accounts.get(count % accounts.len()).ok_or("no account")?;
            let params = json!([address, slots, format!("{block:#x}")]);
            let message =
                json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getProof", "params": params}).to_string();
            let body = runtime.block_on(service.answer(message.into_bytes())).into_text().ok_or("no answer")?;
            if body.contains("\"error\"") { Err(body.into()) } else { Ok(()) }
        })?;
        println!("{name}: {whole:.1} us, {:.0} a second, {:.2} times the reads", 1e6 / whole, whole / disk);
    }
    Ok(())
}
