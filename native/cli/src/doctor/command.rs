//! `rootlight doctor`: tries each step of reading the chain.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight::light::SyncOptions;
use rootlight_limits::sanitize::output;
use rootlight_limits::unix_time::unix_time;
use rootlight_limits::{Limits, files};
use rootlight_node::light::start;
use rootlight_p2p::network::PeerNetwork;
use rootlight_upstream::p2p::find::BootHost;
use rootlight_upstream::{self as upstream, HttpConfig, SharedUpstream};

use super::{DoctorPlan, DoctorReport, DoctorStep, StepOutcome, examine};
use crate::error::CommandError;
use crate::find_args::DoctorArgs;
use crate::print::say;
use crate::runtime::runtime;
use crate::{discovery, verify};

/// Tries all steps, prints them, and writes the report.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), CommandError> {
    let network = verify::network(&args.network)?;
    let peers = PeerNetwork::of(&network);
    let is_idle = peers.as_ref().is_some_and(discovery::is_private);
    let floor = SyncOptions::default().work_floor;
    let plan = DoctorPlan {
        boot: boot_hosts(args, &network)?,
        state_servers: peers
            .iter()
            .flat_map(|peers| discovery::state_servers(&args.finding, peers))
            .collect(),
        start: start(args.checkpoint.as_deref(), &network, floor, unix_time())
            .map_err(|error| CommandError::Usage(error.to_string()))?,
        allow_private: args.finding.allow_private_peers || is_idle,
        peers: args.peer.clone(),
        upstreams: Vec::new(),
        limits: Limits::new(),
        is_idle,
        limit: Duration::from_secs(args.seconds),
        recordings: args.report.as_deref().map(recordings),
        network,
    };
    let mut tell = |step: &DoctorStep| {
        if !args.json {
            say!("{}", text(step));
        }
    };
    let report = runtime()?.block_on(async {
        let config = || HttpConfig { limits: plan.limits.clone(), ..HttpConfig::one_of_several() };
        let open = |text: &String| upstream::open_with(text, config());
        let upstreams: Vec<SharedUpstream> = args.upstream.iter().map(open).collect::<Result<_, _>>()?;
        examine(&DoctorPlan { upstreams, ..plan }, &mut tell).await.map_err(CommandError::failed)
    })?;
    let json = serde_json::to_string_pretty(&report).map_err(CommandError::failed)?;
    if args.json {
        say!("{json}");
    }
    if let Some(path) = &args.report {
        files::write(path, format!("{}\n", output(&json)).as_bytes())
            .map_err(|error| CommandError::failed(format!("{}: {error}", path.display())))?;
    }
    conclude(&report, args.json)
}

/// The hosts to ask for nodes. There are none if the user names other sources and the network has none.
fn boot_hosts(args: &DoctorArgs, network: &Network) -> Result<Vec<BootHost>, CommandError> {
    if PeerNetwork::of(network).is_none() && !args.peer.is_empty() {
        return discovery::peer_network(network).map(|_| Vec::new());
    }
    match discovery::boot_hosts(&args.finding, network, None) {
        Err(_) if !args.peer.is_empty() || !args.upstream.is_empty() => Ok(Vec::new()),
        hosts => hosts,
    }
}

/// The folder of the recordings beside a report.
fn recordings(report: &Path) -> PathBuf {
    let mut folder = OsString::from(report);
    folder.push(".recording");
    folder.into()
}

fn text(step: &DoctorStep) -> String {
    let mark = match step.outcome {
        StepOutcome::Ok => "ok     ",
        StepOutcome::Failed => "FAILED ",
        StepOutcome::Skipped => "skipped",
    };
    let mut text = format!("{mark} {}, {}: {}", step.source, step.subject.name(), step.seen);
    if step.outcome != StepOutcome::Skipped {
        text.push_str(&format!(" ({} ms)", step.milliseconds));
    }
    if let Some(help) = &step.help {
        text.push_str(&format!("\n        {help}"));
    }
    text
}

fn conclude(report: &DoctorReport, quiet: bool) -> Result<(), CommandError> {
    if !report.proven_by.is_empty() {
        if !quiet {
            say!("a verified head and a proof of state: from {}", report.proven_by.join(", "));
        }
        return Ok(());
    }
    let first = match report.first_failure() {
        Some(step) => format!("; the first step that failed: {}, {}", step.source, step.subject.name()),
        None => String::new(),
    };
    Err(CommandError::failed(format!("no source gave both a verified head and a proof of state{first}")))
}
