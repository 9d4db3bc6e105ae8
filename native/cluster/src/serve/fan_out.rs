//! Announces new blocks among front ends: one of them asks the backends for new blocks, and the others get the blocks from it.
//!
//! One of the front ends has the lead. It publishes each header that it has verified on a channel of the hot store, fetches the
//! block's contents (transactions and receipts) once, and puts them into the store for a moment. The others check both as if a
//! backend had sent them, so that logs and receipts of new blocks need no request of theirs. Messages are sealed ([`Seal`]), so
//! that no other program can make a front end check useless data. A front end that gets no announcements asks the backends
//! itself (`backend.rs`).
//!
//! A block is settled when its contents have come or will not come. `heads.rs` does not report a new block to the other front ends
//! while its contents are expected (`recent.rs`).

mod recent;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alloy_primitives::B256;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rootlight::types::BlockRef;
use rootlight_node::light::{BlockExchange, LightService, MAX_EXCHANGED_HEADERS, VisibleHead};
use rootlight_server::metrics::register_counters;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, Semaphore};
use tracing::{debug, info};

use self::recent::RecentBlocks;
use super::backend::NewBlocks;
use crate::Seal;
use crate::store::{Announcement, HotStore, Script};

/// How long the lead lasts without renewal: after so long another front end takes it.
const LEAD: Duration = Duration::from_millis(2_000);
/// Interval at which a front end renews the lead, or asks for it.
const RENEWAL: Duration = Duration::from_millis(500);

/// How long the store keeps the contents of a block.
const LIFETIME: Duration = Duration::from_secs(30);

/// Longest contents that are put into the store, in bytes.
const MAX_CONTENTS_BYTES: usize = 1 << 20;

/// Longest time for the contents of a block to come from the backends.
const FETCH_TIME: Duration = Duration::from_secs(5);

/// Most blocks whose contents are fetched or read at a time. The contents of further blocks are not shared, or not read.
const MAX_CONTENTS: usize = 16;

/// Takes and renews the lead.
const SCRIPT: &str = include_str!("lead.lua");

/// First byte of a message with headers.
const HEADERS: u8 = b'h';
/// First byte of a message with the hash of a block whose contents are in the store, or cannot be fetched.
const CONTENTS: u8 = b'c';

/// Announces new blocks to the other front ends, or takes their announcements.
pub(super) struct FanOut {
    light: Arc<LightService>,
    /// Writes and checks announced headers and contents.
    blocks: BlockExchange,
    head: VisibleHead,
    new_blocks: NewBlocks,
    store: Arc<HotStore>,
    seal: Seal,
    /// The channel of announcements, and the beginning of the keys of contents.
    channel: String,
    lead_key: String,
    /// The name of this front end, which no other has.
    name: String,
    is_leader: AtomicBool,
    recent: RecentBlocks,
    /// Notified when a block is settled.
    settled: Notify,
    contents_permits: Arc<Semaphore>,
    metrics: Metrics,
}

/// Counters of announced and received blocks.
#[derive(Default)]
struct Metrics {
    lead: Gauge,
    /// Headers that were announced.
    headers_told: Counter,
    /// Messages with headers that were taken.
    headers_taken: Counter,
    /// Blocks whose contents were put into the store.
    contents_told: Counter,
    /// Blocks whose contents were taken from the store.
    contents_taken: Counter,
}

impl FanOut {
    /// `name` is that of this front end, which no other has; `chain` is the number of the chain.
    pub(super) fn new(
        light: Arc<LightService>,
        new_blocks: NewBlocks,
        store: Arc<HotStore>,
        seal: Seal,
        name: String,
        chain: u64,
    ) -> Self {
        let (blocks, head) = (light.block_exchange(), light.visible_head());
        Self {
            light,
            blocks,
            head,
            new_blocks,
            store,
            seal,
            channel: format!("blocks:{chain}"),
            lead_key: format!("lead:{chain}"),
            name,
            is_leader: AtomicBool::new(false),
            recent: RecentBlocks::default(),
            settled: Notify::new(),
            contents_permits: Arc::new(Semaphore::new(MAX_CONTENTS)),
            metrics: Metrics::default(),
        }
    }

