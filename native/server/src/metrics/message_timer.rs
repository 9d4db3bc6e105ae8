//! Measures how long messages take.

use std::sync::Arc;
use std::time::Instant;

use rootlight::rpc::Message;

use super::counters::Metrics;
use super::messages::label_index;
use crate::service::ReservedReply;

/// The measurement of one message. Dropping it ends the measurement; without [`Self::end`] no time is recorded.
#[derive(Debug)]
pub(crate) struct MessageTimer {
    metrics: Arc<Metrics>,
    label_index: usize,
    since: Instant,
}

impl MessageTimer {
    /// Measures a message that began to be read at `since`.
    pub(crate) fn start(metrics: &Arc<Metrics>, message: &Message, since: Instant) -> Self {
        metrics.messages.in_flight.inc();
        Self { metrics: metrics.clone(), label_index: label_index(message), since }
    }

    /// Records the time of a message that was answered.
    pub(crate) fn end(self, answered: &ReservedReply) {
        let failed =
            answered.reply.as_ref().is_some_and(|reply| reply.is_unusable() || reply.failed().is_some());
        self.metrics.messages.observe(self.label_index, failed, self.since.elapsed().as_secs_f64());
    }

    /// Records the time of a message that got an error without reaching the service.
    pub(crate) fn refused(self) {
        self.metrics.messages.observe(self.label_index, true, self.since.elapsed().as_secs_f64());
    }
}

impl Drop for MessageTimer {
    fn drop(&mut self) {
        self.metrics.messages.in_flight.dec();
    }
}
