//! Blocks of a few transactions on regtest with custom contracts, divided into lists explicitly or by the builder.

use rootlight::consensus::body::{root_format, transactions_root};
use rootlight::consensus::{AllocatedContract, Allocation, Genesis, Network};
use rootlight::dev::PrivateKey;
use rootlight::exec::{
    Ancestry, BlockEnvironment, BlockError, BlockInput, BlockObserver, BuiltBlock, ExecutedBlock,
    GenesisBlock, NoObserver, TransactionCandidate, build_block, execute_block,
};
use rootlight::trie::Trie;
use rootlight::types::{Address, Header, RawUint, SealedHeader, Transaction, U256};

pub struct NoAncestors;

impl Ancestry for NoAncestors {
    fn header(&self, _: u64) -> Option<SealedHeader> {
        None
    }

    fn uncles(&self, _: u64) -> Option<Vec<Header>> {
        None
    }
}

/// An account of the genesis block: address, code in hexadecimal with spaces, wei.
pub type Account<'a> = (Address, &'a str, u64);

/// Block 0 and the header of block 1.
pub struct Lists {
    pub network: Network,
    pub state: Trie,
    pub header: Header,
}

impl Lists {
    /// Regtest with these accounts added.
    pub fn new(accounts: &[Account<'_>]) -> Self {
        let network = Network::regtest();
        let mut alloc = Genesis::regtest().alloc;
        alloc.extend(accounts.iter().map(|(address, code, balance)| Allocation {
            address: *address,
            balance: U256::from(*balance),
            contract: (!code.is_empty()).then(|| AllocatedContract {
                code: hex::decode(code.replace(' ', "")).unwrap().into(),
                storage: Vec::new(),
            }),
            ..Allocation::default()
        }));
        let genesis = GenesisBlock::new(&Genesis::regtest().with_alloc(alloc), &network);
        let mut header = genesis.header.header().clone();
        (header.shape, header.number) = (network.header_shape(1), 1);
        header.gas_limit = RawUint::from(30_000_000);
        Self { network, state: genesis.state, header }
    }

    /// A call with a gas limit of 500,000.
    pub fn call(&self, sender: usize, nonce: u64, to: Address, data: &[u8]) -> TransactionCandidate {
        self.send(sender, nonce, Some(to), 0, 500_000, data)
    }

    /// A transaction of one of the funded regtest accounts.
    pub fn send(
        &self,
        sender: usize,
        nonce: u64,
        to: Option<Address>,
        value: u64,
        gas: u64,
        data: &[u8],
    ) -> TransactionCandidate {
        let seed = if sender == 0 { "cow".into() } else { format!("cow{sender}") };
        let key = PrivateKey::from_seed(&seed).unwrap();
        let transaction = Transaction {
            nonce: RawUint::from(nonce),
            gas_price: RawUint::from(0),
            gas_limit: RawUint::from(gas),
            to,
            value: U256::from(value),
            data: data.to_vec().into(),
            v: 0,
            r: U256::ZERO,
            s: U256::ZERO,
        };
        let transaction = key.sign_transaction(transaction, 33).unwrap();
        TransactionCandidate { transaction, sender: key.address() }
    }

    /// Executes block 1 with these transactions and lists.
    pub fn execute(
        &self,
        candidates: &[TransactionCandidate],
        edges: &[u16],
    ) -> Result<ExecutedBlock, BlockError> {
        self.execute_watched(candidates, edges, &mut NoObserver)
    }

    /// As [`Self::execute`], observed.
    pub fn execute_watched(
        &self,
        candidates: &[TransactionCandidate],
        edges: &[u16],
        observer: &mut dyn BlockObserver,
    ) -> Result<ExecutedBlock, BlockError> {
        let all = candidates.iter().map(|candidate| candidate.transaction.clone());
        self.execute_block(all.chain([Transaction::remasc(1)]).collect(), edges, observer)
    }

    /// Executes a block that was built here.
    pub fn execute_built(&self, built: &BuiltBlock) -> Result<ExecutedBlock, BlockError> {
        self.execute_block(built.transactions.clone(), &built.edges, &mut NoObserver)
    }

    fn execute_block(
        &self,
        all: Vec<Transaction>,
        edges: &[u16],
        observer: &mut dyn BlockObserver,
    ) -> Result<ExecutedBlock, BlockError> {
        let mut header = Header { edges: edges.to_vec(), ..self.header.clone() };
        header.transactions_root = transactions_root(&all, root_format(&self.network, 1));
        let input = BlockInput { header: &header, transactions: &all, senders: None };
        execute_block(&self.network, &self.state, &input, &NoAncestors, observer)
    }

    pub fn build(&self, candidates: &[TransactionCandidate]) -> BuiltBlock {
        let template = BlockEnvironment::from(&self.header);
        build_block(&self.network, &self.state, &template, candidates, &NoAncestors).unwrap()
    }
}
