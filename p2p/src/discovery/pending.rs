//! Questions that wait for their answers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use super::message_id::MessageId;
use super::packet::Packet;
use crate::rlpx::NodeId;

/// Milliseconds until a question counts as not answered. The reference waits as long.
pub(super) const ANSWER_MS: u64 = 15_000;
/// Datagrams that are looked at as answers to one question: one answers it, unless an eavesdropper who saw the question
/// answers too.
const ANSWERS: u8 = 4;
/// Most questions of one kind that wait at a time.
const PER_KIND: usize = 64;

/// Why a question was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscoveryQuery {
    /// PING of our own will; the node there must have this id, if one is given.
    Ping(Option<NodeId>),
    /// PING to a node that sent one, to see that the address is its own.
    Challenge(NodeId),
    FindNode(NodeId),
}

impl DiscoveryQuery {
    /// Own questions and challenges are counted apart, so that strangers cannot use up all places.
    const fn is_challenge(self) -> bool {
        matches!(self, Self::Challenge(_))
    }

    /// The node that was asked, where it is known.
    pub(super) const fn node(self) -> Option<NodeId> {
        match self {
            Self::Ping(id) => id,
            Self::Challenge(id) | Self::FindNode(id) => Some(id),
        }
    }

    pub(super) const fn is_ping(self) -> bool {
        !matches!(self, Self::FindNode(_))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct OpenDiscoveryQuery {
    pub(super) question: DiscoveryQuery,
    pub(super) address: SocketAddr,
    sent_ms: u64,
    answers: u8,
}

#[derive(Debug, Clone, Default)]
pub(super) struct OpenQueries {
    asked: BTreeMap<MessageId, OpenDiscoveryQuery>,
}

impl OpenQueries {
    /// Whether there is room for this question, and none of its kind waits at the address.
    pub(super) fn has_room(&self, question: DiscoveryQuery, address: SocketAddr) -> bool {
        let challenge = question.is_challenge();
        let same = |asked: &OpenDiscoveryQuery| asked.question.is_challenge() == challenge;
        let count = self.asked.values().filter(|asked| same(asked)).count();
        // A challenge follows a datagram whose address may be forged, so it does not stand in the way of a question of ours.
        let waits = |asked: &OpenDiscoveryQuery| {
            same(asked) && asked.address == address && asked.question.is_ping() == question.is_ping()
        };
        count < PER_KIND && !self.asked.values().any(waits)
    }

    pub(super) fn insert(
        &mut self,
        id: MessageId,
        question: DiscoveryQuery,
        address: SocketAddr,
        now_ms: u64,
    ) {
        self.asked.insert(id, OpenDiscoveryQuery { question, address, sent_ms: now_ms, answers: 0 });
    }

    /// The question with this id to this address, if it can still be answered.
    pub(super) fn get(&self, id: &MessageId, address: SocketAddr, now_ms: u64) -> Option<OpenDiscoveryQuery> {
        let alive = |asked: &&OpenDiscoveryQuery| {
            asked.address == address && now_ms.saturating_sub(asked.sent_ms) < ANSWER_MS
        };
        self.asked.get(id).filter(alive).copied()
    }

    /// Whether a datagram of this type with this id answers a question to the address, and is one of the first that do.
    pub(super) fn is_answer(&mut self, packet: &Packet, address: SocketAddr, now_ms: u64) -> bool {
        let (is_pong, id) = match packet {
            Packet::Pong { message_id, .. } => (true, message_id),
            Packet::Neighbors { message_id, .. } => (false, message_id),
            _ => return false,
        };
        let alive = self.get(id, address, now_ms).is_some_and(|asked| asked.question.is_ping() == is_pong);
        let Some(asked) = self.asked.get_mut(id).filter(|asked| alive && asked.answers < ANSWERS) else {
            return false;
        };
        asked.answers = asked.answers.saturating_add(1);
        true
    }

    pub(super) fn waits_at(&self, address: SocketAddr) -> bool {
        self.asked.values().any(|asked| asked.address == address)
    }

    pub(super) fn remove(&mut self, id: &MessageId) {
        self.asked.remove(id);
    }

    /// Removes the questions that were not answered in time.
    pub(super) fn expire(&mut self, now_ms: u64) -> Vec<OpenDiscoveryQuery> {
        let late = |asked: &OpenDiscoveryQuery| now_ms.saturating_sub(asked.sent_ms) >= ANSWER_MS;
        let expired = self.asked.values().filter(|asked| late(asked)).copied().collect();
        self.asked.retain(|_, asked| !late(asked));
        expired
    }
}
