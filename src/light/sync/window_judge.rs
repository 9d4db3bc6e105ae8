//! The interface for judging a start by window by another chain, such as Bitcoin's, which dates the work of its headers.

use alloc::string::String;
use core::fmt;

use crate::{
    consensus::ChainView,
    light::{bitcoin::BitcoinFollower, clock::Now},
    types::U256,
};

/// Judges by another chain, such as Bitcoin's, when the headers of a window were mined.
///
/// Calls take some milliseconds at most. Headers that were restored and are not proven yet ([`ChainView::unproven`]) must
/// not count.
pub trait WindowJudge: fmt::Debug + Send + Sync {
    /// Judges the headers above a chain's base. `bitcoin` is the Bitcoin chain that the client follows
    /// ([`HeaderSync::follow_bitcoin`](super::HeaderSync::follow_bitcoin)).
    fn judge(&self, chain: &ChainView, bitcoin: Option<&BitcoinFollower>, now: Now) -> WindowVerdict;

    /// Whether the other chain supports these headers so well that the start need not wait for upstreams that are slow.
    fn supports(&self, chain: &ChainView, bitcoin: Option<&BitcoinFollower>, now: Now) -> bool {
        let _ = (chain, bitcoin, now);
        false
    }
}

/// The verdict of dated work on a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowVerdict {
    /// The headers show enough dated work: this much.
    Enough(U256),
    /// The headers show too little dated work; the text says why.
    Refused(String),
    /// The other chain is being fetched: judge again later. The client gives no answers meanwhile, so this must end soon.
    Wait,
    /// There is no other chain that dates the work: the network's built-in numbers decide.
    Unavailable,
}
