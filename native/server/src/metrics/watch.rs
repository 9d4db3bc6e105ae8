//! Measures how long messages take.

use std::sync::Arc;
use std::time::Instant;

use rootlight::rpc::Message;

use super::messages::place;
use super::recorded::Metrics;
use crate::service::HeldReply;

/// The measurement of one message. Dropping it ends the measurement; without [`Self::end`] no time is recorded.
#[derive(Debug)]
pub(crate) struct Watch {
    metrics: Arc<Metrics>,
    place: usize,
    since: Instant,
}

impl Watch {
    /// Measures a message that began to be read at `since`.
    pub(crate) fn start(metrics: &Arc<Metrics>, message: &Message, since: Instant) -> Self {
        metrics.messages.in_flight.inc();
        Self { metrics: metrics.clone(), place: place(message), since }
    }

    /// Records the time of a message that was answered.
    pub(crate) fn end(self, answered: &HeldReply) {
        let failed =
            answered.reply.as_ref().is_some_and(|reply| reply.is_unusable() || reply.failed().is_some());
        self.metrics.messages.observe(self.place, failed, self.since.elapsed().as_secs_f64());
    }

    /// Records the time of a message that got an error without reaching the service.
    pub(crate) fn refused(self) {
        self.metrics.messages.observe(self.place, true, self.since.elapsed().as_secs_f64());
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.metrics.messages.in_flight.dec();
    }
}
