//! How long a run is, and which faults it has.

use std::path::PathBuf;
use std::time::Duration;

use fastrand::Rng;

use crate::faults::Fault;

pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) faults: Vec<Fault>,
    /// How long a fault lasts.
    pub(crate) length: Duration,
    /// Time from one fault to the next, at least.
    pub(crate) interval: Duration,
    /// Time between two blocks.
    pub(crate) block: Duration,
    /// Percent of the usual number of questions.
    pub(crate) rate: u64,
    pub(crate) report: PathBuf,
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

fn report(name: &str) -> PathBuf {
    let place = std::env::var_os("ROOTLIGHT_SERVICE_REPORT");
    place.map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name), PathBuf::from)
}

fn seed() -> u64 {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    variable("ROOTLIGHT_SERVICE_SEED").unwrap_or_else(|| clock.unwrap().as_millis() as u64 % 1_000_000)
}

impl Settings {
    /// A few faults within seconds.
    pub(crate) fn short() -> Self {
        let seed = seed();
        let mut faults =
            vec![Fault::FrontEndKilled, Fault::StoreFlushed, Fault::BackendLies, Fault::Reorganisation];
        Rng::with_seed(seed).shuffle(&mut faults);
        Self {
            seed,
            faults,
            length: Duration::from_millis(600),
            interval: Duration::from_millis(1_500),
            block: Duration::from_millis(400),
            rate: 100,
            report: report("service-short.json"),
        }
    }

    /// All faults once, or for `ROOTLIGHT_SERVICE_SECONDS` one every `ROOTLIGHT_SERVICE_INTERVAL` seconds.
    pub(crate) fn long() -> Self {
        let seed = seed();
        let mut random = Rng::with_seed(seed);
        let seconds = variable("ROOTLIGHT_SERVICE_SECONDS");
        let interval =
            variable("ROOTLIGHT_SERVICE_INTERVAL").unwrap_or(if seconds.is_some() { 60 } else { 5 });
        let count = seconds.map_or(Fault::ALL.len() as u64, |seconds| seconds / interval.max(1));
        let mut faults = Vec::new();
        while (faults.len() as u64) < count {
            let mut all = Fault::ALL.to_vec();
            random.shuffle(&mut all);
            faults.append(&mut all);
        }
        faults.truncate(count as usize);
        let faults = match std::env::var("ROOTLIGHT_SERVICE_FAULTS") {
            Ok(words) => named(faults, &words),
            Err(_) => faults,
        };
        Self {
            seed,
            faults,
            length: Duration::from_secs(3),
            interval: Duration::from_secs(interval),
            block: Duration::from_millis(1_200),
            rate: variable("ROOTLIGHT_SERVICE_RATE").unwrap_or(100),
            report: report("service.json"),
        }
    }

    /// A pause between two questions of a client at this rate of the settings.
    pub(crate) fn pause(&self, millis: u64) -> Duration {
        Duration::from_millis(millis * 100 / self.rate.max(1))
    }
}

/// The faults whose names contain one of these words, separated by commas.
fn named(faults: Vec<Fault>, words: &str) -> Vec<Fault> {
    let wanted = |fault: &Fault| words.split(',').any(|word| fault.name().contains(word));
    faults.into_iter().filter(wanted).collect()
}
