//! The network on a block of which a development chain begins (`--fork`): its upstream, and the blocks on which the chain has begun. The
//! core notes which data of the network a run lacks; this file fetches the data and repeats the run.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use alloy_primitives::B256;
use js_sys::Function;
use rootlight::consensus::{ChainView, Network};
use rootlight::dev::fork::{
    Exchanges, Fetched, ForkBlock, ForkError, ForkState, RESET_SECONDS, RUN_SECONDS, Rounds, Search,
    SharedNotes, Stop, Wanted,
};
use rootlight::light::UnprovenPolicy;
use rootlight::local::ForkBase;
use wasm_bindgen_futures::spawn_local;

use crate::client::follow;
use crate::config::Config;
use crate::driver::Driver;
use crate::host::{Budget, JsUpstream, clock};

/// Most bytes of upstream responses that one exchange holds.
const ANSWER_BYTES: usize = 64 << 20;

/// How a chain reaches its network.
pub(crate) struct NetworkAccess {
    /// The options of the light client that verifies the network's head.
    pub(crate) config: Config,
    /// The upstream's URL as the caller gave it, which a reset may name.
    pub(crate) url: String,
    /// The upstream's function of `pkg/exchange.js`.
    pub(crate) exchange: Function,
    /// Takes headers to store, and does nothing.
    pub(crate) keep: Function,
}

/// What a chain reads of the network on which it begins.
pub(crate) struct Fork {
    access: NetworkAccess,
    upstream: JsUpstream,
    /// The name of the upstream, for errors.
    names: Arc<[String]>,
    /// Memory for the responses to one exchange.
    budget: Budget,
    /// The blocks on which the chain has begun: the first one, and one for each reset that a caller has requested. Earlier ones stay while
    /// a state of the chain still reads their data.
    starts: RefCell<Vec<Start>>,
}

/// A block on which the chain has begun.
#[derive(Clone)]
struct Start {
    /// The block, and the data of the network that was fetched below it.
    state: Arc<ForkState>,
    /// The data that the last run read and that is not fetched yet.
    notes: Arc<SharedNotes>,
}

/// The data that a run lacked and that has to be fetched, for each start.
pub(crate) struct Missed(Vec<(Start, Wanted)>);

/// The limits of the rounds of exchanges for one message.
struct Limits {
    /// When the message began, in milliseconds of the monotonic clock.
    began: u64,
    rounds: Rounds,
}

impl Limits {
    /// The limits of a message that begins now and may take this long.
    fn within(seconds: u64) -> Self {
        Self { began: clock().millis, rounds: Rounds::within(seconds) }
    }

    /// Whether the time is up.
    fn is_over(&self) -> bool {
        clock().millis.saturating_sub(self.began) > self.rounds.seconds.saturating_mul(1_000)
    }

    /// The error once the time is up.
    const fn too_late(&self) -> ForkError {
        ForkError::TooLate(self.rounds.seconds)
    }
}

impl Fork {
    /// Finds the block of the network on which a chain is to begin.
    pub(crate) async fn open(access: NetworkAccess, block: ForkBlock) -> Result<Self, ForkError> {
        let upstream = JsUpstream::new(access.exchange.clone(), access.config.batch);
        let names = access.config.names(1).into();
        let starts = RefCell::default();
        let fork = Self { access, upstream, names, budget: Budget::new(ANSWER_BYTES), starts };
        let start = fork.begin(block, &Limits::within(RESET_SECONDS)).await?;
        fork.starts.borrow_mut().push(start);
        Ok(fork)
    }

    /// The network of the block.
    pub(crate) fn network(&self) -> Network {
        (*self.access.config.network).clone()
    }

    /// The block on which the chain begins, and the data below it.
    pub(crate) fn base(&self) -> Option<Arc<dyn ForkBase>> {
        let starts = self.starts.borrow();
        starts.last().map(|start| start.state.clone() as Arc<dyn ForkBase>)
    }

    /// Whether state is taken without proof.
    pub(crate) fn is_unproven(&self) -> bool {
        self.access.config.unproven != UnprovenPolicy::Refuse
    }

    /// Whether the current run has read data that is not fetched yet.
    pub(crate) fn is_missing(&self) -> bool {
        self.starts.borrow().iter().any(|start| !start.notes.is_empty())
    }

    /// Runs `work` once. The inner error is the data that the run lacked; the outer one says that the run lacked too much.
    pub(crate) fn attempt<T>(&self, work: impl FnOnce() -> T) -> Result<Result<T, Missed>, ForkError> {
        // Notes of a run that was given up.
        self.starts.borrow().iter().for_each(|start| drop(start.notes.take()));
        let value = work();
        Ok(self.missed()?.map_or(Ok(value), Err))
    }

    /// The data that the last run lacked.
    fn missed(&self) -> Result<Option<Missed>, ForkError> {
        let mut missed = Vec::new();
        for start in self.starts.borrow().iter() {
            let missing = start.notes.take();
            if !missing.is_empty() {
                missed.push((start.clone(), missing.wanted()?));
            }
        }
        Ok(Some(Missed(missed)).filter(|missed| !missed.0.is_empty()))
    }

    /// Fetches the data that a run lacked, and repeats `work` until a run lacks nothing. `work` must undo its changes if it lacked data
    /// ([`Self::is_missing`]).
    pub(crate) async fn finish<T>(
        &self,
        missed: Missed,
        mut work: impl FnMut() -> T,
    ) -> Result<T, ForkError> {
        let mut value = None;
        let finished = self.rounds(missed, &mut || value = Some(work())).await;
        // The next reset looks for its block anew, because the network's head has moved on.
        self.starts.borrow().iter().for_each(|start| start.state.forget_others());
        finished?;
        value.ok_or_else(|| ForkError::Upstream("no run".into()))
    }

