//! The state of the light client that one message sees: one head, even if synchronization continues meanwhile.

use alloc::{format, string::String, sync::Arc, vec::Vec};
use core::{any::Any, str::FromStr};

use thiserror::Error;

use super::{
    bitcoin::{BitcoinFollower, BitcoinReport, BitcoinVerdict, DatedSuffix},
    clock::Now,
    meter::Progress,
    prove::ProofContext,
    sync::{HeaderSync, UpstreamState},
    work_floor::LowWork,
};
use crate::{
    consensus::{ChainView, Checkpoint, HeaderChain, Network},
    exec::CallPolicy,
    trie::TrieStore,
};

/// The host's settings of a client.
#[derive(Debug, Clone, Default)]
pub struct ClientConfig {
    /// `web3_clientVersion`: name, version, host and language, in the package also `light`, separated by `/`.
    pub version: String,
    /// Names of the upstreams, credentials removed.
    pub upstreams: Vec<String>,
    /// Limits of calls and their result when they halt.
    pub policy: CallPolicy,
    /// Required depth: requests about blocks with fewer blocks on top are refused.
    pub min_depth: u64,
    /// Greatest age of the head, in seconds by the host's clock, at which requests are answered; 0 for any age.
    pub max_age: u64,
    /// If given, requests are answered only while Bitcoin supports the chain ([`BitcoinVerdict::Held`]), and only about blocks
    /// that at least so many Bitcoin blocks support ([`BitcoinFollower::newest_supported`]).
    pub min_bitcoin: Option<u32>,
    /// The policy for answers that no upstream proves.
    pub unproven: UnprovenPolicy,
    /// The state that the operator's own full node keeps on disk, if that node is the only upstream. State is read from
    /// there too, and blocks below the start are taken from the node as it shows them.
    pub own_state: Option<Arc<dyn TrieStore>>,
    /// Whether the host announces the transactions that its callers send ([`crate::rpc::SharedClient::announce_sent`]),
    /// because it shares filters with other hosts. Otherwise the client reports them to its filters itself.
    pub host_announces_sent: bool,
    /// Whether messages are spread over the upstreams that are equally good, instead of all going to the first of them.
    pub balance: bool,
    /// Whether bodies are requested by the block's hash first, because the host answers these requests from an index of blocks.
    pub bodies_by_hash: bool,
    /// The host's data for its own rows of the method table.
    pub host: Option<Arc<dyn Any + Send + Sync>>,
    /// The host's engine for tracers that are scripts ([`Policy::scripts`](crate::engine::Policy::scripts)).
    #[cfg(feature = "catalogue")]
    pub scripts: Option<Arc<dyn crate::exec::trace::ScriptEngine>>,
}

/// The policy for answers that no upstream proves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnprovenPolicy {
    /// No answer.
    #[default]
    Refuse,
    /// The answer that this many upstreams under different domains agree on, marked `unproven`.
    Quorum(usize),
    /// The answer of the best upstream, marked `unproven`.
    Trust,
}

/// The text is not the name of an unproven-answers policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("neither refuse, quorum:N nor trust")]
pub struct UnprovenError;

impl FromStr for UnprovenPolicy {
    type Err = UnprovenError;

    /// Reads `refuse`, `quorum:N` with N from 1, or `trust`.
    fn from_str(text: &str) -> Result<Self, UnprovenError> {
        let quorum = text.strip_prefix("quorum:").and_then(|count| count.parse().ok());
        match (text, quorum) {
            ("refuse", _) => Ok(Self::Refuse),
            ("trust", _) => Ok(Self::Trust),
            (_, Some(count)) if count > 0 => Ok(Self::Quorum(count)),
            _ => Err(UnprovenError),
        }
    }
}

/// Age of the head in seconds. `None` if the head is ahead of the clock, or if the network has no rules for block
/// times.
fn age(chain: Option<&ChainView>, now: Now) -> Option<u64> {
    let age = now.unix.checked_sub(chain?.head().timestamp);
    age.filter(|_| chain.is_some_and(|chain| chain.network().params.future_bound > 0))
}

