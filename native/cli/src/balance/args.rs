//! Flags of `balance`.

use std::fmt;
use std::str::FromStr;

use clap::Args;

use crate::source_args::SourceArgs;

/// Flags of `balance`.
#[derive(Debug, Args)]
#[command(after_help = BALANCE_HELP)]
pub struct BalanceArgs {
    /// The account: 0x and 40 hexadecimal digits. If the letters have both cases, they must be the checksum of EIP-55, or
    /// that of RSKIP-60 for mainnet or testnet
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    /// The block after which the balance is proven; latest is the newest one that --min-depth and --min-bitcoin allow
    #[arg(long, value_name = "N|latest", default_value = "latest")]
    pub block: BlockChoice,
    /// Flags of the light client.
    #[command(flatten)]
    pub sources: SourceArgs,
    /// End after this many seconds, if nothing is proven until then
    #[arg(long = "for", value_name = "S", default_value_t = 180)]
    pub seconds: u64,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

const BALANCE_HELP: &str = "\
Without --upstream and --peer, nodes of Rootstock's peer-to-peer network are asked, its state servers first. Progress and
reasons are on stderr, the balance is on stdout.

Examples:
  rootlight balance 0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826
  rootlight balance 0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826 --network testnet --json
  rootlight balance 0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826 --upstream https://node.example/KEY

Exit codes: 0 the balance is proven, 1 it is not, or the run was interrupted, 2 wrong usage.";

/// The block after which the balance is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockChoice {
    /// The newest verified block that is as old as the flags demand.
    Latest,
    /// The block of this number.
    Number(u64),
}

/// The text names no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block is its number, such as 9000000 or 0x895440, or latest")]
pub struct BlockChoiceError;

impl FromStr for BlockChoice {
    type Err = BlockChoiceError;

    fn from_str(text: &str) -> Result<Self, BlockChoiceError> {
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
        // `from_str_radix` accepts a sign, which a block number does not have.
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(BlockChoiceError);
        }
        u64::from_str_radix(digits, radix).map(Self::Number).map_err(|_| BlockChoiceError)
    }
}

/// The block as a parameter of a request.
impl fmt::Display for BlockChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Number(number) => write!(f, "{number:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_numbers_or_the_newest() {
        for (text, parameter) in
            [("latest", "latest"), ("0", "0x0"), ("9000000", "0x895440"), ("0xff", "0xff")]
        {
            assert_eq!(text.parse::<BlockChoice>().unwrap().to_string(), parameter);
        }
        for text in ["", "0x", "-1", "+1", "0x+1", "1_000", "Latest", "pending", "18446744073709551616"] {
            assert_eq!(text.parse::<BlockChoice>(), Err(BlockChoiceError), "{text}");
        }
    }
}
