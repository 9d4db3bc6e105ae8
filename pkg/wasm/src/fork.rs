//! The network on which a development chain begins: its upstream, and the blocks on which the chain has begun.

use alloc::collections::BTreeSet;
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
    Exchanges, Fetched, ForkBlock, ForkError, ForkState, MOST_ROUNDS, RESET_SECONDS, RUN_SECONDS,
    SharedNotes, Stop, Wanted, ancestors, below, fetch_blocks, fetch_values, nearest, trusted_block,
    trusted_header,
};
use rootlight::light::UnprovenPolicy;
use rootlight::local::ForkBase;
use wasm_bindgen_futures::spawn_local;

use crate::client::follow;
use crate::config::Config;
use crate::driver::Driver;
use crate::host::{Budget, JsUpstream, moment};

/// Most bytes of upstream responses that one exchange holds.
const ANSWER_BYTES: usize = 64 << 20;

/// How a chain's network is reached.
pub(crate) struct Reached {
    pub(crate) config: Config,
    /// The upstream's URL as the caller gave it, which a reset may name.
    pub(crate) url: String,
    pub(crate) exchange: Function,
    /// Takes headers to store, and does nothing.
    pub(crate) keep: Function,
}

/// What a chain reads of the network on which it begins.
pub(crate) struct Fork {
    reached: Reached,
    upstream: JsUpstream,
    names: Arc<[String]>,
    budget: Budget,
    starts: RefCell<Vec<Start>>,
}

/// A block on which the chain has begun.
#[derive(Clone)]
struct Start {
    state: Arc<ForkState>,
    notes: Arc<SharedNotes>,
}

/// The data that a run lacked, for each start.
pub(crate) struct Missed(Vec<(Start, Wanted)>);

/// The limits of a message.
struct Limits {
    /// When it began, in milliseconds of the monotonic clock.
    began: u64,
    seconds: u64,
    /// Blocks whose contents were fetched for it.
    contents: BTreeSet<u64>,
}

impl Limits {
    fn start() -> Self {
        Self { began: moment().millis, seconds: RUN_SECONDS, contents: BTreeSet::new() }
    }

    fn is_over(&self) -> bool {
        moment().millis.saturating_sub(self.began) > self.seconds.saturating_mul(1_000)
    }
}

impl Fork {
    /// Finds a block of the network.
    pub(crate) async fn open(reached: Reached, block: ForkBlock) -> Result<Self, ForkError> {
        let upstream = JsUpstream::new(reached.exchange.clone(), reached.config.batch);
        let names = reached.config.names(1).into();
        let starts = RefCell::default();
        let fork = Self { reached, upstream, names, budget: Budget::new(ANSWER_BYTES), starts };
        let limits = Limits { seconds: RESET_SECONDS, ..Limits::start() };
        let start = fork.begin(block, &limits).await?;
        fork.starts.borrow_mut().push(start);
        Ok(fork)
    }

    /// The network of the block.
    pub(crate) fn network(&self) -> Network {
        (*self.reached.config.network).clone()
    }

    /// The block on which the chain begins.
    pub(crate) fn base(&self) -> Option<Arc<dyn ForkBase>> {
        let starts = self.starts.borrow();
        starts.last().map(|start| start.state.clone() as Arc<dyn ForkBase>)
    }

    /// Whether state is taken without proof.
    pub(crate) fn is_unproven(&self) -> bool {
        self.reached.config.unproven != UnprovenPolicy::Refuse
    }

    /// Whether the run that is under way has missed something.
    pub(crate) fn is_missing(&self) -> bool {
        self.starts.borrow().iter().any(|start| !start.notes.is_empty())
    }

    /// Runs `work` once. The error is the data that it lacked.
    pub(crate) fn attempt<T>(&self, work: impl FnOnce() -> T) -> Result<Result<T, Missed>, ForkError> {
        self.starts.borrow().iter().for_each(|start| drop(start.notes.take()));
        let value = work();
        let mut missed = Vec::new();
        for start in self.starts.borrow().iter() {
            let missing = start.notes.take();
            if !missing.is_empty() {
                missed.push((start.clone(), missing.wanted()?));
            }
        }
        Ok(if missed.is_empty() { Ok(value) } else { Err(Missed(missed)) })
    }

    /// Fetches what a run has missed, and runs `work` until it misses nothing. `work` must undo what it has changed where it
    /// misses something ([`Self::is_missing`]).
    pub(crate) async fn finish<T>(
        &self,
        missed: Missed,
        mut work: impl FnMut() -> T,
    ) -> Result<T, ForkError> {
        let finished = self.rounds(missed, &mut work).await;
        // The next reset looks for its block anew, whatever this message has found.
        self.starts.borrow().iter().for_each(|start| start.state.forget_others());
        finished
    }

