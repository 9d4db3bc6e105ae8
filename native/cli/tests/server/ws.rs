//! WebSocket over real sockets.

use crate::common;

use std::time::{Duration, Instant};

use common::{RunningServer, config, start};
use futures::{SinkExt, StreamExt};
use rootlight_server::Origins;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

type ClientSocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;

async fn connect(server: &RunningServer) -> ClientSocket {
    connect_async(server.ws("/")).await.unwrap().0
}

/// Returns the next message that is not a ping or pong.
async fn next(socket: &mut ClientSocket) -> Option<Message> {
    loop {
        match tokio::time::timeout(Duration::from_secs(10), socket.next()).await.unwrap() {
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(message)) => return Some(message),
            _ => return None,
        }
    }
}

fn close_code(message: Option<Message>) -> u16 {
    match message {
        Some(Message::Close(Some(frame))) => frame.code.into(),
        other => panic!("no close frame but {other:?}"),
    }
}

fn refusal(error: Error) -> u16 {
    match error {
        Error::Http(response) => response.status().as_u16(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn text_and_binary_are_answered_on_both_paths() {
    let server = start(config()).await;
    for path in ["/", "/websocket"] {
        let mut socket = connect_async(server.ws(path)).await.unwrap().0;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, BODY.len());
        for message in [Message::text(BODY), Message::binary(BODY)] {
            socket.send(message).await.unwrap();
            assert_eq!(next(&mut socket).await.unwrap(), Message::text(expected.clone()));
        }
    }
    assert_eq!(refusal(connect_async(server.ws("/other")).await.unwrap_err()), 404);
}

#[tokio::test]
async fn notifications_have_no_response_and_errors_keep_the_connection_open() {
    let server = start(config()).await;
    let mut socket = connect(&server).await;
    socket.send(Message::text(r#"{"method":"notify"}"#)).await.unwrap();
    socket.send(Message::text("{")).await.unwrap();
    assert!(next(&mut socket).await.unwrap().to_text().unwrap().contains("-32700"));
    socket.send(Message::text(BODY)).await.unwrap();
    assert!(next(&mut socket).await.unwrap().to_text().unwrap().contains("result"));
}

#[tokio::test]
async fn slow_calls_do_not_delay_others() {
    let server = start(config()).await;
    let mut socket = connect(&server).await;
    socket.send(Message::text(r#"{"id":1,"method":"slow"}"#)).await.unwrap();
    socket.send(Message::text(BODY)).await.unwrap();
    assert!(next(&mut socket).await.unwrap().to_text().unwrap().ends_with(&format!("{}}}", BODY.len())));
    assert!(next(&mut socket).await.unwrap().to_text().unwrap().ends_with(":24}"));
}

#[tokio::test]
async fn frames_and_messages_have_limits() {
    let server = start(config()).await;
    let mut socket = connect(&server).await;
    let mebibyte = common::call_of(1 << 20);
    socket.send(Message::text(mebibyte.clone())).await.unwrap();
    assert!(next(&mut socket).await.unwrap().is_text());
    socket.send(Message::text(mebibyte.clone() + " ")).await.unwrap();
    assert_eq!(close_code(next(&mut socket).await), 1009);

    let mut socket = connect(&server).await;
    let string = common::call_of(5 << 20);
    for (part, bytes) in string.as_bytes().chunks(1 << 20).enumerate() {
        let opcode = if part == 0 { Data::Text } else { Data::Continue };
        let frame = Frame::message(bytes.to_vec(), OpCode::Data(opcode), part == 4);
        socket.send(Message::Frame(frame)).await.unwrap();
    }
    assert!(next(&mut socket).await.unwrap().to_text().unwrap().contains("result"), "5 MiB in 5 frames");
    for part in 0..6 {
        let opcode = if part == 0 { Data::Text } else { Data::Continue };
        let frame = Frame::message(mebibyte.clone(), OpCode::Data(opcode), part == 5);
        if socket.send(Message::Frame(frame)).await.is_err() {
            break;
        }
    }
    assert_eq!(close_code(next(&mut socket).await), 1009);
}

#[tokio::test]
async fn text_must_be_utf8() {
    let server = start(config()).await;
    let mut socket = connect(&server).await;
    let frame = Frame::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true);
    socket.send(Message::Frame(frame)).await.unwrap();
    assert_eq!(close_code(next(&mut socket).await), 1007);
}

#[tokio::test]
async fn the_server_sends_pings_and_closes_silent_connections() {
    let mut config = config();
    config.limits.ping_interval = Duration::from_millis(100);
    config.limits.websocket_silence = Duration::from_millis(400);
    let server = start(config).await;
    let mut lively = connect(&server).await;
    let silent = TcpStream::connect(server.address).await.unwrap();
    let (mut silent, _) = tokio_tungstenite::client_async(server.ws("/"), silent).await.unwrap();
    assert!(matches!(lively.next().await, Some(Ok(Message::Ping(_)))));
    // Reading answers pings, so this connection outlives the silence limit.
    let until = Instant::now() + Duration::from_millis(1000);
    while Instant::now() < until {
        let _ = tokio::time::timeout(Duration::from_millis(50), lively.next()).await;
    }
    lively.send(Message::text(BODY)).await.unwrap();
    assert!(next(&mut lively).await.unwrap().is_text());
    // The socket is read as raw bytes, because reading messages would answer the pings.
    let mut bytes = Vec::new();
    silent.get_mut().read_to_end(&mut bytes).await.unwrap();
    assert!(bytes.ends_with(b"\x88\x11\x03\xe9no sign of life"), "{bytes:x?}");
}

#[tokio::test]
async fn clients_that_do_not_read_are_disconnected() {
    let mut config = config();
    config.limits.write_timeout = Duration::from_millis(300);
    config.limits.websockets = 1;
    let server = start(config).await;
    let mut socket = connect(&server).await;
    for _ in 0..16 {
        socket.send(Message::text(r#"{"id":1,"method":"large"}"#)).await.unwrap();
    }
    // 64 MiB do not fit into socket buffers, so the server must disconnect the client, which frees the only
    // place.
    let started = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        if let Ok((mut other, _)) = connect_async(server.ws("/")).await {
            other.send(Message::text(BODY)).await.unwrap();
            assert!(next(&mut other).await.unwrap().is_text());
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(20), "still held");
    }
}

#[tokio::test]
async fn the_number_of_connections_is_limited() {
    let mut config = config();
    config.limits.websockets = 2;
    let server = start(config).await;
    let (one, _two) = (connect(&server).await, connect(&server).await);
    assert_eq!(refusal(connect_async(server.ws("/")).await.unwrap_err()), 503);
    drop(one);
    tokio::time::sleep(Duration::from_millis(200)).await;
    connect(&server).await;
}

#[tokio::test]
async fn host_and_origin_are_checked_before_the_upgrade() {
    let mut config = config();
    config.origins = Origins::parse("https://dapp.example");
    let server = start(config).await;
    let ask = |name: &'static str, value: &'static str| {
        let mut request = server.ws("/").into_client_request().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        connect_async(request)
    };
    assert_eq!(refusal(ask("host", "evil.com").await.unwrap_err()), 403);
    assert_eq!(refusal(ask("origin", "https://evil.example").await.unwrap_err()), 403);
    assert!(ask("origin", "https://dapp.example").await.is_ok());
}

#[tokio::test]
async fn the_second_port_serves_the_same() {
    let mut config = config();
    config.ws_port = Some(0);
    let server = start(config).await;
    let mut socket = connect_async(format!("ws://{}/", server.second.unwrap())).await.unwrap().0;
    socket.send(Message::text(BODY)).await.unwrap();
    assert!(next(&mut socket).await.unwrap().is_text());
}

#[tokio::test]
async fn a_close_frame_is_answered_and_a_stop_closes_with_1001() {
    let mut server = start(config()).await;
    let mut socket = connect(&server).await;
    socket.close(None).await.unwrap();
    assert!(matches!(next(&mut socket).await, Some(Message::Close(_))));
    let mut socket = connect(&server).await;
    server.stop.take().unwrap().send(()).unwrap();
    assert_eq!(close_code(next(&mut socket).await), 1001);
    tokio::time::timeout(Duration::from_secs(5), &mut server.task).await.unwrap().unwrap();
}

/// The library that sends frames keeps a buffer for the longest one until the connection ends.
#[tokio::test]
async fn a_long_answer_is_sent_in_short_frames() {
    let server = start(config()).await;
    let mut short = tokio_tungstenite::tungstenite::protocol::WebSocketConfig::default();
    (short.max_frame_size, short.max_message_size) = (Some(32 << 10), None);
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut socket, _) =
        tokio_tungstenite::client_async_with_config(server.ws("/"), stream, Some(short)).await.unwrap();
    for _ in 0..2 {
        socket.send(Message::text(r#"{"id":1,"method":"large"}"#)).await.unwrap();
        let answer = tokio::time::timeout(Duration::from_secs(10), socket.next()).await.unwrap().unwrap();
        let text = answer.unwrap().into_text().unwrap();
        assert!(
            text.len() == common::response_of((4 << 20) + 2)
                && text.bytes().filter(|byte| *byte == b'x').count() == 4 << 20
        );
    }
}
