//! A PostgreSQL server in a temporary folder, on a socket file, run by an unprivileged user.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use super::small_disk::{MountHolder, small_folder};
use crate::connect::Database;

/// How long the server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The user that a server runs as if the tests run as root, which PostgreSQL refuses. Debian's package makes it.
const USER: &str = "postgres";

/// A running server. Dropping it ends it and removes its files.
#[derive(Debug)]
pub struct PostgresServer {
    /// The file system of [`Self::small_database`]; dropped before the folder in which it is mounted.
    small_disk: Option<MountHolder>,
    folder: TempDir,
    programs: PathBuf,
    settings: Vec<String>,
    running: Mutex<Option<Child>>,
    databases: AtomicU32,
    /// The port, which is also part of the name of the socket file.
    port: u16,
}

/// The port of a server that listens on its socket file only.
const PORT: u16 = 5432;

/// A server that the running tests of this process share; `None`, with a line that says so, if PostgreSQL is not
/// installed. Where `CI` is set it must be installed.
///
/// # Panics
/// The server does not start, or `CI` is set and PostgreSQL is not installed.
#[must_use]
pub fn postgres() -> Option<Arc<PostgresServer>> {
    static SHARED: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    let server = Arc::new(PostgresServer::start(&[])?);
    *shared = Arc::downgrade(&server);
    Some(server)
}

/// TLS settings that trust nothing, for connections that are not encrypted.
///
/// # Panics
/// Never with the library's own provider.
#[must_use]
pub fn client_config() -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("the provider's own versions");
    builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

/// The folder of the server's programs.
fn programs() -> Option<PathBuf> {
    let has = |folder: &PathBuf| folder.join("initdb").is_file() && folder.join("postgres").is_file();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).collect::<Vec<_>>();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folder = on_path.into_iter().chain(debian.map(|entry| entry.path().join("bin"))).find(has)?;
    // A folder on PATH may hold links to some of the programs only.
    std::fs::canonicalize(folder.join("postgres")).ok()?.parent().map(Path::to_path_buf)
}

/// The numbers of [`USER`], if this process is root.
fn other_user() -> Option<(u32, u32)> {
    let number = |flag: &str, user: &[&str]| {
        let output = Command::new("id").arg(flag).args(user).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse::<u32>().ok()
    };
    (number("-u", &[]) == Some(0)).then(|| {
        let of = |flag| number(flag, &[USER]).expect("Debian's package makes the user postgres");
        (of("-u"), of("-g"))
    })
}

impl PostgresServer {
    /// Starts a server with these settings (`name=value`); `None`, with a line that says so, if PostgreSQL is not
    /// installed.
    ///
    /// # Panics
    /// As [`postgres`].
    #[must_use]
    pub fn start(settings: &[&str]) -> Option<Self> {
        let server = Self::prepare(settings, PORT)?;
        server.run();
        Some(server)
    }

    /// As [`Self::start`], with a file system of so many MiB for [`Self::small_database`]. It is mounted where only the
    /// server sees it, which needs an administrator's rights: `None`, with a line that says so, without them.
    ///
    /// # Panics
    /// As [`postgres`].
    #[must_use]
    pub fn start_with_small_disk(mebibytes: u32) -> Option<Self> {
        let allowed =
            Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
        if !allowed.is_ok_and(|output| output.status.success()) || other_user().is_none() {
            println!("skipped: file systems cannot be mounted here");
            return None;
        }
        let mut server = Self::prepare(&[], PORT)?;
        let user = other_user().expect("checked above");
        server.small_disk = Some(MountHolder::start(server.folder.path(), mebibytes, user));
        server.run();
        Some(server)
    }

