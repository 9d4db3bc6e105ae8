//! Three front ends as programs of their own, asked in turn as by a balancer.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use rootlight::dev::Mining;
use rootlight_index::testkit::{PostgresServer, postgres};
use rootlight_node::local::LocalOptions;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::common::{self, Program, RunningServer, rootlight};
use crate::servers::{Servers, cluster, wait_until};

/// Longest time until programs have done something, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause of a balancer before it tries the next front end.
const PAUSE: Duration = Duration::from_millis(10);

struct FrontEndProgram {
    program: Program,
    /// Its address, with a slash at the end.
    http: String,
    /// Where its metrics are.
    metrics: String,
}

/// A chain with two backends, and front ends.
struct ServeFixture {
    backends: [RunningServer; 2],
    servers: Arc<Servers>,
    _postgres: Arc<PostgresServer>,
    index: String,
    key: String,
    programs: Vec<FrontEndProgram>,
    next: AtomicUsize,
    client: reqwest::Client,
}

impl ServeFixture {
    async fn start() -> Option<Self> {
        let (servers, postgres) = (cluster()?, postgres()?);
        let chain = common::dev_chain(Mining::Instant, LocalOptions::default());
        let backends = [
            common::start_service(common::config(), chain.clone()).await,
            common::start_service(common::config(), chain).await,
        ];
        let index = postgres.database().await;
        let client = common::client();
        let (key, programs, next) = (String::new(), Vec::new(), AtomicUsize::new(0));
        let mut fixture = Self { backends, servers, _postgres: postgres, index, key, programs, next, client };
        fixture.key = fixture.keys(&["create", "--name", "shop"]).trim().to_owned();
        for _ in 0..3 {
            fixture.add().await;
        }
        Some(fixture)
    }

    /// Runs `rootlight keys`.
    fn keys(&self, arguments: &[&str]) -> String {
        let output = self.command("keys").args(arguments).args(self.flags()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, name: &str) -> Command {
        rootlight(&[name])
    }

    fn flags(&self) -> Vec<String> {
        let urls = self.servers.urls().into_iter().flat_map(|url| ["--cluster".to_owned(), url]);
        urls.chain(["--index".to_owned(), self.index.clone()]).collect()
    }

    async fn add(&mut self) {
        let genesis = self.of_chain("eth_getBlockByNumber", json!(["0x0", false])).await["hash"].clone();
        let mut command = self.command("serve");
        command.args(["--network", "regtest", "--http-port", "0", "--profile", "hosted", "--keys"]);
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        command.args(["--metrics-listen", &free.to_string()]);
        command.args(["--checkpoint", &format!("0:{}", genesis.as_str().unwrap())]).args(self.flags());
        for backend in &self.backends {
            command.args(["--backend", &backend.url("")]);
        }
        command.stderr(Stdio::null());
        let program = tokio::task::spawn_blocking(move || Program::start(&mut command)).await.unwrap();
        let http = format!("{}/", program.url());
        let program = FrontEndProgram { program, http, metrics: format!("http://{free}/metrics") };
        self.programs.push(program);
    }

    async fn post(&self, url: &str, method: &str, params: &Value) -> reqwest::Result<Value> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let post = self.client.post(url).header("content-type", "application/json").body(message);
        let body = post.timeout(PATIENCE).send().await?.text().await?;
        Ok(serde_json::from_str(&body).unwrap())
    }

    async fn of_chain(&self, method: &str, params: Value) -> Value {
        self.post(&self.backends[0].url("/"), method, &params).await.unwrap()["result"].clone()
    }

