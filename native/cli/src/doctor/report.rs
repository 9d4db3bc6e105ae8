//! The steps of a check and the report of all of them, which is printed and written as JSON.

use rootlight_limits::sanitize::sanitize;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

/// The source of the steps about peers.
pub(super) const PEERS: &str = "peers";

/// The subject of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepSubject {
    /// Addresses of the boot hosts.
    Dns,
    /// Requests for nodes, over UDP.
    Discovery,
    /// Connections to nodes: TCP, handshake, HELLO and STATUS.
    Handshake,
    /// A request to an upstream for its chain id.
    ChainId,
    /// Headers above the start, with hash links and proofs of work.
    Headers,
    /// The verified head.
    Head,
    /// A balance at the head, proven from its state root.
    State,
    /// A balance at the head, proven by one node that is named or known as a state server.
    StateServer,
    /// One source of Bitcoin's chain: its newest block, headers and coinbases.
    BitcoinSource,
    /// Bitcoin's evidence for this chain.
    Tags,
}

impl StepSubject {
    /// The name in text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Discovery => "discovery",
            Self::Handshake => "handshake",
            Self::ChainId => "chain id",
            Self::Headers => "headers",
            Self::Head => "head",
            Self::State => "state",
            Self::StateServer => "state server",
            Self::BitcoinSource => "bitcoin source",
            Self::Tags => "tags",
        }
    }
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StepOutcome {
    /// The step worked.
    Ok,
    /// The step did not work.
    Failed,
    /// The step was not tried.
    Skipped,
}

/// A step of `rootlight doctor`, with its outcome.
#[derive(Debug, Clone, Serialize)]
pub struct DoctorStep {
    /// The subject of the step.
    pub subject: StepSubject,
    /// The source that the step is about: `peers`, or the name of an upstream.
    pub source: String,
    /// How the step ended.
    pub outcome: StepOutcome,
    /// The finding, or why the step failed.
    pub seen: String,
    /// Advice, if the step failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// How long the step took.
    pub milliseconds: u64,
    /// Further findings, whose members depend on the subject.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

impl DoctorStep {
    /// A step that ends now. `seen` is escaped and cut, because it contains text of upstreams and peers.
    pub(super) fn new(
        subject: StepSubject,
        source: &str,
        started: Instant,
        outcome: StepOutcome,
        seen: String,
    ) -> Self {
        let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let seen = sanitize(seen).to_string();
        Self { subject, source: source.into(), outcome, seen, help: None, milliseconds, details: Value::Null }
    }

    /// A step that is not tried, and why.
    pub(super) fn skipped(subject: StepSubject, source: &str, reason: &str) -> Self {
        Self::new(subject, source, Instant::now(), StepOutcome::Skipped, reason.into())
    }

    /// The same with advice, if the step has failed.
    pub(super) fn advised(mut self, help: &str) -> Self {
        self.help = (self.outcome == StepOutcome::Failed).then(|| help.to_owned());
        self
    }

    /// The same with details.
    pub(super) fn detailed(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}

/// A node that was dialled. Nothing proves its statements.
#[derive(Debug, Clone, Serialize)]
pub struct DialledNode {
    /// The node's address, `ID@HOST:PORT`.
    pub place: String,
    /// The name that the node's program states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The protocols that the node offers, such as `snap/1`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Hash and total difficulty of the node's best block, and the checkpoint and state size of its snapshot service.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub said: Value,
    /// Why there was no connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The steps with their findings.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorReport {
    /// Version of this program.
    pub version: &'static str,
    /// Name of the network.
    pub network: String,
    /// The chain id of the network.
    pub chain_id: u64,
    /// The value of `--checkpoint`.
    pub checkpoint: Option<String>,
    /// When the check began, in seconds since 1970.
    pub started: u64,
    /// How long the check took.
    pub milliseconds: u64,
    /// Sources that gave both a verified head and a proof of state.
    pub proven_by: Vec<String>,
    /// The steps, in order.
    pub steps: Vec<DoctorStep>,
    /// The nodes that were dialled.
    pub nodes: Vec<DialledNode>,
    /// Folders that `--upstream replay:FOLDER` reads.
    pub recordings: Vec<String>,
}

impl DoctorReport {
    /// The first step that failed.
    pub fn first_failure(&self) -> Option<&DoctorStep> {
        self.steps.iter().find(|step| step.outcome == StepOutcome::Failed)
    }
}

/// The steps so far, and the callback that gets each.
pub(super) struct Steps<'a> {
    pub(super) all: Vec<DoctorStep>,
    /// Called with each step when it is added.
    pub(super) on_step: &'a mut dyn FnMut(&DoctorStep),
}

impl Steps<'_> {
    pub(super) fn add(&mut self, step: DoctorStep) {
        (self.on_step)(&step);
        self.all.push(step);
    }
}
