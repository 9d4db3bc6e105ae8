//! `rootlight peers` lists the nodes of the peer-to-peer network that a light client has stored; `rootlight crawl` finds nodes and
//! dials each.

use std::sync::Arc;
use std::time::Duration;

use rootlight_limits::sanitize::cell;
use rootlight_limits::unix_time::unix_time;
use rootlight_p2p::session::Capability;
use rootlight_upstream::p2p::Identity;
use rootlight_upstream::p2p::find::{self, CrawlOptions, KnownNode, NodeVisit, VisitReport};
use serde_json::{Value, json};

use super::error::CommandError;
use super::find_args::{CrawlArgs, PeersArgs};
use super::print::say;
use super::runtime::runtime;
use super::{discovery, verify};

/// Runs `rootlight peers`: lists the nodes that a data folder stores, those seen last first.
pub(super) fn peers(args: &PeersArgs) -> Result<(), CommandError> {
    let peers = discovery::peer_network(&verify::network(&args.network)?)?;
    let path = args.data_dir.join(find::FILE);
    if !path.exists() {
        return Err(CommandError::failed(format!(
            "{}: no such file; a light client that finds nodes writes it, and so does rootlight crawl",
            path.display()
        )));
    }
    let failed = |error| CommandError::failed(format!("{}: {error}", path.display()));
    let mut nodes = find::read_node_file(&args.data_dir, peers.id).map_err(failed)?;
    nodes.sort_by_key(|known| std::cmp::Reverse(known.seen));
    for known in &nodes {
        match args.json {
            true => say!("{}", known_json(known)),
            false => say!("{}", known_text(known, unix_time())),
        }
    }
    Ok(())
}

fn known_text(known: &KnownNode, now: u64) -> String {
    let mut text = format!("{}\n   ", known.address());
    let offers = match known.snap {
        Some(true) => " state chunks,",
        Some(false) => " no state chunks,",
        None => " never connected,",
    };
    if !known.client.is_empty() {
        text.push_str(&format!(" {},", cell(&known.client)));
    }
    text.push_str(offers);
    text.push_str(&match known.seen {
        0 => " never seen".to_owned(),
        seen => format!(" seen {} s ago", now.saturating_sub(seen)),
    });
    if let Some(caught) = &known.caught {
        let ago = now.saturating_sub(caught.at);
        let left = if known.is_caught(now) { "left alone" } else { "no longer left alone" };
        text.push_str(&format!("\n    caught {ago} s ago, {left}: {}", cell(&caught.what)));
    }
    text
}

fn known_json(known: &KnownNode) -> Value {
    json!({
        "id": known.node.id.to_string(),
        "address": known.node.address,
        "client": Some(&known.client).filter(|client| !client.is_empty()),
        "snap": known.snap,
        "seen": Some(known.seen).filter(|seen| *seen > 0),
        "caught": known.caught,
    })
}

/// Runs `rootlight crawl`: finds nodes, dials each, and prints what it offers.
pub(super) fn crawl(args: &CrawlArgs) -> Result<(), CommandError> {
    let network = verify::network(&args.network)?;
    discovery::peer_network(&network)?;
    let identity = Identity::open(&network, network.genesis_hash, None).map_err(CommandError::failed)?;
    let options = CrawlOptions { identity: Arc::new(identity), duration: Duration::from_secs(args.seconds) };
    let (mut answered, mut failed) = (0usize, 0usize);
    let found = runtime()?.block_on(async {
        let finder = discovery::start(&args.finding, &network, args.data_dir.as_deref()).await?;
        let print = |visited: NodeVisit| {
            *if visited.outcome.is_ok() { &mut answered } else { &mut failed } += 1;
            match args.json {
                true => say!("{}", visited_json(&visited)),
                false => say!("{}", visited_text(&visited)),
            }
        };
        let crawling = find::crawl(&finder, options, print);
        Ok::<usize, CommandError>(tokio::select! {
            found = crawling => found,
            _ = tokio::signal::ctrl_c() => finder.list().nodes().len(),
        })
    })?;
    tracing::info!(
        "{found} nodes answered discovery; of those dialled, {answered} answered and {failed} did not"
    );
    Ok(())
}

/// The protocols that a node offers, such as `snap/1`.
fn capabilities(visit: &VisitReport) -> Vec<String> {
    let name = |one: &Capability| format!("{}/{}", one.name, one.version);
    visit.hello.capabilities.iter().map(name).collect()
}

fn visited_text(visited: &NodeVisit) -> String {
    let peer = format!("{}@{}", visited.node.id, visited.node.address);
    match &visited.outcome {
        Err(error) => format!("{peer}\n    {}", cell(error)),
        Ok(visit) => {
            let offer = match visit.snap {
                Some(snap) => format!(", checkpoint {} with {} bytes of state", snap.block, snap.trie_size),
                None => String::new(),
            };
            {
                let client = cell(&visit.hello.client_id);
                format!("{peer}\n    {client}, {}{offer}", cell(capabilities(visit).join(" ")))
            }
        }
    }
}

fn visited_json(visited: &NodeVisit) -> Value {
    let mut object = json!({ "id": visited.node.id.to_string(), "address": visited.node.address });
    let said = match &visited.outcome {
        Err(error) => json!({ "error": error.to_string() }),
        Ok(visit) => json!({
            "client": visit.hello.client_id,
            "capabilities": capabilities(visit),
            "listenPort": visit.hello.listen_port,
            "bestHash": visit.best_hash,
            "totalDifficulty": visit.total_difficulty,
            "snapStatus": visit.snap.map(|snap| json!({ "block": snap.block, "trieSize": snap.trie_size })),
        }),
    };
    if let (Value::Object(object), Value::Object(said)) = (&mut object, said) {
        object.extend(said);
    }
    object
}
