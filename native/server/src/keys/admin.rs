//! Commands on API keys, as `rootlight keys` gives them: to the database of keys, or to the server that has the database open
//! (`control.rs`).

use serde::{Deserialize, Serialize};

use super::error::KeyError;
use super::key_database::KeyDatabase;
use super::meter::KeyUsage;
use super::record::KeyRecord;
use super::rules::{KeyChange, KeyRules};

/// A command on API keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "lowercase", deny_unknown_fields)]
pub enum Command {
    /// Make a key.
    Create {
        /// Its name and limits.
        change: KeyChange,
    },
    /// List the keys.
    List,
    /// Revoke a key, for good.
    Revoke {
        /// The id of the key.
        id: String,
    },
    /// Change the name or limits of a key.
    Limit {
        /// The id of the key.
        id: String,
        /// The changes.
        change: KeyChange,
    },
}

/// A key as lists show it: without the hash of its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeySummary {
    /// The id.
    pub id: String,
    /// The key's name for the operator.
    pub name: String,
    /// When the key was made, in seconds since 1970.
    pub created: u64,
    /// When the key was revoked, in seconds since 1970; `None` if it is valid.
    pub revoked: Option<u64>,
    /// The key's rights and limits.
    pub rules: KeyRules,
    /// What the key has been used for.
    pub usage: KeyUsage,
}

impl KeySummary {
    /// A key as lists show it.
    #[must_use]
    pub fn new(record: &KeyRecord, usage: KeyUsage) -> Self {
        let KeyRecord { id, name, created, revoked, rules, .. } = record.clone();
        Self { id, name, created, revoked, rules, usage }
    }
}

/// The result of a command.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandReply {
    /// The new key. Its text is in this reply only.
    Created {
        /// The whole text, `id.secret`.
        key: String,
    },
    /// The keys, by the time they were made.
    Keys(Vec<KeySummary>),
    /// The key as it is now.
    Changed(Box<KeySummary>),
    /// The command failed.
    Failed(String),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// As the functions of [`KeyDatabase`].
    pub fn run(&self, database: &KeyDatabase) -> Result<CommandReply, KeyError> {
        let changed = |(record, usage): (_, KeyUsage)| {
            let record: std::sync::Arc<KeyRecord> = record;
            CommandReply::Changed(Box::new(KeySummary::new(&record, usage)))
        };
        match self {
            Self::Create { change } => Ok(CommandReply::Created { key: database.create(change)?.0.reveal() }),
            Self::List => {
                let listed =
                    database.list().into_iter().map(|(record, usage)| KeySummary::new(&record, usage));
                Ok(CommandReply::Keys(listed.collect()))
            }
            Self::Revoke { id } => database.revoke(id).map(changed),
            Self::Limit { id, change } => database.limit(id, change).map(changed),
        }
    }
}
