//! The block that all front ends show: a client that asks one front end after another never sees the head go back.
//!
//! **The property.** If an answer was made on a block, then no answer to a message that came to any front end after that
//! answer was sent is made on an earlier one. Two mechanisms give it, each without the other:
//!
//! - A block is written to the store before any front end shows it. A front end lets a message in only after a look at the
//!   store that began when the message was there, and that found the block shown which messages see here. This rests on no
//!   clock and no lease: a front end that was paused, or whose report the others do not count any more, finds a later block,
//!   and one whose block the store has lost waits until the store has it back. One look serves all messages that came
//!   before it.
//! - A block is shown in two steps, for which all front ends that count stop letting messages in (`heads.lua`). A front end
//!   that has stopped lets none in before it knows what has become of that block, also if the store forgets it, and its
//!   reports give back to the store what it has seen. So a store that was emptied, or whose successor lacks the last
//!   changes, takes nothing back: for the time for which a report counts, no front end is let in anew. This rests on that time,
//!   and on one front end that has shown the block, or stopped for it, and reports within it.
//!
//! The property is given up while the store cannot be reached: reports that fail for five seconds make a front end show its
//! own newest block. It is verified, but for that time front ends may differ by a block ([`NextBlockWait`]). A front end that
//! comes back waits until the others show what it has shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rootlight::types::{B256, BlockRef, U256};
use rootlight_node::light::{MessageGate, VisibleChain, VisibleHead};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tracing::{info, warn};

use super::backend::NewBlocks;
use super::fan_out::FanOut;
use super::head_agreement::{AgreementStep, EntryRule, HeadDisplay, HeadsReply, Participant, assures};
use super::next_block_wait::NextBlockWait;
use crate::store::{HotStore, HotStoreError, Script};

/// Pause between two reports.
const PAUSE: Duration = Duration::from_millis(300);
/// The same while messages wait.
const SHORT_PAUSE: Duration = Duration::from_millis(15);
/// Pause after a look at the store that failed.
const FAILED_PAUSE: Duration = Duration::from_millis(100);
/// Blocks of a report.
const BLOCKS: usize = 16;

const SCRIPT: &str = include_str!("heads.lua");

/// Why a front end that lags refuses messages.
const BEHIND: &str = "this front end is behind the others; ask again";

/// Why a front end without a head refuses messages.
const NO_HEAD: &str = "this front end has not reached the head of the chain yet";

/// The result of the script: the role of this front end, the round, the next block, the shown block, the round in which
/// it came to be shown, and the milliseconds since a front end was lost (-1 if none was).
type ScriptReply = (String, u64, String, String, u64, i64);

/// Shows the block that the front ends agree on, for as long as it runs.
pub(super) struct Agreement {
    store: Arc<HotStore>,
    head: Arc<VisibleHead>,
    ahead: Arc<NextBlockWait>,
    fan_out: Arc<FanOut>,
    new_blocks: NewBlocks,
    name: String,
    /// The key of the agreement, and the channel of its changes.
    key: String,
    script: Script,
    part: Participant<VisibleChain>,
    looks: Arc<Looks>,
}

/// Messages between the task that asks the store and the agreement.
#[derive(Default)]
struct Looks {
    /// [`Participant::covers`].
    covers: AtomicU64,
    /// Another block is shown than messages see here.
    differs: Notify,
}

impl HeadDisplay for VisibleHead {
    type Chain = VisibleChain;

    fn head_of(chain: &VisibleChain) -> BlockRef {
        chain.head()
    }

    fn up_to(&self, block: &B256) -> Option<VisibleChain> {
        self.up_to(block)
    }

    fn is_canonical(&self, block: &BlockRef) -> bool {
        self.is_canonical(block)
    }

    fn served(&self) -> Option<BlockRef> {
        self.served()
    }

    fn show(&self, chain: &VisibleChain) {
        self.show(chain);
    }

    fn show_newest(&self) {
        self.show_newest();
    }
}

impl Agreement {
    /// An agreement of the front end of this name, which no other has. Messages wait until [`Self::run`] has agreed.
    pub(super) fn new(
        store: Arc<HotStore>,
        head: VisibleHead,
        ahead: Arc<NextBlockWait>,
        fan_out: Arc<FanOut>,
        new_blocks: NewBlocks,
        name: String,
        chain: u64,
    ) -> Self {
        head.set(MessageGate::Held);
        let (script, key) = (Script::new(SCRIPT), format!("heads:{chain}"));
        let (part, looks, head) = (Participant::default(), Arc::default(), Arc::new(head));
        Self { store, head, ahead, fan_out, new_blocks, name, key, script, part, looks }
    }

