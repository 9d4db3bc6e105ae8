//! Parses `--checkpoint NUMBER:HASH[:TD]|none|work|window|built-in`, where `TD` is the total difficulty up to the block, and finds the
//! start that it means.

use rootlight::consensus::checkpoint::{self, OldCheckpoint};
use rootlight::consensus::{Checkpoint, Network, WorkStart, WorkStartError};
use rootlight::types::{B256, U256};

/// Why a checkpoint argument is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The text does not have two or three parts.
    #[error(
        "--checkpoint takes window, work, built-in, none, or a block as NUMBER:HASH or NUMBER:HASH:TOTALDIFFICULTY"
    )]
    Form,
    /// The first part is not a block number.
    #[error(
        "--checkpoint: {0:?} is not a block number; a block is NUMBER:HASH or NUMBER:HASH:TOTALDIFFICULTY"
    )]
    Number(String),
    /// The second part is not a hash.
    #[error("--checkpoint: {0:?} is not a block hash, which is 0x and 64 hexadecimal digits")]
    Hash(String),
    /// The third part is not a number.
    #[error("--checkpoint: total difficulty {0:?} is not a number, decimal or 0x and hexadecimal digits")]
    TotalDifficulty(String),
    /// The newest built-in checkpoint is too old.
    #[error(transparent)]
    Old(#[from] OldCheckpoint),
    /// This network does not allow a start by work.
    #[error(transparent)]
    NoWork(#[from] WorkStartError),
    /// A start by work or by window relies on the work floor, so the floor cannot be 0.
    #[error("--checkpoint {0} needs a work floor: set --min-work above 0")]
    NoFloor(&'static str),
}

/// Where a light client starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LightStart {
    /// At a trusted block.
    At(Checkpoint),
    /// At no trusted block: at the heaviest chain of recent headers.
    Work(WorkStart),
    /// At no trusted block either, but headers are stored, and the next run continues from them.
    Window(WorkStart),
}

impl From<Checkpoint> for LightStart {
    fn from(checkpoint: Checkpoint) -> Self {
        Self::At(checkpoint)
    }
}

/// Parses a checkpoint; numbers are decimal or `0x` hex.
pub fn parse_checkpoint(text: &str) -> Result<Checkpoint, CheckpointError> {
    let parts: Vec<&str> = text.split(':').collect();
    let (number, hash, total) = match parts.as_slice() {
        [number, hash] => (*number, *hash, None),
        [number, hash, total] => (*number, *hash, Some(*total)),
        _ => return Err(CheckpointError::Form),
    };
    // `from_str_radix` reads no digits as 0, and skips underscores.
    let as_u256 = |text: &str| {
        let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
        let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        U256::from_str_radix(digits, radix).ok().filter(|_| valid)
    };
    let number = as_u256(number)
        .and_then(|value| u64::try_from(value).ok())
        .ok_or_else(|| CheckpointError::Number(number.into()))?;
    let hash: B256 = hash.parse().map_err(|_| CheckpointError::Hash(hash.into()))?;
    let total_difficulty = total
        .map(|text| as_u256(text).ok_or_else(|| CheckpointError::TotalDifficulty(text.into())))
        .transpose()?;
    Ok(Checkpoint { number, hash, total_difficulty })
}

/// The start without `--checkpoint`: by window, where the network's work proves something and a work floor is set, else at the
/// built-in checkpoint.
fn usual(network: &Network, min_work: u64) -> &'static str {
    if min_work > 0 && network.start_by_work().is_ok() { "window" } else { "built-in" }
}

/// Returns where to start: at the block of the argument, at genesis for `none`, by work for `work`, by window
/// for `window`, or for `built-in` at the newest built-in checkpoint, which must not be too old, or at genesis if the
/// network has none. Without an argument that is `window`, or `built-in` where work proves nothing. `now` is in seconds
/// since 1970, `min_work` is the work floor in percent.
pub fn start(
    argument: Option<&str>,
    network: &Network,
    min_work: u64,
    now: u64,
) -> Result<LightStart, CheckpointError> {
    let newest = || checkpoint::newest(network, now);
    Ok(match argument.unwrap_or_else(|| usual(network, min_work)) {
        "work" if min_work == 0 => return Err(CheckpointError::NoFloor("work")),
        "window" if min_work == 0 => return Err(CheckpointError::NoFloor("window")),
        "work" => LightStart::Work(network.start_by_work()?),
        "window" => LightStart::Window(network.start_by_work()?),
        "built-in" => LightStart::At(newest()?.unwrap_or_else(|| genesis(network))),
        text => LightStart::At(start_checkpoint(Some(text), network)?),
    })
}

/// Returns the block to start from: that of the argument, genesis for `none`, or for `built-in` and without an
/// argument the newest built-in checkpoint of any age.
pub fn start_checkpoint(argument: Option<&str>, network: &Network) -> Result<Checkpoint, CheckpointError> {
    match argument {
        Some("none") => Ok(genesis(network)),
        Some(text) if text != "built-in" => parse_checkpoint(text),
        _ => {
            let newest = checkpoint::built_in(network).last();
            Ok(newest.map_or_else(|| genesis(network), |newest| newest.checkpoint))
        }
    }
}

