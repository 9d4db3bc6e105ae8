//! The sources of a run, with their responses and errors: upstreams are wrapped, so that each response is noted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight_limits::budget::Reservation;
use rootlight_upstream::{SharedUpstream, Upstream, UpstreamResult};
use serde_json::Value;

/// Most sources whose responses are noted. An upstream slot asks one discovered node after the other, so nothing else bounds
/// their number.
const MAX_SOURCES: usize = 64;

/// The latest responses of one source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SourceNote {
    /// The latest response to a request for a proof of state; an error is its text.
    pub(super) state: Option<Result<(), String>>,
    /// The latest response to another request.
    pub(super) other: Option<Result<(), String>>,
}

/// The responses of the sources of a run.
#[derive(Default)]
pub(crate) struct SourceNotes(Mutex<NotesState>);

#[derive(Default)]
struct NotesState {
    sources: BTreeMap<String, SourceNote>,
    /// The sources of the proofs of state that are under way, one entry for each request.
    asked: Vec<String>,
    /// Bytes of all responses, as JSON text.
    bytes: u64,
}

impl SourceNotes {
    fn state(&self) -> MutexGuard<'_, NotesState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the responses to requests, of which `is_state` says whether they are for a proof of state.
    fn note(&self, name: &str, is_state: &[bool], results: &[UpstreamResult]) {
        let mut state = self.state();
        let texts = results.iter().flatten();
        let bytes = texts.map(|text| text.get().len() as u64).fold(0, u64::saturating_add);
        state.bytes = state.bytes.saturating_add(bytes);
        if state.sources.len() >= MAX_SOURCES && !state.sources.contains_key(name) {
            return;
        }
        let note = state.sources.entry(name.to_owned()).or_default();
        for (is_state, result) in is_state.iter().zip(results) {
            let said = result.as_ref().map(drop).map_err(ToString::to_string);
            *if *is_state { &mut note.state } else { &mut note.other } = Some(said);
        }
    }

    /// All sources that were asked.
    pub(super) fn all(&self) -> BTreeMap<String, SourceNote> {
        self.state().sources.clone()
    }

    /// The sources that gave a proof of state, without those whose proofs were refuted if others are left. `upstreams` is
    /// the answer of `rootlight_upstreams`.
    pub(super) fn provers(&self, upstreams: &Value) -> Vec<String> {
        let gave = |note: &SourceNote| matches!(note.state, Some(Ok(())));
        let state = self.state();
        let all: Vec<&String> =
            state.sources.iter().filter(|(_, note)| gave(note)).map(|(name, _)| name).collect();
        let unrefuted: Vec<&String> =
            all.iter().copied().filter(|name| !is_refuted(upstreams, name)).collect();
        let named = if unrefuted.is_empty() { all } else { unrefuted };
        named.into_iter().cloned().collect()
    }

    /// The source that was asked last for a proof of state, and has not answered yet.
    pub(super) fn asked(&self) -> Option<String> {
        self.state().asked.last().cloned()
    }

    /// Bytes of all responses, as JSON text.
    pub(crate) fn bytes(&self) -> u64 {
        self.state().bytes
    }
}

/// A request for a proof of state that is under way; dropping it removes the entry of [`NotesState::asked`].
struct AskedForState<'a> {
    notes: &'a SourceNotes,
    name: &'a str,
}

impl<'a> AskedForState<'a> {
    fn begin(notes: &'a SourceNotes, name: &'a str) -> Self {
        notes.state().asked.push(name.to_owned());
        Self { notes, name }
    }
}

impl Drop for AskedForState<'_> {
    fn drop(&mut self) {
        let mut state = self.notes.state();
        if let Some(index) = state.asked.iter().position(|name| name == self.name) {
            state.asked.remove(index);
        }
    }
}

/// An upstream whose responses are noted.
pub(crate) struct NotedUpstream {
    inner: SharedUpstream,
    notes: Arc<SourceNotes>,
}

impl NotedUpstream {
    /// The same upstream, with its responses noted.
    pub(crate) fn wrap(inner: SharedUpstream, notes: Arc<SourceNotes>) -> SharedUpstream {
        Arc::new(Self { inner, notes })
    }

    /// The name of the node that is asked now; `None` while no node fills the slot.
    fn source(&self) -> Option<String> {
        match self.inner.current_source() {
            None => Some(self.inner.name().to_owned()),
            Some(source) => Some(source.name).filter(|_| !source.vacant),
        }
    }
}

fn asks_for_state(request: &UpstreamRequest) -> bool {
    is_of_state(request.method)
}

/// Whether a method of an upstream returns a proof of state.
fn is_of_state(method: &str) -> bool {
    method.ends_with("getProof") || method.ends_with("Witness")
}

