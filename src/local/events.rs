//! Events of the canonical chain and of the pool, in order. Filters and subscriptions report them.

use alloc::{sync::Arc, vec::Vec};

use alloy_primitives::B256;

use super::stored_block::StoredBlock;
use crate::{consensus::VerifiedHeader, types::Asker};

/// Most events that are kept: those of 16 seconds of a chain that mines two thousand transactions a second, each in a block
/// of its own (two events: one of the transaction, one of the block). Each event takes some 200 bytes besides the block,
/// which the chain stores anyway.
pub const MAX_EVENTS: u64 = 1 << 16;

/// Most bytes of removed blocks in kept events. Such a block may have no other owner, because the chain drops side blocks
/// beyond its limits. If one reorganisation removes more, such as 2,900 empty blocks, all filters and subscriptions miss events.
const MAX_REMOVED_BYTES: usize = 16 << 20;

/// Estimated memory of a removed block besides its transactions, in bytes: the header with its proof of work, the fixed
/// parts of body and receipts, and the two events of the block (joined and left).
const REMOVED_SIZE: usize = 4_608;

/// Most events of a piece. The number bounds two costs: a piece that readers share is copied when an event is added to it (at most
/// 256 events), and a clone of [`Events`] copies a pointer to each piece (about 256 pointers, and a few of pieces that
/// [`PIECE_BYTES`] has ended early).
const PIECE_EVENTS: usize = 256;

/// A piece takes no more events once its removed blocks have this many bytes. Events are dropped a piece at a time, and a piece
/// has at most a quarter of [`MAX_REMOVED_BYTES`] and one block more.
const PIECE_BYTES: usize = 4 << 20;

/// A block that joined or left the canonical chain.
#[derive(Debug, Clone)]
pub struct EventBlock {
    /// The header of the block.
    pub header: VerifiedHeader,
    /// Its transactions and receipts.
    pub block: Arc<StoredBlock>,
}

/// A change of the canonical chain or of the pool.
#[derive(Debug, Clone)]
pub enum ChainEvent {
    /// A block joined the canonical chain.
    Connected(EventBlock),
    /// A block left the canonical chain.
    Removed(EventBlock),
    /// A transaction entered the pool and can be mined.
    Pending {
        /// The transaction's hash.
        hash: B256,
        /// The asker that has sent the transaction, which decides whose filters report it; `None` if the transaction was in a
        /// block, which all askers have seen.
        asker: Option<Asker>,
    },
}

/// Consecutive events.
#[derive(Debug, Clone, Default)]
struct Piece {
    /// Number of the first of the events.
    first: u64,
    events: Vec<ChainEvent>,
    /// Bytes of the removed blocks in the events.
    removed_bytes: usize,
}

/// The last events, numbered in the order in which they happened. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub struct Events {
    /// Oldest first. The oldest events are dropped a piece at a time.
    pieces: Vec<Arc<Piece>>,
    /// Number of the next event.
    next: u64,
    /// Bytes of removed blocks in the kept events.
    removed_bytes: usize,
}

impl ChainEvent {
    /// The bytes that the event adds towards [`MAX_REMOVED_BYTES`].
    fn removed_bytes(&self) -> usize {
        match self {
            Self::Removed(event) => event.block.size().saturating_add(REMOVED_SIZE),
            Self::Connected(_) | Self::Pending { .. } => 0,
        }
    }
}

impl Piece {
    /// The events with their numbers.
    fn numbered(&self) -> impl Iterator<Item = (u64, &ChainEvent)> {
        (self.first..).zip(&self.events)
    }

    /// Whether the next event belongs to a new piece.
    fn is_full(&self) -> bool {
        self.events.len() >= PIECE_EVENTS || self.removed_bytes >= PIECE_BYTES
    }
}

impl Events {
    /// Number of the next event. Numbers never repeat, whatever the chain does.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Number of the oldest kept event, or of the next event if none is kept.
    fn first(&self) -> u64 {
        self.pieces.first().map_or(self.next, |oldest| oldest.first)
    }

    /// The events from a number on, with their numbers; `None` if some of them are no longer kept, or if the number is above
    /// that of the next event.
    pub fn since(&self, number: u64) -> Option<impl Iterator<Item = (u64, &ChainEvent)>> {
        if number < self.first() || number > self.next {
            return None;
        }
        let containing = self.pieces.partition_point(|piece| piece.first <= number).saturating_sub(1);
        let pieces = self.pieces.iter().skip(containing);
        Some(pieces.flat_map(|piece| piece.numbered()).skip_while(move |(at, _)| *at < number))
    }

    /// Adds an event, and drops the oldest pieces while the limits are exceeded.
    pub(super) fn push(&mut self, event: ChainEvent) {
        if self.pieces.last().is_none_or(|last| last.is_full()) {
            self.pieces.push(Arc::new(Piece { first: self.next, ..Piece::default() }));
        }
        let bytes = event.removed_bytes();
        if let Some(last) = self.pieces.last_mut() {
            let last = Arc::make_mut(last);
            last.removed_bytes = last.removed_bytes.saturating_add(bytes);
            last.events.push(event);
        }
        self.removed_bytes = self.removed_bytes.saturating_add(bytes);
        self.next = self.next.saturating_add(1);
        while self.next.saturating_sub(self.first()) > MAX_EVENTS || self.removed_bytes > MAX_REMOVED_BYTES {
            let Some(oldest) = self.pieces.first() else { return };
            self.removed_bytes = self.removed_bytes.saturating_sub(oldest.removed_bytes);
            self.pieces.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> B256 {
        B256::left_padding_from(&number.to_be_bytes())
    }

    #[test]
    fn the_last_events_are_kept_in_order_and_a_gap_is_known() {
        let mut events = Events::default();
        assert_eq!(events.since(0).unwrap().count(), 0);
        assert!(events.since(1).is_none(), "a number that no event has had");
        for number in 0..MAX_EVENTS {
            events.push(ChainEvent::Pending { hash: hash(number), asker: None });
        }
        assert!(events.since(0).is_some() && events.since(MAX_EVENTS).is_some());
        assert!(events.since(MAX_EVENTS + 1).is_none());
        let before = events.clone();
        events.push(ChainEvent::Pending { hash: hash(MAX_EVENTS), asker: None });
        let oldest = PIECE_EVENTS as u64;
        assert!(events.since(oldest - 1).is_none(), "the oldest piece is dropped");
        for start in [oldest, oldest + 1, 1_000, 2 * oldest - 1, MAX_EVENTS, MAX_EVENTS + 1] {
            let since: Vec<_> = events.since(start).unwrap().collect();
            assert_eq!(since.len() as u64, MAX_EVENTS + 1 - start);
            for ((number, event), expected) in since.into_iter().zip(start..) {
                assert!(matches!(event, ChainEvent::Pending { hash: found, .. } if *found == hash(expected)));
                assert_eq!(number, expected);
            }
        }
        assert_eq!((before.next(), before.since(0).unwrap().count() as u64), (MAX_EVENTS, MAX_EVENTS));
    }
}
