//! The admin page: who is answered, keys, usage and health.

use std::collections::BTreeSet;
use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use reqwest::{RequestBuilder, Response};
use rootlight::dev::Mining;
use rootlight_cluster::keys::{ClusterKeys, LookupOutcome, MAX_PAGE};
use rootlight_cluster::serve::{AdminPage, AdminParts, AdminToken};
use rootlight_index::testkit::PostgresServer;
use rootlight_node::local::LocalOptions;
use rootlight_server::{AdmissionRules, ServerConfig};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::common::{self, RunningServer};
use crate::servers::{Servers, cluster, wait_until};
use crate::setup::Service;

const TOKEN: &str = "a-token-of-the-tests-0123456789-xyz";
/// A name that becomes markup if it is written as such.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&\u{202e}</script>";

/// Two front ends, and the admin page of the first.
struct AdminFixture {
    service: Service,
    front_ends: Vec<RunningServer>,
    url: String,
    client: reqwest::Client,
    task: JoinHandle<()>,
}

impl Drop for AdminFixture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AdminFixture {
    async fn start(servers: &Servers, prefix: &str) -> Option<Self> {
        let service = Service::start(servers, prefix, 2).await?;
        Some(Self::of(service, servers, prefix).await)
    }

    async fn of(service: Service, servers: &Servers, prefix: &str) -> Self {
        let chain = common::dev_chain(Mining::Instant, LocalOptions::default());
        let mut front_ends = Vec::new();
        for access in &service.front_ends {
            let admission = AdmissionRules { keys: Some(access.access()), ..AdmissionRules::default() };
            let config = ServerConfig { admission, ..common::config() };
            front_ends.push(common::start_service(config, chain.clone()).await);
        }
        let store = servers.connect(prefix).await;
        let keys = ClusterKeys::open(service.database.clone(), Some(store.clone())).await.unwrap();
        let access = service.front_ends[0].clone();
        let token = AdminToken::new(TOKEN).unwrap();
        let parts = AdminParts { service: chain, keys, store, access, token };
        let page = AdminPage::bind(0, parts).await.unwrap();
        let url = format!("http://{}", page.address().unwrap());
        let task = tokio::spawn(page.serve());
        Self { service, front_ends, url, client: common::client(), task }
    }

    /// A request as the page sends it.
    fn request(&self, path: &str, body: &Value) -> RequestBuilder {
        let post = self.client.post(format!("{}{path}", self.url)).header(CONTENT_TYPE, "application/json");
        post.header(AUTHORIZATION, format!("Bearer {TOKEN}")).body(body.to_string())
    }

    async fn ask(&self, path: &str, body: Value) -> (u16, Value) {
        answer(self.request(path, &body).send().await.unwrap()).await
    }

