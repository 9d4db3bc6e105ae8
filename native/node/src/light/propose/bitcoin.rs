//! Proposes a new Bitcoin checkpoint: the newest end of a difficulty period (2016 blocks) with at least a period of blocks on top.
//!
//! Each source alone must supply every header above the built-in checkpoint, which are checked by all rules. Sources that fail
//! are named and left out, because public ones come and go; the remaining sources must show the same block.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::join_all;
use rootlight::consensus::bitcoin::{BitcoinChain, BitcoinCheckpoint, BitcoinNetwork, reversed};
use rootlight_upstream::bitcoin::{self, BitcoinSource};

use super::rootstock::{ProposeError, grouped};

/// A Bitcoin checkpoint that several sources confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitcoinProposal {
    /// The newest end of a period that is deep enough. The built-in checkpoint if there is no newer one.
    pub checkpoint: BitcoinCheckpoint,
    /// The height above which headers were verified, and the lowest tip that they reached.
    pub verified: (u32, u32),
    /// Number of sources that confirm the checkpoint.
    pub sources: usize,
    /// Why sources were left out.
    pub failures: Vec<String>,
}

/// Verifies the headers that each source supplies above the built-in checkpoint, and compares what they lead to. `now` is in
/// seconds since 1970.
///
/// # Errors
/// Fewer than two sources of different names supply valid headers, or they disagree.
pub async fn propose_bitcoin(
    network: BitcoinNetwork,
    sources: &[Arc<BitcoinSource>],
    now: u64,
) -> Result<BitcoinProposal, ProposeError> {
    let chains = join_all(sources.iter().map(|source| follow(network, source, now))).await;
    let (mut shown, mut failures) = (BTreeMap::new(), Vec::new());
    for (source, chain) in sources.iter().zip(chains) {
        match chain {
            Ok(chain) => _ = shown.insert(source.name(), chain),
            Err(reason) => failures.push(format!("{}: {reason}", source.name())),
        }
    }
    let tips = shown.values().map(|chain| chain.tip().height);
    let lowest = tips.min().filter(|_| shown.len() > 1);
    let lowest = lowest
        .ok_or_else(|| ProposeError::TooFewBitcoin { given: shown.len(), failures: failures.clone() })?;
    // The lowest of the sources' newest checkpoints, which is deep enough for all of them.
    let common =
        shown.values().map(BitcoinChain::personal_checkpoint).min_by_key(|checkpoint| checkpoint.height);
    let checkpoint = common.unwrap_or(network.checkpoint);
    let height = checkpoint.height;
    // A checkpoint of a chain has no time, so the time of its block is added.
    let time = shown.values().find_map(|chain| chain.at(height)).map_or(checkpoint.time, |block| block.time);
    let of = |chain: &BitcoinChain| {
        if height == network.checkpoint.height {
            Some(network.checkpoint)
        } else {
            chain.checkpoint_at(height)
        }
    };
    if shown.values().any(|chain| of(chain) != Some(checkpoint)) {
        let words = |(name, chain): (&&str, &BitcoinChain)| match of(chain) {
            Some(other) => {
                format!("{name} shows {}, next nBits {:#010x}", reversed(&other.hash), other.next_bits)
            }
            None => format!("{name} shows none"),
        };
        let statements = shown.iter().map(words).collect();
        return Err(ProposeError::BitcoinDisagreement { height, statements });
    }
    Ok(BitcoinProposal {
        checkpoint: BitcoinCheckpoint { time, ..checkpoint },
        verified: (network.checkpoint.height, lowest),
        sources: shown.len(),
        failures,
    })
}

/// The chain that one source shows above the network's checkpoint.
async fn follow(network: BitcoinNetwork, source: &BitcoinSource, now: u64) -> Result<BitcoinChain, String> {
    let chain = bitcoin::follow(BitcoinChain::new(network), source, now).await?;
    match chain.tip().height > network.checkpoint.height {
        true => Ok(chain),
        false => Err(format!("no block above {}", network.checkpoint.height)),
    }
}

impl fmt::Display for BitcoinProposal {
    /// Writes the fields of the checkpoint as `src/consensus/bitcoin/network.rs` has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BitcoinCheckpoint { height, hash, next_bits, time } = self.checkpoint;
        let (high, low) = (next_bits >> 16, next_bits & 0xffff);
        writeln!(f, "height: {},", grouped(height.into()))?;
        writeln!(f, "// The hash {:x}, reversed.", reversed(&hash))?;
        writeln!(f, "hash: b256!(\"{hash:x}\"),")?;
        writeln!(f, "next_bits: 0x{high:04x}_{low:04x},")?;
        write!(f, "time: {},", grouped(time.into()))
    }
}
