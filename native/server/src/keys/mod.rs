//! API keys: which clients may call, which methods, and how often.
//!
//! A key is `id.secret`. The id names the key in lists, logs and commands; the secret is shown once, when the key is made,
//! and only its hash is stored. Secrets have 256 random bits, so that no slow hash is needed to protect them.
//!
//! Four traits separate the server from the stores of its keys, counters, filters and events: [`KeyLookup`], [`Quotas`],
//! [`FilterOwners`] and [`ChangeNotifier`]. [`KeyDatabase`] implements all of them for one process, with a redb database and
//! memory; `native/cluster/src/keys` implements them for several servers that share a database.

mod admin;
mod control;
mod error;
mod gcra;
mod inspect;
#[cfg(test)]
mod inspect_test;
mod key_database;
mod meter;
mod record;
mod rules;
mod secret;
mod store;
mod traits;

pub use admin::{Command, CommandReply, KeySummary};
#[cfg(unix)]
pub use control::ask;
pub use control::{KeyTasks, start};
pub use error::KeyError;
pub use gcra::{Gcra, Rate};
pub(crate) use inspect::{Inspected, NotAllowed, inspect};
pub use key_database::{KeyDatabase, MAX_KEYS};
pub use meter::{Charge, Exceeded, KeyUsage, LimitPeriod, LimitStatus, day_of};
pub use record::KeyRecord;
pub use rules::{KeyChange, KeyRules, MAX_ENTRIES};
pub use secret::{KeyText, hash, is_id};
pub use traits::{ChangeNotifier, FilterOwners, KeyLookup, Quotas, Topic, Unavailable};
