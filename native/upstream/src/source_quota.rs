//! The quota of a source: all bytes that sources send come in through it.
//!
//! A transport hands over bytes as a `ReceivedBytes`, which only a `SourceQuota` makes: the budget of upstream responses has
//! room for the bytes and for their decoded form, and one source takes only a part of the budget. The bytes can only be
//! read by `ReceivedBytes::read`, which does long work apart from the threads that serve connections. Work on what was read
//! takes its room by `SourceQuota::work`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rootlight_limits::budget::{self, Budget, Reservation, SubBudget};
use rootlight_limits::priority::LongWork;
use rootlight_limits::{Limits, OF_ONE_SOURCE};
use tokio::sync::Semaphore;
use tokio::time::Sleep;

use super::{UpstreamError, UpstreamResult, asker};

/// Longest message that is read on a thread that serves connections, in bytes; reading it takes well below a
/// millisecond.
pub(crate) const SHORT: usize = 16 * 1024;

/// Copies of a message in memory while it is decoded: the bytes and their parts.
const COPIES: usize = 2;

/// The room of a message of so many bytes. Short ones take none: their number is limited elsewhere.
pub(crate) const fn room_of(bytes: usize) -> usize {
    if bytes > SHORT { bytes.saturating_mul(COPIES) } else { 0 }
}

/// Longest wait for the first room of a response.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Longest time for which a long response comes in while others want the room that it holds. What it was refused itself does
/// not count any more then.
pub(crate) const CONTENDED: Duration = budget::REFUSAL;

/// Pause between two looks for room.
const PAUSE: Duration = Duration::from_millis(25);

/// Room of one message that a peer need not finish quickly while others want room, in bytes: a block and its decoded form.
/// Eight peers fit.
const FAIR: usize = 5 * 1024 * 1024;

/// Messages of one source that are worked on at the same time.
const AT_WORK: usize = 2;

/// Bytes of a source's share that its callers leave to the program itself, which is enough for any of its own responses.
const LEFT_BY_CALLERS: usize = 8 * 1024 * 1024;

/// The quota of one source, through which all its bytes come in.
///
/// A message that holds room does not wait for more: bytes that do not fit are refused, so that messages with room end
/// and give it back. A holder of no room may wait.
#[derive(Debug, Clone)]
pub struct SourceQuota(Arc<QuotaLimits>);

#[derive(Debug)]
struct QuotaLimits {
    callers: Budget,
    all_callers: Arc<Budget>,
    share: Budget,
    /// Room that a holder need not give back while others want some.
    fair: usize,
    kind: Option<Arc<Budget>>,
    all: Arc<Budget>,
    turns: Arc<Semaphore>,
    work: Arc<LongWork>,
}

/// There is no room in the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoWork {
    /// There is no room in the budget now.
    NoRoom,
    /// The work takes more than a source may ever take: it sent more than an honest one.
    TooLong,
}

impl From<NoRoom> for NoWork {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl From<NoRoom> for UpstreamError {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
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

