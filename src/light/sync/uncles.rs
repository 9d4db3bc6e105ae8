//! Uncles: fetched from whoever has them, attached oldest block first.

use alloc::{format, vec::Vec};

use super::{
    machine::Sync,
    peer::{Phase, Work},
    standing::LEASE_POLL,
};
use crate::{
    consensus::{VerifiedHeader, VerifiedUncles},
    light::{
        fact::{BlockRef, Fact},
        fault::{SyncCause, SyncFault},
        prove,
        record::{LIE, REFUTED, SILENT},
        task::{Cause, FactFailure, Task, Wanted, METHOD_NOT_FOUND},
        upstream::{Answer, CallFailure, UpstreamCall},
    },
    types::Header,
};

/// Blocks whose uncles one upstream is asked for at a time.
const MOST_BLOCKS: usize = 64;

impl Sync {
    /// Open uncles for this upstream to fetch; it is not asked again for what it has no method for.
    pub(super) fn uncle_tasks(&mut self, upstream: usize) -> Vec<Task> {
        if self.peers.get(upstream).is_some_and(|peer| peer.no_uncles) {
            self.backlog.refuse_all(upstream);
        }
        let blocks = self.backlog.take(upstream, MOST_BLOCKS);
        let wanted = blocks.into_iter().map(|(block, count)| Wanted::One(Fact::Uncles(block, count)));
        wanted.map(|wanted| Task::new(wanted, &[])).collect()
    }

    /// Uncles, or a pause where there are none to fetch.
    pub(super) fn uncle_work(&mut self, upstream: usize) -> Phase {
        self.after(upstream, Vec::new())
    }

    /// What comes when there are no headers to fetch.
    pub(super) fn after(&mut self, upstream: usize, mut uncles: Vec<Task>) -> Phase {
        if uncles.is_empty() {
            uncles = self.uncle_tasks(upstream);
        }
        if !uncles.is_empty() {
            return Phase::Work(Work { window: None, uncles });
        }
        let seen = self.peers.get(upstream).is_some_and(|peer| peer.at_end);
        Phase::Idle(self.now.plus(if seen { self.options.poll } else { LEASE_POLL }))
    }

    pub(super) fn feed_uncles(
        &mut self,
        upstream: usize,
        tasks: &mut Vec<Task>,
        mut answers: impl Iterator<Item = Answer>,
    ) -> Result<(), SyncFault> {
        for task in tasks.iter_mut().filter(|task| !task.is_complete()) {
            for index in 0..task.calls().len() {
                task.answer(index, answers.next().unwrap_or(Err(CallFailure::Malformed("no answer"))));
            }
        }
        for mut task in core::mem::take(tasks) {
            let Wanted::One(Fact::Uncles(block, _)) = task.wanted else { continue };
            if let Some(failure) = task.silence() {
                return Err(SyncFault { number: block.number, cause: SyncCause::Call(failure) });
            }
            match self.committed(&task, &block) {
                Ok(uncles) => self.backlog.ready(&block, upstream, uncles),
                Err(cause) if is_unknown(&cause) && task.last_cause().is_some_and(is_unknown) => {
                    // Neither by hash nor by number: the last attempt would only repeat that.
                    self.backlog.refuse(&block, upstream);
                    if let Some(peer) = self.peers.get_mut(upstream) {
                        peer.no_uncles = true;
                    }
                }
                Err(cause) => match task.next_attempt(cause, &[]) {
                    Ok(()) => tasks.push(task),
                    Err(failure) => self.refuse_uncles(upstream, &block, &failure)?,
                },
            }
        }
        Ok(())
    }

    /// An upstream that has none to give leaves them to others; uncles that are not the block's are a fault.
    fn refuse_uncles(
        &mut self,
        upstream: usize,
        block: &BlockRef,
        failure: &FactFailure,
    ) -> Result<(), SyncFault> {
        self.backlog.refuse(block, upstream);
        if failure.attempts.iter().all(|attempt| is_withheld(&attempt.cause)) {
            return Ok(());
        }
        Err(SyncFault { number: block.number, cause: SyncCause::Uncles(format!("{failure}")) })
    }

    /// The uncles of a task's answers, as the block's header commits to them.
    fn committed(&self, task: &Task, block: &BlockRef) -> Result<Vec<Header>, Cause> {
        let uncles = prove::uncle_headers(task, &self.network)?;
        let header = self.chain.as_ref().and_then(|chain| chain.by_hash(&block.hash));
        let header = header.ok_or(Cause::Withheld)?;
        let checked = VerifiedUncles::check(header, uncles.clone());
        checked.map(|_| uncles).map_err(|error| Cause::Refuted(format!("{error}")))
    }

    /// Uncles that came with the header of a block that has some.
    pub(super) fn offer_uncles(&mut self, upstream: usize, header: &VerifiedHeader, uncles: Vec<Header>) {
        let block = BlockRef { number: header.number, hash: header.hash() };
        let (weight, rule) = if uncles.is_empty() {
            // Perhaps it has none to give: then others do.
            (SILENT, "no uncles came with the header".into())
        } else {
            match VerifiedUncles::check(header, uncles.clone()) {
                Ok(_) => return self.backlog.ready(&block, upstream, uncles),
                Err(error) => (LIE, format!("uncles of {block}: {error}")),
            }
        };
        let params = format!(r#"["{:#x}","0x1"]"#, block.number);
        self.note(upstream, UpstreamCall::new("rootlight_getHeaders", params), rule, weight);
    }

    /// Attaches what is there, oldest block first: a block's uncles must not repeat those of the blocks before it.
    pub(super) fn attach_ready(&mut self) {
        let healthy = self.healthy();
        while let Some((block, upstream, uncles)) = self.backlog.next_ready(&healthy) {
            let Some(chain) = &mut self.chain else { return };
            // Not countable (too close to the checkpoint) or against the rules: their work does not count.
            match chain.attach_uncles(&block.hash, uncles, Some(self.now.unix)) {
                Ok(moved) => self.touch(moved.map_or(block.number, |change| {
                    block.number.min(change.ancestor.number.saturating_add(1))
                })),
                Err(error) if error.is_misbehaviour() => {
                    let params = format!(r#"["{}",false]"#, block.hash);
                    self.note(
                        upstream,
                        UpstreamCall::new("eth_getBlockByHash", params),
                        format!("{error}"),
                        REFUTED,
                    );
                }
                Err(_) => {}
            }
        }
    }
}

/// Whether the upstream has no such method.
fn is_unknown(cause: &Cause) -> bool {
    matches!(cause, Cause::Call(CallFailure::Rpc { code: METHOD_NOT_FOUND, .. }))
}

/// Whether the upstream merely has nothing to give, rather than giving something wrong.
fn is_withheld(cause: &Cause) -> bool {
    matches!(cause, Cause::Withheld | Cause::Call(CallFailure::Rpc { .. } | CallFailure::NotRecorded))
}
