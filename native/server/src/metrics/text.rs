//! Writes the metrics as text: the counters, a sample of the present state, and the metrics of the service.

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use rootlight::light::bitcoin::{BitcoinVerdict, TagCounts};

use super::counters::{Metrics, PREFIX};
use super::sample::MetricsSample;
use crate::service::{BitcoinHealth, UpstreamHealth};

/// The content type of the text that `render` writes: OpenMetrics, which Prometheus reads since version 2.5.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The most API keys with metrics of their own, those with the most requests; the others are counted together, as `other`. A
/// monitor stores one series for each label.
const KEYS: usize = 200;

/// The names of all verdicts that Bitcoin's chain can give on the Rootstock chain.
const VERDICTS: [&str; 4] = ["held", "weak", "contested", "unavailable"];

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge>;
type LabelledCounters = Family<Labels, Counter>;

/// All metrics of a server, the state of a sample, and the metrics that `more` adds for the service.
///
/// # Errors
/// None in practice: writing to a text does not fail.
pub(crate) fn render(
    metrics: &Metrics,
    sample: &MetricsSample,
    more: impl FnOnce(&mut Registry),
) -> Result<String, fmt::Error> {
    let mut text = String::new();
    encode_registry(&mut text, &metrics.registry)?;
    let mut registry = Registry::with_prefix(PREFIX);
    chain(&mut registry, sample);
    upstreams(&mut registry, &sample.chain_status.upstreams);
    if let Some(health) = &sample.chain_status.bitcoin {
        bitcoin(&mut registry, health, sample.now);
    }
    keys(&mut registry, sample);
    more(&mut registry);
    let build = Gauges::default();
    build.get_or_create_owned(&vec![("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
    registry.register("build_info", "The version of the program", build);
    let uptime = ConstGauge::new(sample.uptime);
    registry.register("uptime_seconds", "Time since the start of the server", uptime);
    encode_registry(&mut text, &registry)?;
    let mut process = Registry::with_prefix("process");
    let help = "Start of the server, in seconds since 1970";
    process.register("start_time_seconds", help, gauge(sample.started));
    if let Some(bytes) = sample.resident {
        process.register("resident_memory_bytes", "Resident memory", gauge(bytes));
    }
    encode_registry(&mut text, &process)?;
    encode_eof(&mut text)?;
    Ok(text)
}

fn gauge(number: impl Into<u64>) -> ConstGauge<i64> {
    ConstGauge::new(whole(number.into()))
}

/// A number in the integer type of the metrics.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The state of the chain.
fn chain(registry: &mut Registry, sample: &MetricsSample) {
    let chain_status = &sample.chain_status;
    let help = "Whether requests about the head can be answered (1) or not (0)";
    registry.register("ready", help, gauge(sample.health.ready));
    let help = "Whether the newest known block is reached (1) or not (0)";
    registry.register("synced", help, gauge(chain_status.synced));
    if let Some((number, time)) = chain_status.head {
        registry.register("head_block", "Number of the head", gauge(number));
        let help = "Time since the timestamp of the head";
        registry.register("head_age_seconds", help, gauge(sample.now.saturating_sub(time)));
    }
    if let Some(number) = sample.health.provable_block {
        let help = "Number of the newest block whose state is on the node's disk";
        registry.register("provable_block", help, gauge(number));
    }
    if let Some(number) = chain_status.target {
        registry.register("target_block", "Number of the highest block that is known", gauge(number));
    }
}

/// The state of each upstream.
fn upstreams(registry: &mut Registry, upstreams: &[UpstreamHealth]) {
    if upstreams.is_empty() {
        return;
    }
    let (up, head, demerits, lies) =
        (Gauges::default(), Gauges::default(), Gauges::default(), LabelledCounters::default());
    let latency = Family::<Labels, Gauge<f64, AtomicU64>>::default();
    for (index, upstream) in upstreams.iter().enumerate() {
        let labels = vec![("upstream", index.to_string())];
        let named = vec![("upstream", index.to_string()), ("name", upstream.name.clone())];
        up.get_or_create_owned(&named).set(i64::from(upstream.healthy));
        if let Some(number) = upstream.announced {
            head.get_or_create_owned(&labels).set(whole(number));
        }
        latency.get_or_create_owned(&labels).set(upstream.latency.as_secs_f64());
        demerits.get_or_create_owned(&labels).set(upstream.demerits.into());
        lies.get_or_create_owned(&labels).inc_by(upstream.lies.into());
    }
    registry.register("upstream_up", "Whether an upstream is asked (1) or left alone for a while (0)", up);
    registry.register("upstream_head_block", "The height that an upstream announced last", head);
    registry.register("upstream_latency_seconds", "Smoothed time of an exchange with an upstream", latency);
    registry.register("upstream_demerits", "Demerits of an upstream; good exchanges remove them", demerits);
    registry.register("upstream_lies", "Responses that no honest upstream gives", lies);
}

/// Bitcoin's chain, and what it says of the Rootstock chain.
fn bitcoin(registry: &mut Registry, health: &BitcoinHealth, now: u64) {
    let report = health.report.as_ref();
    let (verdicts, tags) = (Gauges::default(), Gauges::default());
    let verdict = report.map_or(BitcoinVerdict::Unavailable, |report| report.verdict);
    for name in VERDICTS {
        let labels = vec![("verdict", name.to_owned())];
        verdicts.get_or_create_owned(&labels).set(i64::from(name == verdict.name()));
    }
    let help = "What Bitcoin says of the chain: 1 for the verdict that holds";
    registry.register("bitcoin_verdict", help, verdicts);
    let help = "Sources of Bitcoin's chain that answered when last asked";
    registry.register("bitcoin_sources_up", help, gauge(health.sources as u64));
    if let Some((height, time)) = health.tip {
        registry.register("bitcoin_tip_block", "Height of Bitcoin's newest block", gauge(height));
        let help = "Time since the time that Bitcoin's newest block states";
        registry.register("bitcoin_tip_age_seconds", help, gauge(now.saturating_sub(u64::from(time))));
    }
    let Some(report) = report else { return };
    // The classes of `rootlight::light::bitcoin::TagClass`.
    let TagCounts { own, kin, foreign, ahead, none, withheld } = report.tags;
    let names = ["own", "kin", "foreign", "ahead", "none", "withheld"];
    for (class, count) in names.into_iter().zip([own, kin, foreign, ahead, none, withheld]) {
        tags.get_or_create_owned(&vec![("class", class.to_owned())]).set(i64::from(count));
    }
    registry.register("bitcoin_tags", "Bitcoin's newest 72 blocks by whose chain they name", tags);
    let help = "How many of Bitcoin's newest 72 blocks commit to the chain";
    registry.register("bitcoin_commitments", help, gauge(report.counts.recent));
    let hidden = report.hidden.map_or(0, |hidden| hidden.tags);
    let help = "Tags that agree on a branch that no upstream shows";
    registry.register("bitcoin_hidden_branch_tags", help, gauge(hidden));
}

/// The usage of each API key.
fn keys(registry: &mut Registry, sample: &MetricsSample) {
    if sample.keys.is_empty() {
        return;
    }
    let mut all: Vec<_> = sample.keys.iter().collect();
    all.sort_by_key(|(_, usage)| std::cmp::Reverse(usage.requests));
    let (requests, weight, refused) =
        (LabelledCounters::default(), LabelledCounters::default(), LabelledCounters::default());
    for (label_index, (id, usage)) in all.into_iter().enumerate() {
        let id = if label_index < KEYS { id.as_str() } else { "other" };
        let labels = vec![("key", id.to_owned())];
        requests.get_or_create_owned(&labels).inc_by(usage.requests);
        weight.get_or_create_owned(&labels).inc_by(usage.weight);
        refused.get_or_create_owned(&labels).inc_by(usage.refused);
    }
    registry.register("key_requests", "Requests of an API key, by its id", requests);
    registry.register("key_weight", "Weight of the requests of an API key, by its id", weight);
    registry.register("key_refused", "Messages of an API key that a limit refused, by its id", refused);
    registry.register("keys", "API keys that exist", gauge(sample.keys.len() as u64));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample::Started;
    use super::*;
    use crate::keys::KeyUsage;
    use crate::service::{Health, ServiceStatus};

    fn text(chain_status: ServiceStatus, keys: Vec<(String, KeyUsage)>) -> String {
        let health = Health { ready: true, ..Health::default() };
        let sample = MetricsSample::new(Started::now(), health, chain_status, keys);
        render(&Metrics::default(), &sample, |_| {}).unwrap()
    }

    #[test]
    fn the_state_of_chain_and_upstreams_is_in_the_text() {
        let upstream = UpstreamHealth {
            name: "https://node.example".into(),
            healthy: false,
            announced: Some(7),
            latency: Duration::from_millis(250),
            demerits: 3,
            lies: 2,
        };
        let chain_status = ServiceStatus {
            head: Some((5, 0)),
            target: Some(9),
            synced: false,
            upstreams: vec![upstream],
            bitcoin: None,
        };
        let text = text(chain_status, Vec::new());
        assert!(!text.contains("bitcoin"), "{text}");
        for line in [
            "rootlight_ready 1\n",
            "rootlight_synced 0\n",
            "rootlight_head_block 5\n",
            "rootlight_target_block 9\n",
            "rootlight_upstream_up{upstream=\"0\",name=\"https://node.example\"} 0\n",
            "rootlight_upstream_head_block{upstream=\"0\"} 7\n",
            "rootlight_upstream_latency_seconds{upstream=\"0\"} 0.25\n",
            "rootlight_upstream_lies_total{upstream=\"0\"} 2\n",
            "rootlight_build_info{version=\"",
            "process_start_time_seconds ",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1);
    }

    #[test]
    fn before_bitcoin_has_judged_the_chain_the_verdict_is_unavailable() {
        let health = BitcoinHealth { tip: Some((840_000, 1)), sources: 2, report: None };
        let text = text(ServiceStatus { bitcoin: Some(health), ..ServiceStatus::default() }, Vec::new());
        for line in [
            "rootlight_bitcoin_verdict{verdict=\"unavailable\"} 1\n",
            "rootlight_bitcoin_verdict{verdict=\"held\"} 0\n",
            "rootlight_bitcoin_sources_up 2\n",
            "rootlight_bitcoin_tip_block 840000\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains("bitcoin_tags") && !text.contains("hidden"), "{text}");
    }

    #[test]
    fn many_keys_make_a_bounded_number_of_lines() {
        let usage = |requests| KeyUsage { requests, ..KeyUsage::default() };
        let keys: Vec<_> = (0..1_000_u64).map(|n| (format!("key{n:05}"), usage(n))).collect();
        let text = text(ServiceStatus::default(), keys);
        assert_eq!(text.matches("rootlight_key_requests_total{").count(), KEYS + 1);
        assert!(text.contains("rootlight_key_requests_total{key=\"key00999\"} 999\n"));
        let rest: u64 = (0..800).sum();
        assert!(text.contains(&format!("rootlight_key_requests_total{{key=\"other\"}} {rest}\n")));
        assert!(text.contains("rootlight_keys 1000\n"));
    }
}
