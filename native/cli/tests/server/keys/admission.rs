//! Which requests a key lets in: paths, wrong and ended keys, anonymous clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use rootlight_server::keys::{KeyChange, KeyDatabase, KeyLookup, KeyRecord, Unavailable};
use rootlight_server::methods::Profile;
use rootlight_server::{AdmissionRules, KeyAccess, ServerConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Keyed, call, dev, keyed, keyed_with, number};
use crate::common::{client, config, start_service};

/// Keys whose place can be out of reach.
struct Away {
    database: Arc<KeyDatabase>,
    away: AtomicBool,
}

impl KeyLookup for Away {
    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Arc<KeyRecord>>, Unavailable>> {
        if self.away.load(Ordering::Relaxed) {
            return Box::pin(std::future::ready(Err(Unavailable)));
        }
        self.database.find(id)
    }
}

#[tokio::test]
async fn a_key_in_the_path_opens_http_and_websocket() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange::default());
    for path in [format!("/{key}"), format!("/{key}/"), format!("/websocket/{key}")] {
        let seen = keyed.post(&path, &number()).await;
        assert_eq!((seen.status, &seen.body["result"]), (200, &json!("0x0")), "{path}");
        assert!(seen.headers.get("x-ratelimit-limit").is_none(), "the key has no limits");
        let mut socket = keyed.socket(&path).await;
        assert_eq!(socket.ask(&number()).await["result"], "0x0", "{path}");
    }
}

#[tokio::test]
async fn keys_that_cannot_be_asked_for_are_503_and_open_sockets_stay() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(KeyDatabase::open(&folder.path().join("keys.redb")).unwrap());
    let keys = Arc::new(Away { database: database.clone(), away: AtomicBool::new(false) });
    let access = KeyAccess { keys: keys.clone(), ..KeyAccess::embedded(&database) };
    let admission = AdmissionRules { keys: Some(access), ..AdmissionRules::default() };
    let server = start_service(ServerConfig { admission, ..config() }, dev()).await;
    let keyed = Keyed { server, database, folder };
    let path = format!("/{}", keyed.key(KeyChange::default()).0);
    let mut socket = keyed.socket(&path).await;
    assert_eq!(socket.ask(&number()).await["result"], "0x0");
    keys.away.store(true, Ordering::Relaxed);
    let text = "Service unavailable: API keys cannot be checked at the moment";
    let seen = keyed.post(&path, &number()).await;
    assert_eq!((seen.status, seen.header("retry-after")), (503, Some(1)));
    assert_eq!((&seen.body["error"]["code"], &seen.body["error"]["message"]), (&json!(-32603), &json!(text)));
    assert_eq!(keyed.upgrade_status(&path, None).await, 503);
    // Longer than the interval at which open sockets' keys are looked at.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(socket.ask(&number()).await["error"]["message"], text);
    keys.away.store(false, Ordering::Relaxed);
    assert_eq!(socket.ask(&number()).await["result"], "0x0");
}

