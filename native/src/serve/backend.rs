//! A backend as the upstream of a front end, which is also looked at when another front end has seen a new block.

use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::budget::Held;
use crate::upstream::{Dismissal, SharedUpstream, Turn, Upstream, UpstreamResult};

/// A backend with a signal of its own.
struct Backend {
    inner: SharedUpstream,
    heads: Arc<Notify>,
    /// Passes on the backend's own signal.
    passing: Option<JoinHandle<()>>,
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.passing.iter().for_each(JoinHandle::abort);
    }
}

/// Makes all backends look for new blocks.
#[derive(Debug, Clone, Default)]
pub struct NewBlocks(Vec<Arc<Notify>>);

impl NewBlocks {
    /// Adds the signal to each backend. To be called inside a runtime.
    pub fn watch(backends: Vec<SharedUpstream>) -> (Vec<SharedUpstream>, Self) {
        let mut signals = Self::default();
        let watched = backends.into_iter().map(|inner| {
            let heads = Arc::new(Notify::new());
            signals.0.push(heads.clone());
            let passing = inner.heads().map(|own| {
                let heads = heads.clone();
                tokio::spawn(async move {
                    loop {
                        own.notified().await;
                        heads.notify_one();
                    }
                })
            });
            Arc::new(Backend { inner, heads, passing }) as SharedUpstream
        });
        (watched.collect(), signals)
    }

    /// Looks for new blocks now.
    pub(super) fn look(&self) {
        self.0.iter().for_each(|heads| heads.notify_one());
    }
}

impl Upstream for Backend {
    fn request(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
        self.inner.request(requests)
    }

    fn request_held(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, (Vec<UpstreamResult>, Held)> {
        self.inner.request_held(requests)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn address(&self) -> Option<IpAddr> {
        self.inner.address()
    }

    fn turn(&self) -> Option<Turn> {
        self.inner.turn()
    }

    fn dismiss(&self, turn: u64, reason: Dismissal) {
        self.inner.dismiss(turn, reason);
    }

    fn heads(&self) -> Option<Arc<Notify>> {
        Some(self.heads.clone())
    }
}
