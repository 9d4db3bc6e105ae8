//! Headers, head and state, by a light client.

use std::time::Duration;

use alloy_primitives::U256;
use rootlight::light::MAX_AGE;
use rootlight_node::light::{LightOptions, LightService};
use rootlight_upstream::{SharedUpstream, UpstreamError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::plan::DoctorPlan;
use super::report::{DoctorStep, StepOutcome, StepSubject};
use crate::service_call::{ask, other_chain, quantity};

/// The Bridge contract, which has an account on every network.
const BRIDGE: &str = "0x0000000000000000000000000000000001000006";

/// Interval between two looks at the progress of the headers.
const LOOK: Duration = Duration::from_millis(200);

/// Longest wait for one answer of the light client.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Tries of the proof of state, and the pause between them: the head moves, and peers are replaced.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(2);

/// Whether an upstream answers, and for this chain.
pub(super) async fn chain_id(plan: &DoctorPlan, upstream: &SharedUpstream) -> DoctorStep {
    let started = Instant::now();
    let id = plan.network.chain_id;
    let (outcome, seen) = match other_chain(upstream, id).await {
        Ok(None) => (StepOutcome::Ok, format!("chain id {id}")),
        Ok(Some(other)) => (StepOutcome::Failed, other),
        // Peers are not asked for it, so a recording of them has none.
        Err(error @ UpstreamError::NotRecorded(_)) => (StepOutcome::Skipped, error.to_string()),
        Err(error) => (StepOutcome::Failed, error.to_string()),
    };
    DoctorStep::new(StepSubject::ChainId, upstream.name(), started, outcome, seen)
        .advised("look at the URL, its key and the network; --network names the chain that is expected")
}

/// Reads the chain of some upstreams, until a moment at the latest.
pub(super) async fn read(
    plan: &DoctorPlan,
    source: &str,
    upstreams: Vec<SharedUpstream>,
    until: Instant,
) -> Vec<DoctorStep> {
    let recorded = upstreams.iter().all(|upstream| upstream.name().starts_with("replay:"));
    // Blocks of a recording are old, and regtest mines when it is told to.
    let max_age = if recorded || plan.is_idle { 0 } else { MAX_AGE };
    let limits = plan.limits.clone();
    let options =
        LightOptions { max_age, message_timeout: ANSWER_TIMEOUT, limits, ..LightOptions::default() };
    let service = LightService::start(plan.network.clone(), plan.start, upstreams, options);
    let reader = ChainReader { source, service, until };
    let headers = reader.headers().await;
    if headers.outcome != StepOutcome::Ok {
        let skip = |subject| DoctorStep::skipped(subject, source, "no header was verified");
        return vec![headers, skip(StepSubject::Head), skip(StepSubject::State)];
    }
    let (head, number) = reader.head().await;
    let state = match number {
        Some(number) => reader.state(&number).await,
        None => DoctorStep::skipped(StepSubject::State, source, "no head was verified"),
    };
    vec![headers, head, state]
}

struct ChainReader<'a> {
    source: &'a str,
    service: LightService,
    until: Instant,
}

