//! A message and its answer: what sessions of light clients and of local chains have in common.

use alloc::{string::String, vec::Vec};

use alloy_primitives::B256;

use super::{
    envelope::{write_answer, Call, Entry, Id, Message, Outcome, MAX_BATCH},
    error::RpcError,
    session::{Reply, MAX_RESPONSE},
};

/// The members of a message, each with its call or its outcome.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) members: Vec<Member>,
    kind: Kind,
}

/// One member of a message.
#[derive(Debug)]
pub(super) struct Member {
    id: Id,
    pub(super) state: State,
    /// Blocks for whose state a witness was asked for, or what calls like this one read.
    pub(super) helped: Vec<B256>,
    /// Whether its answer is one that nobody proves, which the host allows: it is marked.
    pub(super) unproven: bool,
    /// Whether what earlier calls read was asked for: once, since a guess that fails is not made again.
    pub(super) guessed: bool,
}

/// How far a member is.
#[derive(Debug)]
pub(super) enum State {
    Pending(Call),
    /// Several upstreams are asked, and what they say is counted.
    Polled,
    Finished(Outcome),
}

#[derive(Debug)]
enum Kind {
    Single,
    Batch,
    /// Answered without running anything.
    Fixed(Reply),
}

impl Exchange {
    /// Reads a message.
    pub(super) fn new(message: &[u8]) -> Self {
        let (members, kind) = match Message::parse(message, MAX_BATCH) {
            Ok(Message::Single(entry)) => (alloc::vec![Member::new(entry)], Kind::Single),
            Ok(Message::Batch(entries)) => (entries.into_iter().map(Member::new).collect(), Kind::Batch),
            Ok(Message::EmptyBatch) => {
                (Vec::new(), Kind::Fixed(Reply { body: "[]".into(), unusable: false }))
            }
            Err(error) => (Vec::new(), Kind::Fixed(Reply { body: error.to_answer(), unusable: true })),
        };
        Self { members, kind }
    }

    /// The calls that are still to be run.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.members.iter().filter_map(|member| match &member.state {
            State::Pending(call) => Some(call),
            State::Polled | State::Finished(_) => None,
        })
    }

    /// The answer, or `None` when nothing is to be sent. Unfinished members are left out.
    pub(super) fn reply(&self) -> Option<Reply> {
        let answers = self.members.iter().filter_map(|member| match &member.state {
            State::Finished(outcome) => {
                let written = write_answer(&member.id, &limited(outcome))?;
                Some(if member.unproven { marked(written) } else { written })
            }
            State::Pending(_) | State::Polled => None,
        });
        let mut answers: Vec<String> = answers.collect();
        let body = match &self.kind {
            Kind::Fixed(reply) => return Some(reply.clone()),
            Kind::Single => answers.pop()?,
            Kind::Batch if answers.is_empty() => return None,
            Kind::Batch => alloc::format!("[{}]", answers.join(",")),
        };
        Some(Reply { body, unusable: false })
    }
}

/// Says beside the result that nothing proves it.
fn marked(mut answer: String) -> String {
    answer.pop();
    answer.push_str(r#","level":"unproven"}"#);
    answer
}

impl Member {
    fn new(entry: Entry) -> Self {
        let state = match entry.call {
            Ok(call) => State::Pending(call),
            Err(error) => State::Finished(Err(error)),
        };
        Self { id: entry.id, state, helped: Vec::new(), unproven: false, guessed: false }
    }
}

fn limited(outcome: &Outcome) -> Outcome {
    match outcome {
        Ok(value) if value.get().len() > MAX_RESPONSE => Err(RpcError::ResponseSize(MAX_RESPONSE)),
        other => other.clone(),
    }
}
