//! The tasks that run beside a server with API keys: one writes counters to the database, and one takes commands of
//! `rootlight keys` over a Unix socket beside the database, because only one process may have the database open.

#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tracing::warn;

use super::error::KeyError;
use super::key_database::KeyDatabase;
#[cfg(unix)]
use crate::unix_socket::{self, SocketFile};

/// Interval at which counters are written. A process that is killed loses at most the counts of this time.
const FLUSH_INTERVAL: Duration = Duration::from_secs(10);

/// The tasks beside a server. Dropping the value ends them and writes the counters.
#[derive(Debug)]
pub struct KeyTasks {
    database: Arc<KeyDatabase>,
    tasks: Vec<JoinHandle<()>>,
    #[cfg(unix)]
    _socket: Option<SocketFile>,
}

impl std::fmt::Debug for KeyDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyDatabase").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Drop for KeyTasks {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        write_counters(&self.database);
    }
}

/// Starts the tasks; must be called inside a runtime.
///
/// # Errors
/// The socket cannot be made.
pub fn start(database: Arc<KeyDatabase>) -> Result<KeyTasks, KeyError> {
    let mut running = KeyTasks {
        database: database.clone(),
        tasks: Vec::new(),
        #[cfg(unix)]
        _socket: None,
    };
    #[cfg(unix)]
    {
        let path = unix::socket_of(database.path());
        // The process that has the database open replaces the socket that an earlier process left behind.
        let bound = unix_socket::bind(&path, 0o600);
        let (listener, file) = bound.map_err(|source| KeyError::File { path, source })?;
        running.tasks.push(tokio::spawn(unix::serve(listener, database.clone())));
        running._socket = Some(file);
    }
    running.tasks.push(tokio::spawn(write_regularly(database)));
    Ok(running)
}

/// Writes the counters in intervals, for ever.
async fn write_regularly(database: Arc<KeyDatabase>) {
    loop {
        tokio::time::sleep(FLUSH_INTERVAL).await;
        let database = database.clone();
        let _ = tokio::task::spawn_blocking(move || write_counters(&database)).await;
    }
}

fn write_counters(database: &KeyDatabase) {
    if let Err(failure) = database.flush() {
        warn!("the usage of keys was not written: {failure}");
    }
}

#[cfg(unix)]
pub use unix::ask;

#[cfg(unix)]
mod unix {
    //! The socket for commands: a client sends one line with a JSON object, and gets one in answer.

    use std::io::{self, BufRead as _, BufReader as StdReader, Read as _, Write as _};
    use std::os::unix::net::UnixStream as StdStream;

    use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::net::{UnixListener, UnixStream};
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    use super::{Arc, Duration, KeyDatabase, KeyError, Path, PathBuf};
    use crate::keys::admin::{Command, CommandReply};

    /// Longest command, in bytes. The longest lists of a key fit: four of 1,000 entries of at most 200 bytes each.
    const COMMAND_BYTES: u64 = 1024 * 1024;
    /// Longest answer that the command line reads, in bytes: the list of all keys, of which there are at most 10,000,
    /// usually of less than 1 KiB each.
    const REPLY_BYTES: u64 = 1 << 30;
    /// Number of commands that run at the same time. Further ones wait in the queue of the socket.
    const COMMANDS: usize = 4;
    /// Time limit for reading a command and for taking its answer.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// The socket of a database: its path with `.sock` added.
    pub(super) fn socket_of(database: &Path) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(".sock");
        name.into()
    }

    /// Takes commands for ever.
    pub(super) async fn serve(listener: UnixListener, database: Arc<KeyDatabase>) {
        let permits = Arc::new(Semaphore::new(COMMANDS));
        loop {
            let Ok(permit) = permits.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let database = database.clone();
                    tokio::spawn(async move {
                        let _ = timeout(PATIENCE, answer(stream, database)).await;
                        drop(permit);
                    });
                }
                // Such as for lack of file descriptors. The pause keeps the loop from spinning.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Reads a command, runs it and writes the reply.
    async fn answer(mut stream: UnixStream, database: Arc<KeyDatabase>) -> io::Result<()> {
        let (reading, mut writing) = stream.split();
        let mut line = String::new();
        BufReader::new(reading.take(COMMAND_BYTES)).read_line(&mut line).await?;
        let run = move || -> Result<CommandReply, KeyError> {
            let command: Command =
                serde_json::from_str(&line).map_err(|error| KeyError::Invalid(error.to_string()))?;
            command.run(&database)
        };
        // Writing to the database waits for the disk.
        let reply = tokio::task::spawn_blocking(run).await.map_err(io::Error::other)?;
        let reply = reply.unwrap_or_else(|error| CommandReply::Failed(error.to_string()));
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        writing.write_all(&text).await?;
        writing.shutdown().await
    }

    /// Gives a command to the server that has a database open.
    ///
    /// # Errors
    /// The server does not answer, or refuses the command.
    pub fn ask(database: &Path, command: &Command) -> Result<CommandReply, KeyError> {
        let path = socket_of(database);
        let exchange = || -> io::Result<CommandReply> {
            let mut stream = StdStream::connect(&path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            let mut text = serde_json::to_vec(command)?;
            text.push(b'\n');
            stream.write_all(&text)?;
            let mut line = String::new();
            StdReader::new(stream.take(REPLY_BYTES)).read_line(&mut line)?;
            Ok(serde_json::from_str(&line)?)
        };
        match exchange() {
            Ok(CommandReply::Failed(reason)) => Err(KeyError::Refused(reason)),
            Ok(reply) => Ok(reply),
            Err(error) => Err(KeyError::NoAnswer { reason: error.to_string(), path }),
        }
    }
}