impl ChainReader<'_> {
    async fn ask(&self, method: &str, params: Value) -> Result<Value, String> {
        ask(&self.service, method, params).await
    }

    /// The progress of verification.
    async fn status(&self) -> Value {
        self.ask("rootlight_syncStatus", json!([])).await.unwrap_or_default()
    }

    async fn upstreams(&self) -> Value {
        self.ask("rootlight_upstreams", json!([])).await.unwrap_or_default()
    }

    /// Waits until the head is reached, synchronization stops, or the time is over.
    async fn headers(&self) -> DoctorStep {
        let started = Instant::now();
        let reach = async {
            loop {
                let status = self.status().await;
                if status["synced"] == true || !status["fault"].is_null() {
                    return;
                }
                sleep(LOOK).await;
            }
        };
        let _ = timeout_at(self.until, reach).await;
        let status = self.status().await;
        let upstreams = self.upstreams().await;
        let [first, last, highest] = ["startingBlock", "currentBlock", "highestBlock"]
            .map(|name| quantity(&status[name]).unwrap_or_default());
        let verified = last.saturating_sub(first);
        let outcome = match status["synced"] == true || verified > 0 {
            true => StepOutcome::Ok,
            false => StepOutcome::Failed,
        };
        let mut seen = match verified {
            0 => format!("no header above the start, block {first}"),
            _ => format!("{verified} headers above block {first} verified, with their proofs of work"),
        };
        if last < highest {
            seen.push_str(&format!("; the newest is said to be {highest}"));
        }
        if let Some(fault) = status["fault"].as_str() {
            seen.push_str(&format!("; stopped: {fault}"));
        }
        if outcome == StepOutcome::Failed {
            seen.extend(complaints(&upstreams).map(|text| format!("; {text}")));
        }
        let details = json!({ "sync": status, "upstreams": upstreams });
        DoctorStep::new(StepSubject::Headers, self.source, started, outcome, seen).detailed(details).advised(
            "nobody gave headers that link to the start and have their work: give it more time with --for, name other nodes \
             with --peer or --upstream, and look at --checkpoint if you gave one",
        )
    }

    /// The head as callers get it, and its number.
    async fn head(&self) -> (DoctorStep, Option<String>) {
        let started = Instant::now();
        let (outcome, seen, details) = match self.ask("eth_getBlockByNumber", json!(["latest", false])).await
        {
            Ok(block) => {
                let [number, hash, timestamp] =
                    ["number", "hash", "timestamp"].map(|name| block[name].clone());
                let height = quantity(&number).unwrap_or_default();
                let seen = format!("block {height} {}", hash.as_str().unwrap_or_default());
                (StepOutcome::Ok, seen, json!({ "number": number, "hash": hash, "timestamp": timestamp }))
            }
            Err(error) => (StepOutcome::Failed, error, Value::Null),
        };
        let number = details["number"].as_str().map(str::to_owned);
        let step = DoctorStep::new(StepSubject::Head, self.source, started, outcome, seen).detailed(details).advised(
            "give it more time with --for; on mainnet --checkpoint window starts near the head; a head that is too old means \
             that new blocks are withheld, or that this machine's clock is wrong",
        );
        (step, number)
    }

    /// A balance at the head, proven.
    async fn state(&self, head: &str) -> DoctorStep {
        let started = Instant::now();
        let mut answer = Err(String::new());
        for tried in 0..TRIES {
            if tried > 0 {
                sleep(PAUSE).await;
            }
            // The head that callers get may be another one by now; its state is the one that nodes have.
            let block = if tried == 0 { head } else { "latest" };
            answer = self.ask("eth_getBalance", json!([BRIDGE, block])).await;
            if answer.is_ok() || Instant::now() >= self.until {
                break;
            }
        }
        let (outcome, seen) = match &answer {
            Ok(balance) => {
                let balance: U256 = balance.as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
                (
                    StepOutcome::Ok,
                    format!("the Bridge's balance, {balance} wei, is proven from the state root"),
                )
            }
            Err(error) => (StepOutcome::Failed, error.clone()),
        };
        let details =
            json!({ "account": BRIDGE, "balance": answer.ok(), "upstreams": self.upstreams().await });
        DoctorStep::new(StepSubject::State, self.source, started, outcome, seen).detailed(details).advised(
            "peers: a node with snapshot service is needed, which few have; name one with --peer. Upstreams: the method \
             eth_getProof is needed, which some providers switch off",
        )
    }
}

/// Why upstreams are left alone, and what they were caught with.
fn complaints(upstreams: &Value) -> impl Iterator<Item = String> + '_ {
    let upstreams = upstreams.as_array().into_iter().flatten();
    upstreams.filter_map(|upstream| {
        let name = upstream["name"].as_str().unwrap_or_default();
        let rule = upstream["misbehaviour"].as_array().and_then(|all| all.last()?["rule"].as_str());
        let reason = rule.or_else(|| upstream["resting"].as_str())?;
        Some(format!("{name}: {reason}"))
    })
}
