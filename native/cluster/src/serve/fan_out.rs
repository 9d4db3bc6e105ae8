//! New blocks: one front end asks the backends for them and tells the others.
//!
//! One of the front ends has the lead. It sends each header that it has verified over the store, fetches the block's
//! transactions and receipts once, and puts them into the store for a moment. The others check both as if a backend had sent
//! them, so that logs and receipts of new blocks need no request of theirs. Messages are sealed ([`Seal`]): no other
//! program can make a front end check things for nothing. A front end that is told nothing asks the backends itself.

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

/// How long the lead lasts, and the interval at which it is renewed.
const LEAD: Duration = Duration::from_millis(2_000);
const RENEWAL: Duration = Duration::from_millis(500);

/// How long the store keeps the contents of a block: its transactions and receipts.
const LIFETIME: Duration = Duration::from_secs(30);

/// Longest contents that are told, in bytes.
const LONGEST: usize = 1 << 20;

/// Longest time for the contents of a block to come from the backends.
const FETCH: Duration = Duration::from_secs(5);

/// Most blocks whose contents are fetched or read at a time. Further ones are not told, or not taken.
const AT_A_TIME: usize = 16;

const SCRIPT: &str = include_str!("lead.lua");

/// The kind of a message of the channel, by its first byte: headers, or the contents of a block.
const HEADERS: u8 = b'h';
const CONTENTS: u8 = b'c';

/// Tells the other front ends of new blocks, or is told of them.
pub(super) struct FanOut {
    light: Arc<LightService>,
    blocks: BlockExchange,
    head: VisibleHead,
    new_blocks: NewBlocks,
    store: Arc<HotStore>,
    seal: Seal,
    /// The channel of new blocks, and the beginning of the names of their contents.
    channel: String,
    lead_key: String,
    name: String,
    is_leader: AtomicBool,
    recent: RecentBlocks,
    settled: Notify,
    turns: Arc<Semaphore>,
    metrics: Metrics,
}

/// Counters of announced and received blocks.
#[derive(Default)]
struct Metrics {
    lead: Gauge,
    headers_told: Counter,
    headers_taken: Counter,
    contents_told: Counter,
    contents_taken: Counter,
}

impl FanOut {
    /// For the front end of this name, which no other has.
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
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            metrics: Metrics::default(),
        }
    }

    /// Registers how many blocks were told and taken.
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

    /// Waits until the contents of a block have come, or will not come.
    pub(super) async fn settled(&self) {
        self.settled.notified().await;
    }

    fn settle(&self, block: &B256) {
        self.recent.settle(block);
        self.settled.notify_one();
    }

    /// Takes and renews the lead for ever. A front end that has no head does without.
    pub(super) async fn seek_leadership(self: Arc<Self>) {
        let script = Script::new(SCRIPT);
        loop {
            let able = self.head.is_reached() && !self.head.refuses_messages();
            let arguments = [self.name.clone(), LEAD.as_millis().to_string(), u8::from(able).to_string()]
                .map(String::into_bytes);
            let answer = self.store.script::<u8>(&script, &self.lead_key, &arguments).await;
            let is_leader = matches!(answer, Ok(1)) && able;
            if self.is_leader.swap(is_leader, Ordering::Relaxed) != is_leader && is_leader {
                info!("asking the backends for new blocks for all front ends");
            }
            self.metrics.lead.set(is_leader.into());
            // Without the store no front end announces blocks.
            self.new_blocks.set_relayed(matches!(answer, Ok(0)));
            tokio::time::sleep(RENEWAL).await;
        }
    }

    /// Tells of new blocks for ever.
    pub(super) async fn tell(self: Arc<Self>) {
        let mut changes = self.head.changes();
        let mut begun = false;
        loop {
            if let Some((blocks, _)) = self.head.verified(MAX_EXCHANGED_HEADERS) {
                if !std::mem::replace(&mut begun, true) {
                    self.recent.skip(&blocks);
                }
                let new = self.recent.unannounced(&blocks);
                if !new.is_empty() && self.is_leader.load(Ordering::Relaxed) {
                    self.tell_headers(&new).await;
                    new.into_iter().for_each(|block| self.clone().fetch(block));
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    async fn tell_headers(&self, blocks: &[B256]) {
        let text = self.blocks.headers(blocks);
        match self.publish(HEADERS, text.as_bytes()).await {
            true => drop(self.metrics.headers_told.inc_by(blocks.len() as u64)),
            false => self.new_blocks.set_relayed(false),
        }
    }

    /// Fetches the contents of a block, and tells of them. The other front ends learn, too, that there are none.
    fn fetch(self: Arc<Self>, block: B256) {
        let Ok(turn) = self.turns.clone().try_acquire_owned() else { return self.settle(&block) };
        tokio::spawn(async move {
            let _turn = turn;
            let fetched = tokio::time::timeout(FETCH, self.light.fetch_contents(&block)).await;
            let contents = fetched.ok().flatten().filter(|contents| contents.len() <= LONGEST);
            // This front end knows the contents now.
            self.settle(&block);
            if let Some(contents) = contents {
                let contents_key = self.contents_key(&block);
                let sealed = self.seal.seal(&contents_key, &contents);
                match self.store.set_if_roomy(&contents_key, &sealed, LIFETIME).await {
                    Ok(true) => drop(self.metrics.contents_told.inc()),
                    Ok(false) => {}
                    Err(error) => debug!("the contents of a block were not told: {error}"),
                }
            }
            self.publish(CONTENTS, block.as_slice()).await;
        });
    }

    async fn publish(&self, kind: u8, text: &[u8]) -> bool {
        let message = self.seal.seal(&self.channel, &[&[kind], text].concat());
        let sent = self.store.publish(&self.channel, &message).await;
        sent.inspect_err(|error| debug!("the other front ends were not told of a block: {error}")).is_ok()
    }

    fn contents_key(&self, block: &B256) -> String {
        format!("{}:{block:x}", self.channel)
    }

    /// Takes what other front ends tell, for ever.
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
                        (CONTENTS, Ok(block)) => self.clone().read(block),
                        _ => {}
                    }
                }
                Ok(Announcement::Gap) | Err(RecvError::Lagged(_)) => self.new_blocks.look(),
                Err(RecvError::Closed) => return,
            }
        }
    }

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
                // A program that writes to the store can repeat headers that were announced before.
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
    fn read(self: Arc<Self>, block: B256) {
        if !self.recent.awaits(&block) {
            return;
        }
        let Ok(turn) = self.turns.clone().try_acquire_owned() else { return self.settle(&block) };
        tokio::spawn(async move {
            let _turn = turn;
            let contents_key = self.contents_key(&block);
            if let Ok(Some(sealed)) = self.store.get(&contents_key).await {
                let (seal, blocks) = (self.seal.clone(), self.blocks.clone());
                let taken = tokio::task::spawn_blocking(move || {
                    seal.unseal(&contents_key, &sealed).map(|contents| blocks.take_contents(&block, contents))
                });
                match taken.await {
                    Ok(Some(Ok(()))) => drop(self.metrics.contents_taken.inc()),
                    Ok(Some(Err(error))) => debug!("contents of block {block}: {error}"),
                    _ => {}
                }
            }
            self.settle(&block);
        });
    }
}
