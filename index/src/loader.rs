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

/// Most attempts to take the lock again after the connection that held it broke: the server may take a minute to notice
/// that the connection is gone.
const RELOCKS: u32 = 45;

/// Fills an index from a source and keeps it at the source's head.
pub struct Loader {
    /// The database.
    pub database: Database,
    /// The network of source and index.
    pub network: Network,
    /// How the index is opened.
    pub setup: Setup,
    /// Where blocks come from.
    pub source: Arc<dyn BlockSource>,
    /// How it is loaded.
    pub options: LoaderOptions,
    /// The receiver of reports.
    pub observer: Observer,
}

impl Loader {
    /// Loads until an error that does not pass, or with [`LoaderOptions::once`] until the head is reached. After a restart
    /// of the server, or while its disk is full, it goes on from what is stored. The first connection must succeed.
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
            let own_lock = locked && opened && relocks <= RELOCKS;
            // A database that was never reached is more likely a mistake in its address than one that starts.
            let passing = error.is_transient() && (opened || matches!(error, LoadError::Source(_)));
            if !own_lock && !passing {
                return Err(error);
            }
            warn!("{error}; trying again");
            tokio::time::sleep(self.options.retry).await;
        }
    }

    /// Opens the index, and loads until an error.
    async fn session(&self, opened: &mut bool) -> Result<(), LoadError> {
        let head = self.source.head().await?;
        let size = self.setup.partition_blocks.unwrap_or(crate::writer::PARTITION_BLOCKS).max(1);
        let kept = self.options.retain.map_or(0, |retain| head.saturating_add(1).saturating_sub(retain));
        let kept = kept.checked_div(size).unwrap_or(0).saturating_mul(size);
        // Retention drops blocks above the first one that was asked for, so only a new index begins there.
        let (first_block, default_first_block) = match (self.options.retain, self.setup.first_block) {
            (Some(_), asked) => (None, kept.max(asked.unwrap_or(0))),
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
        tail.retain(head).await?;
        let (filled, newest) = self.parts(writer.prepare(head).await?, head);
        self.report_plan(&filled, &newest, head);
        let mut jobs = self.jobs(&context, filled);
        let following = tail.run(&newest);
        tokio::pin!(following);
        let mut at_head = false;
        loop {
            tokio::select! {
                ended = &mut following, if !at_head => {
                    ended?;
                    at_head = true;
                }
                Some(job) = jobs.join_next(), if !jobs.is_empty() => {
                    job.map_err(|failure| IndexError::Task(failure.to_string()))??;
                }
                else => break,
            }
        }
        // The blocks that were loaded last may prove the other ones.
        writer.mark_ancestors_proven().await?;
        if self.options.traces {
            traced::fill(&context, self.options.batch).await?;
        }
        Ok(())
    }

    /// Divides ranges into those that are filled beside the head and those that follow it. A gap below loaded blocks is
    /// filled within its partition: blocks that are appended in order would replace those.
    fn parts(&self, ranges: Vec<PartitionRange>, head: u64) -> (Vec<PartitionRange>, Vec<PartitionRange>) {
        let loaded = ranges.iter().filter(|range| range.next > range.first).map(|range| range.first).max();
        let is_gap =
            |range: &PartitionRange| !range.is_full() && loaded.is_some_and(|loaded| range.first < loaded);
        ranges
            .into_iter()
            .partition(|range| range.end.saturating_add(self.options.settled) <= head || is_gap(range))
    }

    /// Starts what runs beside the head.
    fn jobs(&self, context: &LoaderContext, filled: Vec<PartitionRange>) -> JoinSet<Result<(), LoadError>> {
        let backfill = Arc::new(Backfill::new(filled));
        let mut jobs = JoinSet::new();
        for _ in 0..self.options.jobs.max(1) {
            jobs.spawn(fill(context.clone(), backfill.clone(), self.options.batch));
        }
        if self.options.traces && !self.options.once {
            jobs.spawn(traced::follow(context.clone(), self.options.batch, self.options.poll));
        }
        jobs
    }

    fn report_plan(&self, filled: &[PartitionRange], newest: &[PartitionRange], head: u64) {
        let missing =
            |range: &PartitionRange| range.end.min(head.saturating_add(1)).saturating_sub(range.next);
        let missing = filled.iter().chain(newest).map(missing).fold(0, u64::saturating_add);
        (self.observer)(LoadEvent::Planned { missing, head });
    }
}
