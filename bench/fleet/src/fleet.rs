//! A service as stations, and the way of a request through them.

use crate::costs::Costs;
use crate::random::Sequence;
use crate::simulation::{RequestStep, RunResult, Station, Time, run};

/// The longest 99th percentile of a service that bears its load, in seconds.
pub const LIMIT: f64 = 0.05;

/// The busiest that a part may be: beyond it, waiting times depend on the length of the run.
pub const FULL: f64 = 0.97;

/// Requests of a run.
const REQUESTS: usize = 120_000;

/// How many machines of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    /// Front ends.
    pub front_ends: usize,
    /// Processors of a front end.
    pub processors: usize,
    /// Shards of the store, each of which runs commands one by one.
    pub shards: usize,
    /// Database servers: one, and replicas that read.
    pub databases: usize,
    /// Processors of a database server.
    pub database_processors: usize,
    /// Backends.
    pub backends: usize,
    /// Processors of a backend.
    pub backend_processors: usize,
}

/// The kinds of stations, in the order of a fleet's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StationKind {
    /// A front end.
    FrontEnd,
    /// A shard of the store.
    Shard,
    /// A database server.
    Database,
    /// A backend.
    Backend,
}

impl StationKind {
    /// All kinds, in order.
    pub const ALL: [Self; 4] = [Self::FrontEnd, Self::Shard, Self::Database, Self::Backend];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FrontEnd => "front ends",
            Self::Shard => "store",
            Self::Database => "database",
            Self::Backend => "backends",
        }
    }
}

impl Fleet {
    /// A fleet with so many front ends, and one shard, one database server and two backends.
    #[must_use]
    pub const fn new(front_ends: usize) -> Self {
        Self {
            front_ends,
            processors: 2,
            shards: 1,
            databases: 1,
            database_processors: 8,
            backends: 2,
            backend_processors: 4,
        }
    }

    const fn count(&self, kind: StationKind) -> usize {
        match kind {
            StationKind::FrontEnd => self.front_ends,
            StationKind::Shard => self.shards,
            StationKind::Database => self.databases,
            StationKind::Backend => self.backends,
        }
    }

    const fn servers(&self, kind: StationKind) -> usize {
        match kind {
            StationKind::FrontEnd => self.processors,
            StationKind::Shard => 1,
            StationKind::Database => self.database_processors,
            StationKind::Backend => self.backend_processors,
        }
    }

    fn range(&self, kind: StationKind) -> std::ops::Range<usize> {
        let before = StationKind::ALL.iter().take_while(|other| **other != kind);
        let first: usize = before.map(|other| self.count(*other)).sum();
        first..first + self.count(kind)
    }

    fn stations(&self) -> Vec<Station> {
        let of = |kind: StationKind| {
            let station = Station { name: kind.name().into(), servers: self.servers(kind) };
            std::iter::repeat_n(station, self.count(kind))
        };
        StationKind::ALL.into_iter().flat_map(of).collect()
    }

    /// One of the stations of a kind: the balancer and the keys of the store spread requests evenly.
    fn any(&self, kind: StationKind, sequence: &mut Sequence) -> usize {
        self.range(kind).start + sequence.below(self.count(kind))
    }

    fn steps(&self, costs: &Costs, sequence: &mut Sequence) -> Vec<RequestStep> {
        let front_end = self.any(StationKind::FrontEnd, sequence);
        let one_way = RequestStep::Wait(Time::Constant(costs.network / 2.0));
        let mut steps = Vec::new();
        if sequence.uniform() * costs.lease < 1.0 {
            let shard = self.any(StationKind::Shard, sequence);
            let command = RequestStep::Work(front_end, Time::Constant(costs.command));
            steps.extend([command, one_way, RequestStep::Work(shard, Time::Constant(costs.count)), one_way]);
        }
        let drawn = sequence.uniform();
        let fetched = if drawn < costs.look_up_share {
            Some((StationKind::Database, costs.look_up, costs.read))
        } else if drawn < costs.look_up_share + costs.many_logs_share {
            Some((StationKind::Database, costs.logs, costs.read_logs))
        } else if drawn < costs.look_up_share + costs.many_logs_share + costs.proof_share {
            Some((StationKind::Backend, costs.backend, costs.verify))
        } else {
            None
        };
        if let Some((kind, time, read_time)) = fetched {
            let work = RequestStep::Work(self.any(kind, sequence), Time::Exponential(time));
            let read = RequestStep::Work(front_end, Time::Exponential(read_time));
            steps.extend([one_way, work, one_way, read]);
        }
        steps.push(RequestStep::Work(front_end, Time::Exponential(costs.answer)));
        steps
    }

