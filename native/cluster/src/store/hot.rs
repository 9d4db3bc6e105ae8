//! The hot store.

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

/// Failing for so long, a part of the store is reached by new connections only: a failover may have moved it.
const RECONNECT_AFTER: Duration = Duration::from_millis(1_500);

/// Gives the store's own time.
const TIME: &str = "local now = redis.call('TIME') return {tonumber(now[1]), tonumber(now[2])}";

/// Sets a value that others can do without.
const ROOM: &str = concat!(include_str!("memory.lua"), include_str!("room.lua"));

/// Sends a command again as a script, which removes a key that holds another kind of value.
const AGAIN: &str = "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))";

/// How much of a server's memory may be in use when such a value is set, in percent. The rest is for limits, keys and
/// filters.
const SPARE_PERCENT: u8 = 50;

/// The hot store. Every function answers within [`StoreLimits::command`], with an error if the store does not.
///
/// Names of keys and channels are given without the prefix of [`StoreConfig`]. Dropping the last handle ends the
/// connections.
pub struct HotStore {
    shared: Arc<HotStoreInner>,
    channels: Arc<Channels>,
    tasks: Vec<JoinHandle<()>>,
    time: Script,
    room: Script,
    again: Script,
}

/// State that commands and the check of connections share.
struct HotStoreInner {
    config: StoreConfig,
    link: RwLock<StoreConnection>,
    health: Health,
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
    /// Connects to a store; must be called inside a runtime. Later the connection is made again whenever it breaks.
    ///
    /// # Errors
    /// [`HotStoreError::Unreachable`].
    pub async fn connect(config: &StoreConfig) -> Result<Arc<Self>, HotStoreError> {
        let link = StoreConnection::open(config).await?;
        let metrics = StoreMetrics::default();
        metrics.up.set(1);
        metrics.connections.inc();
        let StoreLimits { waiting, pause, .. } = config.limits;
        let shared = Arc::new(HotStoreInner {
            config: config.clone(),
            link: RwLock::new(link),
            health: Health::new(pause),
            permits: Semaphore::new(waiting),
            metrics,
        });
        let channels = Arc::<Channels>::default();
        let tasks = vec![
            tokio::spawn(check(shared.clone())),
            tokio::spawn(announce::receive(config.clone(), channels.clone())),
        ];
        let [time, room, again] = [TIME, ROOM, AGAIN].map(Script::new);
        Ok(Arc::new(Self { shared, channels, tasks, time, room, again }))
    }

    /// Whether all parts of the store answered when they were last asked.
    pub fn is_up(&self) -> bool {
        self.shared.health.is_up()
    }

    /// Counters of the store.
    pub fn metrics(&self) -> &StoreMetrics {
        &self.shared.metrics
    }

