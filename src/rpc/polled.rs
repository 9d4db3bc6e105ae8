//! Short polls of subscriptions, which hosts run on the thread that serves the connection.

use alloc::{sync::Arc, vec::Vec};

use alloy_primitives::B256;

use super::{
    chain::sync_status,
    method::{Done, Failure, done},
};
use crate::{
    engine::{BlockHeader, Changes, Filters, Level, View},
    types::json::RpcHead,
};

/// Most headers whose JSON is kept. Each takes some 2 KiB.
const MAX_HEADS: usize = 16;

/// The answer to a poll of a subscription.
#[derive(Debug)]
pub enum Polled {
    /// What is new: the `result` of each notification, in JSON.
    News(Vec<Arc<str>>),
    /// The subscription does not exist, or it missed something.
    Gone,
}

/// The JSON of the headers that subscriptions were told last: all subscriptions to headers get the same text.
#[derive(Debug, Default)]
pub(super) struct HeadTexts(Vec<(B256, Arc<str>)>);

impl HeadTexts {
    fn of(&mut self, header: &BlockHeader) -> Result<Arc<str>, Failure> {
        let hash = header.hash();
        if let Some((_, known)) = self.0.iter().rev().find(|(known, _)| *known == hash) {
            return Ok(known.clone());
        }
        let written = text(done(&RpcHead::new(header), Level::Verified))?;
        if self.0.len() >= MAX_HEADS {
            self.0.remove(0);
        }
        self.0.push((hash, written.clone()));
        Ok(written)
    }
}

/// Polls a filter at `now` (seconds since 1970). Returns `None` if the poll may take long or its answer may be long, or
/// if a look-up fails. The filter stays as it is then, and `eth_getFilterChanges` polls it.
pub(super) fn poll(
    filters: &mut Filters,
    view: &dyn View,
    now: u64,
    id: u128,
    heads: &mut HeadTexts,
) -> Option<Polled> {
    if !filters.poll_is_short(id, view, now) {
        return None;
    }
    let Some(changes) = filters.poll(id, view, now).ok()? else { return Some(Polled::Gone) };
    let news: Result<Vec<_>, Failure> = match changes {
        Changes::Hashes(hashes) => hashes.iter().map(|hash| text(done(hash, Level::Verified))).collect(),
        Changes::Heads(new) => new.iter().map(|header| heads.of(header)).collect(),
        Changes::Syncing(turned) => turned.into_iter().map(|status| text(sync_status(status))).collect(),
        Changes::Logs(_) => return Some(Polled::Gone),
    };
    // The filter counts them as reported.
    Some(news.map_or(Polled::Gone, Polled::News))
}

fn text(done: Result<Done, Failure>) -> Result<Arc<str>, Failure> {
    Ok(done?.value.get().into())
}
