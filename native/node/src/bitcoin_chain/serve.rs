//! The servers of the Bitcoin chain, on ports of 127.0.0.1 that the system picks: Esplora over HTTP, Electrum over TCP and
//! WebSocket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use axum::routing::get;
use axum::{Router, serve};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::chain::RegtestChain;
use super::electrum::Session;
use super::esplora;

/// Longest message of a client, in bytes; a longer one ends the connection.
const MESSAGE_BYTES: usize = 256 * 1024;

/// Most connections of Electrum's protocol at the same time. Over TCP further ones wait, over WebSocket they are closed.
const CONNECTIONS: usize = 64;

/// Pause after accepting a connection failed, for instance because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Servers of a Bitcoin chain, which run until the value is dropped.
#[derive(Debug)]
pub struct BitcoinServers {
    /// Address of Esplora's interface, and of Electrum's over WebSocket.
    http: SocketAddr,
    /// Address of Electrum's protocol over TCP.
    tcp: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl BitcoinServers {
    /// Starts the servers on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// No port can be had.
    pub async fn start(chain: Arc<RegtestChain>) -> io::Result<Self> {
        let any = (Ipv4Addr::LOCALHOST, 0);
        let (web, electrum) = (TcpListener::bind(any).await?, TcpListener::bind(any).await?);
        let (http, tcp) = (web.local_addr()?, electrum.local_addr()?);
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        let sockets =
            Router::new().route("/electrum", get(upgrade)).with_state((chain.clone(), slots.clone()));
        let router = esplora::router(chain.clone()).merge(sockets);
        let web = tokio::spawn(async move {
            // The server runs until the task is aborted.
            let _ = serve(web, router).await;
        });
        let electrum = tokio::spawn(accept(electrum, chain, slots));
        Ok(Self { http, tcp, tasks: [web, electrum] })
    }

    /// URL of Esplora's interface.
    pub fn esplora(&self) -> String {
        format!("http://{}", self.http)
    }

    /// URLs of Electrum's protocol: lines over TCP, and messages over WebSocket.
    pub fn electrum(&self) -> [String; 2] {
        [format!("tcp://{}", self.tcp), format!("ws://{}/electrum", self.http)]
    }
}

impl Drop for BitcoinServers {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// What each WebSocket needs: the chain, and the connections that are free.
type SocketState = (Arc<RegtestChain>, Arc<Semaphore>);

/// Accepts TCP connections, one for each free slot.
async fn accept(listener: TcpListener, chain: Arc<RegtestChain>, slots: Arc<Semaphore>) {
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let chain = chain.clone();
        tokio::spawn(async move {
            // A client that leaves is no fault.
            let _ = answer_lines(stream, chain).await;
            drop(slot);
        });
    }
}

/// Answers the lines of a connection until it ends, or until a line is too long.
async fn answer_lines(stream: TcpStream, chain: Arc<RegtestChain>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut changes = chain.changes();
    let (read, mut write) = stream.into_split();
    let (mut read, mut session) = (BufReader::new(read), Session::new(chain));
    let mut line = Vec::new();
    loop {
        let left = (MESSAGE_BYTES + 1).saturating_sub(line.len());
        let mut limited = (&mut read).take(left as u64);
        let answer = tokio::select! {
            // The bytes that were read stay in `line` if the other branch is taken.
            length = limited.read_until(b'\n', &mut line) => {
                if length? == 0 || line.len() > MESSAGE_BYTES {
                    return Ok(());
                }
                if line.last() != Some(&b'\n') {
                    continue;
                }
                let answer = session.answer(&String::from_utf8_lossy(&line));
                line.clear();
                answer
            }
            changed = changes.changed(), if session.is_subscribed => {
                if changed.is_err() {
                    return Ok(());
                }
                session.notice()
            }
        };
        write.write_all(format!("{answer}\n").as_bytes()).await?;
    }
}

async fn upgrade(State((chain, slots)): State<SocketState>, upgrade: WebSocketUpgrade) -> Response {
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES).max_frame_size(MESSAGE_BYTES);
    upgrade.on_upgrade(async move |socket| {
        // Without a free slot the socket is dropped, which closes it.
        if let Ok(_slot) = slots.try_acquire() {
            answer_messages(socket, chain).await;
        }
    })
}

async fn answer_messages(mut socket: WebSocket, chain: Arc<RegtestChain>) {
    let mut changes = chain.changes();
    let mut session = Session::new(chain);
    loop {
        let answer = tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => session.answer(&text),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            changed = changes.changed(), if session.is_subscribed => {
                if changed.is_err() {
                    return;
                }
                session.notice()
            }
        };
        if socket.send(Message::text(answer)).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use rootlight::dev::{BitcoinBlocks, SimulatedBitcoin as _};
    use serde_json::{Value, json};

    use super::*;

    async fn connected(servers: &BitcoinServers) -> BufReader<TcpStream> {
        BufReader::new(TcpStream::connect(servers.tcp).await.unwrap())
    }

    async fn line(stream: &mut BufReader<TcpStream>) -> Value {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[tokio::test]
    async fn subscribers_are_told_of_new_blocks() {
        let chain = Arc::new(RegtestChain::new(1));
        let servers = BitcoinServers::start(chain.clone()).await.unwrap();
        let mut stream = connected(&servers).await;
        let request = json!({"id": 1, "method": "blockchain.headers.subscribe", "params": []});
        // A line may come in any pieces.
        let text = format!("{request}\n");
        let (front, rest) = text.as_bytes().split_at(20);
        stream.get_mut().write_all(front).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        stream.get_mut().write_all(rest).await.unwrap();
        assert_eq!(line(&mut stream).await["result"]["height"], 0);
        for height in [2, 4] {
            let time = 1_800_000_000;
            chain.mine(&BitcoinBlocks { commitments: vec![None; 2], parent: None, time }).unwrap();
            let notice = line(&mut stream).await;
            assert_eq!(notice["method"], "blockchain.headers.subscribe");
            assert_eq!(notice["params"][0]["height"], height);
        }
    }

    #[tokio::test]
    async fn a_client_whose_line_is_too_long_is_left() {
        let servers = BitcoinServers::start(Arc::new(RegtestChain::new(1))).await.unwrap();
        let mut stream = connected(&servers).await;
        // The server may close the connection before all bytes are sent.
        let _ = stream.get_mut().write_all(&vec![b'x'; MESSAGE_BYTES + 1]).await;
        let mut rest = Vec::new();
        let read = stream.read_to_end(&mut rest).await;
        assert!(read.is_err() || rest.is_empty());
        let mut other = connected(&servers).await;
        other.get_mut().write_all(b"{\"id\":1,\"method\":\"server.ping\"}\n").await.unwrap();
        assert!(line(&mut other).await["result"].is_null());
    }
}
