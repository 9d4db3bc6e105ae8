//! API keys: who may call, what and how often.
//!
//! A key is `id.secret`. The id names it in lists, logs and commands; the secret is shown once, when the key is made,
//! and only its hash is kept. Secrets have 256 random bits, so that no slow hash is needed to protect them.
//!
//! Four traits separate the server from where its keys, counters, filters and events are kept: [`Keys`], [`Quotas`],
//! [`Filters`] and [`Fanout`]. [`Registry`] implements all of them for one process, with a redb database and memory.

mod admin;
mod control;
mod error;
mod gcra;
mod inspect;
#[cfg(test)]
mod inspect_test;
mod meter;
mod record;
mod registry;
mod rules;
mod secret;
mod store;
mod traits;

pub use admin::{Command, Listed, Reply};
#[cfg(unix)]
pub use control::ask;
pub use control::{Running, start};
pub use error::KeyError;
pub use gcra::{Gcra, Rate};
pub(crate) use inspect::{Inspected, Unfit, inspect};
pub use meter::{Charge, Exceeded, Standing, Usage, Window, day_of};
pub use record::Record;
pub use registry::{MAX_KEYS, Registry};
pub use rules::{Change, MAX_ENTRIES, Rules};
pub use secret::{KeyText, hash, is_id};
pub use traits::{Fanout, Filters, Keys, Quotas, Topic, Unavailable};
