//! The program under attack, and a client that only wants to know the chain's id.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longest that the well-behaved client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two of its questions.
const PAUSE: Duration = Duration::from_millis(20);

/// A running program.
pub(crate) struct Target {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// How long questions took.
#[derive(Default)]
pub(crate) struct Observed {
    times: Vec<Duration>,
    pub(crate) failed: u32,
}

impl Target {
    /// A development chain.
    pub(crate) async fn development(binary: &str) -> Self {
        Self::start(binary, &["dev"])
    }

    /// Starts the program with these arguments on a free port.
    pub(crate) fn start(binary: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(binary)
            .args(arguments)
            .args(["--http-port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let output = child.stdout.take().expect("its output");
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(rest) = line.strip_prefix("listening http://") {
                let address = rest.split(' ').next().and_then(|text| text.parse().ok()).expect("an address");
                return Self { child, address };
            }
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!("{binary} {arguments:?} does not listen");
    }

    /// The most memory that was resident so far, MiB.
    pub(crate) fn peak(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        kib / 1024
    }

    /// Asks for a while.
    pub(crate) async fn observe(&self, time: Duration) -> Observed {
        let watching = self.watch();
        tokio::time::sleep(time).await;
        watching.end().await
    }

    /// Asks until told to end.
    pub(crate) fn watch(&self) -> Watching {
        let stop = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(ask(self.address, stop.clone()));
        Watching { stop, task }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that is asking.
pub(crate) struct Watching {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Observed>,
}

impl Watching {
    pub(crate) async fn end(self) -> Observed {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap_or_default()
    }
}

async fn ask(address: SocketAddr, stop: Arc<AtomicBool>) -> Observed {
    let mut observed = Observed::default();
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let question = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        let answer = tokio::time::timeout(PATIENCE, post(address, None, question)).await;
        observed.failed += u32::from(!answer.is_ok_and(|answer| answer.contains("0x21")));
        observed.times.push(started.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    observed
}

/// Asks over a connection of its own; gives the whole HTTP answer, or as much as came.
pub(crate) async fn post(address: SocketAddr, origin: Option<&str>, body: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address).await else { return String::new() };
    let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{origin}Connection: close\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let mut answer = Vec::new();
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

impl Observed {
    pub(crate) fn p99(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len().saturating_sub(1) * 99 / 100).copied().unwrap_or_default()
    }

    pub(crate) fn longest(&self) -> Duration {
        self.times.iter().max().copied().unwrap_or_default()
    }
}
