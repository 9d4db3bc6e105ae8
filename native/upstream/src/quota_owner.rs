//! The caller for whom a task sends requests to upstreams. A task-local value, so that the layers between the caller's message
//! and the upstream need not pass it on.

use std::future::Future;

use rootlight_limits::quota_owner::QuotaOwner;

tokio::task_local! {
    /// The owner of the quota that counts for the task's requests, which is the caller whose message the task answers.
    static CURRENT_OWNER: QuotaOwner;
}

/// Runs requests to upstreams for a caller, so that upstreams which take few requests share these out by caller.
pub async fn with_caller<F: Future>(owner: QuotaOwner, requests: F) -> F::Output {
    CURRENT_OWNER.scope(owner, requests).await
}

/// The quota owner for whom the present task sends requests; `None` if the program sends them for itself, such as for synchronization.
pub fn quota_owner() -> Option<QuotaOwner> {
    CURRENT_OWNER.try_with(|owner| *owner).ok()
}
