//! The state of a server at the time when a monitor requests its metrics.

use std::time::Instant;

use rootlight_limits::unix_time::unix_time;

use crate::keys::KeyUsage;
use crate::service::{Health, ServiceStatus};

/// When a server started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    at: Instant,
    /// Seconds since 1970.
    unix: u64,
}

impl Started {
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), unix: unix_time() }
    }
}

/// The state that is not counted but read.
#[derive(Debug)]
pub(crate) struct MetricsSample {
    pub(super) health: Health,
    pub(super) chain_status: ServiceStatus,
    /// The usage of each API key, by its id.
    pub(super) keys: Vec<(String, KeyUsage)>,
    /// Resident memory of the process, in bytes; `None` on systems other than Linux.
    pub(super) resident: Option<u64>,
    /// Seconds since the start of the server.
    pub(super) uptime: f64,
    /// The start of the server, in seconds since 1970.
    pub(super) started: u64,
    /// Now, in seconds since 1970.
    pub(super) now: u64,
}

impl MetricsSample {
    /// Completes the given state with the times and the memory of this moment.
    pub(crate) fn new(
        started: Started,
        health: Health,
        chain_status: ServiceStatus,
        keys: Vec<(String, KeyUsage)>,
    ) -> Self {
        let (uptime, now) = (started.at.elapsed().as_secs_f64(), unix_time());
        Self { health, chain_status, keys, resident: resident(), uptime, started: started.unix, now }
    }
}

/// Resident memory of this process in bytes, on Linux.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
