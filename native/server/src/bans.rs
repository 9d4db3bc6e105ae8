//! The banned addresses of this process: the server refuses clients with such an address, and upstreams at one get no requests.
//! The methods `sco_banAddress` and `sco_unbanAddress` change them.

use std::net::IpAddr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ipnet::IpNet;
use rootlight_limits::unix_time::unix_time;
use tokio::sync::watch;

use crate::addresses;
use crate::ban_list::BanList;

pub use crate::ban_list::{AddressRange, BAN_SECONDS, BanRefusal, MAX_BANS, NotARange};

/// Returns the address at which an upstream was reached last; `None` if no address is known.
pub type AddressOf = Box<dyn Fn() -> Option<IpAddr> + Send + Sync>;

/// The banned addresses, which are lost when the process ends.
pub struct HostBans {
    list: RwLock<BanList>,
    proxies: RwLock<Vec<IpNet>>,
    upstreams: RwLock<Vec<AddressOf>>,
    /// The number of calls of [`Self::ban`] that succeeded, by which open connections notice a new ban.
    ban_count: watch::Sender<u64>,
}

impl Default for HostBans {
    fn default() -> Self {
        let (list, proxies, upstreams) = Default::default();
        Self { list, proxies, upstreams, ban_count: watch::Sender::new(0) }
    }
}

impl std::fmt::Debug for HostBans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBans").finish_non_exhaustive()
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl HostBans {
    /// Sets the trusted proxies, whose headers name the addresses of their clients. A trusted proxy is never banned.
    pub fn trust(&self, proxies: Vec<IpNet>) {
        *write(&self.proxies) = proxies;
    }

    /// Sets the upstreams, each by its address. Bans never keep all of them from requests at once.
    pub fn protect(&self, upstreams: Vec<AddressOf>) {
        *write(&self.upstreams) = upstreams;
    }

    /// Whether clients of this address are refused. This machine and trusted proxies never are.
    #[must_use]
    pub fn is_banned(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        !address.is_loopback() && read(&self.list).is_banned(address, unix_time()) && !self.is_proxy(address)
    }

    /// Completes when an address is banned.
    pub async fn banned(&self, address: IpAddr) {
        let mut ban_count = self.ban_count.subscribe();
        while !self.is_banned(address) {
            if ban_count.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        read(&self.proxies).iter().any(|proxy| addresses::has(proxy, address))
    }

    /// Whether the upstream with this index gets no requests now: its address is banned, and that of another upstream is not.
    #[must_use]
    pub fn is_paused(&self, index: usize) -> bool {
        let (list, now) = (read(&self.list), unix_time());
        let banned = |of: &AddressOf| of().is_some_and(|address| list.is_banned(address, now));
        let upstreams = read(&self.upstreams);
        upstreams.get(index).is_some_and(banned) && !upstreams.iter().all(banned)
    }

    /// Whether a ban of the range hits an upstream and leaves none of the healthy ones. If none is healthy, all count.
    fn takes_last(&self, range: &AddressRange, healthy: &[usize]) -> bool {
        let (list, now) = (read(&self.list), unix_time());
        let upstreams = read(&self.upstreams);
        let is_in_range = |of: &AddressOf| of().is_some_and(|address| range.contains(address));
        let would_be_banned = |of: &AddressOf| {
            of().is_some_and(|address| range.contains(address) || list.is_banned(address, now))
        };
        let mut healthy = healthy.iter().filter_map(|index| upstreams.get(*index)).peekable();
        upstreams.iter().any(is_in_range)
            && match healthy.peek().is_some() {
                true => healthy.all(would_be_banned),
                false => upstreams.iter().all(would_be_banned),
            }
    }

    /// Bans a range for [`BAN_SECONDS`]. A ban that exists is prolonged. `healthy` are the indexes of the upstreams that
    /// answer well, in the order of [`Self::protect`].
    ///
    /// # Errors
    /// The range cannot be banned. Nothing is changed then.
    pub fn ban(&self, range: AddressRange, healthy: &[usize]) -> Result<(), BanRefusal> {
        let covers = |proxy: &IpNet| range.contains(proxy.addr()) || addresses::has(proxy, range.address());
        if read(&self.proxies).iter().any(covers) {
            return Err(BanRefusal::Proxy);
        }
        if self.takes_last(&range, healthy) {
            return Err(BanRefusal::LastUpstream);
        }
        let banned = write(&self.list).ban(range, unix_time());
        if !banned {
            return Err(BanRefusal::TooMany);
        }
        self.ban_count.send_modify(|count| *count = count.wrapping_add(1));
        Ok(())
    }

    /// Ends the ban of exactly this range.
    pub fn unban(&self, range: &AddressRange) {
        write(&self.list).unban(range);
    }

    /// The bans: single addresses first, then ranges.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        read(&self.list).list(unix_time())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ban_list::tests::{ip, range};

    #[test]
    fn trusted_proxies_and_this_machine_are_never_banned() {
        let bans = HostBans::default();
        bans.ban(range("198.51.100.0/24"), &[]).unwrap();
        assert!(bans.is_banned(ip("198.51.100.9")) && bans.is_banned(ip("::ffff:198.51.100.9")));
        bans.trust(vec!["198.51.100.8/31".parse().unwrap(), "2001:db8:1::/48".parse().unwrap()]);
        assert!(!bans.is_banned(ip("198.51.100.9")), "a proxy that became trusted later");
        for proxy in ["198.51.100.8", "198.51.0.0/16", "2001:db8:1::7", "2001:db8::/32"] {
            assert_eq!(bans.ban(range(proxy), &[]), Err(BanRefusal::Proxy), "{proxy}");
        }
        assert!(!bans.is_banned(ip("127.0.0.1")) && !bans.is_banned(ip("::1")));
        bans.unban(&range("198.51.100.0/24"));
        assert!(bans.list().is_empty() && !bans.is_banned(ip("198.51.100.1")));
    }

    #[tokio::test]
    async fn an_open_connection_learns_of_its_ban() {
        let bans = Arc::new(HostBans::default());
        let waiting = tokio::spawn({
            let bans = bans.clone();
            async move { bans.banned(ip("192.0.2.7")).await }
        });
        tokio::task::yield_now().await;
        bans.ban(range("192.0.2.8"), &[]).unwrap();
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        bans.ban(range("192.0.2.0/24"), &[]).unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(5), waiting).await.unwrap().unwrap();
    }
}
