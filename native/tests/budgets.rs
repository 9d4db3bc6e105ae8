//! Tests of used-up budgets of the process. Each test uses up a different budget. This file is a program of
//! its own, so that other tests are not affected.

mod common;

use std::time::{Duration, Instant};

use common::{client, config, start};
use reqwest::header::CONTENT_TYPE;
use rootlight::light::UpstreamRequest;
use rootlight_native::budget;
use rootlight_native::upstream::{HttpConfig, HttpUpstream, Upstream, UpstreamError};

#[tokio::test]
async fn upstream_responses_count_against_the_budget_until_they_are_dropped() {
    let server = start(config()).await;
    let upstream = HttpUpstream::new(&server.url("/"), HttpConfig::default()).unwrap();
    let call = || vec![UpstreamRequest::new("slow", "[]".into())];
    let all = budget::upstreams().all();
    let (answers, held) = upstream.request_held(call()).await;
    assert!(answers[0].is_ok());
    let bytes = held.bytes();
    assert!(bytes > 0 && budget::upstreams().try_take(all).is_none(), "{bytes}");
    drop(held);
    let spent = budget::upstreams().try_take(all).expect("all is free again");
    let started = Instant::now();
    assert_eq!(upstream.request(call()).await[0].as_ref().unwrap_err(), &UpstreamError::NoRoom);
    assert!(started.elapsed() >= Duration::from_secs(5), "the request waits for room first");
    // A waiting request gets the bytes as soon as they are free.
    let waiting = upstream.request(call());
    tokio::pin!(waiting);
    assert!(tokio::time::timeout(Duration::from_secs(2), waiting.as_mut()).await.is_err());
    drop(spent);
    assert!(waiting.await[0].is_ok());
}

#[tokio::test]
async fn a_long_body_waits_for_room_and_then_gets_503() {
    let mut brief = config();
    brief.limits.body_timeout = Duration::from_millis(500);
    let server = start(brief).await;
    let ask = |bytes: usize| {
        let body = format!("\"{}\"", "x".repeat(bytes));
        client().post(server.url("/")).header(CONTENT_TYPE, "application/json").body(body).send()
    };
    // One address gets half of the budget, and all requests of this test come from one address.
    let asker = rootlight_native::service::Peer::new(server.address.ip()).asker();
    let spent = budget::requests().take_within(asker, 16 << 20, Duration::from_secs(1)).await.unwrap();
    let refused = ask(1 << 20).await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.text().await.unwrap().contains("-32005"));
    assert_eq!(ask(1_000).await.unwrap().status(), 200, "short bodies need no room");
    drop(spent);
    assert_eq!(ask(1 << 20).await.unwrap().status(), 200);
}

#[tokio::test]
async fn answers_wait_while_others_are_unsent_and_then_fail() {
    let all = budget::answers().all();
    assert_eq!(budget::hold_answer(7, 1_000).await.unwrap().bytes(), 0, "short answers are not counted");
    let spent = budget::answers().try_take(all).unwrap();
    let started = Instant::now();
    assert!(budget::hold_answer(7, 1 << 20).await.is_none());
    assert!(started.elapsed() >= Duration::from_secs(4) && !budget::answers().is_contended());
    drop(spent);
    assert_eq!(budget::hold_answer(7, 1 << 20).await.unwrap().bytes(), 1 << 20);
}
