//! Well-behaved clients: threads that send one small request after another, each over a new connection. They get a
//! processor at once where the system permits it, because clients on other machines do not wait for the server's
//! processors.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

/// A request that does not depend on the chain.
pub(crate) const CHAIN_ID: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;

/// Longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(20);

/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(10);

/// The waiting times of a client.
#[derive(Default)]
pub(crate) struct Observed {
    times: Vec<Duration>,
    pub(crate) failed: u32,
    /// Whether the client had a real-time priority.
    pub(crate) is_raised: bool,
}

/// A running client.
pub(crate) struct Watching {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Observed>,
}

impl Watching {
    /// Starts a client, which sends requests until [`Self::end`].
    pub(crate) fn start(from: &'static str, address: SocketAddr, question: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, question) = (stop.clone(), question.to_owned());
        Self { stop, thread: std::thread::spawn(move || ask(from, address, &question, &stopped)) }
    }

    pub(crate) fn end(self) -> Observed {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the client ends")
    }
}

/// Gives the calling thread a real-time priority (`chrt` of util-linux), which needs privileges. Returns whether it has
/// one now.
fn raise() -> bool {
    let Ok(thread) = std::fs::read_link("/proc/thread-self") else { return false };
    let Some(number) = thread.file_name() else { return false };
    let raised =
        Command::new("chrt").args(["--fifo", "--pid", "1"]).arg(number).stderr(Stdio::null()).status();
    raised.is_ok_and(|status| status.success())
}

fn ask(from: &str, address: SocketAddr, question: &str, stop: &AtomicBool) -> Observed {
    let mut observed = Observed { is_raised: raise(), ..Observed::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let answer = runtime
            .block_on(async { tokio::time::timeout(PATIENCE, exchange(from, address, question)).await });
        let answered = answer.is_ok_and(|answer| answer.is_ok_and(|answer| answer.contains("\"result\"")));
        observed.times.push(started.elapsed());
        observed.failed += u32::from(!answered);
        std::thread::sleep(PAUSE);
    }
    observed
}

async fn exchange(from: &str, address: SocketAddr, question: &str) -> std::io::Result<String> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(format!("{from}:0").parse().map_err(std::io::Error::other)?)?;
    let mut stream = socket.connect(address).await?;
    let length = question.len();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {length}\r\n\r\n{question}"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
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

    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }
}