/// Whether a proof of state by the source of this name was refuted, by the answer of `rootlight_upstreams`.
fn is_refuted(upstreams: &Value, name: &str) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let is_about_state = |fault: &Value| fault["method"].as_str().is_some_and(is_of_state);
    list(upstreams)
        .iter()
        .filter(|upstream| upstream["name"] == name)
        .any(|upstream| list(&upstream["misbehaviour"]).iter().any(is_about_state))
}

impl Upstream for NotedUpstream {
    fn request(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
        Box::pin(async move { self.request_reserved(requests).await.0 })
    }

    fn request_reserved(
        &self,
        requests: Vec<UpstreamRequest>,
    ) -> BoxFuture<'_, (Vec<UpstreamResult>, Reservation)> {
        Box::pin(async move {
            let is_state: Vec<bool> = requests.iter().map(asks_for_state).collect();
            let source = self.source();
            let asked = source.as_deref().filter(|_| is_state.contains(&true));
            let _asked = asked.map(|name| AskedForState::begin(&self.notes, name));
            let (results, reserved) = self.inner.request_reserved(requests).await;
            if let Some(name) = &source {
                self.notes.note(name, &is_state, &results);
            }
            (results, reserved)
        })
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn inner(&self) -> Option<&dyn Upstream> {
        Some(&*self.inner)
    }
}

/// The name with a node's id, of 128 digits, shortened to its first eight and last four.
pub(crate) fn short_name(name: &str) -> String {
    match name.split_once('@') {
        Some((id, address)) if id.len() > 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            let (start, end) = (id.get(..8).unwrap_or_default(), id.get(id.len() - 4..).unwrap_or_default());
            format!("{start}..{end}@{address}")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rootlight_upstream::UpstreamError;
    use rootlight_upstream::{ReservedResults, call, unreserved};
    use serde_json::json;

    use super::*;

    struct Node;

    impl Upstream for Node {
        fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
            let answer = |request: &UpstreamRequest| match request.method {
                "eth_getProof" => Err(UpstreamError::Rpc { code: -32601, message: "no".into(), data: None }),
                _ => Ok(serde_json::value::to_raw_value("0x12").unwrap()),
            };
            Box::pin(unreserved(async move { requests.iter().map(answer).collect() }))
        }

        fn name(&self) -> &'static str {
            "node"
        }
    }

    #[tokio::test]
    async fn responses_are_noted_with_their_bytes() {
        let notes = Arc::new(SourceNotes::default());
        let upstream = NotedUpstream::wrap(Arc::new(Node), notes.clone());
        upstream.request(vec![call("eth_chainId", json!([])), call("eth_getProof", json!([]))]).await;
        assert_eq!((notes.bytes(), notes.asked(), notes.provers(&Value::Null)), (6, None, Vec::new()));
        let said = Some(Err("upstream error -32601: no".to_owned()));
        assert_eq!(notes.all()["node"], SourceNote { state: said, other: Some(Ok(())) });
    }

    #[test]
    fn sources_whose_proofs_were_refuted_are_no_provers() {
        let notes = SourceNotes::default();
        let given = [Ok(serde_json::value::to_raw_value("0x12").unwrap())];
        ["honest", "liar"].iter().for_each(|name| notes.note(name, &[true], &given));
        let fault = |method: &str| json!([{ "name": "liar", "misbehaviour": [{ "method": method }] }]);
        for method in ["eth_getProof", "rsk_getProof", "rootlight_getWitness"] {
            assert_eq!(notes.provers(&fault(method)), ["honest"], "{method}");
        }
        assert_eq!(notes.provers(&fault("eth_blockNumber")), ["honest", "liar"]);
        // A source that was refuted at first, and is the only one.
        let notes = SourceNotes::default();
        notes.note("liar", &[true], &given);
        assert_eq!(notes.provers(&fault("eth_getProof")), ["liar"]);
    }

    #[test]
    fn more_sources_than_can_be_listed_are_not_remembered() {
        let notes = SourceNotes::default();
        for number in 0..100 {
            notes.note(&format!("{number}"), &[], &[]);
        }
        assert_eq!(notes.all().len(), MAX_SOURCES);
        let asked = AskedForState::begin(&notes, "a");
        assert_eq!(notes.asked().as_deref(), Some("a"));
        drop(asked);
        assert_eq!(notes.asked(), None);
    }

    #[test]
    fn names_of_nodes_are_shortened() {
        let id = format!("{}{}", "ab".repeat(60), "cd".repeat(4));
        assert_eq!(short_name(&format!("{id}@[::1]:5050")), "abababab..cdcd@[::1]:5050");
        assert_eq!(short_name("https://node.example"), "https://node.example");
    }
}
