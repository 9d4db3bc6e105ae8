//! Short polls of subscriptions, which run on the thread that serves the connection, because moving them to another thread would take
//! longer.

use std::sync::Arc;

use alloy_primitives::B256;
use rootlight::engine::{BlockHeader, FilterChanges, Snapshot};
use rootlight::rpc::{Caller, LocalClient, sync_status};
use rootlight::types::json::RpcHead;
use serde::Serialize;

/// Most headers whose JSON is cached. Each takes some 2 KiB.
const MAX_HEADS: usize = 16;

/// The answer to a poll of a subscription.
pub(super) enum PollResult {
    /// The new results: the `result` of each notification, in JSON.
    News(Vec<Arc<str>>),
    /// The subscription does not exist, or it missed something.
    Gone,
}

/// The JSON of the headers that were reported last, which all subscriptions to headers share.
#[derive(Default)]
pub(super) struct HeaderJsonCache(Vec<(B256, Arc<str>)>);

impl HeaderJsonCache {
    /// The notifications of a subscription of a caller, if a poll of it is short: it reports no logs, and little has
    /// happened since the last one. `snapshot` is the present chain; `now` is in seconds since 1970. Returns `None`
    /// otherwise, or if a look-up fails: the subscription stays as it is, and a longer poll reports its changes.
    pub(super) fn poll(
        &mut self,
        client: &mut LocalClient,
        caller: &Caller,
        subscription: u128,
        snapshot: &dyn Snapshot,
        now: u64,
    ) -> Option<PollResult> {
        let (owner, filters) = (caller.owner(), client.node().filters());
        filters.set_owner(owner);
        let view = snapshot.view_of(owner.asker, now, &|| false);
        if !filters.poll_is_short(subscription, &*view, now) {
            return None;
        }
        let Some(changes) = filters.poll(subscription, &*view, now).ok()? else {
            return Some(PollResult::Gone);
        };
        let news: Option<Vec<_>> = match changes {
            FilterChanges::Hashes(hashes) => hashes.iter().map(json).collect(),
            FilterChanges::Heads(new) => new.iter().map(|header| self.json_of(header)).collect(),
            FilterChanges::Syncing(turned) => {
                let status = |status| Some(sync_status(status).ok()?.value.get().into());
                turned.into_iter().map(status).collect()
            }
            // `poll_is_short` refuses subscriptions to logs.
            FilterChanges::Logs(_) => None,
        };
        // The filter counts the changes as reported, so a failure to write them must end the subscription.
        Some(news.map_or(PollResult::Gone, PollResult::News))
    }

    /// The JSON of a header as a notification has it.
    fn json_of(&mut self, header: &BlockHeader) -> Option<Arc<str>> {
        let hash = header.hash();
        if let Some((_, known)) = self.0.iter().rev().find(|(known, _)| *known == hash) {
            return Some(known.clone());
        }
        let written = json(&RpcHead::new(header))?;
        if self.0.len() >= MAX_HEADS {
            self.0.remove(0);
        }
        self.0.push((hash, written.clone()));
        Some(written)
    }
}

fn json(value: &impl Serialize) -> Option<Arc<str>> {
    Some(serde_json::to_string(value).ok()?.into())
}
