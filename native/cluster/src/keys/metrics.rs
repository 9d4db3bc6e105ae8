//! Metrics of keys and quotas on many machines.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Where a key was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupOutcome {
    /// In the memory of the front end.
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
    /// A lease, without asking the store.
    Lease,
    /// The store.
    Store,
    /// The front end, because the store had refused as much a moment ago.
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
    calls: Counter,
    leased: Counter,
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
        registry.register("store_calls", "Questions to the store about limits", self.calls.clone());
        registry.register("leases", "Leases that the store gave", self.leased.clone());
        registry.register("front_ends", "Front ends that share the limits", self.front_ends.clone());
        let help = "Messages whose usage was counted for no key, because too many keys were used";
        registry.register("unattributed_messages", help, self.unattributed.clone());
        registry.register("unwritten_keys", "Keys whose usage is not written yet", self.unwritten.clone());
        let help = "Times that changes of keys were read from the database";
        registry.register("polls", help, self.polls.clone());
    }

    pub(super) fn lookup(&self, outcome: LookupOutcome) {
        self.lookups.get_or_create_owned(&[("level", outcome.label())]).inc();
    }

    pub(super) fn decided(&self, by: Decision) {
        self.messages.get_or_create_owned(&[("by", by.label())]).inc();
    }

    pub(super) fn called(&self, leased: bool) {
        self.calls.inc();
        if leased {
            self.leased.inc();
        }
    }

    pub(super) fn share(&self, front_ends: u32) {
        self.front_ends.set(front_ends.into());
    }

    pub(super) fn unattributed(&self) {
        self.unattributed.inc();
    }

    pub(super) fn unwritten(&self, keys: usize) {
        self.unwritten.set(i64::try_from(keys).unwrap_or(i64::MAX));
    }

    pub(super) fn polled(&self) {
        self.polls.inc();
    }

    /// Times that changes of keys were read from the database.
    pub fn polls(&self) -> u64 {
        self.polls.get()
    }

    /// Look-ups that ended so.
    pub fn lookups(&self, outcome: LookupOutcome) -> u64 {
        self.lookups.get_or_create_owned(&[("level", outcome.label())]).get()
    }

    /// Messages that were decided so.
    pub fn decisions(&self, by: Decision) -> u64 {
        self.messages.get_or_create_owned(&[("by", by.label())]).get()
    }

    /// Questions to the store about limits.
    pub fn store_calls(&self) -> u64 {
        self.calls.get()
    }

    /// Front ends that share the limits, as far as is known.
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
        metrics.lookup(LookupOutcome::Memory);
        metrics.decided(Decision::Fallback);
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [r#"keys_lookups_total{level="memory"} 1"#, r#"keys_messages_total{by="fallback"} 1"#] {
            assert!(text.contains(line), "{text}");
        }
    }
}
