//! A program whose log is no longer read.

use std::process::Stdio;

use serde_json::json;

use crate::common::{Program, rootlight};

/// A line that cannot be written is lost; the request that led to it is answered.
#[tokio::test(flavor = "multi_thread")]
async fn requests_succeed_when_the_log_pipe_is_closed() {
    let mut program = rootlight(&["dev", "--http-port", "0", "--log-level", "info"]);
    let mut program = Program::spawn(program.stderr(Stdio::piped()));
    drop(program.child.stderr.take());
    program.ready();
    let mut results = Vec::new();
    for method in ["evm_mine", "evm_mine", "eth_blockNumber"] {
        results.push(program.ask(method, json!([])).await);
    }
    assert_eq!(results[2]["result"], "0x2", "{results:?}");
    assert!(results.iter().all(|answer| answer["error"].is_null()), "{results:?}");
}
