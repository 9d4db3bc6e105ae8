//! Measures how long messages take.

use std::time::Instant;

use rootlight::rpc::{Message, Reply};

use super::counters::Metrics;
use super::messages::label_index;
use crate::service::ReservedReply;

/// The measurement of one message. Dropping it ends the measurement; without [`Self::end`] no time is recorded.
#[derive(Debug)]
pub(crate) struct MessageTimer<'a> {
    metrics: &'a Metrics,
    label_index: usize,
    since: Instant,
}

impl<'a> MessageTimer<'a> {
    /// Measures a message that began to be read at `since`.
    pub(crate) fn start(metrics: &'a Metrics, message: &Message, since: Instant) -> Self {
        metrics.messages.in_flight.inc();
        Self { metrics, label_index: label_index(message), since }
    }

    /// Records the time of a message that was answered.
    pub(crate) fn end(self, answered: &ReservedReply) {
        let failed = answered.reply.as_ref().is_some_and(Reply::is_error);
        self.metrics.messages.observe(self.label_index, failed, self.since.elapsed().as_secs_f64());
    }

    /// Records the time of a message that got an error without reaching the service.
    pub(crate) fn refused(self) {
        self.metrics.messages.observe(self.label_index, true, self.since.elapsed().as_secs_f64());
    }
}

impl Drop for MessageTimer<'_> {
    fn drop(&mut self) {
        self.metrics.messages.in_flight.dec();
    }
}

#[cfg(test)]
mod tests {
    use rootlight::rpc::RpcError;

    use super::*;
    use crate::service::{INTERNAL_ERROR, LIMIT_EXCEEDED, TIMED_OUT, read};

    /// How many messages got a result and how many an error, after one message.
    fn counted(message: &str, answer: impl FnOnce(Message) -> ReservedReply) -> (u64, u64) {
        let (metrics, message) = (Metrics::default(), read(message.as_bytes()));
        let timer = MessageTimer::start(&metrics, &message, Instant::now());
        timer.end(&answer(message));
        let [ref count] = metrics.messages.counts()[..] else { panic!("one message") };
        (count.answered, count.failed)
    }

    #[test]
    fn a_message_that_gets_one_error_counts_as_failed_whoever_refuses_it() {
        let (single, notification) = (r#"{"id":1,"method":"eth_chainId"}"#, r#"{"method":"eth_chainId"}"#);
        let batch = format!("[{single},{single}]");
        for code in [LIMIT_EXCEEDED, INTERNAL_ERROR, TIMED_OUT] {
            let by_host = |message: Message| ReservedReply::failed(message.single_id(), code, "refused");
            assert_eq!(counted(single, by_host), (0, 1), "{code}");
            assert_eq!(counted(&batch, by_host), (0, 1), "{code}");
            assert_eq!(counted(notification, by_host), (1, 0), "no error is sent");
        }
        let by_method =
            |message: Message| ReservedReply::of(Reply::to(message, vec![Err(RpcError::MethodNotFound)]));
        assert_eq!(counted(r#"{"id":1,"method":"eth_none"}"#, by_method), (0, 1));
        assert_eq!(counted(single, by_method), (0, 1));
        assert_eq!(counted("{", |message| ReservedReply::of(Reply::to(message, Vec::new()))), (0, 1));
        let null = || Ok(serde_json::value::RawValue::NULL.to_owned());
        assert_eq!(counted(single, |message| ReservedReply::of(Reply::to(message, vec![null()]))), (1, 0));
        let mixed = vec![null(), Err(RpcError::MethodNotFound)];
        assert_eq!(counted(&batch, |message| ReservedReply::of(Reply::to(message, mixed))), (1, 0));
    }
}
