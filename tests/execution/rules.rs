//! Generated blocks in which one rule of a block or transaction is broken. Each is refused for that rule, and
//! the parent's state does not change.

use crate::support;

use proptest::prelude::*;
use rootlight::consensus::Network;
use rootlight::consensus::body::{root_format, transactions_root};
use rootlight::dev::{DevConfig, DevOptions, PrivateKey};
use rootlight::exec::{
    Ancestry, BlockEnvironment, BlockError, BlockInput, EdgeError, ExecutedBlock, GenesisBlock, NoObserver,
    TransactionCandidate, TxError, build_block, check_block, execute_block,
};
use rootlight::state::World;
use rootlight::types::{
    Address, B256, Bloom, Bytes, Header, REMASC_ADDRESS, RawUint, SealedHeader, SenderError, SignedUint,
    Transaction, U256,
};

/// Minimum gas price of the generated blocks, in wei.
const MINIMUM: u64 = 10;
const BRIDGE: u64 = 0x0100_0006;

/// The ancestors of block 1 on regtest: only genesis.
struct OnlyGenesis(SealedHeader);

impl Ancestry for OnlyGenesis {
    fn header(&self, number: u64) -> Option<SealedHeader> {
        (number == 0).then(|| self.0.clone())
    }

    fn uncles(&self, _: u64) -> Option<Vec<Header>> {
        Some(Vec::new())
    }
}

#[derive(Clone, Debug)]
struct TransactionPlan {
    /// Index of the funded account that sends it.
    sender: usize,
    to: u8,
    value: u64,
    gas: u64,
    price: u64,
    data: Vec<u8>,
}

fn plan() -> impl Strategy<Value = TransactionPlan> {
    let data = proptest::collection::vec(any::<u8>(), 0..40);
    (0usize..10, 1u8..255, any::<u64>(), 25_000u64..200_000, MINIMUM..MINIMUM * 100, data).prop_map(
        |(sender, to, value, gas, price, data)| TransactionPlan { sender, to, value, gas, price, data },
    )
}

fn key(sender: usize) -> PrivateKey {
    let seed = if sender == 0 { "cow".into() } else { format!("cow{sender}") };
    PrivateKey::from_seed(&seed).unwrap()
}

/// A valid block, and the data needed to break it.
struct SampleBlock {
    network: Network,
    genesis: GenesisBlock,
    ancestry: OnlyGenesis,
    header: Header,
    transactions: Vec<Transaction>,
    executed: ExecutedBlock,
}

fn unsigned(plan: &TransactionPlan, nonce: u64) -> Transaction {
    Transaction {
        nonce: RawUint::from(nonce),
        gas_price: RawUint::from(plan.price),
        gas_limit: RawUint::from(plan.gas),
        to: Some(Address::repeat_byte(plan.to)),
        value: U256::from(plan.value),
        data: plan.data.clone().into(),
        v: 0,
        r: U256::ZERO,
        s: U256::ZERO,
    }
}

impl SampleBlock {
    fn new(plans: &[TransactionPlan]) -> Self {
        let network = Network::regtest();
        let genesis = GenesisBlock::regtest();
        let ancestry = OnlyGenesis(genesis.header.clone());
        let mut nonces = [0u64; 10];
        let candidates: Vec<TransactionCandidate> = plans
            .iter()
            .map(|plan| {
                let signer = key(plan.sender);
                let transaction = signer.sign_transaction(unsigned(plan, nonces[plan.sender]), 33).unwrap();
                nonces[plan.sender] += 1;
                let sender = transaction.recover_sender(33).unwrap();
                TransactionCandidate { transaction, sender }
            })
            .collect();
        let mut header = genesis.header.header().clone();
        header.shape = network.header_shape(1);
        header.number = 1;
        header.timestamp = 1_000;
        header.gas_limit = RawUint::from(30_000_000);
        header.minimum_gas_price = SignedUint::from(MINIMUM);
        let template = BlockEnvironment::from(&header);
        let built = build_block(&network, &genesis.state, &template, &candidates, &ancestry).unwrap();
        assert!(built.dropped.is_empty(), "{:?}", built.dropped);
        built.complete(&mut header, &network);
        let (transactions, executed) = (built.transactions, built.executed);
        Self { network, genesis, ancestry, header, transactions, executed }
    }

