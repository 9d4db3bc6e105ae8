//! A connection of a pool, which goes back to the pool with no statement running.

use std::sync::Arc;

use deadpool_postgres::{Object, Pool};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing::debug;

use crate::connect::{CONNECT_TIMEOUT, Database};
use crate::error::IndexError;

/// A connection of a pool.
///
/// A connection that goes back while a statement runs on it would make the next user wait for that statement. So dropping
/// this type cancels the statement first.
pub(crate) struct PooledConnection {
    /// The connection as the pool lends it; `None` once it has been given back.
    object: Option<Object>,
    database: Arc<Database>,
    /// Whether a statement may be running: from the start until [`Self::statements_ended`].
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

    /// The connection, for statements.
    ///
    /// # Errors
    /// [`IndexError::Task`] after the connection was given back, which only dropping it does.
    pub(crate) fn client(&mut self) -> Result<&mut Object, IndexError> {
        self.object.as_mut().ok_or_else(|| IndexError::Task("the connection was given back".into()))
    }

    /// Notes that all statements have ended, so that the connection goes back at once.
    pub(crate) const fn statements_ended(&mut self) {
        self.runs = false;
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        if !self.runs {
            // Dropping `object` gives the connection back.
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(cancel(self.database.clone(), object))),
            // Without a runtime nothing can be sent: the connection is closed, which ends its statement.
            Err(_) => drop(Object::take(object)),
        }
    }
}

/// Cancels the statement that runs on a connection, and gives the connection back once the server has nothing left to do
/// for it. A cancellation that arrives late must not end a statement of the next user, so an empty statement waits for it.
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
