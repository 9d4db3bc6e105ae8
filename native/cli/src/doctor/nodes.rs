//! The steps of the doctor that find nodes: looks boot hosts up, asks them for nodes over UDP, and shakes hands over TCP.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rootlight_limits::sanitize::{cell, sanitize};
use rootlight_p2p::discovery::canonical;
use rootlight_upstream::p2p::find::{
    BootHost, CrawlOptions, Finder, FinderOptions, LookupError, NodeList, VisitReport, addresses_of, crawl,
    visit,
};
use rootlight_upstream::p2p::{Identity, PeerError, Reach};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::plan::DoctorPlan;
use super::report::{DialledNode, DoctorStep, PEERS, StepOutcome, StepSubject, Steps};

/// Handshakes after which the search ends early, if the snapshot service of one of the nodes has answered.
const ENOUGH_NODES: usize = 8;

/// The search ends early if no node was dialled for this time, once the snapshot service of a node has answered.
const QUIET: Duration = Duration::from_secs(3);

/// Most reasons of failed handshakes in the line of the step.
const MAX_REASONS: usize = 3;

/// Why names and discovery were not tried.
const NO_BOOT_HOST: &str =
    "the network has no boot hosts; name one with --bootnode HOST:PORT, or a node with --peer ID@HOST:PORT";

/// Looks the boot hosts up, asks them for nodes, and shakes hands with some of these nodes and with those of `--peer`. Returns
/// the finder, which keeps looking for nodes, and the nodes that were dialled. `network` is the id by which nodes tell networks
/// apart.
pub(super) async fn find(
    plan: &DoctorPlan,
    network: u64,
    identity: &Arc<Identity>,
    until: Instant,
    steps: &mut Steps<'_>,
) -> (Option<Finder>, Vec<DialledNode>) {
    let hosts = look_up(&plan.boot, steps).await;
    let started = Instant::now();
    let named = join_all(plan.peers.iter().map(|address| async {
        let outcome = visit(identity, address, Reach::Any).await;
        dialled(address.to_string(), outcome)
    }));
    let search = async {
        if plan.boot.is_empty() {
            return (Ok(None), Vec::new());
        }
        let list = Arc::new(NodeList::open(network, plan.allow_private, None));
        let bind = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let (boot, state_servers) = (plan.boot.clone(), plan.state_servers.clone());
        match Finder::roam(FinderOptions { bind, boot, state_servers }, list).await {
            Ok(finder) => {
                let nodes = search(&finder, identity, until).await;
                (Ok(Some(finder)), nodes)
            }
            Err(error) => (Err(error), Vec::new()),
        }
    };
    let (mut nodes, (finder, found)) = tokio::join!(named, search);
    nodes.extend(found);
    let finder = match finder {
        Ok(Some(finder)) => {
            steps.add(discovered(&finder, &hosts, started));
            Some(finder)
        }
        Ok(None) => {
            steps.add(DoctorStep::skipped(StepSubject::Discovery, PEERS, NO_BOOT_HOST));
            None
        }
        Err(error) => {
            let seen = format!("no UDP socket: {error}");
            steps.add(DoctorStep::new(StepSubject::Discovery, PEERS, started, StepOutcome::Failed, seen));
            None
        }
    };
    steps.add(shaken(&nodes, started));
    (finder, nodes)
}

/// A boot host and its addresses.
struct ResolvedHost<'a> {
    host: &'a BootHost,
    addresses: Result<Vec<SocketAddr>, LookupError>,
}

impl ResolvedHost<'_> {
    fn addresses(&self) -> &[SocketAddr] {
        self.addresses.as_deref().unwrap_or_default()
    }
}

/// The step that looks the boot hosts up.
async fn look_up<'a>(boot: &'a [BootHost], steps: &mut Steps<'_>) -> Vec<ResolvedHost<'a>> {
    if boot.is_empty() {
        steps.add(DoctorStep::skipped(StepSubject::Dns, PEERS, NO_BOOT_HOST));
        return Vec::new();
    }
    let started = Instant::now();
    let lookups =
        boot.iter().map(|host| async move { ResolvedHost { host, addresses: addresses_of(host).await } });
    let hosts = join_all(lookups).await;
    let known = hosts.iter().filter(|host| !host.addresses().is_empty()).count();
    let outcome = if known > 0 { StepOutcome::Ok } else { StepOutcome::Failed };
    let mut seen = format!("{known} of {} boot hosts have an address", hosts.len());
    if let Some((host, error)) = hosts.iter().find_map(|one| Some((one.host, one.addresses.as_ref().err()?)))
    {
        seen.push_str(&format!("; {host}: {error}"));
    }
    let details = hosts.iter().map(|host| {
        let error = host.addresses.as_ref().err().map(ToString::to_string);
        json!({ "host": host.host.to_string(), "addresses": host.addresses(), "error": error })
    });
    let details = details.collect();
    let step = DoctorStep::new(StepSubject::Dns, PEERS, started, outcome, seen);
    steps.add(step.detailed(details).advised(
        "look at this machine's DNS server; a node with a known address can be named: --bootnode HOST:PORT or --peer \
         ID@HOST:PORT",
    ));
    hosts
}

