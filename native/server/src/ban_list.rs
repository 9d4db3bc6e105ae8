//! The list of IP addresses that the operator has banned, without a lock or a clock (`bans.rs` has both).

use std::fmt;
use std::net::IpAddr;

/// Seconds until a ban ends: a day, so that the next owner of an address is not refused for ever.
pub const BAN_SECONDS: u64 = 24 * 60 * 60;
/// Most bans in the list. Each connection and each request is compared with all of them.
pub const MAX_BANS: usize = 1_024;
/// Longest text of a range, in bytes: the longest IPv6 address (45 bytes), a slash and three digits, rounded up.
const MAX_TEXT: usize = 50;

/// An IP address, or all addresses with the same first bits (CIDR).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    /// The number of first bits that are compared, of the address as it was written; `None` stands for all bits.
    bits: Option<u8>,
}

/// The text is not an IP address or range, or it names this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an IP address or range, or an address of this machine")]
pub struct NotARange;

impl AddressRange {
    /// Parses `192.0.2.7`, `192.0.2.0/24` or the same for IPv6. Names are not resolved.
    ///
    /// # Errors
    /// [`NotARange`], also for ranges that include a loopback address or the unspecified address.
    pub fn parse(text: &str) -> Result<Self, NotARange> {
        let text = text.trim();
        if text.len() > MAX_TEXT {
            return Err(NotARange);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| NotARange)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NotARange)?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let range = Self { address, bits };
        let local = ["127.0.0.1", "0.0.0.0", "::1", "::"].iter().filter_map(|local| local.parse().ok());
        if bits.is_some_and(|bits| bits == 0 || bits > longest)
            || address.to_canonical().is_loopback()
            || local.into_iter().any(|local| range.contains(local))
        {
            return Err(NotARange);
        }
        Ok(range)
    }

    /// The address; for a range the address before the slash.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether an address is in the range. An IPv4 address that is written as IPv6 counts as IPv4. Of IPv6 addresses
    /// the first 64 bits are compared at most, because one client controls all addresses of such a network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, other) = (self.address.to_canonical(), address.to_canonical());
        // Both addresses as numbers, and how many bits such an address has.
        let (own, other, width) = match (own, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (u128::from(own.to_bits()), u128::from(other.to_bits()), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128_u32),
            _ => return false,
        };
        // The last bits, which may differ. They are counted in the form that was written: a range of IPv4 addresses that is
        // written as IPv6 has 96 further bits in front.
        let written_width = if self.address.is_ipv4() { 32_u32 } else { 128 };
        let free = self.bits.map_or(0, |bits| written_width.saturating_sub(u32::from(bits)));
        let free = if width == 128 { free.max(64) } else { free };
        let mask = u128::MAX.checked_shl(free.min(width)).unwrap_or(0);
        (own ^ other) & mask & u128::MAX.checked_shr(128_u32.saturating_sub(width)).unwrap_or(0) == 0
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            Some(bits) => write!(f, "{}/{bits}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

/// Why an address cannot be banned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BanRefusal {
    /// There are [`MAX_BANS`] others.
    #[error("Limit exceeded: {MAX_BANS} addresses are banned; end a ban first")]
    TooMany,
    /// All clients behind a proxy that the operator trusts would be refused.
    #[error("the range includes a trusted proxy, which cannot be banned")]
    Proxy,
    /// No upstream that answers well would be left.
    #[error("the range includes the last healthy upstream, which cannot be banned")]
    LastUpstream,
}

/// The banned addresses of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BanList {
    /// Ranges with the time in seconds since 1970 at which the ban ends.
    bans: Vec<(AddressRange, u64)>,
}

impl BanList {
    /// Bans a range for [`BAN_SECONDS`] from `now`, in seconds since 1970. A ban that exists is prolonged. Returns
    /// `false` if there are [`MAX_BANS`] others.
    pub(crate) fn ban(&mut self, range: AddressRange, now: u64) -> bool {
        self.bans.retain(|(banned, until)| *until > now && *banned != range);
        if self.bans.len() >= MAX_BANS {
            return false;
        }
        self.bans.push((range, now.saturating_add(BAN_SECONDS)));
        true
    }

