//! The reply to a message, which is written as text once.

use alloc::{borrow::Cow, string::String, vec, vec::Vec};

use super::{
    envelope::{Id, Outcome},
    error::RpcError,
    message::{Message, MessageEntry, MessageForm},
    method::{Effect, Method},
    notify::{Notifications, notifications},
};
use crate::engine::Level;

/// Bytes of a response besides its id and its result: the names of its members and its marks. Only the estimate of an answer's
/// length uses it.
const FRAME: usize = 96;

/// The reply to a message: a response for each of its requests.
#[derive(Debug)]
pub struct Reply {
    /// The form of the message that is answered.
    pub(super) kind: MessageForm,
    /// The responses, in the order of the requests.
    pub(super) responses: Vec<Response>,
}

/// The response to one request.
#[derive(Debug)]
pub struct Response {
    /// The id that is repeated. Without one, the response is not sent.
    pub id: Id,
    /// The method, if it exists and may be called.
    pub row: Option<&'static Method>,
    /// The result or error.
    pub outcome: Outcome,
    /// An effect that the host acts on.
    pub effect: Option<Effect>,
    /// The marks, which the response states besides its result.
    pub marks: Marks,
}

/// The marks of a response, which are members besides its result. An answer without marks is proven from a trusted block on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// The level, if it is below verified.
    pub level: Option<Level>,
    /// How the chain of the result starts if it has no trusted block: `work` or `window` (docs/light.md).
    pub start: Option<&'static str>,
    /// Bitcoin's verdict on the chain of the result, if Bitcoin is followed and does not support it for sure: `weak`,
    /// `contested` or `unavailable`.
    pub bitcoin: Option<&'static str>,
}

impl Marks {
    /// Whether there are no marks.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Reply {
    /// The reply to a message of one request with this id.
    pub fn to_one(id: Id, outcome: Outcome) -> Self {
        let response = Response { id, row: None, outcome, effect: None, marks: Marks::default() };
        Self { kind: MessageForm::Single, responses: vec![response] }
    }

    /// The reply of a host that answers a message itself: an outcome for each request.
    pub fn to(message: Message, outcomes: Vec<Outcome>) -> Self {
        let response = |(entry, outcome): (MessageEntry, Outcome)| {
            let row = entry.call.ok().and_then(|call| call.row);
            Response { id: entry.id, row, outcome, effect: None, marks: Marks::default() }
        };
        Self {
            kind: message.kind,
            responses: message.entries.into_iter().zip(outcomes).map(response).collect(),
        }
    }

    /// The responses, in the order of the requests.
    pub fn responses(&self) -> &[Response] {
        &self.responses
    }

    /// As [`Self::responses`], to be changed.
    pub fn responses_mut(&mut self) -> &mut [Response] {
        &mut self.responses
    }

    /// The effects for the host.
    pub fn effects(&self) -> impl Iterator<Item = Effect> {
        self.responses.iter().filter_map(|response| response.effect)
    }

    /// Whether the message was no JSON-RPC (HTTP 400).
    pub fn is_unusable(&self) -> bool {
        matches!(self.kind, MessageForm::Unusable(_))
    }

    /// The method and error of a message with a single request that failed.
    pub fn failed(&self) -> Option<(&'static Method, &RpcError)> {
        let [Response { row, outcome: Err(error), .. }] = &*self.responses else { return None };
        row.filter(|_| self.is_error()).zip(Some(error))
    }

    /// Whether one error is sent for the whole message: it was no JSON-RPC, or it was refused, or its single request failed.
    pub fn is_error(&self) -> bool {
        match (&self.kind, &*self.responses) {
            (MessageForm::Unusable(_), _) => true,
            (MessageForm::Single, [Response { id, outcome: Err(_), .. }]) => !matches!(id, Id::Absent),
            _ => false,
        }
    }

    /// The length of the text in bytes, or a little more; of errors approximately.
    pub fn bytes(&self) -> usize {
        let response_bytes = |response: &Response| {
            outcome_bytes(&response.outcome).saturating_add(response.id.as_json().len()).saturating_add(FRAME)
        };
        self.responses.iter().map(response_bytes).fold(0, usize::saturating_add)
    }

    /// The text to send; `None` when nothing is to be sent, because the message consisted of notifications.
    pub fn into_text(self) -> Option<String> {
        let is_batch = match self.kind {
            MessageForm::Unusable(error) => return Some(error.to_answer()),
            MessageForm::Batch if self.responses.is_empty() => return Some("[]".into()),
            MessageForm::Batch => true,
            MessageForm::Single => false,
        };
        let mut text = String::with_capacity(self.bytes());
        for response in self.responses {
            if is_batch && !matches!(response.id, Id::Absent) {
                text.push(if text.is_empty() { '[' } else { ',' });
            }
            // Dropping a response frees its memory before the next one is written.
            response.write(&mut text);
        }
        if text.is_empty() {
            return None;
        }
        if is_batch {
            text.push(']');
        }
        Some(text)
    }

    /// The notifications of a subscription, from the reply to the message that polls it
    /// ([`poll_message`](super::poll_message)).
    pub fn into_notifications(self, subscription: u128) -> Notifications {
        self.responses
            .into_iter()
            .next()
            .map_or_else(Notifications::default, |first| notifications(subscription, &first.outcome))
    }
}

impl Response {
    /// Appends `{"jsonrpc":"2.0","id":..,"result":..}` or its error form, with the marks, to a text. A notification gets no
    /// response, whether it succeeded or failed.
    fn write(self, text: &mut String) {
        if matches!(self.id, Id::Absent) {
            return;
        }
        let (name, value) = match &self.outcome {
            Ok(result) => ("result", Cow::Borrowed(result.get())),
            Err(error) => ("error", Cow::Owned(error.to_json())),
        };
        let parts = [r#"{"jsonrpc":"2.0","id":"#, self.id.as_json(), ",\"", name, "\":", &value];
        parts.into_iter().for_each(|part| text.push_str(part));
        let Marks { level, start, bitcoin } = self.marks;
        let marks = [("level", level.map(Level::name)), ("start", start), ("bitcoin", bitcoin)];
        for (name, mark) in marks {
            let Some(mark) = mark else { continue };
            [",\"", name, "\":\"", mark, "\""].into_iter().for_each(|part| text.push_str(part));
        }
        text.push('}');
    }
}

/// Approximate size of an outcome in the answer, in bytes.
pub(super) fn outcome_bytes(outcome: &Outcome) -> usize {
    match outcome {
        Ok(value) => value.get().len(),
        // The data appears in hex, and the decoded reason may repeat it as text.
        Err(RpcError::Reverted { data, .. } | RpcError::Host { data: Some(data), .. }) => {
            data.len().saturating_mul(3)
        }
        // The texts of other errors do not count: they are short, or repeat a parameter of the message or an upstream's error.
        Err(_) => 0,
    }
}
