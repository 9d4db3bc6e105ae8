//! How the requests of all peers of a server are answered: whose turn it is, and how many bytes wait to be sent.
//!
//! A turn lasts as long as a processor works for it. Neither the sending of a response nor the network that a chain reads
//! from is waited for with a turn in hand. Long responses, which are made in parts, keep their room meanwhile; so they have a
//! budget of their own.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use rootlight_limits::budget::{Reservation, SharedBudget};
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::priority::{LongWork, Pauses};
use rootlight_limits::runs::{self, RunQueue, Size};
use rootlight_upstream::p2p::PeerResponse;
use tokio::runtime::Handle;

/// Bytes of long responses that are being made or sent, to all peers together. One address gets half of it.
const LONG_BYTES: usize = 32 * 1024 * 1024;

/// The same of short responses.
const SHORT_BYTES: usize = 8 * 1024 * 1024;

/// Bytes that a short response has at most, while it is made. Only runs of blocks have more.
const SHORT: usize = 1024 * 1024;

/// Longest wait for room for a response. A request that waits longer is not answered.
const PATIENCE: Duration = Duration::from_secs(20);

/// State that all connections of a server share.
pub(super) struct ResponseScheduler {
    queue: Arc<RunQueue>,
    work: Arc<LongWork>,
    long: SharedBudget,
    short: SharedBudget,
}

impl ResponseScheduler {
    /// Answers on these threads.
    pub(super) fn new(work: Arc<LongWork>) -> Self {
        // One processor at least is left to others, if there are several.
        let of = |bytes| SharedBudget::new(bytes, bytes / 2);
        Self { queue: RunQueue::without_pauses(), work, long: of(LONG_BYTES), short: of(SHORT_BYTES) }
    }

    /// Makes a response of at most about so many bytes, on a thread where it may take long. `None` is no response.
    pub(super) async fn answer(
        &self,
        peer: CallerId,
        bytes: usize,
        make: impl FnOnce() -> Option<Vec<u8>> + Send + 'static,
    ) -> Option<PeerResponse> {
        let is_long = bytes > SHORT;
        let budget = self.budget(is_long);
        let reserved = budget.take_within(peer.asker(), bytes, PATIENCE).await?;
        let permit = self.queue.enter(peer, Size::Single).await;
        let turn = ResponseTurn { queue: self.queue.clone(), peer, permit: Some(permit), reserved, is_long };
        // The bytes are held until the work ends, even if the connection ends before.
        let work = move |_: &Pauses<'_>| turn.hold(make);
        let (made, mut reserved) = self.work.spawn_lowered(Some(peer.asker()), work).await.ok()?;
        let payload = made?;
        reserved.shrink_to(payload.len());
        if let Some(more) = payload.len().checked_sub(reserved.bytes()).filter(|more| *more > 0) {
            reserved.merge(budget.take_or_refuse(peer.asker(), more)?);
        }
        Some(PeerResponse { payload, reserved, is_long })
    }

    const fn budget(&self, is_long: bool) -> &SharedBudget {
        if is_long { &self.long } else { &self.short }
    }

    /// Whether other peers wait for room that the responses of this length to this one take.
    pub(super) fn is_contended(&self, peer: CallerId, is_long: bool) -> bool {
        self.budget(is_long).is_contended(peer.asker())
    }
}

thread_local! {
    /// The turn that the work of this thread has. A thread does the work of one turn at a time, whoever serves the peer.
    static TURN: RefCell<Option<ResponseTurn>> = const { RefCell::new(None) };
}

struct ResponseTurn {
    queue: Arc<RunQueue>,
    peer: CallerId,
    permit: Option<runs::RunPermit>,
    reserved: Reservation,
    is_long: bool,
}

/// Takes the turn from the thread, also if the work panics.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        TURN.take();
    }
}

impl ResponseTurn {
    /// Runs work that ends with the turn. Returns the room too that is left of the turn's.
    fn hold<T>(self, work: impl FnOnce() -> T) -> (T, Reservation) {
        TURN.set(Some(self));
        let _ending = Ending;
        let done = work();
        (done, TURN.take().map(|turn| turn.reserved).unwrap_or_default())
    }
}

/// Waits for a network on a thread that answers a peer. Other peers have their turns meanwhile, and the room of a short
/// response, of which nothing is made yet.
pub(crate) fn wait_without_permit<T>(runtime: &Handle, wait: impl Future<Output = T>) -> T {
    let turn = TURN.take();
    runtime.block_on(async {
        let Some(ResponseTurn { queue, peer, permit, mut reserved, is_long }) = turn else {
            return wait.await;
        };
        drop(permit);
        if !is_long {
            reserved = Reservation::default();
        }
        let waited = wait.await;
        let permit = Some(queue.enter(peer, Size::Single).await);
        TURN.set(Some(ResponseTurn { queue, peer, permit, reserved, is_long }));
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
            slow.extend((0..SHORT_BYTES / 2 / SHORT).map(|_| waiting(last, SHORT)));
            slow.push(waiting(last, LONG_BYTES / 2));
        }
        for _ in &slow {
            begun.recv().await.unwrap();
        }
        for last in [1, 3] {
            assert!(answering.answer(peer(last), SHORT, zeros(7)).await.is_some());
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
