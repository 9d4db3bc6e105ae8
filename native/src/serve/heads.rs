//! The block that all front ends show: a client that asks one front end after another never sees the head go back.
//!
//! Each front end follows the chain by itself and reports its last blocks to the store; a script there decides. While the
//! store cannot be reached, each front end shows its own newest block: it is verified, but for that time front ends may
//! differ by a block ([`Ahead`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use rootlight::types::{B256, BlockRef, U256};
use tokio::sync::broadcast::error::RecvError;
use tracing::{info, warn};

use super::ahead::Ahead;
use super::backend::NewBlocks;
use super::fan_out::FanOut;
use crate::cluster::store::{HotStore, Script, StoreError};
use crate::light::{Door, ServedHead, Shown};

/// How long a report counts. A front end that is gone delays the others by no more.
const LIFETIME: Duration = Duration::from_millis(1_500);
/// How long the end of a report may be seen early, because clocks run at different rates and messages take time.
const MARGIN: Duration = Duration::from_millis(250);
/// How long a front end may lag behind the others before they go on without it.
const PATIENCE: Duration = Duration::from_millis(3_000);
/// Pause between two reports.
const PAUSE: Duration = Duration::from_millis(300);
/// The same while messages wait.
const SHORT_PAUSE: Duration = Duration::from_millis(15);
/// Blocks of a report.
const BLOCKS: usize = 16;

const SCRIPT: &str = include_str!("heads.lua");

/// Why a front end that lags refuses messages.
const BEHIND: &str = "this front end is behind the others; ask again";

/// Why a front end without a head refuses messages.
const NO_HEAD: &str = "this front end has not reached the head of the chain yet";

/// What the script returns: what this front end is, the round, the next block, the shown block, how many are live, and the
/// milliseconds since one was lost (-1 if none was).
type Reply = (String, u64, String, String, u64, i64);

/// Shows the block that the front ends agree on, for as long as it runs.
pub(super) struct Agreement {
    store: Arc<HotStore>,
    head: ServedHead,
    ahead: Arc<Ahead>,
    fan_out: Arc<FanOut>,
    new_blocks: NewBlocks,
    name: String,
    /// The key of the agreement, and the channel of its changes.
    key: String,
    script: Script,
    /// The shown block as the store told it last.
    shown: Option<BlockRef>,
    /// The round for which messages were stopped, and the chain that is shown next.
    stopped: Option<(u64, Shown)>,
    /// Until when this front end is sure to count.
    counts_until: Option<Instant>,
    /// Whether messages were answered before.
    opened: bool,
    /// Whether no message is let in.
    closed: bool,
    /// Whether messages see a certain block, and not the newest one.
    pinned: bool,
}

impl Agreement {
    /// An agreement of the front end of this name, which no other has. Messages wait until [`Self::run`] has agreed.
    pub(super) fn new(
        store: Arc<HotStore>,
        head: ServedHead,
        ahead: Arc<Ahead>,
        fan_out: Arc<FanOut>,
        new_blocks: NewBlocks,
        name: String,
        chain: u64,
    ) -> Self {
        head.set(Door::Held);
        let (script, key) = (Script::new(SCRIPT), format!("heads:{chain}"));
        Self {
            store,
            head,
            ahead,
            fan_out,
            new_blocks,
            name,
            key,
            script,
            shown: None,
            stopped: None,
            counts_until: None,
            opened: false,
            closed: true,
            pinned: false,
        }
    }

