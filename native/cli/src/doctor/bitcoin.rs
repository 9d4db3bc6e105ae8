//! The steps of the doctor about sources of Bitcoin's chain, one step for each source: its newest block, whether its headers
//! lead from the built-in checkpoint to that block, and coinbases.

use std::sync::Arc;

use futures::future::join_all;
use rootlight::consensus::bitcoin::{BitcoinChain, BitcoinHeader, BitcoinNetwork};
use rootlight::light::bitcoin::{BitcoinFollower, MAX_TIP_AGE};
use rootlight_limits::unix_time::unix_time;
use rootlight_upstream::bitcoin::{BitcoinSource, MAX_COINBASES, follow};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::plan::DoctorPlan;
use super::report::{DoctorStep, StepOutcome, StepSubject};

/// How many of its newest headers a source without coinbases is compared by with the other sources: fetching all headers
/// would take thousands of requests to such a source.
const COMPARED_HEADERS: u32 = 10;

/// Blocks by which a source may be behind the others: one that was just mined, and one more.
const MAX_BEHIND: u32 = 2;

/// Advice for a step that failed.
const HELP: &str = "name other sources with --bitcoin URL; an Electrum server with a certificate of its own needs tcp://, and a \
                    firewall may block its port; rootlight light needs one source of headers and one of coinbases";

/// Headers and coinbases that one source of Bitcoin's chain has shown.
struct ShownChain {
    /// Height of the source's newest block, and its time in seconds since 1970.
    tip: (u32, u32),
    /// The source's chain, if the source gave all headers above the checkpoint.
    chain: Option<BitcoinChain>,
    /// A sentence that says which headers link to which.
    linked: String,
    /// The number of coinbases that are proven, and of those that were requested.
    coinbases: Option<(usize, usize)>,
}

/// Tries each source. Those that offer coinbases come first, because the others are compared with their chain.
pub(super) async fn sources(plan: &DoctorPlan, until: Instant) -> Vec<DoctorStep> {
    let Some(network) = plan.network.bitcoin else { return Vec::new() };
    let now = unix_time().saturating_sub(plan.behind);
    let read = |source: Arc<BitcoinSource>, known: Option<BitcoinChain>| async move {
        let started = Instant::now();
        let shown = timeout_at(until, read_source(&source, network, known, now)).await;
        (source, started, shown.unwrap_or_else(|_| Err("it took too long".into())))
    };
    let (with_coinbases, without): (Vec<_>, Vec<_>) =
        plan.bitcoin.iter().cloned().partition(|source| source.offers_coinbases());
    let mut all = join_all(with_coinbases.into_iter().map(|source| read(source, None))).await;
    let heaviest = heaviest(all.iter().filter_map(|(_, _, shown)| shown.as_ref().ok()?.chain.as_ref()), now);
    all.extend(join_all(without.into_iter().map(|source| read(source, heaviest.clone()))).await);
    let newest = all.iter().filter_map(|(_, _, shown)| Some(shown.as_ref().ok()?.tip.0)).max();
    let step = |(source, started, shown): (Arc<BitcoinSource>, Instant, Result<ShownChain, String>)| {
        step(plan, source.name(), started, shown, newest.unwrap_or_default(), now)
    };
    all.into_iter().map(step).collect()
}

/// The chain with the most work of those that sources show.
fn heaviest<'a>(mut shown: impl Iterator<Item = &'a BitcoinChain>, now: u64) -> Option<BitcoinChain> {
    let mut merged = shown.next()?.clone();
    for other in shown {
        let headers = (other.lowest()..=other.tip().height).filter_map(|height| other.header_at(height));
        // Headers of a source that left the other sources' chain below the checkpoint do not link, and are ignored.
        headers.for_each(|header| _ = merged.insert(&header, now));
    }
    Some(merged)
}

/// Reads what one source shows: all headers and the coinbases, or its newest headers alone if another source has shown the chain
/// `known`.
async fn read_source(
    source: &BitcoinSource,
    network: BitcoinNetwork,
    known: Option<BitcoinChain>,
    now: u64,
) -> Result<ShownChain, String> {
    let words = |error: rootlight_upstream::UpstreamError| error.to_string();
    let tip = source.tip().await.map_err(words)?;
    let Some(mut known) = known else {
        let first = network.checkpoint.height;
        let chain = follow(BitcoinChain::new(network), source, now).await?;
        let linked =
            format!("{} headers above block {first} link to it", chain.tip().height.saturating_sub(first));
        let coinbases = if source.offers_coinbases() { Some(coinbases(source, &chain).await?) } else { None };
        let tip = (chain.tip().height, chain.tip().time);
        return Ok(ShownChain { tip, chain: Some(chain), linked, coinbases });
    };
    let from = tip.saturating_sub(COMPARED_HEADERS - 1).max(network.checkpoint.height.saturating_add(1));
    let headers = source.headers(from, COMPARED_HEADERS).await.map_err(words)?;
    for header in &headers {
        known.insert(header, now).map_err(|error| error.to_string())?;
    }
    let newest = BitcoinHeader::from(headers.last().ok_or("it gave no headers")?);
    let linked = format!("its newest {} headers link to those of the other sources", headers.len());
    // True headers at false heights would make the other sources look behind.
    let height = known.height_of(&newest.hash()).unwrap_or(tip.min(known.tip().height));
    let tip = (height, newest.time());
    Ok(ShownChain { tip, chain: None, linked, coinbases: None })
}

