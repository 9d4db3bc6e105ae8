//! Tracers in JavaScript, with the feature `js-tracers`.
//!
//! Each script runs in a process started from [`EngineProgram`]; without one, scripts are refused, because a library cannot know
//! what its program does when it is started again. A process, because QuickJS checks the time only between instructions and one
//! built-in call can take hours: killing it ends the script and frees its memory.

#[cfg(feature = "js-tracers")]
mod context;
#[cfg(feature = "js-tracers")]
mod engine;
#[cfg(feature = "js-tracers")]
mod frame;
#[cfg(feature = "js-tracers")]
mod process;
mod program;
#[cfg(feature = "js-tracers")]
mod program_pipe;
#[cfg(all(test, feature = "js-tracers"))]
mod scripts_test;

use std::sync::Arc;
use std::time::Duration;

use rootlight::exec::trace::ScriptEngine;

#[cfg(feature = "js-tracers")]
pub use process::run_engine_process;
pub use program::{ENGINE, EngineProgram};

/// An engine that starts `program` for scripts and gives each message `limit`; `None` without a program or the feature
/// `js-tracers`.
#[cfg_attr(not(feature = "js-tracers"), allow(unused_variables, reason = "nothing takes time"))]
pub(crate) fn engine(program: Option<&EngineProgram>, limit: Duration) -> Option<Arc<dyn ScriptEngine>> {
    #[cfg(feature = "js-tracers")]
    return Some(Arc::new(engine::JsEngine::new(program?.clone(), limit)));
    #[cfg(not(feature = "js-tracers"))]
    return None;
}