    async fn rounds<T>(&self, mut missed: Missed, work: &mut impl FnMut() -> T) -> Result<T, ForkError> {
        let mut limits = Limits::start();
        for _ in 0..MOST_ROUNDS {
            self.fill(missed, &mut limits).await?;
            missed = match self.attempt(&mut *work)? {
                Ok(value) => return Ok(value),
                Err(missed) => missed,
            };
        }
        Err(ForkError::TooManyRounds(MOST_ROUNDS))
    }

    /// As [`Self::finish`], from the first run on.
    pub(crate) async fn run<T>(&self, mut work: impl FnMut() -> T) -> Result<T, ForkError> {
        match self.attempt(&mut work)? {
            Ok(value) => Ok(value),
            Err(missed) => self.finish(missed, work).await,
        }
    }

    async fn fill(&self, missed: Missed, limits: &mut Limits) -> Result<(), ForkError> {
        for (start, mut wanted) in missed.0 {
            wanted.count_contents(&mut limits.contents)?;
            let state = &*start.state;
            self.fetch(limits, |exchanges| fetch_values(exchanges, state, &wanted)).await?;
            let run = &limits.contents;
            self.fetch(limits, |exchanges| fetch_blocks(exchanges, state, &mut wanted, run)).await?;
            for (url, number) in wanted.others {
                if url.as_ref().is_some_and(|url| *url != self.reached.url) {
                    return Err(ForkError::OtherUrl);
                }
                limits.seconds = RESET_SECONDS;
                let block = number.map_or(ForkBlock::Head, ForkBlock::Number);
                let begun = self.begin(block, limits).await?;
                state.add_other((url, number), begun.state.clone());
                let mut starts = self.starts.borrow_mut();
                // A start that only this list holds belongs to no chain any more.
                starts.retain(|start| Arc::strong_count(&start.state) > 1);
                starts.push(begun);
            }
        }
        Ok(())
    }

    /// Runs `work` with each response that it asks for, until it asks for no more.
    async fn fetch<T>(
        &self,
        limits: &Limits,
        mut work: impl FnMut(&mut Exchanges) -> Fetched<T>,
    ) -> Result<T, ForkError> {
        let mut exchanges = Exchanges::new(self.names.clone(), self.reached.config.unproven);
        loop {
            let (upstream, requests) = match work(&mut exchanges) {
                Ok(value) => return Ok(value),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Ask(upstream, requests)) => (upstream, requests),
            };
            if limits.is_over() {
                return Err(ForkError::TooLate(limits.seconds));
            }
            let share = self.budget.share();
            let responses = self.upstream.ask(&requests, false, &share).await;
            exchanges.feed(upstream, requests, responses);
        }
    }

    async fn begin(&self, block: ForkBlock, limits: &Limits) -> Result<Start, ForkError> {
        let network = &self.reached.config.network;
        let (header, chain) = match block {
            ForkBlock::Trusted(number, hash) => {
                let at = (number, hash);
                let header = self.fetch(limits, |exchanges| trusted_header(exchanges, network, at)).await?;
                (trusted_block(network, header)?, None)
            }
            ForkBlock::Head | ForkBlock::Number(_) => {
                let chain = self.verified(limits).await?;
                let number = match block {
                    ForkBlock::Number(number) => number,
                    _ => chain.head().number,
                };
                let nearest =
                    |exchanges: &mut Exchanges| nearest(exchanges, &chain, number).map_err(Stop::from);
                let mut at = self.fetch(limits, nearest).await?;
                while at.number > number {
                    let linked =
                        self.fetch(limits, |exchanges| below(exchanges, network, &at, number)).await?;
                    let missing = || ForkError::Unverified(format!("it does not have block {number}"));
                    at = linked.into_iter().next_back().ok_or_else(missing)?;
                }
                (at, Some(chain))
            }
        };
        let notes = Arc::new(SharedNotes::default());
        let mut state = ForkState::new(network.clone(), header, notes.clone())?;
        self.fetch(limits, |exchanges| ancestors(exchanges, &state, chain.as_ref())).await?;
        state.set_first_rewarded();
        Ok(Start { state: Arc::new(state), notes })
    }

    /// The chain that a light client verifies, up to its head.
    async fn verified(&self, limits: &Limits) -> Result<ChainView, ForkError> {
        let Reached { config, exchange, keep, .. } = &self.reached;
        let upstream = JsUpstream::new(exchange.clone(), config.batch);
        let driver = Rc::new(Driver::new(config, vec![upstream], keep.clone(), None));
        let closed = Rc::new(Cell::new(false));
        spawn_local(follow(driver.clone(), 0, closed.clone()));
        let reached = driver.reach_head(|| limits.is_over()).await;
        closed.set(true);
        match reached {
            Err(_) if limits.is_over() => Err(ForkError::TooLate(limits.seconds)),
            Err(reason) => Err(ForkError::Unverified(reason)),
            Ok(()) => driver.verified_chain().map_err(ForkError::Unverified),
        }
    }
}

/// The block that a caller names by its height and its hash.
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
