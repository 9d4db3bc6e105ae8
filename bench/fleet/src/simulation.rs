//! Stations with queues, and requests that pass through them. Times are in seconds.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::random::Sequence;

/// How long a step takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Time {
    /// Always as long.
    Constant(f64),
    /// With an exponential distribution around this mean.
    Exponential(f64),
}

impl Time {
    fn draw(self, sequence: &mut Sequence) -> f64 {
        match self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => sequence.exponential(mean),
        }
    }
}

/// A step of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RequestStep {
    /// Work at a station, given by its number; it waits in the station's queue for a free server.
    Work(usize, Time),
    /// A wait without a queue, such as a network's.
    Wait(Time),
}

/// Servers with one queue, first come, first served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Station {
    /// What the station is, for reports.
    pub name: String,
    /// Number of servers.
    pub servers: usize,
}

/// What a run measured, from the end of its first tenth on.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// Requests that ended per second.
    pub throughput: f64,
    /// Mean number of requests in the system.
    pub in_system: f64,
    /// Times from arrival to end, in ascending order.
    pub times: Vec<f64>,
    /// Share of its servers' time in which each station worked.
    pub busy: Vec<f64>,
}

impl RunResult {
    /// The time that this share of the requests does not exceed, from 0 to 1.
    pub fn quantile(&self, share: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        self.times.get((last as f64 * share) as usize).copied().unwrap_or(f64::NAN)
    }

    /// The mean time of a request.
    pub fn mean(&self) -> f64 {
        self.times.iter().sum::<f64>() / self.times.len() as f64
    }
}

struct FleetRequest {
    arrived: f64,
    /// The steps that have not begun.
    steps: VecDeque<RequestStep>,
}

enum Event {
    Arrival,
    /// A wait ended, or work at this station.
    Done(usize, Option<usize>),
}

/// An event at a time, with its number in the order in which events were made.
struct ScheduledEvent(f64, u64, Event);

impl PartialEq for ScheduledEvent {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ScheduledEvent {}

impl PartialOrd for ScheduledEvent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScheduledEvent {
    /// The earliest event is the greatest; of events at the same time, the one that was made first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0).then(other.1.cmp(&self.1))
    }
}

/// A station while requests pass through it.
struct StationState {
    /// The requests that wait, and the time that each will take.
    queue: VecDeque<(usize, f64)>,
    /// Number of idle servers.
    free: usize,
    /// Time in which servers have worked, added up.
    worked: f64,
}

struct Simulation<'a> {
    events: BinaryHeap<ScheduledEvent>,
    /// Number of events made so far.
    made: u64,
    now: f64,
    stations: Vec<StationState>,
    requests: Vec<FleetRequest>,
    sequence: &'a mut Sequence,
}

impl Simulation<'_> {
    fn at(&mut self, time: f64, event: Event) {
        self.made += 1;
        self.events.push(ScheduledEvent(time, self.made, event));
    }

    /// Begins the next step of a request. Returns whether the request has ended, because no step is left.
    fn advance(&mut self, request: usize) -> bool {
        match self.requests[request].steps.pop_front() {
            None => return true,
            Some(RequestStep::Wait(time)) => {
                let end = self.now + time.draw(self.sequence);
                self.at(end, Event::Done(request, None));
            }
            Some(RequestStep::Work(station, time)) => {
                let work = time.draw(self.sequence);
                self.stations[station].queue.push_back((request, work));
                self.serve(station);
            }
        }
        false
    }

    fn serve(&mut self, station: usize) {
        let state = &mut self.stations[station];
        if state.free == 0 {
            return;
        }
        let Some((request, work)) = state.queue.pop_front() else { return };
        state.free -= 1;
        state.worked += work;
        let end = self.now + work;
        self.at(end, Event::Done(request, Some(station)));
    }
}

