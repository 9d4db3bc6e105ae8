//! The service: the store, the database, two backends, an indexer and three front ends.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rootlight_index::testkit::{PostgresServer, client_config};
use rootlight_index::{Database, IndexError};
use serde_json::json;
use tempfile::TempDir;

use crate::backend::ServiceBackend;
use crate::balancer::{Balancer, UsedKey};
use crate::chain::{ServiceChain, number};
use crate::memory::MemorySamples;
use crate::programs::{PATIENCE, Program, rootlight};
use crate::servers::Servers;
use crate::tally::Tally;

/// Number of front ends.
pub(crate) const FRONT_ENDS: usize = 3;
/// Room of the database that can be full, in MiB.
const DISK: u32 = 192;

/// Folders of libraries on Debian.
const LIBRARIES: [&str; 2] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];

/// Everything that runs.
pub(crate) struct RunningService {
    pub(crate) chain: Arc<ServiceChain>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) postgres: Arc<PostgresServer>,
    /// A copy of the database that follows it.
    pub(crate) replica: Option<PostgresServer>,
    /// Whether the disk of the database can be filled.
    pub(crate) small_disk: bool,
    pub(crate) index: String,
    pub(crate) backends: [ServiceBackend; 2],
    pub(crate) front_ends: Vec<Program>,
    pub(crate) indexer: Program,
    pub(crate) balancer: Arc<Balancer>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) memory: MemorySamples,
    ports: Vec<u16>,
    logs: Logs,
}

/// The folder of the programs' logs: the one that `ROOTLIGHT_SERVICE_LOGS` names, or one that is removed.
enum Logs {
    Kept(PathBuf),
    Removed(TempDir),
}

impl Logs {
    fn new() -> Self {
        match std::env::var_os("ROOTLIGHT_SERVICE_LOGS") {
            Some(folder) => {
                std::fs::create_dir_all(&folder).unwrap();
                Self::Kept(folder.into())
            }
            None => Self::Removed(tempfile::Builder::new().prefix("rootlight-service-").tempdir().unwrap()),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        let folder = match self {
            Self::Kept(folder) => folder,
            Self::Removed(folder) => folder.path(),
        };
        folder.join(format!("{name}.log"))
    }
}

/// The library that shifts a program's clock, if it is there. Where `CI` is set it must be there.
pub(crate) fn faketime() -> Option<PathBuf> {
    let paths = LIBRARIES.map(|folder| PathBuf::from(folder).join("faketime/libfaketime.so.1"));
    let found = paths.into_iter().find(|path| path.is_file());
    assert!(
        found.is_some() || std::env::var_os("CI").is_none(),
        "libfaketime: `cargo xtask setup` installs it"
    );
    found
}

fn free_ports() -> Vec<u16> {
    let bind = |_| std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let reserved: Vec<_> = (0..FRONT_ENDS).map(bind).collect();
    reserved.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

/// A database whose disk can be filled where that is possible, and whether it is.
async fn database() -> Option<(Arc<PostgresServer>, String, bool)> {
    let started = tokio::task::spawn_blocking(|| {
        let small = PostgresServer::start_with_small_disk(DISK);
        let is_small = small.is_some();
        Some((Arc::new(small.or_else(|| PostgresServer::start(&[]))?), is_small))
    });
    let (server, small) = started.await.unwrap()?;
    let address = if small { server.small_database().await } else { server.database().await };
    Some((server, address, small))
}

impl RunningService {
    /// Starts everything; `None`, with a line that says so, if a server is not installed.
    pub(crate) async fn start() -> Option<Self> {
        let servers = tokio::task::spawn_blocking(|| Servers::cluster(&[]));
        let (servers, database, chain) = tokio::join!(servers, database(), ServiceChain::start());
        let (servers, (postgres, index, small_disk)) = (Arc::new(servers.unwrap()?), database?);
        let backends =
            [ServiceBackend::start(chain.clone()).await, ServiceBackend::start(chain.clone()).await];
        let logs = Logs::new();
        let (ports, tally) = (free_ports(), Arc::new(Tally::new()));
        let balancer = Arc::new(Balancer::new(ports.clone(), tally.clone()));
        let indexer_parts = IndexerParts { index: &index, backends: &backends, chain: &chain };
        let indexer = Program::start(indexer_parts.indexer(), &logs.file("indexer"));
        let mut service = Self {
            chain,
            servers,
            postgres,
            replica: None,
            small_disk,
            index,
            backends,
            front_ends: Vec::new(),
            indexer,
            balancer,
            tally,
            memory: MemorySamples::default(),
            ports,
            logs,
        };
        service.indexed().await;
        for turn in 0..FRONT_ENDS {
            let program = Program::start(service.front_end(turn), &service.log(&format!("front-end-{turn}")));
            service.front_ends.push(program);
        }
        for program in &mut service.front_ends {
            program.listening().await;
        }
        Some(service)
    }

    /// The file of a program's log.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.logs.file(name)
    }

    fn indexer_parts(&self) -> IndexerParts<'_> {
        IndexerParts { index: &self.index, backends: &self.backends, chain: &self.chain }
    }

