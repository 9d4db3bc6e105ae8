//! Our questions (PING and FIND_NODE) that wait for an answer.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;

use super::message_id::MessageId;
use super::packet::Packet;
use crate::rlpx::NodeId;

/// Milliseconds after which a question counts as not answered, as in the reference implementation.
pub(super) const ANSWER_MS: u64 = 15_000;
/// Most datagrams that are read as answers to one question without a limit by address. One suffices, unless an eavesdropper who has
/// seen the question sends answers too.
const MAX_ANSWERS: u8 = 4;
/// Most own questions, and most challenges, that wait at a time.
const PER_KIND: usize = 64;

/// A question, and why it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiscoveryQuery {
    /// A PING that we send on our own; the answering node must have this id, if one is given.
    Ping(Option<NodeId>),
    /// A PING to a node that has sent one, to check that the node receives at its address.
    Challenge(NodeId),
    /// A FIND_NODE to this node.
    FindNode(NodeId),
}

impl DiscoveryQuery {
    /// Own questions and challenges are counted apart, so that strangers cannot use up the limit of own ones.
    const fn is_challenge(self) -> bool {
        matches!(self, Self::Challenge(_))
    }

    /// The node that must answer; `None` if any node may.
    pub(super) const fn node(self) -> Option<NodeId> {
        match self {
            Self::Ping(id) => id,
            Self::Challenge(id) | Self::FindNode(id) => Some(id),
        }
    }

    /// Whether the question is a PING; otherwise it is a FIND_NODE.
    pub(super) const fn is_ping(self) -> bool {
        !matches!(self, Self::FindNode(_))
    }
}

/// A question that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenDiscoveryQuery {
    pub(super) question: DiscoveryQuery,
    pub(super) address: SocketAddr,
    sent_ms: u64,
    /// Datagrams that were read as answers.
    answers: u8,
}

/// The questions that wait, by their ids.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenQueries {
    asked: BTreeMap<MessageId, OpenDiscoveryQuery>,
}

impl OpenQueries {
    /// Whether this question may be asked: fewer than [`PER_KIND`] of its kind wait, and none of its type at the address.
    pub(super) fn admits(&self, question: DiscoveryQuery, address: SocketAddr) -> bool {
        let challenge = question.is_challenge();
        let same = |asked: &OpenDiscoveryQuery| asked.question.is_challenge() == challenge;
        let count = self.asked.values().filter(|asked| same(asked)).count();
        // A challenge follows a datagram whose address may be forged, so it does not prevent an own question to that address.
        let waits = |asked: &OpenDiscoveryQuery| {
            same(asked) && asked.address == address && asked.question.is_ping() == question.is_ping()
        };
        count < PER_KIND && !self.asked.values().any(waits)
    }

    /// Adds a question that was sent now.
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

    /// Whether a packet from this address has the type and id of an answer to a question, and is one of the first [`MAX_ANSWERS`].
    pub(super) fn is_answer(&mut self, packet: &Packet, address: SocketAddr, now_ms: u64) -> bool {
        let (is_pong, id) = match packet {
            Packet::Pong { message_id, .. } => (true, message_id),
            Packet::Neighbors { message_id, .. } => (false, message_id),
            // PING and FIND_NODE are questions.
            _ => return false,
        };
        let alive = self.get(id, address, now_ms).is_some_and(|asked| asked.question.is_ping() == is_pong);
        let Some(asked) = self.asked.get_mut(id).filter(|asked| alive && asked.answers < MAX_ANSWERS) else {
            return false;
        };
        asked.answers = asked.answers.saturating_add(1);
        true
    }

    /// Whether a question to this address waits.
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
