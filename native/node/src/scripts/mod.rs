//! Tracers in JavaScript, with the feature `js-tracers`.
//!
//! Each script runs in a process of its own, started from [`EngineProgram`]. Without such a program scripts are refused, because a
//! library cannot know what its program does when it is started again. A thread would not do, because QuickJS checks the time only
//! between instructions and one built-in call can take hours: killing a process ends the script and frees its memory.
//!
//! | file | contents |
//! |---|---|
//! | `engine` | in the program: starts processes, reports the run, answers queries |
//! | `process`, `context`, `prelude.js` | in the process: its loop and rights; the tracing; the objects that scripts see |
//! | `frame`, `program_pipe` | the messages between the two |
//! | `program` | the program to start |

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