    /// Fetches and runs in turn, for at most [`RUN_SECONDS`].
    async fn rounds(&self, mut missed: Missed, work: &mut dyn FnMut()) -> Result<(), ForkError> {
        let mut limits = Limits::within(RUN_SECONDS);
        loop {
            limits.rounds.count(missed.0.iter().map(|(_, wanted)| wanted))?;
            self.fill(missed, &limits).await?;
            match self.attempt(&mut *work)? {
                Ok(()) => return Ok(()),
                Err(more) => missed = more,
            }
        }
    }

    /// As [`Self::finish`], from the first run on.
    pub(crate) async fn run<T>(&self, mut work: impl FnMut() -> T) -> Result<T, ForkError> {
        match self.attempt(&mut work)? {
            Ok(value) => Ok(value),
            Err(missed) => self.finish(missed, work).await,
        }
    }

    /// Fetches the data that a run lacked, and the blocks on which it wants to begin anew (resets).
    async fn fill(&self, missed: Missed, limits: &Limits) -> Result<(), ForkError> {
        for (start, mut wanted) in missed.0 {
            let state = &*start.state;
            // `None`: a page stores no fetched data.
            let mut work = |exchanges: &mut _| limits.rounds.fetch(exchanges, state, &mut wanted, None);
            self.fetch(limits, &mut work).await?;
            for (url, number) in wanted.others {
                if url.as_ref().is_some_and(|url| *url != self.access.url) {
                    return Err(ForkError::OtherUrl);
                }
                let block = number.map_or(ForkBlock::Head, ForkBlock::Number);
                let begun = self.begin(block, limits).await?;
                state.add_other((url, number), begun.state.clone());
                let mut starts = self.starts.borrow_mut();
                // A start that only this list refers to belongs to no chain any more.
                starts.retain(|start| Arc::strong_count(&start.state) > 1);
                starts.push(begun);
            }
        }
        Ok(())
    }

    /// Runs `work` with the responses to the requests that it returns, until it returns no more requests.
    async fn fetch(
        &self,
        limits: &Limits,
        work: &mut dyn FnMut(&mut Exchanges) -> Fetched<()>,
    ) -> Result<(), ForkError> {
        let mut exchanges = Exchanges::new(self.names.clone(), self.access.config.unproven);
        loop {
            let (upstream, requests) = match work(&mut exchanges) {
                Ok(()) => return Ok(()),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Ask(upstream, requests)) => (upstream, requests),
            };
            if limits.is_over() {
                return Err(limits.too_late());
            }
            let reservation = self.budget.reserve();
            let responses = self.upstream.ask(&requests, false, &reservation).await;
            exchanges.feed(upstream, requests, responses);
        }
    }

    /// Finds a block, and makes the state of a chain that begins on it.
    async fn begin(&self, block: ForkBlock, limits: &Limits) -> Result<Start, ForkError> {
        let network = self.access.config.network.clone();
        let chain = match block {
            ForkBlock::Trusted(..) => None,
            ForkBlock::Head | ForkBlock::Number(_) => Some(self.verified(limits).await?),
        };
        let mut search = Search::new(network.clone(), block, chain);
        let mut found = None;
        let mut work = |exchanges: &mut _| search.header(exchanges).map(|header| found = Some(header));
        self.fetch(limits, &mut work).await?;
        let header = found.ok_or_else(|| ForkError::Unverified("no block".into()))?;
        let notes = Arc::new(SharedNotes::default());
        let mut state = ForkState::new(network, header, notes.clone())?;
        self.fetch(limits, &mut |exchanges| search.ancestors(exchanges, &mut state)).await?;
        Ok(Start { state: Arc::new(state), notes })
    }

    /// The chain that a light client verifies, up to its head.
    async fn verified(&self, limits: &Limits) -> Result<ChainView, ForkError> {
        let NetworkAccess { config, exchange, keep, .. } = &self.access;
        let upstream = JsUpstream::new(exchange.clone(), config.batch);
        let driver = Rc::new(Driver::new(config, vec![upstream], keep.clone(), None));
        let closed = Rc::new(Cell::new(false));
        spawn_local(follow(driver.clone(), 0, closed.clone()));
        let reached = driver.reach_head(|| limits.is_over()).await;
        closed.set(true);
        match reached {
            Err(_) if limits.is_over() => Err(limits.too_late()),
            Err(reason) => Err(ForkError::Unverified(reason)),
            Ok(()) => driver.verified_chain().map_err(ForkError::Unverified),
        }
    }
}

/// The block that the option `fork.block` names by its height, or its height and hash; the network's head if it names none.
pub(crate) fn block(number: Option<f64>, hash: Option<String>) -> Result<ForkBlock, String> {
    let Some(given) = number else { return Ok(ForkBlock::Head) };
    let number = given as u64;
    if number as f64 != given {
        return Err("fork: block: not a whole number".into());
    }
    match hash {
        None => Ok(ForkBlock::Number(number)),
        Some(hash) => {
            let hash = hash.parse::<B256>().map_err(|error| format!("fork: block: hash: {error}"))?;
            Ok(ForkBlock::Trusted(number, hash))
        }
    }
}
