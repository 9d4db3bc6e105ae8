//! Reads keys and their usage from rows of PostgreSQL, in the tables of the schema `service`.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use rootlight_server::keys::{KeyRecord, KeyUsage};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};
use tracing::warn;

use super::error::ClusterKeyError;

/// The columns of a key, in the order in which [`read_key`] reads them.
const COLUMNS: &str = "k.id, k.number, k.name, k.hash, k.created, k.revoked, k.rules::text, k.revision";

/// A key with the revision of its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VersionedKey {
    pub(super) record: KeyRecord,
    pub(super) revision: i64,
}

/// Converts a count or a time to a `bigint`; a number of 2^63 or more becomes the largest `bigint`.
pub(super) fn to_bigint(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts a `bigint` that is never negative; a negative one becomes 0.
pub(super) fn from_bigint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Reads a row with [`COLUMNS`].
fn read_key(row: &Row) -> Result<VersionedKey, ClusterKeyError> {
    let id: String = row.try_get(0)?;
    let damaged = |what| ClusterKeyError::Damaged { what, id: id.clone() };
    let number = u32::try_from(row.try_get::<_, i32>(1)?).map_err(|_| damaged("the number"))?;
    let hash = B256::try_from(row.try_get::<_, &[u8]>(3)?).map_err(|_| damaged("the hash"))?;
    let rules = serde_json::from_str(row.try_get(6)?).map_err(|_| damaged("the rules"))?;
    let created = from_bigint(row.try_get(4)?);
    let revoked = row.try_get::<_, Option<i64>>(5)?.map(from_bigint);
    let (name, revision) = (row.try_get(2)?, row.try_get(7)?);
    Ok(VersionedKey { record: KeyRecord { id, number, name, hash, created, revoked, rules }, revision })
}

/// Reads rows, and leaves damaged ones out: one damaged row must not make the other keys unavailable.
fn readable(rows: &[Row]) -> Vec<VersionedKey> {
    let read = |row| read_key(row).inspect_err(|error| warn!("a key is left out: {error}"));
    rows.iter().filter_map(|row| read(row).ok()).collect()
}

/// The keys with these ids; unknown and damaged ones are left out.
pub(super) async fn find(client: &Client, ids: &[String]) -> Result<Vec<VersionedKey>, ClusterKeyError> {
    let query = format!("SELECT {COLUMNS} FROM service.keys k WHERE k.id = ANY($1)");
    Ok(readable(&client.query_typed(&query, &[(&ids, Type::TEXT_ARRAY)]).await?))
}

/// The key with this id, locked until the end of the transaction.
pub(super) async fn lock(
    transaction: &tokio_postgres::Transaction<'_>,
    id: &str,
) -> Result<Option<VersionedKey>, ClusterKeyError> {
    let query = format!("SELECT {COLUMNS} FROM service.keys k WHERE k.id = $1 FOR UPDATE");
    let rows = transaction.query_typed(&query, &[(&id, Type::TEXT)]).await?;
    rows.first().map(read_key).transpose()
}

/// The revision of the last change of any key.
pub(super) async fn revision(client: &Client) -> Result<i64, ClusterKeyError> {
    Ok(client.query_typed_one("SELECT revision FROM service.state", &[]).await?.try_get(0)?)
}

/// Keys that have changed.
pub(super) struct Changed {
    /// The changed keys whose rows can be read, in the order of their revisions.
    pub(super) keys: Vec<VersionedKey>,
    /// The ids of all changed keys, those with damaged rows included.
    pub(super) ids: Vec<String>,
    /// The revision of the last change; `None` if there is none.
    pub(super) last: Option<i64>,
}

/// The first keys that were changed after a revision, at most `most`, in the order of their revisions.
pub(super) async fn changes(client: &Client, after: i64, most: i64) -> Result<Changed, ClusterKeyError> {
    let query =
        format!("SELECT {COLUMNS} FROM service.keys k WHERE k.revision > $1 ORDER BY k.revision LIMIT $2");
    let rows = client.query_typed(&query, &[(&after, Type::INT8), (&most, Type::INT8)]).await?;
    let ids = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let last = rows.last().map(|row| row.try_get(7)).transpose()?;
    Ok(Changed { keys: readable(&rows), ids, last })
}

/// Keys with a number above `after`, at most `most`, with their usage, in ascending order. `today` is in days since 1970.
pub(super) async fn page(
    client: &Client,
    after: i32,
    most: i64,
    today: u64,
) -> Result<Vec<(KeyRecord, KeyUsage)>, ClusterKeyError> {
    let condition = "WHERE k.number > $1 ORDER BY k.number LIMIT $2";
    select(client, condition, "k.number", &[(&after, Type::INT4), (&most, Type::INT8)], today).await
}

/// The keys that `condition` chooses, with their usage. `condition` is an SQL text about the keys `k` from `WHERE` on, with
/// `ORDER BY` and `LIMIT`; `order` repeats its order, which a join does not preserve.
pub(super) async fn select(
    client: &Client,
    condition: &str,
    order: &str,
    values: &[(&(dyn ToSql + Sync), Type)],
    today: u64,
) -> Result<Vec<(KeyRecord, KeyUsage)>, ClusterKeyError> {
    let query = format!("{} ORDER BY {order}", with_usage(condition, today));
    let rows = client.query_typed(&query, values).await?;
    rows.iter().map(|row| read_used(row, today)).collect()
}

/// The key with this id and its usage.
pub(super) async fn with_id(
    client: &tokio_postgres::Transaction<'_>,
    id: &str,
    today: u64,
) -> Result<Option<(KeyRecord, KeyUsage)>, ClusterKeyError> {
    let query = with_usage("WHERE k.id = $1", today);
    let rows = client.query_typed(&query, &[(&id, Type::TEXT)]).await?;
    rows.first().map(|row| read_used(row, today)).transpose()
}

/// Converts a day (in days since 1970) to an `integer`.
pub(super) fn to_integer(day: u64) -> i32 {
    i32::try_from(day).unwrap_or(i32::MAX)
}

/// The statement that reads keys with their usage. The keys are chosen in a subquery: if all keys were joined with all usage
/// first, a page in the middle of a million keys would read half of the usage.
fn with_usage(condition: &str, today: u64) -> String {
    let today = to_integer(today);
    format!(
        "SELECT {COLUMNS}, coalesce(u.requests, 0), coalesce(u.weight, 0), coalesce(u.refused, 0), \
         coalesce(d.requests, 0), \
         (SELECT json_object_agg(c.class, c.requests)::text FROM service.usage_classes c WHERE c.number = k.number) \
         FROM (SELECT * FROM service.keys k {condition}) k LEFT JOIN service.usage u ON u.number = k.number \
         LEFT JOIN service.usage_days d ON d.number = k.number AND d.day = {today}"
    )
}

/// Reads a row of [`with_usage`]: the columns from 8 on follow those of the key.
fn read_used(row: &Row, today: u64) -> Result<(KeyRecord, KeyUsage), ClusterKeyError> {
    let record = read_key(row)?.record;
    let damaged = |_| ClusterKeyError::Damaged { what: "the usage", id: record.id.clone() };
    // `None` if the key has no requests yet.
    let classes: Option<&str> = row.try_get(12)?;
    let classes: BTreeMap<String, u64> =
        classes.map(serde_json::from_str).transpose().map_err(damaged)?.unwrap_or_default();
    let usage = KeyUsage {
        requests: from_bigint(row.try_get(8)?),
        weight: from_bigint(row.try_get(9)?),
        refused: from_bigint(row.try_get(10)?),
        classes,
        day: today,
        today: from_bigint(row.try_get(11)?),
    };
    Ok((record, usage))
}
