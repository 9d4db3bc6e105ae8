//! What a session sees of the light client for as long as it runs: one head, whatever happens meanwhile.

use alloc::{string::String, sync::Arc, vec::Vec};
use core::str::FromStr;

use thiserror::Error;

use super::{
    clock::Now,
    fault::SyncFault,
    floor::LowWork,
    meter::Progress,
    prove::Against,
    sync::{Sync, UpstreamState},
};
use crate::{
    consensus::{ChainView, Checkpoint, Network},
    exec::CallPolicy,
};

/// How an instance of the client presents itself.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// `web3_clientVersion`: name, version, host, language and build, separated by `/`.
    pub version: String,
    /// Names of the upstreams, credentials removed.
    pub upstreams: Vec<String>,
    /// What the host decides about calls.
    pub policy: CallPolicy,
    /// Blocks with fewer blocks on top are refused.
    pub min_depth: u64,
    /// Oldest age of the head in seconds, by the host's clock, at which questions are answered; 0 for any age.
    pub max_age: u64,
    /// What is done where nobody gives a proof.
    pub unproven: Unproven,
}

/// What a host decides about answers that nobody proves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unproven {
    /// None is given.
    #[default]
    Refuse,
    /// Given where so many upstreams under different domains say the same; marked `unproven`.
    Quorum(usize),
    /// Given as the best upstream says it; marked `unproven`.
    Trust,
}

/// The text names no policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("neither refuse, quorum:N nor trust")]
pub struct UnprovenError;

impl FromStr for Unproven {
    type Err = UnprovenError;

    /// `refuse`, `quorum:N` with N from 1, or `trust`.
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

/// Age of the head in seconds. Networks without rules for times have no age of blocks either.
fn age(sync: &Sync, now: Now) -> Option<u64> {
    let head = sync.chain()?.head();
    let age = now.unix.checked_sub(head.timestamp);
    age.filter(|_| sync.network().params.future_bound > 0)
}

/// The chain as of one moment.
#[derive(Debug, Clone)]
pub struct Pin {
    pub(crate) network: Arc<Network>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) chain: Option<ChainView>,
    pub(crate) synced: bool,
    /// Whether the uncles of all blocks are proven, or known not to be had.
    pub(crate) settled: bool,
    pub(crate) fault: Option<SyncFault>,
    pub(crate) start: u64,
    pub(crate) by_work: bool,
    pub(crate) announced: u64,
    /// The host's clock in seconds since 1970.
    pub(crate) now: u64,
    /// Whom to ask, best first.
    pub(crate) roster: Vec<usize>,
    checkpoint: Checkpoint,
    progress: Progress,
    low_work: Option<LowWork>,
    states: Vec<UpstreamState>,
    age: Option<u64>,
    to_prove: u64,
}

/// A head older than this many seconds is stale: on mainnet one block in some ten thousand takes longer.
const STALE: u64 = 300;

/// Default of [`Identity::max_age`]: in an hour an honest chain grows by the 120 blocks that make a block final, so a
/// client that has seen nothing for so long is cut off from it, or everybody's clock but its own is another one.
pub const MAX_AGE: u64 = 3_600;

impl Pin {
    /// Pins the present head of a synchronization machine for a question that comes now. The moment is the question's
    /// own: synchronization may have waited for an upstream, or the machine slept, since it was told one.
    pub fn new(sync: &Sync, identity: Arc<Identity>, now: Now) -> Self {
        Self {
            network: sync.network().clone(),
            identity,
            chain: sync.chain().map(|chain| chain.snapshot()),
            synced: sync.is_synced(),
            settled: sync.is_settled(),
            fault: sync.fault().cloned(),
            start: sync.start(),
            by_work: sync.is_by_work(),
            announced: sync.announced(),
            now: now.unix,
            roster: sync.roster(),
            checkpoint: *sync.checkpoint(),
            progress: sync.progress(),
            low_work: sync.low_work().copied(),
            states: sync.upstreams(),
            age: age(sync, now),
            to_prove: sync.unproven().map_or(0, |number| number.saturating_sub(sync.start())),
        }
    }

    /// The network's parameters.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What answers of upstreams are held against.
    pub(crate) fn against(&self) -> Against<'_> {
        Against { network: &self.network, chain: self.chain.as_ref() }
    }

    /// Whether the start is believed for its work alone, rather than for its hash.
    pub fn is_by_work(&self) -> bool {
        self.by_work
    }

    /// The block that the chain starts at: trusted, or believed for the work above it.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// How far synchronization is.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// A stretch of the chain with less work than the floor asks for.
    pub fn low_work(&self) -> Option<&LowWork> {
        self.low_work.as_ref()
    }

    /// Headers of an earlier run whose proofs of work are still to be checked in this one.
    pub fn to_prove(&self) -> u64 {
        self.to_prove
    }

    /// Every upstream's standing.
    pub fn states(&self) -> &[UpstreamState] {
        &self.states
    }

    /// What is done where nobody gives a proof.
    pub fn unproven(&self) -> Unproven {
        self.identity.unproven
    }

    /// An upstream's name, without credentials.
    pub fn upstream_name(&self, upstream: usize) -> Option<&str> {
        self.identity.upstreams.get(upstream).map(String::as_str)
    }

    /// Whether an upstream is left alone now; it is asked when no other can prove something.
    pub fn rests(&self, upstream: usize) -> bool {
        self.states.get(upstream).is_some_and(|state| state.resting.is_some())
    }

    /// Whom to ask for a witness, and whether that one is known to give them: the first that does, or the best one while
    /// nobody knows.
    pub fn witness_from(&self) -> Option<(usize, bool)> {
        let can = |upstream: &usize| {
            self.states.get(*upstream).filter(|state| state.resting.is_none()).map(|state| state.can.witness)
        };
        let sure = self.roster.iter().find(|upstream| can(upstream) == Some(Some(true)));
        let first = self.roster.iter().find(|upstream| can(upstream) == Some(None));
        sure.map(|upstream| (*upstream, true)).or(first.map(|upstream| (*upstream, false)))
    }

    /// The head's age in seconds by the host's clock, where that is more than a living chain shows.
    pub fn stale(&self) -> Option<u64> {
        self.age.filter(|age| *age > STALE)
    }

    /// The head's age in seconds, where that is more than the host accepts.
    pub fn too_old(&self) -> Option<u64> {
        self.age.filter(|age| self.identity.max_age > 0 && *age > self.identity.max_age)
    }

    /// Whether the head has been reached.
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// Whether the uncles of all blocks are proven, or known not to be had.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Why no upstream is of use, if none is.
    pub fn fault(&self) -> Option<&SyncFault> {
        self.fault.as_ref()
    }

    /// Whom to ask, best first.
    pub fn roster(&self) -> &[usize] {
        &self.roster
    }

    /// The pinned chain, if the checkpoint's header is verified.
    pub fn chain(&self) -> Option<&ChainView> {
        self.chain.as_ref()
    }
}
