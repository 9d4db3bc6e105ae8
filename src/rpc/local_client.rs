//! A local chain as a host sees it: messages that only read run beside each other on snapshots, the others one at a
//! time on the node.

use alloc::{boxed::Box, sync::Arc};

use super::{
    dispatch::Dispatcher,
    error::RpcError,
    exchange::{Exchange, State},
    method::{Done, Failure},
    session::Reply,
};
use crate::engine::{Moment, Node, Refusal, Snapshot, Stop};

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
                let result = self.dispatcher.run_on(&mut *self.node, interrupt, call);
                member.state = State::Finished(outcome(result));
            }
        }
        message.exchange.reply()
    }
}