#[tokio::test]
async fn without_a_valid_key_the_answer_is_401_with_the_id_of_the_call() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange::default());
    let (secret, other) = (&key[9..], keyed.key(KeyChange::default()).0);
    for path in ["", "/", "/websocket", "/?key=x", &format!("/?{key}")] {
        let seen = keyed.post(path, &number()).await;
        assert_eq!(seen.error(), (401, -32016, "Unauthorized: missing API key", &json!(7)), "{path}");
        assert_eq!(seen.headers["www-authenticate"], "ApiKey");
    }
    for path in [
        format!("/{id}"),
        format!("/{secret}"),
        format!("/{id}.{}", &other[9..]),
        format!("/aaaaaaaa.{secret}"),
        format!("/{}", key.to_uppercase()),
        format!("/{key}A"),
        format!("/{}", key.replace('.', "%2E")),
        format!("/%00{key}"),
        format!("/{}", "k".repeat(8_000)),
    ] {
        let seen = keyed.post(&path, &number()).await;
        assert_eq!(seen.error(), (401, -32016, "Unauthorized: invalid API key", &json!(7)), "{path}");
    }
    for path in ["/", "/websocket", "/wrong", &format!("/{id}")] {
        assert_eq!(keyed.upgrade_status(path, None).await, 401, "{path}");
    }
    // A key elsewhere than in the path does not count.
    let request = client().post(keyed.server.url("/")).header(CONTENT_TYPE, "application/json");
    let request = request.header("authorization", format!("Bearer {key}")).header("x-api-key", &key);
    assert_eq!(request.body(number().to_string()).send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn names_of_own_paths_and_further_segments_are_404() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange::default());
    for path in [
        "/livez".to_owned(),
        "/readyz".into(),
        "/health".into(),
        "/metrics".into(),
        "/admin".into(),
        "/assets".into(),
        "/websocket/health".into(),
        "/websocket/websocket".into(),
        format!("/{key}/more"),
        format!("/v1/{key}"),
        format!("//{key}"),
        format!("/{key}//"),
    ] {
        let seen = keyed.post(&path, &number()).await;
        assert_eq!((seen.status, &seen.body["error"]["code"]), (404, &json!(-32600)), "{path}");
        let text = seen.body["error"]["message"].as_str().unwrap();
        assert_eq!(text, "no service at this path: send JSON-RPC by POST to /API_KEY", "{path}");
    }
    let health = client().get(keyed.server.url("/health")).send().await.unwrap();
    assert_eq!(health.status(), 200, "probes need no key");
    let wrong = client().get(keyed.server.url(&format!("/{key}"))).send().await.unwrap();
    assert_eq!(wrong.status(), 405);
    let preflight = client().request(Method::OPTIONS, keyed.server.url("/any")).send().await.unwrap();
    assert_eq!(preflight.status(), 204, "browsers ask before they send a request with a key");
}

