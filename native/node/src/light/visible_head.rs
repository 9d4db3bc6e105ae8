//! The visible head: the newest block that messages see. The front ends of a service agree on it, so that no caller sees the chain go
//! back when another front end answers; `native/cluster` decides, by the handle [`VisibleHead`].
//!
//! While a front end cannot be certain that no other front end has shown a later block, messages wait at the gate until the host has
//! assured them.

use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::{B256, U256};
use rootlight::consensus::{ChainView, HeaderChain};
use rootlight::light::PinnedHead;
use rootlight::types::BlockRef;
use tokio::sync::watch;

use super::shared_light::SharedLight;

/// Whether messages are answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageGate {
    /// Messages are answered.
    Open,
    /// Messages are answered until this moment, each once [`VisibleHead::assure_up_to`] has covered it; later messages wait.
    OpenUntil(Instant),
    /// Messages wait, which takes milliseconds.
    Waiting,
    /// Messages are refused for this reason.
    Shut(&'static str),
}

/// The gate at which messages wait.
pub(super) struct GateState {
    gate: watch::Sender<MessageGate>,
    /// Number of messages that have come while the gate was not simply open or shut.
    came: watch::Sender<u64>,
    /// The last of these messages, by number, for which the host is certain that no other front end shows a later block.
    assured: watch::Sender<u64>,
}

/// The handle by which a host decides which verified block the messages of a light client see as the newest.
pub struct VisibleHead {
    shared: Arc<SharedLight>,
    gate: Arc<GateState>,
}

/// A verified chain that can become visible to messages.
pub struct VisibleChain(ChainView);

impl VisibleChain {
    /// The newest block of the chain.
    pub fn head(&self) -> BlockRef {
        let head = self.0.head();
        BlockRef { number: head.number, hash: head.hash() }
    }
}

impl GateState {
    /// An open gate.
    pub(super) fn new() -> Self {
        Self {
            gate: watch::Sender::new(MessageGate::Open),
            came: watch::Sender::new(0),
            assured: watch::Sender::new(0),
        }
    }

    /// Whether messages are answered at present.
    pub(super) fn is_open(&self) -> bool {
        match *self.gate.borrow() {
            MessageGate::Open => true,
            MessageGate::OpenUntil(end) => Instant::now() < end,
            MessageGate::Waiting | MessageGate::Shut(_) => false,
        }
    }

    /// Why messages are refused, if they are.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        match *self.gate.borrow() {
            MessageGate::Shut(reason) => Some(reason),
            _ => None,
        }
    }

    /// Waits until a message that has come now may be answered.
    ///
    /// # Errors
    /// Why the message is refused.
    pub(super) async fn enter(&self) -> Result<(), &'static str> {
        match *self.gate.borrow() {
            MessageGate::Open => return Ok(()),
            MessageGate::Shut(reason) => return Err(reason),
            MessageGate::OpenUntil(_) | MessageGate::Waiting => {}
        }
        let mut number = 0;
        self.came.send_modify(|count| {
            *count = count.saturating_add(1);
            number = *count;
        });
        let (mut gate, mut assured) = (self.gate.subscribe(), self.assured.subscribe());
        loop {
            let is_assured = *assured.borrow_and_update() >= number;
            match *gate.borrow_and_update() {
                MessageGate::Open => return Ok(()),
                MessageGate::Shut(reason) => return Err(reason),
                MessageGate::OpenUntil(end) if is_assured && Instant::now() < end => return Ok(()),
                MessageGate::OpenUntil(_) | MessageGate::Waiting => {}
            }
            // Neither fails, because `self` has the senders.
            let _ = tokio::select! {
                changed = gate.changed() => changed,
                changed = assured.changed() => changed,
            };
        }
    }

    /// Waits until a message waits for assurance; returns the number of the last message that has come.
    async fn wait_for_unassured(&self) -> u64 {
        let (mut gate, mut came) = (self.gate.subscribe(), self.came.subscribe());
        loop {
            let last = *came.borrow_and_update();
            let asks = matches!(*gate.borrow_and_update(), MessageGate::OpenUntil(_) | MessageGate::Waiting);
            if asks && last > *self.assured.borrow() {
                return last;
            }
            // As in `enter`, neither fails.
            let _ = tokio::select! {
                changed = gate.changed() => changed,
                changed = came.changed() => changed,
            };
        }
    }
}

