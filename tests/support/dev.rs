//! A development chain that is used through JSON-RPC.

use std::sync::Arc;

use rootlight::dev::{DevAccounts, DevChain, DevConfig, Mining};
use rootlight::engine::{DevNode, HostInput};
use rootlight::rpc::{Caller, LocalClient, MessageProgress};
use rootlight::types::{B256, keccak256};
use serde_json::{Value, json};

/// A client of a development chain with a clock of its own.
pub struct DevClient {
    pub client: LocalClient,
    pub now: u64,
    messages: u64,
}

/// Time at which these chains start, in seconds since 1970.
const START: u64 = 1_800_000_000;

impl DevClient {
    /// A chain with instant mining and the default accounts.
    pub fn instant() -> Self {
        Self::new(DevConfig { mining: Mining::Instant, ..DevConfig::new(&DevAccounts::default()) })
    }

    pub fn new(config: DevConfig) -> Self {
        Self::with(config, |_| {})
    }

    /// A chain that `prepare` changes before its first message.
    pub fn with(config: DevConfig, prepare: impl FnOnce(&mut DevChain)) -> Self {
        let mut node = DevNode::new(config, HostInput { now: START, entropy: B256::repeat_byte(7) }).unwrap();
        prepare(node.chain_mut());
        Self { client: LocalClient::new(Box::new(node)), now: START, messages: 0 }
    }

    /// The development chain itself.
    pub fn chain(&mut self) -> &mut DevChain {
        self.client.node().dev().unwrap()
    }

    /// The whole answer to a call.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.send(&message)
    }

    /// The whole answer to a call of a caller.
    pub fn ask_over(&mut self, caller: &Arc<Caller>, method: &str, params: &Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let message =
            MessageProgress::read_from(&self.client.dispatcher(), caller.clone(), message.as_bytes());
        let host_input = HostInput { now: self.now, entropy: B256::repeat_byte(9) };
        serde_json::from_str(&self.client.answer(message, host_input, &|| false).into_text().unwrap())
            .unwrap()
    }

    pub fn send(&mut self, message: &str) -> Value {
        self.messages += 1;
        let message = self.client.open(message.as_bytes());
        let reply = if message.reads_only() {
            message.read(&*self.client.snapshot(), self.now, &|| false)
        } else {
            let host_input = HostInput { now: self.now, entropy: keccak256(self.messages.to_be_bytes()) };
            self.client.answer(message, host_input, &|| false)
        };
        serde_json::from_str(&reply.into_text().unwrap()).unwrap()
    }

    /// The result; an error is a failure of the test.
    pub fn get(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.ask(method, params.clone());
        assert!(answer.get("error").is_none(), "{method} {params}: {}", answer["error"]);
        answer["result"].take()
    }

    /// Code and message of an error; a result is a failure of the test.
    pub fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let answer = self.ask(method, params.clone());
        let error = answer.get("error").unwrap_or_else(|| panic!("{method} {params}: {}", answer["result"]));
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    pub fn number(&mut self, method: &str, params: Value) -> u64 {
        super::u64_of(self.get(method, params).as_str().unwrap())
    }
}
