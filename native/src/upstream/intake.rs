//! The one way in for what sources send.
//!
//! A transport hands over bytes as an [`Incoming`], which only an [`Intake`] makes: the budget of upstream responses has
//! room for the bytes and for their decoded form, and one source takes only a part of the budget. The bytes can only be
//! read by [`Incoming::read`], which does long work apart from the threads that serve connections. Work on what was read
//! takes its room by [`Intake::work`].

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use super::{UpstreamError, UpstreamResult};
use crate::budget::{self, Budget, Held};
use crate::priority;

/// Longest message that is read on a thread that serves connections, in bytes; reading it takes well below a
/// millisecond.
pub(crate) const SHORT: usize = 16 * 1024;

/// Copies of a message in memory while it is decoded: the bytes and their parts.
pub(crate) const COPIES: usize = 2;

/// Longest wait for room in the budget.
const PATIENCE: Duration = Duration::from_secs(5);

/// Messages of one source that are worked on at the same time.
const AT_WORK: usize = 2;

/// The way in of one source.
#[derive(Debug, Clone)]
pub(crate) struct Intake(Arc<Source>);

#[derive(Debug)]
struct Source {
    share: Budget,
    turns: Arc<Semaphore>,
}

/// There is no room in the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl From<NoRoom> for UpstreamError {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

impl Default for Intake {
    fn default() -> Self {
        Self(Arc::new(Source { share: budget::of_one_source(), turns: Arc::new(Semaphore::new(AT_WORK)) }))
    }
}

impl Intake {
    /// The bytes that this source may take at most.
    pub(crate) fn most(&self) -> usize {
        self.0.share.all()
    }

    /// Waits for room, in this source's share first, so that a source does not hold what others wait for.
    pub(crate) async fn room(&self, bytes: usize) -> Result<Held, NoRoom> {
        let taking = async {
            let own = self.0.share.take(bytes).await;
            budget::upstreams().take(bytes).await.of_share(own)
        };
        tokio::time::timeout(PATIENCE, taking).await.map_err(|_| NoRoom)
    }

    /// Takes room if there is some now.
    pub(crate) fn room_now(&self, bytes: usize) -> Result<Held, NoRoom> {
        let own = self.0.share.take_or_refuse(bytes).ok_or(NoRoom)?;
        Ok(budget::upstreams().take_or_refuse(bytes).ok_or(NoRoom)?.of_share(own))
    }

    /// Lets bytes in. `held` is what was taken for them while they came; what is missing is taken now, or refused.
    pub(crate) fn admit<B: AsRef<[u8]>>(&self, bytes: B, mut held: Held) -> Result<Incoming<B>, NoRoom> {
        let wanted = bytes.as_ref().len().saturating_mul(COPIES);
        held.shrink_to(wanted);
        let missing = wanted.saturating_sub(held.bytes());
        if missing > 0 {
            held.merge(self.room_now(missing)?);
        }
        Ok(Incoming { message: Arc::new((bytes, held)), intake: self.clone() })
    }

    /// Looks at bytes for which no room was taken yet, such as to learn which request they answer. Returns them too.
    pub(crate) async fn glance<B: AsRef<[u8]> + Send + 'static, T: Send + 'static>(
        &self,
        bytes: B,
        look: impl FnOnce(&B) -> T + Send + 'static,
    ) -> Result<(T, B), NoRoom> {
        self.apart(bytes.as_ref().len(), move || (look(&bytes), bytes)).await
    }

    /// Works on something that takes this many bytes: waits for room for them, and for a turn of this source if the work
    /// is long. Returns the outcome and the room. Fails too if the source may never take so many bytes.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Held), NoRoom> {
        if bytes > self.0.share.all() {
            return Err(NoRoom);
        }
        let held = if bytes > SHORT { self.room(bytes).await? } else { Held::default() };
        // The work holds its room also if nobody waits for it any more.
        self.apart(bytes, move || (work(), held)).await
    }

    async fn apart<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NoRoom> {
        if bytes <= SHORT {
            return Ok(work());
        }
        let turn = self.0.turns.clone().acquire_owned().await.map_err(|_| NoRoom)?;
        let working = priority::spawn_lowered(None, move || {
            priority::cannot_pause();
            let outcome = work();
            drop(turn);
            outcome
        });
        working.await.map_err(|_| NoRoom)
    }
}

