//! Requests of a key per second and per day.

use std::sync::Arc;
use std::time::Duration;

use futures::SinkExt;
use reqwest::header::CONTENT_TYPE;
use rootlight_server::ServerConfig;
use rootlight_server::keys::{KeyChange, KeyDatabase};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{Keyed, SeenResponse, call, dev, entry, keyed, number};
use crate::common::{client, config, start_service};

#[tokio::test]
async fn too_many_requests_per_second_are_429_with_the_time_to_wait() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange { per_second: Some(1), burst: Some(40), ..KeyChange::default() });
    let path = format!("/{key}");
    // A batch counts each of its calls, and takes nothing if it does not fit.
    let batch = |count: usize| Value::from(vec![number(); count]);
    let first = keyed.post(&path, &batch(30)).await;
    assert_eq!((first.status, first.header("x-ratelimit-limit")), (200, Some(40)));
    assert_eq!(
        (first.header("x-ratelimit-remaining"), first.header("x-ratelimit-reset")),
        (Some(10), Some(30))
    );
    let refused = keyed.post(&path, &batch(40)).await;
    let text = "Limit exceeded: too many requests per second";
    assert_eq!(refused.error(), (429, -32005, text, &Value::Null));
    let wait = refused.header("retry-after").unwrap();
    assert!((1..=30).contains(&wait), "{wait}");
    let data = json!({"limit": 40, "window": "second", "retryAfter": wait});
    assert_eq!((&refused.body["error"]["data"], refused.header("x-ratelimit-limit")), (&data, Some(40)));
    assert_eq!(keyed.post(&path, &batch(10)).await.status, 200);
    // The message fits after the time that is told.
    let mut refused = keyed.post(&path, &number()).await;
    while refused.status == 200 {
        refused = keyed.post(&path, &number()).await;
    }
    assert_eq!(refused.error(), (429, -32005, text, &json!(7)));
    assert_eq!((refused.header("retry-after"), refused.header("x-ratelimit-remaining")), (Some(1), Some(0)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
    // A change of the limit starts with its whole burst. A method that weighs more than the burst is not shut out.
    keyed.database.limit(&id, &KeyChange { burst: Some(2), ..KeyChange::default() }).unwrap();
    let heavy = call("trace_filter", json!([{}]));
    assert_eq!(keyed.post(&path, &heavy).await.status, 200);
    assert_eq!(keyed.post(&path, &heavy).await.status, 429);
}

#[tokio::test]
async fn the_requests_of_a_day_are_limited_and_counted_over_a_restart() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange { per_day: Some(3), ..KeyChange::default() });
    let path = format!("/{key}");
    let seen = keyed.post(&path, &Value::from(vec![number(); 2])).await;
    assert_eq!((seen.status, seen.header("x-ratelimit-remaining")), (200, Some(1)));
    let Keyed { mut server, database, folder } = keyed;
    server.stop.take().unwrap().send(()).unwrap();
    server.task.await.unwrap();
    database.flush().unwrap();
    drop(database);
    let database = Arc::new(KeyDatabase::open(&folder.path().join("keys.redb")).unwrap());
    let server = start_service(ServerConfig { admission: entry(&database), ..config() }, dev()).await;
    let keyed = Keyed { server, database, folder };
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
    let refused = keyed.post(&path, &number()).await;
    assert_eq!(refused.error(), (429, -32005, "Daily quota exceeded", &json!(7)));
    let wait = refused.header("retry-after").unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    assert_eq!(refused.body["error"]["data"]["window"], "day");
    assert_eq!(
        (refused.header("x-ratelimit-limit"), refused.header("x-ratelimit-remaining")),
        (Some(3), Some(0))
    );
    let usage = keyed.database.list().into_iter().find(|(record, _)| record.id == id).unwrap().1;
    assert_eq!((usage.requests, usage.refused, usage.classes["eth"]), (3, 1, 3));
}

#[tokio::test]
async fn concurrent_requests_pass_exactly_as_often_as_allowed() {
    let keyed = Arc::new(keyed().await);
    let (key, id) = keyed.key(KeyChange { per_day: Some(50), ..KeyChange::default() });
    let ask = |_| {
        let (keyed, path) = (keyed.clone(), format!("/{key}"));
        async move { keyed.post(&path, &number()).await.status }
    };
    let statuses = futures::future::join_all((0..120).map(ask)).await;
    let passed = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!((passed, statuses.iter().filter(|status| **status == 429).count()), (50, 70));
    let usage = keyed.database.list().into_iter().find(|(record, _)| record.id == id).unwrap().1;
    assert_eq!((usage.requests, usage.refused), (50, 70));
}

#[tokio::test]
async fn each_message_of_a_websocket_counts() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange { per_day: Some(2), ..KeyChange::default() });
    let mut socket = keyed.socket(&format!("/{key}")).await;
    for _ in 0..2 {
        assert_eq!(socket.ask(&number()).await["result"], "0x0");
    }
    let refused = socket.ask(&number()).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32005)));
    assert_eq!(refused["error"]["data"]["window"], "day");
    // A client that never stops is closed.
    for _ in 0..1_100 {
        if socket.0.send(Message::text(number().to_string())).await.is_err() {
            break;
        }
    }
    let code = loop {
        match socket.next().await {
            Message::Close(Some(frame)) => break u16::from(frame.code),
            Message::Text(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, 1008);
}

#[tokio::test]
async fn messages_that_are_not_json_rpc_count_and_get_the_usual_error() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange { per_day: Some(2), ..KeyChange::default() });
    let url = keyed.server.url(&format!("/{key}"));
    let post = |body: &'static str| {
        let request = client().post(&url).header(CONTENT_TYPE, "application/json").body(body);
        async move { SeenResponse::new(request.send().await.unwrap()).await }
    };
    assert_eq!(post("{").await.error(), (400, -32700, "JSON parse error", &Value::Null));
    assert_eq!(post("5").await.status, 400);
    assert_eq!(post("{").await.status, 429);
}
