//! Tags of the chain in Bitcoin's blocks, watched for a while: their share by class, foreign ones, lag, dated work.

use std::time::Duration;

use rootlight::light::bitcoin::{BitcoinReport, BitcoinVerdict, TagCounts};
use rootlight_limits::unix_time::unix_time;
use rootlight_node::light::LightService;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::plan::DoctorPlan;
use super::report::{DoctorStep, StepOutcome, StepSubject};

/// Longest wait for a verdict that holds: coinbases come after headers, and uncles after those.
const SETTLE: Duration = Duration::from_secs(30);

/// Interval between two looks.
const LOOK: Duration = Duration::from_millis(200);

/// Most samples that are kept: one for each Bitcoin block of two weeks.
const MAX_SAMPLES: usize = 2_016;

/// The evidence of Bitcoin's chain up to one of its blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TagSample {
    /// In seconds since 1970.
    at: u64,
    bitcoin_height: u32,
    verdict: &'static str,
    /// Of the newest 72 Bitcoin blocks.
    #[serde(flatten)]
    tags: TagCounts,
    /// Bitcoin blocks by which the newest parent is behind.
    lag: Option<u32>,
    /// Bitcoin blocks that the headers reach back.
    judged: u32,
    /// Least dated work of a suffix, in hundredths of a percent of Bitcoin's.
    dated_basis_points: Option<u64>,
    /// Of the newest 72 and 288 Bitcoin blocks those that commit to the chain.
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

    /// The same at another time is no news.
    fn is_news(&self, last: &Self) -> bool {
        Self { at: last.at, ..self.clone() } != *last
    }
}

/// Waits for the verdict, and watches what follows.
pub(super) async fn watch(
    plan: &DoctorPlan,
    source: &str,
    service: &LightService,
    until: Instant,
) -> DoctorStep {
    let started = Instant::now();
    let settled = until.min(started.checked_add(SETTLE).unwrap_or(started));
    let mut reason = "no source has shown Bitcoin's chain".to_owned();
    let (mut samples, mut end) = (Vec::<TagSample>::new(), None);
    loop {
        let follower = service.bitcoin();
        if let Some((report, follower)) =
            follower.as_ref().and_then(|follower| Some((follower.report()?, follower)))
        {
            let at = unix_time().saturating_sub(plan.behind);
            let sample = TagSample::of(report, follower.chain().tip().height, at);
            if end.is_none() {
                // Until the verdict is there, what is seen says nothing of the chain.
                samples.clear();
            }
            if samples.last().is_none_or(|last| sample.is_news(last)) && samples.len() < MAX_SAMPLES {
                samples.push(sample);
            }
            reason = report.verdict.to_string();
            if report.verdict == BitcoinVerdict::Held || Instant::now() >= settled {
                end = end.or_else(|| Instant::now().checked_add(plan.watch));
            }
        }
        let now = Instant::now();
        if end.map_or(now >= settled, |end| now >= end) {
            return step(source, started, &samples, &reason);
        }
        sleep(LOOK).await;
    }
}

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

const HELP: &str = "look at the steps of Bitcoin's sources: one that offers coinbases is needed; docs/trust/bitcoin.md says what \
                    each verdict means. If the sources work and the verdict stays, the report is worth an issue";
