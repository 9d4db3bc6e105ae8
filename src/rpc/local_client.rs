//! A local chain as a host sees it: messages that only read run beside each other on snapshots, the others one at a
//! time on the node.

use alloc::{boxed::Box, sync::Arc};

use super::{
    dispatch::Dispatcher,
    envelope::Call,
    error::RpcError,
    exchange::{Exchange, State},
    method::{Done, Failure, Method},
    session::Reply,
};
use crate::engine::{Moment, Node, Refusal, Snapshot, Stop};

/// Highest sum of [`Method::cost`] of a message that is answered at once: a receipt, a few balances.
const BRIEF_COST: u32 = 20;

/// A message to a local chain, read but not answered.
///
/// ```text
/// let message = LocalMessage::new(dispatcher, bytes);
/// if message.reads_only() { message.read(&*snapshot, now, &interrupt) }      // any number at a time
/// else { client.answer(message, moment, &interrupt); snapshot = client.snapshot() }
/// ```
#[derive(Debug)]
pub struct LocalMessage {
    dispatcher: Arc<Dispatcher>,
    exchange: Exchange,
}

impl LocalMessage {
    /// Reads a message.
    pub fn new(dispatcher: Arc<Dispatcher>, message: &[u8]) -> Self {
        Self { dispatcher, exchange: Exchange::new(message) }
    }

    /// Whether no call of the message changes anything, so that it can be answered from a snapshot.
    pub fn reads_only(&self) -> bool {
        !self.exchange.calls().any(|call| self.dispatcher.writes(call))
    }

    /// Whether a call of the message may have changed the chain or its pool; filters are not part of them.
    pub fn changes_chain(&self) -> bool {
        let changes = |call: &Call| self.dispatcher.find(&call.method).is_some_and(Method::writes);
        self.exchange.calls().any(changes)
    }

    /// Whether the answer is a few look-ups or one block away, so that a thread of its own would cost more than the
    /// answer. What runs code for a caller, or goes through many blocks, is not.
    pub fn is_brief(&self) -> bool {
        let cost = |call: &Call| match self.dispatcher.find(&call.method) {
            None => 1,
            Some(method) if (method.writes() || method.watches()) && !is_brief_change(method, call) => {
                u32::MAX
            }
            Some(method) => method.cost,
        };
        self.exchange.calls().map(cost).fold(0, u32::saturating_add) <= BRIEF_COST
    }

    /// Answers a message that only reads; `now` is in seconds since 1970, `interrupt` ends long runs. `None` when
    /// nothing is to be sent.
    pub fn read(mut self, snapshot: &dyn Snapshot, now: u64, interrupt: &dyn Fn() -> bool) -> Option<Reply> {
        let view = snapshot.view(now, interrupt);
        for member in &mut self.exchange.members {
            if let State::Pending(call) = &member.state {
                member.state = State::Finished(outcome(self.dispatcher.run(&*view, call)));
            }
        }
        self.exchange.reply()
    }
}

/// Whether a method that changes the chain adds one transaction and mines one block at most.
fn is_brief_change(method: &Method, call: &Call) -> bool {
    match method.name {
        "eth_sendRawTransaction" | "eth_sendTransaction" => true,
        "evm_mine" => call.params.is_empty(),
        _ => false,
    }
}

fn outcome(result: Result<Done, Failure>) -> Result<Box<serde_json::value::RawValue>, RpcError> {
    match result {
        Ok(done) => Ok(done.value),
        Err(Failure::Error(error)) => Err(error),
        Err(Failure::Stop(Stop::Refused(refusal))) => Err(RpcError::Refused(refusal)),
        // A local chain holds everything it knows of; what it lacks nobody can bring.
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

    /// Reads a message.
    pub fn open(&self, message: &[u8]) -> LocalMessage {
        LocalMessage::new(self.dispatcher.clone(), message)
    }

    /// The chain as readers see it now.
    pub fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.node.snapshot()
    }

    /// The node, for what is no message: ticks of the clock, imports.
    pub fn node(&mut self) -> &mut dyn Node {
        &mut *self.node
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
        for member in &mut message.exchange.members {
            if let State::Pending(call) = &member.state {
                let result = message.dispatcher.run_on(&mut *self.node, interrupt, call);
                member.state = State::Finished(outcome(result));
            }
        }
        message.exchange.reply()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_messages_run_no_code_and_mine_one_block() {
        let dispatcher = Arc::new(Dispatcher::new());
        let brief = |text: &str| LocalMessage::new(dispatcher.clone(), text.as_bytes()).is_brief();
        let call = |method: &str, params: &str| {
            alloc::format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{params}]}}"#)
        };
        for method in ["eth_blockNumber", "eth_getBalance", "eth_sendRawTransaction", "evm_mine", "nothing"] {
            assert!(brief(&call(method, "")), "{method}");
        }
        for method in ["eth_call", "eth_estimateGas", "eth_getLogs", "debug_traceTransaction", "evm_revert"] {
            assert!(!brief(&call(method, "")), "{method}");
        }
        assert!(!brief(&call("evm_mine", r#"{"blocks":9}"#)));
        let balance = call("eth_getBalance", "");
        assert!(brief(&alloc::format!("[{balance},{balance}]")));
        assert!(!brief(&alloc::format!("[{balance},{balance},{balance}]")));
    }
}
