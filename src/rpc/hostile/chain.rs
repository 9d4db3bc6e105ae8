//! Chains that are mined for a scenario, and the true data of their blocks. These tables are made together with the
//! blocks and independent of the code under test.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, OnceLock},
};

use fastrand::Rng;

use crate::{
    consensus::{
        Checkpoint, Network, Rule,
        body::{receipts_root, transactions_root},
        difficulty,
        testing::{child, easy_network, header, mine},
    },
    dev::PrivateKey,
    state::{Account, World as State},
    trie::{EMPTY_ROOT, NodeFormat, Trie},
    types::{
        Address, B256, Bloom, Bytes, Header, Log, Receipt, SealedHeader, Transaction, U256, uncles_hash,
    },
};

/// Number of the checkpoint.
pub(super) const START: u64 = 5_000;

/// Total difficulty of the checkpoint.
pub(super) const START_TOTAL: u64 = 1_000;

/// Number of headers below the checkpoint that upstreams have.
pub(super) const BELOW: u64 = 3;

/// An account whose balance differs in every block.
pub(super) const RICH: Address = Address::repeat_byte(0x11);

/// A contract that returns the hash of the block whose number it is called with. Its first storage cell differs in
/// every block.
pub(super) const CONTRACT: Address = Address::repeat_byte(0x22);

/// PUSH1 0, CALLDATALOAD, BLOCKHASH, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN.
const CODE: [u8; 12] = [0x60, 0, 0x35, 0x40, 0x60, 0, 0x52, 0x60, 0x20, 0x60, 0, 0xf3];

/// Number of senders, and of nonces of each.
const SENDERS: usize = 6;
const NONCES: u64 = 4;

/// A transaction, signed once for all scenarios.
pub(super) struct Signed {
    pub(super) transaction: Transaction,
    pub(super) hash: B256,
    pub(super) sender: Address,
    pub(super) nonce: u64,
}

/// All transactions that a scenario may use, by sender and then by nonce. The second half of a sender's transactions
/// replaces the first half.
pub(super) fn signed() -> &'static [Signed] {
    static ALL: OnceLock<Vec<Signed>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        for sender in 0..SENDERS {
            let key = PrivateKey::from_seed(&format!("sender {sender}")).unwrap();
            for step in 0..NONCES * 2 {
                let nonce = step % NONCES;
                let unsigned = Transaction {
                    nonce: nonce.into(),
                    gas_price: 1_000_u64.into(),
                    gas_limit: 100_000_u64.into(),
                    to: Some(CONTRACT),
                    value: U256::from(step / NONCES),
                    ..Transaction::remasc(1)
                };
                let transaction = key.sign_transaction(unsigned, network().chain_id).unwrap();
                all.push(Signed { hash: transaction.hash(), sender: key.address(), nonce, transaction });
            }
        }
        all
    })
}

/// The network of all scenarios: current rules with difficulties low enough for a test.
pub(super) fn network() -> &'static Arc<Network> {
    static NETWORK: OnceLock<Arc<Network>> = OnceLock::new();
    NETWORK.get_or_init(|| Arc::new(easy_network(&[], &[(Rule::Rskip110, u64::MAX)])))
}

/// True data of the state after a block.
#[derive(Clone)]
pub(super) struct Facts {
    pub(super) balance: U256,
    pub(super) cell: U256,
    pub(super) nonces: BTreeMap<Address, u64>,
}

/// A header with the mining fields of an easier one, so that it has no proof of work for its difficulty.
pub(super) fn unmined(header: Header) -> SealedHeader {
    let easy = mine(Header { difficulty: U256::from(1).into(), ..header.clone() });
    Header {
        bitcoin_header: easy.bitcoin_header.clone(),
        merkle_proof: easy.merkle_proof.clone(),
        coinbase_tx: easy.coinbase_tx.clone(),
        ..header
    }
    .seal()
}

/// A block that follows all rules, except perhaps proof of work.
#[derive(Clone)]
pub(super) struct ScenarioBlock {
    pub(super) header: SealedHeader,
    /// The uncles that the header commits to; `None` if no upstream can serve them.
    pub(super) uncles: Option<Vec<SealedHeader>>,
    /// Whether the uncles follow every rule.
    pub(super) good_uncles: bool,
    /// Whether the block has a proof of work.
    pub(super) shows_work: bool,
    /// Indexes into [`signed`].
    pub(super) transactions: Vec<usize>,
    pub(super) receipts: Vec<Receipt>,
    pub(super) facts: Facts,
}

impl ScenarioBlock {
    pub(super) fn number(&self) -> u64 {
        self.header.number
    }

    pub(super) fn hash(&self) -> B256 {
        self.header.hash()
    }
}

/// How a block differs from the usual one.
#[derive(Default)]
pub(super) struct Wish {
    /// Seconds after the usual timestamp, which is 14 s after the parent's.
    pub(super) later: u64,
    /// Uncles to name, whether they follow the rules or not.
    pub(super) uncles: Vec<SealedHeader>,
    pub(super) bad_uncles: bool,
    /// The uncle count of the header, if it is not the true one.
    pub(super) count: Option<u32>,
    /// Whether the proof of work is left out.
    pub(super) free: bool,
    /// Whether the block commits to a list of uncles that does not exist.
    pub(super) hidden: bool,
    /// Indexes into [`signed`].
    pub(super) transactions: Vec<usize>,
}

