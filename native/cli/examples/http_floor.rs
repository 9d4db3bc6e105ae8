//! An HTTP server with a constant JSON-RPC answer, over the HTTP stack that the server uses. `cargo xtask bench rpc`
//! measures it to tell what HTTP alone costs.
//!
//! `http_floor PORT`

use std::convert::Infallible;
use std::io::{Error, Result};

use axum::body::Body;
use axum::http::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    let port = std::env::args().nth(1).and_then(|text| text.parse::<u16>().ok());
    let port = port.ok_or_else(|| Error::other("usage: http_floor PORT"))?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let builder = hyper::server::conn::http1::Builder::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(builder.serve_connection(TokioIo::new(stream), service_fn(answer)));
    }
}

async fn answer(_: hyper::Request<Incoming>) -> std::result::Result<Response<Body>, Infallible> {
    let mut response = Response::new(Body::from(r#"{"jsonrpc":"2.0","id":1,"result":"0x0"}"#));
    let json = axum::http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(axum::http::header::CONTENT_TYPE, json);
    Ok(response)
}
