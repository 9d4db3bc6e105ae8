//! A local chain as a host uses it: [`LocalClient`], and how a [`MessageProgress`] runs on a chain. Messages that only read run
//! in parallel on snapshots; the others run one at a time on the node.

use alloc::{boxed::Box, sync::Arc};

use super::{
    caller::Caller,
    envelope::Outcome,
    error::RpcError,
    log_stream::{self, LogStream, ReplyOrLogs},
    message::{Dispatcher, Message},
    method::{BRIEF_COST, Effect, Failure, HandlerResult, Runs},
    progress::MessageProgress,
    reply::Reply,
    request::Request,
};
use crate::{
    engine::{HostInput, LocalNode, Refusal, Snapshot, Stop, View},
    types::Asker,
};

/// How a host answers a message to a local chain.
///
/// ```text
/// let message = MessageProgress::read_from(&dispatcher, caller, bytes);
/// if message.reads_only() { message.read(&*snapshot, now, &interrupt) }      // any number at a time
/// else { client.answer(message, host_input, &interrupt); snapshot = client.snapshot() }
/// ```
impl MessageProgress {
    /// Reads a message of a caller.
    pub fn read_from(dispatcher: &Dispatcher, caller: Arc<Caller>, message: &[u8]) -> Self {
        let message = Message::read(message, dispatcher, caller.batch_limit());
        Self::new(caller, message)
    }

    /// Whether no call of the message changes anything, so that a snapshot can answer it.
    pub fn reads_only(&self) -> bool {
        !self.pending_requests().any(|request| request.row.writes() || request.row.uses_filters())
    }

    /// Whether a call of the message may change the chain or its pool. A change of filters does not count.
    pub fn changes_chain(&self) -> bool {
        self.pending_requests().any(|request| request.row.writes())
    }

    /// Recovers the senders of the message's signed transactions together, if there are several, before the message runs on the
    /// node: recovery takes most of the time of a transfer, and the node is free for other messages meanwhile.
    #[cfg(feature = "dev")]
    pub fn recover(&self, chain_id: u64, recovery: &dyn crate::exec::Recovery) {
        use super::signed::{SIGNED, transaction};

        let sends = self.pending_requests().filter(|request| request.row.sends());
        let (mut senders_of, mut transactions) = (alloc::vec![], alloc::vec![]);
        for request in sends {
            // If the bytes do not decode, the handler returns the error later.
            if let Ok(sent) = request.params().data(0).and_then(|raw| transaction(&raw)) {
                senders_of.push(request);
                transactions.push(sent);
            }
        }
        if transactions.len() < 2 {
            return;
        }
        let senders = recovery.senders(&transactions, chain_id);
        for ((request, sent), sender) in senders_of.into_iter().zip(transactions).zip(senders) {
            if let Some(sender) = sender {
                // Keeps both as if the handler had parsed the parameter, so that it does not recover the sender again.
                let _ = request.params().once(SIGNED, || Ok::<_, core::convert::Infallible>((sent, sender)));
            }
        }
    }

    /// Whether each request only reads and can be interrupted soon, so that [`Self::begin`] is worth trying: look-ups
    /// and calls. Proofs cannot be interrupted soon, the logs of one block may take milliseconds to write, and traces run
    /// transactions again.
    pub fn may_be_short(&self) -> bool {
        let is_short = |request: &Request| request.row.cost <= BRIEF_COST || request.row.runs == Runs::Call;
        self.reads_only() && self.pending_requests().all(is_short)
    }

    /// Runs the requests of a message that only reads, inline ([`Policy::is_inline`](crate::engine::Policy::is_inline)),
    /// until `interrupt` returns `true`, which it must do from then on. Returns the answer if all requests are finished.
    /// Otherwise [`Self::read`] with the same snapshot and time runs the others and returns the answer.
    pub fn begin(
        &mut self,
        snapshot: &dyn Snapshot,
        now: u64,
        interrupt: &dyn Fn() -> bool,
    ) -> Option<Reply> {
        let view = snapshot.inline_view(self.asker(), now, interrupt);
        let ended = self.begin_each(interrupt, |request| outcome(request.run(&*view, None, now)));
        ended.then(|| self.reply())
    }

    /// Answers a message that only reads. `now` is in seconds since 1970; long runs stop when `interrupt` returns
    /// `true`.
    pub fn read(mut self, snapshot: &dyn Snapshot, now: u64, interrupt: &dyn Fn() -> bool) -> Reply {
        let asker = self.asker();
        self.read_on(&*snapshot.view_of(asker, now, interrupt), now, interrupt)
    }

