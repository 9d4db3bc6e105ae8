//! `rootlight keys`, beside a running server and without one.

use crate::common;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Output;

use common::{Program, ProgramWatch, client, rootlight, run};
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};

/// A development chain that needs keys, with all that it logs in a file.
struct KeyedProgram {
    program: Program,
    log: PathBuf,
}

impl KeyedProgram {
    fn start(folder: &Path) -> Self {
        let log = folder.join("log");
        let mut command = rootlight(&["dev", "--http-port", "0", "--json-log", "--api-keys"]);
        command.arg(folder.join("keys.redb")).env("RUST_LOG", "trace");
        let program =
            Program::start(command.stderr(File::options().create(true).append(true).open(&log).unwrap()));
        Self { program, log }
    }

    async fn status(&self, key: &str) -> u16 {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []});
        let request = client().post(format!("{}/{key}", self.program.url()));
        let request = request.header(CONTENT_TYPE, "application/json").body(message.to_string());
        request.send().await.unwrap().status().as_u16()
    }

    /// Ends the server as an operator does.
    fn stop(&mut self) {
        self.program.signal("TERM");
        let _watch = ProgramWatch::of(&self.program.child);
        assert!(self.program.child.wait().unwrap().success());
    }
}

struct KeyFolder(tempfile::TempDir);

impl KeyFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("keys.redb")
    }

    fn give(&self, arguments: &[&str]) -> Output {
        let file = self.file();
        run(&[&["keys"], arguments, &["--api-keys", file.to_str().unwrap()]].concat())
    }

    /// What a command prints; it must succeed.
    fn text(&self, arguments: &[&str]) -> String {
        let output = self.give(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn create(&self, arguments: &[&str]) -> String {
        self.text(&[&["create"], arguments].concat()).trim().to_owned()
    }

    fn list(&self) -> Vec<Value> {
        serde_json::from_str(&self.text(&["list", "--json"])).unwrap()
    }
}

fn id(key: &str) -> &str {
    key.split_once('.').unwrap().0
}

#[tokio::test]
async fn commands_take_effect_while_the_server_runs_and_survive_its_restart() {
    let keys = KeyFolder::new();
    let early = keys.create(&["--name", "early"]);
    let mut server = KeyedProgram::start(keys.0.path());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let socket = keys.0.path().join("keys.redb.sock");
        assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!keys.0.path().join("keys.redb.sock.new").exists());
    }
    let late = keys.create(&["--name", "late", "--per-day", "2", "--expires", "1h"]);
    assert_eq!((server.status(&early).await, server.status(&late).await), (200, 200));
    assert_eq!((server.status(&late).await, server.status(&late).await), (200, 429));
    keys.text(&["limit", id(&late), "--per-day", "3"]);
    assert_eq!((server.status(&late).await, server.status(&late).await), (200, 429));
    keys.text(&["revoke", id(&early)]);
    assert_eq!(server.status(&early).await, 401);
    let listed = keys.list();
    assert_eq!((listed.len(), &listed[0]["name"], &listed[1]["name"]), (2, &json!("early"), &json!("late")));
    assert_eq!(listed[1]["usage"]["requests"], 3);
    assert_eq!(listed[1]["usage"]["refused"], 2);
    server.stop();
    assert!(!keys.0.path().join("keys.redb.sock").exists());
    assert_eq!(keys.list(), listed, "the counters were written at the end");
    let mut server = KeyedProgram::start(keys.0.path());
    assert_eq!((server.status(&early).await, server.status(&late).await), (401, 429));
    server.stop();
    let shown = keys.text(&["list"]);
    assert!(shown.contains("late") && shown.contains("3 a day") && shown.contains("revoked at"), "{shown}");
    let times = shown.lines().filter(|line| line.contains("made 2") && line.ends_with(" UTC"));
    assert_eq!(times.count(), 2, "{shown}");
    // Nothing that is logged, listed or stored holds a secret.
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(log.contains("stopping"), "the log is complete: {log}");
    let stored = std::fs::read(keys.file()).unwrap();
    for key in [&early, &late] {
        let secret = key.split_once('.').unwrap().1;
        assert!(
            !log.contains(secret)
                && !shown.contains(secret)
                && !keys.text(&["list", "--json"]).contains(secret)
        );
        assert!(!stored.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_a_socket_that_the_next_one_replaces() {
    let keys = KeyFolder::new();
    let key = keys.create(&[]);
    let server = KeyedProgram::start(keys.0.path());
    drop(server);
    assert!(keys.0.path().join("keys.redb.sock").exists());
    assert_eq!(keys.list().len(), 1, "without a server, the commands open the database");
    let server = KeyedProgram::start(keys.0.path());
    assert_eq!(server.status(&key).await, 200);
    assert_eq!(keys.list().len(), 1);
    keys.text(&["revoke", id(&key)]);
    assert_eq!(server.status(&key).await, 401);
}

#[test]
fn wrong_usage_is_explained() {
    let keys = KeyFolder::new();
    let error_text = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    for (arguments, code, text) in [
        (&["create", "--methods", "eth_nonsense"][..], 2, "methods: \"eth_nonsense\" is not one"),
        (&["create", "--contracts", "0x1"], 2, "contracts: \"0x1\" is not one"),
        (&["create", "--rps", "many"], 2, "--rps"),
        (&["create", "--expires", "yesterday"], 2, "90d"),
        (&["revoke"], 2, "ID"),
    ] {
        let output = keys.give(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", error_text(&output));
        assert!(error_text(&output).contains(text), "{arguments:?}: {}", error_text(&output));
    }
    let output = run(&["keys", "list"]);
    assert_eq!((output.status.code(), error_text(&output).contains("--api-keys FILE")), (Some(2), true));
    let key = keys.create(&[]);
    let output = keys.give(&["revoke", &key]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!error_text(&output).contains(&key[9..]), "the error repeats no key: {}", error_text(&output));
    let missing = run(&["keys", "list", "--api-keys", "/nonexistent/keys.redb"]);
    assert_eq!(missing.status.code(), Some(1));
}

/// The keys are opened before anything else, so that nothing was fetched in vain.
#[test]
fn a_second_server_on_the_same_keys_fails_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = KeyedProgram::start(folder.path());
    let keys = folder.path().join("keys.redb");
    let keys = keys.to_str().unwrap();
    let upstream = ["--network", "regtest", "--upstream", first.program.url()];
    let second = run(&[&["light", "--http-port", "0", "--api-keys", keys], &upstream[..]].concat());
    let log = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && second.stdout.is_empty(), "{log}");
    assert!(log.contains("in use by another process") && log.contains("`rootlight serve`"), "{log}");
    assert!(!log.contains("starting from checkpoint"), "{log}");
    first.stop();
}
