//! The client side of JSON-RPC: encodes batches of requests to an upstream and decodes its responses, which are
//! hostile.
//!
//! Hosts move the bytes; only this file encodes and decodes them. The results are not proven here but in `prove`.

use alloc::{borrow::ToOwned, boxed::Box, format, string::String, vec::Vec};

use alloy_primitives::Bytes;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::types::json::for_each_member;

/// One request to an upstream.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UpstreamRequest {
    /// JSON-RPC method.
    pub method: &'static str,
    /// The parameters, a JSON array.
    pub params: String,
}

/// The outcome of one request: the result, or why there is none.
pub type UpstreamResponse = Result<Box<RawValue>, RequestFailure>;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum RequestFailure {
    /// The upstream responded with an error object. The text is cut to [`MAX_ERROR_TEXT`].
    #[error("upstream error {code}: {message}")]
    Rpc { code: i64, message: String },
    /// The upstream ran code that reverted, and gives the code's output. Only the host's own node is asked to run code.
    #[error("upstream error {code}: {message}")]
    Reverted {
        code: i64,
        message: String,
        /// Output of the code.
        output: Bytes,
    },
    /// The bytes are not a JSON-RPC response to the request.
    #[error("malformed response: {0}")]
    Malformed(&'static str),
    /// No response arrived: connection, time or size limit. The host gives the reason.
    #[error("no response: {0}")]
    Transport(String),
    /// The upstream asks for fewer requests (HTTP 429 or 503), and for a pause of this many seconds if it gives one.
    #[error("no response: the upstream asks for a pause: ask again later, or add another upstream")]
    Busy {
        /// Seconds, as in `Retry-After`.
        seconds: Option<u64>,
    },
    /// The host did not read the response, because other responses use all the memory that it allows for them. Some of it is free
    /// once those are processed.
    #[error("no response: other responses take up the memory for them; ask for less at once, or again")]
    BudgetUsedUp,
    /// A recording that is replayed has no response to the request.
    #[error("not recorded")]
    NotRecorded,
    /// The upstream gave no response. For this kind of source, such as a peer, that may mean that it does not have the data. Hosts
    /// report this only for requests that follow from callers' messages, because callers can name data that does not exist. The
    /// text is the reason.
    #[error("no response: {0}")]
    NotAvailable(String),
    /// The host did not send the request, because of a limit or a failure that it knows of. The text is the reason.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The upstream responded with bytes that no honest one sends for this request, such as a header with another hash
    /// than the requested one. Hosts report this only of sources that prove their identity, and whose responses they check
    /// before they turn them into results. The text is the evidence.
    #[error("false response: {0}")]
    False(String),
}

/// Longest error text that is kept from an upstream, in characters. An upstream that is a light client quotes the error of its
/// own upstream, which takes more than a short sentence.
pub const MAX_ERROR_TEXT: usize = 320;

impl RequestFailure {
    /// The failure, if it means that no response arrived at all. Such an upstream has neither kept nor broken a rule.
    pub(super) fn of_silence(response: &UpstreamResponse) -> Option<&Self> {
        let is_silence = |failure: &&Self| {
            matches!(
                failure,
                Self::Transport(_)
                    | Self::Busy { .. }
                    | Self::BudgetUsedUp
                    | Self::NotAvailable(_)
                    | Self::NotSent(_)
            )
        };
        response.as_ref().err().filter(is_silence)
    }

    /// The failure, if the other responses of the same exchange do not count either: the upstream was silent, or sent bytes that no
    /// honest one sends.
    pub(super) fn of_exchange(response: &UpstreamResponse) -> Option<&Self> {
        let lie = || response.as_ref().err().filter(|failure| matches!(failure, Self::False(_)));
        Self::of_silence(response).or_else(lie)
    }
}

impl UpstreamRequest {
    /// A request with parameters already in JSON, e.g. `["0x1",true]`.
    pub fn new(method: &'static str, params: String) -> Self {
        Self { method, params }
    }

    /// The JSON-RPC request with this id.
    pub fn to_json(&self, id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{}}}"#, self.method, self.params)
    }
}

/// Encodes requests as one batch; ids count up from `first_id`. A single request is encoded without brackets.
pub fn encode_batch(requests: &[UpstreamRequest], first_id: u64) -> String {
    let requests: Vec<String> =
        requests.iter().zip(first_id..).map(|(request, id)| request.to_json(id)).collect();
    match requests.as_slice() {
        [single] => single.clone(),
        many => format!("[{}]", many.join(",")),
    }
}