    async fn done(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(path, body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The status of a message with a key to a front end.
    async fn call(&self, front_end: usize, key: &str, method: &str) -> u16 {
        let url = format!("{}{key}", self.front_ends[front_end].url("/"));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": []});
        let post = self.client.post(url).header(CONTENT_TYPE, "application/json").body(message.to_string());
        post.send().await.unwrap().status().as_u16()
    }
}

/// The status and the JSON of an answer, whose headers are checked.
async fn answer(response: Response) -> (u16, Value) {
    assert_careful(response.headers());
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
    (response.status().as_u16(), serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// Every answer has these headers.
fn assert_careful(headers: &HeaderMap) {
    let policy = headers["content-security-policy"].to_str().unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(part), "{part}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    assert_eq!(
        (&headers["cache-control"], &headers["x-content-type-options"]),
        (&"no-store".parse().unwrap(), &"nosniff".parse().unwrap())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_operator_is_answered() {
    let Some(servers) = cluster() else { return };
    let Some(fixture) = AdminFixture::start(&servers, "admin-guard").await else { return };
    let url = |path: &str| format!("{}{path}", fixture.url);
    let path = "/api/overview";
    assert_eq!(fixture.ask(path, json!({})).await.0, 200);
    let own = |request: RequestBuilder| async move { answer(request.send().await.unwrap()).await.0 };
    let full = || fixture.request(path, &json!({}));
    let bare = || fixture.client.post(url(path)).header(CONTENT_TYPE, "application/json").body("{}");
    assert_eq!(own(bare()).await, 401, "no token");
    for header in [format!("Basic {TOKEN}"), TOKEN.to_owned(), format!("Bearer{TOKEN}"), "Bearer".into()] {
        assert_eq!(own(bare().header(AUTHORIZATION, &header)).await, 401, "{header}");
    }
    assert_eq!(own(bare().header("cookie", format!("token={TOKEN}"))).await, 401);
    for header in [format!("Bearer {TOKEN}x"), format!("Bearer {}", &TOKEN[1..]), "Bearer  ".into()] {
        assert_eq!(own(bare().header(AUTHORIZATION, &header)).await, 401, "{header}");
    }
    let twice = full().header(AUTHORIZATION, format!("Bearer {TOKEN}"));
    assert_eq!(own(twice).await, 401, "two tokens");
    // In an address, where logs and histories keep it, the token is worth nothing.
    let place = |address: String| fixture.client.post(url(&address)).header(CONTENT_TYPE, "application/json");
    assert_eq!(own(place(format!("{path}?token={TOKEN}")).body("{}")).await, 400);
    assert_eq!(own(place(format!("{path}?{TOKEN}")).body("{}")).await, 400);
    assert_eq!(own(place(format!("/{TOKEN}{path}")).body("{}")).await, 404);
    assert_eq!(own(fixture.request(&format!("{path}?x=1"), &json!({}))).await, 400, "no parameters at all");

    for origin in ["http://evil.example", "null", "http://127.0.0.1:1", "http://localhost"] {
        assert_eq!(own(full().header(ORIGIN, origin)).await, 403, "{origin}");
    }
    assert_eq!(own(full().header(ORIGIN, &fixture.url)).await, 200, "the page itself");
    for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1"] {
        assert_eq!(own(full().header(HOST, host)).await, 403, "{host}");
        assert_eq!(own(fixture.client.get(url("/")).header(HOST, host)).await, 403, "{host}");
    }
    let preflight = fixture.client.request(reqwest::Method::OPTIONS, url(path)).send().await.unwrap();
    assert!(preflight.headers().keys().all(|name| !name.as_str().starts_with("access-control")));
    assert!(!preflight.status().is_success());

    let plain = fixture.client.post(url(path)).header(AUTHORIZATION, format!("Bearer {TOKEN}")).body("{}");
    assert_eq!(own(plain).await, 415, "what a form of another page could send");
    for body in [json!({"x": 1}), json!([1]), json!("x")] {
        assert_eq!(own(fixture.request(path, &body)).await, 400, "{body}");
    }
    let long = fixture.request("/api/keys/create", &json!({"change": {"name": "x".repeat(2_000_000)}}));
    let long = long.send().await;
    assert!(long.is_err() || long.unwrap().status() == 413);
    let page = fixture.client.get(url("/")).send().await.unwrap();
    assert_eq!(page.status(), 200);
    assert_careful(page.headers());
    assert!(!page.text().await.unwrap().contains(TOKEN));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_wrong_tokens_are_not_looked_at() {
    let Some(servers) = cluster() else { return };
    let Some(fixture) = AdminFixture::start(&servers, "admin-attempts").await else { return };
    let guess = async |token: &str| {
        let request = fixture.client.post(format!("{}/api/overview", fixture.url));
        let request = request.header(CONTENT_TYPE, "application/json").body("{}");
        let response = request.header(AUTHORIZATION, format!("Bearer {token}")).send().await.unwrap();
        let retry = response.headers().get("retry-after").is_some();
        (response.status().as_u16(), retry)
    };
    let mut wrong = 0;
    loop {
        match guess("wrong").await {
            (401, false) => wrong += 1,
            (429, true) => break,
            other => panic!("{other:?}"),
        }
        // Ten at once, and one more in each second that the requests take.
        assert!(wrong < 1_000);
    }
    assert!(wrong >= 10, "{wrong}");
    wait_until("the right token counts again", || async { guess(TOKEN).await.0 == 200 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_made_here_work_at_once_and_revoked_ones_stop() {
    let Some(servers) = cluster() else { return };
    let Some(fixture) = AdminFixture::start(&servers, "admin-keys").await else { return };
    let change = json!({"name": HOSTILE, "perSecond": 1_000, "methods": "eth_chainId"});
    let made = fixture.done("/api/keys/create", json!({"change": change})).await;
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    for front_end in 0..2 {
        assert_eq!(fixture.call(front_end, key, "eth_chainId").await, 200);
        assert_eq!(fixture.call(front_end, key, "eth_blockNumber").await, 403);
    }
    let raw = fixture.request("/api/keys/list", &json!({})).send().await.unwrap().text().await.unwrap();
    assert!(!raw.contains(&key[9..]), "the secret is not shown again");
    let listed: Value = serde_json::from_str(&raw).unwrap();
    assert_eq!((&listed["keys"][0]["name"], listed["keys"].as_array().unwrap().len()), (&json!(HOSTILE), 1));
    assert!(listed["keys"][0].get("hash").is_none());

    let changed = fixture.done("/api/keys/limit", json!({"id": id, "change": {"methods": ""}})).await;
    assert_eq!((&changed["rules"]["methods"], &changed["rules"]["perSecond"]), (&json!([]), &json!(1_000)));
    for front_end in 0..2 {
        wait_until("the change", || async { fixture.call(front_end, key, "eth_blockNumber").await == 200 })
            .await;
    }
    for (body, status) in [
        (json!({"id": id, "change": {"perSecond": 2_000_000}}), 400),
        (json!({"id": id, "change": {"name": "a\nb"}}), 400),
        (json!({"id": id, "change": {"perSecond": -1}}), 400),
        (json!({"id": "aaaaaaaa", "change": {}}), 404),
        (json!({"id": key, "change": {}}), 404),
    ] {
        let (found, answer) = fixture.ask("/api/keys/limit", body.clone()).await;
        assert_eq!(found, status, "{body}: {answer}");
        assert!(!answer.to_string().contains(&key[9..]), "a whole key is not repeated");
    }

    let revoked = fixture.done("/api/keys/revoke", json!({"id": id})).await;
    assert!(revoked["revoked"].is_u64());
    for front_end in 0..2 {
        wait_until("the revocation", || async { fixture.call(front_end, key, "eth_chainId").await == 401 })
            .await;
    }
    assert_eq!(fixture.ask("/api/keys/limit", json!({"id": id, "change": {}})).await.0, 409);
    used(&fixture, id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_does_not_exist_and_a_list_for_an_object_are_refused_and_change_nothing() {
    let Some(servers) = cluster() else { return };
    let Some(fixture) = AdminFixture::start(&servers, "admin-members").await else { return };
    let made = fixture.done("/api/keys/create", json!({"change": {"name": "shop", "perSecond": 5}})).await;
    let id = made["id"].as_str().unwrap();
    let changes = [
        json!({"per_second": 5}),
        json!({"perSecond": 5, "perday": 1}),
        json!({"methodes": "eth_call"}),
        json!({"name": "x", "rules": {}}),
        json!({"": 1}),
        json!(["x", 1]),
        json!([]),
        json!(null),
        json!("perSecond"),
        json!({("x".repeat(100_000)): 1}),
    ];
    for change in changes {
        for (path, body) in [
            ("/api/keys/create", json!({"change": change})),
            ("/api/keys/limit", json!({"id": id, "change": change})),
        ] {
            let (status, answer) = fixture.ask(path, body).await;
            assert_eq!(status, 400, "{path}: {answer}");
            assert!(answer.to_string().len() < 1_000, "what came is not repeated at length");
        }
    }
    for (path, body) in [
        ("/api/keys/create", json!([{"perSecond": 5}])),
        ("/api/keys/create", json!({"change": {}, "dryRun": true})),
        ("/api/keys/limit", json!([id, {}])),
        ("/api/keys/revoke", json!([id])),
        ("/api/keys/revoke", json!({"id": id, "at": 1})),
        ("/api/keys/list", json!(["", null, 5])),
        ("/api/keys/list", json!({"limit": 5})),
        ("/api/usage", json!([id, 3])),
        ("/api/usage", json!({"key": id})),
        ("/api/overview", json!([])),
        ("/api/overview", json!({"x": 1})),
    ] {
        assert_eq!(fixture.ask(path, body.clone()).await.0, 400, "{path} {body}");
    }
    let twice = fixture.request("/api/keys/limit", &json!({}));
    let twice = twice.body(format!(r#"{{"id":"{id}","change":{{"perSecond":7,"perSecond":9}}}}"#));
    assert_eq!(twice.send().await.unwrap().status(), 400, "a member twice");
    let listed = fixture.done("/api/keys/list", json!({})).await;
    assert_eq!(listed["keys"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(
        (&listed["keys"][0]["name"], &listed["keys"][0]["rules"]["perSecond"]),
        (&json!("shop"), &json!(5))
    );
    assert_eq!(listed["keys"][0]["revoked"], Value::Null);
}

/// Look-ups are counted instead of time, which depends on the machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_is_refused_after_the_same_look_ups_as_an_unknown_id() {
    let Some(servers) = cluster() else { return };
    let Some(fixture) = AdminFixture::start(&servers, "admin-secrets").await else { return };
    let made = fixture.done("/api/keys/create", json!({"change": {}})).await;
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let secret = |text: &str| format!("{text}.{}", "A".repeat(43));
    let metrics = fixture.service.front_ends[0].metrics();
    let asked = || metrics.lookups(LookupOutcome::Database) + metrics.lookups(LookupOutcome::Absent);
    // The front end remembers the key.
    assert_eq!(fixture.call(0, key, "eth_chainId").await, 200);
    for (text, refused) in [(id, true), ("aaaaaaaa", true), (id, false), ("aaaaaaaa", false)] {
        let before = asked();
        assert_eq!(fixture.call(0, &secret(text), "eth_chainId").await, 401);
        // A key that was refused a moment ago may be remembered, on a machine that is not too busy.
        let looked_up = asked() - before;
        assert!(looked_up == 1 || (!refused && looked_up == 0), "{text}: {looked_up} look-ups");
    }
    assert_eq!(fixture.call(0, key, "eth_chainId").await, 200, "the owner is not disturbed");
}

/// The usage of the only key is that of the service.
async fn used(fixture: &AdminFixture, id: &str) {
    for access in &fixture.service.front_ends {
        access.flush().await.unwrap();
    }
    let of_key = fixture.done("/api/usage", json!({"id": id, "days": 7})).await;
    let all = fixture.done("/api/usage", json!({"days": u32::MAX})).await;
    assert_eq!(of_key["days"], all["days"]);
    let requests = all["days"][0]["requests"].as_u64().unwrap();
    // Two calls of eth_chainId, and two of eth_blockNumber at least.
    assert!(requests >= 4, "{all}");
    assert_eq!(all["classes"], json!({"eth": requests}));
    assert_eq!(fixture.done("/api/usage", json!({"id": "aaaaaaaa"})).await["days"], json!([]));
    let overview = fixture.done("/api/overview", json!({})).await;
    let methods = overview["methods"].as_array().unwrap();
    let called = methods.iter().find(|each| each["method"] == "eth_chainId").unwrap();
    assert!(called["answered"].as_u64().unwrap() >= 2, "{called}");
    assert_eq!(overview["database"]["report"]["keys"], 1);
    let front_ends = overview["database"]["report"]["frontEnds"].as_array().unwrap();
    assert!(!front_ends.is_empty(), "the front ends that wrote usage");
    assert!(overview["lookups"]["memory"].as_u64().unwrap() > 0);
}

/// All ids of a search, page by page.
async fn search(fixture: &AdminFixture, text: &str, most: u64) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), Value::Null);
    loop {
        let page =
            fixture.done("/api/keys/list", json!({"search": text, "after": after, "most": most})).await;
        let keys = page["keys"].as_array().unwrap();
        assert!(keys.len() as u64 <= most.min(MAX_PAGE.into()));
        ids.extend(keys.iter().map(|key| key["id"].as_str().unwrap().to_owned()));
        after = page["next"].clone();
        if after.is_null() {
            return ids;
        }
        assert!(!keys.is_empty(), "a page that is followed by another has keys");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_listed_and_searched_in_pages() {
    let Some(servers) = cluster() else { return };
    let Some(fixture) = AdminFixture::start(&servers, "admin-list").await else { return };
    let client = fixture.service.database.connect().await.unwrap();
    // Ids such as wwwwwwwx; names such as "Key 12", "SHOP 12" and "w 12".
    let insert = "INSERT INTO service.keys (id, name, hash, created, rules) \
        SELECT translate(lpad(to_hex(n), 8, '0'), '0189', 'wxyz'), \
        (ARRAY['Key ', 'SHOP ', 'w '])[1 + n % 3] || n, sha256(n::text::bytea), 1, '{}' \
        FROM generate_series(1, 3000) n";
    client.batch_execute(insert).await.unwrap();
    let ids = |query: &'static str| {
        let client = &client;
        async move {
            let rows =
                client.query(&format!("SELECT id FROM service.keys k WHERE {query}"), &[]).await.unwrap();
            rows.iter().map(|row| row.get::<_, String>(0)).collect::<BTreeSet<_>>()
        }
    };
    let long = "k".repeat(10_000);
    for (text, most, query) in [
        ("", u64::from(u32::MAX), "true"),
        ("  ", 700, "true"),
        ("key 1", 7, "name LIKE 'Key 1%'"),
        ("SHOP 299", 1, "name LIKE 'SHOP 299%'"),
        ("Key 12", 1, "name LIKE 'Key 12%'"),
        ("w", 999, "true"),
        ("w 2", 1_000, "name LIKE 'w 2%'"),
        ("wwwwwy", 3, "id LIKE 'wwwwwy%'"),
        ("wwwwwbbw", 3, "id = 'wwwwwbbw'"),
        ("%", 10, "false"),
        ("_ey", 10, "false"),
        ("WWWWW", 10, "false"),
        ("no such", 10, "false"),
        ("\u{10FFFF}", 10, "false"),
        ("a\u{0}b", 10, "false"),
        (long.as_str(), 10, "false"),
    ] {
        let found = search(&fixture, text, most).await;
        let known: BTreeSet<String> = found.iter().cloned().collect();
        assert_eq!(known.len(), found.len(), "{text:?}: none twice");
        assert_eq!(known, ids(query).await, "{text:?}");
    }
    let first = fixture.done("/api/keys/list", json!({"search": "w", "most": 2})).await;
    assert_eq!(first["keys"][0]["name"], "w 1001", "names first");
    for place in ["", "x", "name.", "name.aaaaaaaa", "id.aaaaaaaa' OR true", "aaaaaaaa"] {
        let (status, answer) = fixture.ask("/api/keys/list", json!({"search": "key", "after": place})).await;
        assert!(status == 200 && answer["keys"] == json!([]), "{place}: {answer}");
    }
    assert_eq!(fixture.ask("/api/keys/list", json!({"after": "aaaaaaaa"})).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_tells_that_store_and_database_are_away() {
    let Some(servers) = Servers::single(&[]) else { return };
    let Some(postgres) = PostgresServer::start(&[]).map(Arc::new) else { return };
    let Some(service) = Service::with(postgres.clone(), &servers, "admin-away", 1).await else { return };
    let fixture = AdminFixture::of(service, &servers, "admin-away").await;
    let health = async || {
        let overview = fixture.done("/api/overview", json!({})).await;
        (overview["store"]["up"] == true, overview["database"]["report"].is_object())
    };
    assert_eq!(health().await, (true, true));
    servers.kill(0);
    wait_until("the store is away", || async { health().await == (false, true) }).await;
    // A key can be made and revoked while the store is away.
    let made = fixture.done("/api/keys/create", json!({"change": {}})).await;
    fixture.done("/api/keys/revoke", json!({"id": made["id"]})).await;
    postgres.end("QUIT");
    wait_until("the database is away", || async { health().await == (false, false) }).await;
    let (status, answer) = fixture.ask("/api/keys/list", json!({})).await;
    assert!(status == 503 && answer["error"].is_string(), "{answer}");
    postgres.run();
    servers.run(0);
    wait_until("both are back", || async { health().await == (true, true) }).await;
}
