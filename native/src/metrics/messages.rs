//! How long messages take, by method.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};

use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use rootlight::rpc::methods;

use super::called::{Called, called};

/// Upper bounds of the buckets, in seconds. Look-ups take some microseconds, and a message at most a minute.
const BUCKETS: [f64; 12] =
    [0.000_05, 0.000_1, 0.000_25, 0.001, 0.002_5, 0.01, 0.05, 0.25, 1.0, 2.5, 5.0, 30.0];

/// The label of messages with several calls.
const BATCH: &str = "batch";
/// The label of messages whose method does not exist or is not at the beginning.
const OTHER: &str = "other";

/// The values of the label `outcome`: a result, or an error.
const OUTCOMES: [&str; 2] = ["ok", "error"];

type Labels = [(&'static str, &'static str); 2];

/// Makes the histograms of one family.
#[derive(Debug, Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(BUCKETS)
    }
}

/// The labels of all methods, and where the label of a name is.
struct Names {
    /// The methods of the table by name, [`BATCH`] and [`OTHER`].
    labels: Vec<&'static str>,
    /// Names and aliases, sorted, with the place of their label.
    index: Vec<(&'static [u8], usize)>,
}

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let mut labels = vec![BATCH, OTHER];
    let mut index = Vec::new();
    for method in methods() {
        let names = std::iter::once(&method.name).chain(method.aliases);
        index.extend(names.map(|name| (name.as_bytes(), labels.len())));
        labels.push(method.name);
    }
    index.sort_unstable();
    Names { labels, index }
});

/// The place of the label of a message.
pub(super) fn place(message: &[u8]) -> usize {
    NAMES.place(message)
}

impl Names {
    /// The place of the label of a message.
    fn place(&self, message: &[u8]) -> usize {
        match called(message) {
            Called::Batch => 0,
            Called::Unknown => 1,
            Called::Method(name) => {
                let found = self.index.binary_search_by_key(&name, |(known, _)| known).ok();
                found.and_then(|at| self.index.get(at)).map_or(1, |(_, place)| *place)
            }
        }
    }
}

/// How often a method was called since the start of the process.
#[cfg(feature = "cluster")]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct MethodCount {
    /// The name in the method table; `batch` for messages with several calls, `other` for unknown methods.
    pub(crate) method: &'static str,
    /// Messages that got a result.
    pub(crate) answered: u64,
    /// Messages that got an error.
    pub(crate) failed: u64,
}

/// The times of messages.
#[derive(Debug)]
pub(super) struct Messages {
    family: Family<Labels, Histogram, Buckets>,
    /// The histograms of each label, by outcome. A method that nobody calls has none.
    histograms: Vec<[OnceLock<Histogram>; 2]>,
    /// The number of messages in each: the library does not tell it.
    counts: Vec<[AtomicU64; 2]>,
    /// Messages that are being answered.
    pub(super) in_flight: Gauge,
}

impl Messages {
    /// Adds the metrics to a registry.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let (family, in_flight) = (Family::new_with_constructor(Buckets), Gauge::default());
        let help = "Time from the receipt of a message to its answer, in seconds, by method: batch for several calls, \
                    other for unknown methods";
        registry.register("rpc_duration_seconds", help, family.clone());
        registry.register("rpc_in_flight", "Messages that are being answered", in_flight.clone());
        let histograms = NAMES.labels.iter().map(|_| Default::default()).collect();
        let counts = NAMES.labels.iter().map(|_| Default::default()).collect();
        Self { family, histograms, counts, in_flight }
    }

    /// Records the time of a message with the label at this place.
    pub(super) fn observe(&self, place: usize, failed: bool, seconds: f64) {
        let outcome = usize::from(failed);
        let slot = self.histograms.get(place).and_then(|of| of.get(outcome));
        let count = self.counts.get(place).and_then(|of| of.get(outcome));
        let (Some(slot), Some(count), Some(method), Some(outcome)) =
            (slot, count, NAMES.labels.get(place), OUTCOMES.get(outcome))
        else {
            return;
        };
        let labels = [("method", *method), ("outcome", *outcome)];
        slot.get_or_init(|| self.family.get_or_create_owned(&labels)).observe(seconds);
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The labels that messages had, with the number of those that got a result, and of those that got an error.
    #[cfg(feature = "cluster")]
    pub(super) fn counts(&self) -> Vec<MethodCount> {
        let each = NAMES.labels.iter().zip(&self.counts).map(|(method, [answered, failed])| MethodCount {
            method,
            answered: answered.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
        });
        each.filter(|count| count.answered > 0 || count.failed > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_of_a_message_is_the_name_in_the_method_table() {
        for (message, label) in [
            (r#"{"method":"eth_call"}"#, "eth_call"),
            (r#"{"method":"eth_call2"}"#, OTHER),
            (r#"{"method":""}"#, OTHER),
            ("[]", BATCH),
            ("{", OTHER),
        ] {
            assert_eq!(NAMES.labels[NAMES.place(message.as_bytes())], label, "{message}");
        }
        let aliased = methods().find(|method| !method.aliases.is_empty()).unwrap();
        let message = format!(r#"{{"method":"{}"}}"#, aliased.aliases[0]);
        assert_eq!(NAMES.labels[NAMES.place(message.as_bytes())], aliased.name);
    }
}
