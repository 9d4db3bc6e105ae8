//! Measures how long requests wait at half of the highest rate. `cargo xtask bench rpc` uses it, because the pauses of a
//! client in JavaScript would be longer than the waiting times that are measured.
//!
//! `paced_client PORT REQUEST COUNT CONNECTIONS`: sends the HTTP request in the file REQUEST over each connection, first
//! one after the other, then at half of that rate, and prints the median and the 99th percentile of the second in
//! microseconds, separated by a space.

use std::io::{Error, Read, Result, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let usage = || Error::other("usage: paced_client PORT REQUEST COUNT CONNECTIONS");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, request, count, connections] = &arguments[..] else { return Err(usage()) };
    let number = |text: &String| text.parse::<u32>().ok().filter(|number| *number > 0).ok_or_else(usage);
    let (request, count, connections) = (std::fs::read(request)?, number(count)?, number(connections)?);
    let open = || PacedConnection::open(port.parse().map_err(|_| usage())?);
    let mut open: Vec<PacedConnection> = (0..connections).map(|_| open()).collect::<Result<_>>()?;

    let started = Instant::now();
    all(&mut open, |connection| (0..count).try_for_each(|_| connection.exchange(&request)))?;
    let pause = started.elapsed() / count * 2;
    let waited = all(&mut open, |connection| paced(connection, &request, count, pause))?;
    let mut waited: Vec<Duration> = waited.into_iter().flatten().collect();
    waited.sort_unstable();
    let at = |percent: usize| waited.get(waited.len() * percent / 100).map_or(0, Duration::as_micros);
    println!("{} {}", at(50), at(99));
    Ok(())
}

/// Runs the same on all connections, each on a thread of its own.
fn all<T: Send>(
    connections: &mut [PacedConnection],
    work: impl Fn(&mut PacedConnection) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let running: Vec<_> = connections.iter_mut().map(|open| scope.spawn(|| work(open))).collect();
        let ended = running.into_iter().map(|thread| thread.join());
        ended.map(|result| result.unwrap_or_else(|_| Err(Error::other("a thread panicked")))).collect()
    })
}

/// Sends a request every `pause`; returns how long each waited. A request that could not be sent in time, because the
/// answer before it was late, waits from the moment at which it was due.
fn paced(
    connection: &mut PacedConnection,
    request: &[u8],
    count: u32,
    pause: Duration,
) -> Result<Vec<Duration>> {
    let begin = Instant::now();
    let mut waited = Vec::new();
    for number in 0..count {
        let due = begin + pause * number;
        let early = due.saturating_duration_since(Instant::now());
        // A thread that sleeps wakes some time later, for which the node is not to blame.
        thread::sleep(early);
        let from = if early.is_zero() { due } else { Instant::now() };
        connection.exchange(request)?;
        waited.push(from.elapsed());
    }
    Ok(waited)
}

/// A connection that is kept open.
struct PacedConnection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl PacedConnection {
    fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { stream, received: Vec::new() })
    }

    /// Sends a request and reads its response.
    fn exchange(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request)?;
        self.received.clear();
        let mut piece = [0; 16 << 10];
        while !is_whole(&self.received) {
            let read = self.stream.read(&mut piece)?;
            if read == 0 {
                return Err(Error::other("the node closed a connection"));
            }
            self.received.extend_from_slice(&piece[..read]);
        }
        Ok(())
    }
}

/// Whether this is a whole response: its body has the length of `content-length`, or ends with the last chunk.
fn is_whole(response: &[u8]) -> bool {
    let Some(end) = response.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&response[..end]).to_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    match length {
        Some(length) => response.len() >= end + 4 + length,
        None => response.ends_with(b"\r\n0\r\n\r\n"),
    }
}
