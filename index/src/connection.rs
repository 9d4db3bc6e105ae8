//! A connection of a pool, which goes back to it with nothing running.

use std::sync::Arc;

use deadpool_postgres::{Object, Pool};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing::debug;

use crate::connect::{CONNECT_TIMEOUT, Database};
use crate::error::IndexError;

/// A connection of a pool.
///
/// A connection that is dropped while a statement runs on it would make the next question wait for that statement. So the
/// statement is cancelled first.
pub(crate) struct PooledConnection {
    /// `None` once it has been given back.
    object: Option<Object>,
    database: Arc<Database>,
    /// Whether a statement may be running.
    runs: bool,
}

impl PooledConnection {
    /// Takes a connection from a pool of this database.
    ///
    /// # Errors
    /// [`IndexError::NoneFree`], [`IndexError::Pool`], and those of the database.
    pub(crate) async fn of(pool: &Pool, database: &Arc<Database>) -> Result<Self, IndexError> {
        Ok(Self { object: Some(pool.get().await?), database: database.clone(), runs: true })
    }

    /// The client.
    ///
    /// # Errors
    /// [`IndexError::Task`] after the connection was given back, which only dropping it does.
    pub(crate) fn client(&mut self) -> Result<&mut Object, IndexError> {
        self.object.as_mut().ok_or_else(|| IndexError::Task("the connection was given back".into()))
    }

    pub(crate) const fn statements_ended(&mut self) {
        self.runs = false;
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        // Without a statement it goes back as it is.
        if !self.runs {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(cancel(self.database.clone(), object))),
            // The connection ends, and with it its statement.
            Err(_) => drop(Object::take(object)),
        }
    }
}

/// Cancels the statement that runs on a connection, and gives the connection back once the server has nothing left to do
/// for it. A cancellation that comes late must not end a statement of the next question.
async fn cancel(database: Arc<Database>, object: Object) {
    let cancelled = async {
        database.cancel(&object.cancel_token()).await?;
        object.simple_query("").await.map(|_| ())
    };
    match timeout(CONNECT_TIMEOUT, cancelled).await {
        Ok(Ok(())) => {}
        outcome => {
            debug!(?outcome, "a statement could not be cancelled, so its connection is closed");
            drop(Object::take(object));
        }
    }
}
