//! Metrics that are counted when an event happens. Those that are read when a monitor asks for them are in `sample.rs`.

use std::fmt;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use super::messages::{Messages, MethodCount};
use super::rejected::{Rejection, Responses};

/// The prefix of the names of all metrics of this program.
pub(super) const PREFIX: &str = "rootlight";

/// Upper bounds of the buckets of verification times, in seconds.
const VERIFICATION: [f64; 8] = [0.000_1, 0.000_5, 0.002, 0.01, 0.05, 0.2, 1.0, 5.0];

/// The purpose for which a response of an upstream is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifiedKind {
    /// The answer to a client's message.
    Answers,
    /// Synchronization.
    Headers,
}

/// How a request to an upstream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamOutcome {
    /// With a result, which is still to be verified.
    Result,
    /// With an error of the upstream, or a response that is not JSON-RPC.
    Error,
    /// Without a response.
    Silence,
}

impl UpstreamOutcome {
    const fn label(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Error => "error",
            Self::Silence => "silence",
        }
    }
}

/// The counters of a server and its service.
pub struct Metrics {
    /// The metrics with their names and help texts, which share their values with the fields below.
    pub(super) registry: Registry,
    /// Times of messages, by method.
    pub(crate) messages: Messages,
    /// HTTP responses, and refused requests.
    responses: Responses,
    /// Bytes read from clients.
    pub(crate) received: Counter,
    /// Bytes written to clients.
    pub(crate) sent: Counter,
    /// Open connections that are not WebSockets.
    pub(crate) connections: Gauge,
    /// Open WebSocket connections.
    pub(crate) websockets: Gauge,
    /// Open subscriptions of all WebSockets.
    pub(crate) subscriptions: Gauge,
    /// Notifications handed to connections.
    pub(crate) notified: Counter,
    /// Notifications that could not be sent; the connection is closed then.
    pub(crate) dropped: Counter,
    /// Messages of light clients answered from what was proven before.
    pub from_cache: Counter,
    /// Messages of light clients for which upstreams were asked.
    pub from_upstreams: Counter,
    /// Rounds of requests that were sent to a second backend as well.
    pub hedged: Counter,
    /// Hedged rounds that the second backend answered first.
    pub hedges_won: Counter,
    /// Times of verification, and numbers of verified responses, for [`VerifiedKind::Answers`] and then
    /// [`VerifiedKind::Headers`].
    verification: [Histogram; 2],
    verified: [Counter; 2],
    /// Requests to upstreams, by the index of the upstream and the outcome.
    upstreams: Family<Vec<(&'static str, String)>, Counter>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix(PREFIX);
        let (messages, responses) = (Messages::new(&mut registry), Responses::new(&mut registry));
        let (verification, verified) = verifications(&mut registry);
        let upstreams =
            registered(&mut registry, "upstream_requests", "Requests to upstreams, by how they ended");
        let (notified, dropped) =
            outcomes(&mut registry, "notifications", "Notifications", ["sent", "dropped"]);
        let (from_cache, from_upstreams) = outcomes(
            &mut registry,
            "light_messages",
            "Messages of a light client, by whether upstreams were asked",
            ["cache", "upstreams"],
        );
        Self {
            // Rust evaluates these fields in the order in which they are written here, which is that of the metrics in the text.
            received: registered(
                &mut registry,
                "received_bytes",
                "Bytes read from clients, without those of TLS",
            ),
            sent: registered(&mut registry, "sent_bytes", "Bytes written to clients, without those of TLS"),
            hedged: registered(
                &mut registry,
                "hedged_requests",
                "Requests that were sent to a second backend, because the first was slower than usual",
            ),
            hedges_won: registered(
                &mut registry,
                "hedges_won",
                "Requests that the second backend answered first",
            ),
            connections: registered(&mut registry, "connections", "Open connections that are not WebSockets"),
            websockets: registered(&mut registry, "websockets", "Open WebSocket connections"),
            subscriptions: registered(&mut registry, "subscriptions", "Open subscriptions"),
            messages,
            responses,
            notified,
            dropped,
            from_cache,
            from_upstreams,
            verification,
            verified,
            upstreams,
            registry,
        }
    }
}

/// Times and numbers of verified responses, for [`VerifiedKind::Answers`] and [`VerifiedKind::Headers`].
fn verifications(registry: &mut Registry) -> ([Histogram; 2], [Counter; 2]) {
    let kinds = ["answers", "headers"].map(|kind| [("kind", kind)]);
    let times = Family::new_with_constructor((|| Histogram::new(VERIFICATION)) as fn() -> Histogram);
    let help = "Time to verify the responses of upstreams for one step of a message or of synchronization, in seconds";
    registry.register("verification_seconds", help, times.clone());
    let verified = Family::<[(&'static str, &'static str); 1], Counter>::default();
    let help = "Responses of upstreams whose proofs were checked; upstream_lies counts those that no honest upstream \
                gives";
    registry.register("verified_responses", help, verified.clone());
    let [answers, headers] = &kinds;
    let both = [answers, headers];
    (
        both.map(|labels| times.get_or_create_owned(labels)),
        both.map(|labels| verified.get_or_create_owned(labels)),
    )
}

impl Metrics {
    /// How often each method was called.
    pub fn methods(&self) -> Vec<MethodCount> {
        self.messages.counts()
    }

    /// Counts an HTTP response.
    pub(crate) fn responded(&self, status: u16) {
        self.responses.count(status);
    }

    /// Counts a refusal that is not an HTTP response.
    pub(crate) fn rejected(&self, rejection: Rejection) {
        self.responses.reject(rejection);
    }

    /// Counts a number of responses that were verified together, and the time that this took.
    pub fn verified(&self, kind: VerifiedKind, responses: usize, time: Duration) {
        let [answers, headers] = &self.verification;
        let [of_answers, of_headers] = &self.verified;
        let (histogram, counter) = match kind {
            VerifiedKind::Answers => (answers, of_answers),
            VerifiedKind::Headers => (headers, of_headers),
        };
        histogram.observe(time.as_secs_f64());
        counter.inc_by(responses as u64);
    }

    /// Counts a request to the upstream with this index. The command line names all upstreams, so that there are few labels.
    pub fn asked(&self, upstream: usize, outcome: UpstreamOutcome) {
        let labels = vec![("upstream", upstream.to_string()), ("outcome", outcome.label().to_owned())];
        self.upstreams.get_or_create_owned(&labels).inc();
    }
}

/// Makes a metric and adds it to a registry. The registry and the returned metric share one value.
pub fn registered<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Registers counters with their names and texts.
pub fn register_counters<const N: usize>(registry: &mut Registry, counters: [(&str, &str, &Counter); N]) {
    for (name, help, counter) in counters {
        registry.register(name, help, counter.clone());
    }
}

/// Makes two counters with one name, which differ in the label `outcome`.
fn outcomes(
    registry: &mut Registry,
    name: &str,
    help: &str,
    [one, other]: [&'static str; 2],
) -> (Counter, Counter) {
    let family: Family<[(&'static str, &'static str); 1], Counter> = registered(registry, name, help);
    let of = |outcome| family.get_or_create_owned(&[("outcome", outcome)]);
    (of(one), of(other))
}

/// Adds one to a gauge until the value is dropped.
#[derive(Debug)]
pub struct GaugeGuard(Gauge);

impl GaugeGuard {
    pub(crate) fn one(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
