//! A PostgreSQL server in a temporary folder, on a socket file, run by an unprivileged user.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use crate::connect::Database;

/// How long the server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The user that a server runs as if the tests run as root, which PostgreSQL refuses. Debian's package makes it.
const USER: &str = "postgres";

/// A running server. Dropping it ends it and removes its files.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    settings: Vec<String>,
    running: Mutex<Option<Child>>,
    databases: AtomicU32,
    /// A process whose mount namespace has a file system of its own for [`Self::small_database`].
    small: Option<Mutex<Child>>,
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
        server.small = Some(Mutex::new(server.mount(mebibytes)));
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
            // The server reads a key only if nobody else may.
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
        let small = |server: &Self| server.folder.path().join("small").display().to_string();
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
            small: None,
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
    /// It does not answer in time.
    pub fn run(&self) {
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a log file");
        let mut command = match &self.small {
            None => self.command("postgres"),
            Some(holder) => self.on_small_disk(holder),
        };
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path());
        // A crash of the machine is not what the tests are about.
        let own = ["listen_addresses=", "fsync=off", "max_connections=60", "timezone=UTC"];
        command.arg("-p").arg(self.port.to_string());
        for setting in own.into_iter().chain(self.settings.iter().map(String::as_str)) {
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

    /// Starts a process with a mount namespace of its own, in which `small` is a file system in memory. It holds the file
    /// system while the server restarts.
    fn mount(&self, mebibytes: u32) -> Child {
        let (user, group) = other_user().expect("checked before");
        let script = format!(
            "mkdir -p small && mount -t tmpfs -o size={mebibytes}m,uid={user},gid={group},mode=700 tmpfs small && \
             echo mounted && exec cat"
        );
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).current_dir(self.folder.path()).process_group(0);
        // It ends with its input, so that it does not outlive a test that is killed.
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("unshare runs");
        let mut line = [0; 8];
        let output = holder.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(output, &mut line).expect("the file system is mounted");
        holder
    }

    /// The server in the namespace with the small file system.
    fn on_small_disk(&self, holder: &Mutex<Child>) -> Command {
        let (user, group) = other_user().expect("checked before");
        let id = holder.lock().unwrap_or_else(PoisonError::into_inner).id();
        let mut command = Command::new("nsenter");
        command.arg(format!("--mount=/proc/{id}/ns/mnt")).args(["setpriv", "--clear-groups"]);
        command.args(["--reuid", &user.to_string(), "--regid", &group.to_string()]);
        command.arg(self.programs.join("postgres"));
        command.current_dir(self.folder.path()).stdin(Stdio::null()).process_group(0);
        command
    }

    /// Makes a database on the small file system; returns its address.
    ///
    /// # Panics
    /// The server refuses.
    pub async fn small_database(&self) -> String {
        let place = self.folder.path().join("small").display().to_string();
        self.execute("postgres", &format!("CREATE TABLESPACE small LOCATION '{place}'")).await;
        self.execute("postgres", "CREATE DATABASE small TABLESPACE small").await;
        self.address("small")
    }

    /// Fills the small file system to the last block, or makes room again.
    ///
    /// # Panics
    /// The server was not started by [`Self::start_with_small_disk`].
    pub fn fill_disk(&self, full: bool) {
        let holder = self.small.as_ref().expect("started with a small disk");
        // The namespace of the holder, as /proc shows it.
        let root = format!("/proc/{}/root", holder.lock().unwrap_or_else(PoisonError::into_inner).id());
        let file = format!("{root}{}/filler", self.folder.path().join("small").display());
        if !full {
            std::fs::remove_file(file).expect("the filler is there");
            return;
        }
        let mut filler = std::fs::File::create(file).expect("root may");
        let zeros = vec![0_u8; 64 * 1024];
        while std::io::Write::write_all(&mut filler, &zeros).is_ok() {}
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
    /// It does not end.
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

/// What /proc tells about a process.
struct Times {
    id: u32,
    parent: u32,
    own: Duration,
    /// Those of children that have ended.
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

    /// What counts for the server with this process.
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
        if let Some(holder) = &mut self.small {
            let holder = holder.get_mut().unwrap_or_else(PoisonError::into_inner);
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}
