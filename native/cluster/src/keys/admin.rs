//! Commands on the keys of a service on many machines, for `rootlight keys` and the admin page. A change is written to the
//! database first, then announced to the hot store and the front ends.

use std::sync::Arc;
use std::time::Duration;

use rootlight_index::Database;
use rootlight_limits::unix_time::{DAY, unix_time};
use rootlight_server::keys::{
    KeyChange, KeyError, KeyRecord, KeyRules, KeySummary, KeyText, KeyUsage, is_id,
};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Transaction};
use tracing::warn;

use super::connection::LazyConnection;
use super::error::ClusterKeyError;
use super::rows::{self, VersionedKey, to_bigint};
use super::{key_copies, schema};
use crate::Seal;
use crate::store::HotStore;

/// Longest time of a command.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// Most keys in one page of a list.
pub const MAX_PAGE: u32 = 1_000;

/// The keys of a service on many machines, for commands.
pub struct ClusterKeys {
    pub(super) connection: LazyConnection,
    /// `None` if the store cannot be reached: front ends then learn of changes from the database.
    store: Option<Arc<HotStore>>,
    seal: Seal,
}

impl std::fmt::Debug for ClusterKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterKeys").field("store", &self.store.is_some()).finish_non_exhaustive()
    }
}

/// A page of the list of keys.
#[derive(Debug)]
pub struct KeyPage {
    /// The keys: of [`ClusterKeys::list`] in the order in which they were made, of [`ClusterKeys::search`] by name and id.
    pub keys: Vec<KeySummary>,
    /// Where the next page begins: for [`ClusterKeys::list`] the id of the last key, for [`ClusterKeys::search`] the text that
    /// it takes; `None` on the last page.
    pub next: Option<String>,
}

impl ClusterKeys {
    /// Opens the keys, and brings their schema to the newest version.
    ///
    /// # Errors
    /// [`ClusterKeyError`]: the database cannot be reached or used.
    pub async fn open(database: Database, store: Option<Arc<HotStore>>) -> Result<Self, ClusterKeyError> {
        let connection = LazyConnection::new(database, COMMAND_TIME);
        let secret = connection.run(async |client| {
            schema::migrate(client).await?;
            schema::secret(client).await
        });
        let seal = Seal::new(secret.await?);
        Ok(Self { connection, store, seal })
    }

    /// Makes a key. Returns its text, which is stored nowhere (the database has its hash), and its record.
    ///
    /// # Errors
    /// The limits cannot be used, or the database cannot be written.
    pub async fn create(&self, change: &KeyChange) -> Result<(KeyText, KeyRecord), ClusterKeyError> {
        let (mut name, mut rules) = (String::new(), KeyRules::default());
        change.apply(&mut name, &mut rules)?;
        self.connection.run(async |client| insert(client, name, rules).await).await
    }

    /// Revokes a key, for good. Its open WebSockets are closed within a second.
    ///
    /// # Errors
    /// No key has this id, or the database cannot be written.
    pub async fn revoke(&self, id: &str) -> Result<KeySummary, ClusterKeyError> {
        self.edit(id, |record| {
            record.revoked.get_or_insert_with(unix_time);
            Ok(())
        })
        .await
    }

    /// Changes the name or limits of a key.
    ///
    /// # Errors
    /// No key has this id, it is revoked, a value cannot be used, or the database cannot be written.
    pub async fn limit(&self, id: &str, change: &KeyChange) -> Result<KeySummary, ClusterKeyError> {
        self.edit(id, |record| match record.revoked {
            Some(_) => Err(KeyError::Revoked(record.id.clone())),
            None => change.apply(&mut record.name, &mut record.rules),
        })
        .await
    }

    /// Lists at most `most` keys, and at most [`MAX_PAGE`], from the one after `after` on.
    ///
    /// # Errors
    /// No key has the id `after`, or the database cannot be read.
    pub async fn list(&self, after: Option<&str>, most: u32) -> Result<KeyPage, ClusterKeyError> {
        let most = most.clamp(1, MAX_PAGE);
        let found = self.connection.run(async |client| {
            let after = match after {
                None => 0,
                Some(id) => number_of(client, id).await?,
            };
            // One key more shows whether there is a next page.
            rows::page(client, after, i64::from(most).saturating_add(1), unix_time() / DAY).await
        });
        let mut found = found.await?;
        let more = found.len() > usize::try_from(most).unwrap_or(usize::MAX);
        if more {
            found.pop();
        }
        let keys: Vec<KeySummary> =
            found.into_iter().map(|(record, usage)| KeySummary::new(&record, usage)).collect();
        let next = keys.last().filter(|_| more).map(|key| key.id.clone());
        Ok(KeyPage { keys, next })
    }

