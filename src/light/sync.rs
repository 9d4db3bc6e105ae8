//! Header synchronization: from a checkpoint to the upstream's head, one batch of questions at a time.
//!
//! A state machine: [`Sync::step`] says what to do next, [`Sync::feed`] takes the answers. The host moves bytes and
//! tells the time. Every header is verified before it is kept; the first one that does not verify stops the machine.

use alloc::{format, sync::Arc, vec::Vec};

use alloy_primitives::B256;

use super::{
    fact::{BlockRef, Fact},
    fault::{SyncCause, SyncFault},
    header_window::{HeaderWindow, WindowError},
    prove,
    task::{Cause, Task, Wanted},
    upstream::{Answer, CallFailure, UpstreamCall},
};
use crate::{
    consensus::{Candidate, ChainError, Change, Checkpoint, HeaderChain, Network, VerifiedHeader},
    types::{SealedHeader, EMPTY_UNCLES_HASH},
};

/// Questions of one batch unless the host says otherwise: the reference's own batch limit.
pub const DEFAULT_BATCH: usize = 50;

/// How far a first look below an unknown parent goes, in blocks; each further look goes twice as far.
const FIRST_REWIND: u64 = 8;

/// What the host has to do.
#[derive(Debug)]
pub enum SyncStep {
    /// Ask these questions together and [`Sync::feed`] the answers in the same order.
    Fetch(Vec<UpstreamCall>),
    /// The head is current: wait for the polling interval, then [`Sync::poll`].
    Idle,
    /// Data did not verify: report it, wait, then [`Sync::poll`] to try again from the last verified header.
    Failed(SyncFault),
}

/// Where the machine stands.
#[derive(Debug)]
enum Phase {
    /// Fetch and check the checkpoint's header.
    Checkpoint(HeaderWindow),
    /// Ask for the upstream's height.
    Height,
    /// Fetch and verify a window of headers.
    Headers(HeaderWindow),
    /// Fetch and verify the uncles of blocks just inserted.
    Uncles(Vec<Task>),
    /// Nothing to do until the next poll.
    Idle,
    /// Stopped.
    Failed(SyncFault),
}

/// The synchronization machine; it owns the header chain.
#[derive(Debug)]
pub struct Sync {
    network: Arc<Network>,
    checkpoint: Checkpoint,
    chain: Option<HeaderChain>,
    phase: Phase,
    /// The height the upstream announced.
    announced: u64,
    batch: usize,
    rewind: u64,
    /// Blocks whose uncles are still to be fetched.
    without_uncles: Vec<VerifiedHeader>,
    synced_once: bool,
    /// The newest header taken from the upstream, on whichever branch.
    cursor: u64,
}

impl Sync {
    /// A machine that starts at a trusted checkpoint.
    pub fn new(network: Arc<Network>, checkpoint: Checkpoint) -> Self {
        let phase = Phase::Checkpoint(HeaderWindow::single(checkpoint.number));
        Self {
            network,
            checkpoint,
            chain: None,
            phase,
            announced: 0,
            batch: DEFAULT_BATCH,
            rewind: FIRST_REWIND,
            without_uncles: Vec::new(),
            synced_once: false,
            cursor: 0,
        }
    }

    /// Sets how many questions one batch may have (at least 1).
    pub fn set_batch(&mut self, batch: usize) {
        self.batch = batch.max(1);
    }

    /// The verified chain, once the checkpoint's header is there.
    pub fn chain(&self) -> Option<&HeaderChain> {
        self.chain.as_ref()
    }

    /// The network being followed.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// The height an upstream announced last.
    pub fn announced(&self) -> u64 {
        self.announced
    }

    /// Height of the checkpoint.
    pub fn start(&self) -> u64 {
        self.checkpoint.number
    }

    /// Whether the head has been reached at least once.
    pub fn is_synced(&self) -> bool {
        self.synced_once
    }

    /// Whether no uncles are on their way: total difficulties are as exact as they will get.
    pub fn is_settled(&self) -> bool {
        self.synced_once && self.without_uncles.is_empty() && !matches!(self.phase, Phase::Uncles(_))
    }

    /// Why the machine stands still, if it does.
    pub fn fault(&self) -> Option<&SyncFault> {
        match &self.phase {
            Phase::Failed(fault) => Some(fault),
            _ => None,
        }
    }

