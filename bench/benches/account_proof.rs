//! Verification of account proofs against hashing their nodes.

use std::hint::black_box;

use criterion::{Criterion, criterion_group};
use rootlight::trie::{Trie, verify_proof};
use rootlight::types::{B256, Bytes, keccak256};
use rootlight_bench::ratio::{Ratio, only_ratios, seconds};

/// Largest allowed time of verification, as a multiple of the time for the hashes.
const LIMIT: f64 = 1.5;

/// Accounts in the trie. A proof has about 18 nodes; proofs of the main network have slightly more.
const ACCOUNTS: u32 = 100_000;

struct Proof {
    key: Vec<u8>,
    nodes: Vec<Bytes>,
}

/// Builds a trie of accounts, and proofs of some present and absent accounts with RLP-wrapped nodes.
fn proofs() -> (B256, Vec<Proof>) {
    let mut trie = Trie::new();
    let key = |index: u32| {
        let address = keccak256(index.to_be_bytes());
        [&[0][..], &keccak256(&address[12..])[..10], &address[12..]].concat()
    };
    for index in 0..ACCOUNTS {
        trie.put(&key(index), keccak256(index.to_le_bytes())[..12].to_vec());
    }
    let wrapped = |node: Bytes| Bytes::from(alloy_rlp::encode(&node[..]));
    let proofs = (0..200)
        .map(|index| key(index * (ACCOUNTS / 160)))
        .map(|key| Proof { nodes: trie.proof(&key).into_iter().map(wrapped).collect(), key })
        .collect();
    (trie.root(), proofs)
}

fn hash_all(proofs: &[Proof]) {
    for node in proofs.iter().flat_map(|proof| &proof.nodes) {
        black_box(keccak256(node));
    }
}

fn verify_all(root: B256, proofs: &[Proof]) {
    for proof in proofs {
        let proven = verify_proof(root, &proof.key, &proof.nodes, None);
        assert!(black_box(proven).is_ok());
    }
}

fn account_proof(c: &mut Criterion) {
    let (root, proofs) = proofs();
    c.bench_function("200 account proofs, bare hashes", |b| b.iter(|| hash_all(&proofs)));
    c.bench_function("200 account proofs, verified", |b| b.iter(|| verify_all(root, &proofs)));
}

criterion_group!(benches, account_proof);

fn main() {
    if !only_ratios() {
        benches();
    }
    let (root, proofs) = proofs();
    let ratio = Ratio::measure(&seconds, 100, || hash_all(&proofs), || verify_all(root, &proofs));
    println!("{}", ratio.report("account proof verification to its hashes", LIMIT));
}
