//! Reports for the admin page: keys by their names, usage by day, and the state of the database.

use std::collections::BTreeMap;
use std::time::Instant;

use rootlight_limits::unix_time::{DAY, unix_time};
use rootlight_server::keys::KeySummary;
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::admin::{ClusterKeys, KeyPage, MAX_PAGE};
use super::error::ClusterKeyError;
use super::rows::{from_bigint, to_integer};
use super::search;

/// Most days of a report.
pub const MAX_DAYS: u32 = 400;

/// The front ends that wrote usage within a day, with the seconds since then: at most 100, the last one first.
const FRONT_ENDS: &str = "SELECT front_end, extract(epoch FROM now() - at)::bigint FROM service.flushes \
    WHERE at > now() - interval '1 day' ORDER BY at DESC LIMIT 100";

/// The size of the database, and the highest number that a key has: no key is ever removed.
const STATE: &str = "SELECT current_setting('server_version'), pg_database_size(current_database()), \
    coalesce((SELECT number FROM service.keys ORDER BY number DESC LIMIT 1), 0)";

/// The usage of one key by day.
const KEY_DAYS: &str = "SELECT d.day, d.requests, d.weight, d.refused FROM service.usage_days d \
    JOIN service.keys k ON k.number = d.number WHERE k.id = $1 AND d.day > $2 ORDER BY d.day LIMIT $3";
/// The usage of all keys by day.
const DAYS: &str = "SELECT day, requests, weight, refused FROM service.usage_totals \
    WHERE day > $1 ORDER BY day LIMIT $2";
/// Requests of all keys by class: the namespaces of the method table and a few labels, so far fewer than 100.
const CLASSES: &str =
    "SELECT class, requests FROM service.usage_class_totals ORDER BY requests DESC LIMIT 100";

/// The usage of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DayUsage {
    /// The day (UTC), in days since 1970.
    pub day: u64,
    /// Requests within the limits.
    pub requests: u64,
    /// The weight of the requests.
    pub weight: u64,
    /// Messages that a limit refused.
    pub refused: u64,
}

/// The usage of all keys together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceUsage {
    /// By day; days without use are left out.
    pub days: Vec<DayUsage>,
    /// Requests of all days by namespace of their methods.
    pub classes: BTreeMap<String, u64>,
}

/// A front end as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FrontEndUsage {
    /// The name, a random one for each start of the front end.
    pub name: String,
    /// Seconds since it last wrote usage.
    pub(crate) seconds_ago: u64,
}

/// The state of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseReport {
    /// The version of the server.
    pub version: String,
    /// Size of the database, in bytes.
    pub bytes: u64,
    /// The highest number of a key, which is at least the number of keys: a creation that failed may have used a number.
    pub keys: u64,
    /// Time that the report's first statement took, in microseconds.
    pub micros: u64,
    /// The front ends that wrote usage within a day, at most 100, the last one first.
    pub front_ends: Vec<FrontEndUsage>,
}

impl ClusterKeys {
    /// Keys whose name (whatever the case of its letters) or id begins with a text, at most [`MAX_PAGE`]; names first.
    /// `after` is [`KeyPage::next`] of the page before; `None` for the first page.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn search(
        &self,
        text: &str,
        after: Option<&str>,
        most: u32,
    ) -> Result<KeyPage, ClusterKeyError> {
        let most = usize::try_from(most.clamp(1, MAX_PAGE)).unwrap_or(1);
        let today = unix_time() / DAY;
        let found =
            self.connection.run(async |client| search::search(client, text, after, most, today).await).await;
        let (found, next) = found?;
        let keys = found.into_iter().map(|(record, usage)| KeySummary::new(&record, usage)).collect();
        Ok(KeyPage { keys, next })
    }

    /// The usage of a key on the last days, at most [`MAX_DAYS`]; days without use are left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn usage(&self, id: &str, days: u32) -> Result<Vec<DayUsage>, ClusterKeyError> {
        let (first, most) = day_range(days);
        let rows = self.connection.run(async |client| {
            let values = [(&id as _, Type::TEXT), (&first as _, Type::INT4), (&most as _, Type::INT8)];
            Ok(client.query_typed(KEY_DAYS, &values).await?)
        });
        rows.await?.iter().map(day_usage).collect()
    }

    /// The usage of all keys on the last days, at most [`MAX_DAYS`].
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn service_usage(&self, days: u32) -> Result<ServiceUsage, ClusterKeyError> {
        let (first, most) = day_range(days);
        let rows = self.connection.run(async |client| {
            let values = [(&first as _, Type::INT4), (&most as _, Type::INT8)];
            let days = client.query_typed(DAYS, &values).await?;
            Ok((days, client.query_typed(CLASSES, &[]).await?))
        });
        let (days, classes) = rows.await?;
        let class = |row: &Row| Ok((row.try_get(0)?, from_bigint(row.try_get(1)?)));
        Ok(ServiceUsage {
            days: days.iter().map(day_usage).collect::<Result<_, _>>()?,
            classes: classes.iter().map(class).collect::<Result<_, ClusterKeyError>>()?,
        })
    }

    /// The state of the database.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn report(&self) -> Result<DatabaseReport, ClusterKeyError> {
        let read = self.connection.run(async |client| {
            let asked = Instant::now();
            let state = client.query_typed_one(STATE, &[]).await?;
            let micros = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
            Ok((state, micros, client.query_typed(FRONT_ENDS, &[]).await?))
        });
        let (state, micros, front_ends) = read.await?;
        let front_end = |row: &Row| {
            Ok(FrontEndUsage { name: row.try_get(0)?, seconds_ago: from_bigint(row.try_get(1)?) })
        };
        Ok(DatabaseReport {
            version: state.try_get(0)?,
            bytes: from_bigint(state.try_get(1)?),
            keys: from_bigint(state.try_get::<_, i32>(2)?.into()),
            micros,
            front_ends: front_ends.iter().map(front_end).collect::<Result<_, ClusterKeyError>>()?,
        })
    }
}

/// The day before the first one of the last `days`, in days since 1970, and the number of days.
fn day_range(days: u32) -> (i32, i64) {
    let days = days.clamp(1, MAX_DAYS);
    (to_integer((unix_time() / DAY).saturating_sub(days.into())), days.into())
}

fn day_usage(row: &Row) -> Result<DayUsage, ClusterKeyError> {
    Ok(DayUsage {
        day: from_bigint(row.try_get::<_, i32>(0)?.into()),
        requests: from_bigint(row.try_get(1)?),
        weight: from_bigint(row.try_get(2)?),
        refused: from_bigint(row.try_get(3)?),
    })
}
