//! Connections to PostgreSQL.
//!
//! A front end has three: for look-ups, for changes, and for usage. Each is used for one statement at a time, so a pool
//! would only add a queue in front of it, and no work waits behind that of another kind.

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
    /// Longest time of a piece of work, connecting included.
    limit: Duration,
    state: Mutex<LazyState>,
}

#[derive(Default)]
struct LazyState {
    client: Option<Client>,
    failed: Option<Instant>,
}

impl LazyConnection {
    pub(super) fn new(database: Database, limit: Duration) -> Self {
        Self { database, limit, state: Mutex::default() }
    }

    /// Does something with the connection. If it fails because of the connection, or takes too long, the connection is
    /// given up; what was sent may have been carried out.
    pub(super) async fn run<T>(
        &self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, ClusterKeyError>,
    ) -> Result<T, ClusterKeyError> {
        let mut state = self.state.lock().await;
        if state.failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return Err(IndexError::Pool("the last attempt failed".to_owned()).into());
        }
        // Taken out meanwhile, so that whoever gives up waiting gives up the connection too.
        let kept = state.client.take().filter(|client| !client.is_closed());
        let result = timeout(self.limit, async {
            let mut client = match kept {
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
