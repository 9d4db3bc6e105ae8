//! An honest upstream with full blocks: the `rootlight` program in the folder above this one's, as a development chain.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::http::{post, result};
use crate::target::TargetServer;

/// Number of blocks whose logs a client requests at once.
pub(crate) const BLOCKS: u64 = 600;

/// The chain's server, which ends when dropped.
pub(crate) struct ChainServer {
    server: Mutex<Option<TargetServer>>,
    address: SocketAddr,
}

impl ChainServer {
    /// Starts a chain whose first block deploys a contract, and whose next [`BLOCKS`] blocks have a transaction with this many bytes
    /// of logs each.
    pub(crate) async fn start(log_bytes: usize) -> Self {
        // Examples are built into `examples`, a folder beside the program.
        let this = std::env::current_exe().expect("this program");
        let program = this.parent().and_then(|folder| folder.parent()).expect("a folder").join("rootlight");
        let program = program.to_str().expect("a path in UTF-8");
        let server = TargetServer::start(program, "dev --genesis regtest --silent");
        let chain = Self { address: server.address, server: Mutex::new(Some(server)) };
        chain.fill(log_bytes).await;
        chain
    }

    async fn fill(&self, log_bytes: usize) {
        let accounts = result(self.address, "eth_accounts", json!([])).await;
        // A contract that writes zeros to a log: PUSH3 length, PUSH1 0, LOG0.
        let code = format!("62{log_bytes:06x}6000a000");
        let init = format!("0x60{:02x}80600b6000396000f3{code}", code.len() / 2);
        let sent = json!([{"from": accounts[0], "gas": "0x4c4b40", "data": init}]);
        let hash = result(self.address, "eth_sendTransaction", sent).await;
        let receipt = result(self.address, "eth_getTransactionReceipt", json!([hash])).await;
        let contract = receipt["contractAddress"].clone();
        for _ in 0..BLOCKS {
            let sent = json!([{"from": accounts[0], "to": contract, "gas": "0x5b8d80"}]);
            result(self.address, "eth_sendTransaction", sent).await;
        }
    }

    pub(crate) async fn ask(&self, message: &Value) -> String {
        let mut answer = post(self.address, &message.to_string()).await;
        let head = answer.find("\r\n\r\n").map_or(answer.len(), |end| end + 4);
        answer.split_off(head)
    }

    /// Ends the server, even while requests are open.
    pub(crate) fn end(&self) {
        drop(self.server.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
