//! The admin page of a front end as a program: its flags, its backends, and the page in a browser.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use rootlight::dev::Mining;
use rootlight_index::testkit::{PostgresServer, postgres};
use rootlight_node::local::LocalOptions;
use rootlight_server::service::Service as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{self, RunningServer};
use crate::servers::{Servers, cluster, wait_until};
use crate::setup::database;

/// A chain with two backends, and a front end with an admin page.
struct AdminProgramFixture {
    backends: Vec<RunningServer>,
    _servers: Arc<Servers>,
    _postgres: Arc<PostgresServer>,
    folder: TempDir,
    flags: Vec<String>,
    child: Child,
    /// The address of the page.
    page: String,
}

impl Drop for AdminProgramFixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(flags: &[String], token: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rootlight"));
    command.env_remove("RUST_LOG").arg("serve").args(flags).arg("--admin-token-file").arg(token);
    command.args(["--network", "regtest", "--http-port", "0", "--keys", "--admin-port", "0"]);
    command
}

impl AdminProgramFixture {
    async fn start() -> Option<Self> {
        let (servers, postgres) = (cluster()?, postgres()?);
        let chain = common::dev_chain(Mining::Instant, LocalOptions::default());
        let block = br#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x0",false]}"#;
        let answer = chain.answer(block.to_vec()).await.into_text().unwrap();
        let genesis: Value = serde_json::from_str(&answer).unwrap();
        let mut backends = Vec::new();
        for _ in 0..2 {
            backends.push(common::start_service(common::config(), chain.clone()).await);
        }
        let mut flags = vec!["--index".to_owned(), postgres.database().await];
        flags.extend(servers.urls().into_iter().flat_map(|url| ["--cluster".to_owned(), url]));
        flags.extend(backends.iter().flat_map(|backend| ["--backend".to_owned(), backend.url("")]));
        let checkpoint = format!("0:{}", genesis["result"]["hash"].as_str().unwrap());
        flags.extend(["--checkpoint".to_owned(), checkpoint]);
        let folder = tempfile::tempdir().unwrap();
        let mut command = serve(&flags, &folder.path().join("token"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let read = move || {
            let mut lines = lines;
            let address = lines.find_map(|line| {
                let address = line.split("admin page on ").nth(1)?.split(',').next()?;
                Some(address.to_owned())
            });
            // Its log is read on, so that it does not wait.
            std::thread::spawn(move || lines.count());
            address
        };
        let page = tokio::task::spawn_blocking(read).await.unwrap().expect("the line with the address");
        Some(Self { backends, _servers: servers, _postgres: postgres, folder, flags, child, page })
    }

    fn token(&self) -> String {
        fs::read_to_string(self.folder.path().join("token")).unwrap().trim().to_owned()
    }

    async fn ask(&self, path: &str, body: Value) -> Value {
        let post = common::client().post(format!("{}{path}", self.page));
        let post = post.header(CONTENT_TYPE, "application/json").body(body.to_string());
        let answer = post.header(AUTHORIZATION, format!("Bearer {}", self.token())).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_makes_a_token_and_tells_the_health_of_its_backends() {
    let Some(mut fixture) = AdminProgramFixture::start().await else { return };
    assert_eq!(fixture.token().len(), 43);
    assert!(fixture.page.starts_with("http://127.0.0.1:"), "{}", fixture.page);
    let healthy = async |fixture: &AdminProgramFixture| {
        let overview = fixture.ask("api/overview", json!({})).await;
        let backends = overview["backends"].as_array().unwrap();
        backends.iter().filter(|backend| backend["healthy"] == true).count()
    };
    wait_until("the chain", || async {
        fixture.ask("api/overview", json!({})).await["chain"]["health"]["ready"] == true
    })
    .await;
    assert_eq!(healthy(&fixture).await, 2);
    drop(fixture.backends.pop());
    wait_until("a backend that is left alone", || async { healthy(&fixture).await == 1 }).await;
    assert_eq!(fixture.ask("api/overview", json!({})).await["chain"]["health"]["ready"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_others_can_read_is_refused_at_the_start() {
    let Some(fixture) = AdminProgramFixture::start().await else { return };
    let token = fixture.folder.path().join("readable");
    fs::write(&token, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let output = serve(&fixture.flags, &token).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("chmod 600"), "{text}");
    let mut alone = Command::new(env!("CARGO_BIN_EXE_rootlight"));
    alone.args(["serve", "--backend", "http://127.0.0.1:1", "--admin-port", "0"]);
    assert_eq!(alone.output().unwrap().status.code(), Some(2), "a page needs a token and the keys");
}

/// A month of usage.
const USED: &str = "
INSERT INTO service.usage_totals SELECT d, 800000 + 40000 * (d * 7 % 11), 0, 9000 * (d % 5)
    FROM generate_series(extract(epoch FROM now())::int / 86400 - 29, extract(epoch FROM now())::int / 86400) d;
INSERT INTO service.usage_class_totals VALUES ('eth', 24123456), ('rsk', 512345), ('net', 99000), ('unknown', 12)";

/// Runs www/test/admin in Chromium against a front end of its own; the environment names the program of Node.js and the
/// folder for pictures, if there shall be any.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Node.js, Chromium and the packages of www: run by `cargo xtask test --full`"]
async fn the_page_works_in_a_browser() {
    let fixture = AdminProgramFixture::start().await.expect("a store and PostgreSQL");
    // Something for the charts to show.
    let client = database(&fixture.flags[1]).connect().await.unwrap();
    client.batch_execute(USED).await.unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut node = Command::new("node");
    node.args(["--test", "--test-timeout=120000", "test/admin/admin.test.mjs"]).current_dir(root.join("www"));
    node.env("ADMIN_URL", &fixture.page).env("ADMIN_TOKEN", fixture.token());
    // What cargo and the test program set for themselves.
    let output = tokio::task::spawn_blocking(move || node.output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("pass 0"), "{text}");
}
