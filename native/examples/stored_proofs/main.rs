//! Measures proofs from a node's store: what the reads themselves cost, and what whole answers cost.
//!
//!     cargo run --release -p rootlight-native --features rskj-store --example stored_proofs -- CHAIN STORE
//!
//! `CHAIN` is a recording of the chain, `STORE` the node's database folder at its end.

#[cfg(feature = "rskj-store")]
mod measure;

#[cfg(feature = "rskj-store")]
fn main() -> Result<(), measure::Failure> {
    measure::run()
}

#[cfg(not(feature = "rskj-store"))]
fn main() {
    eprintln!("build with --features rskj-store");
}
