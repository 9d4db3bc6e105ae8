//! The program under a service manager: readiness, sockets that it is started with, SIGHUP and SIGTERM.
#![cfg(unix)]

use crate::common;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use alloy_primitives::hex;
use common::{Program, client, rootlight, run};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, ORIGIN};
use serde_json::json;

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_accounts"}"#;

/// The program, with all that it logs in a file.
struct LoggedProgram {
    program: Program,
    log: PathBuf,
}

impl std::ops::Deref for LoggedProgram {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl LoggedProgram {
    fn start(folder: &Path, mut command: Command) -> Self {
        let log = folder.join("log");
        let output = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        Self { program: Program::start(command.env("NO_COLOR", "1").stderr(output)), log }
    }

    fn logged(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Sends SIGHUP, and waits until the log has a line with these words.
    fn reload(&self, words: &str) {
        let before = self.logged().len();
        self.signal("HUP");
        let started = Instant::now();
        while !self.logged()[before..].contains(words) {
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "{words} is not in {}",
                &self.logged()[before..]
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    async fn status_for(&self, origin: &str) -> StatusCode {
        let request =
            client().post(self.url()).header(CONTENT_TYPE, "application/json").header(ORIGIN, origin);
        request.body(BODY).send().await.unwrap().status()
    }
}

#[tokio::test]
async fn sighup_changes_pages_log_levels_and_proxies_and_names_what_needs_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("rootlight.toml");
    let write = |text: &str| std::fs::write(&config, text).unwrap();
    write("cors = \"https://a.example\"\naccounts = 3\n");
    let mut command = rootlight(&[]);
    command.args(["dev", "--http-port", "0", "--config"]).arg(&config);
    let program = LoggedProgram::start(folder.path(), command);
    let (a, b) = ("https://a.example", "https://b.example");
    assert_eq!(
        (program.status_for(a).await, program.status_for(b).await),
        (StatusCode::OK, StatusCode::FORBIDDEN)
    );
    write("cors = \"https://b.example\"\nlog-level = \"rootlight=debug\"\naccounts = 4\n");
    program.reload("these changes need a restart: accounts");
    assert!(program.logged().contains("changed cors, log-level"), "{}", program.logged());
    assert_eq!(
        (program.status_for(a).await, program.status_for(b).await),
        (StatusCode::FORBIDDEN, StatusCode::OK)
    );
    assert!(program.logged().contains("request{id="), "the new level counts: {}", program.logged());
    for broken in [
        "cors = ",
        "no-such-flag = 1",
        "log-level = \"==\"",
        "trusted-proxy = \"x\"",
        "upstream = https://me:sesame@node.example",
        "sesame = 1",
        "log-level = \"=sesame=\"",
        "trusted-proxy = \"sesame\"",
        // An editor or a program that writes a file anew empties it first.
        "",
        "\n",
        "# cors = \"https://b.example\"\n",
    ] {
        write(broken);
        program.reload("the configuration stays as it was");
        assert_eq!(program.status_for(b).await, StatusCode::OK, "{broken}");
        assert_eq!(program.status_for(a).await, StatusCode::FORBIDDEN, "{broken}");
    }
    assert!(!program.logged().contains("sesame"), "{}", program.logged());
    std::fs::remove_file(&config).unwrap();
    program.reload("the configuration stays as it was");
    assert_eq!(program.status_for(b).await, StatusCode::OK);
}

/// A contract reverts with a text of 400,000 bytes, which has the beginning of a line of the log in it.
#[tokio::test]
async fn revert_texts_of_contracts_do_not_fill_the_log_or_forge_lines() {
    const AT: &str = "0x00000000000000000000000000000000000000aa";
    let text = format!("\n\r 2026-11-25T00:00:00Z ERROR forged \u{1b}[2J\u{202e}{}", "x".repeat(400_000));
    let word = |number: usize| format!("{number:064x}");
    let padding = "00".repeat(text.len().next_multiple_of(32) - text.len());
    let output = format!("08c379a0{}{}{}{padding}", word(32), word(text.len()), hex::encode(&text));
    // PUSH3 length, PUSH1 16, PUSH1 0, CODECOPY, PUSH3 length, PUSH1 0, REVERT.
    let length = format!("{:06x}", output.len() / 2);
    let code = format!("0x62{length}601060003962{length}6000fd{output}");
    let folder = tempfile::tempdir().unwrap();
    for json in [false, true] {
        let mut command = rootlight(&[]);
        command.args(["dev", "--http-port", "0"]).args(json.then_some("--json-log"));
        let program = LoggedProgram::start(folder.path(), command);
        program.ask("anvil_setCode", json!([AT, code])).await;
        let before = program.logged().len();
        for _ in 0..20 {
            let answer = program.ask("eth_call", json!([{ "to": AT }])).await.to_string();
            assert!(answer.contains("forged"), "{}", &answer[..answer.len().min(300)]);
        }
        program.ask("eth_call", json!([{ "to": AT, "gas": "0x1" }])).await;
        let log = program.logged()[before..].to_owned();
        assert!(log.contains("forged") && log.len() < 40_000, "{} bytes", log.len());
        assert!(log.lines().all(|line| !line.trim_start().starts_with("2026-11-25T00:00:00Z")), "{log}");
        assert!(!log.contains(['\r', '\u{1b}', '\u{202e}']), "{log:?}");
    }
}

#[tokio::test]
async fn the_service_manager_is_notified_of_readiness_reloads_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("notify");
    let manager = UnixDatagram::bind(&address).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let notified = || {
        let mut buffer = [0; 512];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let mut command = rootlight(&[]);
    command.args(["dev", "--http-port", "0"]).env("NOTIFY_SOCKET", &address);
    let mut program = LoggedProgram::start(folder.path(), command);
    assert!(notified().contains("READY=1"));
    program.signal("HUP");
    let reloading = notified();
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert!(notified().contains("READY=1"));
    program.signal("TERM");
    assert!(notified().contains("STOPPING=1"));
    assert!(program.program.child.wait().unwrap().success());
}

/// Starts the program with this socket as file descriptor 3, as systemd does.
fn activated(folder: &Path, socket: OwnedFd, arguments: &str) -> LoggedProgram {
    let mut command = Command::new("sh");
    let script = format!("LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" {arguments} 3<&0 </dev/null");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_rootlight")])
        .env_remove("RUST_LOG")
        .stdin(Stdio::from(socket));
    LoggedProgram::start(folder, command)
}

#[tokio::test]
async fn a_socket_of_the_service_manager_replaces_the_usual_port() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let program = activated(folder.path(), listener.into(), "dev");
    assert_eq!(program.url(), format!("http://{address}"));
    assert_eq!(program.status_for("http://localhost").await, StatusCode::OK);
}