/// One response of an upstream, borrowed from the bytes that contain it.
#[derive(Debug, Deserialize)]
pub struct RawResponse<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: ResultMember<'a>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

/// Distinguishes a missing `result` from `"result":null`, which serde would both read as `None`.
#[derive(Debug, Default)]
struct ResultMember<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for ResultMember<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self(Some(raw)))
    }
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i64,
    #[serde(default)]
    message: String,
}

impl<'a> RawResponse<'a> {
    /// Decodes one response object.
    ///
    /// # Errors
    /// [`RequestFailure::Malformed`]: the text is not a JSON object, or repeats one of the members read here.
    pub fn read(text: &'a str) -> Result<Self, RequestFailure> {
        if !is_object(text) {
            return Err(NOT_A_RESPONSE);
        }
        serde_json::from_str(text).map_err(|_| NOT_A_RESPONSE)
    }

    /// The id, if it is a number of at most 64 bits, as all ids of our requests are.
    pub fn id(&self) -> Option<u64> {
        id_of(self.id)
    }

    /// The result, or why there is none. `"result":null` is a result.
    pub fn into_result(self) -> UpstreamResponse {
        match (self.error, self.result.0) {
            (Some(error), _) => Err(match serde_json::from_str::<ErrorObject>(error.get()) {
                Ok(error) => RequestFailure::Rpc { code: error.code, message: printable(&error.message) },
                Err(_) => RequestFailure::Malformed("the error member is not a JSON-RPC error"),
            }),
            (None, Some(result)) => Ok(result.to_owned()),
            (None, None) => Err(RequestFailure::Malformed("neither result nor error")),
        }
    }

    /// The `data` member of the error, as raw JSON; `None` if there are several.
    pub fn error_data(&self) -> Option<&'a RawValue> {
        #[derive(Deserialize)]
        struct Data<'a> {
            #[serde(default, borrow)]
            data: Option<&'a RawValue>,
        }
        serde_json::from_str::<Data<'a>>(self.error?.get()).ok()?.data
    }
}

/// The subject of an upstream's message, for connections that carry several exchanges at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseSubject {
    /// A notification, which responds to no request.
    Notification,
    /// The request with this id, or the batch that contains it.
    Request(u64),
    /// A response without an id, such as the refusal of a whole batch.
    Unknown,
    /// The text is not a JSON-RPC message.
    Nothing,
}

/// The members of a message that tell its subject. Serde rejects a message that repeats one of them; `_result` and `_error` are read
/// for that alone.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<IgnoredAny>,
    #[serde(default, rename = "result")]
    _result: Option<IgnoredAny>,
    #[serde(default, rename = "error")]
    _error: Option<IgnoredAny>,
}

/// The request that a message responds to. In a batch, the first member with an id decides.
pub fn subject(text: &str) -> ResponseSubject {
    if !text.trim_start().starts_with('[') {
        return subject_of_object(text);
    }
    let mut subject = ResponseSubject::Unknown;
    let read = for_each_member(text, &mut |member| {
        let request = Some(subject_of_object(member.get()))
            .filter(|subject| matches!(subject, ResponseSubject::Request(_)));
        subject = request.unwrap_or(subject);
        request.is_none()
    });
    read.map_or(ResponseSubject::Unknown, |()| subject)
}

/// The subject of a single message, read in one pass.
fn subject_of_object(text: &str) -> ResponseSubject {
    if !is_object(text) {
        return ResponseSubject::Nothing;
    }
    match serde_json::from_str(text) {
        Err(_) => ResponseSubject::Nothing,
        Ok(Envelope { method: Some(_), .. }) => ResponseSubject::Notification,
        Ok(Envelope { id, .. }) => id_of(id).map_or(ResponseSubject::Unknown, ResponseSubject::Request),
    }
}

/// Whether a JSON text can be an object. Serde would also read an array as the members in the order of their declaration.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// An id, if it is a number of at most 64 bits, as the ids of all requests are.
fn id_of(id: Option<&RawValue>) -> Option<u64> {
    id?.get().parse().ok()
}

/// The failure for bytes that are not a response.
const NOT_A_RESPONSE: RequestFailure =
    RequestFailure::Malformed("not a JSON-RPC response; check that the address is that of a node");

/// Takes the response to the request at an index of a batch.
pub type OnResponse<'p, 'a> = &'p mut dyn FnMut(usize, RawResponse<'a>);

