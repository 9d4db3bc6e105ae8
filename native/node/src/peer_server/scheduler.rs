//! Schedules the responses to all peers of a server: which request is answered next, and how many bytes may wait to be sent.
//!
//! Making a response needs a permit of the queue, and bytes of a budget. The permit is released while the work waits for a network that
//! the chain reads from, and before the response is sent. The bytes of a short response are released during such a wait too; a long
//! response is made in parts and keeps its bytes, so long responses have a budget of their own.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use rootlight_limits::budget::{Reservation, SharedBudget};
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::priority::{LongWork, Pauses};
use rootlight_limits::runs::{self, RunQueue, Size};
use rootlight_upstream::p2p::PeerResponse;
use tokio::runtime::Handle;

/// Budget of bytes of long responses that are being made or sent, to all peers together. One address gets half of it.
const LONG_BYTES: usize = 32 * 1024 * 1024;

/// The same for short responses.
const SHORT_BYTES: usize = 8 * 1024 * 1024;

/// Most bytes that a short response takes while it is made. Only runs of consecutive blocks take more.
const SHORT_RESPONSE: usize = 1024 * 1024;

/// Longest wait for the bytes of a response. A request that waits longer is not answered.
const BUDGET_PATIENCE: Duration = Duration::from_secs(20);

/// State that all connections of a server share.
pub(super) struct ResponseScheduler {
    /// Permits, shared out by peer.
    queue: Arc<RunQueue>,
    /// The threads on which responses are made.
    work: Arc<LongWork>,
    /// Bytes of long responses.
    long: SharedBudget,
    /// Bytes of short responses.
    short: SharedBudget,
}

impl ResponseScheduler {
    /// A scheduler whose responses are made on these threads.
    pub(super) fn new(work: Arc<LongWork>) -> Self {
        let of = |bytes| SharedBudget::new(bytes, bytes / 2);
        // The queue has a permit less than there are processors, because making a response cannot pause for other work.
        Self {
            queue: RunQueue::for_work_without_pauses(),
            work,
            long: of(LONG_BYTES),
            short: of(SHORT_BYTES),
        }
    }

    /// Makes a response of at most about `bytes`, on a thread for long work. `None` means that the peer gets no response.
    pub(super) async fn answer(
        &self,
        peer: CallerId,
        bytes: usize,
        make: impl FnOnce() -> Option<Vec<u8>> + Send + 'static,
    ) -> Option<PeerResponse> {
        let is_long = bytes > SHORT_RESPONSE;
        let budget = self.budget(is_long);
        let reserved = budget.take_within(peer.quota_owner(), bytes, BUDGET_PATIENCE).await?;
        let permit = self.queue.enter(peer, Size::Single).await;
        let active =
            ActiveResponse { queue: self.queue.clone(), peer, permit: Some(permit), reserved, is_long };
        // The bytes stay reserved until the work ends, even if the connection ends before.
        let work = move |_: &Pauses<'_>| active.run(make);
        let (made, mut reserved) = self.work.spawn_lowered(Some(peer.quota_owner()), work).await.ok()?;
        let payload = made?;
        reserved.shrink_to(payload.len());
        if let Some(more) = payload.len().checked_sub(reserved.bytes()).filter(|more| *more > 0) {
            reserved.merge(budget.take_or_refuse(peer.quota_owner(), more)?);
        }
        Some(PeerResponse { payload, reserved, is_long })
    }

    /// The budget for responses of this length.
    const fn budget(&self, is_long: bool) -> &SharedBudget {
        if is_long { &self.long } else { &self.short }
    }

    /// Whether other peers wait for bytes that responses of this length to this peer take.
    pub(super) fn is_contended(&self, peer: CallerId, is_long: bool) -> bool {
        self.budget(is_long).is_contended(peer.quota_owner())
    }
}

thread_local! {
    /// The response for which this thread has a permit, so that [`wait_without_permit`] finds it. A thread makes one response at a
    /// time.
    static ACTIVE: RefCell<Option<ActiveResponse>> = const { RefCell::new(None) };
}

/// A response that is being made, with its permit and bytes.
struct ActiveResponse {
    queue: Arc<RunQueue>,
    peer: CallerId,
    permit: Option<runs::RunPermit>,
    reserved: Reservation,
    is_long: bool,
}

/// Clears [`ACTIVE`] when it is dropped, also if the work panics.
struct ClearActive;

impl Drop for ClearActive {
    fn drop(&mut self) {
        ACTIVE.take();
    }
}

impl ActiveResponse {
    /// Runs the work on this thread. Also returns the bytes that are still reserved.
    fn run<T>(self, work: impl FnOnce() -> T) -> (T, Reservation) {
        ACTIVE.set(Some(self));
        let _clear = ClearActive;
        let done = work();
        (done, ACTIVE.take().map(|active| active.reserved).unwrap_or_default())
    }
}