    /// The quota of all served peers of one address, which can take this many bytes. They take no room from the sources.
    pub fn of_served_address(limits: &Limits, bytes: usize) -> Self {
        Self::new(limits, (bytes, 0), None, limits.served_peers())
    }

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
            turns: Arc::new(Semaphore::new(AT_WORK)),
            work: limits.work().clone(),
        }))
    }

    /// The bytes that the work for one request may take at most.
    pub(crate) fn most(&self) -> usize {
        self.0.callers.size()
    }

    /// Whether another value than this one refers to the same quota.
    pub fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether others were refused room lately of which this holder has more than its part.
    pub(crate) fn is_wanted(&self, reserved: usize) -> bool {
        let QuotaLimits { fair, kind, all, .. } = &*self.0;
        reserved > *fair && (all.is_contended() || kind.as_ref().is_some_and(|kind| kind.is_contended()))
    }

    /// Whether other responses of this source were refused room lately.
    fn was_refused_lately(&self) -> bool {
        self.0.share.is_contended() || self.0.callers.is_contended()
    }

    /// Fails a response that holds room and takes long to come in while others want room. The source is too slow only if these
    /// are its own.
    pub(crate) fn check_pace(&self, reserved: &Reservation, taken: Duration) -> Result<(), UpstreamError> {
        if reserved.bytes() == 0 || taken < CONTENDED {
            return Ok(());
        }
        if self.was_refused_lately() {
            return Err(UpstreamError::Timeout(taken.as_millis()));
        }
        if self.is_wanted(reserved.bytes()) { Err(UpstreamError::NoRoom) } else { Ok(()) }
    }

    /// Waits for room. Nothing is held meanwhile.
    async fn room(&self, is_caller: bool, bytes: usize) -> Reservation {
        loop {
            match self.room_for(is_caller, bytes) {
                Ok(reserved) => return reserved,
                Err(NoRoom) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Waits a while for the first room of a response.
    pub(crate) async fn reserve_when_free(&self, bytes: usize) -> Result<Reservation, NoRoom> {
        let room = self.room(asker().is_some(), bytes);
        tokio::time::timeout(PATIENCE, room).await.map_err(|_| NoRoom)
    }

    /// Takes room if there is some now. The work for callers leaves a part to the program itself.
    pub(crate) fn try_reserve(&self, bytes: usize) -> Result<Reservation, NoRoom> {
        self.room_for(asker().is_some(), bytes)
    }

    /// As [`Self::try_reserve`], where the work for a caller is done by a task of the program.
    fn room_for(&self, is_caller: bool, bytes: usize) -> Result<Reservation, NoRoom> {
        let QuotaLimits { callers, all_callers, share, kind, all, .. } = &*self.0;
        let take = |budget: &Budget| budget.take_or_refuse(bytes).ok_or(NoRoom);
        let optional = |budget: Option<&Budget>| budget.map_or(Ok(Reservation::default()), take);
        let callers = optional(is_caller.then_some(callers))?;
        let all_callers = optional(is_caller.then_some(&**all_callers))?;
        let (share, kind) = (take(share)?, optional(kind.as_deref())?);
        let reserved = take(all)?.also(SubBudget::Share, share).also(SubBudget::Kind, kind);
        Ok(reserved.also(SubBudget::CallersOfSource, callers).also(SubBudget::Callers, all_callers))
    }

    /// Lets bytes in that turned out to be for a caller, or for the program itself, when they had come in.
    pub(crate) fn admit_for<B: AsRef<[u8]>>(
        &self,
        is_caller: bool,
        bytes: B,
        mut reserved: Reservation,
    ) -> Result<ReceivedBytes<B>, NoRoom> {
        reserved.shrink_to(room_of(bytes.as_ref().len()));
        if is_caller {
            let take = |budget: &Budget| budget.take_or_refuse(reserved.bytes()).ok_or(NoRoom);
            let (callers, all_callers) = (take(&self.0.callers)?, take(&self.0.all_callers)?);
            reserved =
                reserved.also(SubBudget::CallersOfSource, callers).also(SubBudget::Callers, all_callers);
        }
        self.admit(bytes, reserved)
    }

    /// Lets bytes in, with the room that was taken for them and their decoded form.
    pub(crate) fn admit<B: AsRef<[u8]>>(
        &self,
        bytes: B,
        mut reserved: Reservation,
    ) -> Result<ReceivedBytes<B>, NoRoom> {
        let wanted = room_of(bytes.as_ref().len());
        reserved.shrink_to(wanted);
        let missing = wanted.saturating_sub(reserved.bytes());
        if missing > 0 {
            reserved.merge(self.try_reserve(missing)?);
        }
        Ok(ReceivedBytes { message: Arc::new((bytes, reserved)), quota: self.clone() })
    }

    /// Looks at bytes for which no room was taken yet, such as to learn which request they answer. Returns them too.
    pub(crate) async fn peek_bytes<B: AsRef<[u8]> + Send + 'static, T: Send + 'static>(
        &self,
        bytes: B,
        look: impl FnOnce(&B) -> T + Send + 'static,
    ) -> Result<(T, B), NoRoom> {
        self.on_worker(bytes.as_ref().len(), move || (look(&bytes), bytes)).await
    }

    /// Works on something that takes this many bytes: takes room for them, and waits for a turn of this source if the work
    /// is long. Returns the outcome and the room.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Reservation), NoWork> {
        if bytes > self.most() {
            return Err(NoWork::TooLong);
        }
        let reserved = if bytes > SHORT { self.try_reserve(bytes)? } else { Reservation::default() };
        // The work holds its room also after its caller has stopped waiting.
        Ok(self.on_worker(bytes, move || (work(), reserved)).await?)
    }

    async fn on_worker<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NoRoom> {
        if bytes <= SHORT {
            return Ok(work());
        }
        let turn = self.0.turns.clone().acquire_owned().await.map_err(|_| NoRoom)?;
        let working = self.0.work.spawn_lowered(None, move |pauses| {
            pauses.cannot_pause();
            let outcome = work();
            drop(turn);
            outcome
        });
        working.await.map_err(|_| NoRoom)
    }
}

pub(super) fn bytes_of(results: &[UpstreamResult]) -> usize {
    let length = |result: &UpstreamResult| result.as_ref().map_or(0, |text| text.get().len());
    results.iter().map(length).fold(0, usize::saturating_add)
}

/// Takes room for results that a source made without any. There are errors in their place if there is none.
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
        None => (results.iter().map(|_| Err(UpstreamError::NoRoom)).collect(), Reservation::default()),
    }
}