    /// The value of a key; `None` if there is none.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, HotStoreError> {
        self.command("GET", key, &[]).await
    }

    /// Sets the value of a key, which ends after a time.
    ///
    /// # Errors
    /// [`HotStoreError`]. After [`HotStoreError::Slow`] and [`HotStoreError::Failed`] the value may be there.
    pub async fn set(&self, key: &str, value: &[u8], lifetime: Duration) -> Result<(), HotStoreError> {
        let key = self.name(key);
        let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut command = cmd("SET");
        command.arg(&key).arg(value).arg("PX").arg(millis);
        self.shared.run(slot(key.as_bytes()), &command).await.map(drop)
    }

    /// As [`Self::set`], for a value that others can do without: it is not set when more than half of the memory is in use
    /// that the server, or the one of a cluster that would have the value, may use. Returns whether it was set.
    pub async fn set_if_roomy(
        &self,
        key: &str,
        value: &[u8],
        lifetime: Duration,
    ) -> Result<bool, HotStoreError> {
        let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).max(1);
        let arguments = [value.to_vec(), millis.to_string().into(), SPARE_PERCENT.to_string().into()];
        self.script(&self.room, key, &arguments).await
    }

    /// Removes a key. Returns whether it was there.
    pub async fn remove(&self, key: &str) -> Result<bool, HotStoreError> {
        let key = self.name(key);
        let answer = self.shared.run(slot(key.as_bytes()), cmd("DEL").arg(&key)).await?;
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
        let key = self.name(key);
        let slot = slot(key.as_bytes());
        let command = |name: &str, body: &str| {
            let mut command = cmd(name);
            command.arg(body).arg(1).arg(&key).arg(arguments);
            command
        };
        match self.shared.ask(slot, &command("EVALSHA", &script.hash)).await {
            Ok(answer) => read(answer),
            // The server was restarted, or is new. It keeps a script that it was given whole.
            Err(CommandFailure::Server(error)) if is_no_script(&error) => {
                read(self.shared.run(slot, &command("EVAL", &script.text)).await?)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Runs another command on a key, which must be the first argument after the name of the command. A key that holds another
    /// kind of value than the command is for is removed, as by a script.
    pub async fn command<T: FromRedisValue>(
        &self,
        name: &str,
        key: &str,
        arguments: &[Vec<u8>],
    ) -> Result<T, HotStoreError> {
        let full_key = self.name(key);
        let mut command = cmd(name);
        command.arg(&full_key).arg(arguments);
        match self.shared.ask(slot(full_key.as_bytes()), &command).await {
            Ok(answer) => read(answer),
            Err(CommandFailure::Server(error)) if error.code() == Some("WRONGTYPE") => {
                let arguments = [&[name.as_bytes().to_vec()], arguments].concat();
                self.script(&self.again, key, &arguments).await
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Sends a message to all front ends that listen, this one included.
    pub async fn publish(&self, channel: &str, message: &[u8]) -> Result<(), HotStoreError> {
        let channel = self.name(channel);
        let mut command = cmd("PUBLISH");
        command.arg(&channel).arg(message);
        self.shared.run(slot(channel.as_bytes()), &command).await.map(drop)
    }

    /// Listens to a channel. The first announcement is [`Announcement::Gap`], once the server sends messages; a receiver
    /// that is too slow learns so by `RecvError::Lagged`, which is a gap too.
    ///
    /// # Errors
    /// [`HotStoreError::Channels`].
    pub fn subscribe(&self, channel: &str) -> Result<broadcast::Receiver<Announcement>, HotStoreError> {
        self.channels.receiver(self.name(channel)).ok_or(HotStoreError::Channels(MAX_CHANNELS))
    }

    /// The store's own time since 1970. In a cluster it is that of one server.
    pub async fn time(&self) -> Result<Duration, HotStoreError> {
        let (seconds, micros): (u64, u64) = self.script(&self.time, "time", &[]).await?;
        Ok(Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros)))
    }

    fn name(&self, key: &str) -> String {
        format!("{}:{key}", self.shared.config.prefix)
    }
}

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
    /// The server or the connection says so.
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
    async fn run(&self, slot: u16, command: &Cmd) -> Result<Value, HotStoreError> {
        Ok(self.ask(slot, command).await?)
    }

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

    async fn send(&self, slot: u16, command: &Cmd) -> Result<Value, CommandFailure> {
        let mut link = self.link.read().unwrap_or_else(PoisonError::into_inner).clone();
        let sent = Instant::now();
        let failure = match timeout(self.config.limits.command, link.run(command)).await {
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

/// Looks regularly whether the store answers, and connects anew if it does not for long.
async fn check(shared: Arc<HotStoreInner>) {
    let probe = slot(format!("{}:probe", shared.config.prefix).as_bytes());
    let key = format!("{}:probe", shared.config.prefix);
    let mut was_up = true;
    loop {
        tokio::time::sleep(shared.config.limits.check).await;
        // Parts that fail are asked by the commands of requests; this one finds an outage without requests.
        let _ = shared.send(probe, cmd("GET").arg(&key)).await;
        let failing = shared.health.failing_for();
        let up = failing.is_zero() || shared.health.is_up();
        if up != was_up {
            if up {
                info!("the store answers again")
            } else {
                warn!("the store does not answer")
            }
            was_up = up;
        }
        shared.metrics.up.set(up.into());
        if failing < RECONNECT_AFTER {
            continue;
        }
        if let Ok(mut link) = StoreConnection::open(&shared.config).await
            && matches!(
                timeout(shared.config.limits.command, link.run(cmd("GET").arg(&key))).await,
                Ok(Ok(_))
            )
        {
            *shared.link.write().unwrap_or_else(PoisonError::into_inner) = link;
            shared.metrics.connections.inc();
            shared.health.reset();
        }
    }
}
