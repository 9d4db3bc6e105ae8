//! Serves a listener for operators, of which few connections come.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::debug;

use super::metered::Metered;
use super::places::ClientConnection;
use super::stream::Stream;
use super::way_out::{Reply, leave};

/// Connections at the same time. A monitor needs one or two, a browser six.
const CONNECTIONS: usize = 16;

/// Longest life of a connection, so that clients that do not read do not keep the places.
const LIFE: Duration = Duration::from_secs(60);

/// Time in which a client must receive its answer, or 256 KiB of it.
const WRITE: Duration = Duration::from_secs(10);

/// Time limit for the head of a request; also how long an idle connection stays open.
const HEAD: Duration = Duration::from_secs(20);

/// The longest head of a request, in bytes.
const HEAD_BYTES: usize = 16 * 1024;

/// Pause after a failed `accept`, so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves for ever. Connections end with this future.
pub(crate) async fn serve<S>(listener: TcpListener, service: S)
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        // What has ended is forgotten; the others are no more than the places.
        while open.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, address)) => {
                let (service, connection) = (service.clone(), ClientConnection::from(address.ip()));
                open.spawn(async move {
                    let _ = tokio::time::timeout(LIFE, exchange(stream, connection, service)).await;
                    drop(place);
                });
            }
            Err(failure) => {
                debug!(%failure, "accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn exchange<S>(stream: TcpStream, connection: Arc<ClientConnection>, service: S)
where
    S: Service<Request<Incoming>, Response = Response, Error = Infallible>,
{
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    let io = TokioIo::new(Metered::new(Stream::Tcp(stream), connection.clone()));
    let client = connection.clone();
    let service = service_fn(move |request| {
        let (answering, client) = (service.call(request), client.clone());
        async move { Ok::<_, Infallible>(leave(&client, Reply::free(answering.await?)).await) }
    });
    let mut exchange = std::pin::pin!(builder.serve_connection(io, service));
    let ended = tokio::select! {
        ended = exchange.as_mut() => ended,
        () = connection.stalled(WRITE) => Ok(()),
        () = tokio::time::sleep(LIFE / 2) => {
            // A request that has begun has the other half of the time.
            exchange.as_mut().graceful_shutdown();
            exchange.await
        }
    };
    if let Err(failure) = ended {
        debug!(%failure, "connection of an operator ended");
    }
}
