//! The schema `service` and its versions, which only rise, and the secret in it.

use alloy_primitives::B256;
use tokio_postgres::Client;

use super::error::ClusterKeyError;

/// The SQL files, compiled in.
#[allow(clippy::all, missing_docs, unreachable_pub)]
mod files {
    refinery::embed_migrations!("migrations/service");
}

/// The table of applied migrations.
const TABLE: &str = "service.migrations";

/// The lock under which the schema is changed: several front ends may start at once. The number is arbitrary, and the same in
/// all versions of the program.
const LOCK: &str = "SELECT pg_advisory_lock(7390482910)";
const UNLOCK: &str = "SELECT pg_advisory_unlock(7390482910)";

/// Applies the SQL files.
fn runner() -> refinery::Runner {
    let mut runner = files::migrations::runner();
    runner.set_migration_table_name(TABLE);
    runner
}

/// The newest version of this program.
fn known_version() -> u32 {
    // There is at least one migration, and versions are small, so this is never 0.
    let versions = runner().get_migrations().iter().map(refinery::Migration::version).max();
    versions.and_then(|version| u32::try_from(version).ok()).unwrap_or(0)
}

/// The version of the database; 0 if it has no schema `service`.
async fn found_version(client: &Client) -> Result<u32, ClusterKeyError> {
    let exists: bool = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&TABLE]).await?.try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let row = client.query_one("SELECT coalesce(max(version), 0) FROM service.migrations", &[]).await?;
    Ok(u32::try_from(row.try_get::<_, i32>(0)?).unwrap_or(0))
}

/// Brings the schema to the newest version.
pub(super) async fn migrate(client: &mut Client) -> Result<(), ClusterKeyError> {
    client.batch_execute(LOCK).await?;
    let migrated = migrate_locked(client).await;
    client.batch_execute(UNLOCK).await?;
    migrated
}

/// Refuses a database that takes no changes, such as a replica.
pub(super) async fn check_writable(client: &Client) -> Result<(), ClusterKeyError> {
    let row = client.query_one("SELECT current_setting('transaction_read_only')::boolean", &[]).await?;
    if row.try_get(0)? { Err(ClusterKeyError::ReadOnly) } else { Ok(()) }
}

/// The secret that all front ends share: it seals what they put into the store ([`Seal`](crate::Seal)). The column `marks`
/// holds it.
pub(super) async fn secret(client: &Client) -> Result<B256, ClusterKeyError> {
    let row = client.query_one("SELECT marks FROM service.secrets", &[]).await?;
    let bytes: &[u8] = row.try_get(0)?;
    // The conversion never fails: the table admits 32 bytes only.
    Ok(B256::try_from(bytes).unwrap_or_default())
}

/// Brings the schema to the newest version, while the caller holds the lock.
async fn migrate_locked(client: &mut Client) -> Result<(), ClusterKeyError> {
    let known = known_version();
    let found = found_version(client).await?;
    if found > known {
        return Err(ClusterKeyError::NewerSchema { found, known });
    }
    if found == known {
        return Ok(());
    }
    client.batch_execute("CREATE SCHEMA IF NOT EXISTS service").await?;
    let migrated = runner().run_async(client).await;
    let failed =
        |error: refinery::Error| ClusterKeyError::Migration { version: known, reason: error.to_string() };
    migrated.map(drop).map_err(failed)
}
