//! `rootlight doctor --replay`: reads a report, and opens the recordings beside it as the only sources of a new run. The new
//! run uses the time at which the former one ended.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rootlight::consensus::Checkpoint;
use rootlight::types::B256;
use rootlight_limits::files;
use rootlight_limits::io_words::of_path;
use rootlight_node::light::LightStart;
use rootlight_upstream::bitcoin::BitcoinSource;
use rootlight_upstream::replay::Replay;
use rootlight_upstream::{HttpConfig, SharedUpstream};
use serde::Deserialize;
use serde_json::Value;

use super::examine::{BITCOIN, BITCOIN_FILE, STATE_SERVER, UPSTREAM};
use super::report::PEERS;

/// Longest report that is read, in bytes; bounds memory.
const MAX_REPORT: u64 = 16 * 1024 * 1024;

/// The run that a report describes.
#[derive(Debug, Deserialize)]
pub(super) struct FormerRun {
    pub(super) network: String,
    #[serde(default)]
    pub(super) checkpoint: Option<String>,
    /// Seconds since 1970.
    started: u64,
    /// Duration of the run.
    milliseconds: u64,
    steps: Vec<FormerStep>,
    /// The folders of the recordings; only their names count.
    recordings: Vec<PathBuf>,
}

/// The parts of a step of a report that are read again.
#[derive(Debug, Deserialize)]
struct FormerStep {
    subject: String,
    #[serde(default)]
    details: Value,
}

/// The sources of a former run, as recorded.
#[derive(Default)]
pub(super) struct FormerSources {
    /// The recordings of peers and of upstreams.
    pub(super) upstreams: Vec<SharedUpstream>,
    /// Nodes that were tried by themselves, each with its start; `None` stands for the first start of the run.
    pub(super) alone: Vec<(SharedUpstream, Option<LightStart>)>,
    pub(super) bitcoin: Vec<Arc<BitcoinSource>>,
}

/// The folder of the recordings beside a report.
pub(super) fn recordings(report: &Path) -> PathBuf {
    let mut folder = OsString::from(report);
    folder.push(".recording");
    folder.into()
}

impl FormerRun {
    /// Reads a report; an error is a text for the user.
    pub(super) fn read(file: &Path) -> Result<Self, String> {
        let bytes = files::read(file, MAX_REPORT).map_err(|error| of_path(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| format!("not a report: {error}"))
    }

    /// The time at which the run ended, in seconds since 1970.
    pub(super) const fn ended(&self) -> u64 {
        self.started.saturating_add(self.milliseconds / 1_000)
    }

    /// Opens the recordings beside the report, which may have been moved together with it.
    pub(super) fn open(&self, file: &Path, config: &HttpConfig) -> Result<FormerSources, String> {
        let mut sources = FormerSources::default();
        for path in &self.recordings {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let folder = recordings(file).join(name);
            let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", folder.display());
            if name.starts_with(BITCOIN) {
                let source =
                    BitcoinSource::replay(&folder.join(BITCOIN_FILE)).map_err(|error| wrong(&error))?;
                sources.bitcoin.push(Arc::new(source));
                continue;
            }
            let open = || match Replay::open_within(&folder, config.limits.clone()) {
                Ok(replay) => Ok(Arc::new(replay) as SharedUpstream),
                Err(error) => Err(wrong(&error)),
            };
            if name == PEERS || name.starts_with(UPSTREAM) {
                sources.upstreams.push(open()?);
            } else if let Some(number) = name.strip_prefix(STATE_SERVER) {
                sources.alone.push((open()?, self.start_of(number)));
            }
        }
        Ok(sources)
    }

    /// The start of the state server with this number; numbers begin with 1, as in the names of the folders.
    fn start_of(&self, number: &str) -> Option<LightStart> {
        let mut servers = self.steps.iter().filter(|step| step.subject == "stateServer");
        let start = &servers.nth(number.parse::<usize>().ok()?.checked_sub(1)?)?.details["start"];
        let hash: B256 = start["hash"].as_str()?.parse().ok()?;
        let number = start["number"].as_u64()?;
        Some(LightStart::At(Checkpoint { number, hash, total_difficulty: None }))
    }
}
