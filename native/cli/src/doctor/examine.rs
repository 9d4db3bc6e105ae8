//! Runs the steps of a [`DoctorPlan`]: finds nodes, then reads the chain from peers and from each upstream at the same time, and
//! collects the steps in a [`DoctorReport`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{LocalBoxFuture, join_all};
use rootlight_limits::unix_time::unix_time;
use rootlight_node::light::{LightStart, first_block};
use rootlight_p2p::network::PeerNetwork;
use rootlight_upstream::SharedUpstream;
use rootlight_upstream::p2p::find::{Finder, SlotOptions, start_slots};
use rootlight_upstream::p2p::{Identity, IdentityError, PeerAddress, PeerUpstream, StateNodes};
use rootlight_upstream::record::{RecordError, RecordedUpstream, Recording};
use tokio::time::Instant;

use super::chain::ReadChain;
use super::plan::DoctorPlan;
use super::report::{DialledNode, DoctorReport, DoctorStep, PEERS, StepOutcome, StepSubject, Steps};
use super::{bitcoin, chain, nodes};
use crate::source_args::starts_at_shown_block;

/// Most discovered nodes that the light client of the peers asks at a time.
const SLOTS: usize = 4;

/// Finding nodes takes at most one part in this many of the time, as the help of `--for` says.
const FINDING_SHARE: u32 = 3;

/// Prefix of the folder of an upstream's recording, before its number in the plan.
pub(super) const UPSTREAM: &str = "upstream-";
/// The same for a node that is tried by itself.
pub(super) const STATE_SERVER: &str = "state-server-";
/// The same for a source of Bitcoin's chain.
pub(super) const BITCOIN: &str = "bitcoin-";

/// The file in the folder of a Bitcoin source.
pub(super) const BITCOIN_FILE: &str = "bitcoin.json";

/// The steps of one source, which all sources run at the same time.
type SourceSteps<'a> = LocalBoxFuture<'a, Vec<DoctorStep>>;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// There is no identity to show to nodes.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A recording cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The recording of a source of Bitcoin's chain cannot be written.
    #[error("recording of a Bitcoin source: {0}")]
    Bitcoin(std::io::Error),
}

/// Tries all steps, and calls `on_step` with each. The steps of peers and of the upstreams run at the same time. Must be called
/// inside a runtime.
///
/// # Errors
/// [`DoctorError`]; a step that fails is no error.
pub async fn examine(
    plan: &DoctorPlan,
    on_step: &mut dyn FnMut(&DoctorStep),
) -> Result<DoctorReport, DoctorError> {
    let (started, started_unix) = (Instant::now(), unix_time());
    let after = |time: Duration| started.checked_add(time).unwrap_or(started);
    let until = after(plan.limit);
    let mut steps = Steps { all: Vec::new(), on_step };
    let mut recordings = Recordings { plan, begun: Vec::new() };
    let (mut sources, mut nodes) = (Vec::<SourceSteps<'_>>::new(), Vec::new());
    if let Some(peers) = PeerNetwork::of(&plan.network) {
        let finding = after(plan.limit.checked_div(FINDING_SHARE).unwrap_or_default());
        let (finder, dialled) = nodes::find(plan, peers.id, &identity(plan)?, finding, &mut steps).await;
        nodes = dialled;
        sources.push(by_peers(plan, finder, &nodes, &mut recordings, until)?);
    }
    for (upstream, number) in plan.upstreams.iter().zip(1_u32..) {
        let recorded = recordings.record(&format!("{UPSTREAM}{number}"), vec![upstream.clone()])?;
        sources.push(Box::pin(by_upstream(plan, recorded, until)));
    }
    for (upstream, start) in plan.recorded.iter().cloned() {
        let step = async move { vec![chain::state_server(plan, upstream, start, until).await] };
        sources.push(Box::pin(step));
    }
    sources.push(Box::pin(bitcoin::sources(plan, until)));
    for source in join_all(sources).await {
        source.into_iter().for_each(|step| steps.add(step));
    }
    Ok(DoctorReport {
        version: env!("CARGO_PKG_VERSION"),
        network: plan.network.name.clone(),
        chain_id: plan.network.chain_id,
        checkpoint: plan.checkpoint.clone(),
        started: started_unix,
        milliseconds: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        proven_by: proven_by(&steps.all),
        steps: steps.all,
        nodes,
        recordings: recordings.finish()?,
    })
}

/// An identity towards nodes: a new one for each use, because a node admits one connection of each key.
fn identity(plan: &DoctorPlan) -> Result<Arc<Identity>, IdentityError> {
    let genesis = match plan.starts.first() {
        // A chain of tests may have another block 0 than its network's.
        Some(LightStart::At(checkpoint)) if checkpoint.number == 0 => checkpoint.hash,
        _ => plan.network.genesis_hash,
    };
    let identity = Identity::open(&plan.network, genesis, None)?;
    Ok(Arc::new(identity.within(plan.limits.clone())))
}

/// The steps of reading the chain from peers: from the named nodes and some discovered nodes.
fn by_peers<'a>(
    plan: &'a DoctorPlan,
    finder: Option<Finder>,
    nodes: &[DialledNode],
    recordings: &mut Recordings<'_>,
    until: Instant,
) -> Result<SourceSteps<'a>, DoctorError> {
    let connected = nodes.iter().filter(|node| node.error.is_none()).count();
    if connected == 0 {
        let skip = |subject| DoctorStep::skipped(subject, PEERS, "no node shook hands");
        let skipped = [StepSubject::Headers, StepSubject::Head, StepSubject::State].map(skip);
        return Ok(Box::pin(async move { skipped.into() }));
    }
    let (identity, network, nodes) =
        (identity(plan)?, Arc::new(plan.network.clone()), Arc::new(StateNodes::default()));
    let dial = |peer: &PeerAddress| -> SharedUpstream {
        Arc::new(PeerUpstream::new(identity.clone(), peer.clone(), network.clone(), nodes.clone()))
    };
    let mut upstreams: Vec<SharedUpstream> = plan.peers.iter().map(dial).collect();
    if let Some(finder) = finder {
        let avoid = plan.peers.iter().map(|peer| peer.id).collect();
        let count = connected.min(SLOTS);
        upstreams.extend(start_slots(finder, SlotOptions { count, identity, avoid, network, nodes }));
    }
    let upstreams = recordings.record(PEERS, upstreams)?;
    let alone = state_servers(plan, recordings)?;
    Ok(Box::pin(async move {
        let ReadChain { mut steps, head } = chain::read(plan, PEERS, (&plan.starts, upstreams), until).await;
        // Each state server is tried from the verified head, so that it need not send the headers below.
        let first = head.map(LightStart::At).or(plan.starts.first().copied());
        let one = |(upstream, start)| chain::state_server(plan, upstream, start, until);
        steps.extend(join_all(alone.into_iter().zip(first.into_iter().cycle()).map(one)).await);
        steps
    }))
}

