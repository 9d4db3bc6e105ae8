//! Tracers in JavaScript, with the feature `js-tracers`.
//!
//! A script runs in a process of its own, of the program that the options of a service name ([`EngineProgram`]). Without one,
//! scripts are refused: a library cannot know what its program does when it is started again. Within a process, QuickJS
//! notices the end of a script's time only between instructions of the script, and one call of a built-in function can take
//! hours. A process ends at once, and takes its memory and any fault of the engine with it.

#[cfg(feature = "js-tracers")]
mod context;
#[cfg(feature = "js-tracers")]
mod engine;
#[cfg(feature = "js-tracers")]
mod frame;
#[cfg(feature = "js-tracers")]
mod peer;
#[cfg(feature = "js-tracers")]
mod process;
mod program;
#[cfg(all(test, feature = "js-tracers"))]
mod scripts_test;

use std::sync::Arc;
use std::time::Duration;

use rootlight::exec::trace::ScriptEngine;

#[cfg(feature = "js-tracers")]
pub use process::main;
pub use program::{ENGINE, EngineProgram};

/// An engine in processes of this program, which gives a message so much time; `None` without a program or the feature
/// `js-tracers`.
#[cfg_attr(not(feature = "js-tracers"), allow(unused_variables, reason = "nothing takes time"))]
pub(crate) fn engine(program: Option<&EngineProgram>, limit: Duration) -> Option<Arc<dyn ScriptEngine>> {
    #[cfg(feature = "js-tracers")]
    return Some(Arc::new(engine::JsEngine::new(program?.clone(), limit)));
    #[cfg(not(feature = "js-tracers"))]
    return None;
}