/// The chain and the state of synchronization at one moment. Accessors of the same names explain the fields without a comment.
#[derive(Debug, Clone)]
pub struct PinnedHead {
    pub(crate) network: Arc<Network>,
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) chain: Option<ChainView>,
    /// Whether the head has been reached.
    pub(crate) synced: bool,
    /// Whether the uncles of all blocks are proven or known to be unavailable.
    pub(crate) uncles_complete: bool,
    /// Height of the checkpoint.
    pub(crate) start: u64,
    pub(crate) untrusted_start: Option<&'static str>,
    /// Whether the checkpoint is a block that the upstreams have shown.
    start_shown: bool,
    /// The height that upstreams in good standing announce ([`HeaderSync::announced`]).
    pub(crate) announced: u64,
    /// The host's wall clock, in seconds since 1970.
    pub(crate) now: u64,
    /// The upstreams to ask, best first.
    pub(crate) roster: Vec<usize>,
    checkpoint: Checkpoint,
    progress: Progress,
    low_work: Option<LowWork>,
    low_dated_work: Option<DatedSuffix>,
    bitcoin: Option<Arc<BitcoinFollower>>,
    newest_supported: Option<u64>,
    states: Vec<UpstreamState>,
    /// Whether errors name upstreams by number.
    numbered: bool,
    /// Age of the head in seconds by the host's clock.
    age: Option<u64>,
    to_prove: u64,
    /// The host's engine for the scripts of the message.
    #[cfg(feature = "catalogue")]
    pub(crate) scripts: Option<Arc<dyn crate::exec::trace::ScriptEngine>>,
}

/// Most upstreams that an error names, so that the message stays short.
const NAMED: usize = 3;

/// The first [`NAMED`] texts, with `...` if there are more.
fn first_of(texts: &[String], between: &str) -> String {
    match texts.get(..NAMED).filter(|_| texts.len() > NAMED) {
        Some(first) => format!("{}{between}...", first.join(between)),
        None => texts.join(between),
    }
}

/// Age in seconds above which a head is stale, so that the client reports that it is synchronizing: on mainnet one block in some
/// ten thousand takes longer.
const STALE: u64 = 300;

/// Default of [`ClientConfig::max_age`], in seconds. In an hour an honest chain grows by the 120 blocks that make a block
/// final. A client that has seen no block for that long is cut off from the chain, or its clock is wrong.
pub const MAX_AGE: u64 = 3_600;

impl PinnedHead {
    /// Pins the head of a synchronization machine for a request that arrives at `now`. The machine's own time may be
    /// older: synchronization may have waited for an upstream, or the computer may have slept.
    pub fn new(sync: &HeaderSync, config: Arc<ClientConfig>, now: Now) -> Self {
        let roster = if config.balance { sync.rotated_roster(now.millis) } else { sync.roster() };
        let newest_supported = match config.min_bitcoin {
            // Without a requirement, enough Bitcoin blocks support every block.
            None | Some(0) => Some(u64::MAX),
            Some(least) => sync.bitcoin().and_then(|follower| follower.newest_supported(least)),
        };
        Self {
            newest_supported,
            network: sync.network().clone(),
            #[cfg(feature = "catalogue")]
            scripts: config.scripts.as_ref().map(|scripts| scripts.for_message()),
            config,
            chain: sync.chain().map(|chain| chain.snapshot()),
            synced: sync.is_synced(),
            uncles_complete: sync.uncles_complete(),
            numbered: false,
            start: sync.start(),
            untrusted_start: sync.untrusted_start(),
            start_shown: sync.is_start_shown(),
            announced: sync.announced(),
            now: now.unix,
            roster,
            checkpoint: *sync.checkpoint(),
            progress: sync.progress(),
            low_work: sync.low_work().copied(),
            low_dated_work: sync.low_dated_work(),
            bitcoin: sync.bitcoin().cloned(),
            states: sync.upstreams(),
            age: age(sync.chain().map(HeaderChain::view), now),
            to_prove: sync.unproven().map_or(0, |number| number.saturating_sub(sync.start())),
        }
    }

    /// The same state of synchronization with an earlier state of the chain. The Bitcoin report is about the newest state, so it is
    /// left out if the newest chain does not contain the earlier head.
    pub(crate) fn with_chain(mut self, chain: ChainView, now: Now) -> Self {
        let (head, newest) = (chain.head(), self.chain.as_ref());
        if newest.is_none_or(|newest| !newest.is_canonical(head.number, &head.hash())) {
            self.bitcoin = None;
        }
        self.age = age(Some(&chain), now);
        self.chain = Some(chain);
        self
    }

