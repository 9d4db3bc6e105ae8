//! Shares out the messages that a peer reads in a minute among the callers whose requests are sent to it. A peer drops messages
//! beyond its limit without a response.

use std::collections::BTreeMap;
use std::time::Duration;

use rootlight_limits::quota_owner::QuotaOwner;
use rootlight_p2p::session::RateWindow;
use tokio::time::Instant;

use super::error::PeerError;

/// Most callers whose messages of a minute are counted; bounds memory. Beyond it, all are forgotten.
const MAX_CALLERS: usize = 1_024;

/// The messages of a minute, shared out among callers.
pub(super) struct MinuteQuota {
    /// The number of messages that the peer reads in a minute.
    limit: u64,
    sent: BTreeMap<QuotaOwner, SentCount>,
}

/// The messages that a caller has sent.
struct SentCount {
    /// Those of the last minute.
    window: RateWindow,
    /// When the caller's next message beyond its share may be sent, in milliseconds since the connection began.
    next_ms: u64,
}

/// One in this many of the messages of a minute is left to the program itself, such as for synchronization.
const OWN_PART: u64 = 10;

/// A caller's share: the messages that it has sent in a minute may be less than this many times the messages that are left to all
/// others. A caller alone gets three quarters of the messages of callers, the next one three quarters of the rest, and so on.
const SHARE_FACTOR: u64 = 3;

/// Callers beyond their shares together send the messages that are left so slowly that these last for this many milliseconds.
const SLOW_MS: u64 = 60_000;

/// How long a request waits until its caller's share allows it.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two tries to send a request whose caller's share is used up.
const PAUSE: Duration = Duration::from_millis(200);

/// Sends a request by `ask`, again and again while the share of its caller is used up. Between two tries the request holds no
/// permit.
pub(super) async fn retry_within_share<T, F>(mut ask: impl FnMut() -> F) -> Result<T, PeerError>
where
    F: Future<Output = Result<T, PeerError>>,
{
    let until = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Err(PeerError::Share) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

impl MinuteQuota {
    /// The quota of a peer that reads this many messages in a minute.
    pub(super) const fn new(limit: u64) -> Self {
        Self { limit, sent: BTreeMap::new() }
    }

    /// Counts a message of a caller. Returns `false` if the caller's share is used up. `still_read` is the number of messages that the
    /// peer still reads in this minute, of any sender.
    pub(super) fn take(&mut self, owner: QuotaOwner, now_ms: u64, still_read: u64) -> bool {
        let (limit, left) = (self.limit, still_read.saturating_sub(self.limit / OWN_PART));
        if self.sent.len() >= MAX_CALLERS {
            self.sent.retain(|_, sent| sent.window.left(now_ms) < limit);
        }
        if self.sent.len() >= MAX_CALLERS {
            self.sent.clear();
        }
        let is_beyond = |sent: &mut SentCount| {
            limit.saturating_sub(sent.window.left(now_ms)) >= left.saturating_mul(SHARE_FACTOR)
        };
        let new = || SentCount { window: RateWindow::new(limit), next_ms: 0 };
        let own = self.sent.entry(owner).or_insert_with(new);
        let is_slow = is_beyond(own);
        let may = left > 0 && (!is_slow || now_ms >= own.next_ms);
        if !may || own.window.take(now_ms, 1).is_err() {
            return false;
        }
        // Each caller has its own pace, so that the one that tries most often does not get all that is left.
        let slow = self.sent.values_mut().map(|sent| u64::from(is_beyond(sent))).sum::<u64>();
        let pause = SLOW_MS.saturating_mul(slow.max(1)).checked_div(left).unwrap_or(SLOW_MS);
        if let Some(own) = self.sent.get_mut(&owner) {
            own.next_ms = now_ms.saturating_add(pause);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever callers send, a part of the messages is left to the program itself, and each caller leaves a part to the next.
    #[test]
    fn the_messages_of_a_minute_are_shared_out() {
        let (mut minute, mut all) = (MinuteQuota::new(1_000), RateWindow::new(1_000));
        let mut sent_by = |owner: u64| {
            let mut sent = 0;
            while minute.take(owner.into(), 5_000, all.left(5_000)) {
                all.take(5_000, 1).unwrap();
                sent += 1;
            }
            sent
        };
        assert_eq!([1, 2, 3, 1].map(&mut sent_by), [675, 169, 42, 0]);
        assert!((4..50).map(sent_by).sum::<i32>() > 0);
        assert_eq!(all.left(5_000), 100);
        // Beyond its share, a caller is served slowly, and leaves a part to others.
        let (mut minute, mut all, mut slowly) = (MinuteQuota::new(1_000), RateWindow::new(1_000), 0);
        for now in (5_000..60_000).step_by(5) {
            if minute.take(1.into(), now, all.left(now)) {
                all.take(now, 1).unwrap();
                slowly += u64::from(now > 10_000);
            }
        }
        assert!((50..=200).contains(&slowly), "{slowly}");
        assert!((150..=250).contains(&all.left(60_000)), "{}", all.left(60_000));
        // A minute later the whole share is available again.
        assert!(minute.take(1.into(), 130_000, all.left(130_000)));
    }

    /// The caller that tries most often does not get all messages that are left.
    #[test]
    fn callers_beyond_their_shares_are_served_slowly_in_equal_parts() {
        let (mut minute, mut all) = (MinuteQuota::new(1_000), RateWindow::new(1_000));
        let mut sent = [0_u64; 2];
        for now in (5_000..60_000).step_by(5) {
            // The second caller tries once for every forty times that the first one does.
            for (owner, sent) in
                [1_u64, 2].into_iter().zip(&mut sent).filter(|(owner, _)| *owner == 1 || now % 200 == 0)
            {
                if minute.take(owner.into(), now, all.left(now)) {
                    all.take(now, 1).unwrap();
                    *sent += u64::from(now > 40_000);
                }
            }
        }
        let [often, seldom] = sent;
        assert!(often > 0 && often <= 2 * seldom, "{sent:?}");
        assert!(all.left(60_000) > 100, "what is left lasts");
    }
}