/// All blocks of a scenario.
#[derive(Clone)]
pub(super) struct Chains {
    blocks: HashMap<B256, Arc<ScenarioBlock>>,
    pub(super) nodes: BTreeMap<B256, Bytes>,
    /// The trusted block, and the headers below it.
    pub(super) base: Arc<ScenarioBlock>,
    pub(super) below: Vec<SealedHeader>,
    /// Number of states that were made; each gets other values.
    mark: u64,
}

/// Difficulties of the trusted block. Below 400, the difficulty adjustment rounds to zero.
pub(super) const DIFFICULTIES: [u64; 3] = [8, 24, 800];

/// Mines the trusted block of this difficulty and the headers below it.
fn mined_start(difficulty: u64) -> Chains {
    let network = network();
    let (mut below, mut parent) = (Vec::new(), B256::repeat_byte(1));
    // At this spacing the difficulty stays.
    let spacing = network.params.duration_limit as u64;
    let time = header(network, START).timestamp;
    for number in START - BELOW..START {
        let block = Header {
            timestamp: time - spacing * (START - number),
            difficulty: difficulty.into(),
            parent_hash: parent,
            transactions_root: EMPTY_ROOT,
            receipts_root: EMPTY_ROOT,
            gas_used: 0,
            ..header(network, number)
        };
        let block = mine(block);
        parent = block.hash();
        below.push(block);
    }
    let (facts, root, nodes) = state(U256::from(1), BTreeMap::new());
    let block = mine(Header {
        difficulty: difficulty.into(),
        parent_hash: parent,
        state_root: root,
        transactions_root: EMPTY_ROOT,
        receipts_root: EMPTY_ROOT,
        gas_used: 0,
        ..header(network, START)
    });
    let base = Arc::new(ScenarioBlock {
        header: block,
        uncles: Some(Vec::new()),
        good_uncles: true,
        shows_work: true,
        transactions: Vec::new(),
        receipts: Vec::new(),
        facts,
    });
    Chains { blocks: HashMap::from([(base.hash(), base.clone())]), nodes, base, below, mark: 1 }
}

/// A state whose values differ for each `mark`.
fn state(mark: U256, nonces: BTreeMap<Address, u64>) -> (Facts, B256, BTreeMap<B256, Bytes>) {
    let facts = Facts { balance: mark * U256::from(1_000_003), cell: mark + U256::from(7), nonces };
    let mut state = State::new(Trie::new());
    state.set_account(&RICH, Account { balance: facts.balance, ..Account::default() });
    state.create(&CONTRACT);
    state.set_code(&CONTRACT, CODE.to_vec().into());
    state.set_word(&CONTRACT, &U256::ZERO, facts.cell);
    for (sender, nonce) in &facts.nonces {
        state.set_account(sender, Account { nonce: *nonce, balance: U256::from(5), ..Account::default() });
    }
    let trie = state.commit();
    let mut nodes = BTreeMap::new();
    trie.for_each_stored(&mut |hash, bytes| {
        nodes.insert(hash, bytes);
    });
    (facts, trie.root(), nodes)
}

impl Chains {
    /// The trusted block of this difficulty (one of [`DIFFICULTIES`]) and the headers below it, mined once.
    pub(super) fn new(difficulty: u64) -> Self {
        static STARTS: OnceLock<HashMap<u64, Chains>> = OnceLock::new();
        let starts = STARTS.get_or_init(|| {
            DIFFICULTIES.iter().map(|difficulty| (*difficulty, mined_start(*difficulty))).collect()
        });
        starts[&difficulty].clone()
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { number: START, hash: self.base.hash(), total_difficulty: Some(U256::from(START_TOTAL)) }
    }

    pub(super) fn get(&self, hash: &B256) -> Option<&Arc<ScenarioBlock>> {
        self.blocks.get(hash)
    }

