//! The steps of the doctor about headers, head and state: each source of the chain gets a light client of its own, which asks
//! no other source.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, U256};
use rootlight::consensus::Checkpoint;
use rootlight::light::MAX_AGE;
use rootlight_node::light::{LightOptions, LightService, LightStart};
use rootlight_upstream::bitcoin::BitcoinSource;
use rootlight_upstream::{SharedUpstream, UpstreamError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use super::plan::DoctorPlan;
use super::report::{DoctorStep, StepOutcome, StepSubject};
use super::tags;
use super::waits::{HeaderProgress, POLL_INTERVAL, Waits};
use crate::balance::sources::{NotedUpstream, SourceNotes, short_name};
use crate::service_call::{ask, other_chain, quantity};

/// The Bridge contract, which has an account on every network.
const BRIDGE: &str = "0x0000000000000000000000000000000001000006";

/// Headers after which a further start is not followed: enough to measure how fast they arrive.
const SAMPLED_HEADERS: u64 = 10_000;

/// Longest wait for one answer of the light client.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// How often the proof of state is requested before the step fails. A later try may succeed, because the head moves and peers
/// are replaced.
const STATE_TRIES: u32 = 5;
/// Pause between two tries.
const STATE_PAUSE: Duration = Duration::from_secs(2);

/// The step that requests an upstream's chain id.
pub(super) async fn chain_id(plan: &DoctorPlan, upstream: &SharedUpstream) -> DoctorStep {
    let started = Instant::now();
    let id = plan.network.chain_id;
    let (outcome, seen) = match other_chain(upstream, id).await {
        Ok(None) => (StepOutcome::Ok, format!("chain id {id}")),
        Ok(Some(other)) => (StepOutcome::Failed, other),
        // The peer-to-peer protocol has no request for the chain id, so a recording of peers has no response.
        Err(error @ UpstreamError::NotRecorded(_)) => (StepOutcome::Skipped, error.to_string()),
        Err(error) => (StepOutcome::Failed, error.to_string()),
    };
    DoctorStep::new(StepSubject::ChainId, upstream.name(), started, outcome, seen)
        .advised("look at the URL, its key and the network; --network names the chain that is expected")
}

/// The chain that some upstreams have shown: the steps of the report about it, and its head.
pub(super) struct ReadChain {
    pub(super) steps: Vec<DoctorStep>,
    pub(super) head: Option<Checkpoint>,
}

/// Reads the chain of some upstreams from each start, until a moment at the latest.
pub(super) async fn read(
    plan: &DoctorPlan,
    source: &str,
    (starts, upstreams): (&[LightStart], Vec<SharedUpstream>),
    until: Instant,
) -> ReadChain {
    let Some((start, others)) = starts.split_first() else {
        return ReadChain { steps: Vec::new(), head: None };
    };
    let reader = ChainReader::new(plan, source, (*start, &plan.bitcoin), upstreams.clone(), until);
    // `u64::MAX`: all headers up to the head.
    let headers = reader.headers(u64::MAX).await;
    if headers.outcome != StepOutcome::Ok {
        let skip = |subject| DoctorStep::skipped(subject, source, "no header was verified");
        let steps = vec![headers, skip(StepSubject::Head), skip(StepSubject::State)];
        return ReadChain { steps, head: None };
    }
    let (head, block) = reader.head().await;
    let state = match block {
        Some(block) => reader.state(&format!("{:#x}", block.number)).await,
        None => DoctorStep::skipped(StepSubject::State, source, "no head was verified"),
    };
    let mut steps = vec![headers, head, state];
    for start in others {
        let other = ChainReader::new(plan, source, (*start, &[]), upstreams.clone(), until);
        steps.push(other.headers(SAMPLED_HEADERS).await);
    }
    if !plan.bitcoin.is_empty() && plan.network.bitcoin.is_some() {
        steps.push(tags::watch(plan, source, &reader.service, until).await);
    }
    ReadChain { steps, head: block }
}

/// The step of one node: whether it proves an account, from a start that other sources have verified.
pub(super) async fn state_server(
    plan: &DoctorPlan,
    upstream: SharedUpstream,
    start: LightStart,
    until: Instant,
) -> DoctorStep {
    let (name, started) = (short_name(upstream.name()), Instant::now());
    let reader = ChainReader::new(plan, &name, (start, &[]), vec![upstream], until);
    let headers = reader.headers(u64::MAX).await;
    let state = match headers.outcome {
        StepOutcome::Ok => reader.state("latest").await,
        _ => headers.clone(),
    };
    let details =
        json!({ "start": start_details(&start), "headers": headers.details, "state": state.details });
    DoctorStep::new(StepSubject::StateServer, &name, started, state.outcome, state.seen).detailed(details).advised(
        "other nodes with snapshot service can be named with --peer ID@HOST:PORT; a node that was just left may admit this \
         address again after a minute",
    )
}

/// The start as the report shows it.
fn start_details(start: &LightStart) -> Value {
    match start {
        LightStart::At(block) => json!({ "kind": "checkpoint", "number": block.number, "hash": block.hash }),
        LightStart::Work(_) => json!({ "kind": "work" }),
        LightStart::Window(_) => json!({ "kind": "window" }),
    }
}

/// A light client of the upstreams of one source.
struct ChainReader<'a> {
    /// The name of the source in the report.
    source: &'a str,
    start: LightStart,
    service: LightService,
    notes: Arc<SourceNotes>,
    until: Instant,
}

