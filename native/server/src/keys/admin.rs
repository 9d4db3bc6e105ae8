//! Commands on keys, as `rootlight keys` gives them: to the database, or to the server that has it open.

use serde::{Deserialize, Serialize};

use super::error::KeyError;
use super::meter::Usage;
use super::record::Record;
use super::registry::Registry;
use super::rules::{Change, Rules};

/// A command.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
pub enum Command {
    /// Make a key.
    Create {
        /// Its name and limits.
        change: Change,
    },
    /// List the keys.
    List,
    /// Revoke a key, for good.
    Revoke {
        /// Its id.
        id: String,
    },
    /// Change the name or limits of a key.
    Limit {
        /// Its id.
        id: String,
        /// What to change.
        change: Change,
    },
}

/// A key as it is listed: all of it but the hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The id.
    pub id: String,
    /// What the operator calls it.
    pub name: String,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// When it was revoked, in seconds since 1970.
    pub revoked: Option<u64>,
    /// What it allows.
    pub rules: Rules,
    /// What it has been used for.
    pub usage: Usage,
}

impl Listed {
    /// What lists show of a key.
    #[must_use]
    pub fn new(record: &Record, usage: Usage) -> Self {
        let Record { id, name, created, revoked, rules, .. } = record.clone();
        Self { id, name, created, revoked, rules, usage }
    }
}

/// What a command gives.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// The new key. Its text is shown this once.
    Created {
        /// The whole text, `id.secret`.
        key: String,
    },
    /// The keys, by the time they were made.
    Keys(Vec<Listed>),
    /// The key as it is now.
    Changed(Box<Listed>),
    /// The command failed.
    Failed(String),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// As the functions of [`Registry`].
    pub fn run(&self, registry: &Registry) -> Result<Reply, KeyError> {
        let changed = |(record, usage): (_, Usage)| {
            let record: std::sync::Arc<Record> = record;
            Reply::Changed(Box::new(Listed::new(&record, usage)))
        };
        match self {
            Self::Create { change } => Ok(Reply::Created { key: registry.create(change)?.0.reveal() }),
            Self::List => {
                let listed = registry.list().into_iter().map(|(record, usage)| Listed::new(&record, usage));
                Ok(Reply::Keys(listed.collect()))
            }
            Self::Revoke { id } => registry.revoke(id).map(changed),
            Self::Limit { id, change } => registry.limit(id, change).map(changed),
        }
    }
}
