//! One JSON-RPC message of a caller, parsed once, with the row of the method table for each call. All parts of a host use the
//! parsed message, and no part parses the text again.
//!
//! Deviations of real clients are accepted (missing `jsonrpc`, `params` null or `{}`); all others are refused with the codes of
//! JSON-RPC 2.0.

use alloc::{
    borrow::{Cow, ToOwned},
    boxed::Box,
    string::String,
    vec,
    vec::Vec,
};
use core::fmt;
#[cfg(any(test, feature = "testkit"))]
use core::sync::atomic::{AtomicUsize, Ordering};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::de::{Error as _, SeqAccess};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    envelope::{Id, MAX_DEPTH, MAX_ID},
    error::{EnvelopeError, RpcError},
    method::{BRIEF_COST, Method},
    named::in_order,
    params::string,
    table,
};
use crate::types::json::{MembersError, for_each_member};

/// Most parameters of a call. No method has nearly as many; the limit bounds the memory of a message of many short ones.
const MAX_PARAMS: usize = 32;

/// Number of messages that this process has read.
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

/// The form of a message.
#[derive(Debug, Clone)]
pub(super) enum MessageForm {
    /// One request.
    Single,
    /// A list of requests. The answer to an empty list is `[]`, as in the reference node.
    Batch,
    /// The message as a whole is invalid.
    Unusable(EnvelopeError),
}

/// A member of a message: a call, or the error of a member that is not a valid call.
#[derive(Debug, Clone)]
pub struct MessageEntry {
    /// The id that the answer repeats.
    pub id: Id,
    /// The call, or the error with which the member is answered.
    pub call: Result<Call, RpcError>,
}

/// A well-formed call. Its handler checks the types and values of the parameters.
#[derive(Debug, Clone)]
pub struct Call {
    /// The method name as received.
    pub method: String,
    /// The row of the method table with this name or alias.
    pub row: Option<&'static Method>,
    /// Positional parameters, unparsed.
    pub params: Vec<Box<RawValue>>,
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
        let fast = || read_once(bytes, dispatcher, max_batch);
        let exact = || read_each(bytes, dispatcher, max_batch);
        let read = check_depth(bytes).and_then(|()| fast().map_or_else(exact, Ok));
        let (kind, entries) = read.unwrap_or_else(|error| (MessageForm::Unusable(error), Vec::new()));
        Self { kind, entries, bytes: bytes.len() }
    }

    /// How many messages this process has read. Tests check with it that each message is read once.
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

    /// The members of the message, in the order received.
    pub fn entries(&self) -> &[MessageEntry] {
        &self.entries
    }

    /// The valid calls, in the order received.
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

    /// Whether answering the message takes no longer than a few look-ups: whether its calls cost at most [`BRIEF_COST`] together.
    /// [`MessageProgress::is_brief`](super::MessageProgress::is_brief) says the same of the requests that are not answered yet.
    pub fn is_brief(&self) -> bool {
        let cost = |call: &Call| call.row.map_or(0, |row| row.cost_of(call.params.len()));
        self.calls().map(cost).fold(0, u32::saturating_add) <= BRIEF_COST
    }

    /// The length of the text that was read, in bytes; 0 for a message of the host.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The members of an array; `None` if the array has more than `max`.
fn members_at_most(max: usize, text: &str) -> Result<Option<Vec<&RawValue>>, MembersError> {
    let (mut members, mut fits) = (Vec::new(), true);
    for_each_member(text, &mut |member| {
        fits = members.len() < max;
        if fits {
            members.push(member);
        }
        fits
    })?;
    Ok(fits.then_some(members))
}

/// Reads a message member by member, in the order received.
///
/// # Errors
/// [`EnvelopeError`] when the whole payload is unusable: it is not JSON, not an object or array, or a batch of more than
/// `max_batch` calls.
fn read_each(
    bytes: &[u8],
    dispatcher: &Dispatcher,
    max_batch: usize,
) -> Result<(MessageForm, Vec<MessageEntry>), EnvelopeError> {
    let raw: &RawValue = serde_json::from_slice(bytes).map_err(|_| EnvelopeError::Parse)?;
    match raw.get().as_bytes().first() {
        Some(b'{') => Ok((MessageForm::Single, vec![MessageEntry::parse(raw, dispatcher)])),
        Some(b'[') => match members_at_most(max_batch, raw.get()).map_err(|_| EnvelopeError::Parse)? {
            Some(members) => {
                let entries = members.into_iter().map(|member| MessageEntry::parse(member, dispatcher));
                Ok((MessageForm::Batch, entries.collect()))
            }
            None => Err(EnvelopeError::BatchTooLarge { max: max_batch }),
        },
        _ => Err(EnvelopeError::NotARequest),
    }
}

/// Reads a message in one pass. Returns `None` for a message with any fault: [`read_each`] finds which member has the fault, and
/// with which error.
fn read_once(bytes: &[u8], dispatcher: &Dispatcher, max: usize) -> Option<(MessageForm, Vec<MessageEntry>)> {
    let text = core::str::from_utf8(bytes).ok()?;
    match bytes.trim_ascii_start().first()? {
        b'{' => {
            Some((MessageForm::Single, vec![MessageEntry::of(&serde_json::from_str(text).ok()?, dispatcher)]))
        }
        b'[' => {
            let mut reader = serde_json::Deserializer::from_str(text);
            let entries = reader.deserialize_seq(BatchVisitor { dispatcher, max }).ok()?;
            reader.end().ok()?;
            Some((MessageForm::Batch, entries))
        }
        _ => None,
    }
}

