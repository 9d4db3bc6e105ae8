//! The usage of keys: counted in the front end, and added to the sums in PostgreSQL every few seconds. Each chunk of usage has a
//! number, by which the database adds it only once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rootlight_limits::unix_time::{DAY, unix_time};
use rootlight_server::keys::Charge;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Transaction};
use tracing::warn;

use super::connection::LazyConnection;
use super::error::ClusterKeyError;
use super::metrics::ServiceMetrics;
use super::rows::{to_bigint, to_integer};

/// Most pairs of day and key whose usage is kept until it is written. Usage of further keys is counted for [`NO_KEY`].
const MAX_ENTRIES: usize = 100_000;

/// Most pairs of day and key in one transaction: few enough that a slow database writes them within the time limit, and that
/// other front ends do not wait long for the rows of the sums.
const CHUNK_ENTRIES: usize = 2_000;

/// The number that stands for no key; numbers of keys begin at 1.
const NO_KEY: u32 = 0;

/// [`NO_KEY`] as the database's type.
const NO_KEY_INTEGER: i32 = 0;

/// Forgets front ends that have written no usage for 7 days. Their names are random for each start, so no front end that has stopped
/// comes back under its name.
const FORGET: &str = "DELETE FROM service.flushes WHERE at < now() - interval '7 days'";

/// Notes the number of a chunk, unless it or a higher one was noted before.
const NOTE: &str = "INSERT INTO service.flushes AS f (front_end, flush) VALUES ($1, $2) \
    ON CONFLICT (front_end) DO UPDATE SET flush = excluded.flush, at = now() WHERE f.flush < excluded.flush";

/// Adds usage to the sums of keys: number of the key, requests, weight, refused messages. Rows are locked in the order of their
/// numbers, so that two front ends never wait for each other in a circle.
const ADD: &str = "INSERT INTO service.usage AS u (number, requests, weight, refused) \
    SELECT n, sum(r), sum(w), sum(x) FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[]) AS t(n, r, w, x) \
    GROUP BY n ORDER BY n ON CONFLICT (number) DO UPDATE SET requests = u.requests + excluded.requests, \
    weight = u.weight + excluded.weight, refused = u.refused + excluded.refused";
/// Adds usage to the sums of keys by day.
const ADD_DAYS: &str = "INSERT INTO service.usage_days AS u (day, number, requests, weight, refused) \
    SELECT d, n, sum(r), sum(w), sum(x) FROM unnest($5::int4[], $1::int4[], $2::int8[], $3::int8[], $4::int8[]) AS t(d, n, r, w, x) \
    GROUP BY n, d ORDER BY n, d ON CONFLICT (number, day) DO UPDATE SET requests = u.requests + excluded.requests, \
    weight = u.weight + excluded.weight, refused = u.refused + excluded.refused";
/// Adds requests to the sums of keys by class.
const ADD_CLASSES: &str = "INSERT INTO service.usage_classes AS u (number, class, requests) \
    SELECT n, c, sum(r) FROM unnest($1::int4[], $2::text[], $3::int8[]) AS t(n, c, r) \
    GROUP BY n, c ORDER BY n, c ON CONFLICT (number, class) DO UPDATE SET requests = u.requests + excluded.requests";
/// Adds usage to the sums of all keys by day. These sums come last: front ends wait for each other at their few rows, until
/// the end of the transaction.
const ADD_TOTALS: &str = "INSERT INTO service.usage_totals AS u (day, requests, weight, refused) \
    SELECT d, sum(r), sum(w), sum(x) FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[]) AS t(d, r, w, x) \
    GROUP BY d ORDER BY d ON CONFLICT (day) DO UPDATE SET requests = u.requests + excluded.requests, \
    weight = u.weight + excluded.weight, refused = u.refused + excluded.refused";
/// Adds requests to the sums of all keys by class.
const ADD_CLASS_TOTALS: &str = "INSERT INTO service.usage_class_totals AS u (class, requests) \
    SELECT c, sum(r) FROM unnest($1::text[], $2::int8[]) AS t(c, r) \
    GROUP BY c ORDER BY c ON CONFLICT (class) DO UPDATE SET requests = u.requests + excluded.requests";

