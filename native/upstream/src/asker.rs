//! The caller for whom a task sends requests to upstreams. A task-local value, so that the layers between the caller's message
//! and the upstream need not pass it on.

use std::future::Future;

use rootlight::types::Asker;

tokio::task_local! {
    /// The caller ([`CallerId::asker`](rootlight_limits::caller_id::CallerId::asker)) whose message the task answers.
    static CURRENT_ASKER: Asker;
}

/// Runs requests to upstreams for a caller, so that upstreams which take few requests share these out by caller.
pub async fn with_caller<F: Future>(asker: Asker, requests: F) -> F::Output {
    CURRENT_ASKER.scope(asker, requests).await
}

/// The caller for whom the present task sends requests; `None` if the program sends them for itself, such as for synchronization.
pub fn asker() -> Option<Asker> {
    CURRENT_ASKER.try_with(|asker| *asker).ok()
}
