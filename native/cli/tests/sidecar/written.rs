//! A store that another process writes, with the reference node's options, while it is read here; either process is killed
//! at random points.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use alloy_primitives::{B256, keccak256};
use rocksdb::{DB, DBCompressionType, Options, WriteBatch};
use rootlight::trie::{Loader, NodeSource as _, Trie};
use rootlight_node::rskj_store::RskjStore;
use rootlight_node::sidecar::NodeStore as _;

/// The folder of the store, for the processes that this test starts.
const FOLDER: &str = "ROOTLIGHT_TEST_STORE";

/// How many steps the writer has done before.
const DONE: &str = "ROOTLIGHT_TEST_DONE";

/// How often each side is killed.
const KILLS: u64 = 50;

/// How long a writer may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The state after a step: some keys are added, some changed, some deleted.
fn step(trie: &mut Trie, number: u64) {
    for part in 0..6_u64 {
        let seed = keccak256([number.to_be_bytes(), part.to_be_bytes()].concat());
        let key = keccak256((number * 7 + part).rem_euclid(400).to_be_bytes());
        let length = usize::from(seed[0]) % 90;
        trie.put(
            &key[..20 + part as usize % 3],
            seed.iter().cycle().take(length).copied().collect::<Vec<u8>>(),
        );
    }
}

/// Writes as the reference node does: one batch for each step, without compression or sync. Prints each root that is written.
#[test]
fn writer_process() {
    let (Some(folder), Ok(done)) = (std::env::var_os(FOLDER), std::env::var(DONE)) else { return };
    let done: u64 = done.parse().unwrap();
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    // The node's buffer and its blocks have 10 MiB; a small one makes this test write and merge files too.
    options.set_arena_block_size(8 << 10);
    options.set_write_buffer_size(64 << 10);
    options.set_paranoid_checks(true);
    let database = DB::open(&options, folder).unwrap();
    let (mut trie, mut written) = (Trie::new(), BTreeSet::new());
    (0..done).for_each(|number| step(&mut trie, number));
    for number in done.. {
        step(&mut trie, number);
        let mut batch = WriteBatch::default();
        trie.for_each_stored(&mut |hash, bytes| {
            if written.insert(hash) {
                batch.put(hash, bytes);
            }
        });
        database.write(batch).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nroot {}", trie.root()).unwrap();
        out.flush().unwrap();
        drop(out);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads the whole of the newest state again and again.
#[test]
fn reader_process() {
    let Some(folder) = std::env::var_os(FOLDER).filter(|_| std::env::var_os(DONE).is_none()) else { return };
    let store = RskjStore::open(Path::new(&folder), 1 << 20).unwrap();
    for number in 0.. {
        let mut trie = Trie::new();
        (0..=number % 50).for_each(|number| step(&mut trie, number));
        if store.node(&trie.root()).is_some() {
            assert!(Loader::new(&store).load(trie.root()).is_ok());
        }
    }
}

struct Process {
    child: Child,
    roots: Receiver<B256>,
}

fn spawn(test: &str, folder: &Path, own: &Path, done: Option<usize>) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(FOLDER, folder)
        .env("TMPDIR", own);
    if let Some(done) = done {
        command.env(DONE, done.to_string());
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (sender, roots) = channel();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let root = line.strip_prefix("root ").and_then(|root| root.parse().ok());
            root.map(|root: B256| sender.send(root));
        }
    });
    Process { child, roots }
}

impl Process {
    /// Kills the process at a time that depends on the seed: a writer after its first report. Returns the roots that it had
    /// reported.
    fn kill(mut self, seed: u64, writes: bool) -> Vec<B256> {
        let first = writes.then(|| self.roots.recv_timeout(PATIENCE).expect("a report"));
        std::thread::sleep(Duration::from_micros(u64::from(keccak256(seed.to_be_bytes())[0]) * 500));
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        first.into_iter().chain(self.roots.iter()).collect()
    }
}

/// The root of the state that is read from the store. A secondary that catches up while files change may need a second look.
fn whole(store: &RskjStore, root: B256) -> B256 {
    let looks = std::iter::repeat_with(|| {
        store.catch_up().unwrap();
        Loader::new(store).load(root)
    });
    looks.take(20).find_map(Result::ok).expect("a whole state").root()
}

#[test]
fn a_store_that_is_written_is_followed_and_nothing_is_lost_when_either_side_is_killed() {
    let (folder, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = folder.path().join("unitrie");
    let mut roots: Vec<B256> = Vec::new();
    // Opened once, and never again.
    let mut reader: Option<RskjStore> = None;
    for round in 0..KILLS {
        let writer = spawn("written::writer_process", &path, own.path(), Some(roots.len()));
        if reader.is_some() {
            drop(spawn("written::reader_process", &path, own.path(), None).kill(round, false));
        }
        let reported = writer.kill(round + KILLS, true);
        let first = roots.len();
        roots.extend(reported);
        if reader.is_none() && !roots.is_empty() {
            reader = Some(RskjStore::open(folder.path(), 1 << 20).unwrap());
        }
        let Some(store) = &reader else { continue };
        for root in &roots[first..] {
            assert_eq!(whole(store, *root), *root, "round {round}");
        }
    }
    assert!(roots.len() > 100, "{} states", roots.len());
    let mut trie = Trie::new();
    let again = RskjStore::open(folder.path(), 1 << 20).unwrap();
    for (number, root) in roots.iter().enumerate() {
        step(&mut trie, number as u64);
        assert_eq!(trie.root(), *root, "the writer goes on where it was killed");
        assert!(again.node(root).is_some());
    }
}