impl<'a> ChainReader<'a> {
    fn new(
        plan: &DoctorPlan,
        source: &'a str,
        (start, bitcoin): (LightStart, &[Arc<BitcoinSource>]),
        upstreams: Vec<SharedUpstream>,
        until: Instant,
    ) -> Self {
        let recorded = upstreams.iter().all(|upstream| upstream.name().starts_with("replay:"));
        let notes = Arc::new(SourceNotes::default());
        let noted =
            upstreams.into_iter().map(|upstream| NotedUpstream::wrap(upstream, notes.clone())).collect();
        let options = LightOptions {
            // Blocks of a recording are old, and regtest mines on request only.
            max_age: if recorded || plan.is_idle { 0 } else { MAX_AGE },
            message_timeout: ANSWER_TIMEOUT,
            bitcoin: bitcoin.to_vec(),
            behind: plan.behind,
            limits: plan.limits.clone(),
            ..LightOptions::default()
        };
        let service = LightService::start(plan.network.clone(), start, noted, options);
        Self { source, start, service, notes, until }
    }

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

    /// Waits until the head is reached or `enough` headers are verified, synchronization stops, or the time is over.
    async fn headers(&self, enough: u64) -> DoctorStep {
        let started = Instant::now();
        let mut waits = Waits::default();
        let reach = async {
            loop {
                let (status, upstreams) = (self.status().await, self.upstreams().await);
                let reached = HeaderProgress::read(&status);
                if status["synced"] == true || !status["fault"].is_null() || reached.verified() >= enough {
                    return;
                }
                waits.count(&reached, &upstreams);
                sleep(POLL_INTERVAL).await;
            }
        };
        // The status below says how far the wait has come.
        let _ = timeout_at(self.until, reach).await;
        let (status, upstreams) = (self.status().await, self.upstreams().await);
        let reached = HeaderProgress::read(&status);
        let (verified, bytes) = (reached.verified(), self.notes.bytes());
        let outcome = match status["synced"] == true || verified > 0 {
            true => StepOutcome::Ok,
            false => StepOutcome::Failed,
        };
        let mut seen = match verified {
            0 => format!("no header above the start, block {}", reached.first),
            _ => format!(
                "{verified} headers above block {} verified, with their proofs of work",
                reached.first
            ),
        };
        let kind = start_details(&self.start);
        seen.push_str(&format!(" (start by {}), {bytes} bytes", kind["kind"].as_str().unwrap_or_default()));
        if outcome == StepOutcome::Ok {
            seen.push_str(&waits.words());
        }
        if reached.last < reached.highest {
            seen.push_str(&format!("; the newest is said to be {}", reached.highest));
        }
        match (outcome, status["fault"].as_str()) {
            (StepOutcome::Failed, _) => seen.extend(complaints(&upstreams).map(|text| format!("; {text}"))),
            (_, Some(faults)) => seen.push_str(&format!("; stopped: {faults}")),
            (_, None) => {}
        }
        let details = json!({
            "start": kind, "headers": verified, "bytes": bytes, "waited": waits, "sync": status, "upstreams": upstreams,
        });
        DoctorStep::new(StepSubject::Headers, self.source, started, outcome, seen).detailed(details).advised(
            "no node gave headers that link to the start and have their work: give it more time with --for, name other nodes \
             with --peer or --upstream, and look at --checkpoint if you gave one",
        )
    }

    /// The step of the verified head, as callers of a light client get it.
    async fn head(&self) -> (DoctorStep, Option<Checkpoint>) {
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
        let hash: Option<B256> = details["hash"].as_str().and_then(|hash| hash.parse().ok());
        let block = quantity(&details["number"]).zip(hash);
        let block = block.map(|(number, hash)| Checkpoint { number, hash, total_difficulty: None });
        let step = DoctorStep::new(StepSubject::Head, self.source, started, outcome, seen).detailed(details).advised(
            "give it more time with --for; on mainnet --checkpoint window starts near the head; a head that is too old means \
             that new blocks are withheld, or that this machine's clock is wrong",
        );
        (step, block)
    }

    /// The step that proves a balance at the head.
    async fn state(&self, head: &str) -> DoctorStep {
        let started = Instant::now();
        let mut answer = Err(String::new());
        for tried in 0..STATE_TRIES {
            if tried > 0 {
                sleep(STATE_PAUSE).await;
            }
            // On a later try the head may be another block, and nodes have the state of the newest blocks only.
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

/// For each upstream its latest fault, or why it is not asked for now.
fn complaints(upstreams: &Value) -> impl Iterator<Item = String> + '_ {
    let upstreams = upstreams.as_array().into_iter().flatten();
    upstreams.filter_map(|upstream| {
        let name = upstream["name"].as_str().unwrap_or_default();
        let rule = upstream["misbehaviour"].as_array().and_then(|all| all.last()?["rule"].as_str());
        let reason = rule.or_else(|| upstream["resting"].as_str())?;
        Some(format!("{name}: {reason}"))
    })
}
