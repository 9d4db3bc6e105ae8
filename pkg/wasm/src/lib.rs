//! Rootlight for browsers and Node.js: a thin layer over the core. It converts JavaScript values to bytes and back, and
//! waits; all decisions about validity are in the core.
//!
//! The features `light`, `dev` and `verify` select what a module contains; `xtask/src/wasm.rs` builds the package's three modules. With the
//! feature `module` the crate has no standard library: a panic is then a trap, and the optimiser drops its message.
#![cfg_attr(feature = "module", no_std)]

extern crate alloc;

#[cfg(feature = "light")]
mod alarm;
#[cfg(feature = "dev")]
mod callers;
#[cfg(feature = "light")]
mod client;
#[cfg(feature = "light")]
mod config;
#[cfg(feature = "dev")]
mod dev;
#[cfg(feature = "light")]
mod driver;
#[cfg(feature = "light")]
mod effects;
#[cfg(feature = "dev")]
mod fork;
#[cfg(feature = "light")]
mod hedge;
#[cfg(feature = "light")]
mod host;
#[cfg(feature = "light")]
mod methods;
#[cfg(feature = "light")]
mod options;
#[cfg(feature = "light")]
mod queue;
#[cfg(feature = "light")]
mod sends;

#[cfg(feature = "verify")]
mod verify;

#[cfg(feature = "light")]
pub use client::Client;
#[cfg(feature = "dev")]
pub use dev::DevChain;
#[cfg(feature = "light")]
pub use methods::methods;
#[cfg(feature = "verify")]
pub use verify::{keccak256, verify};

/// The allocator of the modules. Tests of this crate on the build machine use that machine's allocator.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static HEAP: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

/// A panic ends the instance of the module: `pkg/instance.js` catches the trap and ends the provider with an error that says so.
#[cfg(feature = "module")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