/// Decodes the responses to `count` requests, whose ids count up from `first_id`, and passes each to `put` with the
/// index of its request. Responses may come in any order. Members that are not responses to these requests are skipped, and
/// so is everything after `count` members. Returns a response only if an upstream sends a single one instead of a batch, with
/// which it refuses the whole batch.
///
/// # Errors
/// [`RequestFailure::Malformed`]: the bytes are neither a response nor an array.
pub fn read_batch<'a>(
    bytes: &'a [u8],
    first_id: u64,
    count: usize,
    put: OnResponse<'_, 'a>,
) -> Result<Option<RawResponse<'a>>, RequestFailure> {
    let raw: &RawValue = serde_json::from_slice(bytes).map_err(|_| NOT_A_RESPONSE)?;
    let text = raw.get();
    let mut put_by_id = |response: RawResponse<'a>| {
        let index = match response.id() {
            Some(id) => id.checked_sub(first_id).and_then(|index| usize::try_from(index).ok()),
            // Some servers respond without the id to a request that they cannot read.
            None if count == 1 => Some(0),
            None => None,
        };
        if let Some(index) = index.filter(|index| *index < count) {
            put(index, response);
        }
    };
    if text.starts_with('[') {
        let mut left = count;
        let read = for_each_member(text, &mut |member| {
            // A member that is not a response is skipped.
            let _ = RawResponse::read(member.get()).map(&mut put_by_id);
            left = left.saturating_sub(1);
            left > 0
        });
        return read.map(|()| None).map_err(|_| NOT_A_RESPONSE);
    }
    let response = RawResponse::read(text)?;
    if count > 1 {
        return Ok(Some(response));
    }
    put_by_id(response);
    Ok(None)
}

/// As [`read_batch`], but never fails as a whole: the result has `count` entries, and a request without a response gets
/// [`RequestFailure::Malformed`].
pub fn decode_batch(bytes: &[u8], first_id: u64, count: usize) -> Vec<UpstreamResponse> {
    let mut responses: Vec<Option<UpstreamResponse>> = Vec::new();
    responses.resize_with(count, || None);
    let read = read_batch(bytes, first_id, count, &mut |index, response| {
        if let Some(slot @ None) = responses.get_mut(index) {
            *slot = Some(response.into_result());
        }
    });
    let missing = read.err().unwrap_or(NO_RESPONSE);
    responses.into_iter().map(|response| response.unwrap_or_else(|| Err(missing.clone()))).collect()
}

/// The failure of a request that a batch has no response to.
pub const NO_RESPONSE: RequestFailure = RequestFailure::Malformed("no response with this id");

