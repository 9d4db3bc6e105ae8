//! Set-up shared by the tests.

use std::sync::Arc;

use rootlight::consensus::Network;
use rootlight::types::{Address, B256, Bytes, Log, U256};
use rootlight_index::testkit::{LogsByTransaction, Maker, PostgresServer, client_config, postgres};
use rootlight_index::{
    BlockTraces, Database, IndexError, IndexReader, MatchedBlock, ReaderOptions, Setup, SourceBlock, Trace,
    TraceKind, TraceOutcome, Writer,
};

/// Blocks of a partition in tests.
pub(crate) const PARTITION: u64 = 100;

/// A database of its own on the shared server.
pub(crate) struct TestDatabase {
    /// Ends with the last database on it.
    _server: Arc<PostgresServer>,
    pub(crate) address: Database,
}

impl TestDatabase {
    /// `None` if PostgreSQL is not installed.
    pub(crate) async fn new() -> Option<Self> {
        Some(Self::on(postgres()?).await)
    }

    pub(crate) async fn on(server: Arc<PostgresServer>) -> Self {
        let url = server.database().await;
        Self::at(server, &url)
    }

    pub(crate) fn at(server: Arc<PostgresServer>, url: &str) -> Self {
        let address = Database::parse(url, client_config()).unwrap();
        Self { _server: server, address }
    }

    pub(crate) async fn open(&self, setup: &Setup) -> Result<Writer, IndexError> {
        Writer::open(&self.address, &network(), setup).await
    }

    pub(crate) async fn writer(&self) -> Writer {
        self.open(&setup()).await.unwrap()
    }

    pub(crate) async fn reader(&self) -> IndexReader {
        IndexReader::open(&self.address, Arc::new(network()), &ReaderOptions::default()).await.unwrap()
    }

    pub(crate) async fn sql(&self, statement: &str) {
        self.address.connect().await.unwrap().batch_execute(statement).await.unwrap();
    }

    /// The only number that a query gives.
    pub(crate) async fn number(&self, query: &str) -> i64 {
        let client = self.address.connect().await.unwrap();
        client.query_one(query, &[]).await.unwrap().get(0)
    }

    /// Number of rows of blocks, transactions, receipts and logs.
    pub(crate) async fn counts(&self) -> [i64; 4] {
        let mut counts = [0; 4];
        for (count, table) in counts.iter_mut().zip(["blocks", "transactions", "receipts", "logs"]) {
            *count = self.number(&format!("SELECT count(*) FROM rootlight.{table}")).await;
        }
        counts
    }
}

pub(crate) fn network() -> Network {
    Network::regtest()
}

pub(crate) fn setup() -> Setup {
    Setup {
        partition_blocks: Some(PARTITION),
        first_block: None,
        wait: false,
        connections: 4,
        name: "a test".into(),
    }
}

pub(crate) fn log(contract: u8, topics: &[u8]) -> Log {
    Log {
        address: Address::repeat_byte(contract),
        topics: topics.iter().map(|byte| B256::repeat_byte(*byte)).collect(),
        data: Bytes::from(vec![contract; usize::from(contract)]),
    }
}

/// Two transactions, one log in the first and two in the second.
pub(crate) fn content(number: u64) -> LogsByTransaction {
    let byte = (number % 7) as u8;
    vec![vec![log(byte, &[1, byte])], vec![log(9, &[]), log(9, &[2, 3, 4, byte])]]
}

/// Blocks from one height to another with [`content`].
pub(crate) fn chain(salt: u64, from: u64, to: u64, parent: B256) -> Vec<SourceBlock> {
    Maker::new(network(), salt).chain(from, to, parent, content)
}

pub(crate) fn hash(block: &SourceBlock) -> B256 {
    block.block.header().hash()
}

/// The rows that [`TestDatabase::counts`] finds for so many blocks of [`content`].
pub(crate) fn counts_of(blocks: u64) -> [i64; 4] {
    [blocks, 2 * blocks, 2 * blocks, 3 * blocks].map(|count| count as i64)
}

pub(crate) fn traced(mut blocks: Vec<SourceBlock>) -> Vec<SourceBlock> {
    for block in &mut blocks {
        block.traces = Some(BlockTraces::check(&block.block, traces_of(&block.block)).unwrap());
    }
    blocks
}

/// A trace of each transaction, and as many below it as the last digit of the block says.
pub(crate) fn traces_of(block: &MatchedBlock) -> Vec<Trace> {
    let below = (block.header().number % 10) as u32;
    let mut traces = Vec::new();
    for (index, transaction) in block.transactions().iter().enumerate() {
        let own = Trace {
            transaction: index as u32,
            address: Vec::new(),
            subtraces: below,
            kind: TraceKind::Call,
            from: Address::ZERO,
            to: transaction.to,
            value: U256::ZERO,
            gas: Some(0),
            input: Bytes::new(),
            outcome: Some(TraceOutcome { gas_used: 21, output: Bytes::from_static(&[1, 2]) }),
            error: None,
        };
        traces.push(own.clone());
        for at in 0..below {
            traces.push(Trace {
                address: vec![at],
                subtraces: 0,
                from: Address::repeat_byte(at as u8),
                kind: [TraceKind::StaticCall, TraceKind::Create2][at as usize % 2],
                to: (at % 4 == 0).then(|| Address::repeat_byte(9)),
                value: U256::MAX,
                outcome: None,
                error: Some("Reverted".into()),
                input: vec![at as u8; 40].into(),
                ..own.clone()
            });
        }
    }
    traces
}

/// Number of traces of blocks from 0 up to before this one.
pub(crate) fn traces_before(end: u64) -> i64 {
    (0..end).map(|number| 2 * (1 + number % 10)).sum::<u64>() as i64
}