/// Waits for a network on a thread that makes a response. Other peers can use the permit meanwhile, and the bytes of a short response,
/// of which nothing is made yet. On another thread, it only waits.
pub(crate) fn wait_without_permit<T>(runtime: &Handle, wait: impl Future<Output = T>) -> T {
    let active = ACTIVE.take();
    runtime.block_on(async {
        let Some(ActiveResponse { queue, peer, permit, mut reserved, is_long }) = active else {
            return wait.await;
        };
        drop(permit);
        if !is_long {
            reserved = Reservation::default();
        }
        let waited = wait.await;
        let permit = Some(queue.enter(peer, Size::Single).await);
        ACTIVE.set(Some(ActiveResponse { queue, peer, permit, reserved, is_long }));
        waited
    })
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn answering() -> ResponseScheduler {
        ResponseScheduler::new(Arc::default())
    }

    fn peer(last: u8) -> CallerId {
        CallerId::new(std::net::IpAddr::from([192, 0, 2, last]))
    }

    fn zeros(count: usize) -> impl FnOnce() -> Option<Vec<u8>> + Send + 'static {
        move || Some(vec![0; count])
    }

    #[tokio::test]
    async fn a_peer_whose_answer_waits_for_a_network_holds_no_turn() {
        let answering = Arc::new(ResponseScheduler { queue: RunQueue::one_at_a_time(), ..answering() });
        let (tell, network) = oneshot::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let slow = tokio::spawn({
            let (answering, runtime) = (answering.clone(), Handle::current());
            let make = move || {
                begin.send(()).unwrap();
                wait_without_permit(&runtime, network).ok()?;
                Some(vec![0; 5])
            };
            async move { answering.answer(peer(1), 100, make).await }
        });
        begun.await.unwrap();
        for _ in 0..3 {
            let other = answering.answer(peer(2), 100, zeros(7)).await;
            assert_eq!(other.unwrap().payload.len(), 7);
        }
        assert!(!slow.is_finished());
        tell.send(()).unwrap();
        assert_eq!(slow.await.unwrap().unwrap().payload.len(), 5);
    }

    #[tokio::test]
    async fn answers_that_wait_for_a_network_leave_room_to_others() {
        let answering = Arc::new(answering());
        let (tell, network) = tokio::sync::watch::channel(false);
        let (begin, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let waiting = |last: u8, bytes: usize| {
            let (answering, runtime) = (answering.clone(), Handle::current());
            let (mut network, begin) = (network.clone(), begin.clone());
            let make = move || {
                wait_without_permit(&runtime, async {
                    begin.send(()).unwrap();
                    network.wait_for(|is_released| *is_released).await.is_ok()
                });
                Some(vec![0; 5])
            };
            tokio::spawn(async move { answering.answer(peer(last), bytes, make).await })
        };
        let mut slow = Vec::new();
        for last in [1, 2] {
            slow.extend((0..SHORT_BYTES / 2 / SHORT_RESPONSE).map(|_| waiting(last, SHORT_RESPONSE)));
            slow.push(waiting(last, LONG_BYTES / 2));
        }
        for _ in &slow {
            begun.recv().await.unwrap();
        }
        for last in [1, 3] {
            assert!(answering.answer(peer(last), SHORT_RESPONSE, zeros(7)).await.is_some());
        }
        tell.send(true).unwrap();
        for slow in slow {
            assert_eq!(slow.await.unwrap().unwrap().payload.len(), 5);
        }
    }

    #[tokio::test]
    async fn a_turn_ends_with_work_that_panics() {
        let answering = ResponseScheduler { queue: RunQueue::one_at_a_time(), ..answering() };
        assert!(answering.answer(peer(1), 100, || panic!("a defect")).await.is_none());
        assert!(answering.answer(peer(2), 100, zeros(7)).await.is_some());
    }

    #[tokio::test]
    async fn answers_that_are_not_sent_take_room_and_one_address_leaves_half_of_it() {
        let (answering, long) = (answering(), LONG_BYTES / 4);
        let mut unsent = Vec::new();
        for _ in 0..2 {
            unsent.push(answering.answer(peer(1), long, zeros(long)).await.unwrap());
        }
        assert!(!answering.is_contended(peer(1), true));
        let mut third = Box::pin(answering.answer(peer(1), long, zeros(long)));
        tokio::select! {
            biased;
            _ = &mut third => panic!("more than half of the room is given to one address"),
            () = tokio::task::yield_now() => {}
        }
        assert!(answering.is_contended(peer(1), true), "its connections that do not read must make room");
        assert!(answering.answer(peer(2), long, zeros(long)).await.is_some());
        unsent.pop();
        assert!(third.await.is_some());
    }

    #[tokio::test]
    async fn an_answer_that_is_longer_than_expected_takes_more_room_or_is_dropped() {
        let answering = answering();
        let answer = answering.answer(peer(1), 100, zeros(SHORT_BYTES / 4)).await.unwrap();
        assert!(answer.reserved.bytes() >= SHORT_BYTES / 4);
        assert!(answering.answer(peer(1), 100, zeros(SHORT_BYTES / 2)).await.is_none());
        drop(answer);
        assert!(answering.answer(peer(1), 100, zeros(SHORT_BYTES / 2 - 1024)).await.is_some());
    }
}
