//! The interface of a server to the stores of API keys, their counters, their filters and events.
//!
//! [`KeyDatabase`](super::KeyDatabase) implements the traits for one process. `native/cluster/src/keys` implements them for several
//! servers that share a database; the comment of each trait says what such an implementation needs in addition.

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
    /// The store of the keys does not answer. Whether the key exists is then unknown.
    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Arc<KeyRecord>>, Unavailable>>;

    /// The server calls this method for an id that exists but came with a wrong secret. It must take as long as [`Self::find`]
    /// takes for an id that does not exist, because otherwise the time of a refusal would show which ids exist. By default it
    /// does nothing, which is right if `find` looks up both kinds of ids in memory.
    fn refuse<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, Result<(), Unavailable>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The store of the keys cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the API keys cannot be reached")]
pub struct Unavailable;

/// The counters of the keys.
pub trait Quotas: Send + Sync + 'static {
    /// Counts a message of a key if it is within the limits, in one atomic step, and returns how much is left of them; `None`
    /// without limits. An implementation whose counters cannot be reached has to decide for itself whether it admits
    /// the message.
    fn take<'a>(
        &'a self,
        key: &'a KeyRecord,
        charge: &'a Charge,
    ) -> BoxFuture<'a, Result<Option<LimitStatus>, Exceeded>>;

    /// The usage of each key by its id, for metrics. An implementation that cannot list its keys returns an empty list.
    fn usage(&self) -> Vec<(String, KeyUsage)> {
        Vec::new()
    }
}

/// Gives each key the number under which the engine stores its filters and subscriptions.
pub trait FilterOwners: Send + Sync + 'static {
    /// The number that owns the filters of a key. It is the same for all connections of the key and for no other key.
    ///
    /// Where several servers share the keys, a poll must also reach the server whose engine has the filter.
    fn owner(&self, key: &KeyRecord) -> u32;
}

/// Announces events to all connections and, in a cluster, to all servers.
pub trait ChangeNotifier: Send + Sync + 'static {
    /// Announces a change.
    fn publish(&self, topic: Topic);

    /// Returns a value that differs after each announcement.
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
