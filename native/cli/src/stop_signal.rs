//! The signals that end the program.

use std::future::Future;

use tokio::signal::ctrl_c;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C and SIGTERM. A signal that arrives after [`Self::listen`] stays pending until the program waits for it, so that a service
/// that is still starting ends in order and writes its data.
pub(super) struct StopSignal {
    #[cfg(unix)]
    signals: Option<[Signal; 2]>,
}

impl StopSignal {
    /// Begins to receive the signals. From then on a signal does not end the program by itself: call this only where
    /// [`Self::received`] or [`Self::unless`] follows soon.
    #[cfg(unix)]
    pub(super) fn listen() -> Self {
        let both = || Ok([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]);
        let failed = |failure: &std::io::Error| tracing::warn!(%failure, "SIGTERM is not handled");
        Self { signals: both().inspect_err(failed).ok() }
    }

    /// Systems other than Unix have no SIGTERM.
    #[cfg(not(unix))]
    pub(super) const fn listen() -> Self {
        Self {}
    }

    /// Waits for a signal.
    pub(super) async fn received(&mut self) {
        #[cfg(unix)]
        if let Some([interrupt, terminate]) = &mut self.signals {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        let _ = ctrl_c().await;
    }

    /// The result of `start`; `None` if a signal comes first.
    pub(super) async fn unless<T>(&mut self, start: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            made = start => Some(made),
            () = self.received() => None,
        }
    }
}
