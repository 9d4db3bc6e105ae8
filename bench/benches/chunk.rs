//! Proof of state chunks against hashing their nodes.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group};
use rootlight::trie::Trie;
use rootlight::types::{B256, Bytes, keccak256};
use rootlight_bench::ratio::{Ratio, only_ratios, seconds};
use rootlight_p2p::chunk::limits::SPAN;
use rootlight_p2p::chunk::{prove, serve};

/// Largest allowed time of proving, as a multiple of the time for the hashes.
const LIMIT: f64 = 1.5;

/// Accounts in the trie.
const ACCOUNTS: u32 = 20_000;

struct ChunkCase {
    from: u64,
    bytes: Vec<u8>,
    nodes: Vec<Bytes>,
}

/// Builds a trie, and some of its chunks. Every so many accounts there is a contract with code and some cells.
fn chunks(contract_every: u32) -> (B256, Vec<ChunkCase>) {
    let mut trie = Trie::new();
    for index in 0..ACCOUNTS {
        let address = &keccak256(index.to_be_bytes())[12..];
        let account = [&[0][..], &keccak256(address)[..10], address].concat();
        trie.put(&account, keccak256(index.to_le_bytes())[..12].to_vec());
        if index % contract_every == 0 {
            trie.put(&[&account[..], &[0]].concat(), vec![1]);
            let code = usize::from(address[0]) * 20;
            trie.put(&[&account[..], &[0x80]].concat(), vec![0x5b; code + 33]);
            for cell in 0..u32::from(address[1] % 16) {
                let slot = keccak256(cell.to_be_bytes());
                trie.put(&[&account[..], &[0], &slot[..10], &[cell as u8 + 1]].concat(), slot[..20].to_vec());
            }
        }
    }
    let mut store = std::collections::BTreeMap::new();
    trie.for_each_stored(&mut |hash, bytes| drop(store.insert(hash, bytes)));
    let (root, size) = (trie.root(), serve::trie_size(&store, &trie.root()).expect("not empty"));
    let chunk = |index: u64| {
        let from = index * (size / 40);
        let bytes = serve::chunk(&store, &root, from).expect("within the trie").bytes;
        let proven = prove(&bytes, &root, from).expect("honest");
        let nodes = proven.iter().map(|(_, bytes)| Bytes::copy_from_slice(bytes)).collect();
        ChunkCase { from, bytes, nodes }
    };
    assert!(size > 40 * SPAN);
    (root, (0..40).map(chunk).collect())
}

fn hash_all(chunks: &[ChunkCase]) {
    for node in chunks.iter().flat_map(|chunk| &chunk.nodes) {
        black_box(keccak256(node));
    }
}

fn prove_all(root: B256, chunks: &[ChunkCase]) {
    for chunk in chunks {
        assert!(black_box(prove(&chunk.bytes, &root, chunk.from)).is_ok());
    }
}

fn chunk(c: &mut Criterion) {
    for (name, contract_every) in [("much code", 4), ("little code", 100)] {
        let (root, chunks) = chunks(contract_every);
        let bytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        let nodes: usize = chunks.iter().map(|chunk| chunk.nodes.len()).sum();
        println!("{name}: {} bytes and {} nodes per chunk", bytes / chunks.len(), nodes / chunks.len());
        let mut group = c.benchmark_group(format!("state chunks, {name}"));
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function("bare hashes", |b| b.iter(|| hash_all(&chunks)));
        group.bench_function("proven", |b| b.iter(|| prove_all(root, &chunks)));
        group.finish();
    }
}

criterion_group!(benches, chunk);

fn main() {
    if !only_ratios() {
        benches();
    }
    for (name, contract_every) in [("much", 4), ("little", 100)] {
        let (root, chunks) = chunks(contract_every);
        let ratio = Ratio::measure(&seconds, 100, || hash_all(&chunks), || prove_all(root, &chunks));
        println!("{}", ratio.report(&format!("proof of state chunks with {name} code to its hashes"), LIMIT));
    }
}
