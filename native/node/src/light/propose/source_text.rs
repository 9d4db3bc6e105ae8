//! Writes proposed checkpoints into the text of the files that have the built-in ones. `cargo fmt` breaks the lines afterwards.

use super::bitcoin::BitcoinProposal;
use super::rootstock::CheckpointProposal;

/// The text does not have the expected form, or has the checkpoint already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceTextError(String);

/// The text of `src/consensus/checkpoint.rs` with one more checkpoint of a network, after the others.
///
/// # Errors
/// The text has no list of the network, or the list has the block already.
pub fn with_checkpoint(
    text: &str,
    network: &str,
    proposal: &CheckpointProposal,
) -> Result<String, SourceTextError> {
    let list = format!("pub const {}: &[BuiltInCheckpoint] = &[\n", network.to_ascii_uppercase());
    let missing = || SourceTextError(format!("there is no list of checkpoints of network {network}"));
    let (before, entries) = text.split_once(&list).ok_or_else(missing)?;
    let (entries, after) = entries.split_once("\n];\n").ok_or_else(missing)?;
    let entry = proposal.to_string();
    if entries.contains(&format!("{:x}", proposal.checkpoint.hash)) {
        return Err(SourceTextError(format!("block {} is built in already", proposal.checkpoint.number)));
    }
    Ok(format!("{before}{list}{entries}\n{entry}\n];\n{after}"))
}

/// The text of `src/consensus/bitcoin/network.rs` with this checkpoint in place of that of Bitcoin's main network.
///
/// # Errors
/// The text has no checkpoint of Bitcoin's main network, or it has this one already.
pub fn with_bitcoin_checkpoint(text: &str, proposal: &BitcoinProposal) -> Result<String, SourceTextError> {
    let missing = || SourceTextError("there is no checkpoint of Bitcoin's main network".into());
    let (before, rest) = text.split_once("pub const MAINNET: Self = Self {").ok_or_else(missing)?;
    let (above, rest) = rest.split_once("checkpoint: BitcoinCheckpoint {\n").ok_or_else(missing)?;
    let (fields, after) = rest.split_once("\n        },\n").ok_or_else(missing)?;
    let checkpoint = &proposal.checkpoint;
    if fields.contains(&format!("{:x}", checkpoint.hash)) {
        return Err(SourceTextError(format!("Bitcoin block {} is built in already", checkpoint.height)));
    }
    Ok(format!(
        "{before}pub const MAINNET: Self = Self {{{above}checkpoint: BitcoinCheckpoint {{\n{proposal}\n        }},\n{after}"
    ))
}

#[cfg(test)]
mod tests {
    use rootlight::consensus::bitcoin::BitcoinCheckpoint;
    use rootlight::consensus::{Checkpoint, Network};
    use rootlight::types::{B256, U256};

    use super::*;

    fn source(path: &str) -> String {
        std::fs::read_to_string(format!("{}/../../src/consensus/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    fn proposal() -> CheckpointProposal {
        let total_difficulty = Some(U256::from(0x1234_5678_9abc_u64) << 64);
        CheckpointProposal {
            checkpoint: Checkpoint { number: 9_400_000, hash: B256::repeat_byte(0xab), total_difficulty },
            time: 1_794_000_000,
            difficulty: U256::from(7),
            verified: (9_000_000, 9_404_321),
            sources: 2,
        }
    }

    #[test]
    fn a_checkpoint_is_added_after_those_of_its_network() {
        let text = source("checkpoint.rs");
        for (network, next) in
            [("mainnet", "/// Blocks of the test network"), ("testnet", "/// The built-in checkpoints")]
        {
            let changed = with_checkpoint(&text, network, &proposal()).unwrap();
            let (before, after) = changed
                .split_once("    // 2 sources; ")
                .unwrap_or_else(|| changed.split_once("// 2 sources; ").unwrap());
            assert!(text.starts_with(before) && before.ends_with("),\n"), "{network}: {before}");
            let (entry, rest) = after.split_once("\n];\n").unwrap();
            assert!(rest.trim_start().starts_with(next) && text.ends_with(rest), "{network}: {rest}");
            let expected = format!(
                "checkpoint(9_400_000, b256!(\"{}\"), total(0x123456789abc, 0x0)).mined(1_794_000_000),",
                "ab".repeat(32)
            );
            assert_eq!(entry.lines().last(), Some(expected.as_str()));
            let twice = with_checkpoint(&changed, network, &proposal());
            assert_eq!(twice.unwrap_err().to_string(), "block 9400000 is built in already");
        }
        assert!(with_checkpoint(&text, "regtest", &proposal()).is_err());
    }

    #[test]
    fn the_bitcoin_checkpoint_of_mainnet_is_replaced() {
        let text = source("bitcoin/network.rs");
        let present = Network::mainnet().bitcoin.unwrap().checkpoint;
        let mut proposal = BitcoinProposal {
            checkpoint: BitcoinCheckpoint {
                height: 969_695,
                hash: B256::repeat_byte(0xcd),
                next_bits: 0x1702_0001,
                time: 1_794_000_000,
            },
            verified: (953_567, 976_000),
            sources: 3,
            failures: Vec::new(),
        };
        let changed = with_bitcoin_checkpoint(&text, &proposal).unwrap();
        let fields = format!(
            "height: 969_695,\n// The hash {0}, reversed.\nhash: b256!(\"{0}\"),\nnext_bits: 0x1702_0001,\ntime: 1_794_000_000,",
            "cd".repeat(32)
        );
        assert_eq!(changed.matches(&fields).count(), 1, "{changed}");
        assert!(!changed.contains(&format!("{:x}", present.hash)));
        assert!(changed.contains("pub const REGTEST") && changed.contains("limit: 0x1d00_ffff"), "{changed}");
        proposal.checkpoint = present;
        let same = with_bitcoin_checkpoint(&text, &proposal).unwrap_err();
        assert_eq!(same.to_string(), format!("Bitcoin block {} is built in already", present.height));
        // The proposal is written in the form of the lines in the file.
        let written = proposal.to_string();
        let lines = written.lines().map(|line| format!("            {line}\n")).collect::<String>();
        assert!(text.contains(&lines), "{written}");
    }
}
