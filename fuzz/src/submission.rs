//! Bitcoin blocks that outside miners submit to a development chain.

use std::sync::OnceLock;

use alloy_primitives::{B256, U256};
use rootlight::consensus::bitcoin::{double_sha256, hash_pair};
use rootlight::consensus::mining::BitcoinWork;
use rootlight::consensus::{Network, Seal, verify_merged_mining};
use rootlight::dev::{DevChain, DevConfig, DevError, Mining, Submission};

use crate::input::{Input, change};
use crate::limit::with_limit;

/// Seconds at which the chain is asked.
const NOW: u64 = 1_700_000_000;
/// Nonces tried; regtest needs three on average.
const ATTEMPTS: u32 = 256;
/// Most transactions and hashes of a block made of choices.
const MAX_TRANSACTIONS: usize = 40;

/// First byte: any bytes in each of the three forms, or the solution of a work that was given out, and its changes.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => check_any(input.rest()),
        1 => check_parts(&mut input),
        kind => check_work(kind == 2, &mut input),
    }
}

fn check_any(bytes: &[u8]) {
    let Ok(submission) = with_limit(bytes.len(), || Submission::block(bytes)) else { return };
    // No work was given out.
    assert!(chain().submit_work(&submission, NOW).is_err());
}

/// A header, a coinbase and hashes of any bytes, whole and as a branch.
fn check_parts(input: &mut Input<'_>) {
    let count = input.below(MAX_TRANSACTIONS);
    let hashes: Vec<B256> = (0..count).map(|_| B256::from(input.array::<32>())).collect();
    let claimed = u32::from_le_bytes(input.array());
    let (header, coinbase) = (input.take(80).to_vec(), input.clone().rest());
    let len = coinbase.len() + hashes.len() * 32;
    let listed = with_limit(len, || Submission::transactions(&header, coinbase, &hashes));
    let partial = with_limit(len, || Submission::partial(&header, coinbase, &hashes, claimed));
    assert_eq!(partial.is_ok(), listed.is_ok() && !hashes.is_empty());
    let mut chain = chain();
    let all = [listed, partial].into_iter().flatten();
    all.for_each(|submission| assert!(chain.submit_work(&submission, NOW).is_err()));
}

fn chain() -> DevChain {
    static CHAIN: OnceLock<DevChain> = OnceLock::new();
    let fresh = || {
        let config = DevConfig { mining: Mining::Manual, ..DevConfig::reference() };
        DevChain::new(config).expect("the reference's genesis")
    };
    CHAIN.get_or_init(fresh).clone()
}

/// The solution of the chain's own work: taken as it is, in each form; changed, it is refused or it still proves work.
fn check_work(honest: bool, input: &mut Input<'_>) {
    let mut chain = chain();
    let hash = chain.work(NOW).expect("work").mining_hash;
    let coinbase = BitcoinWork::new(&hash, NOW as u32).coinbase;
    let mut hashes = vec![double_sha256(&coinbase)];
    hashes.extend((0..input.below(MAX_TRANSACTIONS)).map(|n| B256::repeat_byte(n as u8)));
    let work = solved(&hash, &hashes);
    let mut parts = SubmissionParts { header: work.header.to_vec(), coinbase, hashes, branch: work.branch };
    if honest {
        for submission in parts.forms() {
            let submission = submission.expect("the form is right");
            let imported = chain.clone().submit_work(&submission, NOW).expect("the work is done");
            assert_eq!(imported.header.number, 1);
        }
        return;
    }
    while !input.is_empty() {
        parts.change(input);
    }
    for submission in parts.forms().into_iter().flatten() {
        let mut chain = chain.clone();
        if chain.submit_work(&submission, NOW).is_ok() {
            let view = chain.view();
            let head = view.headers().head();
            assert_eq!(
                (head.number, verify_merged_mining(head, &Network::regtest())),
                (1, Ok(Seal::MergedMining))
            );
            assert_eq!(head.hash_for_merged_mining(), Ok(hash));
        }
    }
}

/// A Bitcoin header over these transactions, the first of which names the hash.
fn solved(hash: &B256, hashes: &[B256]) -> BitcoinWork {
    let BitcoinWork { mut header, coinbase, .. } = BitcoinWork::new(hash, NOW as u32);
    let branch = BitcoinWork::with_transactions(header, coinbase.clone(), hashes).branch;
    let root = branch.iter().fold(hashes[0], |node, sibling| hash_pair(&node, sibling));
    header[36..68].copy_from_slice(root.as_slice());
    let work = BitcoinWork::with_transactions(header, coinbase, hashes);
    work.solved(U256::from(1), ATTEMPTS).expect("a nonce")
}

/// What a miner sends.
struct SubmissionParts {
    header: Vec<u8>,
    coinbase: Vec<u8>,
    hashes: Vec<B256>,
    branch: Vec<B256>,
}

impl SubmissionParts {
    /// The three forms; a whole block only where there is but the coinbase.
    fn forms(&self) -> Vec<Result<Submission, DevError>> {
        let branch: Vec<B256> = self.hashes.iter().take(1).chain(&self.branch).copied().collect();
        let mut forms = vec![
            Submission::transactions(&self.header, &self.coinbase, &self.hashes),
            Submission::partial(&self.header, &self.coinbase, &branch, self.hashes.len() as u32),
        ];
        if self.hashes.len() == 1 {
            forms.push(Submission::block(&[&self.header[..], &[1], &self.coinbase].concat()));
        }
        forms
    }

    fn change(&mut self, input: &mut Input<'_>) {
        let list = if input.byte() % 2 == 0 { &mut self.hashes } else { &mut self.branch };
        match input.byte() % 8 {
            0 | 1 => change(&mut self.header, input),
            2 => list.push(B256::repeat_byte(input.byte())),
            3 => drop(list.pop()),
            4 => list.get_mut(0).into_iter().for_each(|hash| hash[3] ^= 1),
            _ => change(&mut self.coinbase, input),
        }
    }
}
