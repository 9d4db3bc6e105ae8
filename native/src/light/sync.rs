//! The loop that keeps the verified chain at the upstream's head.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rootlight::light::{SyncFault, SyncStep};
use tracing::{info, warn};

use super::convert::ask;
use super::service::LightOptions;
use super::shared::Shared;
use crate::upstream::SharedUpstream;

/// Time between two progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Runs for as long as the service lives.
pub(super) async fn run(client: Arc<Shared>, upstream: SharedUpstream, options: LightOptions) {
    let mut log = Log::new(&client);
    loop {
        let step = client.sync_step();
        match step {
            SyncStep::Fetch(calls) => {
                let answers = ask(&upstream, calls).await;
                let shared = client.clone();
                // Verifying a window of headers takes milliseconds of hashing; not on the I/O threads.
                let fed = tokio::task::spawn_blocking(move || {
                    shared.sync_feed(answers, now());
                });
                if fed.await.is_err() {
                    warn!("verification of headers was interrupted");
                    tokio::time::sleep(options.retry).await;
                }
                log.progress(&client);
            }
            SyncStep::Idle => {
                log.idle(&client);
                tokio::time::sleep(options.poll).await;
                client.sync_poll();
            }
            SyncStep::Failed(fault) => {
                log.failed(&fault, upstream.name());
                tokio::time::sleep(options.retry).await;
                client.sync_poll();
            }
        }
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// Progress lines: not one per batch, and each fault once.
struct Log {
    started: Instant,
    first: u64,
    last_line: Instant,
    head: Option<u64>,
    fault: Option<SyncFault>,
    synced: bool,
}

impl Log {
    fn new(client: &Shared) -> Self {
        let first = client.sync().start();
        let now = Instant::now();
        Self { started: now, first, last_line: now, head: None, fault: None, synced: false }
    }

    fn progress(&mut self, client: &Shared) {
        if self.synced || self.last_line.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        let sync = client.sync();
        let Some(chain) = sync.chain() else { return };
        let (head, target) = (chain.head().number, sync.announced());
        let rate = head.saturating_sub(self.first) as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        let left = if rate > 0.0 { target.saturating_sub(head) as f64 / rate } else { 0.0 };
        info!("verified headers to {head} of {target}, {rate:.0} per second, about {left:.0} s left");
        self.last_line = Instant::now();
    }

    fn idle(&mut self, client: &Shared) {
        let sync = client.sync();
        let Some(chain) = sync.chain() else { return };
        let head = chain.head();
        if self.head == Some(head.number) {
            return;
        }
        if !self.synced {
            let count = head.number.saturating_sub(self.first);
            info!("synced: {count} headers verified in {:.1} s", self.started.elapsed().as_secs_f64());
        }
        info!("verified head {} {}", head.number, head.hash());
        (self.synced, self.fault, self.head) = (true, None, Some(head.number));
    }

    fn failed(&mut self, fault: &SyncFault, upstream: &str) {
        if self.fault.as_ref() != Some(fault) {
            warn!("synchronization with {upstream} stopped at {fault}; trying again");
            self.fault = Some(fault.clone());
        }
    }
}
