//! Metrics of JSON-RPC messages: how long they take, by method, and how many are being answered.

use std::ptr::from_ref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::time::Instant;

use alloy_primitives::map::HashMap;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use rootlight::rpc::{Message, Reply};

use crate::methods::methods;

/// Upper bounds of the buckets, in seconds. Look-ups take some microseconds, and a message at most a minute.
const BUCKETS: [f64; 12] =
    [0.000_05, 0.000_1, 0.000_25, 0.001, 0.002_5, 0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 30.0];

/// The label of batches; its index in [`LABELS`] is 0.
const BATCH: &str = "batch";
/// The label of messages whose method does not exist; its index in [`LABELS`] is 1.
const OTHER: &str = "other";

/// The values of the label `outcome`: a result, or an error.
const OUTCOMES: [&str; 2] = ["ok", "error"];

/// The labels of a histogram: method and outcome.
type Labels = [(&'static str, &'static str); 2];

/// Makes the histograms of one family.
#[derive(Debug, Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(BUCKETS)
    }
}

/// The labels: [`BATCH`], [`OTHER`] and the methods of the table by name. Static, because the table never changes.
static LABELS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut names: Vec<&'static str> = methods().map(|method| method.name).collect();
    names.sort_unstable();
    [BATCH, OTHER].into_iter().chain(names).collect()
});

/// The position of each method's label, by the address of its row.
static POSITIONS: LazyLock<HashMap<usize, usize>> = LazyLock::new(|| {
    let label_index = |name: &str| LABELS.iter().position(|label| *label == name);
    methods().filter_map(|method| Some((from_ref(method).addr(), label_index(method.name)?))).collect()
});

/// The index in [`LABELS`] of a message's label.
fn label_index(message: &Message) -> usize {
    if message.is_batch() {
        return 0;
    }
    let row = message.calls().next().and_then(|call| call.row);
    row.and_then(|row| POSITIONS.get(&from_ref(row).addr()).copied()).unwrap_or(1)
}

/// How often a method was called since the start of the server.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct MethodCount {
    /// The name in the method table; `batch` for messages with several calls, `other` for unknown methods.
    pub method: &'static str,
    /// Messages that got a result.
    pub answered: u64,
    /// Messages that got an error.
    pub failed: u64,
}

/// The times of messages.
#[derive(Debug)]
pub(crate) struct Messages {
    family: Family<Labels, Histogram, Buckets>,
    /// The histograms of each label, by outcome. A method that was never called has none.
    histograms: Vec<[OnceLock<Histogram>; 2]>,
    /// The number of messages in each histogram, because the library offers no way to read it.
    counts: Vec<[AtomicU64; 2]>,
    /// Messages that are being answered.
    in_flight: Gauge,
}

impl Messages {
    /// Adds the metrics to a registry.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let (family, in_flight) = (Family::new_with_constructor(Buckets), Gauge::default());
        let help = "Time from the receipt of a message to its answer, in seconds, by method: batch for several calls, \
                    other for unknown methods";
        registry.register("rpc_duration_seconds", help, family.clone());
        registry.register("rpc_in_flight", "Messages that are being answered", in_flight.clone());
        let histograms = LABELS.iter().map(|_| Default::default()).collect();
        let counts = LABELS.iter().map(|_| Default::default()).collect();
        Self { family, histograms, counts, in_flight }
    }

    /// Begins to measure a message, from the time `since` at which its reading began.
    pub(crate) fn start(&self, message: &Message, since: Instant) -> MessageTimer<'_> {
        self.in_flight.inc();
        MessageTimer { messages: self, label_index: label_index(message), since }
    }

    /// Records the time of a message with this label.
    fn observe(&self, label_index: usize, failed: bool, seconds: f64) {
        let outcome = usize::from(failed);
        let slot = self.histograms.get(label_index).and_then(|of| of.get(outcome));
        let count = self.counts.get(label_index).and_then(|of| of.get(outcome));
        let (Some(slot), Some(count), Some(method), Some(outcome)) =
            (slot, count, LABELS.get(label_index), OUTCOMES.get(outcome))
        else {
            return;
        };
        let labels = [("method", *method), ("outcome", *outcome)];
        slot.get_or_init(|| self.family.get_or_create_owned(&labels)).observe(seconds);
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of messages for each label that at least one message had.
    pub(super) fn counts(&self) -> Vec<MethodCount> {
        let each = LABELS.iter().zip(&self.counts).map(|(method, [answered, failed])| MethodCount {
            method,
            answered: answered.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
        });
        each.filter(|count| count.answered > 0 || count.failed > 0).collect()
    }
}

/// The measurement of one message. Dropping it ends the measurement; without [`Self::end`] no time is recorded.
#[derive(Debug)]
pub(crate) struct MessageTimer<'a> {
    messages: &'a Messages,
    label_index: usize,
    since: Instant,
}

impl MessageTimer<'_> {
    /// Records the time of a message that was answered, also if nothing is sent.
    pub(crate) fn end(self, reply: Option<&Reply>) {
        self.record(reply.is_some_and(Reply::is_error));
    }

    /// Records the time of a message that got an error without reaching the service.
    pub(crate) fn refused(self) {
        self.record(true);
    }

    fn record(&self, failed: bool) {
        self.messages.observe(self.label_index, failed, self.since.elapsed().as_secs_f64());
    }
}

impl Drop for MessageTimer<'_> {
    fn drop(&mut self) {
        self.messages.in_flight.dec();
    }
}

#[cfg(test)]
mod tests {
    use rootlight::rpc::RpcError;

    use super::*;
    use crate::metrics::Metrics;
    use crate::service::{INTERNAL_ERROR, LIMIT_EXCEEDED, ReservedReply, TIMED_OUT, read};

    #[test]
    fn the_label_of_a_message_is_the_name_in_the_method_table() {
        let label = |message: &str| LABELS[label_index(&read(message.as_bytes()))];
        for (message, expected) in [
            (r#"{"method":"eth_call"}"#, "eth_call"),
            (r#"{"method":"eth_\u0063all"}"#, "eth_call"),
            (r#"{"params":[{"method":"no"},"method"],"id":"a\"b:","method":"eth_chainId"}"#, "eth_chainId"),
            (r#"{"method":"eth_call2"}"#, OTHER),
            (r#"{"method":""}"#, OTHER),
            (r#"{"params":["method","eth_call"]}"#, OTHER),
            ("[]", BATCH),
            (r#"[{"method":"eth_call"}]"#, BATCH),
            ("{", OTHER),
        ] {
            assert_eq!(label(message), expected, "{message}");
        }
        for method in methods() {
            for name in [method.name].iter().chain(method.aliases) {
                assert_eq!(label(&format!(r#"{{"method":"{name}"}}"#)), method.name);
            }
        }
    }

    /// How many messages got a result and how many an error, after one message.
    fn counted(message: &str, answer: impl FnOnce(Message) -> ReservedReply) -> (u64, u64) {
        let (metrics, message) = (Metrics::default(), read(message.as_bytes()));
        let timer = metrics.messages.start(&message, Instant::now());
        timer.end(answer(message).reply.as_ref());
        let [ref count] = metrics.methods()[..] else { panic!("one message") };
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
