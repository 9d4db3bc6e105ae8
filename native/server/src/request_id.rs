//! Ids of requests, which connect the log lines of proxies, of this server and of clients.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The header with the id, in requests of proxies and in all responses.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id taken from a proxy, in characters. UUIDs have 36.
const MAX_LENGTH: usize = 64;

pub(crate) struct Ids {
    /// Random, so that ids of several servers and of several runs differ.
    seed: u64,
    made: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        let mut seed = [0; 8];
        // Without randomness the ids of several servers may be equal, which does no harm.
        let _ = getrandom::fill(&mut seed);
        Self { seed: u64::from_le_bytes(seed), made: AtomicU64::new(0) }
    }
}

impl Ids {
    /// The id of a request: that of a trusted proxy if it is valid, or else a new one of 16 hexadecimal digits.
    pub(crate) fn of(&self, headers: &HeaderMap, proxied: bool) -> HeaderValue {
        let given = if proxied { headers.get(HEADER) } else { None };
        given
            .filter(|value| is_valid(value.as_bytes()))
            .cloned()
            .unwrap_or_else(|| fresh(self.seed.wrapping_add(self.made.fetch_add(1, Ordering::Relaxed))))
    }
}

/// Letters, digits and `-_.:` only, so that an id cannot forge log lines or markup.
fn is_valid(id: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    !id.is_empty() && id.len() <= MAX_LENGTH && id.iter().all(plain)
}

fn fresh(number: u64) -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [0_u8; 16];
    let mut bits = mix(number);
    for digit in &mut text {
        bits = bits.rotate_left(4);
        *digit = DIGITS.get((bits & 0xf) as usize).copied().unwrap_or(b'0');
    }
    HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("0"))
}

/// A permutation of 64-bit numbers (the output function of SplitMix64), so that consecutive ids look different.
const fn mix(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(ids: &Ids, value: &[u8], proxied: bool) -> HeaderValue {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_bytes(value).unwrap());
        ids.of(&headers, proxied)
    }

    #[test]
    fn a_valid_id_of_a_proxy_is_kept() {
        let (ids, uuid) = (Ids::default(), b"018f5c3e-7c6b-7d2a-9b1e-2f1a3b4c5d6e");
        assert_eq!(given(&ids, uuid, true), &uuid[..]);
        assert_eq!(given(&ids, &[b'x'; MAX_LENGTH], true), &[b'x'; MAX_LENGTH][..]);
        assert_ne!(given(&ids, uuid, false), &uuid[..], "only proxies give ids");
    }

    #[test]
    fn other_ids_are_replaced() {
        let ids = Ids::default();
        for bad in [&b""[..], &[b'x'; MAX_LENGTH + 1], b"a b", b"a\tb", b"<script>", b"\xff", b"a\"b", b"{a}"]
        {
            let new = given(&ids, bad, true);
            assert_eq!(new.len(), 16, "{bad:?}");
            assert!(new.as_bytes().iter().all(u8::is_ascii_hexdigit));
        }
        assert_ne!(given(&ids, b"", true), given(&ids, b"", true));
    }
}