/// Lets requests arrive at this mean rate per second, in a Poisson process, until `count` have arrived, and works them off.
/// `steps` gives the steps of each.
pub fn run(
    stations: &[Station],
    rate: f64,
    count: usize,
    sequence: &mut Sequence,
    mut steps: impl FnMut(&mut Sequence) -> Vec<RequestStep>,
) -> RunResult {
    let idle =
        |station: &Station| StationState { queue: VecDeque::new(), free: station.servers, worked: 0.0 };
    let states = stations.iter().map(idle).collect();
    let (events, requests) = (BinaryHeap::new(), Vec::with_capacity(count));
    let mut run = Simulation { events, made: 0, now: 0.0, stations: states, requests, sequence };
    run.at(0.0, Event::Arrival);
    let warm = count / 10;
    let (mut begun, mut worked, mut present, mut area) = (f64::NAN, Vec::new(), 0_usize, 0.0);
    let (mut times, mut ended) = (Vec::with_capacity(count), 0_usize);
    while let Some(ScheduledEvent(time, _, event)) = run.events.pop() {
        area += present as f64 * (time - run.now);
        run.now = time;
        let request = match event {
            Event::Arrival => {
                let steps = steps(run.sequence).into();
                run.requests.push(FleetRequest { arrived: time, steps });
                present += 1;
                let request = run.requests.len() - 1;
                if request == warm {
                    (begun, area) = (time, 0.0);
                    worked = run.stations.iter().map(|state| state.worked).collect();
                }
                if run.requests.len() < count {
                    let next = time + run.sequence.exponential(1.0 / rate);
                    run.at(next, Event::Arrival);
                }
                request
            }
            Event::Done(request, station) => {
                if let Some(station) = station {
                    run.stations[station].free += 1;
                    run.serve(station);
                }
                request
            }
        };
        if run.advance(request) {
            present -= 1;
            if request >= warm {
                ended += 1;
                times.push(time - run.requests[request].arrived);
            }
        }
    }
    let span = run.now - begun;
    let share = |((state, before), station): ((&StationState, &f64), &Station)| {
        (state.worked - before) / span / station.servers as f64
    };
    let busy = run.stations.iter().zip(&worked).zip(stations).map(share).collect();
    times.sort_unstable_by(f64::total_cmp);
    RunResult { throughput: ended as f64 / span, in_system: area / span, times, busy }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: usize = 400_000;

    fn station(servers: usize) -> Station {
        Station { name: "station".into(), servers }
    }

    fn one(rate: f64, servers: usize, time: Time) -> RunResult {
        let mut sequence = Sequence::new(5);
        run(&[station(servers)], rate, COUNT, &mut sequence, |_| vec![RequestStep::Work(0, time)])
    }

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 0.03, "{found}, not {expected}");
    }

    /// M/M/1: the mean time in the system is 1 / (mu - lambda), and it has an exponential distribution.
    #[test]
    fn one_server_with_exponential_work_waits_as_long_as_the_formula_says() {
        let outcome = one(0.7, 1, Time::Exponential(1.0));
        close(outcome.mean(), 1.0 / 0.3);
        close(outcome.quantile(0.5), std::f64::consts::LN_2 / 0.3);
        close(outcome.quantile(0.99), 100.0_f64.ln() / 0.3);
        close(outcome.busy[0], 0.7);
        close(outcome.throughput, 0.7);
    }

    /// M/D/1: the mean time in the queue is rho / (2 mu (1 - rho)).
    #[test]
    fn constant_work_waits_half_as_long() {
        close(one(0.7, 1, Time::Constant(1.0)).mean(), 1.0 + 0.7 / (2.0 * 0.3));
    }

    /// M/M/2 at a load of 0.8: by Erlang's formula a request waits with a probability of 2 rho^2 / (1 + rho).
    #[test]
    fn two_servers_share_a_queue() {
        let waits = 2.0 * 0.64 / 1.8;
        close(one(1.6, 2, Time::Exponential(1.0)).mean(), 1.0 + waits / (2.0 - 1.6));
    }

    /// Little's law, over two stations and a wait.
    #[test]
    fn the_number_of_requests_is_their_rate_times_their_time() {
        let stations = [station(1), station(3)];
        let outcome = run(&stations, 0.8, COUNT, &mut Sequence::new(9), |_| {
            let wait = RequestStep::Wait(Time::Constant(2.0));
            vec![
                RequestStep::Work(0, Time::Exponential(1.0)),
                wait,
                RequestStep::Work(1, Time::Exponential(2.0)),
            ]
        });
        close(outcome.in_system, outcome.throughput * outcome.mean());
        // By Jackson's theorem the second station is an M/M/3 of its own: its Erlang C is 0.2738 at 1.6 erlangs.
        close(outcome.mean(), 5.0 + 2.0 + 2.0 + 0.2738 * 2.0 / (3.0 - 1.6));
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome() {
        let outcome = |seed| {
            let steps = |_: &mut Sequence| vec![RequestStep::Work(0, Time::Exponential(1.0))];
            run(&[station(1)], 0.5, 1_000, &mut Sequence::new(seed), steps)
        };
        assert_eq!(outcome(1), outcome(1));
        assert_ne!(outcome(1), outcome(2));
    }
}