    pub(super) fn block(&self, hash: &B256) -> &Arc<ScenarioBlock> {
        &self.blocks[hash]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ScenarioBlock>> {
        self.blocks.values()
    }

    /// The blocks from the checkpoint up to `tip`.
    pub(super) fn branch(&self, tip: B256) -> Vec<B256> {
        let mut branch = vec![tip];
        while let Some(parent) = self.blocks.get(&self.block(branch.last().unwrap()).header.parent_hash) {
            branch.push(parent.hash());
        }
        branch.reverse();
        branch
    }

    /// Work of a branch above the checkpoint: of its headers, and of those uncles that are served and valid.
    pub(super) fn work(&self, tip: B256) -> U256 {
        let work = |hash: &B256| {
            let block = self.block(hash);
            let own = if block.shows_work { block.header.difficulty.value() } else { U256::ZERO };
            own + uncle_work(block).unwrap_or_default()
        };
        self.branch(tip).iter().skip(1).map(work).sum()
    }

    /// Total difficulty of a block; `None` if it cannot be proven.
    pub(super) fn total(&self, tip: B256) -> Option<U256> {
        let branch = self.branch(tip);
        let whole = branch.iter().skip(1).all(|hash| uncle_work(self.block(hash)).is_some());
        whole.then(|| U256::from(START_TOTAL) + self.work(tip))
    }

    /// Whether a full node has this block: all its uncles exist and follow every rule.
    pub(super) fn is_valid(&self, block: B256) -> bool {
        self.total(block).is_some()
    }

    /// A new state with these nonces, and its root for a header.
    pub(super) fn state(&mut self, nonces: BTreeMap<Address, u64>) -> (Facts, B256) {
        self.mark += 1;
        let (facts, root, nodes) = state(U256::from(self.mark), nonces);
        self.nodes.extend(nodes);
        (facts, root)
    }

    /// The header of a block above `parent`, not mined.
    pub(super) fn draft(&mut self, parent: B256, wish: &Wish) -> (Header, Facts, Vec<Receipt>) {
        let above = self.block(&parent).clone();
        let mut nonces = above.facts.nonces.clone();
        for position in &wish.transactions {
            let sent = &signed()[*position];
            nonces.insert(sent.sender, sent.nonce + 1);
        }
        let receipts = receipts(&wish.transactions);
        let (facts, state_root) = self.state(nonces);
        let list: Vec<Header> = wish.uncles.iter().map(|uncle| uncle.header().clone()).collect();
        let network = network();
        let mut header = child(network, &above.header);
        header.timestamp += wish.later;
        header.uncles_hash = if wish.hidden { B256::repeat_byte(0x5e) } else { uncles_hash(&list) };
        header.uncle_count = wish.count.unwrap_or(list.len() as u32);
        header.state_root = state_root;
        header.gas_used = receipts.iter().map(|receipt| receipt.gas_used).sum();
        header.logs_bloom = receipts.iter().fold(Bloom::ZERO, |all, receipt| all | receipt.logs_bloom);
        let transactions: Vec<Transaction> =
            wish.transactions.iter().map(|position| signed()[*position].transaction.clone()).collect();
        let empty = transactions.is_empty();
        header.transactions_root =
            if empty { EMPTY_ROOT } else { transactions_root(&transactions, NodeFormat::Rskip107) };
        header.receipts_root =
            if empty { EMPTY_ROOT } else { receipts_root(&receipts, NodeFormat::Rskip107) };
        header.difficulty = difficulty::expected(&header, &above.header, network).into();
        (header, facts, receipts)
    }

    /// Mines a block above `parent`.
    pub(super) fn mine(&mut self, parent: B256, wish: Wish) -> B256 {
        let (header, facts, receipts) = self.draft(parent, &wish);
        let header = if wish.free { unmined(header) } else { mine(header) };
        let hash = header.hash();
        let block = ScenarioBlock {
            header,
            uncles: (!wish.hidden).then_some(wish.uncles),
            good_uncles: !wish.bad_uncles,
            shows_work: !wish.free,
            transactions: wish.transactions,
            receipts,
            facts,
        };
        self.blocks.insert(hash, Arc::new(block));
        hash
    }

    /// A mined sibling of a block, which the child of that block may name as an uncle.
    pub(super) fn sibling(&mut self, block: B256) -> SealedHeader {
        let parent = self.block(&block).header.parent_hash;
        let hash = self.mine(parent, Wish::default());
        self.block(&hash).header.clone()
    }

    /// The nonce that a sender uses next at a block.
    pub(super) fn nonce(&self, block: B256, sender: &Address) -> u64 {
        self.block(&block).facts.nonces.get(sender).copied().unwrap_or(0)
    }

    /// Draws at most `most` transactions for a child of the block `parent`. Each has the next nonce of its sender.
    pub(super) fn transactions(&self, parent: B256, random: &mut Rng, most: u64) -> Vec<usize> {
        let mut chosen: Vec<usize> = Vec::new();
        for _ in 0..random.u64(..most + 1) {
            let position = random.usize(..signed().len());
            let sent = &signed()[position];
            let twice = chosen.iter().any(|other| signed()[*other].sender == sent.sender);
            if !twice && self.nonce(parent, &sent.sender) == sent.nonce {
                chosen.push(position);
            }
        }
        chosen
    }
}

/// Work of a block's uncles; `None` if it cannot be proven.
pub(super) fn uncle_work(block: &ScenarioBlock) -> Option<U256> {
    let uncles = block.uncles.as_ref().filter(|_| block.good_uncles && block.shows_work)?;
    Some(uncles.iter().map(|uncle| uncle.difficulty.value()).sum())
}

/// One receipt for each transaction, with a log that contains the transaction's hash.
fn receipts(transactions: &[usize]) -> Vec<Receipt> {
    let mut gas = 0;
    let mut receipt = |position: &usize| {
        gas += 30_000;
        let topics = vec![B256::repeat_byte(0x77), signed()[*position].hash];
        let log = Log { address: CONTRACT, topics, data: Bytes::new() };
        Receipt::new(true, gas, 30_000, vec![log])
    };
    transactions.iter().map(&mut receipt).collect()
}