    /// As [`Self::start`], also with TLS on a free port of the loopback interface.
    ///
    /// # Panics
    /// As [`postgres`].
    #[must_use]
    pub fn start_with_tls(certificate: &Path, key: &Path) -> Option<Self> {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
        let settings =
            ["listen_addresses=127.0.0.1", "ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key"];
        let server = Self::prepare(&settings, free.expect("a free port").port())?;
        for (from, name) in [(certificate, "server.crt"), (key, "server.key")] {
            let to = server.data().join(name);
            std::fs::copy(from, &to).expect("the file is readable");
            // The server reads a key only if no other user may.
            std::fs::set_permissions(&to, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .expect("our own file");
            if let Some((user, group)) = other_user() {
                std::os::unix::fs::chown(&to, Some(user), Some(group)).expect("root may");
            }
        }
        server.run();
        Some(server)
    }

    /// The address of a database over TCP, for a server with TLS.
    pub fn tls_address(&self, database: &str) -> String {
        format!("postgres://{USER}@localhost:{}/{database}?sslmode=require", self.port)
    }

    /// Starts a server with a copy of this one's data that follows it (a hot standby).
    ///
    /// # Panics
    /// The copy cannot be made, or its server does not start.
    pub fn replica(&self) -> Self {
        let replica = Self::without_data(self.programs.clone(), &[], PORT);
        let small = |server: &Self| small_folder(server.folder.path()).display().to_string();
        let output = replica
            .command("pg_basebackup")
            .args([
                "--checkpoint=fast",
                "--wal-method=stream",
                "--write-recovery-conf",
                "--no-sync",
                "-U",
                USER,
            ])
            // Without effect on a server that has no tablespace there.
            .arg(format!("--tablespace-mapping={}={}", small(self), small(&replica)))
            .args(["-p", &self.port.to_string(), "-h"])
            .arg(self.folder.path())
            .arg("-D")
            .arg(replica.data())
            .output()
            .expect("pg_basebackup runs");
        assert!(output.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&output.stderr));
        replica.run();
        replica
    }

    fn prepare(settings: &[&str], port: u16) -> Option<Self> {
        let Some(programs) = programs() else {
            assert!(
                std::env::var_os("CI").is_none(),
                "PostgreSQL is not installed: `cargo xtask setup` does"
            );
            println!("skipped: PostgreSQL is not installed");
            return None;
        };
        let server = Self::without_data(programs, settings, port);
        let data = server.data();
        let output = server
            .command("initdb")
            .args(["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-U", USER, "-D"])
            .arg(&data)
            .output()
            .expect("initdb runs");
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        Some(server)
    }

