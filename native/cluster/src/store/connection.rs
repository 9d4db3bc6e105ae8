//! Connections to the hot store: to one server that takes writes, or to a cluster.

use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionInfo, RedisResult, Value, cmd};
use rootlight_limits::io_words::of_connection;
use tokio::time::timeout;
use tracing::debug;

use super::config::{StoreConfig, StoreLayout, StoreLimits};
use super::error::HotStoreError;

/// Most times that the library sends a command again when a server of a cluster answers that another server has the key.
const REDIRECTIONS: u32 = 4;

/// A connection that many commands share.
#[derive(Clone)]
pub(super) enum StoreConnection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// The time limits for the library.
pub(super) fn settings(limits: &StoreLimits) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(limits.connect))
        .set_response_timeout(Some(limits.command))
}

/// Opens a connection to one server.
pub(super) async fn connect(
    node: &ConnectionInfo,
    settings: &AsyncConnectionConfig,
) -> RedisResult<MultiplexedConnection> {
    Client::open(node.clone())?.get_multiplexed_async_connection_with_config(settings).await
}

/// What a server is, by its answer to INFO.
struct ServerRole {
    /// Whether it is a node of a cluster.
    is_cluster: bool,
    /// Whether it is a primary, which takes writes.
    is_writable: bool,
}

/// Asks a server what it is.
async fn read_role(connection: &mut MultiplexedConnection) -> RedisResult<ServerRole> {
    let text: String = cmd("INFO").query_async(connection).await?;
    let says = |line: &str| text.lines().any(|found| found.trim() == line);
    Ok(ServerRole { is_cluster: says("cluster_enabled:1"), is_writable: says("role:master") })
}

impl StoreConnection {
    /// Opens a connection to the store.
    ///
    /// # Errors
    /// No server answers, or none takes writes.
    pub(super) async fn open(config: &StoreConfig) -> Result<Self, HotStoreError> {
        if config.layout == StoreLayout::Cluster {
            return Self::cluster(config).await;
        }
        let mut reason = "no server answers that takes writes".to_owned();
        for node in &config.nodes {
            let found = async {
                let mut connection = connect(node, &settings(&config.limits)).await?;
                let role = read_role(&mut connection).await?;
                RedisResult::Ok((connection, role))
            };
            match found.await {
                Ok((_, role)) if role.is_cluster && config.layout == StoreLayout::Detect => {
                    return Self::cluster(config).await;
                }
                Ok((connection, role)) if role.is_writable => return Ok(Self::Single(connection)),
                Ok(_) => debug!("a server of the store takes no writes"),
                Err(error) => reason = of_connection(&error),
            }
        }
        Err(HotStoreError::Unreachable(reason))
    }

    /// Opens a connection to a cluster.
    async fn cluster(config: &StoreConfig) -> Result<Self, HotStoreError> {
        let StoreLimits { command, connect, waiting, .. } = config.limits;
        let client = ClusterClient::builder(config.nodes.clone())
            .connection_timeout(connect)
            .response_timeout(command)
            .overall_response_timeout(Some(command))
            .retries(REDIRECTIONS)
            // Milliseconds.
            .min_retry_wait(10)
            .max_retry_wait(100)
            .connection_concurrency_limit(waiting)
            .build()
            .map_err(|error| HotStoreError::Unreachable(error.to_string()))?;
        // The library connects to the servers one after another.
        let time_limit =
            connect.saturating_mul(u32::try_from(config.nodes.len()).unwrap_or(1).saturating_add(1));
        match timeout(time_limit, client.get_async_connection()).await {
            Ok(Ok(connection)) => Ok(Self::Cluster(connection)),
            Ok(Err(error)) => Err(HotStoreError::Unreachable(of_connection(&error))),
            Err(_) => Err(HotStoreError::Unreachable("no answer in time".to_owned())),
        }
    }

    /// Sends a command and returns the answer; an error of the server is an error here.
    pub(super) async fn run(&mut self, command: &Cmd) -> RedisResult<Value> {
        let answer = match self {
            Self::Single(connection) => connection.req_packed_command(command).await,
            Self::Cluster(connection) => connection.req_packed_command(command).await,
        };
        answer.and_then(Value::extract_error)
    }
}