    fn execute(&self, header: &Header, transactions: &[Transaction]) -> Result<ExecutedBlock, BlockError> {
        let before = self.genesis.state.root();
        let input = BlockInput { header, transactions, senders: None };
        let executed =
            execute_block(&self.network, &self.genesis.state, &input, &self.ancestry, &mut NoObserver);
        assert_eq!(self.genesis.state.root(), before, "no state change");
        executed
    }

    /// The error of a block whose transactions are changed. The transactions root is updated.
    fn with(&self, change: impl FnOnce(&mut Vec<Transaction>)) -> BlockError {
        let (mut header, mut transactions) = (self.header.clone(), self.transactions.clone());
        change(&mut transactions);
        header.transactions_root = transactions_root(&transactions, root_format(&self.network, 1));
        header.edges.retain(|edge| usize::from(*edge) < transactions.len());
        self.execute(&header, &transactions).unwrap_err()
    }

    /// The error of a block in which one transaction is changed and signed again.
    fn with_one(&self, index: usize, change: impl FnOnce(&mut Transaction)) -> TxError {
        let error = self.with(|transactions| {
            let sender = self.executed.senders[index];
            let signer = (0..10).map(key).find(|key| key.address() == sender).unwrap();
            let mut changed = transactions[index].clone();
            change(&mut changed);
            transactions[index] = signer.sign_transaction(changed, 33).unwrap();
        });
        self.at(index, error)
    }

    /// The error of a block in which one transaction is changed after it was signed.
    fn with_raw(&self, index: usize, change: impl FnOnce(&mut Transaction)) -> TxError {
        let error = self.with(|transactions| change(&mut transactions[index]));
        self.at(index, error)
    }

    fn at(&self, index: usize, error: BlockError) -> TxError {
        match error {
            BlockError::Transaction { index: found, error, .. } if found == index => error,
            other => panic!("transaction {index}: {other}"),
        }
    }

    fn with_edges(&self, edges: &[u16]) -> BlockError {
        let header = Header { edges: edges.to_vec(), ..self.header.clone() };
        self.execute(&header, &self.transactions).unwrap_err()
    }

    /// The header fields that are reported as wrong after a change.
    fn fields(&self, change: impl FnOnce(&mut Header)) -> Vec<&'static str> {
        let mut header = self.header.clone();
        change(&mut header);
        let executed = self.execute(&header, &self.transactions).unwrap();
        let mismatches = check_block(&executed, &header, &self.network).unwrap_err();
        mismatches.iter().map(|mismatch| mismatch.field).collect()
    }
}