    /// Lets requests arrive at this rate per second.
    pub fn load(&self, costs: &Costs, rate: f64) -> RunResult {
        let mut sequence = Sequence::new(17);
        run(&self.stations(), rate, REQUESTS, &mut sequence, |sequence| self.steps(costs, sequence))
    }

    /// The share of their time in which the stations of a kind work, on average.
    pub fn busy(&self, outcome: &RunResult, kind: StationKind) -> f64 {
        let busy = outcome.busy.get(self.range(kind)).unwrap_or_default();
        busy.iter().sum::<f64>() / busy.len() as f64
    }

    /// The busiest kind of stations, and the share of their time in which they work.
    pub fn busiest(&self, outcome: &RunResult) -> (StationKind, f64) {
        let busy = StationKind::ALL.map(|kind| (kind, self.busy(outcome, kind)));
        busy.into_iter()
            .fold((StationKind::FrontEnd, 0.0), |most, one| if one.1 > most.1 { one } else { most })
    }

    /// The processor time of a request at a kind of stations, on average.
    #[must_use]
    pub fn demand(costs: &Costs, kind: StationKind) -> f64 {
        let fetches = costs.look_up_share * costs.read
            + costs.many_logs_share * costs.read_logs
            + costs.proof_share * costs.verify;
        match kind {
            StationKind::FrontEnd => costs.answer + fetches + costs.command / costs.lease,
            StationKind::Shard => costs.count / costs.lease,
            StationKind::Database => costs.look_up_share * costs.look_up + costs.many_logs_share * costs.logs,
            StationKind::Backend => costs.proof_share * costs.backend,
        }
    }

    /// The rate that no queueing could exceed.
    pub fn bound(&self, costs: &Costs) -> f64 {
        let bound = |kind| (self.count(kind) * self.servers(kind)) as f64 / Self::demand(costs, kind);
        StationKind::ALL.into_iter().map(bound).fold(f64::INFINITY, f64::min)
    }

    /// The highest rate at which the 99th percentile is at most [`LIMIT`] and no part is busier than [`FULL`].
    pub fn capacity(&self, costs: &Costs) -> f64 {
        let (mut bears, mut fails) = (0.0, self.bound(costs) * 1.05);
        for _ in 0..9 {
            let rate = (bears + fails) / 2.0;
            let outcome = self.load(costs, rate);
            match outcome.quantile(0.99) <= LIMIT && self.busiest(&outcome).1 <= FULL {
                true => bears = rate,
                false => fails = rate,
            }
        }
        bears
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_as_busy_as_its_demand_says() {
        let (fleet, costs) = (Fleet { shards: 2, ..Fleet::new(4) }, Costs::default());
        let rate = fleet.bound(&costs) / 2.0;
        let outcome = fleet.load(&costs, rate);
        for kind in StationKind::ALL {
            let servers = (fleet.count(kind) * fleet.servers(kind)) as f64;
            let expected = rate * Fleet::demand(&costs, kind) / servers;
            let found = fleet.busy(&outcome, kind);
            assert!((found / expected - 1.0).abs() < 0.05, "{kind:?}: {found}, not {expected}");
        }
    }

    /// Twice as many front ends bear twice as much, until another part is full.
    #[test]
    fn throughput_grows_with_front_ends_until_another_part_is_full() {
        let costs = Costs::default();
        let [one, two] = [1, 2].map(|count| Fleet::new(count).capacity(&costs));
        assert!((two / one - 2.0).abs() < 0.1, "{one} and {two}");
        let many = Fleet::new(256);
        let outcome = many.load(&costs, many.capacity(&costs));
        assert_ne!(many.busiest(&outcome).0, StationKind::FrontEnd);
    }

    #[test]
    fn stations_of_a_fleet_follow_each_other() {
        let fleet = Fleet { shards: 3, databases: 2, ..Fleet::new(4) };
        assert_eq!(StationKind::ALL.map(|kind| fleet.range(kind)), [0..4, 4..7, 7..9, 9..11]);
        assert_eq!(fleet.stations().len(), 11);
    }
}