/// Shakes hands with discovered nodes, until there are enough, no further one is dialled, or the time is over.
async fn search(finder: &Finder, identity: &Arc<Identity>, until: Instant) -> Vec<DialledNode> {
    let duration = until.saturating_duration_since(Instant::now());
    let options = CrawlOptions { identity: identity.clone(), duration };
    let (report, mut visits) = mpsc::unbounded_channel();
    let crawling = crawl(finder, options, |visited| _ = report.send(visited));
    tokio::pin!(crawling);
    // `has_state`: the snapshot service of a node has answered.
    let (mut nodes, mut connected, mut has_state) = (Vec::new(), 0_usize, false);
    loop {
        tokio::select! {
            _ = &mut crawling => break,
            Some(visited) = visits.recv() => {
                if let Ok(visit) = &visited.outcome {
                    connected = connected.saturating_add(1);
                    has_state |= visit.snap.is_some();
                }
                nodes.push(dialled(format!("{}@{}", visited.node.id, visited.node.address), visited.outcome));
                if has_state && connected >= ENOUGH_NODES {
                    break;
                }
            }
            () = sleep(QUIET), if has_state => break,
        }
    }
    nodes
}

/// The entry of a dialled node in the report; `place` is `ID@HOST:PORT`.
fn dialled(place: String, outcome: Result<VisitReport, PeerError>) -> DialledNode {
    match outcome {
        Err(error) => DialledNode {
            place,
            client: None,
            capabilities: Vec::new(),
            said: serde_json::Value::Null,
            error: Some(sanitize(error).to_string()),
        },
        Ok(visit) => {
            let capabilities = visit.hello.capabilities.iter();
            // `checkpoint` is the number of the block whose state the node offers; nothing trusts it.
            let snap =
                visit.snap.map(|snap| json!({ "checkpoint": snap.block, "stateBytes": snap.trie_size }));
            DialledNode {
                place,
                client: Some(cell(&visit.hello.client_id).to_string()),
                capabilities: capabilities
                    .map(|one| format!("{}/{}", cell(&one.name), one.version))
                    .collect(),
                said: json!({
                    "bestHash": visit.best_hash,
                    "totalDifficulty": visit.total_difficulty,
                    "snapshot": snap,
                }),
                error: None,
            }
        }
    }
}

/// The step of discovery.
fn discovered(finder: &Finder, hosts: &[ResolvedHost<'_>], started: Instant) -> DoctorStep {
    let answered: BTreeSet<SocketAddr> = finder.boot_answers().into_iter().collect();
    let has_answered = |host: &ResolvedHost<'_>| {
        host.addresses().iter().any(|address| answered.contains(&canonical(*address)))
    };
    let silent: Vec<String> =
        hosts.iter().filter(|host| !has_answered(host)).map(|host| host.host.to_string()).collect();
    let count = hosts.len().saturating_sub(silent.len());
    // The network's data names the state servers, so they are in the list even if they never answered.
    let learnt = finder.list().nodes().iter().filter(|known| !known.is_state_server()).count();
    let outcome = if learnt > 0 { StepOutcome::Ok } else { StepOutcome::Failed };
    let seen = format!("{count} of {} boot hosts answered; nodes that answer: {learnt}", hosts.len());
    let details = json!({ "silent": silent, "answered": answered, "nodes": learnt });
    DoctorStep::new(StepSubject::Discovery, PEERS, started, outcome, seen).detailed(details).advised(
        "no answer came over UDP: a firewall may block it, or the boot hosts are away; name another with --bootnode \
         HOST:PORT, or a node with --peer ID@HOST:PORT, which needs TCP only",
    )
}

/// The step of the handshakes.
fn shaken(nodes: &[DialledNode], started: Instant) -> DoctorStep {
    if nodes.is_empty() {
        return DoctorStep::skipped(StepSubject::Handshake, PEERS, "no node is known");
    }
    let connected: Vec<&DialledNode> = nodes.iter().filter(|node| node.error.is_none()).collect();
    // The report counts the nodes that announce snapshot service, also those whose service did not answer.
    let serves = |node: &&&DialledNode| node.capabilities.iter().any(|one| one.starts_with("snap/"));
    let states = connected.iter().filter(serves).count();
    let mut seen = format!(
        "{} of {} nodes shook hands, {states} of them with snapshot service",
        connected.len(),
        nodes.len()
    );
    let reasons: BTreeSet<&str> = nodes.iter().filter_map(|node| node.error.as_deref()).collect();
    for reason in reasons.into_iter().take(MAX_REASONS) {
        seen.push_str(&format!("; {reason}"));
    }
    let outcome = if connected.is_empty() { StepOutcome::Failed } else { StepOutcome::Ok };
    DoctorStep::new(StepSubject::Handshake, PEERS, started, outcome, seen).advised(
        "outgoing TCP connections to the nodes' ports may be blocked, or the nodes have no place left; try again later, \
         or name a node with --peer ID@HOST:PORT",
    )
}