    /// What to do next.
    pub fn step(&self) -> SyncStep {
        match &self.phase {
            Phase::Checkpoint(window) | Phase::Headers(window) => SyncStep::Fetch(window.questions()),
            Phase::Height => SyncStep::Fetch(alloc::vec![UpstreamCall::new("eth_blockNumber", "[]".into())]),
            Phase::Uncles(tasks) => {
                let open = tasks.iter().filter(|task| !task.is_complete());
                SyncStep::Fetch(open.flat_map(|task| task.calls().iter().cloned()).collect())
            }
            Phase::Idle => SyncStep::Idle,
            Phase::Failed(fault) => SyncStep::Failed(fault.clone()),
        }
    }

    /// Starts over from the last verified header: after the polling interval, or after a failure.
    pub fn poll(&mut self) {
        self.phase = match self.chain {
            Some(_) => Phase::Height,
            None => Phase::Checkpoint(HeaderWindow::single(self.checkpoint.number)),
        };
    }

    /// Takes the answers to the questions of the last [`SyncStep::Fetch`], in order.
    ///
    /// `now` is the host's time in seconds since 1970; headers from the future wait.
    pub fn feed(&mut self, answers: Vec<Answer>, now: u64) {
        let phase = core::mem::replace(&mut self.phase, Phase::Idle);
        let next = match phase {
            Phase::Checkpoint(window) => self.feed_checkpoint(window, answers),
            Phase::Height => self.feed_height(&answers),
            Phase::Headers(window) => self.feed_headers(window, answers, now),
            Phase::Uncles(tasks) => self.feed_uncles(tasks, answers, now),
            same @ (Phase::Idle | Phase::Failed(_)) => Ok(same),
        };
        self.phase = next.unwrap_or_else(Phase::Failed);
    }

    fn feed_checkpoint(
        &mut self,
        mut window: HeaderWindow,
        answers: Vec<Answer>,
    ) -> Result<Phase, SyncFault> {
        let number = self.checkpoint.number;
        if let Err(WindowError::AskAgain) = window.take(answers, &self.network) {
            return Ok(Phase::Checkpoint(window));
        }
        let header =
            window.into_headers().map_err(|(_, cause)| SyncFault { number, cause })?.into_iter().next();
        let header = header.ok_or(SyncFault { number, cause: SyncCause::Missing })?;
        let chain = HeaderChain::from_checkpoint(self.network.clone(), &self.checkpoint, header)
            .map_err(|error| SyncFault { number, cause: SyncCause::Header(error) })?;
        self.chain = Some(chain);
        Ok(Phase::Height)
    }

    fn feed_height(&mut self, answers: &[Answer]) -> Result<Phase, SyncFault> {
        let fault = |cause| SyncFault { number: self.announced, cause };
        let height = match answers.first() {
            Some(Ok(raw)) => prove::quantity(raw).ok_or(fault(SyncCause::BadHeight))?,
            Some(Err(failure)) => return Err(fault(SyncCause::Call(failure.clone()))),
            None => return Err(fault(SyncCause::Missing)),
        };
        self.announced = height;
        self.cursor = self.head_number();
        Ok(self.next_window())
    }

    fn head_number(&self) -> u64 {
        self.chain.as_ref().map_or(self.checkpoint.number, |chain| chain.head().number)
    }

    /// The window after the cursor: up to the announced height and one more, so that a height announced too low (by
    /// mistake or by intent) hides nothing.
    fn next_window(&self) -> Phase {
        let first = self.cursor.saturating_add(1);
        let most = first.saturating_add((self.batch as u64).saturating_sub(1));
        let last = self.announced.saturating_add(1).clamp(first, most);
        Phase::Headers(HeaderWindow::new(first, last, self.announced))
    }

    fn feed_headers(
        &mut self,
        mut window: HeaderWindow,
        answers: Vec<Answer>,
        now: u64,
    ) -> Result<Phase, SyncFault> {
        if let Err(WindowError::AskAgain) = window.take(answers, &self.network) {
            return Ok(Phase::Headers(window));
        }
        let (first, wanted) = (window.first(), window.len());
        let headers = window.into_headers().map_err(|(number, cause)| SyncFault { number, cause })?;
        let ended = headers.len() < wanted;
        for header in headers {
            let number = header.number;
            match self.insert(header, now) {
                Ok(()) => self.cursor = number,
                Err(SyncCause::Unlinked) => return self.rewind_below(first, number),
                Err(cause) => return Err(SyncFault { number, cause }),
            }
        }
        self.rewind = FIRST_REWIND;
        Ok(self.after_insert(ended))
    }

    fn insert(&mut self, header: SealedHeader, now: u64) -> Result<(), SyncCause> {
        let chain = self.chain.as_mut().ok_or(SyncCause::Missing)?;
        match chain.insert(Candidate::from(header), Some(now)) {
            Ok(inserted) => {
                if inserted.change != Change::Known && inserted.header.uncles_hash != EMPTY_UNCLES_HASH {
                    self.without_uncles.push(inserted.header);
                }
                Ok(())
            }
            Err(ChainError::UnknownParent { .. }) => Err(SyncCause::Unlinked),
            Err(error) => Err(SyncCause::Header(error)),
        }
    }