/// Reads the calls of a batch without faults.
struct BatchVisitor<'a> {
    dispatcher: &'a Dispatcher,
    max: usize,
}

impl<'de> Visitor<'de> for BatchVisitor<'_> {
    type Value = Vec<MessageEntry>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of calls")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(fields) = members.next_element::<RequestFields<'de>>()? {
            if entries.len() >= self.max {
                return Err(A::Error::custom("too many calls"));
            }
            entries.push(MessageEntry::of(&fields, self.dispatcher));
        }
        Ok(entries)
    }
}

impl MessageEntry {
    /// Reads a member of a message.
    fn parse(raw: &RawValue, dispatcher: &Dispatcher) -> Self {
        let Ok(fields) = serde_json::from_str::<RequestFields<'_>>(raw.get()) else {
            return Self::invalid();
        };
        Self::of(&fields, dispatcher)
    }

    /// The entry of a request object with these members.
    fn of(fields: &RequestFields<'_>, dispatcher: &Dispatcher) -> Self {
        match (fields.id(), fields.call(dispatcher)) {
            (Ok(Id::TooLong), _) => Self { id: Id::TooLong, call: Err(RpcError::IdTooLong) },
            // A valid request without `id` is a notification and gets no answer. An invalid object without `id` gets one.
            (Ok(Id::Absent), Err(RpcError::InvalidRequest)) => Self::invalid(),
            (Ok(id), call) => Self { id, call },
            (Err(_), _) => Self::invalid(),
        }
    }

    /// A value that is no request, so that its `id` is not known (JSON-RPC 2.0, section 5).
    const fn invalid() -> Self {
        Self { id: Id::Unknown, call: Err(RpcError::InvalidRequest) }
    }
}

/// The known members of a request object. Of a repeated key the last value counts.
#[derive(Default)]
struct RequestFields<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
}

impl RequestFields<'_> {
    fn id(&self) -> Result<Id, RpcError> {
        match self.id {
            None => Ok(Id::Absent),
            Some(raw) => match raw.get().as_bytes().first() {
                // A string, a number or `null`.
                Some(b'"' | b'-' | b'0'..=b'9' | b'n') => match raw.get().len() <= MAX_ID {
                    true => Ok(Id::Given(raw.to_owned())),
                    false => Ok(Id::TooLong),
                },
                _ => Err(RpcError::InvalidRequest),
            },
        }
    }

    fn call(&self, dispatcher: &Dispatcher) -> Result<Call, RpcError> {
        if self.jsonrpc.is_some_and(|v| v.get() != "\"2.0\"") {
            return Err(RpcError::InvalidRequest);
        }
        let method = self.method.and_then(string).ok_or(RpcError::InvalidRequest)?.into_owned();
        let row = dispatcher.find(&method);
        Ok(Call { method, row, params: self.params(row)? })
    }

    fn params(&self, row: Option<&Method>) -> Result<Vec<Box<RawValue>>, RpcError> {
        let Some(raw) = self.params else { return Ok(Vec::new()) };
        match raw.get().as_bytes().first() {
            Some(b'[') => {
                let params = members_at_most(MAX_PARAMS, raw.get()).map_err(|_| RpcError::InvalidRequest)?;
                let params = params.ok_or(RpcError::ParameterCount)?;
                Ok(params.into_iter().map(ToOwned::to_owned).collect())
            }
            // `null`.
            Some(b'n') => Ok(Vec::new()),
            Some(b'{') if is_empty_object(raw.get()) => Ok(Vec::new()),
            Some(b'{') => in_order(row, raw),
            _ => Err(RpcError::InvalidRequest),
        }
    }
}

fn is_empty_object(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'{' | b'}' | b' ' | b'\t' | b'\r' | b'\n'))
}

impl<'de> Deserialize<'de> for RequestFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = RequestFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON-RPC request object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = RequestFields::default();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    match key.as_ref() {
                        "jsonrpc" => fields.jsonrpc = Some(map.next_value()?),
                        "id" => fields.id = Some(map.next_value()?),
                        "method" => fields.method = Some(map.next_value()?),
                        "params" => fields.params = Some(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Refuses deep nesting before a recursive parser reads the bytes. The check takes one pass and no allocation.
fn check_depth(bytes: &[u8]) -> Result<(), EnvelopeError> {
    // Most messages have fewer opening brackets than the limit. Counting them takes a fraction of the time of the pass below.
    if bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count() <= MAX_DEPTH {
        return Ok(());
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for &byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(EnvelopeError::TooDeep);
        }
    }
    Ok(())
}

/// A text as a parameter of a message of the host.
pub(super) fn text_param(text: &str) -> Result<Box<RawValue>, RpcError> {
    Ok(to_raw_value(text)?)
}

/// The number of a filter or subscription as callers write it.
pub(super) fn id_text(id: u128) -> String {
    alloc::format!("{id:#x}")
}

#[cfg(test)]
#[path = "message_test.rs"]
mod tests;
