//! The step of the doctor that watches Bitcoin's evidence for a while: the classes of tags, the lag and the dated work.
//!
//! A tag is the mark of Rootstock in a Bitcoin coinbase. Dated work is the work of headers whose Bitcoin parent is in the
//! Bitcoin chain, and so has a known height.
//!
//! The classes of tags (`rootlight::light::bitcoin::TagClass`): `own` names a block of this chain or a proven uncle; `kin` a block that
//! is not shown, but whose commitments agree with this chain, such as an uncle that no block lists; `foreign` a block of another
//! branch; `ahead` a block far above the head. `none` counts coinbases without a tag that can be compared, `withheld` those that no
//! source has proven.

use std::time::Duration;

use rootlight::light::bitcoin::{BitcoinReport, BitcoinVerdict, TagCounts};
use rootlight_limits::unix_time::unix_time;
use rootlight_node::light::LightService;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::plan::DoctorPlan;
use super::report::{DoctorStep, StepOutcome, StepSubject};

/// Longest wait for the verdict `held`: the client fetches coinbases after headers, and uncles after coinbases.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval between two reads of the evidence.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Most samples of one run: one for each Bitcoin block of two weeks, at ten minutes a block.
const MAX_SAMPLES: usize = 2_016;

/// The evidence of Bitcoin's chain up to one of its blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TagSample {
    /// Time of the sample, in seconds since 1970.
    at: u64,
    bitcoin_height: u32,
    verdict: &'static str,
    /// Tags of the newest 72 Bitcoin blocks, by class (`rootlight::light::bitcoin::TagClass`).
    #[serde(flatten)]
    tags: TagCounts,
    /// Bitcoin blocks by which the newest Bitcoin parent that headers of the chain name is behind Bitcoin's newest block.
    lag: Option<u32>,
    /// Bitcoin blocks of the longest suffix whose dated work could be judged.
    judged: u32,
    /// Least dated work of a suffix of Bitcoin's chain, in hundredths of a percent of Bitcoin's work there.
    dated_basis_points: Option<u64>,
    /// Number of Bitcoin blocks that commit to the chain, among the newest 72 and among the newest 288.
    commitments: [u32; 2],
    /// Tags that agree on a branch that no upstream shows.
    hidden: u32,
}

impl TagSample {
    fn of(report: &BitcoinReport, bitcoin_height: u32, at: u64) -> Self {
        Self {
            at,
            bitcoin_height,
            verdict: report.verdict.name(),
            tags: report.tags,
            lag: report.dated.lag,
            judged: report.dated.judged,
            dated_basis_points: report.dated.lowest.map(|lowest| lowest.basis_points()),
            commitments: [report.counts.recent, report.counts.all],
            hidden: report.hidden.map_or(0, |hidden| hidden.tags),
        }
    }

    /// Whether anything but the time differs from the sample before.
    fn differs(&self, last: &Self) -> bool {
        Self { at: last.at, ..self.clone() } != *last
    }
}

/// Waits for the verdict, and then takes samples for the time of `--watch`.
pub(super) async fn watch(
    plan: &DoctorPlan,
    source: &str,
    service: &LightService,
    until: Instant,
) -> DoctorStep {
    let started = Instant::now();
    let verdict_until = until.min(started.checked_add(VERDICT_TIMEOUT).unwrap_or(started));
    let mut reason = "no source has shown Bitcoin's chain".to_owned();
    // `end` is set once the verdict is there.
    let (mut samples, mut end) = (Vec::<TagSample>::new(), None);
    loop {
        let follower = service.bitcoin();
        if let Some((report, follower)) =
            follower.as_ref().and_then(|follower| Some((follower.report()?, follower)))
        {
            let at = unix_time().saturating_sub(plan.behind);
            let sample = TagSample::of(report, follower.chain().tip().height, at);
            if end.is_none() {
                // A sample from before the verdict does not count, because coinbases and uncles are missing.
                samples.clear();
            }
            if samples.last().is_none_or(|last| sample.differs(last)) && samples.len() < MAX_SAMPLES {
                samples.push(sample);
            }
            reason = report.verdict.to_string();
            if report.verdict == BitcoinVerdict::Held || Instant::now() >= verdict_until {
                end = end.or_else(|| Instant::now().checked_add(plan.watch));
            }
        }
        let now = Instant::now();
        if end.map_or(now >= verdict_until, |end| now >= end) {
            return step(source, started, &samples, &reason);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The step: the last sample, and the extremes of all samples.
fn step(source: &str, started: Instant, samples: &[TagSample], reason: &str) -> DoctorStep {
    let Some(last) = samples.last() else {
        return DoctorStep::new(StepSubject::Tags, source, started, StepOutcome::Failed, reason.to_owned())
            .advised(HELP);
    };
    let most = |of: fn(&TagSample) -> u32| samples.iter().map(of).max().unwrap_or_default();
    let least = |of: fn(&TagSample) -> u32| samples.iter().map(of).min().unwrap_or_default();
    let dated = samples.iter().filter_map(|sample| sample.dated_basis_points).min();
    let lag = samples.iter().filter_map(|sample| sample.lag).max();
    let share = dated.map_or("none".to_owned(), |points| format!("{}.{:02} %", points / 100, points % 100));
    let mut seen = format!(
        "{}: the newest 72 Bitcoin blocks name this chain {} times ({} own, {} kin), another {} times, blocks far ahead {}, \
         nothing {}, {} are not shown; least dated work {share}, greatest lag {}",
        last.verdict,
        last.tags.own.saturating_add(last.tags.kin),
        last.tags.own,
        last.tags.kin,
        last.tags.foreign,
        last.tags.ahead,
        last.tags.none,
        last.tags.withheld,
        lag.map_or("none".to_owned(), |lag| lag.to_string()),
    );
    if samples.len() > 1 {
        seen.push_str(&format!(
            "; in {} samples own {} to {}, kin {} to {}, another at most {}",
            samples.len(),
            least(|one| one.tags.own),
            most(|one| one.tags.own),
            least(|one| one.tags.kin),
            most(|one| one.tags.kin),
            most(|one| one.tags.foreign)
        ));
    }
    let holds = last.verdict == BitcoinVerdict::Held.name();
    if !holds {
        seen.push_str(&format!("; {reason}"));
    }
    let outcome = if holds { StepOutcome::Ok } else { StepOutcome::Failed };
    let details = json!({
        "samples": samples,
        "mostForeign": most(|one| one.tags.foreign),
        "mostHidden": most(|one| one.hidden),
        "greatestLag": lag,
        "leastDatedBasisPoints": dated,
    });
    DoctorStep::new(StepSubject::Tags, source, started, outcome, seen).detailed(details).advised(HELP)
}

/// Advice for a step that failed.
const HELP: &str = "look at the steps of Bitcoin's sources: one that offers coinbases is needed; docs/trust/bitcoin.md says what \
                    each verdict means. If the sources work and the verdict stays, the report is worth an issue";
