//! The agreement on the block that all front ends show: a client that asks one front end after another never sees the head go
//! back. `heads.lua` is the hot store's side, `head_agreement.rs` decides what a front end does.
//!
//! **The property.** If an answer was made on a block, then no answer to a message that came to any front end after that
//! answer was sent is made on an earlier block. Each of two mechanisms gives this property without the other:
//!
//! - A block is written to the store before any front end shows it. A front end lets a message in only after a look at the
//!   store: it reads there which block is shown, after the message has come, and finds the block that messages see here. This
//!   mechanism needs no clock: a front end that was paused, or whose report the others do not count any more, finds a later
//!   block, and a front end whose block the store has lost waits until the store has that block again. One look serves all
//!   messages that came before it.
//! - A block is shown in two steps: first all front ends whose reports count stop letting messages in, then all show the block.
//!   A front end that has stopped lets no message in before it has read whether the block is shown, also if the store loses the
//!   block, and its reports give the store the lost block again. So a store that was emptied, or whose successor lacks the last
//!   changes, does not make the head go back: for the time for which a report counts, no front end becomes a member. This
//!   mechanism needs that time, and one front end that has shown the block, or stopped for it, and reports within the time.
//!
//! While the store cannot be reached, the property does not hold: a front end whose reports fail for five seconds shows its own
//! newest block. That block is verified, but front ends may differ by a block meanwhile ([`NextBlockWait`]). A front end that
//! reaches the store again waits until the others show the block that it has shown.

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
/// Pause between two reports, or two looks, while messages wait.
const SHORT_PAUSE: Duration = Duration::from_millis(15);
/// Pause after a look at the store that failed.
const FAILED_PAUSE: Duration = Duration::from_millis(100);
/// Most blocks in a report.
const REPORTED_BLOCKS: usize = 16;

/// The store's side of the agreement. Its first lines explain its arguments and its answer.
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
    next_block_wait: Arc<NextBlockWait>,
    fan_out: Arc<FanOut>,
    new_blocks: NewBlocks,
    /// The name of this front end, which no other has.
    name: String,
    /// The key of the agreement, and the channel of its changes.
    key: String,
    script: Script,
    participant: Participant<VisibleChain>,
    looks: Arc<Looks>,
}

/// State that the agreement and the task that looks at the store share.
#[derive(Default)]
struct Looks {
    /// [`Participant::covers`].
    covers: AtomicU64,
    /// Notified when a look has found that another block is shown than messages see here.
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

    fn newest_visible(&self) -> Option<BlockRef> {
        self.newest_visible()
    }

    fn show(&self, chain: &VisibleChain) {
        self.show(chain);
    }

    fn show_newest(&self) {
        self.show_newest();
    }
}

impl Agreement {
    /// `name` is that of this front end, which no other has; `chain` is the number of the chain. Messages wait until [`Self::run`]
    /// has agreed on a block.
    pub(super) fn new(
        store: Arc<HotStore>,
        head: VisibleHead,
        next_block_wait: Arc<NextBlockWait>,
        fan_out: Arc<FanOut>,
        new_blocks: NewBlocks,
        name: String,
        chain: u64,
    ) -> Self {
        head.set_gate(MessageGate::Waiting);
        let (script, key) = (Script::new(SCRIPT), format!("heads:{chain}"));
        let (participant, looks, head) = (Participant::default(), Arc::default(), Arc::new(head));
        Self { store, head, next_block_wait, fan_out, new_blocks, name, key, script, participant, looks }
    }

    /// Reports for ever, and looks at the store for the messages that wait.
    pub(super) async fn run(self) {
        let (store, head, looks) = (self.store.clone(), self.head.clone(), self.looks.clone());
        let key = self.key.clone();
        tokio::join!(self.agree(), look(&store, &head, &looks, &key));
    }

