//! The faults. Each ends with everything running again; the service may need some more time to recover.

mod backends;
mod database;
mod front_ends;
mod indexers;
mod store;

use std::time::Duration;

use fastrand::Rng;

use crate::balancer::UsedKey;
use crate::running_service::{RunningService, faketime};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    FrontEndKilled,
    StoreNodeRestarted,
    StoreFailedOver,
    StoreFlushed,
    StoreStalled,
    DatabaseRestarted,
    DatabaseFull,
    ReplicaLags,
    TwoIndexers,
    BackendLies,
    BackendLags,
    BackendForks,
    BackendHangs,
    BackendAway,
    ClocksDiffer,
    Reorganisation,
}

impl Fault {
    pub(crate) const ALL: [Self; 16] = [
        Self::FrontEndKilled,
        Self::StoreNodeRestarted,
        Self::StoreFailedOver,
        Self::StoreFlushed,
        Self::StoreStalled,
        Self::DatabaseRestarted,
        Self::DatabaseFull,
        Self::ReplicaLags,
        Self::TwoIndexers,
        Self::BackendLies,
        Self::BackendLags,
        Self::BackendForks,
        Self::BackendHangs,
        Self::BackendAway,
        Self::ClocksDiffer,
        Self::Reorganisation,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FrontEndKilled => "front end killed",
            Self::StoreNodeRestarted => "store: node restarted",
            Self::StoreFailedOver => "store: failed over",
            Self::StoreFlushed => "store: flushed",
            Self::StoreStalled => "store: stalled",
            Self::DatabaseRestarted => "database: restarted",
            Self::DatabaseFull => "database: disk full",
            Self::ReplicaLags => "database: replica lags",
            Self::TwoIndexers => "two indexers",
            Self::BackendLies => "backend lies",
            Self::BackendLags => "backend lags",
            Self::BackendForks => "backend forks",
            Self::BackendHangs => "backend hangs",
            Self::BackendAway => "backend is away",
            Self::ClocksDiffer => "clocks differ by minutes",
            Self::Reorganisation => "reorganisation",
        }
    }

    /// Whether the store may lose or withhold what it has.
    pub(crate) fn is_of_store(self) -> bool {
        matches!(
            self,
            Self::StoreNodeRestarted | Self::StoreFailedOver | Self::StoreFlushed | Self::StoreStalled
        )
    }

    /// Whether the machine lacks what the fault needs.
    pub(crate) fn lacks(self, service: &RunningService) -> Option<&'static str> {
        match self {
            Self::DatabaseFull if !service.small_disk => Some("file systems cannot be mounted here"),
            Self::ClocksDiffer if faketime().is_none() => Some("libfaketime is not installed"),
            _ => None,
        }
    }
}

pub(crate) struct Striker<'a> {
    pub(crate) service: &'a mut RunningService,
    pub(crate) random: &'a mut Rng,
    /// The key of questions about health.
    pub(crate) key: &'a UsedKey,
    /// How long a fault lasts.
    pub(crate) length: Duration,
}

impl Striker<'_> {
    /// Lets a fault happen.
    pub(crate) async fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::FrontEndKilled => self.kill_front_end().await,
            Fault::StoreNodeRestarted => self.restart_node().await,
            Fault::StoreFailedOver => self.fail_over().await,
            Fault::StoreFlushed => self.flush_store().await,
            Fault::StoreStalled => self.stall_store().await,
            Fault::DatabaseRestarted => self.restart_database().await,
            Fault::DatabaseFull => self.fill_database().await,
            Fault::ReplicaLags => self.let_replica_lag().await,
            Fault::TwoIndexers => self.start_two_indexers().await,
            Fault::BackendLies => self.let_backend_lie().await,
            Fault::BackendLags => self.let_backend_lag().await,
            Fault::BackendForks => self.let_backend_fork().await,
            Fault::BackendHangs => self.let_backend_hang().await,
            Fault::BackendAway => self.stop_backend().await,
            Fault::ClocksDiffer => self.shift_clocks().await,
            Fault::Reorganisation => self.reorganise().await,
        }
    }

    async fn last(&self) {
        tokio::time::sleep(self.length).await;
    }
}
