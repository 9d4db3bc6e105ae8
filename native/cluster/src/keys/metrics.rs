//! Metrics of keys and quotas of a front end, in a service on many machines.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Where a key was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupOutcome {
    /// In the cache of the front end.
    Memory,
    /// In the store.
    Store,
    /// In PostgreSQL.
    Database,
    /// Nowhere: there is no such key.
    Absent,
    /// The look-up failed.
    Failed,
    /// The look-up was not made, because too many others were going on.
    Refused,
}

impl LookupOutcome {
    const fn label(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Store => "store",
            Self::Database => "database",
            Self::Absent => "absent",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// The source of the decision about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A lease: a part of the limits that the store has given to the front end in advance.
    Lease,
    /// The store.
    Store,
    /// The front end, which repeated a refusal of the store.
    Refusal,
    /// The front end, because the store did not answer.
    Fallback,
}

impl Decision {
    const fn label(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Store => "store",
            Self::Refusal => "refusal",
            Self::Fallback => "fallback",
        }
    }
}

/// Counters by one label.
type Labelled = Family<[(&'static str, &'static str); 1], Counter>;

/// Counters of keys and quotas of a front end.
#[derive(Debug, Clone, Default)]
pub struct ServiceMetrics {
    lookups: Labelled,
    messages: Labelled,
    questions: Counter,
    leases: Counter,
    front_ends: Gauge,
    unattributed: Counter,
    unwritten: Gauge,
    polls: Counter,
}

impl ServiceMetrics {
    /// Adds the metrics to those that are served.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("keys");
        registry.register("lookups", "Look-ups of keys by where they were found", self.lookups.clone());
        let help = "Messages with limits by who decided about them";
        registry.register("messages", help, self.messages.clone());
        registry.register("store_calls", "Questions to the store about limits", self.questions.clone());
        registry.register("leases", "Leases that the store gave", self.leases.clone());
        registry.register("front_ends", "Front ends that share the limits", self.front_ends.clone());
        let help = "Messages whose usage was counted for no key, because too many keys were used";
        registry.register("unattributed_messages", help, self.unattributed.clone());
        registry.register("unwritten_keys", "Keys whose usage is not written yet", self.unwritten.clone());
        let help = "Times that changes of keys were read from the database";
        registry.register("polls", help, self.polls.clone());
    }

    pub(super) fn count_lookup(&self, outcome: LookupOutcome) {
        self.lookups.get_or_create_owned(&[("level", outcome.label())]).inc();
    }

    pub(super) fn count_decision(&self, by: Decision) {
        self.messages.get_or_create_owned(&[("by", by.label())]).inc();
    }

    /// Counts a question to the store about limits; `leased`: the store gave a lease.
    pub(super) fn count_question(&self, leased: bool) {
        self.questions.inc();
        if leased {
            self.leases.inc();
        }
    }

    pub(super) fn set_front_ends(&self, front_ends: u32) {
        self.front_ends.set(front_ends.into());
    }

    /// Counts a message whose usage is counted for no key.
    pub(super) fn count_unattributed(&self) {
        self.unattributed.inc();
    }

    /// Sets the number of keys whose usage is not written yet.
    pub(super) fn set_unwritten(&self, keys: usize) {
        self.unwritten.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    /// Counts an answer of the database to a question for changes of keys.
    pub(super) fn count_poll(&self) {
        self.polls.inc();
    }

    /// Number of times that changes of keys were read from the database.
    pub fn polls(&self) -> u64 {
        self.polls.get()
    }

    /// Number of look-ups with this outcome.
    pub fn lookups(&self, outcome: LookupOutcome) -> u64 {
        self.lookups.get_or_create_owned(&[("level", outcome.label())]).get()
    }

    /// Number of messages with this decision.
    pub fn decisions(&self, by: Decision) -> u64 {
        self.messages.get_or_create_owned(&[("by", by.label())]).get()
    }

    /// Number of questions to the store about limits.
    pub fn store_calls(&self) -> u64 {
        self.questions.get()
    }

    /// Number of front ends that share the limits, as far as this one knows.
    pub fn front_ends(&self) -> u32 {
        u32::try_from(self.front_ends.get()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_the_words_of_the_documentation() {
        let metrics = ServiceMetrics::default();
        metrics.count_lookup(LookupOutcome::Memory);
        metrics.count_decision(Decision::Fallback);
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [r#"keys_lookups_total{level="memory"} 1"#, r#"keys_messages_total{by="fallback"} 1"#] {
            assert!(text.contains(line), "{text}");
        }
    }
}