#[test]
fn a_unix_socket_of_the_service_manager_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let program = activated(folder.path(), listener.into(), "dev");
    assert!(program.listening.starts_with("unix:"), "{}", program.listening);
    assert!(UnixStream::connect(&path).is_ok());
    drop(program);
    assert!(path.exists(), "the socket belongs to the service manager");
}

#[test]
fn flags_that_contradict_each_other_are_wrong_usage() {
    for arguments in [
        &["dev", "--tls-cert", "x"][..],
        &["dev", "--tls-key", "x"],
        &["dev", "--listen", "4444"],
        &["dev", "--listen", "127.0.0.1:0", "--host", "127.0.0.1"],
        &["dev", "--unix-mode", "888"],
        &["dev", "--trusted-proxy", "proxy"],
        &["dev", "--metrics-listen", "4446"],
        &["dev", "--log-level", "=="],
    ] {
        let output = run(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let output = run(&["dev", "--http-port", "0", "--tls-cert", "/none.pem", "--tls-key", "/none.pem"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--tls-key): /none.pem"));
}

#[tokio::test]
async fn several_addresses_are_listened_on_and_metrics_are_apart() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("rpc.sock");
    let mut command = rootlight(&[]);
    command.args([
        "dev",
        "--listen",
        "127.0.0.1:0",
        "--listen",
        "127.0.0.1:0",
        "--metrics-listen",
        "127.0.0.1:0",
    ]);
    command.arg("--listen").arg(format!("unix:{}", socket.display()));
    let mut program = LoggedProgram::start(folder.path(), command);
    let log = program.logged();
    let urls: Vec<&str> = log.lines().filter_map(|line| line.split("also listening on ").nth(1)).collect();
    assert_eq!(urls.len(), 2, "{log}");
    let second = urls[0].split(' ').next().unwrap().to_owned();
    assert!(urls[1].starts_with("unix:") && second != program.url());
    for url in [program.url(), &second] {
        let response = client().get(format!("{url}/readyz")).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
    }
    let metrics = log.lines().find_map(|line| line.split("metrics on ").nth(1)).unwrap().to_owned();
    let text = client().get(metrics).send().await.unwrap().text().await.unwrap();
    assert!(text.contains("rootlight_ready 1") && text.contains("rootlight_head_block 0"), "{text}");
    program.signal("TERM");
    assert!(program.program.child.wait().unwrap().success() && !socket.exists());
}

#[tokio::test]
async fn no_log_line_has_a_key_or_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys.redb");
    let created = run(&["keys", "create", "--api-keys", keys.to_str().unwrap()]);
    let text = String::from_utf8(created.stdout).unwrap();
    let key = text.split_whitespace().find(|word| word.len() == 52 && word.contains('.')).unwrap().to_owned();
    let mut command = rootlight(&[]);
    command.args(["dev", "--http-port", "0", "--log-level", "trace", "--json-log", "--api-keys"]).arg(&keys);
    let mut program = LoggedProgram::start(folder.path(), command);
    let secret = &key[9..];
    let wrong = format!("{}.{}", &key[..8], "a".repeat(43));
    for (path, status) in
        [(key.as_str(), 200), (wrong.as_str(), 401), (&format!("{key}/more"), 404), ("probe-me", 401)]
    {
        let request =
            client().post(format!("{}/{path}", program.url())).header(CONTENT_TYPE, "application/json");
        assert_eq!(
            request.header("x-request-id", secret).body(BODY).send().await.unwrap().status(),
            status,
            "{path}"
        );
    }
    let url = format!("{}/{key}", program.url().replace("http", "ws"));
    drop(tokio_tungstenite::connect_async(url).await.unwrap());
    program.signal("TERM");
    assert!(program.program.child.wait().unwrap().success());
    let log = program.logged();
    assert!(log.contains("\"id\":") && log.contains("stopping"), "requests are logged: {log}");
    for private in [secret, &wrong[9..], "probe-me"] {
        assert!(!log.contains(private), "{private} is in the log");
    }
}
