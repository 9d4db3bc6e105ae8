//! Pages of other origins share the memory of their caller's address, and leave half of it to its programs.

use super::*;

use std::net::IpAddr;

use reqwest::header::{HeaderValue, ORIGIN};
use rootlight_limits::caller_id::CallerId;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

/// Bytes of the answer budget that the pages of one caller get.
const PART: usize = 18 << 20;

const PAGE: HeaderValue = HeaderValue::from_static("https://evil.example");

/// WebSockets of pages that do not read what they asked for.
#[tokio::test]
async fn answers_that_pages_do_not_receive_leave_room_to_the_programs_of_their_address() {
    let server = careless(Duration::from_secs(3)).await;
    let mut unread = Vec::new();
    for page in 0..16 {
        let stream = connect(server.address, "127.0.0.1").await;
        let mut request = server.ws("/").into_client_request().unwrap();
        let origin = HeaderValue::try_from(format!("https://{page}.evil.example")).unwrap();
        request.headers_mut().insert(ORIGIN, origin);
        let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        for _ in 0..4 {
            socket.send(Message::text(super::of(1 << 20))).await.unwrap();
        }
        unread.push(socket);
    }
    // The write limit ends the connections, with or without the limit of pages: none of the answers is missed here.
    let (mut most, mut filled) = (0, false);
    let ended = async {
        while !filled || server.limits.answers().taken() > 0 {
            most = most.max(server.limits.answers().taken());
            filled |= most > PART - (3 << 20);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("unsent answers are counted");
    assert!(most <= PART, "{most}");
}

#[tokio::test]
async fn a_body_of_a_page_waits_for_the_part_of_pages_alone() {
    let mut brief = config();
    brief.limits.body_timeout = Duration::from_millis(500);
    let server = start(brief).await;
    let from = IpAddr::from([127, 0, 0, 3]);
    let client = reqwest::Client::builder().local_address(from).build().unwrap();
    let ask = |origin: Option<HeaderValue>| {
        let body = super::common::call_of(1 << 20);
        let request = client.post(server.url("/")).header(CONTENT_TYPE, "application/json").body(body);
        match origin {
            Some(origin) => request.header(ORIGIN, origin).send(),
            None => request.send(),
        }
    };
    let pages = CallerId { page: 7, ..CallerId::new(from) }.quota_owner();
    let spent = server.limits.requests().take_within(pages, 8 << 20, Duration::from_secs(1)).await.unwrap();
    assert_eq!(ask(Some(PAGE)).await.unwrap().status(), 503);
    assert_eq!(ask(None).await.unwrap().status(), 200, "programs have their own half");
    drop(spent);
    assert_eq!(ask(Some(PAGE)).await.unwrap().status(), 200);
}