/// Bytes of a source that were let in. The room is given back with the last copy of the value.
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
    ) -> Result<T, NoRoom> {
        let message = self.message.clone();
        self.quota.on_worker(self.len(), move || work(message.0.as_ref())).await
    }

    /// As [`Self::read`], with this much more room for what the bytes become.
    pub(crate) async fn read_into<T: Send + 'static>(
        &self,
        room: usize,
        work: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<(T, Reservation), NoWork> {
        let message = self.message.clone();
        self.quota.work(room.max(self.len()), move || work(message.0.as_ref())).await
    }

    /// Gives the room back. For bytes that are kept within a limit of their own, and of which there is one copy.
    pub(crate) fn give_back(&mut self) {
        if let Some((_, reserved)) = Arc::get_mut(&mut self.message) {
            *reserved = Reservation::default();
        }
    }

    /// The room of the bytes, which the caller keeps as long as what was read from them.
    pub(crate) fn into_held(self) -> Reservation {
        Arc::into_inner(self.message).map(|(_, reserved)| reserved).unwrap_or_default()
    }
}

/// The room of bytes that a connection has received and that are no whole message yet.
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

    /// The bytes of room that are missing before more is received, if so many bytes wait or will be the next message. Gives
    /// back what is too much.
    pub(crate) fn missing(&mut self, bytes: usize) -> usize {
        let wanted = room_of(bytes);
        // A little too much is kept, because more bytes follow.
        if self.reserved.bytes() > wanted.saturating_mul(2) {
            self.reserved.shrink_to(wanted);
        }
        wanted.saturating_sub(self.reserved.bytes())
    }

    /// Takes the room that is missing if there is some now.
    pub(crate) fn try_more(&mut self, missing: usize) -> bool {
        let all = std::mem::take(&mut self.reserved).bytes().saturating_add(missing);
        self.quota.room_for(false, all).map(|reserved| self.reserved = reserved).is_ok()
    }

    /// Waits for the room that is missing, for as long as it takes. Nothing is held meanwhile.
    pub(crate) async fn more(&mut self, missing: usize) {
        let all = std::mem::take(&mut self.reserved).bytes().saturating_add(missing);
        self.reserved = self.quota.room(false, all).await;
    }

    /// As [`Self::more`], for a message of so many bytes. If a part of it has come in, nothing is waited for.
    pub(crate) fn poll_more(&mut self, context: &mut Context<'_>, bytes: usize) -> Poll<Result<(), NoRoom>> {
        let missing = self.missing(bytes);
        if missing == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            match self.quota.room_for(false, missing) {
                Ok(room) => {
                    self.reserved.merge(room);
                    return Poll::Ready(Ok(()));
                }
                Err(NoRoom) if self.reserved.bytes() > 0 => return Poll::Ready(Err(NoRoom)),
                Err(NoRoom) => {}
            }
            let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(PAUSE)));
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
    }

    /// Hands over the room of a whole message.
    pub(crate) fn take(&mut self) -> Reservation {
        std::mem::take(&mut self.reserved)
    }

    /// As [`SourceQuota::check_pace`].
    pub(crate) fn check_pace(&self, taken: Duration) -> Result<(), UpstreamError> {
        self.quota.check_pace(&self.reserved, taken)
    }

    /// Whether others want the room of a message that takes long to come in.
    pub(crate) fn is_wanted(&self) -> bool {
        self.quota.is_wanted(self.reserved.bytes())
    }

    /// Lets a whole message in, with the room that was taken for it.
    pub(crate) fn admit(&mut self, bytes: Vec<u8>) -> Result<ReceivedBytes, NoRoom> {
        let reserved = self.reserved.split(room_of(bytes.len()));
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
    async fn sources_of_a_kind_leave_room_to_others() {
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
        assert_eq!(quota.check_pace(&reserved, CONTENDED), Err(UpstreamError::NoRoom));
        assert!(quota.try_reserve(8 * MIB).is_err());
        let slow = UpstreamError::Timeout(CONTENDED.as_millis());
        assert_eq!(quota.check_pace(&reserved, CONTENDED), Err(slow), "it waits for itself");
    }

    #[tokio::test(start_paused = true)]
    async fn short_messages_take_no_room() {
        let quota = source(MIB, MIB);
        let _all = quota.try_reserve(MIB).unwrap();
        let short = quota.admit(vec![0_u8; SHORT], Reservation::default()).unwrap();
        assert!(short.read(<[u8]>::len).await.is_ok());
        assert!(quota.admit(vec![0_u8; SHORT + 1], Reservation::default()).is_err());
    }
}