/// The state servers of the network and the named nodes, each as an upstream of its own.
fn state_servers(
    plan: &DoctorPlan,
    recordings: &mut Recordings<'_>,
) -> Result<Vec<SharedUpstream>, DoctorError> {
    let mut upstreams = Vec::new();
    for (address, number) in plan.state_servers.iter().chain(&plan.peers).zip(1_u32..) {
        let (network, nodes) = (Arc::new(plan.network.clone()), Arc::new(StateNodes::default()));
        let upstream = PeerUpstream::new(identity(plan)?, address.clone(), network, nodes);
        upstreams.extend(recordings.record(&format!("{STATE_SERVER}{number}"), vec![Arc::new(upstream)])?);
    }
    Ok(upstreams)
}

/// The steps of reading the chain from one upstream.
async fn by_upstream(plan: &DoctorPlan, upstreams: Vec<SharedUpstream>, until: Instant) -> Vec<DoctorStep> {
    let Some(upstream) = upstreams.first().cloned() else { return Vec::new() };
    let reached = chain::chain_id(plan, &upstream).await;
    let mut steps = match reached.outcome {
        StepOutcome::Failed => {
            let skip = |subject| DoctorStep::skipped(subject, upstream.name(), "the upstream is of no use");
            [StepSubject::Headers, StepSubject::Head, StepSubject::State].map(skip).into()
        }
        StepOutcome::Ok | StepOutcome::Skipped => {
            let starts = starts(plan, &upstreams).await;
            chain::read(plan, upstream.name(), (&starts, upstreams), until).await.steps
        }
    };
    steps.insert(0, reached);
    steps
}

/// The starts for some upstreams: those of the plan, or the block 0 that the upstreams show where `rootlight light` starts there
/// too.
async fn starts(plan: &DoctorPlan, upstreams: &[SharedUpstream]) -> Vec<LightStart> {
    if starts_at_shown_block(&plan.network.name, plan.checkpoint.as_deref())
        && let Ok(block) = first_block(&plan.network, upstreams).await
    {
        return vec![LightStart::At(block)];
    }
    plan.starts.clone()
}

/// The sources that gave both a verified head and a proof of state.
fn proven_by(steps: &[DoctorStep]) -> Vec<String> {
    let has = |source: &str, subject| {
        let one = |step: &DoctorStep| {
            (step.source.as_str(), step.subject, step.outcome) == (source, subject, StepOutcome::Ok)
        };
        steps.iter().any(one)
    };
    let mut proven: Vec<String> = Vec::new();
    for DoctorStep { source, .. } in steps {
        if has(source, StepSubject::Head) && has(source, StepSubject::State) && !proven.contains(source) {
            proven.push(source.clone());
        }
    }
    proven
}

/// The recordings that this run has begun.
struct Recordings<'a> {
    plan: &'a DoctorPlan,
    /// The folder of each recording.
    begun: Vec<(PathBuf, Arc<Recording>)>,
}

impl Recordings<'_> {
    /// Returns the upstreams as ones that record into a folder of this name, or unchanged if the plan wants no recordings.
    fn record(
        &mut self,
        name: &str,
        upstreams: Vec<SharedUpstream>,
    ) -> Result<Vec<SharedUpstream>, RecordError> {
        let Some(folder) = &self.plan.recordings else { return Ok(upstreams) };
        let folder = folder.join(name);
        let recording = Arc::new(Recording::create(&folder)?);
        self.begun.push((folder, recording.clone()));
        let record = |inner| Arc::new(RecordedUpstream::new(inner, recording.clone())) as SharedUpstream;
        Ok(upstreams.into_iter().map(record).collect())
    }

    /// Completes all recordings; returns the folders of those that are complete.
    fn finish(self) -> Result<Vec<String>, DoctorError> {
        let mut complete = Vec::new();
        for (source, number) in self.plan.bitcoin.iter().zip(1_u32..) {
            let Some(folder) = &self.plan.recordings else { break };
            let folder = folder.join(format!("{BITCOIN}{number}"));
            source.write_recording(&folder.join(BITCOIN_FILE)).map_err(DoctorError::Bitcoin)?;
            complete.push(folder.display().to_string());
        }
        for (folder, recording) in self.begun {
            if recording.finish()? {
                complete.push(folder.display().to_string());
            }
        }
        Ok(complete)
    }
}
