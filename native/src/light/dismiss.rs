//! When a source that others can replace is given up.

use rootlight::light::{HeaderSync, SyncCause, UpstreamState};

use super::shared::Shared;
use crate::upstream::Dismissal;

/// Demerits at which a source is of no use: as many failures, without the good exchanges that cancel them.
const MAX_DEMERITS: u32 = 48;

/// A source this many blocks behind the verified head is of no use. A block takes half a minute.
const MAX_BEHIND: u64 = 60;

impl Shared {
    /// Why the present source of an upstream should give its place to another one, if it should.
    pub(super) fn dismissal(&self, upstream: usize) -> Option<Dismissal> {
        let sync = self.client.sync();
        let state = sync.upstreams().into_iter().nth(upstream)?;
        dismissal(&sync, &state)
    }
}

fn dismissal(sync: &HeaderSync, state: &UpstreamState) -> Option<Dismissal> {
    if let Some(lie) = state.record.evidence.iter().rev().find(|evidence| evidence.lie) {
        let text = format!("{} {}: {}", lie.request.method, lie.request.params, lie.rule);
        return Some(Dismissal::Lied(text));
    }
    let useless = |why: String| Some(Dismissal::Useless(why));
    if let Some((_, fault)) = &state.resting {
        let gone = match &fault.cause {
            // In a start by work, the source proposes its chain again, which may be the heavier one.
            SyncCause::Unlinked => !sync.is_by_work(),
            SyncCause::TooLittleWork(_) => true,
            _ => false,
        };
        if gone {
            return useless(fault.to_string());
        }
    }
    if state.record.demerits >= MAX_DEMERITS {
        return useless(format!("{} demerits", state.record.demerits));
    }
    let head = sync.chain().filter(|_| sync.is_synced())?.head().number;
    let behind = head.saturating_sub(state.announced?);
    if behind > MAX_BEHIND { useless(format!("{behind} blocks behind the verified head")) } else { None }
}
