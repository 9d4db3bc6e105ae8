//! systemd: takes over the sockets that systemd has opened, and sends it messages about the state of the program. Without systemd,
//! these functions do nothing.

use std::sync::{Mutex, PoisonError};

use rootlight_server::Inherited;

/// The sockets that the process was started with.
static SOCKETS: Mutex<Vec<Inherited>> = Mutex::new(Vec::new());

/// Takes over the sockets that systemd opened (`LISTEN_FDS`). To be called before the process has threads, because it
/// removes the environment variables.
#[cfg(unix)]
pub(super) fn take_over() {
    let mut given = listenfd::ListenFd::from_env();
    let taken = (0..given.len()).filter_map(|index| {
        // A socket of another kind is not taken.
        let tcp = given.take_tcp_listener(index).ok().flatten().map(Inherited::Tcp);
        tcp.or_else(|| given.take_unix_listener(index).ok().flatten().map(Inherited::Unix))
    });
    let taken: Vec<_> = taken.collect();
    SOCKETS.lock().unwrap_or_else(PoisonError::into_inner).extend(taken);
}

/// Returns the sockets that were taken over; a second call returns none.
pub(super) fn sockets() -> Vec<Inherited> {
    std::mem::take(&mut *SOCKETS.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(unix)]
mod messages {
    use sd_notify::NotifyState;
    use tracing::debug;

    fn send(states: &[NotifyState<'_>]) {
        if let Err(failure) = sd_notify::notify(states) {
            debug!(%failure, "systemd was not told the state of the program");
        }
    }

    /// Says that requests are answered.
    pub(crate) fn ready() {
        send(&[NotifyState::Ready]);
    }

    /// Says that the configuration is being read again; [`ready`] has to follow.
    pub(crate) fn reloading() {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send(&[NotifyState::Reloading, now]),
            Err(_) => send(&[NotifyState::Reloading]),
        }
    }

    /// Says that the program is ending.
    pub(crate) fn stopping() {
        send(&[NotifyState::Stopping]);
    }
}

#[cfg(not(unix))]
mod messages {
    pub(crate) fn ready() {}
    pub(crate) fn stopping() {}
}

pub(super) use messages::*;
