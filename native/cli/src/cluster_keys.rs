//! `rootlight keys --cluster` or `--index`: the same actions on the keys of a service on many machines, which are in PostgreSQL.

use std::fmt::Write as _;
use std::sync::Arc;

use rootlight_cluster::keys::{ClusterKeyError, ClusterKeys, MAX_PAGE};
use rootlight_cluster::store::{HotStore, PREFIX, StoreConfig};
use rootlight_index::Database;
use rootlight_server::keys::{KeyError, KeySummary};
use rootlight_upstream as upstream;

use super::error::CommandError;
use super::keys::{KeysAction, KeysArgs, print};
use super::print::say;
use super::runtime::runtime;

/// Runs an action on the keys in the database of `--index`. Without `--cluster`, front ends learn of changes from the database.
pub(super) fn run(args: KeysArgs) -> Result<(), CommandError> {
    let usage = CommandError::Usage;
    let missing = || usage("--cluster needs the database of keys: --index postgres://...".to_owned());
    let address = args.index.ok_or_else(missing)?;
    let tls = rustls::ClientConfig::clone(&upstream::tls_config());
    let database = Database::parse(&address, tls).map_err(|error| usage(format!("--index: {error}")))?;
    let config = (!args.cluster.is_empty()).then(|| StoreConfig::parse(&args.cluster, PREFIX)).transpose();
    let config = config.map_err(|error| usage(format!("--cluster: {error}")))?;
    runtime()?.block_on(async {
        let store = match config {
            None => None,
            Some(config) => connect(&config).await,
        };
        let keys = ClusterKeys::open(database, store).await.map_err(command_error)?;
        send_command(&keys, args.action).await
    })
}

/// Connects to the cluster store. Without a connection, keys are changed in the database alone, so that a key can be revoked
/// while the store cannot be reached.
async fn connect(config: &StoreConfig) -> Option<Arc<HotStore>> {
    let connected = HotStore::connect(config).await;
    if let Err(error) = &connected {
        tracing::warn!("--cluster: front ends learn of changes from the database: {error}");
    }
    connected.ok()
}

/// Runs an action, and prints its result.
async fn send_command(keys: &ClusterKeys, action: KeysAction) -> Result<(), CommandError> {
    match action {
        KeysAction::Create { limits } => {
            let (key, _) = keys.create(&limits.change()).await.map_err(command_error)?;
            say!("{}", key.reveal());
        }
        KeysAction::List { json, limit, after } => list(keys, json, limit, after).await?,
        KeysAction::Revoke { id } => print(&keys.revoke(&id).await.map_err(command_error)?),
        KeysAction::Limit { id, limits } => {
            print(&keys.limit(&id, &limits.change()).await.map_err(command_error)?)
        }
    }
    Ok(())
}

/// Prints the list page by page: there may be more keys than memory holds.
async fn list(
    keys: &ClusterKeys,
    json: bool,
    limit: Option<u32>,
    mut after: Option<String>,
) -> Result<(), CommandError> {
    let mut left = limit.unwrap_or(u32::MAX);
    let mut first = true;
    loop {
        let page = keys.list(after.as_deref(), left.min(MAX_PAGE)).await.map_err(command_error)?;
        left = left.saturating_sub(u32::try_from(page.keys.len()).unwrap_or(u32::MAX));
        for key in &page.keys {
            if json {
                say!("{}{}", if first { "[\n  " } else { ",\n  " }, member(key)?);
            } else {
                print(key);
            }
            first = false;
        }
        after = page.next.filter(|_| left > 0);
        if after.is_none() {
            break;
        }
    }
    if json {
        say!("{}", if first { "[]" } else { "]" });
    }
    Ok(())
}

/// A key as a member of the JSON array, indented by two spaces.
fn member(key: &KeySummary) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(key).map_err(CommandError::failed)?;
    let mut indented = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        let indent = if number == 0 { "" } else { "\n  " };
        write!(indented, "{indent}{line}").map_err(CommandError::failed)?;
    }
    Ok(indented)
}

fn command_error(error: ClusterKeyError) -> CommandError {
    match error {
        ClusterKeyError::Key(KeyError::Invalid(reason)) => CommandError::Usage(reason),
        error @ ClusterKeyError::Database(_) => CommandError::of_flag("--index", error),
        other => CommandError::failed(other),
    }
}
