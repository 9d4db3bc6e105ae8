//! A local chain as a host sees it: messages that only read run beside each other on snapshots, the others one at a
//! time on the node.

use alloc::{boxed::Box, sync::Arc};

use super::{
    connection::Connection,
    dispatch::Dispatcher,
    error::RpcError,
    exchange::{Exchange, Reply},
    method::{Done, Failure},
};
use crate::engine::{Moment, Node, Refusal, Snapshot, Stop};

/// A message to a local chain, read but not answered.
///
/// ```text
/// let message = LocalMessage::new(&dispatcher, connection, bytes);
/// if message.reads_only() { message.read(&*snapshot, now, &interrupt) }      // any number at a time
/// else { client.answer(message, moment, &interrupt); snapshot = client.snapshot() }
/// ```
#[derive(Debug)]
pub struct LocalMessage {
    exchange: Exchange,
}

impl LocalMessage {
    /// Reads a message that comes from a connection.
    pub fn new(dispatcher: &Dispatcher, connection: Arc<Connection>, message: &[u8]) -> Self {
        Self { exchange: Exchange::new(dispatcher, connection, message) }
    }

    /// Whether no call of the message changes anything, so that it can be answered from a snapshot.
    pub fn reads_only(&self) -> bool {
        !self.exchange.requests().any(|request| request.row.writes() || request.row.watches())
    }

    /// Whether a call of the message may have changed the chain or its pool; filters are not part of them.
    pub fn changes_chain(&self) -> bool {
        self.exchange.requests().any(|request| request.row.writes())
    }

    /// Whether the answer is a few look-ups or one block away, so that a thread of its own would cost more than the
    /// answer. What runs code for a caller, or goes through many blocks, is not.
    pub fn is_brief(&self) -> bool {
        self.exchange.is_brief()
    }

    /// Answers a message that only reads; `now` is in seconds since 1970, `interrupt` ends long runs. `None` when
    /// nothing is to be sent.
    pub fn read(mut self, snapshot: &dyn Snapshot, now: u64, interrupt: &dyn Fn() -> bool) -> Option<Reply> {
        let view = snapshot.view(now, interrupt);
        self.exchange.run_each(interrupt, |request| outcome(request.run(&*view, None, now)));
        self.exchange.reply()
    }
}

fn outcome(result: Result<Done, Failure>) -> Result<Box<serde_json::value::RawValue>, RpcError> {
    match result {
        Ok(done) => Ok(done.value),
        Err(Failure::Error(error)) => Err(error),
        Err(Failure::Stop(Stop::Refused(refusal))) => Err(RpcError::Refused(refusal)),
        // A local chain has no upstream: what its history does not hold cannot be fetched.
        Err(Failure::Stop(Stop::Lacking(facts))) => Err(RpcError::Refused(Refusal::NotHeld(facts))),
    }
}

/// A node with the method table.
pub struct LocalClient {
    dispatcher: Arc<Dispatcher>,
    node: Box<dyn Node>,
}

impl core::fmt::Debug for LocalClient {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LocalClient").finish_non_exhaustive()
    }
}

impl LocalClient {
    /// A client of a node.
    pub fn new(node: Box<dyn Node>) -> Self {
        Self { dispatcher: Arc::new(Dispatcher::new()), node }
    }

    /// The method table, for reading messages before the node is free.
    pub fn dispatcher(&self) -> Arc<Dispatcher> {
        self.dispatcher.clone()
    }

    /// Reads a message of the host itself.
    pub fn open(&self, message: &[u8]) -> LocalMessage {
        LocalMessage::new(&self.dispatcher, Arc::default(), message)
    }