/// The usage of a key on a day.
#[derive(Debug, Clone, Default)]
struct DayUse {
    requests: u64,
    weight: u64,
    /// Refused messages.
    refused: u64,
    /// Requests by namespace of their methods.
    classes: Vec<(&'static str, u64)>,
}

/// Usage by day (in days since 1970) and number of the key.
type Entries = HashMap<(u64, u32), DayUse>;

/// The entries of one transaction.
type UsageChunk = Vec<((u64, u32), DayUse)>;

/// Usage that is being written.
#[derive(Default)]
struct Writing {
    /// The number of the last chunk that was written, or is known to be.
    written: i64,
    /// The chunks that are left; the last one is written next, and does not change until it is known to be written.
    chunks: Vec<UsageChunk>,
}

/// The usage that a front end has counted.
pub(super) struct UsageBook {
    /// The name of the front end, which no other front end has or had.
    front_end: String,
    /// What is counted since the last flush.
    counting: Mutex<Entries>,
    writing: tokio::sync::Mutex<Writing>,
    metrics: ServiceMetrics,
}

impl UsageBook {
    pub(super) fn new(front_end: String, metrics: ServiceMetrics) -> Self {
        Self { front_end, counting: Mutex::default(), writing: tokio::sync::Mutex::default(), metrics }
    }

    fn counting(&self) -> MutexGuard<'_, Entries> {
        self.counting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a message of the key with this number: its demand if it was admitted, else one refused message.
    pub(super) fn count(&self, number: u32, charge: &Charge, admitted: bool) {
        let today = unix_time() / DAY;
        let mut counting = self.counting();
        let full = counting.len() >= MAX_ENTRIES && !counting.contains_key(&(today, number));
        if full {
            self.metrics.count_unattributed();
        }
        let used = counting.entry((today, if full { NO_KEY } else { number })).or_default();
        if admitted { used.add(charge) } else { used.refused = used.refused.saturating_add(1) }
    }

    /// Writes what was counted. After an error, the next call goes on with what is not written yet.
    pub(super) async fn flush(&self, connection: &LazyConnection) -> Result<(), ClusterKeyError> {
        let mut writing = self.writing.lock().await;
        self.write(connection, &mut writing).await?;
        let entries = std::mem::take(&mut *self.counting());
        writing.chunks = chunks(entries);
        self.write(connection, &mut writing).await
    }

    /// Writes the chunks that are left.
    async fn write(&self, connection: &LazyConnection, writing: &mut Writing) -> Result<(), ClusterKeyError> {
        self.metrics.set_unwritten(writing.chunks.iter().map(Vec::len).sum());
        while let Some(chunk) = writing.chunks.last() {
            let number = writing.written.saturating_add(1);
            match connection.run(async |client| self.write_chunk(client, number, chunk).await).await {
                Ok(()) => {
                    writing.written = number;
                    writing.chunks.pop();
                }
                // Nothing of the chunk was written. Its parts are written one by one, without the values that the database refuses.
                Err(error) if error.is_about_values() => self.divide(&mut writing.chunks, &error),
                Err(error) => return Err(error),
            }
            self.metrics.set_unwritten(writing.chunks.iter().map(Vec::len).sum());
        }
        Ok(())
    }

    /// Halves the next chunk, which has a value that the database refuses. If the chunk has one entry, it is dropped.
    fn divide(&self, chunks: &mut Vec<UsageChunk>, error: &ClusterKeyError) {
        let Some(mut chunk) = chunks.pop() else { return };
        let rest = chunk.split_off(chunk.len() / 2);
        match (chunk.is_empty(), rest.first()) {
            (true, Some(((day, number), _))) => {
                warn!("the usage of key number {number} on day {day} is lost: {error}");
                self.metrics.count_unattributed();
            }
            _ => chunks.extend([chunk, rest]),
        }
    }

