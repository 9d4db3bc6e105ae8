//! The loader: fills an index from a source and keeps it at the source's head.

use std::sync::Arc;

use rootlight::consensus::Network;
use tokio::task::JoinSet;
use tracing::warn;

use crate::backfill::{Backfill, fill};
use crate::connect::Database;
use crate::context::{LoadError, LoadEvent, LoaderContext, LoaderOptions, Observer};
use crate::error::IndexError;
use crate::source::BlockSource;
use crate::state::PartitionRange;
use crate::tail::Tail;
use crate::traced;
use crate::writer::{Setup, Writer};

/// Most attempts to take the lock again after the connection that held it broke: 90 s with the default pause
/// ([`LoaderOptions::retry`]), because the server may take a minute to notice that the connection is gone.
const MAX_RELOCKS: u32 = 45;

/// Fills an index from a source and keeps it at the source's head.
pub struct Loader {
    /// The database.
    pub database: Database,
    /// The network of source and index.
    pub network: Network,
    /// How the index is opened.
    pub setup: Setup,
    /// The source of the blocks.
    pub source: Arc<dyn BlockSource>,
    /// How the index is loaded.
    pub options: LoaderOptions,
    /// The receiver of reports.
    pub observer: Observer,
}

impl Loader {
    /// Loads until an error that does not pass, or with [`LoaderOptions::once`] until the head is reached. After a restart
    /// of the database server, or while the server's disk is full, the loader goes on from the blocks that are stored. The
    /// first connection must succeed.
    ///
    /// # Errors
    /// The error that does not pass.
    pub async fn run(&self) -> Result<(), LoadError> {
        let (mut opened, mut relocks) = (false, 0_u32);
        loop {
            let error = match self.session(&mut opened).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let locked = matches!(error, LoadError::Index(IndexError::Locked { .. }));
            relocks = if locked { relocks.saturating_add(1) } else { 0 };
            // The lock may be that of this loader's own connection, which broke.
            let own_lock = locked && opened && relocks <= MAX_RELOCKS;
            // A database that was never reached is more likely a mistake in its address than one that starts.
            let passing = error.is_transient() && (opened || matches!(error, LoadError::Source(_)));
            if !own_lock && !passing {
                return Err(error);
            }
            warn!("{error}; trying again");
            tokio::time::sleep(self.options.retry).await;
        }
    }

    /// Opens the index, and loads until an error. Sets `opened` once the index is open.
    async fn session(&self, opened: &mut bool) -> Result<(), LoadError> {
        let head = self.source.head().await?;
        let size = self.setup.partition_blocks.unwrap_or(crate::writer::PARTITION_BLOCKS).max(1);
        // The first block of the partition at which retention begins; 0 if all blocks stay.
        let oldest = self.options.retain.map_or(0, |retain| head.saturating_add(1).saturating_sub(retain));
        let retained_from = oldest.checked_div(size).unwrap_or(0).saturating_mul(size);
        // Retention drops blocks above the configured first block. So with retention an existing index is not compared with
        // that block (`first_block` is `None`); only a new index begins there.
        let (first_block, default_first_block) = match (self.options.retain, self.setup.first_block) {
            (Some(_), asked) => (None, retained_from.max(asked.unwrap_or(0))),
            (None, asked) => (asked, 0),
        };
        let setup = Setup { first_block, ..self.setup.clone() };
        let writer = Writer::open_from(&self.database, &self.network, &setup, default_first_block).await?;
        let writer = Arc::new(writer);
        *opened = true;
        (self.observer)(LoadEvent::Opened);
        let context = LoaderContext {
            writer: writer.clone(),
            source: self.source.clone(),
            observer: self.observer.clone(),
        };
        let mut tail = Tail::new(context.clone(), &self.options);
        tail.drop_old(head).await?;
        let (backfilled, newest) = self.split_ranges(writer.prepare(head).await?, head);
        self.report_plan(&backfilled, &newest, head);
        let mut jobs = self.start_jobs(&context, backfilled);
        let following = tail.run(&newest);
        tokio::pin!(following);
        // Without `once`, following and the job that adds traces end only by an error.
        let mut following_ended = false;
        loop {
            tokio::select! {
                ended = &mut following, if !following_ended => {
                    ended?;
                    following_ended = true;
                }
                Some(job) = jobs.join_next(), if !jobs.is_empty() => {
                    job.map_err(|failure| IndexError::Task(failure.to_string()))??;
                }
                else => break,
            }
        }
        // Everything is loaded (`once`). The blocks that were loaded last may prove the other ones.
        writer.mark_ancestors_proven().await?;
        if self.options.traces {
            traced::fill(&context, self.options.batch).await?;
        }
        Ok(())
    }

    /// Divides ranges into those that the backfill loads and those that [`Tail`] loads in ascending order. A gap below
    /// loaded blocks belongs to the backfill: [`Tail`] would take its blocks for a reorganisation that replaces the blocks above.
    fn split_ranges(
        &self,
        ranges: Vec<PartitionRange>,
        head: u64,
    ) -> (Vec<PartitionRange>, Vec<PartitionRange>) {
        // The first block of the newest range that has blocks.
        let loaded = ranges.iter().filter(|range| range.next > range.first).map(|range| range.first).max();
        let is_gap =
            |range: &PartitionRange| !range.is_full() && loaded.is_some_and(|loaded| range.first < loaded);
        ranges
            .into_iter()
            .partition(|range| range.end.saturating_add(self.options.settled_depth) <= head || is_gap(range))
    }

    /// Starts the tasks that run beside [`Tail`]: the backfill, and adding traces to stored blocks.
    fn start_jobs(
        &self,
        context: &LoaderContext,
        backfilled: Vec<PartitionRange>,
    ) -> JoinSet<Result<(), LoadError>> {
        let backfill = Arc::new(Backfill::new(backfilled));
        let mut jobs = JoinSet::new();
        for _ in 0..self.options.jobs.max(1) {
            jobs.spawn(fill(context.clone(), backfill.clone(), self.options.batch));
        }
        if self.options.traces && !self.options.once {
            jobs.spawn(traced::follow(context.clone(), self.options.batch, self.options.poll));
        }
        jobs
    }

    fn report_plan(&self, backfilled: &[PartitionRange], newest: &[PartitionRange], head: u64) {
        let missing =
            |range: &PartitionRange| range.end.min(head.saturating_add(1)).saturating_sub(range.next);
        let missing = backfilled.iter().chain(newest).map(missing).fold(0, u64::saturating_add);
        (self.observer)(LoadEvent::Planned { missing, head });
    }
}
