//! Tests of the trie and of state read from its nodes.

#[path = "../support/mod.rs"]
mod support;

mod proof_rules;
mod properties;
mod rules;
mod state_recorded;
mod vectors;