/// Block 0, with its total difficulty if it is a built-in checkpoint.
fn genesis(network: &Network) -> Checkpoint {
    let oldest = checkpoint::built_in(network).first().map(|oldest| oldest.checkpoint);
    oldest.filter(|oldest| oldest.number == 0).unwrap_or(Checkpoint {
        number: 0,
        hash: network.genesis_hash,
        total_difficulty: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_parsed_and_wrong_parts_are_named() {
        let hash = format!("0x{}", "ab".repeat(32));
        let short = parse_checkpoint(&format!("123:{hash}")).unwrap();
        assert_eq!((short.number, short.hash.to_string(), short.total_difficulty), (123, hash.clone(), None));
        let long = parse_checkpoint(&format!("0x7b:{}:0xff", &hash[2..])).unwrap();
        assert_eq!((long.number, long.total_difficulty), (123, Some(U256::from(255))));
        for (text, error) in [
            ("123".to_owned(), CheckpointError::Form),
            (format!("1:{hash}:2:3"), CheckpointError::Form),
            (format!("x:{hash}"), CheckpointError::Number("x".into())),
            (format!("-1:{hash}"), CheckpointError::Number("-1".into())),
            (format!("18446744073709551616:{hash}"), CheckpointError::Number("18446744073709551616".into())),
            ("1:0x12".to_owned(), CheckpointError::Hash("0x12".into())),
            (format!("1:{hash}:ten"), CheckpointError::TotalDifficulty("ten".into())),
            (format!("1:{hash}:"), CheckpointError::TotalDifficulty("".into())),
            (format!("1:{hash}:0x"), CheckpointError::TotalDifficulty("0x".into())),
            (format!("1:{hash}:1_000"), CheckpointError::TotalDifficulty("1_000".into())),
            (format!("1:{hash}:+1"), CheckpointError::TotalDifficulty("+1".into())),
            (format!(":{hash}"), CheckpointError::Number("".into())),
            (format!("0x:{hash}"), CheckpointError::Number("0x".into())),
        ] {
            assert_eq!(parse_checkpoint(&text), Err(error));
        }
    }

    #[test]
    fn the_built_in_start_is_the_newest_checkpoint_or_genesis() {
        let mainnet = Network::mainnet();
        assert_eq!(start_checkpoint(Some("none"), &mainnet).unwrap().number, 0);
        assert!(start_checkpoint(None, &mainnet).unwrap().number >= 9_000_000);
        let regtest = Network::regtest();
        assert_eq!(start_checkpoint(None, &regtest).unwrap().hash, regtest.genesis_hash);
    }

    #[test]
    fn a_start_by_work_needs_a_floor_and_a_built_in_checkpoint_may_not_be_old() {
        let (mainnet, testnet) = (Network::mainnet(), Network::testnet());
        let now = 1_795_000_000;
        assert!(matches!(start(Some("work"), &mainnet, 50, now), Ok(LightStart::Work(_))));
        assert!(matches!(start(Some("window"), &mainnet, 50, now), Ok(LightStart::Window(_))));
        for text in ["work", "window"] {
            assert_eq!(start(Some(text), &mainnet, 0, now), Err(CheckpointError::NoFloor(text)));
        }
        let refused = start(Some("work"), &testnet, 50, now).unwrap_err().to_string();
        assert!(refused.contains("nearly free"), "{refused}");
        assert!(
            matches!(start(Some("built-in"), &mainnet, 50, now), Ok(LightStart::At(block)) if block.number >= 9_000_000)
        );
        let later = now + 2 * 365 * 86_400;
        assert!(matches!(start(Some("built-in"), &mainnet, 50, later), Err(CheckpointError::Old(_))));
        // The user's own checkpoint may be of any age.
        let own = format!("9000000:0x{}", "ab".repeat(32));
        assert!(matches!(start(Some(&own), &mainnet, 50, later), Ok(LightStart::At(_))));
    }

    #[test]
    fn the_default_is_a_window_where_work_proves_something_and_a_floor_is_set() {
        let now = 1_795_000_000;
        let (mainnet, testnet, regtest) = (Network::mainnet(), Network::testnet(), Network::regtest());
        let window = LightStart::Window(mainnet.start_by_work().unwrap());
        // The age of the built-in checkpoints has no influence on a start by window.
        for now in [now, now + 5 * 365 * 86_400] {
            assert_eq!(start(None, &mainnet, 1, now), Ok(window));
        }
        let built_in = |network: &Network| start(Some("built-in"), network, 50, now).unwrap();
        assert_eq!(start(None, &mainnet, 0, now), Ok(built_in(&mainnet)));
        for network in [&testnet, &regtest, &Network::devnet()] {
            assert_eq!(start(None, network, 50, now), Ok(built_in(network)), "{}", network.name);
        }
        assert!(matches!(built_in(&testnet), LightStart::At(block) if block.number >= 7_000_000));
        assert!(matches!(built_in(&regtest), LightStart::At(block) if block.number == 0));
        let own = Network::from_json(r#"{ "name": "own", "base": "regtest" }"#).unwrap();
        assert_eq!(start(None, &own, 50, now), Ok(LightStart::At(genesis(&own))));
    }
}