    /// The network's parameters.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The chain that responses of upstreams are checked against.
    pub(crate) fn proof_context(&self) -> ProofContext<'_> {
        ProofContext { network: &self.network, chain: self.chain.as_ref() }
    }

    /// The state that the host's own node keeps.
    pub(crate) fn own_state(&self) -> Option<&dyn TrieStore> {
        self.config.own_state.as_deref()
    }

    /// Whether a block of this number is below the headers in memory, and the upstream is the host's own node, which is trusted for
    /// such blocks.
    pub(crate) fn trusts_below(&self, number: u64) -> bool {
        self.own_state().is_some() && self.chain.as_ref().is_some_and(|chain| number < chain.lowest())
    }

    /// The Bitcoin chain that the client follows, with its report on this chain; `None` without one.
    pub fn bitcoin(&self) -> Option<&BitcoinFollower> {
        self.bitcoin.as_deref()
    }

    /// Bitcoin's verdict on the chain, if it is another one than [`BitcoinVerdict::Held`]: also before any Bitcoin source has shown
    /// its chain.
    pub fn bitcoin_doubt(&self) -> Option<BitcoinVerdict> {
        let verdict = self.bitcoin()?.verdict(self.now);
        (verdict != BitcoinVerdict::Held).then_some(verdict)
    }

    /// The newest report on the chain by Bitcoin's, with the verdict at this time; `None` before there is one.
    pub fn bitcoin_report(&self) -> Option<BitcoinReport> {
        self.bitcoin()?.report_at(self.now)
    }

    /// The verdict because of which answers are refused, if the host requires Bitcoin's support.
    pub(crate) fn bitcoin_refusal(&self) -> Option<BitcoinVerdict> {
        self.config.min_bitcoin?;
        if self.bitcoin.is_none() { Some(BitcoinVerdict::Unavailable) } else { self.bitcoin_doubt() }
    }

    /// The newest block that as many Bitcoin blocks support as the host requires; `None` if there is none.
    pub(crate) fn newest_supported(&self) -> Option<u64> {
        self.newest_supported
    }

    /// How many blocks a block needs on top before it may be answered about: the depth that the host requires, or that of
    /// [`Self::newest_supported`], if it is deeper. `u64::MAX` if no block has the Bitcoin blocks that the host requires.
    pub(crate) fn min_depth(&self) -> u64 {
        let head = self.chain.as_ref().map_or(0, |chain| chain.head().number);
        let by_bitcoin = self.newest_supported.map_or(u64::MAX, |newest| head.saturating_sub(newest));
        self.config.min_depth.max(by_bitcoin)
    }

    /// Whether the chain starts at a block that is accepted for the work above it, rather than for its hash.
    pub fn is_by_work(&self) -> bool {
        self.untrusted_start.is_some()
    }

    /// How the chain starts if no trusted block leads to it: `work` or `window`.
    pub fn untrusted_start(&self) -> Option<&'static str> {
        self.untrusted_start
    }

    /// The word by which answers name the start: `work` or `window`, `upstream` (a block that the upstreams have shown), or
    /// `checkpoint`.
    pub(crate) fn trusted_start(&self) -> &'static str {
        self.untrusted_start.unwrap_or(if self.start_shown { "upstream" } else { "checkpoint" })
    }

    /// The block that the chain starts at: trusted, or accepted for the work above it.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Progress of synchronization.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// A stretch of the chain with less work than the work floor requires, if there is one.
    pub fn low_work(&self) -> Option<&LowWork> {
        self.low_work.as_ref()
    }

    /// The suffix of Bitcoin's chain on which too little of this chain's work was done, if the chain started by window.
    pub fn low_dated_work(&self) -> Option<DatedSuffix> {
        self.low_dated_work
    }

    /// Number of headers of an earlier run whose proofs of work are not checked yet in this run.
    pub fn to_prove(&self) -> u64 {
        self.to_prove
    }

    /// The state of each upstream.
    pub fn states(&self) -> &[UpstreamState] {
        &self.states
    }

    /// The policy for answers that no upstream proves.
    pub fn unproven(&self) -> UnprovenPolicy {
        self.config.unproven
    }

    /// An upstream's name, without credentials.
    pub fn upstream_name(&self, upstream: usize) -> Option<&str> {
        let present = self.states.get(upstream).and_then(|state| state.name.as_deref());
        present.or_else(|| self.config.upstreams.get(upstream).map(String::as_str))
    }

    /// For each upstream, how many sources have been this upstream before the present one.
    pub fn source_generations(&self) -> Vec<u64> {
        self.states.iter().map(|state| state.source_generation).collect()
    }

    /// Whether an upstream is resting after a failure. A resting upstream is still asked if no other can prove a fact.
    pub fn rests(&self, upstream: usize) -> bool {
        self.states.get(upstream).is_some_and(|state| state.resting.is_some())
    }

    /// The upstream to ask for a witness, and whether it is known to give witnesses: the first that is known to, or
    /// else the first that was never asked for one.
    pub fn witness_from(&self) -> Option<(usize, bool)> {
        // `None` for a resting upstream, `Some(None)` for one that was never asked.
        let gives_witness = |upstream: &usize| {
            self.states.get(*upstream).filter(|state| state.resting.is_none()).map(|state| state.can.witness)
        };
        let sure = self.roster.iter().find(|upstream| gives_witness(upstream) == Some(Some(true)));
        let untried = self.roster.iter().find(|upstream| gives_witness(upstream) == Some(None));
        sure.map(|upstream| (*upstream, true)).or(untried.map(|upstream| (*upstream, false)))
    }

    /// The head's age in seconds by the host's clock, if the head is stale.
    pub fn stale(&self) -> Option<u64> {
        self.age.filter(|age| *age > STALE)
    }

    /// The head's age in seconds, if it exceeds the age that the host accepts.
    pub fn too_old(&self) -> Option<u64> {
        self.age.filter(|age| self.config.max_age > 0 && *age > self.config.max_age)
    }

    /// Whether the head has been reached.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Whether the uncles of all blocks are proven or known to be unavailable.
    pub fn uncles_complete(&self) -> bool {
        self.uncles_complete
    }

    /// Why no upstream is usable, each by its name, if all of them have failed. If all have the same fault, it is stated once.
    pub fn stopped(&self) -> Option<String> {
        let fault = |state: &UpstreamState| state.resting.as_ref().map(|(_, fault)| format!("{fault}"));
        let mut faults: Vec<String> = self.states.iter().map(fault).collect::<Option<_>>()?;
        let first = faults.first()?;
        if faults.iter().all(|fault| fault == first) {
            return Some(format!("{}: {first}", self.names_in_errors()));
        }
        for (upstream, fault) in faults.iter_mut().enumerate() {
            *fault = format!("{}: {fault}", self.name_in_errors(upstream));
        }
        Some(first_of(&faults, "; "))
    }

    /// The same state for a page of another origin, which gets neither names nor texts of upstreams.
    pub(crate) fn redacted(mut self) -> Self {
        for state in &mut self.states {
            state.resting = state.resting.take().map(|(millis, fault)| (millis, fault.redacted()));
        }
        self.numbered()
    }

    /// The same state, whose errors name upstreams by number: their names are addresses in the operator's network.
    #[must_use]
    pub fn numbered(self) -> Self {
        Self { numbered: true, ..self }
    }

    /// The name of an upstream in errors; a number if the caller may not know its name.
    pub(crate) fn name_in_errors(&self, upstream: usize) -> String {
        match self.upstream_name(upstream).filter(|_| !self.numbered) {
            Some(name) => name.into(),
            None => format!("upstream {}", upstream.saturating_add(1)),
        }
    }

    /// The names of the upstreams in errors.
    pub(crate) fn names_in_errors(&self) -> String {
        let names: Vec<String> =
            (0..self.states.len()).map(|upstream| self.name_in_errors(upstream)).collect();
        first_of(&names, ", ")
    }

    /// The upstreams to ask, best first.
    pub fn roster(&self) -> &[usize] {
        &self.roster
    }

    /// The pinned chain; `None` until the checkpoint's header is verified.
    pub fn chain(&self) -> Option<&ChainView> {
        self.chain.as_ref()
    }
}