/// Takes room for results that a source made without any. There are errors in their place if there is none.
pub(super) async fn hold(results: Vec<UpstreamResult>) -> (Vec<UpstreamResult>, Held) {
    let length = |result: &UpstreamResult| result.as_ref().map_or(0, |text| text.get().len());
    let bytes = results.iter().map(length).fold(0, usize::saturating_add);
    if bytes <= SHORT {
        return (results, Held::default());
    }
    match budget::upstreams().take_within(bytes, PATIENCE).await {
        Some(held) => (results, held),
        None => (results.iter().map(|_| Err(UpstreamError::NoRoom)).collect(), Held::default()),
    }
}

/// Bytes of a source that were let in. The room is given back with the last copy of the value.
#[derive(Debug)]
pub(crate) struct Incoming<B = Vec<u8>> {
    message: Arc<(B, Held)>,
    intake: Intake,
}

impl<B> Clone for Incoming<B> {
    fn clone(&self) -> Self {
        Self { message: self.message.clone(), intake: self.intake.clone() }
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Incoming<B> {
    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.message.0.as_ref().len()
    }

    /// Reads the bytes; long ones apart from the threads that serve connections.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<T, NoRoom> {
        let message = self.message.clone();
        self.intake.apart(self.len(), move || work(message.0.as_ref())).await
    }

    /// As [`Self::read`], with this much more room for what the bytes become.
    pub(crate) async fn read_into<T: Send + 'static>(
        &self,
        room: usize,
        work: impl FnOnce(&[u8]) -> T + Send + 'static,
    ) -> Result<(T, Held), NoRoom> {
        let message = self.message.clone();
        self.intake.work(room.max(self.len()), move || work(message.0.as_ref())).await
    }

    /// Gives the room back. For bytes that are kept within a limit of their own, and of which there is one copy.
    pub(crate) fn give_back(&mut self) {
        if let Some((_, held)) = Arc::get_mut(&mut self.message) {
            *held = Held::default();
        }
    }

    /// The room of the bytes, which the caller keeps as long as what was read from them.
    pub(crate) fn into_held(self) -> Held {
        Arc::into_inner(self.message).map(|(_, held)| held).unwrap_or_default()
    }
}

/// The room of bytes that a connection has received and that are no whole message yet.
pub(crate) struct Unread {
    intake: Intake,
    held: Held,
    wait: Option<BoxFuture<'static, Result<Held, NoRoom>>>,
}

impl Unread {
    pub(crate) fn new(intake: Intake) -> Self {
        Self { intake, held: Held::default(), wait: None }
    }

    /// The bytes of room that are missing before more is received, if `unread` bytes wait. Gives back what is too much.
    pub(crate) fn missing(&mut self, unread: usize) -> usize {
        let wanted = if unread > SHORT { unread.saturating_mul(COPIES) } else { 0 };
        // A little too much is kept, because more bytes follow.
        if self.held.bytes() > wanted.saturating_mul(2) {
            self.held.shrink_to(wanted);
        }
        wanted.saturating_sub(self.held.bytes())
    }

    /// Waits for more room. The wait goes on where it was if the caller comes back.
    pub(crate) async fn more(&mut self, missing: usize) -> Result<(), NoRoom> {
        let intake = self.intake.clone();
        let wait = self.wait.get_or_insert_with(|| Box::pin(async move { intake.room(missing).await }));
        let room = wait.await;
        self.wait = None;
        self.held.merge(room?);
        Ok(())
    }

    /// Lets a whole message in, with the room that was taken for it.
    pub(crate) fn admit(&mut self, bytes: Vec<u8>) -> Result<Incoming, NoRoom> {
        let held = self.held.split(bytes.len().saturating_mul(COPIES));
        self.intake.admit(bytes, held)
    }
}
