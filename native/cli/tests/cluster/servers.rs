//! Servers that speak the protocol of Redis, in a temporary folder, run by an unprivileged user.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use rootlight_cluster::store::{HotStore, StoreConfig};
use tempfile::TempDir;

/// How long servers may take to start and to agree.
const PATIENCE: Duration = Duration::from_secs(60);

/// The user that servers run as if the tests run as root.
const USER: &str = "nobody";

/// Time after which a server of a cluster counts as failed, in milliseconds.
const NODE_TIMEOUT: &str = "1000";

/// Servers in a folder of their own. Dropping them ends them.
pub(crate) struct Servers {
    folder: TempDir,
    program: PathBuf,
    ports: Vec<(u16, u16)>,
    settings: Vec<String>,
    clustered: bool,
    running: Mutex<Vec<Option<Child>>>,
}

/// Waits until something is so.
pub(crate) fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// As [`wait`], inside a runtime.
pub(crate) async fn wait_until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian's tools have the server program under the last name; it acts as the name under which it is called.
    let known = ["redis-server", "valkey-server", "redis-check-rdb"];
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(["/usr/bin".into()]).collect();
    known.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()))
}

/// The numbers of [`USER`], if this process is root.
fn other_user() -> Option<(u32, u32)> {
    let number = |flag: &str, user: &[&str]| {
        let output = Command::new("id").arg(flag).args(user).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse::<u32>().ok()
    };
    (number("-u", &[]) == Some(0)).then(|| {
        let of = |flag| number(flag, &[USER]).expect("every system has the user nobody");
        (of("-u"), of("-g"))
    })
}

/// A cluster of three masters and three replicas that the running tests of this process share; `None`, with a line that
/// says so, if there is no server to run. Where `CI` is set there must be one.
pub(crate) fn cluster() -> Option<Arc<Servers>> {
    static SHARED: Mutex<Weak<Servers>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(servers) = shared.upgrade() {
        return Some(servers);
    }
    let servers = Arc::new(Servers::cluster(&[])?);
    *shared = Arc::downgrade(&servers);
    Some(servers)
}

impl Servers {
    pub(crate) fn single(settings: &[&str]) -> Option<Self> {
        let servers = Self::prepare(1, false, settings)?;
        servers.run(0);
        Some(servers)
    }

    /// Three masters, and three replicas after them.
    pub(crate) fn cluster(settings: &[&str]) -> Option<Self> {
        let servers = Self::prepare(6, true, settings)?;
        (0..6).for_each(|index| servers.spawn(index));
        (0..6).for_each(|index| servers.await_start(index));
        for (index, slots) in ["0 5460", "5461 10922", "10923 16383"].iter().enumerate() {
            servers.ask(index, &format!("CLUSTER SET-CONFIG-EPOCH {}", index + 1));
            servers.ask(index, &format!("CLUSTER ADDSLOTSRANGE {slots}"));
        }
        for index in 1..6 {
            let (port, bus) = servers.ports[index];
            servers.ask(0, &format!("CLUSTER MEET 127.0.0.1 {port} {bus}"));
        }
        for index in 3..6 {
            let master = servers.ask(index - 3, "CLUSTER MYID");
            // The replica has to know the master first.
            wait("the replicas", || servers.ask(index, &format!("CLUSTER REPLICATE {master}")) == "OK");
        }
        servers.await_whole();
        Some(servers)
    }

    /// Waits until all servers of a cluster agree that it has three masters, each with a replica that follows it.
    pub(crate) fn await_whole(&self) {
        wait("the cluster", || (0..self.len()).all(|index| self.is_whole(index)));
    }

    fn is_whole(&self, index: usize) -> bool {
        let says = |command: &str| self.try_ask(index, command).unwrap_or_default();
        let nodes = says("CLUSTER NODES");
        let linked = nodes.lines().filter(|line| line.contains("slave")).count() == 3;
        let failed = nodes.lines().any(|line| line.contains("fail"));
        let replication = says("INFO replication");
        let synced = replication.contains("role:master") && replication.contains("connected_slaves:1")
            || replication.contains("master_link_status:up");
        linked && !failed && synced && says("CLUSTER INFO").contains("cluster_state:ok")
    }

    pub(crate) const fn len(&self) -> usize {
        self.ports.len()
    }