    /// Agrees for ever, and looks for messages whether the others have gone on.
    pub(super) async fn run(self) {
        let (store, head, looks) = (self.store.clone(), self.head.clone(), self.looks.clone());
        let key = self.key.clone();
        tokio::join!(self.agree(), look(&store, &head, &looks, &key));
    }

    async fn agree(mut self) {
        let mut subscription = self.store.subscribe(&self.key).ok();
        let mut changes = self.head.changes();
        loop {
            let again = self.step().await;
            if again {
                continue;
            }
            let pause = if self.part.is_stopped() { SHORT_PAUSE } else { PAUSE };
            let news = async {
                match &mut subscription {
                    // A receiver that was too slow reports at once, too.
                    Some(subscription) => {
                        matches!(subscription.recv().await, Ok(_) | Err(RecvError::Lagged(_)))
                    }
                    None => false,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.fan_out.settled() => {}
                () = self.looks.differs.notified() => {}
                is_open = news => {
                    self.new_blocks.look_if_missed();
                    if !is_open {
                        subscription = None;
                        tokio::time::sleep(pause).await;
                    }
                }
                changed = changes.changed() => if changed.is_err() {
                    tokio::time::sleep(pause).await;
                },
            }
        }
    }

    /// Reports once. Returns whether to report again at once.
    async fn step(&mut self) -> bool {
        let Some((blocks, work)) = self.complete() else {
            self.part.close();
            self.head.set(MessageGate::Shut(NO_HEAD));
            return false;
        };
        let sent = Instant::now();
        let arguments = self.part.report(&*self.head, &self.name, &blocks, work.to_be_bytes::<32>().into());
        let arguments = arguments.map(String::into_bytes);
        match self.store.script::<ScriptReply>(&self.script, &self.key, &arguments).await {
            Ok(reply) => self.apply_reply(reply, sent),
            Err(error) => {
                self.ahead.report_failed();
                self.failed(&error);
                false
            }
        }
    }

    /// The last verified blocks and their work. A block whose contents are about to come from another front end is left out
    /// for a moment, so that messages about it need no backend. Not after a reorganisation: all leave the old branch at once.
    fn complete(&self) -> Option<(Vec<BlockRef>, U256)> {
        let shown = self.part.shown().filter(|shown| self.head.is_canonical(shown));
        self.head.verified_without(BLOCKS, |block| {
            shown.is_some_and(|shown| block.number > shown.number) && self.fan_out.awaits(block)
        })
    }

    fn apply_reply(&mut self, (part, round, next, shown, at, lost): ScriptReply, sent: Instant) -> bool {
        if let Ok(lost) = u64::try_from(lost) {
            self.ahead.was_lost(Duration::from_millis(lost));
        }
        // The store was emptied.
        if part == "fresh" && self.part.shown().is_some() {
            self.ahead.report_failed();
        }
        let counted = self.part.counts();
        let reply = HeadsReply { part, round, next, shown, at };
        let AgreementStep { entry, again } = self.part.apply_reply(&reply, sent, &*self.head);
        if self.part.counts() && !counted {
            info!("showing the same block as the other front ends");
        }
        // The block is shown by now, and messages are let in afterwards.
        self.looks.covers.store(self.part.covers(), Ordering::Release);
        entry.into_iter().for_each(|entry| self.set(entry));
        again
    }

    fn failed(&mut self, error: &HotStoreError) {
        let counted = self.part.counts();
        let Some(entry) = self.part.failed(Instant::now(), &*self.head) else { return };
        if counted {
            warn!("showing the newest block of this front end: {error}");
        }
        // This wakes all that wait for another head, also [`Self::run`].
        self.set(entry);
    }

    fn set(&self, entry: EntryRule) {
        self.head.set(match entry {
            EntryRule::Until(end) => MessageGate::OpenUntil(end),
            EntryRule::Alone => MessageGate::Open,
            EntryRule::Held => MessageGate::Held,
            EntryRule::Behind => MessageGate::Shut(BEHIND),
        });
    }
}

/// Looks at the store for the messages that wait to be let in, for ever. A look is under way at a time, so that one serves all
/// that came before it.
async fn look(store: &HotStore, head: &VisibleHead, looks: &Looks, key: &str) {
    loop {
        let last = head.unsure().await;
        match store.command::<Option<u64>>("HGET", key, &[b"at".to_vec()]).await {
            Ok(shown) if assures(shown, looks.covers.load(Ordering::Acquire)) => head.assure(last),
            Ok(_) => {
                looks.differs.notify_one();
                tokio::time::sleep(SHORT_PAUSE).await;
            }
            Err(_) => tokio::time::sleep(FAILED_PAUSE).await,
        }
    }
}
