//! A program whose log nobody reads any more.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

use crate::common::{ProgramWatch, client};

/// A line that cannot be written is lost; the request that led to it is answered.
#[tokio::test(flavor = "multi_thread")]
async fn requests_succeed_when_the_log_pipe_is_closed() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rootlight"))
        .args(["dev", "--http-port", "0", "--log-level", "info"])
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _watch = ProgramWatch::of(&child);
    drop(child.stderr.take());
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = output.find(|line| line.starts_with("listening ")).expect("the program says where it listens");
    let url = line.split(' ').nth(1).unwrap().to_owned();
    let mut results = Vec::new();
    for method in ["evm_mine", "evm_mine", "eth_blockNumber"] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[]}}"#);
        let request = client().post(&url).header(CONTENT_TYPE, "application/json").body(message);
        let answer = match request.send().await {
            Ok(response) => serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap(),
            Err(error) => Value::from(error.to_string()),
        };
        results.push(answer);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(results[2]["result"], "0x2", "{results:?}");
    assert!(results.iter().all(|answer| answer["error"].is_null()), "{results:?}");
}
