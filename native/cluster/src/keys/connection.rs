//! Connections to PostgreSQL for keys.
//!
//! A front end has three: for look-ups, for changes, and for usage. So no work waits behind that of another kind. Each
//! connection is used for one statement at a time, so a pool of connections would only add a queue in front of it.

use std::time::{Duration, Instant};

use rootlight_index::{Database, IndexError};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::Client;

use super::error::ClusterKeyError;

/// Time after a failed attempt to connect in which there is no further one.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection that is made when it is needed, and again after it broke.
pub(super) struct LazyConnection {
    database: Database,
    /// Longest time of one [`Self::run`], connecting included.
    time_limit: Duration,
    state: Mutex<LazyState>,
}

/// The state of a connection.
#[derive(Default)]
struct LazyState {
    /// The open connection while no work uses it.
    client: Option<Client>,
    /// When connecting failed, or work took too long; `None` after a success.
    failed: Option<Instant>,
}

impl LazyConnection {
    pub(super) fn new(database: Database, time_limit: Duration) -> Self {
        Self { database, time_limit, state: Mutex::default() }
    }

    /// Runs a function with the connection; calls wait for each other. After an error, or when the time is over, the connection
    /// is closed. The database may then have carried out statements that were sent.
    pub(super) async fn run<T>(
        &self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, ClusterKeyError>,
    ) -> Result<T, ClusterKeyError> {
        let mut state = self.state.lock().await;
        if state.failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return Err(IndexError::Pool("the last attempt failed".to_owned()).into());
        }
        // The connection is taken out meanwhile, so that dropping this future closes it: a statement may still run on it.
        let open = state.client.take().filter(|client| !client.is_closed());
        let result = timeout(self.time_limit, async {
            let mut client = match open {
                Some(client) => client,
                None => self.database.connect().await?,
            };
            let done = work(&mut client).await;
            Ok::<_, ClusterKeyError>((client, done))
        });
        let result = result.await;
        let mut failed = || state.failed = Some(Instant::now());
        match result {
            Err(_) => {
                failed();
                Err(ClusterKeyError::Slow)
            }
            Ok(Err(error)) => {
                failed();
                Err(error)
            }
            Ok(Ok((client, done))) => {
                state.failed = None;
                // After an error the connection may be broken, or inside a transaction.
                state.client = Some(client).filter(|_| done.is_ok());
                done
            }
        }
    }
}