/// Breaks each rule of transactions, for one transaction of the block.
fn break_transaction(sample: &SampleBlock, index: usize) {
    use TxError as E;
    let one = |change: &dyn Fn(&mut Transaction)| sample.with_one(index, |tx| change(tx));
    let nonce = sample.transactions[index].nonce.value();
    let skipped = one(&|tx| tx.nonce = RawUint::from(nonce + U256::from(1)));
    assert!(matches!(skipped, E::Nonce { .. }), "{skipped}");
    let cheap = one(&|tx| tx.gas_price = RawUint::from(MINIMUM - 1));
    assert!(matches!(cheap, E::MinimumGasPrice { .. }), "{cheap}");
    let dear = one(&|tx| tx.gas_price = RawUint::from(MINIMUM * 100 + 1));
    assert!(matches!(dear, E::GasPriceCap { .. }), "{dear}");
    let poor = one(&|tx| tx.gas_limit = RawUint::from(20_999));
    assert!(matches!(poor, E::Intrinsic { sent: 20_999, .. }), "{poor}");
    let large = one(&|tx| tx.gas_limit = RawUint::from(30_000_001));
    assert!(matches!(large, E::ListGas { .. }), "{large}");
    let endless = one(&|tx| tx.gas_limit = RawUint::from(U256::MAX));
    assert!(matches!(endless, E::ListGas { .. }), "{endless}");
    let rich = one(&|tx| tx.value = U256::from(10).pow(U256::from(31)));
    assert!(matches!(rich, E::Cash { below_zero: false, .. }), "{rich}");
    let long = one(&|tx| (tx.to, tx.data) = (None, vec![0; 0xc001].into()));
    assert!(matches!(long, E::InitCodeSize { size: 0xc001, .. }), "{long}");
    break_signature(sample, index);
    let raw = |change: &dyn Fn(&mut Transaction)| sample.with_raw(index, |tx| change(tx));
    let remasc = raw(&|tx| *tx = Transaction::remasc(1));
    assert!(matches!(remasc, E::Remasc | E::MinimumGasPrice { .. }), "{remasc}");
}

fn break_signature(sample: &SampleBlock, index: usize) {
    let signature = |change: &dyn Fn(&mut Transaction)| match sample.with_raw(index, |tx| change(tx)) {
        TxError::Signature(error) => error,
        other => panic!("{other}"),
    };
    assert!(matches!(signature(&|tx| tx.v = 29), SenderError::V(29)));
    assert!(matches!(signature(&|tx| tx.v = 35 + 2 * 30), SenderError::ChainId { found: 30, .. }));
    assert!(matches!(signature(&|tx| tx.s = U256::MAX - tx.s), SenderError::HighS));
    assert!(matches!(signature(&|tx| tx.r = U256::ZERO), SenderError::NoKey));
}

fn break_block(sample: &SampleBlock) {
    use BlockError as E;
    let count = sample.transactions.len() as u16;
    assert!(matches!(sample.with(Vec::clear), E::Remasc));
    assert!(matches!(sample.with(|all| drop(all.pop())), E::Remasc));
    let twice = sample.with(|all| all.push(Transaction::remasc(1)));
    assert!(matches!(twice, E::Transaction { .. }), "{twice}");
    let later = sample.with(|all| *all.last_mut().unwrap() = Transaction::remasc(2));
    assert!(matches!(later, E::Transaction { error: TxError::Nonce { required: 0, .. }, .. }), "{later}");
    let header = Header { transactions_root: B256::ZERO, ..sample.header.clone() };
    let root = sample.execute(&header, &sample.transactions).unwrap_err();
    assert!(matches!(root, E::TransactionsRoot { expected: B256::ZERO, .. }), "{root}");
    assert_eq!(sample.with_edges(&[1, 2, 3]), E::Edges(EdgeError::TooMany(3)));
    assert_eq!(sample.with_edges(&[0]), E::Edges(EdgeError::Empty(0)));
    assert_eq!(sample.with_edges(&[2, 1]), E::Edges(EdgeError::Empty(1)));
    let outside = EdgeError::Outside { edge: count, transactions: count.into() };
    assert_eq!(sample.with_edges(&[count]), E::Edges(outside));
    let senders = [Address::ZERO];
    let input =
        BlockInput { header: &sample.header, transactions: &sample.transactions, senders: Some(&senders) };
    let wrong =
        execute_block(&sample.network, &sample.genesis.state, &input, &sample.ancestry, &mut NoObserver);
    assert!(matches!(wrong.unwrap_err(), E::Senders { senders: 1, .. }));
}