    /// Writes a chunk in one transaction, unless a chunk of this number was written.
    async fn write_chunk(
        &self,
        client: &mut Client,
        number: i64,
        chunk: &[((u64, u32), DayUse)],
    ) -> Result<(), ClusterKeyError> {
        let transaction = client.transaction().await?;
        let noted =
            transaction.execute_typed(NOTE, &[(&self.front_end, Type::TEXT), (&number, Type::INT8)]).await?;
        if noted == 0 {
            // The chunk was written before, and the answer of the database was lost.
            return Ok(transaction.rollback().await?);
        }
        Columns::of(chunk).add(&transaction).await?;
        transaction.batch_execute(FORGET).await?;
        Ok(transaction.commit().await?)
    }
}

/// Divides usage into chunks.
fn chunks(entries: Entries) -> Vec<UsageChunk> {
    let mut entries = entries.into_iter().peekable();
    let mut chunks = Vec::new();
    while entries.peek().is_some() {
        chunks.push(entries.by_ref().take(CHUNK_ENTRIES).collect());
    }
    chunks
}

/// The columns of a chunk, as arrays for the statements above.
#[derive(Default)]
struct Columns {
    days: Vec<i32>,
    numbers: Vec<i32>,
    requests: Vec<i64>,
    weights: Vec<i64>,
    refused: Vec<i64>,
    /// The key, the class and the requests of each pair of key and class.
    class_numbers: Vec<i32>,
    classes: Vec<&'static str>,
    counts: Vec<i64>,
}

impl Columns {
    /// The columns of these entries.
    fn of(chunk: &[((u64, u32), DayUse)]) -> Self {
        let mut columns = Self::default();
        for ((day, number), used) in chunk {
            // Never happens: no key has a number that the column cannot hold.
            let number = i32::try_from(*number).unwrap_or(NO_KEY_INTEGER);
            columns.days.push(to_integer(*day));
            columns.numbers.push(number);
            columns.requests.push(to_bigint(used.requests));
            columns.weights.push(to_bigint(used.weight));
            columns.refused.push(to_bigint(used.refused));
            for (class, count) in &used.classes {
                columns.class_numbers.push(number);
                columns.classes.push(*class);
                columns.counts.push(to_bigint(*count));
            }
        }
        columns
    }

    /// Adds the columns to all sums.
    async fn add(&self, transaction: &Transaction<'_>) -> Result<(), ClusterKeyError> {
        let Self { days, numbers, requests, weights, refused, class_numbers, classes, counts } = self;
        let (integers, longs, texts) = (Type::INT4_ARRAY, Type::INT8_ARRAY, Type::TEXT_ARRAY);
        let by_key: [(&(dyn ToSql + Sync), Type); 5] = [
            (numbers, integers.clone()),
            (requests, longs.clone()),
            (weights, longs.clone()),
            (refused, longs.clone()),
            (days, integers.clone()),
        ];
        // All but the days.
        let (first, _) = by_key.split_at(4);
        transaction.execute_typed(ADD, first).await?;
        transaction.execute_typed(ADD_DAYS, &by_key).await?;
        let by_class: [(&(dyn ToSql + Sync), Type); 3] =
            [(class_numbers, integers.clone()), (classes, texts.clone()), (counts, longs.clone())];
        transaction.execute_typed(ADD_CLASSES, &by_class).await?;
        let by_day: [(&(dyn ToSql + Sync), Type); 4] =
            [(days, integers), (requests, longs.clone()), (weights, longs.clone()), (refused, longs.clone())];
        transaction.execute_typed(ADD_TOTALS, &by_day).await?;
        let all_classes: [(&(dyn ToSql + Sync), Type); 2] = [(classes, texts), (counts, longs)];
        transaction.execute_typed(ADD_CLASS_TOTALS, &all_classes).await?;
        Ok(())
    }
}

impl DayUse {
    /// Adds an admitted message.
    fn add(&mut self, charge: &Charge) {
        self.requests = self.requests.saturating_add(charge.requests.into());
        self.weight = self.weight.saturating_add(charge.weight);
        for (class, count) in &charge.classes {
            match self.classes.iter_mut().find(|(known, _)| known == class) {
                Some((_, sum)) => *sum = sum.saturating_add(u64::from(*count)),
                None => self.classes.push((class, u64::from(*count))),
            }
        }
    }
}
