//! A backend as the upstream of a front end. The front end asks it for new blocks also when another front end has seen one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, UpstreamResult};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How long a front end waits for another front end's announcement of a block, before it asks the backend that has signalled
/// the block.
const DELAY: Duration = Duration::from_millis(400);

struct SignalledBackend {
    inner: SharedUpstream,
    heads: Arc<Notify>,
    passing: Option<JoinHandle<()>>,
}

impl Drop for SignalledBackend {
    fn drop(&mut self) {
        self.passing.iter().for_each(JoinHandle::abort);
    }
}

/// Makes all backends look for new blocks.
#[derive(Debug, Clone, Default)]
pub struct NewBlocks {
    signals: Vec<Arc<Notify>>,
    announcements: Arc<AnnouncementState>,
}

/// Whether another front end tells of new blocks.
#[derive(Debug, Default)]
struct AnnouncementState {
    is_relayed: AtomicBool,
    last: Mutex<Option<Instant>>,
    /// Whether a look is due already.
    due: AtomicBool,
}

impl AnnouncementState {
    /// Waits until this front end has to ask the backends itself. Without another front end that announces blocks this is at
    /// once, otherwise when there was no announcement for twice [`DELAY`].
    async fn missed(&self) {
        while self.is_relayed.load(Ordering::Relaxed) {
            tokio::time::sleep(DELAY).await;
            let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.is_none_or(|last| last.elapsed() > DELAY.saturating_mul(2)) {
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
            let passing = inner.heads().map(|own| {
                let (heads, announcements) = (heads.clone(), signals.announcements.clone());
                tokio::spawn(async move {
                    loop {
                        own.notified().await;
                        announcements.missed().await;
                        heads.notify_one();
                    }
                })
            });
            Arc::new(SignalledBackend { inner, heads, passing }) as SharedUpstream
        });
        (watched.collect(), signals)
    }

    pub(super) fn look(&self) {
        self.signals.iter().for_each(|heads| heads.notify_one());
    }

    /// Looks for new blocks, unless another front end tells of them.
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

    /// Sets whether another front end tells of new blocks.
    pub(super) fn set_relayed(&self, is_relayed: bool) {
        self.announcements.is_relayed.store(is_relayed, Ordering::Relaxed);
    }

    /// Notes that another front end told of a block.
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

    fn heads(&self) -> Option<Arc<Notify>> {
        Some(self.heads.clone())
    }
}
