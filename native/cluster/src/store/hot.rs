//! [`HotStore`]: commands and scripts on the hot store, announcements, and the task that reconnects.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redis::{Cmd, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value, cmd};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::{info, warn};

use super::announce::{self, Announcement, Channels, MAX_CHANNELS};
use super::config::{StoreConfig, StoreLimits};
use super::connection::StoreConnection;
use super::error::HotStoreError;
use super::health::{Health, slot};
use super::metrics::StoreMetrics;
use super::script::Script;

/// How long a part of the store may fail before a new connection is made: after a failover, another server may have the part.
const RECONNECT_AFTER: Duration = Duration::from_millis(1_500);

/// Returns the store's own time: seconds and microseconds.
const TIME: &str = "local now = redis.call('TIME') return {tonumber(now[1]), tonumber(now[2])}";

/// Sets a value, unless too much of the server's memory is in use.
const SET_UNLESS_FULL: &str = concat!(include_str!("memory.lua"), include_str!("set_unless_full.lua"));

/// Runs a command again within a script, which removes a key that has another kind of value ([`Script`]).
const RETRY: &str = "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))";

/// How much of a server's memory may be in use for [`HotStore::set_unless_full`] to set a value, in percent. The rest is for limits,
/// keys and filters.
const MAX_USED_PERCENT: u8 = 50;

/// The hot store: data that front ends share, in Redis or Valkey. Each command that a function sends takes at most
/// [`StoreLimits::command`], and is an error if the store has not answered by then. Most functions send one command; a script that the
/// server does not have yet takes two.
///
/// Names of keys and channels are given without the prefix of [`StoreConfig`]. Dropping the last handle ends the
/// connections.
pub struct HotStore {
    inner: Arc<HotStoreInner>,
    channels: Arc<Channels>,
    tasks: Vec<JoinHandle<()>>,
    time: Script,
    set_unless_full: Script,
    retry: Script,
}

/// State that commands and the task that checks the connection share.
struct HotStoreInner {
    config: StoreConfig,
    connection: RwLock<StoreConnection>,
    health: Health,
    /// One for each command that may wait for an answer.
    permits: Semaphore,
    metrics: StoreMetrics,
}

impl std::fmt::Debug for HotStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HotStore").field("up", &self.is_up()).finish_non_exhaustive()
    }
}

impl Drop for HotStore {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl HotStore {
    /// Connects to a store; must be called inside a runtime. Whenever the connection breaks later, a task connects again.
    ///
    /// # Errors
    /// [`HotStoreError::Unreachable`]: no server answers, or none takes writes.
    pub async fn connect(config: &StoreConfig) -> Result<Arc<Self>, HotStoreError> {
        let connection = StoreConnection::open(config).await?;
        let metrics = StoreMetrics::default();
        metrics.up.set(1);
        metrics.connections.inc();
        let StoreLimits { waiting, pause, .. } = config.limits;
        let inner = Arc::new(HotStoreInner {
            config: config.clone(),
            connection: RwLock::new(connection),
            health: Health::new(pause),
            permits: Semaphore::new(waiting),
            metrics,
        });
        let channels = Arc::<Channels>::default();
        let tasks = vec![
            tokio::spawn(check(inner.clone())),
            tokio::spawn(announce::receive(config.clone(), channels.clone())),
        ];
        let [time, set_unless_full, retry] = [TIME, SET_UNLESS_FULL, RETRY].map(Script::new);
        Ok(Arc::new(Self { inner, channels, tasks, time, set_unless_full, retry }))
    }

    /// Whether all parts of the store answered when they were last asked.
    pub fn is_up(&self) -> bool {
        self.inner.health.is_up()
    }

    /// Counters of the store.
    pub fn metrics(&self) -> &StoreMetrics {
        &self.inner.metrics
    }

    /// The value of a key; `None` if there is none.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, HotStoreError> {
        self.command("GET", key, &[]).await
    }