    pub(crate) fn index_command(&self) -> Command {
        self.indexer_parts().indexer()
    }

    /// The command of a front end without its place in the service.
    pub(crate) fn serve(&self) -> Command {
        let mut command = rootlight("serve");
        command.args(["--network", "regtest", "--profile", "hosted", "--log-level", "warn"]);
        command.args(["--checkpoint", &format!("0:{}", self.chain.genesis)]);
        let [first, second] = &self.backends;
        // The first backend is asked over HTTP, the other one over a WebSocket.
        command.args(["--backend", &format!("http://{}", first.address())]);
        command.args(["--backend", &format!("ws://{}", second.address())]);
        command
    }

    /// The flags that name the store and this database.
    pub(crate) fn shared(&self, index: &str) -> Vec<String> {
        let urls = self.servers.urls().into_iter().flat_map(|url| ["--cluster".to_owned(), url]);
        urls.chain(["--index".to_owned(), index.to_owned()]).collect()
    }

    fn front_end(&self, turn: usize) -> Command {
        let mut command = self.serve();
        command.args(["--keys", "--http-port", &self.ports[turn].to_string()]);
        // These caches are full early in a long run. Memory that grows after that is not theirs.
        command.args(["--cache", "6"]);
        command.args(self.shared(&self.index));
        command
    }

    /// Starts a front end again, with its clock ahead by so many seconds.
    pub(crate) async fn start_front_end(&mut self, turn: usize, ahead: i64) {
        let mut command = self.front_end(turn);
        if let (Some(library), true) = (faketime(), ahead != 0) {
            command.env("LD_PRELOAD", library).env("FAKETIME", format!("{ahead:+}s"));
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        self.front_ends[turn] = Program::start(command, &self.log(&format!("front-end-{turn}")));
        self.front_ends[turn].listening().await;
    }

    pub(crate) fn key(&self, arguments: &[&str]) -> Arc<UsedKey> {
        let mut command = rootlight("keys");
        command.arg("create").args(arguments).args(self.shared(&self.index));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.balancer.add_key(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    pub(crate) async fn number(&self, query: &str) -> Result<i64, IndexError> {
        number_at(&self.index, query).await
    }

    /// Waits until the index has the newest block.
    pub(crate) async fn indexed(&self) {
        let (started, head) = (Instant::now(), self.chain.head().number);
        loop {
            let last = self.number("SELECT coalesce(max(number), -1) FROM rootlight.blocks").await;
            if last.as_ref().is_ok_and(|last| *last >= head as i64) {
                return;
            }
            let waited = started.elapsed();
            assert!(waited < PATIENCE, "the index has {last:?} of {head}: {}", self.indexer.said());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until each front end shows the newest block that the chain has now.
    pub(crate) async fn up_to_date(&mut self, key: &UsedKey) {
        let (started, head) = (Instant::now(), self.chain.head().number);
        for turn in 0..FRONT_ENDS {
            loop {
                let answer = self.balancer.attempt(turn, key, "eth_blockNumber", &json!([])).await;
                if answer.as_ref().is_ok_and(|answer| number(answer) >= head) {
                    break;
                }
                let said = self.front_ends[turn].said();
                let runs = self.front_ends[turn].runs();
                let waited = started.elapsed();
                assert!(
                    runs && waited < PATIENCE,
                    "front end {turn} (runs: {runs}) says {answer:?} instead of block {head}: {said}"
                );
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Waits until each front end shows what the chain has now, the store is whole, and the index has the chain too.
    pub(crate) async fn healthy(&mut self, key: &UsedKey) {
        self.up_to_date(key).await;
        let servers = self.servers.clone();
        let store = tokio::task::spawn_blocking(move || servers.await_whole());
        store.await.unwrap();
        self.indexed().await;
        self.memory.sample(&self.front_ends);
    }
}

pub(crate) async fn number_at(index: &str, query: &str) -> Result<i64, IndexError> {
    let client = Database::parse(index, client_config())?.connect().await?;
    Ok(client.query_one(query, &[]).await?.get(0))
}

/// What an indexer needs to know.
struct IndexerParts<'a> {
    index: &'a str,
    backends: &'a [ServiceBackend; 2],
    chain: &'a ServiceChain,
}

impl IndexerParts<'_> {
    fn indexer(&self) -> Command {
        let mut command = rootlight("index");
        command.args(["--network", "regtest", "--log-level", "info"]);
        command.args(["--checkpoint", &format!("0:{}", self.chain.genesis), "--index", self.index]);
        let [first, second] = self.backends;
        command.args(["--from", &format!("http://{}", first.address())]);
        command.args(["--from", &format!("ws://{}", second.address())]);
        command
    }
}
