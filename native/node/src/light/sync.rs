//! Header synchronization: for each upstream a loop that sends the core's requests and feeds the responses. The core decides what to
//! request and when to wait.

use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use rootlight::light::{Outbox, Progress, SyncFault, SyncStep};
use rootlight_server::metrics::VerifiedKind;
use rootlight_upstream::SharedUpstream;
use tracing::{info, warn};

use super::ask::{UpstreamResponses, ask};
use super::dismiss::WatchedSource;
use super::shared_light::SharedLight;
use crate::progress::{WORTH_A_BAR, progress_bar};

/// Time between two progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Longest sleep of a loop, so that it soon notices what other upstreams have shown.
const LONGEST_SLEEP: Duration = Duration::from_millis(1_000);

/// Pause between two steps of proving restored headers; a step takes a few milliseconds.
const PROVE_PAUSE: Duration = Duration::from_millis(1);

/// Least time between two announcements of an upstream that end the loop's sleep, so that an upstream cannot keep this client busy.
const HINT_PAUSE: Duration = Duration::from_millis(200);

/// Follows one upstream until the service is dropped.
pub(super) async fn run(
    shared: Arc<SharedLight>,
    index: usize,
    upstream: SharedUpstream,
    log: Arc<Mutex<SyncLog>>,
) {
    let (mut outbox, counts) = (Outbox::default(), shared.counts.clone());
    let ask = |requests| ask(&counts.metrics, (index, &upstream), requests);
    let mut watched = None;
    loop {
        replace_source(&shared, index, &upstream, &mut watched);
        let requests = shared.client.receipt_requests(index, &mut outbox, shared.now());
        if !requests.is_empty() {
            // Transactions that the upstream does not report as mined are sent again; the responses to that do not matter.
            let again = outbox.resend_requests(ask(requests).await.answers);
            ask(again).await;
        }
        // Created before the step, so that an event during the step ends the pause too.
        let woken = shared.wakes.notified();
        match shared.client.sync_next(index, shared.now()) {
            SyncStep::Fetch(requests) => {
                feed(&shared, index, ask(requests).await).await;
                let name = watched.as_ref().map_or(upstream.name(), WatchedSource::name);
                let vacant = watched.as_ref().is_some_and(WatchedSource::is_vacant);
                let name = Some(name).filter(|_| !vacant);
                log.lock().unwrap_or_else(PoisonError::into_inner).report(&shared, index, name);
                if let Some(watched) = &mut watched {
                    watched.strike(&shared, index);
                }
            }
            SyncStep::Wait(millis) => {
                let pause = Duration::from_millis(millis.max(1)).min(LONGEST_SLEEP);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = woken => {}
                    () = announced(&upstream) => {
                        shared.client.sync_hint(index);
                        tokio::time::sleep(HINT_PAUSE).await;
                    }
                }
            }
        }
    }
}

/// Completes when the upstream announces something new; never, if it announces nothing.
async fn announced(upstream: &SharedUpstream) {
    match upstream.head_signal() {
        Some(heads) => heads.notified().await,
        None => std::future::pending().await,
    }
}

/// Feeds responses to the core. Verifying a window of headers takes milliseconds of hashing, too long for an I/O thread.
async fn feed(shared: &Arc<SharedLight>, index: usize, responses: UpstreamResponses) {
    let UpstreamResponses { answers, reserved, .. } = responses;
    let is_starting = !shared.client.sync().is_synced();
    let client = shared.clone();
    let fed = tokio::task::spawn_blocking(move || {
        let (count, started) = (answers.len(), Instant::now());
        client.sync_feed(index, answers, client.now());
        client.counts.metrics.verified(VerifiedKind::Headers, count, started.elapsed());
        drop(reserved);
    });
    if fed.await.is_err() {
        warn!("verification of headers was interrupted");
        tokio::time::sleep(LONGEST_SLEEP).await;
    }
    if is_starting {
        // Other upstreams may wait for the lease, the exclusive right of one upstream to fetch headers far ahead, or for the start that
        // this upstream has shown.
        shared.wakes.notify_waiters();
    }
}