    /// Asks the next front end as a balancer does: one that cannot be reached, or says that it cannot answer now, is
    /// replaced by the next.
    async fn ask(&self, method: &str, params: Value) -> Value {
        let started = Instant::now();
        loop {
            let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.programs.len();
            let answer =
                self.post(&format!("{}{}", self.programs[turn].http, self.key), method, &params).await;
            match answer {
                Ok(answer) if answer["error"]["code"] != -32002 => {
                    assert!(answer.get("error").is_none(), "{method}: {answer}");
                    return answer["result"].clone();
                }
                answer => assert!(started.elapsed() < PATIENCE, "{method}: {answer:?}"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

/// The numbers of all new heads that a client learns of which connects to the next front end whenever its connection
/// breaks, and then fetches what it has missed.
async fn follow(fixture: Arc<ServeFixture>, last: u64) -> Vec<u64> {
    let mut heads = vec![number(&fixture.ask("eth_blockNumber", json!([])).await)];
    let started = Instant::now();
    while heads.last().is_none_or(|head| *head < last) {
        assert!(started.elapsed() < PATIENCE, "{heads:?}");
        let turn = fixture.next.fetch_add(1, Ordering::Relaxed) % fixture.programs.len();
        let url = format!("{}{}", fixture.programs[turn].http.replace("http", "ws"), fixture.key);
        let Ok((mut socket, _)) = tokio_tungstenite::connect_async(url).await else { continue };
        let subscribe = r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#;
        if socket.send(Message::text(subscribe)).await.is_err() || socket.next().await.is_none() {
            continue;
        }
        // Heads that came between two connections; the subscription tells of all later ones.
        let now = number(&fixture.ask("eth_blockNumber", json!([])).await);
        let known = *heads.last().unwrap();
        heads.extend(known + 1..=now);
        while heads.last().is_some_and(|head| *head < last) {
            let Ok(Some(Ok(message))) = tokio::time::timeout(PATIENCE, socket.next()).await else { break };
            let Ok(text) = message.to_text() else { break };
            let Ok(reported) = serde_json::from_str::<Value>(text) else { continue };
            if let Some(head) = reported["params"]["result"]["number"].as_str() {
                let head = number(&head.into());
                // The subscription may report a head again that was fetched before.
                if heads.last().is_none_or(|known| head > *known) {
                    heads.push(head);
                }
            }
        }
    }
    heads
}

/// Takes contracts from the key: a filter that it has open does not exist any more, at any front end.
async fn narrow(fixture: &ServeFixture, id: &str) {
    let open = fixture.ask("eth_newFilter", json!([{}])).await;
    let shop = "0x00000000000000000000000000000000000000aa";
    fixture.keys(&["limit", id, "--contracts", shop]);
    for program in &fixture.programs[1..] {
        let url = format!("{}{}", program.http, fixture.key);
        let poll = async |filter: &Value| {
            fixture.post(&url, "eth_getFilterChanges", &json!([filter])).await.unwrap()
        };
        wait_until("the rights", || async { poll(&open).await["error"]["code"] == -32000 }).await;
        let own = fixture.post(&url, "eth_newFilter", &json!([{"address": shop}])).await.unwrap();
        assert_eq!(poll(&own["result"]).await["result"], json!([]), "{own}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_programs_are_one_service_while_one_is_killed_and_a_key_is_revoked() {
    let Some(mut fixture) = ServeFixture::start().await else { return };
    let filter = fixture.ask("eth_newBlockFilter", json!([])).await;
    let killed = fixture.programs[0].program.child.id().to_string();
    fixture.next.store(1, Ordering::Relaxed);
    let fixture_now = Arc::new(fixture);
    let last = 25;
    let follower = tokio::spawn(follow(fixture_now.clone(), last));
    let done = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let (fixture, done) = (fixture_now.clone(), done.clone());
            tokio::spawn(async move {
                let (mut head, mut asked) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    let now = number(&fixture.ask("eth_blockNumber", json!([])).await);
                    assert!(now >= head, "block {head}, then {now}");
                    (head, asked) = (now, asked + 1);
                }
                asked
            })
        })
        .collect();
    let mut reported = Vec::new();
    for block in 1..=last {
        fixture_now.of_chain("evm_mine", json!([])).await;
        if block == 10 {
            assert!(Command::new("kill").args(["-9", &killed]).status().unwrap().success());
        }
        reported.extend(
            fixture_now.ask("eth_getFilterChanges", json!([filter])).await.as_array().unwrap().clone(),
        );
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    let heads = follower.await.unwrap();
    assert!(heads.windows(2).all(|pair| pair[1] == pair[0] + 1), "{heads:?}");
    done.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.await.unwrap() > 10);
    }
    reported
        .extend(fixture_now.ask("eth_getFilterChanges", json!([filter])).await.as_array().unwrap().clone());
    let mut expected = Vec::new();
    for block in 1..=last {
        let block = fixture_now.of_chain("eth_getBlockByNumber", json!([format!("{block:#x}"), false])).await;
        expected.push(block["hash"].clone());
    }
    assert_eq!(reported, expected, "each block once, in order");

    fixture = Arc::into_inner(fixture_now).expect("all clients have ended");
    let metrics = fixture.client.get(&fixture.programs[1].metrics).send().await.unwrap();
    // Messages are counted by who decided about a limit, and this key has none.
    let without_samples = ["rootlight_keys_messages_total"];
    common::check_dashboard("service", &metrics.text().await.unwrap(), &without_samples);
    let id = fixture.key.split('.').next().unwrap().to_owned();
    narrow(&fixture, &id).await;
    fixture.keys(&["revoke", &id]);
    for program in &fixture.programs[1..] {
        wait_until("the revocation", || async {
            let post = fixture.client.post(format!("{}{}", program.http, fixture.key)).body("{}");
            post.send().await.unwrap().status() == 401
        })
        .await;
    }
}