    /// Registers the metrics.
    pub(super) fn register(&self, registry: &mut Registry) {
        let metrics = &self.metrics;
        registry.register(
            "fan_out_lead",
            "Whether this front end asks the backends for new blocks and tells the others",
            metrics.lead.clone(),
        );
        let counters = [
            ("fan_out_headers_told", "Headers that other front ends were told of", &metrics.headers_told),
            (
                "fan_out_headers_taken",
                "Messages with headers of another front end that were taken",
                &metrics.headers_taken,
            ),
            (
                "fan_out_contents_told",
                "Blocks whose transactions and receipts were told to other front ends",
                &metrics.contents_told,
            ),
            (
                "fan_out_contents_taken",
                "Blocks whose transactions and receipts came from another front end",
                &metrics.contents_taken,
            ),
        ];
        register_counters(registry, counters);
    }

    /// Whether the contents of a verified block are still expected.
    pub(super) fn awaits(&self, block: &BlockRef) -> bool {
        self.recent.awaits(&block.hash)
    }

    /// Waits until a block is settled.
    pub(super) async fn settled(&self) {
        self.settled.notified().await;
    }

    /// Notes that a block is settled.
    fn settle(&self, block: &B256) {
        self.recent.settle(block);
        self.settled.notify_one();
    }

    /// Takes and renews the lead for ever. A front end without a head, or that refuses messages, does not want the lead.
    pub(super) async fn seek_leadership(self: Arc<Self>) {
        let script = Script::new(SCRIPT);
        loop {
            let wants_lead = self.head.is_reached() && !self.head.refuses_messages();
            let arguments =
                [self.name.clone(), LEAD.as_millis().to_string(), u8::from(wants_lead).to_string()]
                    .map(String::into_bytes);
            let answer = self.store.script::<u8>(&script, &self.lead_key, &arguments).await;
            // The script also answers 1 to a front end that does not want the lead, if no other one has it.
            let is_leader = matches!(answer, Ok(1)) && wants_lead;
            if self.is_leader.swap(is_leader, Ordering::Relaxed) != is_leader && is_leader {
                info!("asking the backends for new blocks for all front ends");
            }
            self.metrics.lead.set(is_leader.into());
            // The script answers 0 if another front end has the lead. Without the store no front end announces blocks.
            self.new_blocks.set_relayed(matches!(answer, Ok(0)));
            tokio::time::sleep(RENEWAL).await;
        }
    }

