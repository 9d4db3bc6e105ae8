//! The schema `rootlight` and its versions. Versions only rise: a program refuses a schema that is newer than its own.

use tokio_postgres::Client;

use crate::error::IndexError;

/// The SQL files, compiled in.
#[allow(clippy::all, missing_docs, unreachable_pub)]
mod files {
    refinery::embed_migrations!("migrations");
}

/// The table of applied migrations.
const TABLE: &str = "rootlight.migrations";

/// Applies the SQL files.
fn runner() -> refinery::Runner {
    // `set_grouped` runs all migrations in one transaction: front ends that start at the same time see either the
    // state before (no index, or an older version) or the newest version.
    let mut runner = files::migrations::runner().set_grouped(true);
    runner.set_migration_table_name(TABLE);
    runner
}

/// The newest version of the schema that this program knows.
#[must_use]
pub fn known_version() -> u32 {
    // There is at least one migration, and versions are small, so this is never 0.
    let versions = runner().get_migrations().iter().map(refinery::Migration::version).max();
    versions.and_then(|version| u32::try_from(version).ok()).unwrap_or(0)
}

/// The version of the database; 0 if it has no index.
pub(crate) async fn found_version(client: &Client) -> Result<u32, IndexError> {
    let exists: bool = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&TABLE]).await?.try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let row = client.query_one("SELECT coalesce(max(version), 0) FROM rootlight.migrations", &[]).await?;
    Ok(u32::try_from(row.try_get::<_, i32>(0)?).unwrap_or(0))
}

/// Brings the schema to the newest version. The caller must have taken the lock of the index.
pub(crate) async fn migrate(client: &mut Client) -> Result<(), IndexError> {
    let known = known_version();
    let found = found_version(client).await?;
    if found > known {
        return Err(IndexError::NewerSchema { found, known });
    }
    client.batch_execute("CREATE SCHEMA IF NOT EXISTS rootlight").await?;
    match runner().run_async(client).await {
        Ok(_) => Ok(()),
        // PostgreSQL stopped meanwhile. `Pool` is a transient error, so the loader tries again.
        Err(error) if client.is_closed() => Err(IndexError::Pool(error.to_string())),
        Err(error) => Err(IndexError::Migration { version: known, reason: error.to_string() }),
    }
}

/// Checks that the schema is the one that this program reads.
pub(crate) async fn check(client: &Client) -> Result<(), IndexError> {
    let (found, known) = (found_version(client).await?, known_version());
    match found.cmp(&known) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(IndexError::NewerSchema { found, known }),
        std::cmp::Ordering::Less => Err(IndexError::OlderSchema { found, known }),
    }
}