    /// The upstream's chain does not continue ours: look further back for the common ancestor.
    fn rewind_below(&mut self, first: u64, number: u64) -> Result<Phase, SyncFault> {
        let floor = self.checkpoint.number.saturating_add(1);
        if first <= floor {
            return Err(SyncFault { number, cause: SyncCause::Unlinked });
        }
        let start = first.saturating_sub(self.rewind).max(floor);
        self.rewind = self.rewind.saturating_mul(2);
        self.cursor = start.saturating_sub(1);
        Ok(Phase::Headers(HeaderWindow::new(start, number, number)))
    }

    fn after_insert(&mut self, ended: bool) -> Phase {
        let tasks: Vec<Task> = core::mem::take(&mut self.without_uncles).iter().map(uncle_task).collect();
        if !tasks.is_empty() {
            return Phase::Uncles(tasks);
        }
        if ended && self.cursor >= self.announced {
            self.synced_once = true;
            return Phase::Idle;
        }
        self.next_window()
    }

    /// Attaches uncles oldest block first: a block's uncles must not repeat those of the blocks before it.
    fn feed_uncles(
        &mut self,
        mut tasks: Vec<Task>,
        answers: Vec<Answer>,
        now: u64,
    ) -> Result<Phase, SyncFault> {
        let mut answers = answers.into_iter();
        for task in tasks.iter_mut().filter(|task| !task.is_complete()) {
            for index in 0..task.calls().len() {
                task.answer(index, answers.next().unwrap_or(Err(CallFailure::Malformed("no answer"))));
            }
        }
        while tasks.first().is_some_and(Task::is_complete) {
            let task = tasks.remove(0);
            let block = task.wanted.clone();
            match self.prove_uncles(task, now) {
                Ok(None) => {}
                Ok(Some(again)) => tasks.insert(0, again),
                Err(fault) => {
                    self.put_back(&[Task::new(block, &[])]);
                    self.put_back(&tasks);
                    return Err(fault);
                }
            }
        }
        Ok(if tasks.is_empty() { self.after_insert(false) } else { Phase::Uncles(tasks) })
    }

    /// Proves and attaches the uncles of one block. An upstream that has none to give leaves the total difficulty
    /// unknown from there on; uncles that do not verify are a fault.
    fn prove_uncles(&mut self, mut task: Task, now: u64) -> Result<Option<Task>, SyncFault> {
        let Wanted::One(Fact::Uncles(block, _)) = task.wanted else { return Ok(None) };
        let Err(cause) = self.attach(&task, block.hash, now) else { return Ok(None) };
        match task.next_attempt(cause, &[]) {
            Ok(()) => Ok(Some(task)),
            Err(failure) if failure.attempts.iter().all(|attempt| is_withheld(&attempt.cause)) => Ok(None),
            Err(failure) => {
                Err(SyncFault { number: block.number, cause: SyncCause::Uncles(format!("{failure}")) })
            }
        }
    }

    /// The blocks of these tasks will be asked about again.
    fn put_back(&mut self, tasks: &[Task]) {
        let Some(chain) = &self.chain else { return };
        let blocks = tasks.iter().filter_map(|task| match &task.wanted {
            Wanted::One(Fact::Uncles(block, _)) => chain.by_hash(&block.hash).cloned(),
            _ => None,
        });
        self.without_uncles.extend(blocks);
    }

    fn attach(&mut self, task: &Task, hash: B256, now: u64) -> Result<(), Cause> {
        let uncles = prove::uncle_headers(task, &self.network)?;
        let chain = self.chain.as_mut().ok_or(Cause::Withheld)?;
        match chain.attach_uncles(&hash, uncles, Some(now)) {
            Err(error) if error.is_misbehaviour() => Err(Cause::Refuted(format!("{error}"))),
            // Not countable here (too close to the checkpoint): the total difficulty stays unknown.
            _ => Ok(()),
        }
    }
}

/// Whether the upstream merely has nothing to give, rather than giving something wrong.
fn is_withheld(cause: &Cause) -> bool {
    matches!(cause, Cause::Withheld | Cause::Call(CallFailure::Rpc { .. } | CallFailure::NotRecorded))
}

fn uncle_task(header: &VerifiedHeader) -> Task {
    let block = BlockRef { number: header.number, hash: header.hash() };
    Task::new(Wanted::One(Fact::Uncles(block, header.uncle_count)), &[])
}
