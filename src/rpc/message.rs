//! One message of a caller, read once, with the row of the method table for each call: every part of a host that asks what a
//! message is about looks at what is read here.

use alloc::{boxed::Box, string::String, vec, vec::Vec};
#[cfg(any(test, feature = "testkit"))]
use core::sync::atomic::{AtomicUsize, Ordering};

use serde_json::value::{RawValue, to_raw_value};

use super::{
    envelope::{Call, Id, MessageEntry, MessageForm, parse},
    error::RpcError,
    method::{BRIEF_COST, Method},
    table,
};

#[cfg(any(test, feature = "testkit"))]
static READS: AtomicUsize = AtomicUsize::new(0);

/// The method table with look-up by name.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    /// Sorted by name; aliases point to the same row.
    index: Vec<(&'static str, &'static Method)>,
}

impl Default for Dispatcher {
    fn default() -> Self {
        Self::new(table::methods())
    }
}

impl Dispatcher {
    /// A dispatcher of these rows. A row takes the place of an earlier one of the same name.
    pub fn new(rows: impl IntoIterator<Item = &'static Method>) -> Self {
        let mut index: Vec<(&'static str, &'static Method)> = Vec::new();
        for method in rows {
            for name in core::iter::once(method.name).chain(method.aliases.iter().copied()) {
                let position = index.partition_point(|(before, _)| *before < name);
                match index.get_mut(position) {
                    Some((known, row)) if *known == name => *row = method,
                    _ => index.insert(position, (name, method)),
                }
            }
        }
        Self { index }
    }

    /// The row of this name or alias.
    pub fn find(&self, name: &str) -> Option<&'static Method> {
        let position = self.index.binary_search_by_key(&name, |(known, _)| known).ok()?;
        self.index.get(position).map(|(_, method)| *method)
    }
}

/// A message whose calls name their rows of the method table.
#[derive(Debug, Clone)]
pub struct Message {
    pub(super) kind: MessageForm,
    pub(super) entries: Vec<MessageEntry>,
    bytes: usize,
}

impl Message {
    /// Reads one HTTP body or WebSocket message. A batch has at most `max_batch` calls.
    pub fn read(bytes: &[u8], dispatcher: &Dispatcher, max_batch: usize) -> Self {
        #[cfg(any(test, feature = "testkit"))]
        READS.fetch_add(1, Ordering::SeqCst);
        let read = parse(bytes, max_batch);
        let (kind, entries) = read.unwrap_or_else(|error| (MessageForm::Unusable(error), Vec::new()));
        let mut message = Self { kind, entries, bytes: bytes.len() };
        for call in message.entries.iter_mut().filter_map(|entry| entry.call.as_mut().ok()) {
            call.row = dispatcher.find(&call.method);
        }
        message
    }

    /// How many messages this process has read, so that tests see that each is read once.
    #[cfg(any(test, feature = "testkit"))]
    #[doc(hidden)]
    pub fn reads() -> usize {
        READS.load(Ordering::SeqCst)
    }

    /// A message of the host itself: one call of a method with these parameters.
    pub fn of_host(method: &str, params: Vec<Box<RawValue>>, dispatcher: &Dispatcher) -> Self {
        let call = Call { method: method.into(), row: dispatcher.find(method), params };
        Self {
            kind: MessageForm::Single,
            entries: vec![MessageEntry { id: Id::Unknown, call: Ok(call) }],
            bytes: 0,
        }
    }

    /// The requests, in the order received.
    pub fn entries(&self) -> &[MessageEntry] {
        &self.entries
    }

    /// The calls of the requests that have one.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.entries.iter().filter_map(|entry| entry.call.as_ref().ok())
    }

    /// The only request; `None` for a batch.
    pub fn single(&self) -> Option<&MessageEntry> {
        self.entries.first().filter(|_| matches!(self.kind, MessageForm::Single))
    }

    /// Whether the message is a list of requests.
    pub fn is_batch(&self) -> bool {
        matches!(self.kind, MessageForm::Batch)
    }

    /// The id of the only request; [`Id::Unknown`] for a batch, and for a message that cannot be read.
    pub fn single_id(&self) -> Id {
        self.single().map_or(Id::Unknown, |entry| entry.id.clone())
    }

    /// Whether answering the message takes no longer than a few look-ups, as [`MessageProgress::is_brief`](super::MessageProgress::is_brief)
    /// says of the requests that are left of it.
    pub fn is_brief(&self) -> bool {
        let cost = |call: &Call| call.row.map_or(0, |row| row.cost_of(call.params.len()));
        self.calls().map(cost).fold(0, u32::saturating_add) <= BRIEF_COST
    }

    /// The length of the text that was read, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

pub(super) fn text_param(text: &str) -> Result<Box<RawValue>, RpcError> {
    Ok(to_raw_value(text)?)
}

/// The number of a filter or subscription as callers write it.
pub(super) fn id_text(id: u128) -> String {
    alloc::format!("{id:#x}")
}