    /// A server with an empty folder.
    fn without_data(programs: PathBuf, settings: &[&str], port: u16) -> Self {
        let folder = tempfile::Builder::new().prefix("rootlight-pg-").tempdir().expect("a temporary folder");
        if let Some((user, group)) = other_user() {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(group)).expect("root may");
        }
        Self {
            folder,
            programs,
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            running: Mutex::new(None),
            databases: AtomicU32::new(0),
            small_disk: None,
            port,
        }
    }

    /// A command that runs as an unprivileged user, in a process group of its own.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        if let Some((user, group)) = other_user() {
            command.uid(user).gid(group);
        }
        command.current_dir(self.folder.path()).stdin(Stdio::null()).process_group(0);
        command
    }

    /// The folder of the data.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts the server again after [`Self::end`].
    ///
    /// # Panics
    /// The server does not answer in time.
    pub fn run(&self) {
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log file");
        let postgres = self.programs.join("postgres");
        let mut command = match &self.small_disk {
            None => self.command("postgres"),
            Some(disk) => disk.command(&postgres, other_user().expect("the disk is mounted by root")),
        };
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path());
        // fsync is off: no test crashes the machine.
        let defaults = ["listen_addresses=", "fsync=off", "max_connections=60", "timezone=UTC"];
        command.arg("-p").arg(self.port.to_string());
        for setting in defaults.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        let errors = log.try_clone().expect("a second handle");
        let child = command.stdout(log).stderr(errors).spawn().expect("postgres runs");
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        let started = Instant::now();
        while !self.is_ready() {
            assert!(started.elapsed() < PATIENCE, "PostgreSQL does not start: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes a database on the small file system; returns its address.
    ///
    /// # Panics
    /// The server refuses.
    pub async fn small_database(&self) -> String {
        let location = small_folder(self.folder.path()).display().to_string();
        self.execute("postgres", &format!("CREATE TABLESPACE small LOCATION '{location}'")).await;
        self.execute("postgres", "CREATE DATABASE small TABLESPACE small").await;
        self.address("small")
    }

    /// Fills the small file system to the last block, or empties it again.
    ///
    /// # Panics
    /// The server was not started by [`Self::start_with_small_disk`].
    pub fn fill_disk(&self, full: bool) {
        self.small_disk.as_ref().expect("started with a small disk").fill(full);
    }

    fn is_ready(&self) -> bool {
        let output = self
            .command("pg_isready")
            .args(["-q", "-p", &self.port.to_string(), "-h"])
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .status();
        output.is_ok_and(|status| status.success())
    }

    /// Processor time of the server's processes since its start, as far as /proc shows it; it is counted in steps of 10 ms.
    pub fn processor_time(&self) -> Duration {
        let id = self.running.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Child::id);
        let Some(id) = id else { return Duration::ZERO };
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| Times::of(&entry.path().join("stat")));
        processes.map(|times| times.of_server(id)).sum()
    }

    /// The server's log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends the server: at once without cleaning up (`QUIT`), or after its connections were closed (`INT`).
    ///
    /// # Panics
    /// The server does not end.
    pub fn end(&self, signal: &str) {
        let child = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut child) = child else { return };
        let id = child.id().to_string();
        let _ = Command::new("kill").args([&format!("-{signal}"), &id]).status();
        let started = Instant::now();
        while matches!(child.try_wait(), Ok(None)) {
            if started.elapsed() > PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Makes a database; returns its address.
    ///
    /// # Panics
    /// The server refuses.
    pub async fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("CREATE DATABASE {name}")).await;
        self.address(&name)
    }

    /// The address of a database.
    pub fn address(&self, database: &str) -> String {
        let folder = encoded(self.folder.path());
        format!("postgres://{USER}@{folder}:{}/{database}", self.port)
    }

    /// Runs a statement in a database.
    ///
    /// # Panics
    /// The statement fails.
    pub async fn execute(&self, database: &str, sql: &str) {
        let address = Database::parse(&self.address(database), client_config()).expect("a valid address");
        let client = address.connect().await.expect("the server runs");
        client.batch_execute(sql).await.expect("a valid statement");
    }
}

/// Processor time of this process, counted as [`PostgresServer::processor_time`] is.
#[must_use]
pub fn own_processor_time() -> Duration {
    Times::of(Path::new("/proc/self/stat")).map_or(Duration::ZERO, |times| times.own)
}

/// The times of a process in /proc.
struct Times {
    id: u32,
    parent: u32,
    own: Duration,
    /// Processor time of children that have ended.
    children: Duration,
}

impl Times {
    fn of(stat: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(stat).ok()?;
        // The name of the program, in brackets, may contain anything.
        let (id, rest) = (text.split(' ').next()?.parse().ok()?, text.rsplit_once(") ")?.1);
        let numbers: Vec<u64> = rest.split(' ').map(|field| field.trim().parse().unwrap_or(0)).collect();
        let ticks =
            |first: usize| Some(Duration::from_millis((numbers.get(first)? + numbers.get(first + 1)?) * 10));
        let parent = u32::try_from(*numbers.get(1)?).ok()?;
        Some(Self { id, parent, own: ticks(11)?, children: ticks(13)? })
    }

    /// This process's part of the server's time: all of the main process with its ended children, or that of a child of it.
    fn of_server(&self, server: u32) -> Duration {
        match (self.id == server, self.parent == server) {
            (true, _) => self.own + self.children,
            (false, true) => self.own,
            (false, false) => Duration::ZERO,
        }
    }
}

/// A path as the host of an address.
fn encoded(path: &Path) -> String {
    path.display().to_string().replace('/', "%2F")
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end("QUIT");
    }
}
