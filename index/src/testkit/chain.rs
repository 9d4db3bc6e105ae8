//! Blocks without proof of work, whose parts match their headers.

use alloy_primitives::{Address, B256, Bloom, Bytes, keccak256};
use rootlight::consensus::{Network, body};
use rootlight::types::{Header, Log, RawUint, Receipt, SignedUint, Transaction};

use crate::block::{MatchedBlock, Proof};
use crate::source::SourceBlock;

/// Gas of each transaction.
const GAS: u64 = 50_000;

/// The logs of the transactions of a block.
pub type LogsByTransaction = Vec<Vec<Log>>;

/// Makes blocks of a network.
#[derive(Debug, Clone)]
pub struct Maker {
    network: Network,
    /// Distinguishes branches: blocks of other salts have other hashes.
    salt: u64,
}

impl Maker {
    /// Makes blocks of this network. Blocks of different salts have different hashes.
    #[must_use]
    pub const fn new(network: Network, salt: u64) -> Self {
        Self { network, salt }
    }

    /// The network.
    pub const fn network(&self) -> &Network {
        &self.network
    }

    /// The block at this height with this parent, and with one transaction for each list of logs.
    ///
    /// # Panics
    /// The parts do not match, which is a mistake here.
    pub fn block(&self, number: u64, parent: B256, content: LogsByTransaction) -> SourceBlock {
        let transactions: Vec<Transaction> = (0..content.len() as u64)
            .map(|index| Transaction {
                nonce: RawUint::from(number * 1_000 + index),
                ..Transaction::remasc(number)
            })
            .collect();
        let receipt = |(index, logs)| Receipt::new(true, GAS * (index + 1), GAS, logs);
        let receipts: Vec<Receipt> = (0_u64..).zip(content).map(receipt).collect();
        let header = self.header(number, parent, &transactions, &receipts).seal();
        let block = MatchedBlock::check(header, transactions, receipts, &self.network);
        SourceBlock { block: block.expect("the parts match"), proof: Proof::Verified, traces: None }
    }

    fn header(
        &self,
        number: u64,
        parent: B256,
        transactions: &[Transaction],
        receipts: &[Receipt],
    ) -> Header {
        let format = body::root_format(&self.network, number);
        let blooms = receipts.iter().map(|receipt| receipt.logs_bloom);
        Header {
            parent_hash: parent,
            coinbase: Some(Address::repeat_byte(0xc0)),
            state_root: keccak256(self.salt.to_be_bytes()),
            transactions_root: body::transactions_root(transactions, format),
            receipts_root: body::receipts_root(receipts, format),
            logs_bloom: blooms.fold(Bloom::ZERO, |all, bloom| all | bloom),
            difficulty: SignedUint::from(1),
            gas_limit: RawUint::from(6_800_000),
            gas_used: GAS * receipts.len() as u64,
            timestamp: 1_700_000_000 + number * 30,
            bitcoin_header: Bytes::from_static(&[7; 80]),
            merkle_proof: Bytes::from_static(&[8; 32]),
            coinbase_tx: Bytes::from_static(&[9; 64]),
            ..Header::empty(self.network.header_shape(number), number)
        }
    }

    /// Blocks from one height to another, both included, with the content that a function gives.
    pub fn chain(
        &self,
        from: u64,
        to: u64,
        parent: B256,
        mut content: impl FnMut(u64) -> LogsByTransaction,
    ) -> Vec<SourceBlock> {
        let mut parent = parent;
        let mut blocks = Vec::new();
        for number in from..=to {
            let block = self.block(number, parent, content(number));
            parent = block.block.header().hash();
            blocks.push(block);
        }
        blocks
    }
}
