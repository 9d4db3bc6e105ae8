//! The limits that all parts of one server share: budgets of memory, and threads for long work. Where a constant has two sizes,
//! the first is the budget of all callers and the second the part of it that one caller can take, both in bytes.

use std::sync::Arc;
use std::time::Duration;

use crate::budget::{Budget, Reservation, SMALL_ANSWER, SharedBudget};
use crate::priority::LongWork;
use crate::quota_owner::QuotaOwner;

const MIB: usize = 1 << 20;

/// Request bodies and WebSocket messages that are being read or answered. Six of the longest (5 MiB) fit at the same
/// time; parsing one takes about as much memory again. One caller gets half.
const REQUESTS: [usize; 2] = [32 * MIB, 16 * MIB];

/// Answers that are being computed or that clients have not received yet. Four of the longest (10 MiB) fit at the
/// same time; computing one takes about as much memory again. The bytes that one caller cannot take are enough for the longest
/// answer, so that a run of another caller does not wait for unread answers of the first one.
const ANSWERS: [usize; 2] = [48 * MIB, 36 * MIB];

/// Responses of upstreams from their first byte until they are verified. The longest (16 MiB, a message of a peer) fits twice,
/// because parsing it takes as much memory again, together with many of usual length.
const UPSTREAMS: usize = 64 * MIB;

/// Bytes of the budget of upstream responses that one source can take. The longest response of a source (16 MiB) fits
/// twice, and the rest is enough for the longest response of another source.
pub const OF_ONE_SOURCE: usize = 36 * MIB;

/// Bytes of the budget of upstream responses that all peers can take together: every machine can be a peer. The rest is enough
/// for the longest response of an upstream that the user has chosen.
const PEERS: usize = 40 * MIB;

/// Bytes of the budget of upstream responses that callers can take. The rest is enough for what the program itself needs, such
/// as headers.
const CALLERS: usize = 48 * MIB;

/// Messages of served peers, the nodes that read the chain from this one: requests, and transactions that are passed on. Three
/// of the longest messages (2 MiB) fit at the same time, each with as many bytes again for what is parsed from it.
const SERVED_PEERS: usize = 12 * MIB;

/// Facts (proven blocks and state) that messages of light clients keep while they wait for responses of upstreams. One
/// message keeps at most 48 MiB (`rootlight::rpc::MAX_FACT_BYTES`), and all messages of one caller together as much.
const FACTS: [usize; 2] = [64 * MIB, 48 * MIB];

/// Recordings that are read as upstreams: the contents of compressed files, and the index of every file. An uncompressed file
/// is read from disk for each request, so that only its index counts. A server without recordings takes none of these bytes.
const RECORDINGS: usize = 192 * MIB;

/// The limits of one server, or of another program that reads the chain. A server hands them to its connections, its
/// service, its upstreams and its peers; another server has its own.
#[derive(Debug)]
pub struct Limits {
    requests: SharedBudget,
    answers: SharedBudget,
    upstreams: Arc<Budget>,
    peers: Arc<Budget>,
    callers: Arc<Budget>,
    served_peers: Arc<Budget>,
    facts: SharedBudget,
    recordings: Budget,
    work: Arc<LongWork>,
}

