//! The interface of a server to the stores of keys, counters, filters and events.
//!
//! [`Registry`](super::Registry) keeps them in one process. Several servers that share a database implement the same
//! traits; what they need besides is said at each trait.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::watch;

use super::meter::{Charge, Exceeded, KeyUsage, LimitStatus};
use super::record::KeyRecord;

/// The keys.
pub trait KeyLookup: Send + Sync + 'static {
    /// The key with this id, revoked ones included. The server calls it for every request, also for ids that do not
    /// exist, and compares the secret itself. An implementation must therefore answer from memory; one with a remote
    /// database also has to remember for a while which ids do not exist.
    ///
    /// # Errors
    /// The keys cannot be asked for, which says nothing about the key.
    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Arc<KeyRecord>>, Unavailable>>;

    /// Does what [`Self::find`] does for an id that does not exist, for one that does and came with a wrong secret:
    /// otherwise the time of a refusal would tell which ids exist. Nothing, where both are looked up in memory.
    fn refuse<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, Result<(), Unavailable>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The place where the keys are cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the API keys cannot be reached")]
pub struct Unavailable;

/// The counters of the keys.
pub trait Quotas: Send + Sync + 'static {
    /// Counts a message of a key if it is within the limits, in one step, and returns what is left of them; `None`
    /// without limits. An implementation whose counters cannot be reached has to decide for itself whether it admits
    /// the message.
    fn take<'a>(
        &'a self,
        key: &'a KeyRecord,
        charge: &'a Charge,
    ) -> BoxFuture<'a, Result<Option<LimitStatus>, Exceeded>>;

    /// The usage of each key by its id, for metrics. An implementation that cannot list its keys gives none.
    fn usage(&self) -> Vec<(String, KeyUsage)> {
        Vec::new()
    }
}

/// The filters and subscriptions of the keys. The engine keeps them by the number of their owner.
pub trait FilterOwners: Send + Sync + 'static {
    /// The number that owns the filters of a key. It is the same for all connections of the key and for no other key.
    ///
    /// Several servers need one thing more: a poll must reach the server whose engine has the filter.
    fn owner(&self, key: &KeyRecord) -> u32;
}

/// Events that all connections and, in a cluster, all servers must learn of.
pub trait ChangeNotifier: Send + Sync + 'static {
    /// Announces a change.
    fn publish(&self, topic: Topic);

    /// A value that differs after each announcement.
    fn listen(&self, topic: Topic) -> watch::Receiver<u64>;
}

/// The subject of an announcement. Changes of the chain are not among them: each engine announces its own by
/// [`Service::changes`](crate::service::Service::changes), and front ends tell each other of blocks in
/// `rootlight_cluster::serve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// A key was made, changed or revoked.
    Keys,
}
