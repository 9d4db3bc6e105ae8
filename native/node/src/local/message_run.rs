//! The run of one message of a caller of a local chain: it reads a snapshot, or changes the node under a lock. A short message first
//! tries to run on the thread of its connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use rootlight::engine::Snapshot;
use rootlight::rpc::{Caller, Message, MessageProgress, Reply, ReplyOrLogs};
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::priority::{Pauses, SHORT_JSON};
use rootlight_limits::unix_time::unix_time;

use super::inline_runs::{InlineRun, InlineRuns};
use super::state::{LocalState, NoChange, Writer, changed, host_input, lock, publish};
use crate::recovery::AllProcessors;

/// The run of one message: its progress, and everything else that the run needs.
pub(super) struct MessageRun {
    pub(super) message: MessageProgress,
    /// Whether the message's text is short, unlike one with long parameters, whose hashing alone takes as long as a run.
    pub(super) has_short_text: bool,
    parts: Arc<LocalState>,
    /// On a fork, the caller and a copy of the message, because the message may have to run several times until all its data is
    /// fetched.
    again: Option<(Arc<Caller>, Message)>,
    /// The snapshot and the time (seconds since 1970) with which an inline run has run a part of the message.
    begun: Option<(Arc<dyn Snapshot>, u64)>,
}

impl MessageRun {
    pub(super) fn new(caller: &Arc<Caller>, message: Message, parts: Arc<LocalState>) -> Self {
        let has_short_text = message.bytes() <= SHORT_JSON;
        let again = parts.options.fork.as_ref().map(|_| (caller.clone(), message.clone()));
        let message = MessageProgress::new(caller.clone(), message);
        Self { message, has_short_text, parts, again, begun: None }
    }

    /// Answers the message on the calling thread if that takes no longer than moving the message to another thread. A brief
    /// message is answered if it needs no disk and does not wait for another writer. Another short message that only reads
    /// runs for as long as inline runs may take ([`InlineRuns`]). Returns the run if it is not finished.
    pub(super) fn begin(
        mut self,
        inline_runs: &InlineRuns,
        caller_id: CallerId,
    ) -> Result<Result<Reply, NoChange>, Self> {
        // On a fork, a message may wait for data of another network.
        if !self.has_short_text || self.again.is_some() {
            return Err(self);
        }
        let parts = self.parts.clone();
        if self.message.is_brief() {
            let pauses = parts.options.limits.work().pauses();
            if self.message.reads_only() {
                return Ok(Ok(self.read(&pauses, MessageProgress::read)));
            }
            return match parts.writer.try_lock() {
                Ok(mut writer) if writer.persist.is_none() => Ok(self.write(&mut writer, &pauses)),
                _ => Err(self),
            };
        }
        if !self.message.may_be_short() || !inline_runs.allows(caller_id) {
            return Err(self);
        }
        let (view, now) = (parts.view(), unix_time());
        let inline_run = InlineRun::begin();
        let reply = self.message.begin(&*view, now, &|| inline_runs.is_over(&inline_run));
        inline_runs.note_duration(caller_id, &inline_run);
        self.begun = Some((view, now));
        reply.map(Ok).ok_or(self)
    }

    /// Answers the message on the calling thread, which must be one for blocking work.
    pub(super) fn run(self, pauses: &Pauses<'_>) -> Result<ReplyOrLogs, NoChange> {
        if self.message.reads_only() {
            if let (Some(again), Some(fork)) = (&self.again, &self.parts.options.fork) {
                return Ok(ReplyOrLogs::Reply(
                    fork.run(|| self.with(again).read(pauses, MessageProgress::read))?,
                ));
            }
            return Ok(if self.message.caller().takes_pieces() {
                self.read(pauses, MessageProgress::read_or_stream)
            } else {
                ReplyOrLogs::Reply(self.read(pauses, MessageProgress::read))
            });
        }
        if self.message.changes_chain() {
            // The senders are recovered before the lock, on all processors.
            self.message.recover(self.parts.chain_id, &AllProcessors);
        }
        let parts = self.parts.clone();
        let mut writer = lock(&parts.writer);
        self.write(&mut writer, pauses).map(ReplyOrLogs::Reply)
    }

    /// A run like this one for the message as it was received, before a run has changed anything.
    fn with(&self, (caller, message): &(Arc<Caller>, Message)) -> Self {
        Self {
            message: MessageProgress::new(caller.clone(), message.clone()),
            has_short_text: self.has_short_text,
            parts: self.parts.clone(),
            again: None,
            begun: None,
        }
    }

    /// Runs the message on a snapshot.
    fn read<T>(
        mut self,
        pauses: &Pauses<'_>,
        read: impl FnOnce(MessageProgress, &dyn Snapshot, u64, &dyn Fn() -> bool) -> T,
    ) -> T {
        let (view, now) = self.begun.take().unwrap_or_else(|| (self.parts.view(), unix_time()));
        let (started, limit) = (Instant::now(), self.parts.options.run_timeout);
        let interrupt = || {
            pauses.pause();
            started.elapsed() > limit
        };
        read(self.message, &*view, now, &interrupt)
    }

    /// Runs the message on the node, and publishes the node's new snapshot.
    fn write(self, writer: &mut Writer, pauses: &Pauses<'_>) -> Result<Reply, NoChange> {
        let Self { message, parts, again, .. } = self;
        let changes_chain = message.changes_chain();
        let limit = parts.options.run_timeout;
        let mut message = Some(message);
        let reply = writer.change(
            &parts.writer_status,
            parts.options.blocks(),
            parts.options.fork.as_deref(),
            |client| {
                // The time limit does not include the wait for other writers or for missing data.
                let started = Instant::now();
                let interrupt = || {
                    pauses.pause();
                    started.elapsed() > limit || parts.writer_status.stopping.load(Ordering::Relaxed)
                };
                let received =
                    || again.clone().map(|(caller, message)| MessageProgress::new(caller, message));
                // The first run takes the message; a second run, which only a fork needs, takes the copy.
                let message = message.take().or_else(received)?;
                Some(client.answer(message, host_input(&parts.entropy), &interrupt))
            },
        )?;
        let reply = reply.unwrap_or_else(|| unreachable!("the message ran"));
        publish(&parts.snapshot, &writer.client);
        if changes_chain {
            changed(&parts.changes);
        }
        Ok(reply)
    }
}
