//! Proposes a checkpoint of Rootstock's chain.
//!
//! All sources must state the same block and the same total difficulty. Each source alone must also supply
//! the headers to its head, from the newest built-in checkpoint below the proposed block (or from the
//! proposed block itself, if there is none), and a separate light client verifies them.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use rootlight::consensus::{Checkpoint, HeaderCandidate, Network, VerifiedHeader, checkpoint};
use rootlight::light::{RequestFailure, SyncOptions, UpstreamRequest, prove};
use rootlight::types::{B256, SealedHeader, U256};
use rootlight_upstream::SharedUpstream;
use serde::Deserialize;

use crate::light::options::LightOptions;
use crate::light::service::LightService;

/// Proposed heights are multiples of this number, which makes them easy to compare by eye.
const ROUND: u64 = 1_000;

/// Default number of blocks above a checkpoint. At this depth on the main network, REMASC, the native contract that pays miners, pays
/// the fees of a block, and peg-outs to Bitcoin are signed.
pub const DEPTH: u64 = 4_000;

/// Time limit for one source to supply its headers.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Why no checkpoint is proposed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum ProposeError {
    /// At least two sources are needed, since a single source confirms only itself.
    #[error("a checkpoint needs at least two sources of different names ({0} given)")]
    TooFew(usize),
    /// A source fails, or responds with wrong data.
    #[error("{name}: {reason}")]
    Source { name: String, reason: String },
    /// The block is block 0, or has too few blocks on top at a source.
    #[error(
        "block {number} cannot be proposed: the lowest head is block {head}, and a proposed block has at least \
         {depth} blocks on top (--depth), so its number is from 1 to {}", .head.saturating_sub(*.depth)
    )]
    TooLow { number: u64, head: u64, depth: u64 },
    /// The sources state different blocks or total difficulties.
    #[error("the sources do not agree about block {number}: {}", .statements.join("; "))]
    Disagreement { number: u64, statements: Vec<String> },
    /// Fewer than two sources show a part of Bitcoin's chain above the built-in checkpoint.
    #[error("{given} of the sources of Bitcoin's chain show blocks above the built-in one, at least two are needed: {}", .failures.join("; "))]
    TooFewBitcoin { given: usize, failures: Vec<String> },
    /// Sources of Bitcoin's chain show different blocks at the end of a period.
    #[error("the sources of Bitcoin's chain do not agree about block {height}: {}", .statements.join("; "))]
    BitcoinDisagreement { height: u32, statements: Vec<String> },
}

/// Options of [`propose`].
#[derive(Debug, Clone, Copy)]
pub struct ProposeOptions {
    /// The block to propose; `None` proposes the highest multiple of 1,000 that is deep enough.
    pub number: Option<u64>,
    /// Least number of blocks on top that every source must have.
    pub depth: u64,
}

impl Default for ProposeOptions {
    fn default() -> Self {
        Self { number: None, depth: DEPTH }
    }
}

/// A checkpoint that all sources confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointProposal {
    /// The proposed block.
    pub checkpoint: Checkpoint,
    /// The block's timestamp, in seconds since 1970.
    pub time: u64,
    /// The block's difficulty.
    pub difficulty: U256,
    /// The block from which headers were verified, and the lowest head that they reached.
    pub verified: (u64, u64),
    /// Number of sources.
    pub sources: usize,
}

/// The total difficulty that a block's JSON states.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockDifficulty {
    #[serde(default)]
    total_difficulty: Option<U256>,
}

/// Asks the sources for a block, verifies the headers that they supply, and compares their statements.
///
/// # Errors
/// A source fails, is too low, or disagrees with another one.
pub async fn propose(
    network: &Network,
    sources: &[SharedUpstream],
    options: ProposeOptions,
) -> Result<CheckpointProposal, ProposeError> {
    let names: BTreeSet<&str> = sources.iter().map(|source| source.name()).collect();
    if names.len() < 2 {
        return Err(ProposeError::TooFew(names.len()));
    }
    let mut head = u64::MAX;
    for source in sources {
        head = head.min(height(source).await?);
    }
    let depth = options.depth;
    let highest = head.saturating_sub(depth);
    let number = options.number.unwrap_or_else(|| highest / ROUND * ROUND);
    if number == 0 || number > highest {
        return Err(ProposeError::TooLow { number, head, depth });
    }
    let mut stated = Vec::new();
    for source in sources {
        stated.push(block(source, network, number).await?);
    }
    let (header, total_difficulty) = agreed(number, sources, stated)?;
    let checkpoint = Checkpoint { number, hash: header.hash(), total_difficulty };
    let below = checkpoint::built_in(network).iter().map(|known| known.checkpoint).rev();
    let below = below.into_iter().find(|known| known.number < number);
    // Block 0 does not count: it would mean all headers of the chain.
    let from = below.filter(|known| known.number > 0).unwrap_or(checkpoint);
    let mut lowest = u64::MAX;
    for source in sources {
        lowest = lowest.min(verify(source, network, from, &checkpoint).await?);
    }
    Ok(CheckpointProposal {
        checkpoint,
        time: header.timestamp,
        difficulty: header.difficulty.value(),
        verified: (from.number, lowest),
        sources: sources.len(),
    })
}