/// Requests the coinbases whose tags are judged, and proves them. Returns how many are proven, and how many were requested.
async fn coinbases(source: &BitcoinSource, chain: &BitcoinChain) -> Result<(usize, usize), String> {
    let mut follower = BitcoinFollower::resume(chain.clone());
    let wanted = follower.missing_coinbases();
    let wanted = wanted.get(..MAX_COINBASES).unwrap_or(&wanted);
    let given = source.coinbases(wanted).await.map_err(|error| error.to_string())?;
    let mut proven = 0_usize;
    for coinbase in given {
        let inserted = follower.insert_coinbase(coinbase.height, &coinbase.proof.as_proof());
        proven = proven.saturating_add(usize::from(inserted.is_ok()));
    }
    Ok((proven, wanted.len()))
}

/// The step of one source. `newest` is the greatest height that any source has shown.
fn step(
    plan: &DoctorPlan,
    source: &str,
    started: Instant,
    shown: Result<ShownChain, String>,
    newest: u32,
    now: u64,
) -> DoctorStep {
    let ShownChain { tip: (height, time), linked, coinbases, .. } = match shown {
        Ok(shown) => shown,
        Err(reason) => {
            return DoctorStep::new(StepSubject::BitcoinSource, source, started, StepOutcome::Failed, reason)
                .advised(HELP);
        }
    };
    let age = now.saturating_sub(time.into());
    let mut seen = format!("block {height}, {} min old; {linked}", age / 60);
    match coinbases {
        Some((proven, wanted)) => seen.push_str(&format!("; {proven} of {wanted} coinbases proven")),
        None => seen.push_str("; it offers no coinbases"),
    }
    let behind = newest.saturating_sub(height);
    // `BitcoinChain::tip` has time 0 while the chain has no block above its checkpoint.
    let fault = if time == 0 {
        Some("it shows no block above the built-in one".to_owned())
    } else if behind > MAX_BEHIND {
        Some(format!("it is {behind} blocks behind another source"))
    } else if age > MAX_TIP_AGE && !plan.is_idle {
        Some("it withholds newer blocks, or the clock is wrong".to_owned())
    } else {
        let withheld = coinbases.filter(|(proven, wanted)| proven < wanted);
        withheld.map(|_| "coinbases are missing or wrong".to_owned())
    };
    let outcome = if fault.is_some() { StepOutcome::Failed } else { StepOutcome::Ok };
    seen.extend(fault.map(|fault| format!("; {fault}")));
    let details = json!({
        "tip": height,
        "age": age,
        "coinbases": coinbases.map(|(proven, wanted)| json!({ "proven": proven, "wanted": wanted })),
    });
    DoctorStep::new(StepSubject::BitcoinSource, source, started, outcome, seen)
        .detailed(details)
        .advised(HELP)
}

#[cfg(test)]
mod tests {
    use rootlight::dev::{BitcoinBlocks, SimulatedBitcoin as _};
    use rootlight_node::bitcoin_chain::RegtestChain;

    use super::*;

    const TIME: u64 = 1_700_000_000;

    /// A source that could state any height for Bitcoin's headers would have honest ones reported as behind.
    #[tokio::test]
    async fn heights_are_those_of_the_headers_not_what_a_source_says() {
        let mined = RegtestChain::new(1);
        mined.mine(&BitcoinBlocks { commitments: vec![None; 10], parent: None, time: TIME }).unwrap();
        let network = BitcoinNetwork::REGTEST;
        let (mut known, now) = (BitcoinChain::new(network), TIME + 10_000);
        let headers = mined.headers(1, 10);
        for header in &headers {
            known.insert(header, now).unwrap();
        }
        for (lowest, newest) in [(1_u32, 10), (999_991, 1_000_000)] {
            let shown_at: serde_json::Map<_, _> = (lowest..)
                .zip(&headers)
                .map(|(height, header)| (height.to_string(), alloy_primitives::hex::encode(header).into()))
                .collect();
            let recording = json!({
                "name": "https://liar.example", "offersCoinbases": false, "tip": newest,
                "headers": shown_at, "coinbases": {}, "errors": {},
            });
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), recording.to_string()).unwrap();
            let source = BitcoinSource::replay(file.path()).unwrap();
            let shown = read_source(&source, network, Some(known.clone()), now).await.unwrap();
            assert_eq!(shown.tip.0, 10, "{newest} was said");
        }
    }
}
