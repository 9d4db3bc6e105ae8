//! A relay in front of a server: it delays what passes, and counts what comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Delay of each direction: half of a round trip.
const DELAY: Duration = Duration::from_millis(15);
/// Pieces that are under way in one direction.
const UNDER_WAY: usize = 4_096;

/// Bytes that came back through relays.
pub(crate) type Received = Arc<AtomicU64>;

/// Starts a relay to an address of this machine; returns the relay's own address.
pub(crate) async fn relay(to: SocketAddr, received: Received) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("its address");
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let received = received.clone();
            tokio::spawn(async move {
                let Ok(far) = TcpStream::connect(to).await else { return };
                let _ = (near.set_nodelay(true), far.set_nodelay(true));
                let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
                tokio::join!(
                    pass(near_read, far_write, Received::default()),
                    pass(far_read, near_write, received)
                );
            });
        }
    });
    address
}

/// Passes bytes on, each piece after the delay, and then the end.
async fn pass(
    mut from: impl AsyncRead + Unpin + Send + 'static,
    mut to: impl AsyncWrite + Unpin,
    count: Received,
) {
    let (sender, mut pieces) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let reading = tokio::spawn(async move {
        let mut piece = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            count.fetch_add(length as u64, Ordering::Relaxed);
            if sender.send((Instant::now() + DELAY, piece[..length].to_vec())).await.is_err() {
                return;
            }
        }
    });
    while let Some((due, piece)) = pieces.recv().await {
        tokio::time::sleep_until(due).await;
        if to.write_all(&piece).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
    reading.abort();
}
