//! The bans of a host with a clock of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rootlight::types::bans::{AddressRange, BanList, BanRefusal, Bans};

/// The bans of a host without upstreams.
#[derive(Debug, Default)]
pub struct HostBans {
    list: Mutex<BanList>,
    /// Seconds since 1970.
    pub now: AtomicU64,
}

impl HostBans {
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

impl Bans for HostBans {
    fn ban(&self, range: AddressRange, _: &[usize]) -> Result<(), BanRefusal> {
        let banned = self.list.lock().unwrap().ban(range, self.now());
        if banned { Ok(()) } else { Err(BanRefusal::TooMany) }
    }

    fn unban(&self, range: &AddressRange) {
        self.list.lock().unwrap().unban(range);
    }

    fn list(&self) -> Vec<String> {
        self.list.lock().unwrap().list(self.now())
    }
}
