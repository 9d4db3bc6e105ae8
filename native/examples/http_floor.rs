//! An HTTP server with a constant JSON-RPC answer, over the HTTP stack that the server uses. `cargo xtask bench rpc`
//! measures it to tell what HTTP alone costs.
//!
//! `http_floor PORT`

use std::io::{Error, Result};

use axum::Router;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    let port = std::env::args().nth(1).and_then(|text| text.parse::<u16>().ok());
    let port = port.ok_or_else(|| Error::other("usage: http_floor PORT"))?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let answer =
        || async { ([("content-type", "application/json")], r#"{"jsonrpc":"2.0","id":1,"result":"0x0"}"#) };
    let router = Router::new().fallback(answer);
    let builder = hyper::server::conn::http1::Builder::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = hyper_util::service::TowerToHyperService::new(router.clone());
        tokio::spawn(builder.serve_connection(hyper_util::rt::TokioIo::new(stream), service));
    }
}