/// The error of one source.
fn fault(source: &SharedUpstream, reason: impl fmt::Display) -> ProposeError {
    ProposeError::Source { name: source.name().to_owned(), reason: reason.to_string() }
}

/// Sends one request to a source.
async fn request(
    source: &SharedUpstream,
    method: &'static str,
    params: String,
) -> Result<Box<serde_json::value::RawValue>, ProposeError> {
    // The reservation lasts until the response is returned.
    let (results, _reserved) = source.request_reserved(vec![UpstreamRequest::new(method, params)]).await;
    let result = results.into_iter().next().ok_or_else(|| fault(source, "no response"))?;
    result.map_err(|error| fault(source, RequestFailure::from(error)))
}

/// The height of a source's chain.
async fn height(source: &SharedUpstream) -> Result<u64, ProposeError> {
    let answer = request(source, "eth_blockNumber", "[]".into()).await?;
    prove::quantity(&answer).ok_or_else(|| fault(source, "eth_blockNumber did not return a number"))
}

/// Returns the header that the source supplies, with its proof of work checked, and the total difficulty that
/// it states.
async fn block(
    source: &SharedUpstream,
    network: &Network,
    number: u64,
) -> Result<(SealedHeader, Option<U256>), ProposeError> {
    let ask_for = |full: bool| request(source, "eth_getBlockByNumber", format!(r#"["{number:#x}",{full}]"#));
    // Recordings often have only blocks with full transactions.
    let answer = match ask_for(false).await {
        Ok(answer) => answer,
        Err(_) => ask_for(true).await?,
    };
    let header = prove::header(answer.get(), None, network).map_err(|error| fault(source, error))?;
    if header.number != number {
        return Err(fault(source, format!("asked for block {number}, got block {}", header.number)));
    }
    VerifiedHeader::alone(HeaderCandidate::from(header.clone()), network)
        .map_err(|error| fault(source, error))?;
    let block: BlockDifficulty = serde_json::from_str(answer.get()).map_err(|error| fault(source, error))?;
    Ok((header, block.total_difficulty))
}

/// Returns the statement of all sources, if they state the same hash and total difficulty. The hash covers number, parent,
/// difficulty, time and state root.
fn agreed(
    number: u64,
    sources: &[SharedUpstream],
    stated: Vec<(SealedHeader, Option<U256>)>,
) -> Result<(SealedHeader, Option<U256>), ProposeError> {
    let words = |(header, total): &(SealedHeader, Option<U256>)| {
        let total = total.map_or("none".to_owned(), |total| format!("{total:#x}"));
        format!("hash {}, difficulty {}, total difficulty {total}", header.hash(), header.difficulty.value())
    };
    let same = |(header, total): &(SealedHeader, Option<U256>)| (header.hash(), *total);
    let different = stated.windows(2).any(|pair| matches!(pair, [a, b] if same(a) != same(b)));
    if different {
        let named = sources.iter().zip(&stated);
        let statements = named.map(|(source, said)| format!("{} says {}", source.name(), words(said)));
        return Err(ProposeError::Disagreement { number, statements: statements.collect() });
    }
    stated.into_iter().next().ok_or(ProposeError::TooFew(0))
}

/// Follows one source alone to its head, and checks that the proposed block is on its chain. Returns the
/// head.
async fn verify(
    source: &SharedUpstream,
    network: &Network,
    from: Checkpoint,
    proposed: &Checkpoint,
) -> Result<u64, ProposeError> {
    // The source may be a recording, so neither the age of its head nor the work floor is checked.
    let sync = SyncOptions { work_floor: 0, ..SyncOptions::default() };
    let options = LightOptions { sync, max_age: 0, ..LightOptions::default() };
    let service = LightService::start(network.clone(), from, vec![source.clone()], options);
    service.settled(HEADERS_TIMEOUT).await;
    let (head, hash) = service.canonical(proposed.number).map_err(|reason| fault(source, reason))?;
    if hash != Some(proposed.hash) {
        let at = hash.map_or("none".to_owned(), |hash: B256| hash.to_string());
        return Err(fault(source, format!("its chain has {at} at this height, not {}", proposed.hash)));
    }
    Ok(head)
}

impl fmt::Display for CheckpointProposal {
    /// Writes the checkpoint as lines of Rust, for `src/consensus/checkpoint.rs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checkpoint { number, hash, total_difficulty } = &self.checkpoint;
        let (from, to) = self.verified;
        writeln!(
            f,
            "// {} sources; headers {from} to {to} verified; difficulty {:#x}",
            self.sources, self.difficulty
        )?;
        let total = total_difficulty.filter(|total| total.bit_len() <= 128).map(|total| {
            let [low, high, ..] = total.into_limbs();
            format!("total({high:#x}, {low:#x})")
        });
        let total = total.unwrap_or_else(|| "None".to_owned());
        write!(
            f,
            "checkpoint({}, b256!(\"{hash:x}\"), {total}).mined({}),",
            grouped(*number),
            grouped(self.time)
        )
    }
}

/// Formats a number in groups of three digits.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join("_")
}