    /// As [`Self::read`], for hosts that can send an answer piece by piece: logs that are too long for one text become
    /// such an answer instead of an error.
    pub fn read_or_stream(
        mut self,
        snapshot: &dyn Snapshot,
        now: u64,
        interrupt: &dyn Fn() -> bool,
    ) -> ReplyOrLogs {
        let view = snapshot.view_of(self.asker(), now, interrupt);
        // Read before the run: afterwards the request is finished, and its parameters are gone.
        let call = self.streamed_call();
        let reply = self.read_on(&*view, now, interrupt);
        let call = call.filter(|_| log_stream::is_too_long(&reply));
        let stream = call.and_then(|(values, start)| LogStream::open(&*view, &values, start));
        stream.map_or(ReplyOrLogs::Reply(reply), ReplyOrLogs::Logs)
    }

    fn asker(&self) -> Asker {
        self.caller().owner().asker
    }

    /// Runs the unfinished requests on a view, and returns the answer.
    fn read_on(&mut self, view: &dyn View, now: u64, interrupt: &dyn Fn() -> bool) -> Reply {
        self.run_each(interrupt, |request| outcome(request.run(view, None, now)));
        self.reply()
    }
}

/// The outcome of a request on a local chain, and its effect.
fn outcome(result: HandlerResult) -> (Outcome, Option<Effect>) {
    let error = match result {
        Ok(done) => return (Ok(done.value), done.effect),
        Err(Failure::Error(error)) => error,
        Err(Failure::Stop(Stop::Refused(refusal))) => RpcError::Refused(refusal),
        // A local chain has no upstream, so that data that it does not have cannot be fetched.
        Err(Failure::Stop(Stop::Missing(facts))) => RpcError::Refused(Refusal::Pruned(facts)),
    };
    (Err(error), None)
}

/// The node of a local chain, with the method table.
pub struct LocalClient {
    dispatcher: Arc<Dispatcher>,
    node: Box<dyn LocalNode>,
}

impl core::fmt::Debug for LocalClient {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LocalClient").finish_non_exhaustive()
    }
}

impl LocalClient {
    /// A client of a node, with the methods of the core.
    pub fn new(node: Box<dyn LocalNode>) -> Self {
        Self { dispatcher: Arc::default(), node }
    }

    /// The client, with the methods of this dispatcher instead of those of the core.
    #[must_use]
    pub fn with_dispatcher(self, dispatcher: Arc<Dispatcher>) -> Self {
        Self { dispatcher, ..self }
    }

    /// The dispatcher, with which hosts parse messages while the node runs another one.
    pub fn dispatcher(&self) -> Arc<Dispatcher> {
        self.dispatcher.clone()
    }

    /// Reads a message that comes from the host itself.
    pub fn open(&self, message: &[u8]) -> MessageProgress {
        MessageProgress::read_from(&self.dispatcher, Arc::default(), message)
    }

