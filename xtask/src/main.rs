//! Build and test tasks.
fn main() {}
