//! For whom an upstream is asked.

use std::future::Future;

use rootlight::types::Asker;

tokio::task_local! {
    /// The caller ([`CallerId::asker`](rootlight_limits::caller_id::CallerId::asker)) whose message the task answers.
    static ASKER: Asker;
}

/// Runs requests to upstreams for a caller, so that upstreams which can be asked little share this out by caller.
pub async fn with_caller<F: Future>(asker: Asker, requests: F) -> F::Output {
    ASKER.scope(asker, requests).await
}

/// The caller for whom the present task asks; `None` if the program asks for itself, such as for synchronization.
pub fn asker() -> Option<Asker> {
    ASKER.try_with(|asker| *asker).ok()
}
