//! The tables of docs/benchmarks.md.

use std::fmt::{self, Display};

use crate::costs::Costs;
use crate::fleet::{Fleet, StationKind};

/// Numbers of front ends.
pub const FRONT_ENDS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Share of the highest rate at which waiting times are reported.
const LOADED: f64 = 0.8;

/// One fleet at its limit, and below it.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetRow {
    /// The fleet.
    pub fleet: Fleet,
    /// The highest rate that it bears, per second.
    pub capacity: f64,
    /// The part that is full then.
    pub full: StationKind,
    /// How busy each kind is then.
    pub busy: [f64; 4],
    /// Median and 99th percentile at four fifths of that rate, in seconds.
    pub times: (f64, f64),
}

impl FleetRow {
    /// Simulates a fleet.
    #[must_use]
    pub fn of(fleet: Fleet, costs: &Costs) -> Self {
        let capacity = fleet.capacity(costs);
        let limit = fleet.load(costs, capacity);
        let loaded = fleet.load(costs, capacity * LOADED);
        Self {
            fleet,
            capacity,
            full: fleet.busiest(&limit).0,
            busy: StationKind::ALL.map(|kind| fleet.busy(&limit, kind)),
            times: (loaded.quantile(0.5), loaded.quantile(0.99)),
        }
    }
}

impl Display for FleetRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fleet { front_ends, shards, databases, backends, .. } = self.fleet;
        let [front, store, database, backend] = self.busy.map(|busy| (busy * 100.0).round());
        let (median, last) = (self.times.0 * 1e3, self.times.1 * 1e3);
        write!(
            f,
            "| {front_ends} | {shards} | {databases} | {backends} | {:.0} | {median:.2} | {last:.1} | {front:.0} | {store:.0} | {database:.0} | {backend:.0} | {} |",
            (self.capacity / 100.0).round() * 100.0,
            self.full.name()
        )
    }
}

/// The first two lines of the table.
pub const TABLE_HEAD: &str = "| front ends | shards | databases | backends | requests per second | p50, ms | p99, ms | front ends busy, % | store | database | backends | full |
|---|---|---|---|---|---|---|---|---|---|---|---|";

/// Fleets of which only the number of front ends differs.
pub fn growing(base: Fleet) -> impl Iterator<Item = Fleet> {
    FRONT_ENDS.into_iter().map(move |front_ends| Fleet { front_ends, ..base })
}

/// Sixty-four front ends; each further row has one more of the part that limits the row before it.
#[must_use]
pub fn relieved(costs: &Costs) -> Vec<FleetRow> {
    let mut fleet = Fleet::new(64);
    let mut rows = vec![FleetRow::of(fleet, costs)];
    while let Some(last) = rows.last().filter(|row| rows.len() < 16 && row.full != StationKind::FrontEnd) {
        match last.full {
            StationKind::FrontEnd => {}
            StationKind::Shard => fleet.shards += 1,
            StationKind::Database => fleet.databases += 1,
            StationKind::Backend => fleet.backends += 1,
        }
        rows.push(FleetRow::of(fleet, costs));
    }
    rows
}
