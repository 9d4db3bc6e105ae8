//! Serves a listener for operators, which has few connections: metrics and probes of a server (`observer.rs`), and the
//! administration of a cluster (`native/cluster/src/serve/admin`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tracing::debug;

use super::connection_slots::{ClientConnection, ConnectionSlots};
use super::metered::Metered;
use super::outgoing::{OutgoingResponse, count_until_sent};
use crate::service::Counts;

/// The largest number of open connections. A monitor needs one or two, a browser six.
const CONNECTIONS: usize = 16;

/// Longest time for which a connection is open, so that clients that do not read do not keep the slots.
const LIFETIME: Duration = Duration::from_secs(60);

/// Time in which a client must receive its answer, or 256 KiB of it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the head of a request; also how long an idle connection stays open.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 16 * 1024;

/// Pause after a failed `accept`, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves for ever. Connections end with this future.
pub async fn serve<S>(listener: TcpListener, counts: &Counts, service: S)
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let slots = ConnectionSlots::new(CONNECTIONS);
    let mut open = JoinSet::new();
    loop {
        // Removes the connections that have ended; the open ones are no more than the slots.
        while open.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, address)) => {
                let (service, connection) =
                    (service.clone(), ClientConnection::new(Some(address.ip()), counts));
                let slot = slots.enter(&connection).await;
                open.spawn(async move {
                    tokio::select! {
                        _ = tokio::time::timeout(LIFETIME, exchange(stream, connection.clone(), service)) => {}
                        () = connection.close_requested() => {}
                    }
                    drop(slot);
                });
            }
            Err(failure) => {
                debug!(%failure, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Answers the requests of a connection until it ends.
async fn exchange<S>(stream: TcpStream, connection: Arc<ClientConnection>, service: S)
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible>,
{
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES);
    let io = TokioIo::new(Metered::new(Box::new(stream), connection.clone()));
    let client = connection.clone();
    let service = service_fn(move |request| {
        let (answering, client, work) = (service.call(request), client.clone(), client.work());
        async move {
            let reply = count_until_sent(&client, OutgoingResponse::free(answering.await?)).await;
            drop(work);
            Ok::<_, Infallible>(reply)
        }
    });
    let mut exchange = std::pin::pin!(builder.serve_connection(io, service));
    let ended = tokio::select! {
        ended = exchange.as_mut() => ended,
        () = connection.stalled(WRITE_TIMEOUT) => Ok(()),
        () = tokio::time::sleep(LIFETIME / 2) => {
            // A request that has begun may take the other half of the time; no further one is read.
            exchange.as_mut().graceful_shutdown();
            exchange.await
        }
    };
    if let Err(failure) = ended {
        debug!(%failure, "connection of an operator ended");
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn unfinished_requests_do_not_block_probes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let alive = service_fn(|_| async { Ok(Response::new(Body::from("alive"))) });
        let serving = tokio::spawn(async move { serve(listener, &Counts::default(), alive).await });
        let mut reserved = Vec::new();
        for _ in 0..3 * CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /livez HTTP/1.1\r\nHo").await.unwrap();
            reserved.push(stream);
        }
        let probe = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        // A connection with half a request would keep its slot for the time limit of the head, if no other client needed a slot.
        let answer = tokio::time::timeout(HEAD_TIMEOUT, probe).await.expect("the probe has its turn");
        assert!(answer.ends_with("alive"), "{answer}");
        serving.abort();
    }
}