impl VisibleHead {
    pub(super) const fn new(shared: Arc<SharedLight>, gate: Arc<GateState>) -> Self {
        Self { shared, gate }
    }

    /// Reads the chain, once its head has been reached.
    fn read<T>(&self, read: impl FnOnce(&HeaderChain) -> T) -> Option<T> {
        let sync = self.shared.client.sync();
        sync.chain().filter(|_| sync.is_synced()).map(read)
    }

    /// The newest verified chain, once its head has been reached.
    fn newest(&self) -> Option<ChainView> {
        self.read(HeaderChain::snapshot)
    }

    /// Whether the head has been reached.
    pub fn is_reached(&self) -> bool {
        self.read(|_| ()).is_some()
    }

    /// The last verified blocks, newest first, at most `count`, and the proven work of the chain. `None` until the head
    /// has been reached.
    pub fn verified(&self, count: usize) -> Option<(Vec<BlockRef>, U256)> {
        self.verified_without(count, |_| false)
    }

    /// As [`Self::verified`], without the newest blocks for which `skip` holds; the work is that of the rest.
    pub fn verified_without(
        &self,
        count: usize,
        skip: impl Fn(&BlockRef) -> bool,
    ) -> Option<(Vec<BlockRef>, U256)> {
        let chain = self.newest()?;
        let block = |number| Some(BlockRef { number, hash: chain.hash_at(number)? });
        let all = (0..=chain.head().number).rev().filter_map(block);
        let blocks: Vec<BlockRef> = all.skip_while(skip).take(count).collect();
        let work = chain.header_work(&blocks.first()?.hash).unwrap_or_default();
        Some((blocks, work))
    }

    /// Whether messages are refused.
    pub fn refuses_messages(&self) -> bool {
        self.gate.refusal().is_some()
    }

    /// Whether a block is on the heaviest verified chain.
    pub fn is_canonical(&self, block: &BlockRef) -> bool {
        self.newest().is_some_and(|chain| chain.is_canonical(block.number, &block.hash))
    }

    /// The newest block that messages see.
    pub fn newest_visible(&self) -> Option<BlockRef> {
        let pinned: PinnedHead = self.shared.client.pin(self.shared.now());
        pinned.chain().map(|chain| BlockRef { number: chain.head().number, hash: chain.head().hash() })
    }

    /// The verified chain up to this block; `None` if the block is not on it.
    pub fn up_to(&self, block: &B256) -> Option<VisibleChain> {
        self.newest()?.ending_at(block).map(VisibleChain)
    }

    /// Makes messages see this chain from now on.
    pub fn show(&self, chain: &VisibleChain) {
        self.shared.client.show(Some(chain.0.clone()));
        self.shared.changed();
    }

    /// Makes messages see the newest verified block from now on.
    pub fn show_newest(&self) {
        self.shared.client.show(None);
        self.shared.changed();
    }

    /// Sets the gate. Messages that have passed it are answered.
    pub fn set_gate(&self, gate: MessageGate) {
        self.gate.gate.send_if_modified(|present| {
            let differs = *present != gate;
            *present = gate;
            differs
        });
    }

    /// Waits until a message waits for assurance; returns the number of the last message that has come, for [`Self::assure_up_to`].
    pub async fn wait_for_unassured(&self) -> u64 {
        self.gate.wait_for_unassured().await
    }

    /// Assures all messages up to this number. The host must have found out, after they had come, that no other front end shows a later
    /// block than this one.
    pub fn assure_up_to(&self, number: u64) {
        self.gate.assured.send_modify(|assured| *assured = number.max(*assured));
    }

    /// Waits until messages are refused.
    pub async fn refuses(&self) {
        let mut gate = self.gate.gate.subscribe();
        if gate.wait_for(|gate| matches!(gate, MessageGate::Shut(_))).await.is_err() {
            std::future::pending().await
        }
    }

    /// A value that changes when another head may have been verified.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes()
    }
}