    /// Sets the value of a key, which the store removes after `lifetime`.
    ///
    /// # Errors
    /// [`HotStoreError`]. After [`HotStoreError::Slow`] and [`HotStoreError::Failed`] the value may have been set.
    pub async fn set(&self, key: &str, value: &[u8], lifetime: Duration) -> Result<(), HotStoreError> {
        let key = self.full_name(key);
        let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut command = cmd("SET");
        command.arg(&key).arg(value).arg("PX").arg(millis);
        self.inner.run(slot(key.as_bytes()), &command).await.map(drop)
    }

    /// As [`Self::set`], for a value that is not necessary: it is not set while more than half of the server's memory is in use (in a
    /// cluster, of the server that has the key). Returns whether it was set.
    pub async fn set_unless_full(
        &self,
        key: &str,
        value: &[u8],
        lifetime: Duration,
    ) -> Result<bool, HotStoreError> {
        let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).max(1);
        let arguments = [value.to_vec(), millis.to_string().into(), MAX_USED_PERCENT.to_string().into()];
        self.script(&self.set_unless_full, key, &arguments).await
    }

    /// Removes a key. Returns whether the key existed.
    pub async fn remove(&self, key: &str) -> Result<bool, HotStoreError> {
        let key = self.full_name(key);
        let answer = self.inner.run(slot(key.as_bytes()), cmd("DEL").arg(&key)).await?;
        read(answer)
    }

    /// Runs a script on a key.
    ///
    /// # Errors
    /// As [`Self::set`]; [`HotStoreError::Answer`] if the answer has another type.
    pub async fn script<T: FromRedisValue>(
        &self,
        script: &Script,
        key: &str,
        arguments: &[Vec<u8>],
    ) -> Result<T, HotStoreError> {
        let key = self.full_name(key);
        let slot = slot(key.as_bytes());
        let command = |name: &str, body: &str| {
            let mut command = cmd(name);
            command.arg(body).arg(1).arg(&key).arg(arguments);
            command
        };
        match self.inner.ask(slot, &command("EVALSHA", &script.hash)).await {
            Ok(answer) => read(answer),
            // The server was restarted, or is new. It stores the script when it gets the whole text.
            Err(CommandFailure::Server(error)) if is_no_script(&error) => {
                read(self.inner.run(slot, &command("EVAL", &script.text)).await?)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Runs another command on a key, which must be the first argument after the name of the command. A key whose value is not of the
    /// kind that the command needs is removed first, as by a script.
    pub async fn command<T: FromRedisValue>(
        &self,
        name: &str,
        key: &str,
        arguments: &[Vec<u8>],
    ) -> Result<T, HotStoreError> {
        let full_key = self.full_name(key);
        let mut command = cmd(name);
        command.arg(&full_key).arg(arguments);
        match self.inner.ask(slot(full_key.as_bytes()), &command).await {
            Ok(answer) => read(answer),
            Err(CommandFailure::Server(error)) if error.code() == Some("WRONGTYPE") => {
                let arguments = [&[name.as_bytes().to_vec()], arguments].concat();
                self.script(&self.retry, key, &arguments).await
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Sends a message to all front ends that listen to the channel, this one included.
    pub async fn publish(&self, channel: &str, message: &[u8]) -> Result<(), HotStoreError> {
        let channel = self.full_name(channel);
        let mut command = cmd("PUBLISH");
        command.arg(&channel).arg(message);
        self.inner.run(slot(channel.as_bytes()), &command).await.map(drop)
    }

    /// Listens to a channel. The first announcement is [`Announcement::Gap`], from which on the server sends messages. A receiver that
    /// is too slow gets `RecvError::Lagged`, which is a gap too.
    ///
    /// # Errors
    /// [`HotStoreError::Channels`]: too many channels are in use.
    pub fn subscribe(&self, channel: &str) -> Result<broadcast::Receiver<Announcement>, HotStoreError> {
        self.channels.receiver(self.full_name(channel)).ok_or(HotStoreError::Channels(MAX_CHANNELS))
    }

    /// The store's own time since 1970; in a cluster that of one of its servers.
    pub async fn time(&self) -> Result<Duration, HotStoreError> {
        let (seconds, micros): (u64, u64) = self.script(&self.time, "time", &[]).await?;
        Ok(Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros)))
    }

    /// A key or channel with the prefix of the service.
    fn full_name(&self, key: &str) -> String {
        format!("{}:{key}", self.inner.config.prefix)
    }
}

/// Converts an answer to the type that the caller expects.
fn read<T: FromRedisValue>(answer: Value) -> Result<T, HotStoreError> {
    T::from_redis_value(answer).map_err(|error| HotStoreError::Answer(error.to_string()))
}

fn is_no_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Why a command has no answer.
enum CommandFailure {
    /// The command was not sent, or no answer came in time.
    Own(HotStoreError),
    /// The error of the server or the connection.
    Server(RedisError),
}

impl From<CommandFailure> for HotStoreError {
    fn from(failure: CommandFailure) -> Self {
        match failure {
            CommandFailure::Own(error) => error,
            CommandFailure::Server(error) => Self::of(&error),
        }
    }
}

impl HotStoreInner {
    /// As [`Self::ask`], with the error for callers.
    async fn run(&self, slot: u16, command: &Cmd) -> Result<Value, HotStoreError> {
        Ok(self.ask(slot, command).await?)
    }

    /// Sends a command about a slot, if the limit of waiting commands and the slot's health admit it.
    async fn ask(&self, slot: u16, command: &Cmd) -> Result<Value, CommandFailure> {
        let refused = |error| {
            self.metrics.refused.inc();
            CommandFailure::Own(error)
        };
        let Ok(_permit) = self.permits.try_acquire() else {
            return Err(refused(HotStoreError::Busy(self.config.limits.waiting)));
        };
        if !self.health.admits(slot) {
            return Err(refused(HotStoreError::Down));
        }
        self.send(slot, command).await
    }

    /// Sends a command, and notes whether the store has answered.
    async fn send(&self, slot: u16, command: &Cmd) -> Result<Value, CommandFailure> {
        let mut connection = self.connection.read().unwrap_or_else(PoisonError::into_inner).clone();
        let sent = Instant::now();
        let failure = match timeout(self.config.limits.command, connection.run(command)).await {
            Ok(Ok(answer)) => {
                self.metrics.latency.observe(sent.elapsed().as_secs_f64());
                self.health.succeeded(slot);
                return Ok(answer);
            }
            Ok(Err(error)) if !HotStoreError::is_outage(&error) => {
                self.health.succeeded(slot);
                return Err(CommandFailure::Server(error));
            }
            Ok(Err(error)) => CommandFailure::Server(error),
            Err(_) => CommandFailure::Own(HotStoreError::Slow),
        };
        self.health.failed(slot);
        self.metrics.failed.inc();
        Err(failure)
    }
}

/// Checks regularly whether the store answers, and connects again if a part fails for long.
async fn check(inner: Arc<HotStoreInner>) {
    let probe = slot(format!("{}:probe", inner.config.prefix).as_bytes());
    let key = format!("{}:probe", inner.config.prefix);
    let mut was_up = true;
    loop {
        tokio::time::sleep(inner.config.limits.check).await;
        // The commands of requests notice which parts fail; this command notices an outage while there are no requests.
        let _ = inner.send(probe, cmd("GET").arg(&key)).await;
        let failing = inner.health.failing_for();
        let up = failing.is_zero() || inner.health.is_up();
        if up != was_up {
            if up {
                info!("the store answers again")
            } else {
                warn!("the store does not answer")
            }
            was_up = up;
        }
        inner.metrics.up.set(up.into());
        if failing < RECONNECT_AFTER {
            continue;
        }
        if let Ok(mut connection) = StoreConnection::open(&inner.config).await
            && matches!(
                timeout(inner.config.limits.command, connection.run(cmd("GET").arg(&key))).await,
                Ok(Ok(_))
            )
        {
            *inner.connection.write().unwrap_or_else(PoisonError::into_inner) = connection;
            inner.metrics.connections.inc();
            inner.health.reset();
        }
    }
}