/// For an upstream slot that different nodes fill: dismisses a node that is not to be asked again, and reports a new node to the core.
/// The core's record of the upstream is about the node that is `watched`.
fn replace_source(
    shared: &SharedLight,
    index: usize,
    upstream: &SharedUpstream,
    watched: &mut Option<WatchedSource>,
) {
    let Some(mut present) = upstream.current_source() else { return };
    if let Some(watched) = watched.as_ref().filter(|watched| watched.number() == present.number)
        && let Some(reason) = watched.dismissal(shared, index)
    {
        upstream.dismiss(watched.number(), reason);
        present = upstream.current_source().unwrap_or(present);
    }
    if watched.as_ref().is_none_or(|watched| watched.number() != present.number) {
        shared.client.sync_replace(index, present.name.clone());
        *watched = Some(WatchedSource::new(present));
    }
}

/// Checks the proofs of work of restored headers in the background.
pub(super) async fn prove_restored(client: Arc<SharedLight>) {
    loop {
        let shared = client.clone();
        if !tokio::task::spawn_blocking(move || shared.prove_restored()).await.unwrap_or(false) {
            return;
        }
        // The pause lets other tasks take the lock.
        tokio::time::sleep(PROVE_PAUSE).await;
    }
}

/// Log lines about progress, limited in rate; each fault is logged once.
pub(super) struct SyncLog {
    started: Instant,
    last_line: Instant,
    /// The verified head that was logged last.
    head: Option<u64>,
    /// For each upstream, the fault that was logged last.
    faults: Vec<Option<SyncFault>>,
    /// Whether the head was reached once.
    synced: bool,
    bar: Option<ProgressBar>,
}

impl SyncLog {
    pub(super) fn new(upstreams: usize) -> Self {
        let now = Instant::now();
        Self {
            started: now,
            last_line: now,
            head: None,
            faults: vec![None; upstreams],
            synced: false,
            bar: None,
        }
    }

    /// Logs what has changed after an exchange with an upstream; `name` is `None` if no node fills its slot.
    fn report(&mut self, shared: &SharedLight, index: usize, name: Option<&str>) {
        let sync = shared.client.sync();
        let state = sync.upstreams().into_iter().nth(index);
        if let (Some(name), Some(state), Some(last)) = (name, state, self.faults.get_mut(index)) {
            let fault = state.resting.map(|(_, fault)| fault);
            if let Some(fault) = fault.as_ref().filter(|fault| last.as_ref() != Some(*fault)) {
                warn!("synchronization with {name} stopped at {fault}; trying again later");
            }
            *last = fault.or(last.take());
        }
        let Some(chain) = sync.chain() else { return };
        let (head, progress) = (chain.head(), sync.progress());
        if !sync.is_synced() {
            self.underway(progress);
            return;
        }
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if self.head == Some(head.number) {
            return;
        }
        if !self.synced {
            let count = head.number.saturating_sub(progress.start);
            let seconds = self.started.elapsed().as_secs_f64();
            info!("synced: {count} headers verified in {seconds:.1} s");
            if sync.is_separate() {
                info!("no header links this window to what an earlier run proved");
            }
        }
        info!("verified head {} {}", head.number, head.hash());
        (self.synced, self.head) = (true, Some(head.number));
    }

    /// Shows a progress bar on a terminal, and occasional log lines elsewhere.
    fn underway(&mut self, progress: Progress) {
        let Progress { start, head, target, rate, left } = progress;
        let worth = target.saturating_sub(start) >= WORTH_A_BAR;
        // The bar replaces log lines of level info, so it is not shown where these are off.
        let wanted = tracing::enabled!(tracing::Level::INFO);
        if self.bar.is_none() && worth && wanted && std::io::stderr().is_terminal() {
            self.bar = Some(progress_bar(start, target, "headers"));
        }
        if let Some(bar) = &self.bar {
            bar.set_length(target);
            bar.set_position(head);
        } else if self.last_line.elapsed() >= PROGRESS_INTERVAL {
            let left = left.unwrap_or(0);
            info!("verified headers to {head} of {target}, {rate} per second, about {left} s left");
            self.last_line = Instant::now();
        }
    }
}
