//! The quota of a source (an upstream or a peer): the memory that its responses may take. All bytes that sources send are counted
//! here.
//!
//! A transport hands over received bytes as a `ReceivedBytes`, which only a `SourceQuota` makes, after it has reserved bytes of
//! the budget of upstream responses for the response and its decoded form. One source takes only a part of that budget. The
//! bytes can only be read by `ReceivedBytes::read`, which does long work apart from the threads that serve connections. Work on
//! the decoded response reserves its memory by `SourceQuota::work`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rootlight_limits::budget::{self, Budget, Reservation, SubBudget};
use rootlight_limits::priority::LongWork;
use rootlight_limits::{Limits, OF_ONE_SOURCE};
use tokio::sync::Semaphore;
use tokio::time::Sleep;

use super::{UpstreamError, UpstreamResult, quota_owner};

/// Longest message that is read on a thread that serves connections, in bytes; reading it takes well below a
/// millisecond.
pub(crate) const SHORT: usize = 16 * 1024;

/// The memory of a message while it is decoded, in its length: the bytes and the parts that are made of them.
const COPIES: usize = 2;

/// The bytes of the budget that a message of this length reserves. A short one reserves none: the number of short messages is
/// limited elsewhere.
pub(crate) const fn bytes_to_reserve(bytes: usize) -> usize {
    if bytes > SHORT { bytes.saturating_mul(COPIES) } else { 0 }
}

/// Longest wait for the first reservation of a response.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Longest time for which a long response comes in while other requests wait for the bytes of the budget that it holds. It is as
/// long as a budget counts as contended after a refusal, so that a refusal of the response's own first reservation no longer
/// counts by then.
pub(crate) const CONTENDED: Duration = budget::CONTENDED_AFTER_REFUSAL;

/// Pause between two tries to reserve bytes.
const PAUSE: Duration = Duration::from_millis(25);

/// Bytes of the budget that one message of a peer may hold without having to come in quickly while others wait for bytes: a block
/// and its decoded form. In the limit of all peers (40 MiB) eight peers fit.
const FAIR: usize = 5 * 1024 * 1024;

/// Number of long messages of one source that are worked on at the same time.
const PARALLEL_WORK: usize = 2;

/// Bytes of a source's share that requests of callers leave to the program itself. They are enough for the longest response that
/// the program itself requests.
const LEFT_BY_CALLERS: usize = 8 * 1024 * 1024;

/// The quota of one source, in which all its messages count.
///
/// A message that holds bytes of the budget does not wait for more: if too few are free, it is refused, so that messages with a
/// reservation always end and give it back. Only a message without a reservation may wait.
#[derive(Debug, Clone)]
pub struct SourceQuota(Arc<QuotaLimits>);

/// The budgets in which messages of one source count.
#[derive(Debug)]
struct QuotaLimits {
    /// Responses of this source for callers.
    callers: Budget,
    /// Responses of all sources for callers.
    all_callers: Arc<Budget>,
    /// All responses of this source.
    share: Budget,
    /// Bytes that a message may hold without having to come in quickly while others wait for bytes.
    fair: usize,
    /// All responses of this kind of sources, such as peers; `None` for a kind without a limit.
    kind: Option<Arc<Budget>>,
    /// All responses of all sources.
    all: Arc<Budget>,
    /// Permits for work on long messages of this source.
    work_permits: Arc<Semaphore>,
    work: Arc<LongWork>,
}

/// Too few bytes of the budget are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetUsedUp;

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoWork {
    /// Too few bytes of the budget are free now.
    BudgetUsedUp,
    /// The work takes more bytes than a source may ever take: the source sent more than an honest one does.
    TooLong,
}

impl From<BudgetUsedUp> for NoWork {
    fn from(_: BudgetUsedUp) -> Self {
        Self::BudgetUsedUp
    }
}

impl From<BudgetUsedUp> for UpstreamError {
    fn from(_: BudgetUsedUp) -> Self {
        Self::BudgetUsedUp
    }
}

impl SourceQuota {
    /// The quota of an upstream that the user has chosen.
    pub(crate) fn of_upstream(limits: &Limits) -> Self {
        Self::new(limits, (OF_ONE_SOURCE, 0), None, limits.upstreams())
    }

    /// The quota of a peer whose chain is read.
    pub(crate) fn of_peer(limits: &Limits) -> Self {
        Self::new(limits, (OF_ONE_SOURCE, FAIR), Some(limits.peers()), limits.upstreams())
    }