#[tokio::test]
async fn the_body_of_a_request_without_a_key_is_not_waited_for() {
    let keyed = keyed().await;
    for length in [10_000_000, 100] {
        let mut stream = TcpStream::connect(keyed.server.address).await.unwrap();
        let head = format!(
            "POST /wrong HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        read.expect("an answer in time").unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.starts_with("HTTP/1.1 401") && text.contains("connection: close"), "{text}");
        assert!(text.ends_with('}') && text.contains(r#""id":null"#), "{text}");
    }
}

#[tokio::test]
async fn invalid_bytes_in_a_path_are_refused_and_affect_no_other_request() {
    let keyed = keyed().await;
    let (key, _) = keyed.key(KeyChange::default());
    for path in [
        b"/%".to_vec(),
        b"/%ff%fe".to_vec(),
        b"/\x00".to_vec(),
        b"/\xff\xfe".to_vec(),
        b"/a\x7fb".to_vec(),
        b"/../etc/passwd".to_vec(),
        b"*".to_vec(),
        [b"/".to_vec(), vec![b'a'; 60_000]].concat(),
    ] {
        let mut stream = TcpStream::connect(keyed.server.address).await.unwrap();
        let head = [&b"POST "[..], &path, b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"].concat();
        let _ = stream.write_all(&head).await;
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await.unwrap();
        let text = String::from_utf8_lossy(&answer).into_owned();
        let refused = ["400", "401", "404", "414", "431"]
            .iter()
            .any(|status| text.starts_with(&format!("HTTP/1.1 {status}")));
        assert!(refused || text.is_empty(), "{:?}: {text}", &path[..path.len().min(20)]);
    }
    assert_eq!(keyed.post(&format!("/{key}"), &number()).await.status, 200);
}

#[tokio::test]
async fn revoked_and_ended_keys_are_401_at_once() {
    let keyed = keyed().await;
    let (key, id) = keyed.key(KeyChange::default());
    let path = format!("/{key}");
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
    keyed.database.limit(&id, &KeyChange { expires: Some(1), ..KeyChange::default() }).unwrap();
    let ended = keyed.post(&path, &number()).await;
    assert_eq!(ended.error(), (401, -32016, "Unauthorized: the API key has expired", &json!(7)));
    assert_eq!(keyed.upgrade_status(&path, None).await, 401);
    keyed.database.limit(&id, &KeyChange { expires: Some(0), ..KeyChange::default() }).unwrap();
    assert_eq!(keyed.post(&path, &number()).await.status, 200);
    keyed.database.revoke(&id).unwrap();
    let revoked = keyed.post(&path, &number()).await;
    assert_eq!(revoked.error(), (401, -32016, "Unauthorized: invalid API key", &json!(7)));
    assert_eq!(keyed.upgrade_status(&path, None).await, 401);
}

#[tokio::test]
async fn a_base_path_and_the_hosted_profile_hold_with_and_without_keys() {
    let hosted = |config: &mut ServerConfig| {
        config.admission.base_path = "/v1".into();
        config.admission.profile = Profile::Hosted;
    };
    let keyed = keyed_with(hosted).await;
    let (key, _) = keyed.key(KeyChange::default());
    let path = format!("/v1/{key}");
    assert_eq!(keyed.post(&path, &call("eth_accounts", json!([]))).await.body["result"], json!([]));
    let mut socket = keyed.socket(&path).await;
    for answer in [
        keyed.post(&path, &call("evm_mine", json!([]))).await.body,
        socket.ask(&call("evm_mine", json!([]))).await,
    ] {
        let text = "the method evm_mine does not exist/is not available";
        assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32601), &json!(text)));
    }
    assert!(socket.ask(&call("eth_subscribe", json!(["newHeads"]))).await["result"].is_string());
    assert_eq!(keyed.post(&format!("/{key}"), &number()).await.status, 404);
    assert_eq!(keyed.post("/v1", &number()).await.status, 401);
    for path in ["/health", "/v1/health"] {
        assert_eq!(client().get(keyed.server.url(path)).send().await.unwrap().status(), 200, "{path}");
    }
    let open = keyed_with(|config| {
        hosted(config);
        config.admission.keys = None;
    });
    let open = open.await;
    for (path, status) in [("/v1", 200), ("/v1/", 200), ("/v1/any", 200), ("/", 404), ("/v12", 404)] {
        assert_eq!(open.post(path, &number()).await.status, status, "{path}");
    }
    assert_eq!(open.upgrade_status("/v1/websocket", None).await, 101);
    assert_eq!(open.upgrade_status("/v1/other", None).await, 404);
}

#[tokio::test]
async fn anonymous_clients_of_this_machine_are_served_if_the_operator_says_so() {
    let anonymous = |config: &mut ServerConfig| {
        if let Some(access) = &mut config.admission.keys {
            access.anonymous = true;
        }
    };
    let keyed = keyed_with(anonymous).await;
    let (key, id) = keyed.key(KeyChange::default());
    assert_eq!(keyed.post("/", &number()).await.status, 200);
    assert_eq!(keyed.post(&format!("/{key}"), &number()).await.status, 200);
    assert_eq!(keyed.post(&format!("/{id}"), &number()).await.status, 401, "a wrong key is not no key");
    assert_eq!(keyed.upgrade_status("/", None).await, 101);
}

/// Wrong keys take no memory and no database, and slow other clients down little.
#[tokio::test]
async fn a_flood_of_wrong_keys_leaves_the_service_usable() {
    let keyed = Arc::new(keyed().await);
    let (key, id) = keyed.key(KeyChange { per_day: Some(1_000), ..KeyChange::default() });
    let flood = |number: usize| {
        let keyed = keyed.clone();
        async move {
            for round in 0..50 {
                let secret = format!("{number}{round:03}{}", "A".repeat(39));
                let path = format!("/aaaaaaaa.{secret}");
                assert_eq!(keyed.post(&path, &call("eth_call", json!([]))).await.status, 401);
            }
        }
    };
    let floods = futures::future::join_all((0..8).map(flood));
    let used = async {
        for _ in 0..20 {
            assert_eq!(keyed.post(&format!("/{key}"), &number()).await.status, 200);
        }
    };
    tokio::join!(floods, used);
    let listed = keyed.database.list();
    assert_eq!((listed.len(), listed[0].1.requests, &listed[0].0.id), (1, 20, &id));
}