    /// Announces new blocks for ever, while this front end has the lead.
    pub(super) async fn announce(self: Arc<Self>) {
        let mut changes = self.head.changes();
        let mut has_begun = false;
        loop {
            if let Some((blocks, _)) = self.head.verified(MAX_EXCHANGED_HEADERS) {
                if !std::mem::replace(&mut has_begun, true) {
                    // Blocks from before the start are not announced.
                    self.recent.skip(&blocks);
                }
                let new = self.recent.unannounced(&blocks);
                if !new.is_empty() && self.is_leader.load(Ordering::Relaxed) {
                    self.announce_headers(&new).await;
                    new.into_iter().for_each(|block| self.clone().share_contents(block));
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Announces verified headers.
    async fn announce_headers(&self, blocks: &[B256]) {
        let text = self.blocks.headers(blocks);
        match self.publish(HEADERS, text.as_bytes()).await {
            true => drop(self.metrics.headers_told.inc_by(blocks.len() as u64)),
            // The store cannot be reached, so no announcements come either.
            false => self.new_blocks.set_relayed(false),
        }
    }

    /// Fetches the contents of a block, puts them into the store, and announces them. They are announced also if they could not be
    /// fetched, so that the other front ends stop waiting.
    fn share_contents(self: Arc<Self>, block: B256) {
        let Ok(permit) = self.contents_permits.clone().try_acquire_owned() else {
            return self.settle(&block);
        };
        tokio::spawn(async move {
            let _permit = permit;
            let fetched = tokio::time::timeout(FETCH_TIME, self.light.fetch_contents(&block)).await;
            let contents = fetched.ok().flatten().filter(|contents| contents.len() <= MAX_CONTENTS_BYTES);
            // This front end has the contents now, or will not get them.
            self.settle(&block);
            if let Some(contents) = contents {
                let contents_key = self.contents_key(&block);
                let sealed = self.seal.seal(&contents_key, &contents);
                match self.store.set_unless_full(&contents_key, &sealed, LIFETIME).await {
                    Ok(true) => drop(self.metrics.contents_told.inc()),
                    Ok(false) => {}
                    Err(error) => debug!("the contents of a block were not told: {error}"),
                }
            }
            self.publish(CONTENTS, block.as_slice()).await;
        });
    }

    /// Publishes a sealed message; returns whether the store took it.
    async fn publish(&self, kind: u8, text: &[u8]) -> bool {
        let message = self.seal.seal(&self.channel, &[&[kind], text].concat());
        let sent = self.store.publish(&self.channel, &message).await;
        sent.inspect_err(|error| debug!("the other front ends were not told of a block: {error}")).is_ok()
    }

    /// The key of a block's contents in the store.
    fn contents_key(&self, block: &B256) -> String {
        format!("{}:{block:x}", self.channel)
    }

    /// Takes the announcements of other front ends, for ever.
    pub(super) async fn listen(self: Arc<Self>) {
        let Ok(mut messages) = self.store.subscribe(&self.channel) else { return };
        loop {
            match messages.recv().await {
                Ok(Announcement::Message(message)) => {
                    let Some((kind, text)) =
                        self.seal.unseal(&self.channel, &message).and_then(<[u8]>::split_first)
                    else {
                        continue;
                    };
                    match (*kind, B256::try_from(text)) {
                        (HEADERS, _) => self.take_headers(text).await,
                        (CONTENTS, Ok(block)) => self.clone().read_contents(block),
                        // A message that a front end of another version has sealed.
                        _ => {}
                    }
                }
                Ok(Announcement::Gap) | Err(RecvError::Lagged(_)) => self.new_blocks.look(),
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Checks announced headers, and adds them to the chain of this front end.
    async fn take_headers(&self, text: &[u8]) {
        if self.is_leader.load(Ordering::Relaxed) {
            return;
        }
        let newest = || self.head.verified(1).map(|(blocks, _)| blocks);
        let (before, blocks) = (newest(), self.blocks.clone());
        let text = String::from_utf8_lossy(text).into_owned();
        let taken = tokio::task::spawn_blocking(move || blocks.take_headers(&text)).await;
        match taken {
            Ok(Ok(complete)) => {
                // Only headers that change the head count as an announcement: another program that writes to the store could
                // repeat old messages, to keep this front end from asking the backends.
                if newest() != before {
                    self.new_blocks.note_relayed();
                }
                self.metrics.headers_taken.inc();
                if !complete {
                    self.new_blocks.look();
                }
            }
            Ok(Err(error)) => {
                debug!("asking the backends instead of another front end: {error}");
                self.new_blocks.look();
            }
            Err(_) => self.new_blocks.look(),
        }
    }

    /// Reads the contents of a block from the store, if they are expected.
    fn read_contents(self: Arc<Self>, block: B256) {
        if !self.recent.awaits(&block) {
            return;
        }
        let Ok(permit) = self.contents_permits.clone().try_acquire_owned() else {
            return self.settle(&block);
        };
        tokio::spawn(async move {
            let _permit = permit;
            let contents_key = self.contents_key(&block);
            if let Ok(Some(sealed)) = self.store.get(&contents_key).await {
                let (seal, blocks) = (self.seal.clone(), self.blocks.clone());
                let taken = tokio::task::spawn_blocking(move || {
                    seal.unseal(&contents_key, &sealed).map(|contents| blocks.take_contents(&block, contents))
                });
                match taken.await {
                    Ok(Some(Ok(()))) => drop(self.metrics.contents_taken.inc()),
                    Ok(Some(Err(error))) => debug!("contents of block {block}: {error}"),
                    // No front end has sealed the value, or the task failed: messages ask the backends for the contents.
                    _ => {}
                }
            }
            self.settle(&block);
        });
    }
}