    /// The quota of all served peers of one address, which can take this many bytes. These have a budget of their own. It is
    /// for received messages: of at most `LEFT_BY_CALLERS` bytes none are left for callers and for `Self::work`.
    pub fn of_served_address(limits: &Limits, bytes: usize) -> Self {
        Self::new(limits, (bytes, 0), None, limits.served_peers())
    }

    /// A source with the given [`QuotaLimits::share`] and [`QuotaLimits::fair`], in bytes.
    fn new(
        limits: &Limits,
        (share, fair): (usize, usize),
        kind: Option<&Arc<Budget>>,
        all: &Arc<Budget>,
    ) -> Self {
        Self(Arc::new(QuotaLimits {
            callers: Budget::new(share.saturating_sub(LEFT_BY_CALLERS)),
            all_callers: limits.callers().clone(),
            share: Budget::new(share),
            fair,
            kind: kind.cloned(),
            all: all.clone(),
            work_permits: Arc::new(Semaphore::new(PARALLEL_WORK)),
            work: limits.work().clone(),
        }))
    }

    /// The most bytes that the work for one request may take.
    pub(crate) fn most(&self) -> usize {
        self.0.callers.size()
    }

    /// Whether another value than this one refers to the same quota.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether a message that holds this many bytes must come in quickly: it holds more than its part, and other sources were
    /// recently refused bytes.
    pub(crate) fn is_wanted(&self, reserved: usize) -> bool {
        let QuotaLimits { fair, kind, all, .. } = &*self.0;
        reserved > *fair && (all.is_contended() || kind.as_ref().is_some_and(|kind| kind.is_contended()))
    }

    /// Whether other responses of this source were recently refused bytes.
    fn was_refused_lately(&self) -> bool {
        self.0.share.is_contended() || self.0.callers.is_contended()
    }

    /// Fails a response that holds bytes of the budget and comes in for too long while others wait for bytes. If responses of the
    /// same source wait, the error is that the source is too slow; if others do, it is the lack of memory.
    pub(crate) fn check_pace(&self, reserved: &Reservation, taken: Duration) -> Result<(), UpstreamError> {
        if reserved.bytes() == 0 || taken < CONTENDED {
            return Ok(());
        }
        if self.was_refused_lately() {
            return Err(UpstreamError::Timeout(taken.as_millis()));
        }
        if self.is_wanted(reserved.bytes()) { Err(UpstreamError::BudgetUsedUp) } else { Ok(()) }
    }