    /// The chain as readers see it now.
    pub fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.node.snapshot()
    }

    /// The node, for what is no message: ticks of the clock, imports.
    pub fn node(&mut self) -> &mut dyn Node {
        &mut *self.node
    }

    /// Ends the subscriptions of a connection whose client is gone.
    pub fn disconnect(&mut self, connection: &Connection) {
        connection.close();
        self.node.filters().close(connection.number());
    }

    /// Goes on with another node: a copy of this one as it was before a change that could not be kept.
    pub fn replace_node(&mut self, node: Box<dyn Node>) {
        self.node = node;
    }

    /// Answers a message, its calls in order; each sees what the one before it changed.
    pub fn answer(
        &mut self,
        mut message: LocalMessage,
        moment: Moment,
        interrupt: &dyn Fn() -> bool,
    ) -> Option<Reply> {
        self.node.begin(moment);
        let node = &mut *self.node;
        node.filters().ask_as(message.exchange.connection().owner());
        message.exchange.run_each(interrupt, |request| outcome(request.run_on(node, interrupt)));
        message.exchange.reply()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &str) -> Exchange {
        Exchange::new(&Dispatcher::new(), Arc::default(), message.as_bytes())
    }

    /// A second in which nothing else may be done is all that a batch gets.
    #[test]
    fn the_time_limit_holds_between_the_calls_of_a_batch() {
        let calls =
            [1, 2, 3, 4].map(|id| alloc::format!(r#"{{"id":{id},"method":"eth_chainId"}}"#)).join(",");
        let mut exchange = read(&alloc::format!("[{calls}]"));
        let ran = core::cell::Cell::new(0);
        exchange.run_each(&|| ran.get() == 2, |_| {
            ran.set(ran.get() + 1);
            Ok(serde_json::value::to_raw_value(&ran.get()).unwrap())
        });
        let reply = exchange.reply().unwrap().body;
        assert_eq!(ran.get(), 2);
        assert!(reply.contains(r#""id":2,"result":2"#), "{reply}");
        assert_eq!(reply.matches("-32011").count(), 2, "{reply}");
    }

    #[test]
    fn the_size_limit_holds_for_all_answers_of_a_batch() {
        let calls = [r#"{"id":1,"method":"eth_chainId"}"#; 50].join(",");
        let message = alloc::format!("[{calls}]");
        let mut exchange = read(&message);
        let large = "x".repeat(4 << 20);
        exchange.run_each(&|| false, |_| Ok(serde_json::value::to_raw_value(&large).unwrap()));
        let reply = exchange.reply().unwrap().body;
        assert!(reply.len() < 9 << 20, "{}", reply.len());
        assert_eq!(reply.matches("Response size limit of 10485760 bytes exceeded").count(), 48);
        let data = alloy_primitives::Bytes::from(alloc::vec![1; 3 << 20]);
        let mut exchange = read(&alloc::format!("[{calls}]"));
        exchange.run_each(&|| false, |_| Err(RpcError::Reverted { reason: None, data: data.clone() }));
        assert!(exchange.reply().unwrap().body.len() < 9 << 20, "reverts count too");
    }

    const SENDS: [&str; 2] = ["eth_sendRawTransaction", "eth_sendTransaction"];

    #[test]
    fn brief_messages_run_no_code_and_mine_one_block() {
        let dispatcher = Dispatcher::new();
        let brief = |text: &str| LocalMessage::new(&dispatcher, Arc::default(), text.as_bytes()).is_brief();
        let call = |method: &str, params: &str| {
            alloc::format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{params}]}}"#)
        };
        let some = [("eth_blockNumber", ""), ("eth_getBalance", "1"), ("evm_mine", ""), ("nothing", "1")];
        for (method, params) in some.into_iter().chain(SENDS.map(|method| (method, "1"))) {
            assert!(brief(&call(method, params)), "{method}");
        }
        for method in ["eth_call", "eth_estimateGas", "eth_getLogs", "debug_traceTransaction", "evm_revert"] {
            assert!(!brief(&call(method, "1")), "{method}");
        }
        assert!(!brief(&call("eth_newBlockFilter", "")), "filters are shared");
        assert!(!brief(&call("evm_mine", r#"{"blocks":9}"#)));
        let balance = call("eth_getBalance", "1");
        assert!(brief(&alloc::format!("[{balance},{balance}]")));
        assert!(!brief(&alloc::format!("[{balance},{balance},{balance}]")));
    }
}