    /// The present chain, for reading.
    pub fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.node.snapshot()
    }

    /// The node, for changes that no message makes: ticks of the clock, imported blocks.
    pub fn node(&mut self) -> &mut dyn LocalNode {
        &mut *self.node
    }

    /// Ends the subscriptions of a caller whose connection is closed.
    pub fn disconnect(&mut self, caller: &Caller) {
        caller.close();
        self.node.filters().close(caller.connection());
    }

    /// Continues with another node: a copy of this one from before a change that could not be stored.
    pub fn replace_node(&mut self, node: Box<dyn LocalNode>) {
        self.node = node;
    }

    /// Answers a message. Its calls run in order, and each sees the changes of those before it.
    pub fn answer(
        &mut self,
        mut message: MessageProgress,
        host_input: HostInput,
        interrupt: &dyn Fn() -> bool,
    ) -> Reply {
        self.node.begin(host_input);
        let node = &mut *self.node;
        node.set_owner(message.caller().owner());
        message.run_each(interrupt, |request| outcome(request.run_on(node, interrupt)));
        message.reply()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{envelope::BATCH_LIMIT, progress::interrupted};

    fn read(message: &str) -> MessageProgress {
        let dispatcher = Dispatcher::default();
        let message = Message::read(message.as_bytes(), &dispatcher, BATCH_LIMIT);
        MessageProgress::new(Arc::default(), message)
    }

    /// A batch of four calls with the ids 1 to 4.
    fn four_calls() -> MessageProgress {
        let calls = [1, 2, 3, 4].map(|id| alloc::format!(r#"{{"id":{id},"method":"eth_chainId"}}"#));
        read(&alloc::format!("[{}]", calls.join(",")))
    }

    /// The calls of a batch share one time limit, because nothing else runs on the node meanwhile.
    #[test]
    fn the_calls_of_a_batch_share_one_time_limit() {
        let mut progress = four_calls();
        let ran = core::cell::Cell::new(0);
        progress.run_each(&|| ran.get() == 2, |_| {
            ran.set(ran.get() + 1);
            (Ok(serde_json::value::to_raw_value(&ran.get()).unwrap()), None)
        });
        let answer = progress.reply().into_text().unwrap();
        assert_eq!(ran.get(), 2);
        assert!(answer.contains(r#""id":2,"result":2"#), "{answer}");
        assert_eq!(answer.matches("-32011").count(), 2, "{answer}");
    }

    #[test]
    fn the_answers_of_a_batch_share_one_size_limit() {
        let calls = [r#"{"id":1,"method":"eth_chainId"}"#; 50].join(",");
        let message = alloc::format!("[{calls}]");
        let mut progress = read(&message);
        let large = "x".repeat(4 << 20);
        progress.run_each(&|| false, |_| (Ok(serde_json::value::to_raw_value(&large).unwrap()), None));
        let answer = progress.reply().into_text().unwrap();
        assert!(answer.len() < 9 << 20, "{}", answer.len());
        assert_eq!(answer.matches("Response size limit of 10485760 bytes exceeded").count(), 48);
        let data = alloy_primitives::Bytes::from(alloc::vec![1; 3 << 20]);
        let mut progress = read(&alloc::format!("[{calls}]"));
        progress.run_each(&|| false, |_| {
            (Err(RpcError::Reverted { reason: None, data: data.clone(), code: -32015 }), None)
        });
        assert!(progress.reply().into_text().unwrap().len() < 9 << 20, "reverts count too");
    }

    /// A second run does not repeat what an interrupted inline run has finished.
    #[test]
    fn an_attempt_leaves_the_interrupted_call_and_those_after_it() {
        let mut progress = four_calls();
        let ran = core::cell::Cell::new(0);
        let count = || {
            ran.set(ran.get() + 1);
            serde_json::value::to_raw_value(&ran.get()).unwrap()
        };
        let ended = progress
            .begin_each(&|| false, |_| (if ran.get() == 2 { Err(interrupted()) } else { Ok(count()) }, None));
        assert!(!ended);
        assert_eq!(progress.pending_requests().count(), 2);
        assert!(!progress.begin_each(&|| true, |_| (Ok(count()), None)));
        // A result during which the interrupt came may be partial.
        let partial = serde_json::value::to_raw_value("partial").unwrap();
        let is_due = core::cell::Cell::new(false);
        assert!(!progress.begin_each(&|| is_due.get(), |_| {
            is_due.set(true);
            (Ok(partial.clone()), None)
        }));
        assert_eq!(progress.pending_requests().count(), 2);
        progress.run_each(&|| false, |_| (Ok(count()), None));
        let answer = progress.reply().into_text().unwrap();
        let expected =
            [1, 2, 3, 4].map(|id| alloc::format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{id}}}"#));
        assert_eq!(answer, alloc::format!("[{}]", expected.join(",")));
    }

    /// Logs that are too long for one text are left to a run that can send them in pieces.
    #[test]
    fn an_attempt_leaves_calls_with_long_results() {
        let message = r#"{"id":1,"method":"eth_getLogs","params":[{}]}"#;
        let mut progress = read(message);
        assert!(
            !progress.begin_each(&|| false, |_| (Err(RpcError::LogsTooLong { max: 1, fits: None }), None))
        );
        let long = "x".repeat(64 << 10);
        assert!(
            !progress.begin_each(&|| false, |_| (Ok(serde_json::value::to_raw_value(&long).unwrap()), None))
        );
        assert!(progress.streamed_call().is_some());
    }

    #[cfg(all(feature = "dev", feature = "light"))]
    #[test]
    fn traces_proofs_logs_and_filters_are_never_tried() {
        let dispatcher = Dispatcher::default();
        let short = |method: &str| {
            let text = alloc::format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[1]}}"#);
            MessageProgress::read_from(&dispatcher, Arc::default(), text.as_bytes()).may_be_short()
        };
        assert!(["eth_call", "eth_estimateGas", "eth_getBalance", "net_version"].into_iter().all(short));
        let long = [
            "eth_getLogs",
            "eth_createAccessList",
            "trace_filter",
            "trace_block",
            "rootlight_getWitness",
            "debug_traceTransaction",
            "eth_newFilter",
            "eth_sendRawTransaction",
        ];
        assert!(!long.into_iter().any(short));
        let proof = br#"{"id":1,"method":"eth_getProof","params":["0x1",[]]}"#;
        assert!(!MessageProgress::read_from(&dispatcher, Arc::default(), proof).may_be_short());
    }

    const SENDS: [&str; 2] = ["eth_sendRawTransaction", "eth_sendTransaction"];

    #[test]
    fn brief_messages_run_no_code_and_mine_at_most_one_block() {
        let dispatcher = Dispatcher::default();
        let brief =
            |text: &str| MessageProgress::read_from(&dispatcher, Arc::default(), text.as_bytes()).is_brief();
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