impl Limits {
    /// The limits of a new server.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let shared = |[all, each]: [usize; 2]| SharedBudget::new(all, each);
        let budget = |bytes| Arc::new(Budget::new(bytes));
        Arc::new(Self {
            requests: shared(REQUESTS),
            answers: shared(ANSWERS),
            upstreams: budget(UPSTREAMS),
            peers: budget(PEERS),
            callers: budget(CALLERS),
            served_peers: budget(SERVED_PEERS),
            facts: shared(FACTS),
            recordings: Budget::new(RECORDINGS),
            work: Arc::default(),
        })
    }

    /// The budget of requests.
    #[must_use]
    pub const fn requests(&self) -> &SharedBudget {
        &self.requests
    }

    /// The budget of answers to clients.
    #[must_use]
    pub const fn answers(&self) -> &Budget {
        self.answers.all()
    }

    /// The budget of upstream responses.
    #[must_use]
    pub const fn upstreams(&self) -> &Arc<Budget> {
        &self.upstreams
    }

    /// The limit of all peers together within the budget of upstream responses.
    #[must_use]
    pub const fn peers(&self) -> &Arc<Budget> {
        &self.peers
    }

    /// The limit of all callers together within the budget of upstream responses.
    #[must_use]
    pub const fn callers(&self) -> &Arc<Budget> {
        &self.callers
    }

    /// The budget of messages from served peers.
    #[must_use]
    pub const fn served_peers(&self) -> &Arc<Budget> {
        &self.served_peers
    }

    /// The budget of facts that messages of light clients keep.
    #[must_use]
    pub const fn facts(&self) -> &SharedBudget {
        &self.facts
    }

    /// The budget of recordings.
    #[must_use]
    pub const fn recordings(&self) -> &Budget {
        &self.recordings
    }

    /// The threads that do long work.
    #[must_use]
    pub const fn work(&self) -> &Arc<LongWork> {
        &self.work
    }

    /// Takes bytes of the budget for a finished answer to an owner, unless the answer is at most [`SMALL_ANSWER`] bytes long:
    /// the server counts such an answer when it sends it, if the connection has other unsent answers. Returns `None` if
    /// answers that clients have not received yet use up the budget.
    pub async fn reserve_answer(&self, owner: QuotaOwner, bytes: usize) -> Option<Reservation> {
        if bytes <= SMALL_ANSWER {
            return Some(Reservation::default());
        }
        self.reserve_bytes(owner, bytes).await
    }

    /// As [`Self::reserve_answer`], for an answer of any size.
    pub async fn reserve_bytes(&self, owner: QuotaOwner, bytes: usize) -> Option<Reservation> {
        self.answers.take_soon(owner, bytes).await
    }

    /// Waits for bytes of the budget of answers before a run of an owner begins, as many as its answer may have; returns
    /// `None` after `limit`.
    pub async fn reserve_run(&self, owner: QuotaOwner, bytes: usize, limit: Duration) -> Option<Reservation> {
        self.answers.take_within(owner, bytes, limit).await
    }

    /// Whether a request waits for bytes of the answer budget, or of a part of it that this owner can take. The server then
    /// closes connections of the owner that do not read their answers.
    #[must_use]
    pub fn answers_contended(&self, owner: QuotaOwner) -> bool {
        self.answers.is_contended(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unread answers of one caller leave enough bytes for the longest answer to another caller, and those of its pages enough for
    /// the longest answer to its programs.
    #[tokio::test(start_paused = true)]
    async fn runs_of_one_caller_leave_room_for_a_run_of_another() {
        let (limits, limit, moment) = (Limits::new(), Duration::from_secs(5), Duration::from_millis(20));
        let (greedy, other) = (QuotaOwner::from(1), QuotaOwner::from(2));
        let pages = QuotaOwner { is_page: true, ..greedy };
        let unread = limits.reserve_run(pages, 10 * MIB, limit).await.unwrap();
        assert!(limits.reserve_run(pages, 10 * MIB, moment).await.is_none());
        assert!(limits.reserve_run(greedy, 20 * MIB, moment).await.is_some());
        drop(unread);
        let mut reserved = limits.reserve_run(greedy, 30 * MIB, limit).await.unwrap();
        assert!(limits.reserve_run(greedy, 10 * MIB, moment).await.is_none());
        assert!(limits.reserve_run(other, 10 * MIB, limit).await.is_some());
        let waiting = limits.reserve_run(greedy, 10 * MIB, limit);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(moment, waiting.as_mut()).await.is_err());
        assert!(
            limits.answers_contended(greedy) && !limits.answers_contended(other),
            "clients of other addresses have time"
        );
        reserved.shrink_to(20 * MIB);
        assert_eq!(waiting.await.unwrap().bytes(), 10 * MIB);
    }

    /// A caller whose messages wait for upstreams leaves bytes of the budget for the facts of others.
    #[tokio::test(start_paused = true)]
    async fn facts_of_one_caller_leave_bytes_to_another_caller() {
        let (limits, greedy, other) = (Limits::new(), QuotaOwner::from(1), QuotaOwner::from(2));
        let mut reserved = limits.facts().take_soon(greedy, 40 * MIB).await.unwrap();
        reserved.merge(limits.facts().take_soon(greedy, 8 * MIB).await.unwrap());
        assert!(limits.facts().take_soon(greedy, MIB).await.is_none());
        assert!(limits.facts().take_soon(other, 16 * MIB).await.is_some());
        drop(reserved);
        assert!(limits.facts().take_soon(greedy, 48 * MIB).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_takes_no_bytes_of_another_servers_budgets() {
        let (one, other, limit) = (Limits::new(), Limits::new(), Duration::from_secs(1));
        let _spent = one.answers().try_take(one.answers().size()).unwrap();
        assert!(one.reserve_run(QuotaOwner::from(1), MIB, limit).await.is_none());
        assert!(other.reserve_run(QuotaOwner::from(1), MIB, limit).await.is_some());
        assert_eq!(other.answers().taken(), 0);
    }
}
