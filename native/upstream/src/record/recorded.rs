//! Records the requests to upstreams, and their responses, while a program uses the upstreams.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;

use super::writer::{Files, RecordError};
use crate::{ReservedResults, SharedUpstream, Upstream, UpstreamError, UpstreamResult};

/// Most bytes of results in a recording. Results beyond it are left out.
pub const RECORDING_BYTES: usize = 64 * 1024 * 1024;

/// Name of the file, without its ending.
const NAME: &str = "exchanges";

/// A recording that one or several upstreams write to.
pub struct Recording(Mutex<RecordingProgress>);

struct RecordingProgress {
    /// The files; `None` once the recording is complete or has failed.
    files: Option<Files>,
    /// The first failure to write.
    failure: Option<RecordError>,
    /// Number of recorded requests.
    exchanges: u64,
    /// Bytes of recorded results.
    bytes: usize,
    /// Whether results were left out because of [`RECORDING_BYTES`].
    is_cut: bool,
}

impl Recording {
    /// Begins a recording in a folder, which is created if needed.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn create(folder: &Path) -> Result<Self, RecordError> {
        let files = Some(Files::create(folder, false)?);
        Ok(Self(Mutex::new(RecordingProgress {
            files,
            failure: None,
            exchanges: 0,
            bytes: 0,
            is_cut: false,
        })))
    }

    /// Completes the recording. Returns whether it is whole; `false` if results were left out because of [`RECORDING_BYTES`].
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(&self) -> Result<bool, RecordError> {
        let mut state = self.state();
        match (state.failure.take(), state.files.take()) {
            (Some(failure), _) => Err(failure),
            (None, Some(files)) => files.finish().map(|()| !state.is_cut),
            (None, None) => Ok(!state.is_cut),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, RecordingProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and its result.
    fn note(&self, request: &UpstreamRequest, result: &UpstreamResult) {
        let result = match result {
            Ok(result) => Ok(&**result),
            Err(error @ UpstreamError::Rpc { .. }) => Err(error),
            // A request without an answer may get one at the next try.
            Err(_) => return,
        };
        let mut state = self.state();
        let bytes = state.bytes.saturating_add(result.map_or(0, |result| result.get().len()));
        if bytes > RECORDING_BYTES {
            state.is_cut = true;
            return;
        }
        let id = state.exchanges.saturating_add(1);
        (state.bytes, state.exchanges) = (bytes, id);
        let written = state.files.as_mut().map(|files| files.write(NAME, id, request, result));
        if let Some(Err(failure)) = written {
            (state.files, state.failure) = (None, Some(failure));
        }
    }
}

/// An upstream whose results are recorded.
pub struct RecordedUpstream {
    inner: SharedUpstream,
    recording: Arc<Recording>,
}

impl RecordedUpstream {
    /// Records an upstream.
    #[must_use]
    pub fn new(inner: SharedUpstream, recording: Arc<Recording>) -> Self {
        Self { inner, recording }
    }
}

impl Upstream for RecordedUpstream {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(async move {
            let (results, reserved) = self.inner.request_reserved(requests.clone()).await;
            requests.iter().zip(&results).for_each(|(request, result)| self.recording.note(request, result));
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

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::replay::Replay;
    use crate::unreserved;

    struct FixedUpstream(Vec<UpstreamResult>);

    impl Upstream for FixedUpstream {
        fn request_reserved(&self, _: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
            Box::pin(unreserved(std::future::ready(self.0.clone())))
        }

        fn name(&self) -> &'static str {
            "told"
        }
    }

    fn request(method: &'static str) -> UpstreamRequest {
        UpstreamRequest::new(method, "[]".into())
    }

    async fn record(recording: &Arc<Recording>) {
        let refused = UpstreamError::Rpc { code: -32601, message: "no such method".into(), data: None };
        let ten = RawValue::from_string("\"0xa\"".into()).unwrap();
        let fixed = FixedUpstream(vec![Ok(ten), Err(refused), Err(UpstreamError::Timeout(1))]);
        let upstream = RecordedUpstream::new(Arc::new(fixed), recording.clone());
        upstream.request(vec![request("eth_gasPrice"), request("eth_mining"), request("net_version")]).await;
    }

    #[tokio::test]
    async fn recorded_results_are_replayed() {
        let folder = tempfile::tempdir().unwrap();
        let recording = Arc::new(Recording::create(folder.path()).unwrap());
        record(&recording).await;
        assert!(recording.finish().unwrap());
        // Later calls are not in the recording.
        record(&recording).await;
        let replay = Replay::open(folder.path()).unwrap();
        assert_eq!(replay.answer("eth_gasPrice", &[]).unwrap().get(), "\"0xa\"");
        assert!(matches!(replay.answer("eth_mining", &[]), Err(UpstreamError::Rpc { code: -32601, .. })));
        assert!(matches!(replay.answer("net_version", &[]), Err(UpstreamError::NotRecorded(_))));
    }

    #[tokio::test]
    async fn a_long_recording_is_cut_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let recording = Arc::new(Recording::create(folder.path()).unwrap());
        recording.state().bytes = RECORDING_BYTES - 4;
        record(&recording).await;
        assert!(!recording.finish().unwrap());
    }
}
