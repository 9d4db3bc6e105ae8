//! `rootlight doctor` from its flags to its exit code: makes the plan, runs [`examine()`], prints the steps and writes the report.

use std::path::Path;
use std::time::Duration;

use rootlight::consensus::Network;
use rootlight::light::SyncOptions;
use rootlight_limits::io_words::of_path;
use rootlight_limits::sanitize::output;
use rootlight_limits::unix_time::unix_time;
use rootlight_limits::{Limits, files};
use rootlight_node::light::{LightStart, start};
use rootlight_p2p::network::PeerNetwork;
use rootlight_upstream::bitcoin::BitcoinSourceConfig;
use rootlight_upstream::p2p::find::BootHost;
use rootlight_upstream::{self as upstream, HttpConfig, SharedUpstream};

use super::replay::{FormerRun, recordings};
use super::{DoctorPlan, DoctorReport, DoctorStep, StepOutcome, examine};
use crate::error::CommandError;
use crate::find_args::DoctorArgs;
use crate::print::say;
use crate::runtime::runtime;
use crate::{bitcoin, discovery, verify};

/// Tries all steps, prints them, and writes the report.
pub(crate) fn run(args: &DoctorArgs) -> Result<(), CommandError> {
    let plan = plan(args)?;
    let mut print = |step: &DoctorStep| {
        if !args.json {
            say!("{}", text(step));
        }
    };
    let report = runtime()?.block_on(async {
        let config = HttpConfig { limits: plan.limits.clone(), ..HttpConfig::one_of_several() };
        let plan = match &args.replay {
            Some(file) => replayed(plan, file, &config)?,
            None => plan,
        };
        let open = |text: &String| {
            let opened = upstream::open_with(text, config.clone());
            opened.map_err(|error| CommandError::of_upstream("--upstream", error))
        };
        let named: Vec<SharedUpstream> = args.upstream.iter().map(open).collect::<Result<_, _>>()?;
        let upstreams = plan.upstreams.iter().cloned().chain(named).collect();
        examine(&DoctorPlan { upstreams, ..plan }, &mut print).await.map_err(CommandError::failed)
    })?;
    let json = serde_json::to_string_pretty(&report).map_err(CommandError::failed)?;
    if args.json {
        say!("{json}");
    }
    if let Some(path) = &args.report {
        files::write(path, format!("{}\n", output(&json)).as_bytes()).map_err(|error| {
            CommandError::of_flag("--report", format!("{}: {}", path.display(), of_path(&error)))
        })?;
    }
    conclude(&report, args.json)
}

/// The plan that the flags describe; its upstreams are added later.
fn plan(args: &DoctorArgs) -> Result<DoctorPlan, CommandError> {
    let network = verify::network(&args.network)?;
    let peers = PeerNetwork::of(&network);
    let (is_idle, limits) = (peers.as_ref().is_some_and(discovery::is_private), Limits::new());
    let config = BitcoinSourceConfig {
        limits: limits.clone(),
        records: args.report.is_some(),
        ..BitcoinSourceConfig::default()
    };
    let is_replay = args.replay.is_some();
    let state_servers = peers.iter().flat_map(|peers| discovery::state_servers(&args.finding, peers));
    Ok(DoctorPlan {
        boot: if is_replay { Vec::new() } else { boot_hosts(args, &network)? },
        state_servers: if is_replay { Vec::new() } else { state_servers.collect() },
        checkpoint: args.checkpoint.clone(),
        starts: starts(args.checkpoint.as_deref(), &network)?,
        allow_private: args.finding.allow_private_peers || is_idle,
        peers: args.peer.clone(),
        upstreams: Vec::new(),
        recorded: Vec::new(),
        bitcoin: if is_replay { Vec::new() } else { bitcoin::sources(&args.bitcoin, &network, &config)? },
        watch: Duration::from_secs(args.watch),
        behind: 0,
        limits,
        is_idle,
        limit: Duration::from_secs(args.seconds),
        recordings: args.report.as_deref().map(recordings),
        network,
    })
}

/// The start that `--checkpoint` names; without the flag, the default start and the one at the built-in checkpoint.
fn starts(named: Option<&str>, network: &Network) -> Result<Vec<LightStart>, CommandError> {
    let work_floor = SyncOptions::default().work_floor;
    let at = |text: Option<&str>| start(text, network, work_floor, unix_time());
    let mut starts = vec![at(named).map_err(|error| CommandError::Usage(error.to_string()))?];
    let built_in = at(Some("built-in")).ok().filter(|_| named.is_none());
    let other = built_in.filter(|built_in| !starts.contains(built_in));
    starts.extend(other);
    Ok(starts)
}

/// The plan that repeats the run of a report.
fn replayed(plan: DoctorPlan, file: &Path, config: &HttpConfig) -> Result<DoctorPlan, CommandError> {
    let usage = |text: String| CommandError::Usage(format!("--replay {}: {text}", file.display()));
    let former = FormerRun::read(file).map_err(usage)?;
    if former.network != plan.network.name {
        return Err(usage(format!("it is of network {}: give the same --network", former.network)));
    }
    let sources = former.open(file, config).map_err(usage)?;
    let starts = match &plan.checkpoint {
        Some(_) => plan.starts,
        None => starts(former.checkpoint.as_deref(), &plan.network)?,
    };
    let first = starts.first().copied();
    let alone = sources.alone.into_iter().filter_map(|(upstream, start)| Some((upstream, start.or(first)?)));
    Ok(DoctorPlan {
        checkpoint: plan.checkpoint.or_else(|| former.checkpoint.clone()),
        starts,
        upstreams: sources.upstreams,
        recorded: alone.collect(),
        bitcoin: sources.bitcoin,
        behind: unix_time().saturating_sub(former.ended()),
        ..plan
    })
}

/// The hosts to ask for nodes. A network without boot hosts is an error, unless the user names other sources.
fn boot_hosts(args: &DoctorArgs, network: &Network) -> Result<Vec<BootHost>, CommandError> {
    if PeerNetwork::of(network).is_none() && !args.peer.is_empty() {
        return discovery::peer_network(network).map(|_| Vec::new());
    }
    match discovery::boot_hosts(&args.finding, network, None) {
        Err(_) if !args.peer.is_empty() || !args.upstream.is_empty() => Ok(Vec::new()),
        hosts => hosts,
    }
}

/// The line of a step, with advice in a second line.
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

/// The outcome of the command; `quiet` prints no line about a success.
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