    /// Reports regularly, and at once when the head, a block's contents or the agreement has changed.
    async fn agree(mut self) {
        let mut subscription = self.store.subscribe(&self.key).ok();
        let mut changes = self.head.changes();
        loop {
            let again = self.report().await;
            if again {
                continue;
            }
            let pause = if self.participant.is_stopped() { SHORT_PAUSE } else { PAUSE };
            let announced = async {
                match &mut subscription {
                    // A receiver that was too slow has missed announcements, and reports too.
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
                is_open = announced => {
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
    async fn report(&mut self) -> bool {
        let Some((blocks, work)) = self.reportable() else {
            self.participant.close();
            self.head.set_gate(MessageGate::Shut(NO_HEAD));
            return false;
        };
        let sent = Instant::now();
        let arguments =
            self.participant.report(&*self.head, &self.name, &blocks, work.to_be_bytes::<32>().into());
        let arguments = arguments.map(String::into_bytes);
        match self.store.script::<ScriptReply>(&self.script, &self.key, &arguments).await {
            Ok(reply) => self.apply_reply(reply, sent),
            Err(error) => {
                self.next_block_wait.report_failed();
                self.failed(&error);
                false
            }
        }
    }

    /// The newest verified blocks, and the work of their chain; `None` before the front end has reached a head. A block whose contents
    /// are about to come from another front end is left out for a moment, so that messages about it need no backend. After a
    /// reorganisation none is left out: all front ends leave the old branch at once.
    fn reportable(&self) -> Option<(Vec<BlockRef>, U256)> {
        let shown = self.participant.shown().filter(|shown| self.head.is_canonical(shown));
        self.head.verified_without(REPORTED_BLOCKS, |block| {
            shown.is_some_and(|shown| block.number > shown.number) && self.fan_out.awaits(block)
        })
    }

    /// Applies an answer of the store; returns whether to report again at once.
    fn apply_reply(
        &mut self,
        (role, round, next, shown, shown_round, lost): ScriptReply,
        sent: Instant,
    ) -> bool {
        if let Ok(lost) = u64::try_from(lost) {
            self.next_block_wait.was_lost(Duration::from_millis(lost));
        }
        // The store was emptied.
        if role == "fresh" && self.participant.shown().is_some() {
            self.next_block_wait.report_failed();
        }
        let counted = self.participant.counts();
        let reply = HeadsReply { role, round, next, shown, shown_round };
        let AgreementStep { entry, again } = self.participant.apply_reply(&reply, sent, &*self.head);
        if self.participant.counts() && !counted {
            info!("showing the same block as the other front ends");
        }
        // The block is shown already, and messages are let in after this line: no message is let in that sees an earlier block.
        self.looks.covers.store(self.participant.covers(), Ordering::Release);
        entry.into_iter().for_each(|entry| self.set(entry));
        again
    }

    /// Notes that a report failed.
    fn failed(&mut self, error: &HotStoreError) {
        let counted = self.participant.counts();
        let Some(entry) = self.participant.failed(Instant::now(), &*self.head) else { return };
        if counted {
            warn!("showing the newest block of this front end: {error}");
        }
        // This wakes every task that waits for a change of the head, also [`Self::agree`].
        self.set(entry);
    }

    /// Sets whether messages are let in.
    fn set(&self, entry: EntryRule) {
        self.head.set_gate(match entry {
            EntryRule::Until(end) => MessageGate::OpenUntil(end),
            EntryRule::Alone => MessageGate::Open,
            EntryRule::Waiting => MessageGate::Waiting,
            EntryRule::Behind => MessageGate::Shut(BEHIND),
        });
    }
}

/// Looks at the store for the messages that wait to be let in, for ever: reads the round of the shown block. There is one look at a
/// time, and it serves all messages that came before it.
async fn look(store: &HotStore, head: &VisibleHead, looks: &Looks, key: &str) {
    loop {
        let last = head.wait_for_unassured().await;
        match store.command::<Option<u64>>("HGET", key, &[b"at".to_vec()]).await {
            Ok(shown) if assures(shown, looks.covers.load(Ordering::Acquire)) => head.assure_up_to(last),
            Ok(_) => {
                looks.differs.notify_one();
                tokio::time::sleep(SHORT_PAUSE).await;
            }
            Err(_) => tokio::time::sleep(FAILED_PAUSE).await,
        }
    }
}