/// Breaks each header field that execution computes.
fn break_header(sample: &SampleBlock) {
    assert_eq!(sample.fields(|header| header.state_root = B256::ZERO), ["stateRoot"]);
    assert_eq!(sample.fields(|header| header.receipts_root = B256::ZERO), ["receiptsRoot"]);
    assert_eq!(sample.fields(|header| header.logs_bloom = Bloom::repeat_byte(1)), ["logsBloom"]);
    assert_eq!(sample.fields(|header| header.gas_used += 1), ["gasUsed"]);
    assert_eq!(sample.fields(|header| header.paid_fees += U256::from(1)), ["paidFees"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn each_broken_rule_is_reported(plans in proptest::collection::vec(plan(), 2..8)) {
        let sample = SampleBlock::new(&plans);
        let executed = sample.execute(&sample.header, &sample.transactions).unwrap();
        assert_eq!(check_block(&executed, &sample.header, &sample.network), Ok(()));
        for index in 0..plans.len() {
            break_transaction(&sample, index);
        }
        break_block(&sample);
        break_header(&sample);
    }

    /// Two transactions in different lists conflict if they have the same sender, or if one pays the sender
    /// of the other.
    #[test]
    fn lists_must_be_independent(mut first in plan(), mut second in plan(), same in any::<bool>()) {
        let receiver = key(second.sender).address();
        (first.data, second.data) = (Vec::new(), Vec::new());
        if same {
            second.sender = first.sender;
        } else {
            first.sender = (second.sender + 1) % 10;
            first.value = first.value.max(1);
        }
        let mut sample = SampleBlock::new(&[first.clone(), second]);
        if !same {
            let mut moved = unsigned(&first, 0);
            moved.to = Some(receiver);
            let moved = key(first.sender).sign_transaction(moved, 33).unwrap();
            let at = sample.executed.senders.iter().position(|s| *s == key(first.sender).address()).unwrap();
            sample.transactions[at] = moved;
            sample.header.transactions_root =
                transactions_root(&sample.transactions, root_format(&sample.network, 1));
        }
        let error = sample.with_edges(&[1, 2]);
        // The nonce set in the first list is not visible in the second one.
        let refused = matches!(error, BlockError::Conflict { lists: (0, 1), .. })
            || (same && matches!(error, BlockError::Transaction { error: TxError::Nonce { .. }, .. }));
        prop_assert!(refused, "{}", error);
    }
}

/// TXINDEX returns the index in the block. Candidates that the builder dropped do not count.
#[test]
fn a_dropped_transaction_does_not_count_for_txindex() {
    let options =
        DevOptions { hardfork: Some("wasabi100"), genesis: Some("regtest"), ..DevOptions::default() };
    let DevConfig { network, genesis, .. } = options.config().unwrap();
    // Init code that stores TXINDEX + 1.
    let code = support::bytes("aa60010160005500");
    let plan = |sender| TransactionPlan {
        sender,
        to: 1,
        value: 0,
        gas: 200_000,
        price: MINIMUM,
        data: code.to_vec(),
    };
    let candidates: Vec<TransactionCandidate> = [(0, 7), (1, 0), (2, 0)]
        .into_iter()
        .map(|(sender, nonce)| {
            let creation = Transaction { to: None, ..unsigned(&plan(sender), nonce) };
            let transaction = key(sender).sign_transaction(creation, 33).unwrap();
            TransactionCandidate { transaction, sender: key(sender).address() }
        })
        .collect();
    let ancestry = OnlyGenesis(genesis.header.clone());
    let mut header = genesis.header.header().clone();
    (header.shape, header.number, header.timestamp) = (network.header_shape(1), 1, 1_000);
    let template = BlockEnvironment::from(&header);
    let built = build_block(&network, &genesis.state, &template, &candidates, &ancestry).unwrap();
    assert_eq!(
        (built.dropped.len(), built.transactions.len()),
        (1, 3),
        "one nonce is wrong, REMASC's is last"
    );
    header.transactions_root = transactions_root(&built.transactions, root_format(&network, 1));
    let input = BlockInput { header: &header, transactions: &built.transactions, senders: None };
    let executed = execute_block(&network, &genesis.state, &input, &ancestry, &mut NoObserver).unwrap();
    assert_eq!(executed.state.root(), built.executed.state.root());
    let mut world = World::new(executed.state);
    for (sender, stored) in [(1, 1), (2, 2)] {
        let contract = key(sender).address().create(0);
        assert_eq!(world.word(&contract, &U256::ZERO), U256::from(stored));
    }
}

/// The reference node fails on a transaction to the BLAKE2 F contract without data. This holds from iris300,
/// which added the contract, until vetiver900, so no block of that time contains one.
#[test]
fn a_transaction_to_blake2_without_data_is_refused_before_vetiver900() {
    for (hardfork, allowed) in
        [("papyrus200", true), ("iris300", false), ("reed800", false), ("vetiver900", true)]
    {
        let options =
            DevOptions { hardfork: Some(hardfork), genesis: Some("regtest"), ..DevOptions::default() };
        let DevConfig { network, genesis, .. } = options.config().unwrap();
        let plan =
            TransactionPlan { sender: 0, to: 9, value: 0, gas: 100_000, price: MINIMUM, data: Vec::new() };
        let call = Transaction { to: Some(support::low_address(9)), ..unsigned(&plan, 0) };
        let transaction = key(0).sign_transaction(call, 33).unwrap();
        let candidate = TransactionCandidate { transaction: transaction.clone(), sender: key(0).address() };
        let ancestry = OnlyGenesis(genesis.header.clone());
        let mut header = genesis.header.header().clone();
        (header.shape, header.number, header.timestamp) = (network.header_shape(1), 1, 1_000);
        let template = BlockEnvironment::from(&header);
        let built = build_block(&network, &genesis.state, &template, &[candidate], &ancestry).unwrap();
        let dropped: Vec<&TxError> = built.dropped.iter().map(|(_, error)| error).collect();
        assert_eq!(dropped, vec![&TxError::NoBlakeData; usize::from(!allowed)], "{hardfork}: built");
        // A block of a miner that includes the transaction.
        let transactions = vec![transaction, built.transactions.last().unwrap().clone()];
        header.transactions_root = transactions_root(&transactions, root_format(&network, 1));
        let input = BlockInput { header: &header, transactions: &transactions, senders: None };
        match execute_block(&network, &genesis.state, &input, &ancestry, &mut NoObserver) {
            Ok(_) => assert!(allowed, "{hardfork}: executed"),
            Err(BlockError::Transaction { error, .. }) => {
                assert_eq!((error, allowed), (TxError::NoBlakeData, false), "{hardfork}");
            }
            Err(other) => panic!("{hardfork}: {other}"),
        }
    }
}

/// Bridge and REMASC can only be called in the sequential list.
#[test]
fn calls_of_the_bridge_or_remasc_in_a_parallel_list_are_refused() {
    for (to, calldata) in [(Address::from_word(U256::from(BRIDGE).into()), vec![]), (REMASC_ADDRESS, vec![1])]
    {
        let plan = TransactionPlan {
            sender: 3,
            to: 1,
            value: 0,
            gas: 100_000,
            price: MINIMUM,
            data: calldata.clone(),
        };
        let mut sample = SampleBlock::new(std::slice::from_ref(&plan));
        let mut call = unsigned(&plan, 0);
        (call.to, call.data) = (Some(to), Bytes::from(calldata));
        sample.transactions[0] = key(3).sign_transaction(call, 33).unwrap();
        sample.header.transactions_root =
            transactions_root(&sample.transactions, root_format(&sample.network, 1));
        assert!(matches!(sample.with_edges(&[1]), BlockError::NativeContract { index: 0, .. }));
        let header = Header { edges: Vec::new(), ..sample.header.clone() };
        assert!(sample.execute(&header, &sample.transactions).is_ok());
    }
}