    /// Changes a record by a function, writes it, and announces it if it differs.
    async fn edit(
        &self,
        id: &str,
        edit: impl FnOnce(&mut KeyRecord) -> Result<(), KeyError>,
    ) -> Result<KeySummary, ClusterKeyError> {
        let changed = self.connection.run(async |client| {
            let transaction = client.transaction().await?;
            let old = rows::lock(&transaction, id).await?.ok_or_else(|| unknown_id(id))?;
            let mut record = old.record.clone();
            edit(&mut record)?;
            let rate = |record: &KeyRecord| (record.rules.per_second, record.rules.burst());
            let new_rate = rate(&record) != rate(&old.record);
            let revision =
                if record == old.record { None } else { Some(update(&transaction, &record).await?) };
            let found = rows::with_id(&transaction, id, unix_time() / DAY).await?;
            let (record, usage): (KeyRecord, KeyUsage) = found.ok_or_else(|| unknown_id(id))?;
            transaction.commit().await?;
            Ok((record, usage, revision, new_rate))
        });
        let (record, usage, revision, new_rate) = changed.await?;
        if let Some(revision) = revision {
            self.announce(&VersionedKey { record: record.clone(), revision }, new_rate).await;
        }
        Ok(KeySummary::new(&record, usage))
    }

    /// Announces a change. `new_rate`: the limit per second has changed.
    async fn announce(&self, changed: &VersionedKey, new_rate: bool) {
        let announced = match &self.store {
            None => return,
            Some(store) => key_copies::announce(store, &self.seal, changed, new_rate).await,
        };
        if let Err(error) = announced {
            warn!("front ends learn of the change from the database: {error}");
        }
    }
}

fn unknown_id(id: &str) -> KeyError {
    // A malformed id may be a whole key with its secret, so the error does not repeat it.
    KeyError::Unknown(if is_id(id) { id.to_owned() } else { "ID".to_owned() })
}

/// The number of the key with this id.
async fn number_of(client: &Client, id: &str) -> Result<i32, ClusterKeyError> {
    let query = "SELECT number FROM service.keys WHERE id = $1";
    let row = client.query_typed_opt(query, &[(&id, Type::TEXT)]).await?;
    Ok(row.ok_or_else(|| unknown_id(id))?.try_get(0)?)
}

/// Rules as JSON.
fn rules_text(rules: &KeyRules) -> Result<String, ClusterKeyError> {
    let text = serde_json::to_string(rules);
    Ok(text.map_err(|error| KeyError::Invalid(error.to_string()))?)
}

/// Makes a key with a random text, and inserts its row.
async fn insert(
    client: &Client,
    name: String,
    rules: KeyRules,
) -> Result<(KeyText, KeyRecord), ClusterKeyError> {
    let query = "INSERT INTO service.keys (id, name, hash, created, rules) VALUES ($1, $2, $3, $4, $5::text::jsonb) \
                 ON CONFLICT (id) DO NOTHING RETURNING number";
    let (text, created) = (rules_text(&rules)?, unix_time());
    loop {
        let key = KeyText::random().map_err(KeyError::Random)?;
        let hash = key.hash();
        let values: [(&(dyn ToSql + Sync), Type); 5] = [
            (&key.id(), Type::TEXT),
            (&name, Type::TEXT),
            (&hash.as_slice(), Type::BYTEA),
            (&to_bigint(created), Type::INT8),
            (&text, Type::TEXT),
        ];
        // The statement returns no row if another key has this id; the next random key has another id.
        let Some(row) = client.query_typed_opt(query, &values).await? else { continue };
        let id = key.id().to_owned();
        let number = u32::try_from(row.try_get::<_, i32>(0)?)
            .map_err(|_| ClusterKeyError::Damaged { what: "the number", id: id.clone() })?;
        return Ok((key, KeyRecord { id, number, name, hash, created, revoked: None, rules }));
    }
}

/// Writes a changed key under a new revision, which it returns.
///
/// The revision is at least the time in milliseconds. A replica may become the primary before it has the newest revisions, which
/// front ends have read already; the next revision must be above these too.
async fn update(transaction: &Transaction<'_>, record: &KeyRecord) -> Result<i64, ClusterKeyError> {
    let query = "UPDATE service.state SET revision = \
                 greatest(revision + 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) RETURNING revision";
    let revision: i64 = transaction.query_typed_one(query, &[]).await?.try_get(0)?;
    let query = "UPDATE service.keys SET name = $2, revoked = $3, rules = $4::text::jsonb, revision = $5 WHERE id = $1";
    transaction
        .execute_typed(
            query,
            &[
                (&record.id, Type::TEXT),
                (&record.name, Type::TEXT),
                (&record.revoked.map(to_bigint), Type::INT8),
                (&rules_text(&record.rules)?, Type::TEXT),
                (&revision, Type::INT8),
            ],
        )
        .await?;
    Ok(revision)
}
