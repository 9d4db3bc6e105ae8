//! Connects bans of addresses with the upstreams: an upstream at a banned address is not asked, and bans never leave all
//! upstreams unasked.

use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight_limits::budget::Reservation;
use rootlight_server::bans::{AddressOf, HostBans};
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, UpstreamError, UpstreamResult};

/// Registers the upstreams of a service, so that bans always leave at least one of them to ask.
pub fn protect(bans: &HostBans, upstreams: &[SharedUpstream]) {
    let address_of = |upstream: &SharedUpstream| {
        let upstream = upstream.clone();
        Box::new(move || upstream.address()) as AddressOf
    };
    bans.protect(upstreams.iter().map(address_of).collect());
}

/// As [`protect`]; returns the upstreams wrapped, so that each is not asked while its address is banned.
#[must_use]
pub fn guard(bans: &Arc<HostBans>, upstreams: Vec<SharedUpstream>) -> Vec<SharedUpstream> {
    protect(bans, &upstreams);
    let guarded =
        |(index, inner)| Arc::new(BanGuardedUpstream { inner, index, bans: bans.clone() }) as SharedUpstream;
    upstreams.into_iter().enumerate().map(guarded).collect()
}

/// An upstream that is not asked while its address is banned. The light client takes the failures as those of an
/// upstream that cannot be reached.
struct BanGuardedUpstream {
    inner: SharedUpstream,
    /// Position in the list that [`protect`] registered.
    index: usize,
    bans: Arc<HostBans>,
}

/// The failure of each request to a banned upstream.
fn refused(requests: &[UpstreamRequest]) -> Vec<UpstreamResult> {
    let refusal = || UpstreamError::Transport("its address is banned".into());
    requests.iter().map(|_| Err(refusal())).collect()
}

impl Upstream for BanGuardedUpstream {
    fn request(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
        if self.bans.is_paused(self.index) {
            return Box::pin(std::future::ready(refused(&requests)));
        }
        self.inner.request(requests)
    }

    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        if self.bans.is_paused(self.index) {
            return Box::pin(std::future::ready((refused(&requests), Reservation::default())));
        }
        self.inner.request_reserved(requests)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn inner(&self) -> Option<&dyn Upstream> {
        Some(&*self.inner)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use rootlight_server::bans::{AddressRange, BanRefusal};
    use rootlight_upstream::unreserved;

    use super::*;

    struct AddressedUpstream(IpAddr);

    impl Upstream for AddressedUpstream {
        fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
            let answer = || serde_json::value::to_raw_value("here").unwrap();
            Box::pin(unreserved(std::future::ready(requests.iter().map(|_| Ok(answer())).collect())))
        }

        fn name(&self) -> &str {
            "here"
        }

        fn address(&self) -> Option<IpAddr> {
            Some(self.0)
        }
    }

    fn range(text: &str) -> AddressRange {
        AddressRange::parse(text).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn banned_upstreams_are_not_asked_but_the_last_healthy_one_always_is() {
        let bans = Arc::new(HostBans::default());
        let upstreams = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
            .map(|text| Arc::new(AddressedUpstream(ip(text))) as SharedUpstream);
        let guarded = guard(&bans, upstreams.to_vec());
        let asked = || async {
            let mut asked = Vec::new();
            for upstream in &guarded {
                let answers = upstream.request(vec![UpstreamRequest::new("eth_chainId", "[]".into())]).await;
                asked.push(answers[0].is_ok());
            }
            asked
        };
        assert_eq!(asked().await, [true, true, true]);
        // The second one is not healthy.
        bans.ban(range("192.0.2.1"), &[0, 2]).unwrap();
        assert_eq!(asked().await, [false, true, true]);
        assert_eq!(bans.ban(range("192.0.2.3"), &[0, 2]), Err(BanRefusal::LastUpstream));
        assert_eq!(bans.ban(range("192.0.2.0/24"), &[]), Err(BanRefusal::LastUpstream));
        bans.ban(range("203.0.113.1"), &[0, 2]).unwrap();
        bans.ban(range("192.0.2.3"), &[0, 1, 2]).unwrap();
        assert_eq!(asked().await, [false, true, false]);
        bans.unban(&range("192.0.2.1"));
        assert_eq!(asked().await, [true, true, false]);
    }
}
