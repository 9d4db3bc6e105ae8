//! The signals that end the program.

use std::future::Future;

use tokio::signal::ctrl_c;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C and SIGTERM. One that arrives after [`Self::listen`] is kept until it is waited for, so that a service that is still
/// starting ends in order, with what it has learnt written.
pub(super) struct StopSignal {
    #[cfg(unix)]
    signals: Option<[Signal; 2]>,
}

impl StopSignal {
    /// Begins to receive the signals. From here on they no longer end the program by themselves: call this only where
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