    /// Waits for bytes of the budget, and holds none meanwhile.
    async fn reserve_when_possible(&self, is_caller: bool, bytes: usize) -> Reservation {
        loop {
            match self.try_reserve_for(is_caller, bytes) {
                Ok(reserved) => return reserved,
                Err(BudgetUsedUp) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Waits for the first bytes of a response, at most for [`PATIENCE`].
    pub(crate) async fn reserve_when_free(&self, bytes: usize) -> Result<Reservation, BudgetUsedUp> {
        let reserved = self.reserve_when_possible(quota_owner().is_some(), bytes);
        tokio::time::timeout(PATIENCE, reserved).await.map_err(|_| BudgetUsedUp)
    }

    /// Reserves bytes if they are free now, for the present caller or the program itself ([`quota_owner`]).
    pub(crate) fn try_reserve(&self, bytes: usize) -> Result<Reservation, BudgetUsedUp> {
        self.try_reserve_for(quota_owner().is_some(), bytes)
    }

    /// As [`Self::try_reserve`]. `is_caller` says whether the bytes are for a caller, in a task that has no present caller.
    fn try_reserve_for(&self, is_caller: bool, bytes: usize) -> Result<Reservation, BudgetUsedUp> {
        let QuotaLimits { callers, all_callers, share, kind, all, .. } = &*self.0;
        let take = |budget: &Budget| budget.take_or_refuse(bytes).ok_or(BudgetUsedUp);
        let optional = |budget: Option<&Budget>| budget.map_or(Ok(Reservation::default()), take);
        let callers = optional(is_caller.then_some(callers))?;
        let all_callers = optional(is_caller.then_some(&**all_callers))?;
        let (share, kind) = (take(share)?, optional(kind.as_deref())?);
        let reserved = take(all)?.also(SubBudget::CallerOrSource, share).also(SubBudget::Kind, kind);
        Ok(reserved.also(SubBudget::CallersOfSource, callers).also(SubBudget::Callers, all_callers))
    }

    /// Makes a [`ReceivedBytes`] of bytes of which the connection learned only now whether they are for a caller. `reserved` is
    /// their reservation so far, outside the limits of callers.
    pub(crate) fn admit_for<B: AsRef<[u8]>>(
        &self,
        is_caller: bool,
        bytes: B,
        mut reserved: Reservation,
    ) -> Result<ReceivedBytes<B>, BudgetUsedUp> {
        reserved.shrink_to(bytes_to_reserve(bytes.as_ref().len()));
        if is_caller {
            let take = |budget: &Budget| budget.take_or_refuse(reserved.bytes()).ok_or(BudgetUsedUp);
            let (callers, all_callers) = (take(&self.0.callers)?, take(&self.0.all_callers)?);
            reserved =
                reserved.also(SubBudget::CallersOfSource, callers).also(SubBudget::Callers, all_callers);
        }
        self.admit(bytes, reserved)
    }

    /// Makes a [`ReceivedBytes`] of bytes, with their reservation so far. Missing bytes are reserved, if they are free.
    pub(crate) fn admit<B: AsRef<[u8]>>(
        &self,
        bytes: B,
        mut reserved: Reservation,
    ) -> Result<ReceivedBytes<B>, BudgetUsedUp> {
        let wanted = bytes_to_reserve(bytes.as_ref().len());
        reserved.shrink_to(wanted);
        let missing = wanted.saturating_sub(reserved.bytes());
        if missing > 0 {
            reserved.merge(self.try_reserve(missing)?);
        }
        Ok(ReceivedBytes { message: Arc::new((bytes, reserved)), quota: self.clone() })
    }

    /// Applies `look` to bytes that do not count yet, such as to learn which request they answer. Returns the bytes too.
    pub(crate) async fn peek_bytes<B: AsRef<[u8]> + Send + 'static, T: Send + 'static>(
        &self,
        bytes: B,
        look: impl FnOnce(&B) -> T + Send + 'static,
    ) -> Result<(T, B), BudgetUsedUp> {
        self.on_worker(bytes.as_ref().len(), move || (look(&bytes), bytes)).await
    }

    /// Does work that takes this many bytes of memory: reserves them, and waits for a work permit of this source if the work is
    /// long. Returns the outcome and the reservation.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Reservation), NoWork> {
        if bytes > self.most() {
            return Err(NoWork::TooLong);
        }
        let reserved = if bytes > SHORT { self.try_reserve(bytes)? } else { Reservation::default() };
        // The work itself holds the reservation, because it goes on after its caller has stopped waiting.
        Ok(self.on_worker(bytes, move || (work(), reserved)).await?)
    }

    /// Does work on this many bytes: long work on a thread of lower priority. Fails only if the work panics or the program ends: the
    /// semaphore of the permits is never closed.
    async fn on_worker<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BudgetUsedUp> {
        if bytes <= SHORT {
            return Ok(work());
        }
        let permit = self.0.work_permits.clone().acquire_owned().await.map_err(|_| BudgetUsedUp)?;
        let working = self.0.work.spawn_lowered(None, move |pauses| {
            pauses.cannot_pause();
            let outcome = work();
            drop(permit);
            outcome
        });
        working.await.map_err(|_| BudgetUsedUp)
    }
}

/// The bytes of all results together.
pub(super) fn bytes_of(results: &[UpstreamResult]) -> usize {
    let length = |result: &UpstreamResult| result.as_ref().map_or(0, |text| text.get().len());
    results.iter().map(length).fold(0, usize::saturating_add)
}

/// Reserves bytes for results that a source has made without a reservation. If too few bytes are free, errors replace the results.
pub(super) async fn hold(
    limits: &Limits,
    results: Vec<UpstreamResult>,
) -> (Vec<UpstreamResult>, Reservation) {
    let bytes = bytes_of(&results);
    if bytes <= SHORT {
        return (results, Reservation::default());
    }
    match limits.upstreams().take_within(bytes, PATIENCE).await {
        Some(reserved) => (results, reserved),
        None => (results.iter().map(|_| Err(UpstreamError::BudgetUsedUp)).collect(), Reservation::default()),
    }
}

/// Received bytes of a source, with their reservation, which is given back with the last copy of the value.
#[derive(Debug)]
pub(crate) struct ReceivedBytes<B = Vec<u8>> {
    message: Arc<(B, Reservation)>,
    quota: SourceQuota,
}

impl<B> Clone for ReceivedBytes<B> {
    fn clone(&self) -> Self {
        Self { message: self.message.clone(), quota: self.quota.clone() }
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> ReceivedBytes<B> {
    pub(crate) fn len(&self) -> usize {
        self.message.0.as_ref().len()
    }

    /// Reads the bytes; long ones apart from the threads that serve connections.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, BudgetUsedUp> {
        let message = self.message.clone();
        self.quota.on_worker(self.len(), move || work(message.0.as_ref())).await
    }

    /// As [`Self::read`], and reserves as many further bytes for the result.
    pub(crate) async fn read_into<T: Send + 'static>(
        &self,
        further_bytes: usize,
        work: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<(T, Reservation), NoWork> {
        let message = self.message.clone();
        self.quota.work(further_bytes.max(self.len()), move || work(message.0.as_ref())).await
    }

    /// Gives the reservation back, for bytes that a cache with its own limit stores. There must be one copy of the value.
    pub(crate) fn give_back(&mut self) {
        if let Some((_, reserved)) = Arc::get_mut(&mut self.message) {
            *reserved = Reservation::default();
        }
    }

    /// The reservation of the bytes, which the caller keeps as long as what was read from them. Empty if there is another copy of
    /// the value, which then keeps the reservation.
    pub(crate) fn into_held(self) -> Reservation {
        Arc::into_inner(self.message).map(|(_, reserved)| reserved).unwrap_or_default()
    }
}

/// The reservation of bytes that a connection has received and that are not a whole message yet.
pub(crate) struct ReceiveQuota {
    quota: SourceQuota,
    reserved: Reservation,
    /// The pause of [`Self::poll_more`].
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReceiveQuota {
    pub(crate) fn new(quota: SourceQuota) -> Self {
        Self { quota, reserved: Reservation::default(), pause: None }
    }

    /// The bytes that must be reserved before more is received, if this many bytes have come in or will be the next message. Gives
    /// back what is reserved too much.
    pub(crate) fn missing(&mut self, bytes: usize) -> usize {
        let wanted = bytes_to_reserve(bytes);
        // Up to twice the wanted bytes stay reserved, because more bytes follow.
        if self.reserved.bytes() > wanted.saturating_mul(2) {
            self.reserved.shrink_to(wanted);
        }
        wanted.saturating_sub(self.reserved.bytes())
    }

    /// Reserves the missing bytes if they are free now. Otherwise the present reservation is given back.
    pub(crate) fn try_more(&mut self, missing: usize) -> bool {
        let all = std::mem::take(&mut self.reserved).bytes().saturating_add(missing);
        self.quota.try_reserve_for(false, all).map(|reserved| self.reserved = reserved).is_ok()
    }

    /// Waits for the missing bytes without a time limit. The present reservation is given back meanwhile.
    pub(crate) async fn more(&mut self, missing: usize) {
        let all = std::mem::take(&mut self.reserved).bytes().saturating_add(missing);
        self.reserved = self.quota.reserve_when_possible(false, all).await;
    }

    /// Reserves the bytes for a message of this length. Waits for them if nothing is reserved yet; otherwise fails if too few are
    /// free.
    pub(crate) fn poll_more(
        &mut self,
        context: &mut Context<'_>,
        bytes: usize,
    ) -> Poll<Result<(), BudgetUsedUp>> {
        let missing = self.missing(bytes);
        if missing == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            match self.quota.try_reserve_for(false, missing) {
                Ok(reserved) => {
                    self.reserved.merge(reserved);
                    return Poll::Ready(Ok(()));
                }
                Err(BudgetUsedUp) if self.reserved.bytes() > 0 => return Poll::Ready(Err(BudgetUsedUp)),
                Err(BudgetUsedUp) => {}
            }
            let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(PAUSE)));
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
    }

    /// Hands over the reservation of a whole message.
    pub(crate) fn take(&mut self) -> Reservation {
        std::mem::take(&mut self.reserved)
    }

    /// As [`SourceQuota::check_pace`].
    pub(crate) fn check_pace(&self, taken: Duration) -> Result<(), UpstreamError> {
        self.quota.check_pace(&self.reserved, taken)
    }

    /// Whether the message must come in quickly ([`SourceQuota::is_wanted`]).
    pub(crate) fn is_wanted(&self) -> bool {
        self.quota.is_wanted(self.reserved.bytes())
    }

    /// Makes a [`ReceivedBytes`] of a whole message, with its part of the reservation.
    pub(crate) fn admit(&mut self, bytes: Vec<u8>) -> Result<ReceivedBytes, BudgetUsedUp> {
        let reserved = self.reserved.split(bytes_to_reserve(bytes.len()));
        self.quota.admit(bytes, reserved)
    }
}

#[cfg(test)]
impl SourceQuota {
    /// A source whose limits are its own, so that tests do not wait for each other.
    pub(crate) fn alone(share: usize, all: usize) -> Self {
        Self::new(&Limits::new(), (share, 0), None, &Arc::new(Budget::new(all)))
    }

    /// Another source of the same budget.
    pub(crate) fn beside(&self, share: usize) -> Self {
        Self::new(&Limits::new(), (share, 0), None, &self.0.all)
    }

    /// The bytes of its budget that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.0.all.taken()
    }
}

#[cfg(test)]
mod tests {
    use super::super::with_caller;
    use super::*;

