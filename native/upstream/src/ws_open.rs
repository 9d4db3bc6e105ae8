//! Opens connections to WebSocket upstreams and to Electrum servers: TCP, TLS and WebSocket.

use std::io;
use std::net::IpAddr;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::{IntoClientRequest as _, uri_mode};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::stream::Mode;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async_with_config};

use super::source_quota::SourceQuota;
use super::tls;
use super::ws_frames::{Frames, LONGEST_FRAME};

/// A stream of bytes in both directions.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

/// A WebSocket whose messages reserve bytes of the source's quota before they are read.
pub(super) type UpstreamSocket<S> = WebSocketStream<Frames<S>>;

/// Opens a connection to a URL. Returns it with the IP address at its other end. Messages have at most `limit` bytes.
pub(super) async fn open(
    url: &str,
    limit: usize,
    quota: SourceQuota,
) -> Result<(UpstreamSocket<MaybeTlsStream<TcpStream>>, Option<IpAddr>), tungstenite::Error> {
    let request = url.into_client_request()?;
    let mode = uri_mode(request.uri())?;
    let host = request.uri().host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let is_tls = matches!(mode, Mode::Tls);
    let usual = if is_tls { 443 } else { 80 };
    let (stream, address) = connect(host, request.uri().port_u16().unwrap_or(usual), is_tls).await?;
    let frames = Frames::new(stream, limit, quota);
    let (socket, _) = client_async_with_config(request, frames, Some(config(limit))).await?;
    Ok((socket, address))
}

/// Connects to a host. Returns the connection with the IP address at its other end.
pub(super) async fn connect(
    host: String,
    port: u16,
    is_tls: bool,
) -> io::Result<(MaybeTlsStream<TcpStream>, Option<IpAddr>)> {
    let stream = TcpStream::connect((host.as_str(), port)).await?;
    stream.set_nodelay(true)?;
    let address = stream.peer_addr().ok().map(|peer| peer.ip());
    if !is_tls {
        return Ok((MaybeTlsStream::Plain(stream), address));
    }
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let stream = TlsConnector::from(tls::config()).connect(name, stream).await?;
    Ok((MaybeTlsStream::Rustls(stream), address))
}

/// The library's limits for messages of at most `limit` bytes. The library's read buffer has the length of two of the frames that
/// [`Frames`] hands on.
pub(super) fn config(limit: usize) -> WebSocketConfig {
    let config = WebSocketConfig::default().read_buffer_size(2 * LONGEST_FRAME);
    config.max_message_size(Some(limit)).max_frame_size(Some(LONGEST_FRAME))
}
