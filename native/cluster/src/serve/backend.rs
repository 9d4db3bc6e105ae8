//! Backends of a front end, with signals that make the front end ask them for new blocks: a backend's own signal, if it gives
//! signals, and one of the front end, for example after another front end has announced a block.
//!
//! While another front end announces blocks (`fan_out.rs`), the backends' own signals wait, so that only one front end asks them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, UpstreamResult};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How long a front end waits, after a backend's signal of a block, for the announcement of another front end, before it asks the
/// backend itself.
const ANNOUNCEMENT_WAIT: Duration = Duration::from_millis(400);

/// A backend with the signal of the front end.
struct SignalledBackend {
    inner: SharedUpstream,
    /// Notified when the light client shall ask the backend for new blocks.
    heads: Arc<Notify>,
    /// The task that passes the backend's own signals on to `heads`; `None` if the backend gives none.
    relay: Option<JoinHandle<()>>,
}

impl Drop for SignalledBackend {
    fn drop(&mut self) {
        self.relay.iter().for_each(JoinHandle::abort);
    }
}

/// Makes the light client of a front end ask all its backends for new blocks.
#[derive(Debug, Clone, Default)]
pub struct NewBlocks {
    /// The signal of each backend.
    signals: Vec<Arc<Notify>>,
    announcements: Arc<AnnouncementState>,
}

/// The announcements of another front end.
#[derive(Debug, Default)]
struct AnnouncementState {
    /// Whether another front end announces new blocks.
    is_relayed: AtomicBool,
    /// When the last announcement came.
    last: Mutex<Option<Instant>>,
    /// Whether a task waits already to ask the backends.
    due: AtomicBool,
}

impl AnnouncementState {
    /// Waits until this front end has to ask the backends itself: at once if no other front end announces blocks, otherwise when there
    /// was no announcement for twice [`ANNOUNCEMENT_WAIT`].
    async fn missed(&self) {
        while self.is_relayed.load(Ordering::Relaxed) {
            tokio::time::sleep(ANNOUNCEMENT_WAIT).await;
            let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_none_or(|last| last.elapsed() > ANNOUNCEMENT_WAIT.saturating_mul(2)) {
                return;
            }
        }
    }
}

impl NewBlocks {
    /// Adds the signal to each backend. The caller is inside a runtime of tokio.
    pub fn watch(backends: Vec<SharedUpstream>) -> (Vec<SharedUpstream>, Self) {
        let mut signals = Self::default();
        let watched = backends.into_iter().map(|inner| {
            let heads = Arc::new(Notify::new());
            signals.signals.push(heads.clone());
            let relay = inner.head_signal().map(|own| {
                let (heads, announcements) = (heads.clone(), signals.announcements.clone());
                tokio::spawn(async move {
                    loop {
                        own.notified().await;
                        announcements.missed().await;
                        heads.notify_one();
                    }
                })
            });
            Arc::new(SignalledBackend { inner, heads, relay }) as SharedUpstream
        });
        (watched.collect(), signals)
    }

    /// Asks all backends for new blocks.
    pub(super) fn look(&self) {
        self.signals.iter().for_each(|heads| heads.notify_one());
    }

    /// Asks all backends for new blocks, if another front end does not announce blocks soon.
    pub(super) fn look_if_missed(&self) {
        if !self.announcements.is_relayed.load(Ordering::Relaxed) {
            return self.look();
        }
        if self.announcements.due.swap(true, Ordering::Relaxed) {
            return;
        }
        let new_blocks = self.clone();
        tokio::spawn(async move {
            new_blocks.announcements.missed().await;
            new_blocks.announcements.due.store(false, Ordering::Relaxed);
            new_blocks.look();
        });
    }

    /// Sets whether another front end announces new blocks.
    pub(super) fn set_relayed(&self, is_relayed: bool) {
        self.announcements.is_relayed.store(is_relayed, Ordering::Relaxed);
    }

    /// Notes that another front end has announced a block.
    pub(super) fn note_relayed(&self) {
        *self.announcements.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Upstream for SignalledBackend {
    fn request(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
        self.inner.request(requests)
    }

    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        self.inner.request_reserved(requests)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn inner(&self) -> Option<&dyn Upstream> {
        Some(&*self.inner)
    }

    fn head_signal(&self) -> Option<Arc<Notify>> {
        Some(self.heads.clone())
    }
}