    /// Ends the ban of exactly this range.
    pub(crate) fn unban(&mut self, range: &AddressRange) {
        self.bans.retain(|(banned, _)| banned != range);
    }

    /// Whether an address is banned at `now`, in seconds since 1970.
    pub(crate) fn is_banned(&self, address: IpAddr, now: u64) -> bool {
        self.bans.iter().any(|(range, until)| *until > now && range.contains(address))
    }

    /// The bans at `now`: single addresses first, then ranges, as the reference node lists them.
    pub(crate) fn list(&self, now: u64) -> Vec<String> {
        let listed = |is_range: bool| {
            let bans = self
                .bans
                .iter()
                .filter(move |(range, until)| *until > now && range.bits.is_some() == is_range);
            bans.map(|(range, _)| format!("{range}"))
        };
        listed(false).chain(listed(true)).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn range(text: &str) -> AddressRange {
        AddressRange::parse(text).unwrap()
    }

    pub(crate) fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_contains_the_addresses_with_its_first_bits() {
        for (text, inside, outside) in [
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.7/16", "192.0.255.1", "192.1.2.7"),
            ("192.0.2.7", "::ffff:192.0.2.7", "::192.0.2.7"),
            ("::ffff:192.0.2.0/120", "192.0.2.99", "192.0.3.99"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("2001:db8::1", "2001:db8::9:9:9:9", "2001:db8:0:1::1"),
            ("2001:db8::/100", "2001:db8::9:9:9:9", "2001:db8:0:1::1"),
        ] {
            assert!(range(text).contains(ip(inside)), "{text} {inside}");
            assert!(!range(text).contains(ip(outside)), "{text} {outside}");
        }
        assert!(!range("192.0.2.0/24").contains(ip("2001:db8::1")));
    }

    #[test]
    fn this_machine_and_texts_that_name_no_range_are_refused() {
        for text in [
            "",
            "localhost",
            "127.0.0.1",
            "127.9.9.9",
            "126.0.0.0/7",
            "0.0.0.0",
            "1.2.3.4/0",
            "1.2.3.4/33",
            "::1",
            "::9",
            "::/1",
            "::ffff:127.0.0.1",
            "2001:db8::/129",
            "1.2.3.4/",
            "1.2.3",
            "1.2.3.4/x",
        ] {
            assert_eq!(AddressRange::parse(text), Err(NotARange), "{text}");
        }
    }

    #[test]
    fn bans_end_after_a_day_and_are_limited_in_number() {
        let mut bans = BanList::default();
        assert!(bans.ban(range("2001:db8::/32"), 5) && bans.ban(range("192.0.2.7"), 5));
        assert_eq!(bans.list(5), ["192.0.2.7", "2001:db8::/32"]);
        assert!(bans.is_banned(ip("192.0.2.7"), 4 + BAN_SECONDS));
        assert!(!bans.is_banned(ip("192.0.2.7"), 5 + BAN_SECONDS) && bans.list(5 + BAN_SECONDS).is_empty());
        bans.unban(&range("192.0.2.7"));
        assert!(!bans.is_banned(ip("192.0.2.7"), 5) && bans.is_banned(ip("2001:db8::1"), 5));

        let mut full = BanList::default();
        for number in 0..MAX_BANS {
            assert!(full.ban(range(&format!("10.0.{}.{}", number / 256, number % 256)), 0));
        }
        assert!(!full.ban(range("192.0.2.7"), 0), "the list is full");
        assert!(full.ban(range("10.0.0.1"), 0), "a ban that exists is prolonged");
        assert!(full.ban(range("192.0.2.7"), BAN_SECONDS + 1), "bans that have ended make room");
    }
}