/// An upstream's text without control characters, cut to [`MAX_ERROR_TEXT`].
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_ERROR_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(bytes: &[u8], first: u64, count: usize) -> Vec<Result<String, RequestFailure>> {
        decode_batch(bytes, first, count).into_iter().map(|a| a.map(|raw| raw.get().into())).collect()
    }

    #[test]
    fn a_batch_is_written_and_read_in_any_order() {
        let requests = [UpstreamRequest::new("a", "[]".into()), UpstreamRequest::new("b", "[1]".into())];
        assert_eq!(
            encode_batch(&requests, 7),
            r#"[{"jsonrpc":"2.0","id":7,"method":"a","params":[]},{"jsonrpc":"2.0","id":8,"method":"b","params":[1]}]"#
        );
        let responses =
            texts(br#"[{"id":8,"result":{"x":1}},{"id":7,"result":null},{"id":9,"result":1}]"#, 7, 2);
        assert_eq!(responses, [Ok("null".into()), Ok(r#"{"x":1}"#.into())]);
    }

    #[test]
    fn different_failures_give_different_errors() {
        assert_eq!(texts(b"nonsense", 1, 2), [const { Err(NOT_A_RESPONSE) }; 2]);
        assert_eq!(texts(b"{}", 1, 1), [Err(RequestFailure::Malformed("neither result nor error"))]);
        assert_eq!(
            texts(br#"{"id":2,"result":1}"#, 1, 1),
            [Err(RequestFailure::Malformed("no response with this id"))]
        );
        assert_eq!(
            texts(br#"{"id":1,"error":{"code":-32601,"message":"method\nnot found"}}"#, 1, 1),
            [Err(RequestFailure::Rpc { code: -32601, message: "methodnot found".into() })]
        );
        assert_eq!(texts(br#"{"id":1,"result":1"#, 1, 1), [Err(NOT_A_RESPONSE)]);
    }

    /// An array would be read as the members in the order in which they are declared.
    #[test]
    fn a_response_is_an_object() {
        assert_eq!(texts(b"[[1,5]]", 1, 1), [Err(NO_RESPONSE)]);
        for text in ["5", "\"x\"", "null", "{\"id\":1,\"id\":1}"] {
            assert_eq!(texts(text.as_bytes(), 1, 1), [Err(NOT_A_RESPONSE)], "{text}");
        }
        assert!(RawResponse::read("[1,2]").is_err() && RawResponse::read("{}x").is_err());
    }

    #[test]
    fn a_response_without_an_id_belongs_to_a_single_request() {
        assert_eq!(texts(br#"[{"result":1}]"#, 1, 1), [Ok("1".into())]);
        let missing = || Err(RequestFailure::Malformed("no response with this id"));
        assert_eq!(texts(br#"[{"result":1}]"#, 1, 2), [missing(), missing()]);
    }

    /// A second response to a request, or a response to a request of another batch, changes nothing.
    #[test]
    fn the_first_response_to_a_request_counts() {
        let text = br#"[{"id":3,"result":"c"},{"id":1,"result":"a"},{"id":1,"result":"later"},{"id":9,"result":1},7]"#;
        let responses = texts(text, 1, 5);
        assert_eq!(responses[0], Ok(r#""a""#.into()));
        assert_eq!(responses[2], Ok(r#""c""#.into()));
        assert_eq!([&responses[1], &responses[3], &responses[4]], [&Err(NO_RESPONSE); 3]);
    }

    #[test]
    fn members_beyond_the_number_of_requests_are_skipped() {
        let text = format!(r#"[{{"id":1,"result":"a"}},{}0]"#, "0,".repeat(100_000));
        assert_eq!(texts(text.as_bytes(), 1, 1), [Ok(r#""a""#.into())]);
        assert_eq!(
            texts(&text.as_bytes()[..text.len() - 1], 1, 1),
            [Err(NOT_A_RESPONSE)],
            "an array without an end"
        );
    }

    #[test]
    fn a_single_response_to_a_batch_refuses_the_batch() {
        let text = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"too long","data":[1]}}"#;
        let refusal = read_batch(text, 1, 2, &mut |_, _| panic!("no call of the batch")).unwrap().unwrap();
        assert_eq!(refusal.error_data().map(RawValue::get), Some("[1]"));
        assert!(matches!(refusal.into_result(), Err(RequestFailure::Rpc { code: -32600, .. })));
        assert!(read_batch(text, 1, 1, &mut |_, _| {}).unwrap().is_none(), "the answer to a single call");
        assert_eq!(texts(text, 1, 2), [const { Err(NO_RESPONSE) }; 2]);
    }

    #[test]
    fn errors_without_a_code_are_malformed() {
        for error in [r#""no""#, r#"{"message":"no code"}"#, "[]"] {
            let text = format!(r#"{{"id":1,"result":1,"error":{error}}}"#);
            assert!(
                matches!(texts(text.as_bytes(), 1, 1)[..], [Err(RequestFailure::Malformed(_))]),
                "{text}"
            );
        }
        assert_eq!(texts(br#"{"id":1,"result":1,"error":null}"#, 1, 1), [Ok("1".into())]);
    }

    #[test]
    fn messages_are_matched_to_their_request() {
        for (text, expected) in [
            (r#"{"method":"eth_subscription","params":{}}"#, ResponseSubject::Notification),
            (r#" {"id":7,"result":1}"#, ResponseSubject::Request(7)),
            (r#"[{"id":null},{"id":8,"result":1},{"id":9}]"#, ResponseSubject::Request(8)),
            (r#"{"error":{"code":1}}"#, ResponseSubject::Unknown),
            (r#"[{"id":8,"result":1}"#, ResponseSubject::Unknown),
            ("[]", ResponseSubject::Unknown),
            ("7", ResponseSubject::Nothing),
        ] {
            assert_eq!(subject(text), expected, "{text}");
        }
    }

    #[test]
    fn error_texts_are_cut() {
        let long = format!(r#"{{"id":1,"error":{{"code":1,"message":"{}"}}}}"#, "x".repeat(5_000));
        assert_eq!(
            texts(long.as_bytes(), 1, 1),
            [Err(RequestFailure::Rpc { code: 1, message: "x".repeat(MAX_ERROR_TEXT) })]
        );
    }
}
