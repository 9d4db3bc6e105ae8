//! The loop that keeps the verified chain at the upstream's head.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rootlight::light::{Now, SyncFault, SyncStep};
use tracing::{info, warn};

use super::convert::ask;
use super::outbox::Outbox;
use super::shared::Shared;
use crate::upstream::SharedUpstream;

/// Time between two progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Longest sleep, so that what other upstreams made possible is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(1_000);

/// Follows one upstream for as long as the service lives.
pub(super) async fn run(client: Arc<Shared>, index: usize, upstream: SharedUpstream, log: Arc<Mutex<Log>>) {
    let mut outbox = Outbox::default();
    loop {
        outbox.resend(&client, &upstream).await;
        match client.sync_next(index, now()) {
            SyncStep::Fetch(calls) => {
                let answers = ask(&upstream, calls).await;
                let shared = client.clone();
                // Verifying a window of headers takes milliseconds of hashing; not on the I/O threads.
                let fed = tokio::task::spawn_blocking(move || shared.sync_feed(index, answers, now()));
                if fed.await.is_err() {
                    warn!("verification of headers was interrupted");
                    tokio::time::sleep(LONGEST_SLEEP).await;
                }
                log.lock().unwrap_or_else(PoisonError::into_inner).report(&client, index, upstream.name());
            }
            SyncStep::Wait(millis) => {
                tokio::time::sleep(Duration::from_millis(millis.max(1)).min(LONGEST_SLEEP)).await;
            }
        }
    }
}

/// Both clocks.
fn now() -> Now {
    static START: OnceLock<Instant> = OnceLock::new();
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let elapsed = START.get_or_init(Instant::now).elapsed();
    Now { unix, millis: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX) }
}

/// Progress lines: not one per batch, and each fault once.
pub(super) struct Log {
    started: Instant,
    last_line: Instant,
    head: Option<u64>,
    faults: Vec<Option<SyncFault>>,
    synced: bool,
}

impl Log {
    pub(super) fn new(upstreams: usize) -> Self {
        let now = Instant::now();
        Self { started: now, last_line: now, head: None, faults: vec![None; upstreams], synced: false }
    }

    fn report(&mut self, client: &Shared, index: usize, name: &str) {
        let sync = client.sync();
        let state = sync.upstreams().into_iter().nth(index);
        if let (Some(state), Some(last)) = (state, self.faults.get_mut(index)) {
            let fault = state.resting.map(|(_, fault)| fault);
            if let Some(fault) = fault.as_ref().filter(|fault| last.as_ref() != Some(*fault)) {
                warn!("synchronization with {name} stopped at {fault}; trying again later");
            }
            *last = fault.or(last.take());
        }
        let Some(chain) = sync.chain() else { return };
        let (head, progress) = (chain.head(), sync.progress());
        if !sync.is_synced() {
            if self.last_line.elapsed() >= PROGRESS_INTERVAL {
                let left = progress.left.unwrap_or(0);
                let (rate, target) = (progress.rate, progress.target);
                let head = progress.head;
                info!("verified headers to {head} of {target}, {rate} per second, about {left} s left");
                self.last_line = Instant::now();
            }
            return;
        }
        if self.head == Some(head.number) {
            return;
        }
        if !self.synced {
            let count = head.number.saturating_sub(progress.start);
            info!("synced: {count} headers verified in {:.1} s", self.started.elapsed().as_secs_f64());
        }
        info!("verified head {} {}", head.number, head.hash());
        (self.synced, self.head) = (true, Some(head.number));
    }
}
