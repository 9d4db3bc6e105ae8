//! The slots of a light client.

use std::sync::Arc;

use super::finder::Finder;
use super::shared::{SlotContext, SlotOptions};
use super::slot::PeerSlot;
use crate::SharedUpstream;

/// Starts slots that take nodes from the finder's book; must be called inside a runtime.
#[must_use]
pub fn start_slots(finder: Finder, options: SlotOptions) -> Vec<SharedUpstream> {
    finder.book().avoid(&options.avoid);
    let count = options.count;
    let shared = Arc::new(SlotContext::new(finder, options));
    (0..count).map(|index| Arc::new(PeerSlot::start(index, shared.clone())) as SharedUpstream).collect()
}
