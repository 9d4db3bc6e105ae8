//! Rootlight WebAssembly host.
