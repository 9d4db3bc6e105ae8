//! The `rootlight` binary.
fn main() {}
