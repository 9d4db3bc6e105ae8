//! Bitcoin's evidence for the chain or for a block, as `rootlight_syncStatus` and `rootlight_verification` show it.

use alloc::string::{String, ToString as _};

use serde::Serialize;

use crate::{
    consensus::bitcoin::reversed,
    light::{
        PinnedHead,
        bitcoin::{BitcoinFollower, BitcoinVerdict, COUNTED_BLOCKS, RECENT_BLOCKS, TagCounts},
    },
};

/// Bitcoin's verdict on the chain: `bitcoin` of `rootlight_syncStatus`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BitcoinStatus {
    /// `held`, `weak`, `contested` or `unavailable`.
    verdict: &'static str,
    /// Why it is not `held`.
    reason: Option<String>,
    /// Bitcoin's newest block that a source has shown.
    tip: Option<TipStatus>,
    /// Whether its headers lead to the built-in block. Otherwise they begin two changes of the target below the tip.
    linked: bool,
    /// The least Rootstock work that a suffix of Bitcoin's chain shows, as a share of Bitcoin's own.
    dated_work: Option<DatedStatus>,
    commitments: Option<CommitmentStatus>,
    /// Which chain the newest 72 Bitcoin blocks name.
    tags: Option<TagCounts>,
    /// A branch for which Bitcoin's miners work and which no upstream shows.
    hidden_branch: Option<HiddenStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TipStatus {
    height: u32,
    hash: String,
    /// Seconds since the time that the block states.
    age: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct DatedStatus {
    bitcoin_blocks: u32,
    /// Hundredths of a percent.
    basis_points: u64,
    least_basis_points: u64,
}

/// How many of the newest Bitcoin blocks commit to the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CommitmentStatus {
    of_newest72: u32,
    of_newest288: u32,
}

const _: () = assert!(RECENT_BLOCKS == 72 && COUNTED_BLOCKS == 288, "the names of members say these numbers");

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct HiddenStatus {
    after_block: Option<u64>,
    before_block: u64,
    tags: u32,
}

/// The Bitcoin blocks above one block.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockBitcoinStatus {
    verdict: &'static str,
    /// Why it is not `held`.
    reason: Option<String>,
    /// Bitcoin blocks that commit to this block or to one above it.
    blocks_above: u32,
    newest_height: Option<u32>,
    /// Seconds since the newest of them was mined, by its own time.
    newest_age: Option<u64>,
    tags: TagCounts,
}

impl BitcoinStatus {
    /// As of a pinned head; `None` if the client follows no Bitcoin chain.
    #[must_use]
    pub fn of(light: &PinnedHead) -> Option<Self> {
        let follower = light.bitcoin()?;
        let report = follower.report();
        let verdict = follower.verdict(light.now);
        Some(Self {
            verdict: verdict.name(),
            reason: reason(&verdict),
            tip: follower.tip().map(|tip| TipStatus {
                height: tip.height,
                hash: alloc::format!("{:x}", reversed(&tip.hash)),
                age: light.now.saturating_sub(u64::from(tip.time)),
            }),
            linked: light
                .network()
                .bitcoin
                .is_some_and(|built_in| built_in.checkpoint == *follower.chain().start()),
            dated_work: report.and_then(|report| report.dated.lowest).map(|lowest| DatedStatus {
                bitcoin_blocks: lowest.blocks,
                basis_points: lowest.basis_points(),
                least_basis_points: u64::from(lowest.floor()).saturating_mul(100),
            }),
            commitments: report.map(|report| CommitmentStatus {
                of_newest72: report.counts.recent,
                of_newest288: report.counts.all,
            }),
            tags: report.map(|report| report.tags),
            hidden_branch: report.and_then(|report| report.hidden).map(|hidden| HiddenStatus {
                after_block: hidden.range.after,
                before_block: hidden.range.until,
                tags: hidden.tags,
            }),
        })
    }
}

impl BlockBitcoinStatus {
    /// The Bitcoin blocks above a canonical block. `None` if the client follows no Bitcoin chain, or has not judged its
    /// own yet.
    pub(super) fn of(follower: &BitcoinFollower, number: u64, now: u64) -> Option<Self> {
        let evidence = follower.evidence(number, now)?;
        let verdict = follower.verdict(now);
        Some(Self {
            verdict: verdict.name(),
            reason: reason(&verdict),
            blocks_above: evidence.bitcoin_blocks,
            newest_height: evidence.newest_height,
            newest_age: evidence.newest_age,
            tags: evidence.tags,
        })
    }
}

fn reason(verdict: &BitcoinVerdict) -> Option<String> {
    (*verdict != BitcoinVerdict::Held).then(|| verdict.to_string())
}