    fn prepare(count: usize, clustered: bool, settings: &[&str]) -> Option<Self> {
        let Some(program) = program() else {
            assert!(std::env::var_os("CI").is_none(), "no store is installed: `cargo xtask setup` does");
            println!("skipped: no program of Redis or Valkey is installed");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("rootlight-store-").tempdir().unwrap();
        let owned = |path: &Path| {
            if let Some((user, group)) = other_user() {
                std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
            }
        };
        owned(folder.path());
        // All ports are held at the same time, so that the system gives none twice.
        let reserved: Vec<TcpListener> =
            (0..count * 2).map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let ports = reserved.chunks(2).map(|pair| (port(&pair[0]), port(&pair[1]))).collect();
        for index in 0..count {
            let path = folder.path().join(index.to_string());
            std::fs::create_dir(&path).unwrap();
            owned(&path);
        }
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let running = Mutex::new((0..count).map(|_| None).collect());
        Some(Self { folder, program, ports, settings, clustered, running })
    }

    /// Starts a server, and waits until it answers.
    pub(crate) fn run(&self, index: usize) {
        self.spawn(index);
        self.await_start(index);
    }

    fn await_start(&self, index: usize) {
        wait("the start of a server", || self.try_ask(index, "PING").is_some_and(|answer| answer == "PONG"));
    }

    fn spawn(&self, index: usize) {
        let mut command = Command::new(&self.program);
        command.arg0("redis-server");
        if let Some((user, group)) = other_user() {
            command.uid(user).gid(group);
        }
        let (port, bus) = self.ports[index];
        let folder = self.folder.path().join(index.to_string());
        let log = std::fs::File::create(self.folder.path().join(format!("{index}.log"))).unwrap();
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command.arg("--dir").arg(&folder).args(["--repl-diskless-sync-delay", "0"]);
        if self.clustered {
            command.args(["--cluster-enabled", "yes", "--cluster-port", &bus.to_string()]);
            command.args(["--cluster-node-timeout", NODE_TIMEOUT, "--cluster-config-file", "nodes.conf"]);
        }
        for setting in &self.settings {
            let (name, value) = setting.split_once('=').expect("name=value");
            command.args([&format!("--{name}"), value]);
        }
        let command = command.current_dir(&folder).stdin(Stdio::null()).process_group(0);
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        self.running.lock().unwrap()[index] = Some(child);
    }

    pub(crate) fn signal(&self, index: usize, signal: &str) {
        let id = self.running.lock().unwrap()[index].as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
    }

    pub(crate) fn kill(&self, index: usize) {
        let child = self.running.lock().unwrap()[index].take();
        if let Some(mut child) = child {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// The addresses.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.ports.iter().map(|(port, _)| format!("redis://127.0.0.1:{port}")).collect()
    }

    /// How clients connect.
    pub(crate) fn config(&self, prefix: &str) -> StoreConfig {
        StoreConfig::parse(&self.urls(), prefix).unwrap()
    }

    pub(crate) async fn connect(&self, prefix: &str) -> Arc<HotStore> {
        HotStore::connect(&self.config(prefix)).await.unwrap()
    }

    pub(crate) fn masters(&self) -> Vec<usize> {
        let is_master =
            |index: &usize| self.try_ask(*index, "ROLE").is_some_and(|role| role.starts_with("master"));
        (0..self.ports.len()).filter(is_master).collect()
    }

    pub(crate) fn server_of(&self, key: &str) -> usize {
        let has = |index: &usize| {
            self.try_ask(*index, &format!("EXISTS {key}")).is_some_and(|answer| !answer.starts_with("MOVED"))
        };
        self.masters().into_iter().find(has).expect("some server has each key")
    }

    pub(crate) fn ask(&self, index: usize, command: &str) -> String {
        self.try_ask(index, command).expect("the server answers")
    }

    fn try_ask(&self, index: usize, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[index].0)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(format!("{command}\r\n").as_bytes()).ok()?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.starts_with("*0") {
            return Some(String::new());
        }
        if line.starts_with('*') {
            // Of a list, its first part.
            line.clear();
            reader.read_line(&mut line).ok()?;
        }
        let text = line.trim_end().get(1..)?.to_owned();
        if !line.starts_with('$') || text == "-1" {
            return Some(text);
        }
        let mut body = vec![0; text.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        String::from_utf8(body).ok()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let count = self.ports.len();
        (0..count).for_each(|index| self.kill(index));
    }
}