    const MIB: usize = 1 << 20;

    fn source(share: usize, all: usize) -> SourceQuota {
        SourceQuota::alone(share, all)
    }

    #[tokio::test(start_paused = true)]
    async fn callers_leave_a_part_of_a_source_to_the_program() {
        let quota = source(32 * MIB, 64 * MIB);
        let callers = async |bytes| with_caller(7.into(), async { quota.try_reserve(bytes) }).await;
        let reserved = callers(24 * MIB).await.unwrap();
        assert!(callers(MIB).await.is_err(), "they have all that they may have");
        let own = quota.try_reserve(8 * MIB).unwrap();
        assert!(quota.try_reserve(MIB).is_err());
        drop(reserved);
        assert!(callers(MIB).await.is_ok());
        drop(own);
    }

    #[tokio::test(start_paused = true)]
    async fn sources_of_a_kind_leave_bytes_to_other_kinds() {
        let limits = Limits::new();
        let (kind, all) = (limits.peers(), limits.upstreams());
        let peers = [(); 3].map(|()| SourceQuota::of_peer(&limits));
        let reserved: Vec<Reservation> =
            peers[..2].iter().map(|peer| peer.try_reserve(20 * MIB).unwrap()).collect();
        let mut unread = ReceiveQuota::new(peers[2].clone());
        tokio::select! {
            () = unread.more(MIB) => panic!("peers have all that they may have"),
            () = tokio::time::sleep(PATIENCE) => {}
        }
        assert!(peers[0].is_wanted(20 * MIB), "it has to finish its message soon");
        assert!(!peers[0].is_wanted(5 * MIB), "a message that takes its part has time");
        let chosen = SourceQuota::of_upstream(&limits);
        assert!(chosen.try_reserve(24 * MIB).is_ok(), "the longest response of another upstream");
        drop(reserved);
        unread.more(MIB).await;
        assert_eq!((kind.taken(), all.taken()), (MIB, MIB));
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_of_bytes_is_refused_and_other_requests_wait() {
        let quota = source(8 * MIB, 64 * MIB);
        let reserved = quota.try_reserve(6 * MIB).unwrap();
        let message = quota.admit(vec![0_u8; MIB], reserved).unwrap();
        assert_eq!(
            message.read_into(7 * MIB, |_| ()).await.err(),
            Some(NoWork::TooLong),
            "callers leave a part"
        );
        assert!(quota.reserve_when_free(7 * MIB).await.is_err(), "not for ever");
        let mut unread = ReceiveQuota::new(quota.clone());
        assert_eq!(unread.missing(4 * MIB), 8 * MIB);
        tokio::select! {
            () = unread.more(8 * MIB) => panic!("there is no room"),
            () = tokio::time::sleep(PATIENCE * 10) => {}
        }
        assert!(quota.was_refused_lately() && !quota.is_wanted(8 * MIB), "it waits for itself only");
        drop(message);
        unread.more(8 * MIB).await;
        assert_eq!(unread.missing(4 * MIB), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_waited_for_its_room_has_its_time() {
        let quota = source(8 * MIB, 8 * MIB);
        let other = quota.try_reserve(8 * MIB).unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(other);
        });
        let reserved = quota.reserve_when_free(4 * MIB).await.unwrap();
        for second in 0..10 {
            let taken = Duration::from_secs(second);
            assert_eq!(quota.check_pace(&reserved, taken), Ok(()), "{taken:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!(quota.beside(8 * MIB).try_reserve(8 * MIB).is_err());
        assert_eq!(quota.check_pace(&reserved, CONTENDED), Err(UpstreamError::BudgetUsedUp));
        assert!(quota.try_reserve(8 * MIB).is_err());
        let slow = UpstreamError::Timeout(CONTENDED.as_millis());
        assert_eq!(quota.check_pace(&reserved, CONTENDED), Err(slow), "it waits for itself");
    }

    #[tokio::test(start_paused = true)]
    async fn short_messages_reserve_no_bytes() {
        let quota = source(MIB, MIB);
        let _all = quota.try_reserve(MIB).unwrap();
        let short = quota.admit(vec![0_u8; SHORT], Reservation::default()).unwrap();
        assert!(short.read(<[u8]>::len).await.is_ok());
        assert!(quota.admit(vec![0_u8; SHORT + 1], Reservation::default()).is_err());
    }
}
