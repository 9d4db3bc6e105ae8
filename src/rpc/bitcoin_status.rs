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
    /// Name of the [`BitcoinVerdict`]: `held` (every rule holds), `weak` (a rule does not hold), `contested` (Bitcoin's miners
    /// name another branch) or `unavailable` (no Bitcoin chain).
    verdict: &'static str,
    /// Why the verdict is not `held`; `None` if it is.
    reason: Option<String>,
    /// Bitcoin's newest block that a source has shown.
    tip: Option<TipStatus>,
    /// Whether the Bitcoin headers lead back to the built-in checkpoint. Otherwise they begin two changes of the target below
    /// the tip.
    linked: bool,
    /// The least Rootstock work that a suffix of Bitcoin's chain shows, as a share of Bitcoin's own.
    dated_work: Option<DatedStatus>,
    /// How many of the newest Bitcoin blocks commit to the chain.
    commitments: Option<CommitmentStatus>,
    /// How many of the newest 72 Bitcoin blocks name which chain in their coinbase.
    tags: Option<TagCounts>,
    /// A branch for which Bitcoin's miners work and which no upstream shows.
    hidden_branch: Option<HiddenStatus>,
}

/// The newest Bitcoin block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TipStatus {
    height: u32,
    /// Hexadecimal without `0x`, in the byte order in which Bitcoin's tools print hashes.
    hash: String,
    /// Seconds since the time that the block states.
    age: u64,
}

/// The suffix of Bitcoin's chain in which Rootstock's dated work is the least share of Bitcoin's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct DatedStatus {
    /// Length of the suffix of Bitcoin's chain that shows the least.
    bitcoin_blocks: u32,
    /// Rootstock's work in hundredths of a percent of Bitcoin's.
    basis_points: u64,
    /// The least share that a suffix of this length must show, in hundredths of a percent; 0 if the suffix is too short to be
    /// judged.
    least_basis_points: u64,
}

/// How many of the newest 72 (half a day) and 288 (two days) Bitcoin blocks commit to the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CommitmentStatus {
    of_newest72: u32,
    of_newest288: u32,
}

const _: () = assert!(RECENT_BLOCKS == 72 && COUNTED_BLOCKS == 288, "the names of members say these numbers");

/// A branch that no upstream shows, by the Rootstock blocks between which it leaves the shown chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct HiddenStatus {
    /// A block that the branch still has, probably; `None` if its tags do not reach so far down.
    after_block: Option<u64>,
    /// A block that the branch does not have.
    before_block: u64,
    /// Number of Bitcoin blocks whose tags name the branch.
    tags: u32,
}

/// The Bitcoin blocks that commit to a Rootstock block or to one above it: `bitcoin` of `rootlight_verification`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BlockBitcoinStatus {
    /// The verdict on the whole chain, as in [`BitcoinStatus`].
    verdict: &'static str,
    /// Why the verdict is not `held`; `None` if it is.
    reason: Option<String>,
    /// Number of Bitcoin blocks that commit to this block or to one above it.
    blocks_above: u32,
    /// Height of the newest of these Bitcoin blocks.
    newest_height: Option<u32>,
    /// Seconds since the time that the newest of these Bitcoin blocks states.
    newest_age: Option<u64>,
    /// As in [`BitcoinStatus`].
    tags: TagCounts,
}

impl BitcoinStatus {
    /// The status as of a pinned head; `None` if the client follows no Bitcoin chain.
    #[must_use]
    pub fn of(pinned: &PinnedHead) -> Option<Self> {
        let follower = pinned.bitcoin()?;
        let report = follower.report();
        let verdict = follower.verdict(pinned.now);
        Some(Self {
            verdict: verdict.name(),
            reason: reason(&verdict),
            tip: follower.tip().map(|tip| TipStatus {
                height: tip.height,
                hash: alloc::format!("{:x}", reversed(&tip.hash)),
                age: pinned.now.saturating_sub(u64::from(tip.time)),
            }),
            linked: pinned
                .network()
                .bitcoin
                .is_some_and(|built_in| built_in.checkpoint == *follower.chain().start()),
            dated_work: report.and_then(|report| report.dated.lowest).map(|lowest| DatedStatus {
                bitcoin_blocks: lowest.blocks,
                basis_points: lowest.basis_points(),
                // The floor is in percent.
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
    /// The status of a canonical block, by number; `now` is in seconds since 1970. `None` if the client has not judged the
    /// Rootstock chain by Bitcoin's yet.
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

/// The text of a verdict that is not `held`.
fn reason(verdict: &BitcoinVerdict) -> Option<String> {
    (*verdict != BitcoinVerdict::Held).then(|| verdict.to_string())
}
