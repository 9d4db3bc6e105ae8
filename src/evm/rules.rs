//! The rules that execution asks about: the consensus layer's, by height.

pub use crate::consensus::{Rule, RuleSet};