    /// Agrees for ever.
    pub(super) async fn run(mut self) {
        let mut told = self.store.subscribe(&self.key).ok();
        let mut changes = self.head.changes();
        loop {
            let again = self.step().await;
            if again {
                continue;
            }
            let pause = if self.stopped.is_some() { SHORT_PAUSE } else { PAUSE };
            let news = async {
                match &mut told {
                    // A receiver that was too slow reports at once, too.
                    Some(told) => matches!(told.recv().await, Ok(_) | Err(RecvError::Lagged(_))),
                    None => false,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.fan_out.settled() => {}
                is_open = news => {
                    self.new_blocks.look_if_missed();
                    if !is_open {
                        told = None;
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
            self.close(Door::Shut(NO_HEAD));
            return false;
        };
        let sent = Instant::now();
        match self.report(&blocks, work.to_be_bytes::<32>().into()).await {
            Ok(reply) => self.obey(reply, sent),
            Err(error) => {
                self.ahead.report_failed();
                self.alone(&error);
                false
            }
        }
    }

    /// The last verified blocks and their work. A block whose contents are about to come from another front end is left out
    /// for a moment, so that messages about it need no backend. Not after a reorganisation: all leave the old branch at once.
    fn complete(&self) -> Option<(Vec<BlockRef>, U256)> {
        let shown = self.shown.filter(|shown| self.head.is_canonical(shown));
        self.head.verified_without(BLOCKS, |block| {
            shown.is_some_and(|shown| block.number > shown.number) && self.fan_out.awaits(block)
        })
    }

    async fn report(&self, blocks: &[BlockRef], work: B256) -> Result<Reply, StoreError> {
        let canonical = self.shown.is_some_and(|shown| self.head.is_canonical(&shown));
        let ack = self.stopped.as_ref().map_or(0, |(round, _)| *round);
        let blocks: String = blocks.iter().map(|block| format!("{},", text(block))).collect();
        let arguments = [
            self.name.clone(),
            LIFETIME.as_millis().to_string(),
            PATIENCE.as_millis().to_string(),
            self.shown.as_ref().map(text).unwrap_or_default(),
            u8::from(canonical).to_string(),
            ack.to_string(),
            format!("{work:x}"),
            blocks,
            u8::from(self.closed).to_string(),
        ];
        self.store.script(&self.script, &self.key, &arguments.map(String::into_bytes)).await
    }

    fn obey(&mut self, (part, round, next, shown, _, lost): Reply, sent: Instant) -> bool {
        if let Ok(lost) = u64::try_from(lost) {
            self.ahead.was_lost(Duration::from_millis(lost));
        }
        let (before, known) = (self.shown, block(&shown));
        // A store that was emptied tells of no shown block.
        if before.is_some() && known.is_none() {
            self.ahead.report_failed();
        }
        self.shown = known;
        if part != "member" {
            self.stopped = None;
            // The first report could not know the shown block. The second one says whether this front end has it.
            if part == "behind" && before != known {
                return true;
            }
            // The others wait until they know that no message is let in here.
            return self.close(if part == "wait" { Door::Held } else { Door::Shut(BEHIND) });
        }
        if self.counts_until.is_none() {
            info!("showing the same block as the other front ends");
        }
        self.counts_until = sent.checked_add(LIFETIME.saturating_sub(MARGIN));
        if let Some(next) = block(&next) {
            return self.stop(round, &next);
        }
        if let Some((_, chain)) = self.stopped.take_if(|(_, chain)| Some(chain.head()) == known) {
            self.show(&chain);
        } else if let Some(known) = known {
            self.adopt(&known);
        }
        self.stopped = None;
        match self.counts_until.filter(|_| self.pinned) {
            // Without a further report the others go on after that moment.
            Some(until) => self.open(Door::OpenUntil(until)),
            None => _ = self.close(Door::Held),
        }
        false
    }

    fn open(&mut self, door: Door) {
        (self.opened, self.closed) = (true, false);
        self.head.set(door);
    }

    /// Lets no message in. Returns whether some were let in before.
    fn close(&mut self, door: Door) -> bool {
        self.head.set(door);
        !std::mem::replace(&mut self.closed, true)
    }

    /// Stops letting messages in, because this block is shown next. Returns whether to report that.
    fn stop(&mut self, round: u64, next: &BlockRef) -> bool {
        if self.stopped.as_ref().is_some_and(|(known, _)| *known == round) {
            return false;
        }
        // If this front end has left a block that it reported, its next report says so.
        let Some(chain) = self.head.up_to(&next.hash) else { return false };
        self.close(Door::Held);
        self.stopped = Some((round, chain));
        true
    }

    /// Shows a block that the others show already, unless a later one was shown here: then the store has forgotten it, or
    /// could not be reached, and the others follow soon.
    fn adopt(&mut self, shown: &BlockRef) {
        let present = self.head.served();
        let later = present.filter(|present| {
            self.opened && present.number > shown.number && self.head.is_canonical(present)
        });
        if self.pinned && (present == Some(*shown) || later.is_some()) {
            return;
        }
        if let Some(chain) = self.head.up_to(&later.as_ref().unwrap_or(shown).hash) {
            self.show(&chain);
        }
    }

    fn show(&mut self, chain: &Shown) {
        self.head.show(chain);
        self.pinned = true;
    }

    /// Goes on without the store once the others do not count this front end any more.
    fn alone(&mut self, error: &StoreError) {
        if self.counts_until.is_some_and(|until| Instant::now() < until) {
            return;
        }
        if self.counts_until.take().is_some() || self.stopped.is_some() {
            warn!("showing the newest block of this front end: {error}");
        }
        (self.stopped, self.shown) = (None, None);
        // Whoever waits for another head is woken by this, also [`Self::run`].
        if std::mem::take(&mut self.pinned) {
            self.head.show_newest();
        }
        self.open(Door::Open);
    }
}

fn text(block: &BlockRef) -> String {
    format!("{:x}:{}", block.hash, block.number)
}

fn block(text: &str) -> Option<BlockRef> {
    let (hash, number) = text.split_once(':')?;
    Some(BlockRef { number: number.parse().ok()?, hash: hash.parse().ok()? })
}
