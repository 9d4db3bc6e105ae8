//! The asynchronous runtime of the commands, whose threads serve sockets.

use super::error::CommandError;

/// The number of tasks that a thread runs before it looks for new data on the sockets. Long bodies are moved in
/// pieces, one for each turn of a task; with tokio's default of 61 a new request would wait for 61 pieces.
const EVENT_INTERVAL: u32 = 8;

/// Creates a runtime for commands that wait on sockets.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    // Short messages are answered on these threads. With at least two, one busy thread does not block the
    // others' clients.
    let workers = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(workers)
        .event_interval(EVENT_INTERVAL)
        .on_thread_start(rootlight_limits::processors::join_serving_threads)
        .enable_all()
        .build()
        .map_err(CommandError::failed)
}
